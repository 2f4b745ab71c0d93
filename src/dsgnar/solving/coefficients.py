"""Coefficients that were found: values, standard errors, intervals, or that the data do not determine them."""

import math
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float
from scipy import stats


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
        if not 0 < level < 1:
            raise ValueError(f"level must be between 0 and 1, such as 0.95, not {level!r}")
        if self.standard_error is None:
            raise ValueError(f"there is no interval: {self.why}")
        if not self.determined:
            return (0.0 if self.positive else -math.inf), math.inf
        far = float(stats.t.ppf((1 + level) / 2, self.freedom))
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
