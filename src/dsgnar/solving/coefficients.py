"""What was found: coefficients and functions with standard errors and intervals, or that the data do not determine them."""

import math
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float
from scipy import stats


def quantile(level: float, freedom: float) -> float:
    """Standard errors from the middle of an interval to its ends."""
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1, such as 0.95, not {level!r}")
    return float(stats.t.ppf((1 + level) / 2, freedom))


@dataclass(frozen=True)
class Estimated:
    """A coefficient after a run.

    `value` is None where the data do not determine it (`determined` is False, `standard_error` infinite); `found` is then
    where the run left it, one of many. `standard_error` is None where it is not known: without data, or after a run that
    did not end by itself.
    """

    found: float
    standard_error: float | None
    determined: bool = True
    positive: bool = False
    freedom: float = math.inf  # degrees of freedom of the noise; infinite where it was given
    why: str = ""  # there is no value or no standard error

    @property
    def value(self) -> float | None:
        return self.found if self.determined else None

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Where the true value lies with a probability of `level`, if the equations are right.

        That of a positive coefficient is symmetric in its logarithm. With estimated noise it is that of Student's t.
        """
        far = quantile(level, self.freedom)
        if self.standard_error is None:
            raise ValueError(f"there is no interval: {self.why}")
        if not self.determined:
            return (0.0 if self.positive else -math.inf), math.inf
        if self.positive:
            factor = math.exp(min(far * self.standard_error / self.found, 700.0))
            return self.found / factor, self.found * factor
        return self.found - far * self.standard_error, self.found + far * self.standard_error

    def __str__(self) -> str:
        if not self.determined:
            return f"not determined: {self.why}"
        if self.standard_error is None:
            return f"{self.found:.6g} (no standard error: {self.why})"
        digits = max(2, 2 + math.floor(math.log10(abs(self.found) / self.standard_error))) if self.found else 2
        low, high = self.interval()
        shown = f"{self.found:.{min(digits + 1, 15)}g} ± {self.standard_error:.2g}"
        return f"{shown} (95 %: {low:.{digits}g} to {high:.{digits}g})"


@dataclass(frozen=True, eq=False)
class Band:
    """An unknown function at some points, with its error bars.

    `standard_error` is infinite where the data do not determine the function (`determined` is False there); `found` is
    then where the run left it.
    """

    found: np.ndarray
    standard_error: np.ndarray
    positive: bool = False
    freedom: float = math.inf  # as of a coefficient

    @property
    def determined(self) -> np.ndarray:
        return np.isfinite(self.standard_error)

    @property
    def value(self) -> np.ndarray:
        """The function; nan where the data do not determine it."""
        return np.where(self.determined, self.found, np.nan)

    def interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends between which the function lies, at each point, with a probability of `level`.

        As those of coefficients: symmetric in the logarithm of a positive function, and Student's t for estimated noise.
        """
        far = quantile(level, self.freedom) * self.standard_error
        if not self.positive:
            return self.found - far, self.found + far
        factor = np.exp(np.minimum(far / self.found, 700.0))
        return np.where(self.determined, self.found / factor, 0.0), np.where(
            self.determined, self.found * factor, math.inf
        )


@dataclass(frozen=True)
class Account:
    """How well data determine an unknown function of fewer axes, over all of its axes.

    Relative to its own values where it is positive, and to their root mean square where not.
    """

    median: float | None  # standard error; None where the data determine nothing
    largest: float | None  # where they determine it
    undetermined: float  # share of its axes where they do not
    where: str = ""  # that is

    def __str__(self) -> str:
        if self.median is None or self.largest is None:
            return "not determined anywhere"
        said = f"standard error {100 * self.median:.2g} % (median; {100 * self.largest:.2g} % at most)"
        if not self.undetermined:
            return said
        place = f": {self.where}" if self.where else ""
        return f"{said}; not determined on {100 * self.undetermined:.0f} % of its axes{place}"


@dataclass(frozen=True, eq=False)
class Fit:
    """One set of data after a run."""

    count: int
    misfit: float  # root mean square, in units of the values; with noises that differ, weighted by them
    noise: float  # standard deviation of one value, given or estimated
    given: bool  # whether the noise was given
    freedom: float  # values less what the fit adapted to them
    band: Float[np.ndarray, " n"] | None = field(default=None, repr=False)  # standard deviations of the prediction

    @property
    def chi_square(self) -> float:
        return self.count * (self.misfit / self.noise) ** 2 if self.noise > 0 else math.nan

    def __str__(self) -> str:
        if not self.given:
            return f"{self.count} values, noise estimated as {self.noise:.2g} ({self.freedom:.1f} degrees of freedom)"
        ratio = self.misfit / self.noise
        return (
            f"{self.count} values, misfit {ratio:.2f} of their noise "
            f"(chi-square {self.chi_square:.4g} for {self.freedom:.1f} degrees of freedom)"
        )


@dataclass(frozen=True, eq=False)
class Inference:
    """What a run found out beside the unknowns."""

    coefficients: dict[str, Estimated]
    covariance: Float[np.ndarray, "c c"] | None  # of the coefficients; None where it is not known
    fits: dict[str, Fit]
    distance: float | None = None  # of the coefficients from the exact minimum, in standard errors
    held: float | None = None  # their largest standard error over the one that equations and data together would give
    functions: dict[str, Account] = field(default_factory=dict)  # unknowns of fewer axes
    # Their parameters, and then the coefficients, differ by spread @ z from the most likely ones, z standard normal.
    spread: Float[np.ndarray, "last last"] | None = field(default=None, repr=False)
    freedom: float = math.inf  # degrees of freedom of the noise; infinite where it was given
