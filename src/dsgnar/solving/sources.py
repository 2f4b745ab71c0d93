"""How fast does what is given vary? Where a survey (`survey.py`) does not find a rough solution, the data still tell.

A solution follows its source: the residual F(0) of an equation for u = 0, a function of the point alone, is looked at along
lines through the box, in Chebyshev polynomials. The degree beyond which little of its energy is left is a frequency, as in
a survey. Networks begin with sines of it then, and the equation weighs as much as other conditions: with its usual weight
u = 0 is a trap, where slopes of a wave at the boundary cost more than its source gains (Poisson3d-CG, docs/notes.md).
"""

from functools import lru_cache

from dsgnar.calculus.precision import x64
from dsgnar.problem import Problem
from dsgnar.problem.domain import Interior
from dsgnar.problem.scales import Scales
from dsgnar.solving.given import ends
from dsgnar.solving.spectrum import FAST, frequency
from dsgnar.solving.survey import survey

LEFT = 1e-3  # share of the energy beyond the degree at which a source is said to end


def followed(problem: Problem, scales: Scales) -> tuple[float, ...] | None:
    """Frequencies of fast sources, where nothing better is known; None elsewhere."""
    found = None if survey(problem, scales) is not None else sources(problem)
    return found if found is not None and max(found) >= FAST else None


@lru_cache(maxsize=8)
@x64
def sources(problem: Problem) -> tuple[float, ...] | None:
    """Frequencies of sources along each axis, in radians per half-width; None where there are none, or they are rough."""
    found = ends(problem, (Interior,), LEFT)
    return tuple(map(frequency, map(int, found))) if found is not None and found.any() else None
