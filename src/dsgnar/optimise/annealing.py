"""Weights of data against those of equations (inverse problems).

The most likely answer minimises the misfit of the data among the functions that satisfy the equations. With the mean squares
s_m of conditions over their sizes, and weights w_m, the loss adds both up, and its minimum is the most likely answer up to a
bias that falls with the weight of the data. Small weights from the start would be slow: the equations alone lead to some
solution, and from there a narrow curved valley to the right one. So data begin with the weight of other conditions, v = 1,
and lose it with every step, slowly while they are not met, chi^2 / n > MET:

    v  <-  max(least, FALL v)      or      max(least, SLOW v).

The weights of data are v w'_m. `least` is relative to the smallest weight of an equation. Among themselves data have the
weights of maximum likelihood, w'_m = n_m / sigma_m^2 with deviations over sizes, the largest scaled to one; where noise is
not known, s_m stands for sigma_m^2. While v only followed the loss of the equations, they and the noise, which the network
fitted too, kept each other up: Burgers' viscosity stayed two standard errors off.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from dsgnar.optimise.residuals import Residuals
from dsgnar.optimise.weights import Reweighting
from dsgnar.problem.data import Measurements

PerCondition = Float[np.ndarray, " conditions"]
MET = 4.0  # chi^2 / n at which data count as met
FALL, SLOW = 0.75, 0.9  # of the weight of data in a step: where they are met, and where not yet


@dataclass(frozen=True)
class Annealing:
    """Reweighting of the equations among themselves, and of data by the rule above."""

    equations: Reweighting
    measured: tuple[Measurements | None, ...]  # by condition
    sizes: tuple[float, ...]  # of the conditions
    least: float

    @property
    def data(self) -> np.ndarray:
        """Which conditions are data."""
        return np.array([m is not None for m in self.measured])

    def shares(self, mean_squares: PerCondition) -> PerCondition:
        """w'_m, zero for equations."""
        counts = np.array([0 if m is None else m.values.size for m in self.measured])
        out = counts / self.variances(mean_squares)
        return out / out.max()

    def variances(self, mean_squares: PerCondition) -> PerCondition:
        """sigma_m^2 over the squares of sizes; of equations, to which that does not apply, one."""
        out = np.ones(len(self.measured))
        for k, (measured, size) in enumerate(zip(self.measured, self.sizes, strict=True)):
            if measured is not None:
                known = measured.noise is not None
                out[k] = (measured.typical / size) ** 2 if known else max(float(mean_squares[k]), 1e-30)
        return out

    def __call__(self, mean_squares: PerCondition, weights: PerCondition) -> PerCondition:
        data = self.data
        out = weights.copy()
        if not data.all():
            mean = weights[~data].mean()  # of the equations; it stays, so that data fall against them and nothing else
            out[~data] = mean * self.equations(mean_squares[~data], weights[~data] / mean)
        shares = self.shares(mean_squares)
        met = float(shares @ mean_squares) <= MET * float(shares @ self.variances(mean_squares))
        v = max(self.least * out[~data].min(initial=1.0), weights[data].max() * (FALL if met else SLOW))
        out[data] = v * shares[data]
        return out


def weighing(exponent: float, floor: float, least: float, residuals: Residuals) -> Reweighting | Annealing:
    """The rule for the weights of a problem: that of the paper, and of data by the rule above."""
    rule, conditions = Reweighting(exponent, floor), residuals.problem.conditions
    measured = tuple(condition.measured for condition in conditions.values())
    if not any(measured):
        return rule
    return Annealing(rule, measured, tuple(map(residuals.ansatz.size, conditions)), least)
