"""The estimate of an error, with the checks that it rests on, and what it does to a verdict. `error.py` makes it.

A quantity that a solution is wanted for has an error of its own (`quantity.py`).
"""

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
LITTLE = 0.3  # share of an error that no space holds, up to which it is not looked at more closely
NONE: Mapping[str, float] = MappingProxyType({})
UNSOLVED = "the problem is not solved"
NO_ESTIMATE = "errors are not estimated where coefficients, functions of fewer axes or data are fitted"


@dataclass(frozen=True)
class Measured:
    """A quantity of a solution with its error bar: `1.2345 +- 2e-06`."""

    value: float
    error: float | None  # absolute; None: not known
    corrected: float | None = None  # that of the solution plus its estimated error: often better
    why: str = ""  # the error is not known

    @property
    def relative(self) -> float | None:
        """The error over the value."""
        if self.error is None:
            return None
        return self.error / abs(self.value) if self.value else math.inf

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        if self.error is None:
            return f"{self.value:.6g} (error unknown: {self.why})"
        known = self.error > 0 and self.value != 0
        digits = 1 + math.ceil(math.log10(abs(self.value) / self.error)) if known else 6
        return f"{self.value:.{min(max(digits, 1), 16)}g} +- {self.error:.1g}"


@dataclass(frozen=True, eq=False)
class Estimate:
    """The relative l2 error of every unknown, with the checks that it rests on."""

    errors: dict[str, float]
    spread: float  # largest ratio between estimates in different spaces
    nonlinear: float  # what the linearisation misses, over the size of its terms
    rounding: dict[str, float]  # share of rounding in the errors
    spaces: tuple[Correction, ...] = field(default=(), repr=False)  # the error, and what checks found in its place
    beyond: float = 0.0  # share of the errors that no space holds, as far as what they leave of the residuals tells
    unseen: float = 0.0  # the largest error that it could have there, over the one estimated; not sought in a march
    quantity: Measured | None = None  # what a tolerance is about, if not the unknowns

    def meets(self, tol: float, looser: Mapping[str, float] = NONE) -> bool:
        """Whether the errors are below a tolerance, for all that is known; `looser` has factors for some unknowns."""
        if self.quantity is not None:
            return self.known and SAFE * self.decisive <= tol
        return self.known and all(SAFE * e <= tol * looser.get(name, 1.0) for name, e in self.errors.items())

    def hidden(self, tol: float, looser: Mapping[str, float] = NONE) -> bool:
        """Whether rounding alone is above a tolerance for the unknowns, so that nothing helps in this precision."""
        if self.quantity is not None or not self.known:
            return False
        return any(SAFE * e > tol * looser.get(name, 1.0) for name, e in self.rounding.items())

    def settled(self, agree: float) -> bool:
        """Whether a look in finer spaces would find the same."""
        return self.known and self.spread <= agree and self.beyond <= LITTLE

    @property
    def correction(self) -> Correction | None:
        """The error as a function; None in an estimate that was read from a file."""
        return self.spaces[0] if self.spaces else None

    @property
    def largest(self) -> float:
        """The error of the worst unknown."""
        return max(self.errors.values())

    @property
    def decisive(self) -> float:
        """The error that a tolerance is about: of the quantity, if one is wanted, or of the worst unknown."""
        if self.quantity is None:
            return self.largest
        return math.inf if self.quantity.relative is None else self.quantity.relative

    @property
    def why(self) -> str:
        """Why it is not known; nothing where it is."""
        if self.known:
            return ""
        if self.nonlinear > NONLINEAR:
            return "the equations are too nonlinear at this distance"
        return f"estimates differ by a factor of {self.spread:.0e}"

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
