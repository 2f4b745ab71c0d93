"""The estimate of an error, with the checks that it rests on, and what it does to a verdict. `error.py` makes it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from dsgnar.solving.correction import Correction
from dsgnar.solving.verdict import Verdict

SPREAD = 5.0  # by which estimates in other spaces may differ
WRONG = 1e-2  # an estimated error above which nothing is called solved
SAFE = 2.0  # an estimate must be so much below a tolerance; sharp fronts were underestimated by 1.9
NONLINEAR = 0.1  # share of its terms that the linearisation may miss
NONE: Mapping[str, float] = MappingProxyType({})
NO_ESTIMATE = "errors are not estimated where coefficients, functions of fewer axes or data are fitted"


@dataclass(frozen=True, eq=False)
class Estimate:
    """The relative l2 error of every unknown, with the checks that it rests on."""

    errors: dict[str, float]
    spread: float  # largest ratio between estimates in different spaces
    nonlinear: float  # what the linearisation misses, over the size of its terms
    rounding: dict[str, float]  # share of rounding in the errors
    correction: Correction | None = field(default=None, repr=False)

    def meets(self, tol: float, looser: Mapping[str, float] = NONE) -> bool:
        """Whether the errors are below a tolerance, for all that is known; `looser` has factors for some unknowns."""
        return self.known and all(SAFE * e <= tol * looser.get(name, 1.0) for name, e in self.errors.items())

    @property
    def largest(self) -> float:
        """The error of the worst unknown."""
        return max(self.errors.values())

    @property
    def known(self) -> bool:
        """Whether the checks hold."""
        return self.spread <= SPREAD and self.nonlinear <= NONLINEAR and all(map(math.isfinite, self.errors.values()))


def with_error(verdict: Verdict, found: Estimate, tol: float, looser: Mapping[str, float] = NONE) -> Verdict:
    """The verdict in the light of an estimate: small residuals do not make a wrong answer right.

    A tolerance that is met makes an answer right, whatever its residuals are.
    """
    if tol * max(looser.values(), default=1.0) <= WRONG and found.meets(tol, looser):
        return Verdict.SOLVED
    wrong = found.known and found.largest > WRONG
    return Verdict.PARTLY if verdict is Verdict.SOLVED and wrong else verdict
