"""How fast does the solution vary? A look at a problem before a network is chosen.

Networks find what varies slowly by themselves. A wave of ten periods they do not find: the loss never leaves that of u = 0.
So the problem is first solved roughly, by least squares in a linear space (`rough.py`); that may fail, and then nothing is
known. The energy of the coefficients by degree shows how fast the solution varies along each axis: the
Chebyshev coefficients of cos(w xi) end at a degree of about w + 2 + 1.3 w^(1/3), those along a periodic axis at w.

Where it varies fast, the network begins with sines of these frequencies. The rough solution itself serves where a first
attempt fails: the next one begins near it (`headstart.py`).
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dsgnar.calculus.jets import Truncation
from dsgnar.calculus.precision import x64
from dsgnar.calculus.spaces import Polynomials
from dsgnar.calculus.streams import stream
from dsgnar.problem import Problem
from dsgnar.problem.domain import Boundary, Initial, Interior
from dsgnar.problem.inverse import plain
from dsgnar.problem.sampling import sample
from dsgnar.problem.scales import Scales, estimate
from dsgnar.problem.softened import softened
from dsgnar.solving.correction import Correction, Piece, inward
from dsgnar.solving.given import FULL, ends
from dsgnar.solving.march import March, why_not
from dsgnar.solving.rough import HELD, STRETCH, Found, Rough, in_slices

COLUMNS = 300, 700  # functions in all: a quick look, and a closer one where that does not hold the solution
COLUMNS_1D = 80, 240  # and for each unknown of one variable
FEW = 20  # with which it is seen whether equations are linear
MORE = 2  # times as many for linear problems that these do not hold: a packet in a wide box
WIDEST = 3  # times as many for those whose data vary fast along some axes only
GIVEN = 1e-6  # share of the energy beyond the degree at which data are said to end there
FEWEST = 4  # the degree along other axes, at least
ENERGY = 1e-4  # share of the energy beyond the degree at which a solution is said to end
LOST = 0.5  # a share that more functions do not help: Newton's method does not find the solution
NEARLY = 0.1  # a share with which a space that is stretched along one axis may do
ROUGHLY = 0.15  # and of that of linear equations: no other solution is nearer
FAST, FAST_PERIODIC = 7.5, 20.0  # frequencies from which on a network needs to be told
MIXED = 0.4  # slopes over frequencies from which on several waves oscillate, and nothing is localised
STEEP = 1.5  # slopes over frequencies beyond which something is a layer
SAMPLE = 1000  # points at which slopes are compared with values
SLOWEST = 2.0  # with which a network begins along an axis


@dataclass(frozen=True)
class Survey:
    """What was seen along each axis, in radians per half-width: where the spectrum ends, and |du/dxi| over |u|.

    For an oscillation the two agree. Something localised varies less as a whole than its spectrum is wide, and a layer at an
    end has slopes that no oscillation of its spectrum has: neither is found sooner from sines (docs/notes.md).
    """

    frequencies: tuple[float, ...]
    slopes: tuple[float, ...]
    periodic: tuple[bool, ...]
    left: float  # share of the residual
    sizes: tuple[float, ...]  # root mean squares of the unknowns

    @property
    def fast(self) -> bool:
        """Whether the solution oscillates so much that networks do not find it by themselves.

        Harmonics of a periodic axis come more easily.
        """
        seen = zip(self.frequencies, self.slopes, self.periodic, strict=True)
        return any(self._oscillates(f, s, FAST_PERIODIC if p else FAST) for f, s, p in seen)

    def _oscillates(self, frequency: float, slope: float, fast: float) -> bool:
        """Whether it does along an axis. A slow wave with a fast one on it has a slope between theirs."""
        mixed = len(self.frequencies) > 1 and slope >= MIXED * frequency
        return frequency >= fast and (slope >= fast or mixed) and slope <= STEEP * frequency

    def begin_with(self) -> tuple[float, ...]:
        """Frequencies for the first layer of a network."""
        return begin_with(self.frequencies)


@x64
def survey(problem: Problem, scales: Scales) -> Survey | None:
    """How fast the solution varies; None where it could not be seen. A space has no hard values: they are conditions."""
    problem, scales = _soft(problem, scales)
    seen, best, linear = _look(problem, scales)
    if seen is not None or best is None or not linear:
        return seen  # packets of nonlinear waves were found sooner by networks that had not been told (docs/notes.md)
    found = _in_slices(problem, scales)
    return None if found is None else _seen_in_slices(*found)


@lru_cache(maxsize=8)
def _soft(problem: Problem, scales: Scales) -> tuple[Problem, Scales]:
    """A problem without hard values, and the sizes of its conditions."""
    soft = softened(problem)
    if soft is problem:
        return problem, scales
    return soft, estimate(soft, dict(zip(soft.outputs, scales.unknowns, strict=True)))


def seen_in_slices_only(problem: Problem, scales: Scales) -> bool:
    """Whether a rough solution was found, but not in all of the time at once: a hard problem."""
    seen, best, linear = _look(problem, scales)
    return seen is None and best is not None and _in_slices(problem, scales, thorough=linear) is not None


def seen_as_given_only(problem: Problem, scales: Scales) -> bool:
    """Whether a linear problem was seen in a space that was made for its data, and in no other: a hard one, too."""
    seen, best, linear = _look(problem, scales)
    return seen is not None and linear and best is not None and best.made and best.left <= HELD


@x64
def carried_far(problem: Problem, scales: Scales) -> bool:
    """Whether equations in time and several variables are linear, and no small space holds their solution."""
    seen, best, linear = _look(problem, scales)
    held = seen is not None and seen.left <= HELD
    if best is None or held or problem.domain.time is None or problem.domain.dimension == 1:
        return False
    few = Rough(problem, scales, FEW)
    return linear or few.affine(Polynomials.of(FEW, few.periodic))


@lru_cache(maxsize=8)
@x64
def rough_solution(problem: Problem, scales: Scales) -> tuple[Correction, float] | None:
    """The best rough solution that could be found, and the share of the residual that it leaves.

    Where those of a survey leave much, it is sought in slices of time, or with more functions.
    """
    _, best, _ = _look(problem, scales)
    domain, even = problem.domain, (1,) * problem.domain.dimension
    if best is None:
        return None
    found = _in_slices(problem, scales) if best.left > HELD else None
    if found is not None and found[1] < best.left:
        return found
    size = MORE * COLUMNS[1] // len(problem.unknowns)
    if best.left > HELD and best.space.size < size:
        rough = Rough(problem, scales, size)
        best = min(best, rough.solve(Polynomials.of(size, rough.periodic, even)), key=lambda found: found.left)
    times = () if domain.time is None else domain.interval(domain.time)
    return Correction(March(times), (Piece(domain, best.space, best.coefficients),)), best.left


@x64
def _in_slices(problem: Problem, scales: Scales, thorough: bool = True) -> tuple[Correction, float] | None:
    """A rough solution in slices of time, where there is time that can be cut."""
    domain = problem.domain
    cut = domain.dimension > 1 and domain.time is not None and not domain.shaped and why_not(problem) is None
    return in_slices(problem, scales, thorough) if cut else None


def _seen_in_slices(rough: Correction, left: float) -> Survey | None:
    """The frequencies of a rough solution in slices: along axes of space those of any slice, along time as slopes tell."""
    box = rough.pieces[0].box
    slices = [(piece.space, piece.coefficients) for piece in rough.pieces if isinstance(piece.space, Polynomials)]
    looks = [_slopes(*one) for one in slices]
    slopes = np.median([slope for slope, _ in looks], axis=0)
    sizes = np.sqrt(np.mean(np.square([size for _, size in looks]), axis=0))
    frequencies = np.max([_frequencies(*one, max(ENERGY, left**2)) for one in slices], axis=0)
    time = box.index(str(box.time))
    slopes[time] *= len(slices)
    frequencies[time] = slopes[time]
    if not np.isfinite(frequencies).all():
        return None
    seen, steep, size = (tuple(values.tolist()) for values in (frequencies, slopes, sizes))
    return Survey(seen, steep, slices[0][0].periodic, left, size)


@lru_cache(maxsize=8)
@x64
def _look(problem: Problem, scales: Scales) -> tuple[Survey | None, Found | None, bool]:
    """What was seen, the best of the rough solutions that were made for it, and whether the equations are linear.

    The last is not asked where something was seen.
    """
    inverse = not plain(problem) or any(c.measured is not None for c in problem.conditions.values())
    if problem.known or inverse:
        return None, None, False  # what is added to the network, and what only data determine, is not part of the space
    dimension = problem.domain.dimension
    even = (1,) * dimension
    along = [tuple(STRETCH if i == k else 1 for i in range(dimension)) for k in range(dimension)] if dimension > 1 else []
    few, many = COLUMNS_1D if dimension == 1 else (count // len(problem.unknowns) for count in COLUMNS)
    rough, best, shape = Rough(problem, scales, few), None, even
    for size, stretch in ((few, even), (many, even), *((many, stretch) for stretch in along)):
        rough = rough if size == rough.size else Rough(problem, scales, size)
        found = rough.solve(Polynomials.of(size, rough.periodic, stretch))
        if math.isfinite(found.left) and (best is None or found.left < best.left):
            best, shape = found, stretch
        seen, limit = _seen(found, problem=problem), LOST if size == few else NEARLY if stretch == even else math.inf
        if seen is not None or (not found.left < limit and not rough.affine(found.space)):
            return seen, best, False
    if best is None or not rough.affine(best.space):
        return None, best, False
    if not best.left <= ROUGHLY and dimension > 1:  # of a linear problem, the best shape with more functions
        rough = Rough(problem, scales, MORE * many)
        best = min(best, rough.solve(Polynomials.of(MORE * many, rough.periodic, shape)), key=lambda found: found.left)
    space = as_given(problem, WIDEST * many, rough.periodic) if best.left > HELD and dimension > 2 else None
    if space is not None:  # in two variables total degrees are not much worse
        made = Rough(problem, scales, space.size).solve(space)._replace(made=True)
        best = made if made.left <= HELD else best
    return _seen(best, HELD if best.left <= HELD else ROUGHLY, problem), best, True


def as_given(problem: Problem, most: int, periodic: tuple[bool, ...]) -> Polynomials | None:
    """A space of products with the degrees that data have, and as even ones beside them as so many functions allow.

    None where data tell nothing, or need more functions.
    """
    found = None if problem.domain.shaped else ends(problem, (Interior, Initial, Boundary), GIVEN)
    if found is None or not found.any():
        return None
    harmonics = lambda end: 2 * math.ceil(frequency(end) / math.pi)  # sines and cosines
    wanted = [harmonics(end) if wraps else end for end, wraps in zip(map(int, found), periodic, strict=True)]
    limits = lambda degree: tuple(max(degree, end) for end in wanted)
    size = lambda degree: math.prod(end + 1 for end in limits(degree))
    degrees = [degree for degree in range(FEWEST, most) if size(degree) <= most]
    return Polynomials.box(limits(degrees[-1]), periodic) if degrees else None


def _seen(found: Found, held: float = HELD, problem: Problem | None = None) -> Survey | None:
    """The frequencies of a rough solution, if the space holds it; what is left of the residual hides as much of them.

    A space that was made for the data ends where the solution does. On a shape values count inside only: in the rest of its
    bounding box polynomials grow without bound (a torsion problem on an L had a size of 1,024 for values of 0.1).
    """
    space, coefficients, left, made = found
    if not left <= held:
        return None
    frequencies = _frequencies(space, coefficients, ENERGY if held == HELD else left**2, math.inf if made else FULL)
    if not np.isfinite(frequencies).all():
        return None
    slopes, sizes = _slopes(space, coefficients, _inside(problem))
    return Survey(tuple(frequencies), slopes, space.periodic, left, sizes)


def _inside(problem: Problem | None) -> np.ndarray | None:
    """Points of a shape, in the coordinates of its bounding box; None of boxes."""
    if problem is None or not problem.domain.shaped:
        return None
    return inward(problem.domain, sample(Interior(), problem.domain, SAMPLE, stream(0, "survey", "inside")))


def _frequencies(space: Polynomials, coefficients: np.ndarray, beyond: float, full: float = FULL) -> list[float]:
    """Where the spectrum ends along each axis, up to a share of the energy; infinite where the space cuts it off."""
    share = coefficients**2 / np.maximum(np.sum(coefficients**2, axis=0), 1e-300)  # of each unknown, whatever its units
    energy, out = share.sum(axis=1), []
    for i, wraps in enumerate(space.periodic):
        by_degree = np.bincount(space.degrees[:, i], energy)
        rest = np.cumsum(by_degree[::-1])[::-1] / by_degree.sum()
        end = int(np.count_nonzero(rest > beyond)) - 1  # the last degree that counts
        found = math.pi * ((end + 1) // 2) if wraps else frequency(end)
        out.append(math.inf if end > full * (len(by_degree) - 1) else found)
    return out


def frequency(end: int) -> float:
    """That of a cosine whose Chebyshev coefficients end at a degree."""
    return max(0.0, end - 1 - 1.3 * (end + 1) ** (1 / 3))


def begin_with(frequencies: tuple[float, ...]) -> tuple[float, ...]:
    """Frequencies for the first layer of a network: half, since further layers make them faster; rounded upwards to powers
    of two, so that no run depends on the last digits of a rough solution."""
    return tuple(max(SLOWEST, 2.0 ** math.ceil(math.log2(f / 2))) if f > 0 else SLOWEST for f in frequencies)


def _slopes(
    space: Polynomials, coefficients: np.ndarray, inside: np.ndarray | None = None
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """|du/dxi| over |u - its mean| along each axis, of the unknown in which it is largest; and the sizes of all."""
    dimension = len(space.periodic)
    xi = stream(0, "survey", "slopes").uniform(-1, 1, (SAMPLE, dimension)) if inside is None else inside
    u = space.derivative(xi, (0,) * dimension) @ coefficients
    size = np.maximum(np.std(u, axis=0), 1e-9 * np.max(np.abs(u), axis=0, initial=0.0))
    along = [space.derivative(xi, Truncation.unit(dimension, i, 1)) @ coefficients for i in range(dimension)]
    steep = [np.sqrt(np.mean(d**2, axis=0))[size > 0] / size[size > 0] for d in along]
    sizes = np.sqrt(np.mean(u**2, axis=0))
    return tuple(float(np.max(s, initial=0.0)) for s in steep), tuple(map(float, sizes))
