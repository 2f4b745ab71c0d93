"""What a rough solution tells of how fast the solution varies.

The energy of its coefficients by degree shows how fast it varies along each axis: the Chebyshev coefficients of cos(w xi)
end at a degree of about w + 2 + 1.3 w^(1/3), those along a periodic axis at w. Slopes tell an oscillation from something
localised, and from a layer.
"""

import math
from dataclasses import dataclass

import numpy as np

from dsgnar.calculus.jets import Truncation
from dsgnar.calculus.spaces import Bent, Polynomials
from dsgnar.calculus.streams import stream
from dsgnar.problem import Problem
from dsgnar.problem.domain import Interior
from dsgnar.problem.sampling import sample
from dsgnar.solving.correction import Correction, inward
from dsgnar.solving.given import FULL
from dsgnar.solving.rough import HELD, Found

ENERGY = 1e-4  # share of the energy beyond the degree at which a solution is said to end
FAST, FAST_PERIODIC = 7.5, 20.0  # frequencies from which on a network needs to be told
MIXED = 0.4  # slopes over frequencies from which on several waves oscillate, and nothing is localised
STEEP = 1.5  # slopes over frequencies beyond which something is a layer
SLOWEST = 2.0  # with which a network begins along an axis
SAMPLE = 1000  # points at which slopes are compared with values


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


def of_solution(found: Found, held: float = HELD, problem: Problem | None = None) -> Survey | None:
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


def _frequencies(space: Polynomials | Bent, coefficients: np.ndarray, beyond: float, full: float = FULL) -> list[float]:
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
    space: Polynomials | Bent, coefficients: np.ndarray, inside: np.ndarray | None = None
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


def of_slices(rough: Correction, left: float) -> Survey | None:
    """The frequencies of a rough solution in slices: along axes of space those of any slice, along time as slopes tell."""
    box = rough.pieces[0].box
    slices = [(piece.space, piece.coefficients) for piece in rough.pieces if isinstance(piece.space, Polynomials | Bent)]
    slopes = np.median([_slopes(*one)[0] for one in slices], axis=0)
    frequencies = np.max([_frequencies(*one, max(ENERGY, left**2)) for one in slices], axis=0)
    time = box.index(str(box.time))
    slopes[time] *= len(slices)
    frequencies[time] = slopes[time]
    if not np.isfinite(frequencies).all():
        return None
    return Survey(tuple(frequencies.tolist()), tuple(slopes.tolist()), slices[0][0].periodic, left, sizes_of(rough))


def sizes_of(rough: Correction) -> tuple[float, ...]:
    """Root mean squares of the unknowns over all slices."""
    each = [_slopes(p.space, p.coefficients)[1] for p in rough.pieces if isinstance(p.space, Polynomials | Bent)]
    return tuple(np.sqrt(np.mean(np.square(each), axis=0)).tolist())
