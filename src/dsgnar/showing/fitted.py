"""Data beside what a solution predicts for them, and functions with their error bars, for figures and report."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from dsgnar.problem.domain import Points
from dsgnar.problem.inverse import axes_of
from dsgnar.solving.bands import functions
from dsgnar.solving.coefficients import Band, Fit
from dsgnar.solving.solution import Solution

POINTS = {1: 401, 2: 81}  # on every axis of a function, by their number
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


@dataclass(frozen=True, eq=False)
class Drawn:
    """An unknown function of one or two axes with its error bars, on a grid."""

    name: str
    axes: tuple[str, ...]
    grid: tuple[Float[np.ndarray, " n"], ...]
    band: Band

    @property
    def percent(self) -> np.ndarray:
        """Standard errors in per cent of the function, or of its root mean square; nan where it is not determined."""
        size = self.band.found if self.band.positive else np.sqrt(np.mean(self.band.found**2))
        return np.where(self.band.determined, 100 * self.band.standard_error / size, np.nan)


def drawn(solution: Solution) -> list[Drawn]:
    """The functions of a solution that have error bars and one or two axes."""
    found = None if solution.outcome is None else solution.outcome.inference
    out, domain = [], solution.problem.domain
    for name in functions(solution.problem) if found is not None and found.spread is not None else ():
        axes = axes_of(solution.problem, name)
        if len(axes) in POINTS:
            grid = tuple(np.linspace(*domain.interval(axis), POINTS[len(axes)]) for axis in axes)
            mesh = dict(zip(axes, np.meshgrid(*grid, indexing="ij"), strict=True))
            out.append(Drawn(name, axes, grid, solution.band(name, **mesh)))
    return out
