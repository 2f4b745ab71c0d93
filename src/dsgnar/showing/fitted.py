"""Data beside what a solution predicts for them, for figures and report."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from dsgnar.problem.domain import Points
from dsgnar.solving.coefficients import Fit
from dsgnar.solving.solution import Solution

OUT = 1.96  # standard deviations: 95 % of a normal distribution lie within


@dataclass(frozen=True, eq=False)
class Fitted:
    """One set of data. All deviations are standard deviations in units of the values."""

    name: str
    points: Float[np.ndarray, "n d"]
    values: Float[np.ndarray, " n"]
    predicted: Float[np.ndarray, " n"]
    noise: Float[np.ndarray, " n"]  # of the values
    band: Float[np.ndarray, " n"]  # of the prediction; zero where it is not known
    fit: Fit

    @property
    def normalised(self) -> Float[np.ndarray, " n"]:
        """Residuals over their noise; those of a good fit are like standard normal numbers."""
        return (self.values - self.predicted) / self.noise


def fitted(solution: Solution) -> list[Fitted]:
    """The data of a solution; none for problems without."""
    found = None if solution.outcome is None else solution.outcome.inference
    out = []
    for name, fit in ({} if found is None else found.fits).items():
        condition = solution.problem.conditions[name]
        if condition.measured is None or not isinstance(condition.part, Points):
            continue
        points, measured = condition.part.table(solution.problem.domain), condition.measured
        at = dict(zip(solution.problem.domain.axes, points.T, strict=True))
        predicted = solution.residual(name)(**at).astype(np.float64)
        noise = np.full(len(points), fit.noise) if measured.noise is None else measured.noise
        band = np.zeros(len(points)) if fit.band is None else fit.band
        out.append(Fitted(name, points, measured.values, predicted, np.maximum(noise, 1e-300), band, fit))
    return out
