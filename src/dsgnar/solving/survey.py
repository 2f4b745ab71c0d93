"""How fast does the solution vary? A look at a problem before a network is chosen.

Networks find what varies slowly by themselves. A wave of ten periods they do not find: the loss never leaves that of u = 0.
So the problem is first solved roughly, by least squares in a linear space (`rough.py`); that may fail, and then nothing is
known. The coefficients tell how fast the solution varies along each axis (`spectrum.py`).

Where it varies fast, the network begins with sines of these frequencies. The rough solution itself serves where a first
attempt fails: the next one begins near it (`headstart.py`).
"""

import math
from functools import lru_cache

import numpy as np

from dsgnar.calculus.precision import x64
from dsgnar.calculus.spaces import Polynomials
from dsgnar.calculus.streams import stream
from dsgnar.problem import Problem
from dsgnar.problem.domain import Boundary, Initial, Interior
from dsgnar.problem.inverse import plain
from dsgnar.problem.sampling import sample
from dsgnar.problem.scales import Scales, estimate
from dsgnar.problem.softened import softened
from dsgnar.solving.correction import Correction, Piece, derivative
from dsgnar.solving.given import ends
from dsgnar.solving.march import March, why_not
from dsgnar.solving.rough import HELD, STRETCH, Found, Rough, in_slices
from dsgnar.solving.spectrum import Survey, frequency, of_slices, of_solution, sizes_of

COLUMNS = 300, 700  # functions in all: a quick look, and a closer one where that does not hold the solution
COLUMNS_1D = 80, 240  # and for each unknown of one variable
FEW = 20  # with which it is seen whether equations are linear
MORE = 2  # times as many for linear problems that these do not hold: a packet in a wide box
WIDEST = 3  # times as many for those whose data vary fast along some axes only
GIVEN = 1e-6  # share of the energy beyond the degree at which data are said to end there
FEWEST = 4  # the degree along other axes, at least
LOST = 0.5  # a share that more functions do not help: Newton's method does not find the solution
NEARLY = 0.1  # a share with which a space that is stretched along one axis may do
ROUGHLY = 0.15  # and of that of linear equations: no other solution is nearer
SURE = 1e-3  # a share with which nobody asks whether there is another solution
NOISE = 1e-3  # of the size of an unknown, below which it is nothing
BEGINNING = 0.25  # share of the time in which another solution shows
SMALL, ANOTHER = 0.02, 0.5  # the share in slices with which theirs counts, and the relative difference that makes another
SAMPLE = 1000  # points at which solutions are compared


@x64
def survey(problem: Problem, scales: Scales) -> Survey | None:
    """How fast the solution varies; None where it could not be seen. A space has no hard values: they are conditions."""
    problem, scales = _soft(problem, scales)
    seen, best, linear = _look(problem, scales)
    if seen is not None or best is None or not linear:
        return seen  # packets of nonlinear waves were found sooner by networks that had not been told (docs/notes.md)
    found = _in_slices(problem, scales)
    return None if found is None else of_slices(*found)


@x64
def sizes(problem: Problem, scales: Scales) -> tuple[float, ...] | None:
    """Root mean squares of the unknowns in a rough solution; of one in slices of time, where a survey sees nothing."""
    seen = survey(problem, scales)
    if seen is not None:
        return seen.sizes
    problem, scales = _soft(problem, scales)
    _, best, linear = _look(problem, scales)
    found = None if best is None else _in_slices(problem, scales, thorough=linear)
    return None if found is None else sizes_of(found[0])


@lru_cache(maxsize=8)
def _soft(problem: Problem, scales: Scales) -> tuple[Problem, Scales]:
    """A problem without hard values and singular parts, and the sizes of its conditions."""
    problem = problem.stated
    soft = softened(problem)
    if soft is problem:
        return problem, scales
    sizes = dict(zip(soft.outputs, scales.unknowns, strict=True))
    return soft, estimate(soft, {name: size for name, size in sizes.items() if name not in problem.hard})


def seen_in_slices_only(problem: Problem, scales: Scales) -> bool:
    """Whether a rough solution was found, but not in all of the time at once: a hard problem."""
    problem, scales = _soft(problem, scales)
    seen, best, linear = _look(problem, scales)
    return seen is None and best is not None and _in_slices(problem, scales, thorough=linear) is not None


def seen_as_given_only(problem: Problem, scales: Scales) -> bool:
    """Whether a linear problem was seen in a space that was made for its data, and in no other: a hard one, too."""
    problem, scales = _soft(problem, scales)
    seen, best, linear = _look(problem, scales)
    return seen is not None and linear and best is not None and best.made and best.left <= HELD


@x64
def carried_far(problem: Problem, scales: Scales) -> bool:
    """Whether equations in time and several variables are linear, and no small space holds their solution."""
    problem, scales = _soft(problem, scales)
    seen, best, linear = _look(problem, scales)
    held = seen is not None and seen.left <= HELD
    if best is None or held or problem.domain.time is None or problem.domain.dimension == 1:
        return False
    few = Rough(problem, scales, FEW)
    return linear or few.affine(Polynomials.of(FEW, few.periodic))


@x64
def rough_solution(problem: Problem, scales: Scales) -> tuple[Correction, float] | None:
    """The best rough solution that could be found, and the share of the residual that it leaves.

    Where those of a survey leave much, it is sought in slices of time, or with more functions.
    """
    return _rough_solution(*_soft(problem, scales))


@lru_cache(maxsize=8)
def _rough_solution(problem: Problem, scales: Scales) -> tuple[Correction, float] | None:
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
def _in_slices(
    problem: Problem, scales: Scales, thorough: bool = True, share: float = 1.0
) -> tuple[Correction, float] | None:
    """A rough solution in slices of time, where there is time that can be cut."""
    domain = problem.domain
    cut = domain.dimension > 1 and domain.time is not None and not domain.shaped and why_not(problem) is None
    return in_slices(problem, scales, thorough, share) if cut else None


@lru_cache(maxsize=8)
@x64
def _look(problem: Problem, scales: Scales) -> tuple[Survey | None, Found | None, bool]:
    """What was seen, the best of the rough solutions that were made for it, and whether the equations are linear.

    The last is not asked where something was seen. What grows from small values, such as an epidemic, may have another
    solution with small residuals over all of the time, in which it does not. Slices of time find the one that grows; then
    nothing was seen, and all is left of the best that was made.
    """
    seen, best, linear = _at_once(problem, scales)
    if seen is None or best is None or best.left <= SURE or not _differs(problem, scales, best):
        return seen, best, linear
    return None, best._replace(left=1.0), False


def _differs(problem: Problem, scales: Scales, found: Found) -> bool:
    """Whether a rough solution in slices of time is quite another one than that of nonlinear equations over all of it."""
    if Rough(problem, scales, found.space.size).affine(found.space):
        return False
    domain, time = problem.domain, problem.domain.time
    for share in (BEGINNING, 1.0):  # the beginning is found in a second
        slices = _in_slices(problem, scales, thorough=False, share=share)
        if slices is None or not slices[1] <= SMALL:
            return False
        points = sample(Interior(), domain, SAMPLE, stream(0, "survey", "slices"))
        points = points[points[:, domain.index(str(time))] <= slices[0].march.times[-1]]
        zero = (0,) * domain.dimension
        there, here = slices[0].at(points), derivative(found.space, domain, points, zero) @ found.coefficients
        size = np.maximum(np.linalg.norm(there, axis=0), NOISE * math.sqrt(len(points)) * np.array(scales.unknowns))
        if not np.any(np.linalg.norm(here - there, axis=0) > ANOTHER * size):
            return False
    return True


def _at_once(problem: Problem, scales: Scales) -> tuple[Survey | None, Found | None, bool]:
    """The same from solutions over all of the time."""
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
        seen, limit = of_solution(found, problem=problem), LOST if size == few else NEARLY if stretch == even else math.inf
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
    return of_solution(best, HELD if best.left <= HELD else ROUGHLY, problem), best, True


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
