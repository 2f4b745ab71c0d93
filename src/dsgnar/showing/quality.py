"""The error of a solution; where no reference is known, its estimate; where that is not known either, the residual.

Magnitudes are taken at the points of the reference, or at random points of the domain.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from dsgnar.calculus.streams import stream
from dsgnar.problem.domain import Interior
from dsgnar.problem.reference import Reference
from dsgnar.problem.sampling import sample
from dsgnar.showing.planes import Plane, grid_axes, values_on
from dsgnar.solving.solution import Solution

SAMPLE = 8192  # points at which residuals are evaluated
BINS = 40

Curve = tuple[np.ndarray, np.ndarray]  # coordinates and values


@dataclass(frozen=True, eq=False)
class Quality:
    """How far a solution is off, and where: by its error, its estimated error, or the residual of its equations."""

    solution: Solution
    reference: Reference | None  # without one it becomes the corrected solution, where the error could be estimated
    names: tuple[str, ...] = field(init=False)
    estimated: bool = field(init=False)

    def __post_init__(self):
        estimated = self.reference is None and self.solution.error_estimate is not None
        if estimated:
            object.__setattr__(self, "reference", _corrected(self.solution))
        names = tuple(self.reference.values) if self.reference is not None else ("",)
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "estimated", estimated)

    @property
    def word(self) -> str:
        """What the magnitudes are."""
        return "residual" if self.reference is None else "estimated error" if self.estimated else "absolute error"

    @property
    def relative(self) -> str:
        """What root mean squares are."""
        return "residual" if self.reference is None else "estimated error" if self.estimated else "relative error"

    # --- at points ----------------------------------------------------------------------------------------------------

    @cached_property
    def points(self) -> np.ndarray:
        """Points all over the domain (n, d)."""
        if self.reference is not None:
            return self.reference.points
        return _sample(self.solution)

    @cached_property
    def everywhere(self) -> dict[str, np.ndarray]:
        """Magnitudes at `points`."""
        if self.reference is None:
            return {"": residual(self.solution, self.points)}
        return {name: np.abs(d) for name, d in self.reference.differences(self._values).items()}

    @cached_property
    def _values(self) -> dict[str, np.ndarray]:
        values = self.solution.counted(self.points).astype(np.float64)
        return {name: values[:, k] for k, name in enumerate(self.solution.unknowns)}

    @cached_property
    def scale(self) -> dict[str, np.ndarray]:
        """What errors at `points` are measured against."""
        if self.reference is None:
            return {"": np.ones(len(self.points))}
        return {name: self.reference.centred(name) for name in self.reference.values}

    # --- on planes ----------------------------------------------------------------------------------------------------

    def on(self, plane: Plane) -> dict[str, np.ndarray] | None:
        """Magnitudes on a plane; None where the reference does not reach it."""
        if self.reference is None:
            return {"": plane.blank(residual(self.solution, plane.points).reshape(plane.shape))}
        domain, grid = self.solution.problem.domain, grid_axes(self.reference, self.solution.problem.domain)
        if grid is None:
            return self._from_function(self.reference, plane)
        index = []
        for axis in domain.axes:
            index.append(slice(None) if axis in plane.grid else int(np.argmin(np.abs(grid[axis] - plane.fixed[axis]))))
        out = {}
        for name, error in self.everywhere.items():
            cut = error.reshape(self.reference.shape)[tuple(index)]
            out[name] = cut if domain.index(plane.vertical) < domain.index(plane.horizontal) else cut.T
        return out

    def _from_function(self, reference: Reference, plane: Plane) -> dict[str, np.ndarray] | None:
        if reference.function is None:
            return None
        exact = reference.function(**dict(zip(plane.domain.axes, plane.points.T, strict=True)))
        out = {}
        for name, values in values_on(self.solution, plane).items():
            if name in exact:
                free = np.mean(self._values[name] - reference.values[name]) if name in reference.gauge else 0.0
                difference = values.ravel() - np.asarray(exact[name], np.float64) - free
                out[name] = plane.blank(np.abs(difference).reshape(plane.shape))
        return out

    # --- in sum -------------------------------------------------------------------------------------------------------

    def over_time(self) -> dict[str, Curve]:
        """Root mean squares at each time; those of errors are relative to the reference at that time."""
        domain = self.solution.problem.domain
        assert domain.time is not None
        t, out = self.points[:, domain.index(domain.time)], {}
        for name, error in self.everywhere.items():
            centre, above = mean_squares(t, error)
            _, below = mean_squares(t, self.scale[name])
            unknown = np.full_like(above, np.nan)  # where the reference is zero
            out[name] = centre, np.sqrt(np.divide(above, below, out=unknown, where=below > 0))
        return out

    def over(self, axis: str, name: str) -> Curve:
        """Root mean squares along an axis; those of errors are relative to the reference on the whole domain."""
        k = self.solution.problem.domain.index(axis)
        centre, above = mean_squares(self.points[:, k], self.everywhere[name])
        return centre, np.sqrt(above / np.mean(self.scale[name] ** 2))


def _corrected(solution: Solution) -> Reference:
    """The solution with its estimated error added, as what it is compared with."""
    domain, better = solution.problem.domain, solution.corrected()
    points = _sample(solution)

    def function(**coordinates: np.ndarray) -> dict[str, np.ndarray]:
        values = better.at(np.stack(list(coordinates.values()), axis=1))
        return dict(zip(solution.unknowns, values.T, strict=True))

    values = function(**dict(zip(domain.axes, points.T, strict=True)))
    return Reference(points, values, float("nan"), "the solution with its estimated error added", function=function)


def _sample(solution: Solution) -> np.ndarray:
    """Points of the domain, as far in time as a run got."""
    domain, reached = solution.problem.domain, solution.reached
    if reached is not None and domain.time is not None:
        domain = domain.with_interval(domain.time, (domain.interval(domain.time)[0], reached))
    return sample(Interior(), domain, SAMPLE, stream(0, "figure"))


def residual(solution: Solution, points: np.ndarray) -> np.ndarray:
    """The magnitude of all equations' residuals together at points (n, d)."""
    conditions = solution.problem.conditions
    names = [name for name, condition in conditions.items() if isinstance(condition.part, Interior)]
    at = dict(zip(solution.problem.domain.axes, points.T, strict=True))
    squares = [solution.residual(name)(extrapolate=True, **at).astype(np.float64) ** 2 for name in names]
    return np.sqrt(np.sum(squares, axis=0)) if squares else np.zeros(len(points))


def mean_squares(coordinate: np.ndarray, values: np.ndarray) -> Curve:
    """Mean squares by coordinate: at each value of a grid, or in bins of a random sample."""
    seen, which = np.unique(coordinate, return_inverse=True)
    if seen.size > coordinate.size / 4:
        edges = np.linspace(coordinate.min(), coordinate.max(), BINS + 1)
        which = np.clip(np.searchsorted(edges, coordinate, side="right") - 1, 0, BINS - 1)
        seen = (edges[1:] + edges[:-1]) / 2
    counts = np.bincount(which, minlength=seen.size)
    kept = counts > 0
    sums = np.bincount(which, weights=values**2, minlength=seen.size)
    return seen[kept], sums[kept] / counts[kept]


def log_bins(error: np.ndarray) -> np.ndarray | None:
    """Edges of a histogram with logarithmic bins; None where nothing has a logarithm."""
    positive = error[error > 0]
    if not positive.size:
        return None
    return np.geomspace(np.quantile(positive, 1e-3), positive.max() * 1.01, BINS)
