"""Where a solution is looked at: planes through its domain, and the error on them.

axes of the domain       planes
space and time (1 + 1)   the whole domain, time to the right
two of space             the whole domain
space and time (2 + 1)   space at the beginning, in the middle and at the end
three of space           the three planes through the middle
more                     three pairs of axes, all other coordinates in the middle
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, pairwise

import numpy as np

from dsgnar.domain import Box, Interior
from dsgnar.reference import Reference
from dsgnar.sampling import generator, sample
from dsgnar.solution import Solution

RESOLUTION = 201  # points on each axis of a plane where no reference grid gives them
SAMPLE = 8192  # points at which residuals are looked at where there is no reference


@dataclass(frozen=True, eq=False)
class Plane:
    """A grid over two axes of a domain, the other coordinates fixed."""

    domain: Box
    horizontal: str
    vertical: str
    fixed: Mapping[str, float]
    grid: Mapping[str, np.ndarray]  # coordinates on both axes

    @property
    def shape(self) -> tuple[int, int]:
        return self.grid[self.vertical].size, self.grid[self.horizontal].size

    @property
    def spatial(self) -> bool:
        return self.domain.time not in (self.horizontal, self.vertical)

    @cached_property
    def points(self) -> np.ndarray:
        """The points (n, d), row by row."""
        v, h = np.meshgrid(self.grid[self.vertical], self.grid[self.horizontal], indexing="ij")
        columns = {self.horizontal: h, self.vertical: v} | {a: np.full(h.shape, x) for a, x in self.fixed.items()}
        return np.stack([columns[axis].ravel() for axis in self.domain.axes], axis=1)

    def evenly(self) -> "Plane":
        """The same plane with evenly spaced coordinates."""
        grid = {axis: np.linspace(a[0], a[-1], RESOLUTION) for axis, a in self.grid.items()}
        return Plane(self.domain, self.horizontal, self.vertical, self.fixed, grid)


def planes(domain: Box, reference: Reference | None, most: int = 3) -> list[Plane]:
    """The planes of a domain with at least two axes, on the reference's grid where it has one."""
    grid = grid_axes(reference, domain)
    out = [_plane(domain, grid, pair, cuts) for pair, cuts in _choices(domain)]
    return out[-most:] if domain.time else out[:most]


def _choices(domain: Box) -> list[tuple[tuple[str, str], dict[str, float]]]:
    """Pairs of axes (horizontal, vertical), and where other axes are cut: a share of their interval, by default 1/2."""
    space, time = domain.space, domain.time
    if len(space) == 1:
        assert time is not None
        return [((time, space[0]), {})]
    if time is not None:
        return [((space[0], space[1]), {time: share}) for share in (0.0, 0.5, 1.0)]
    disjoint = list(pairwise(space))[::2] if len(space) > 3 else []
    return [(pair, {}) for pair in dict.fromkeys([*disjoint, *combinations(space, 2)])][:3]


def _plane(domain: Box, grid: dict[str, np.ndarray] | None, pair: tuple[str, str], cuts: dict[str, float]) -> Plane:
    fixed = {}
    for axis in domain.axes:
        if axis not in pair:
            lower, upper = domain.interval(axis)
            wanted = lower + cuts.get(axis, 0.5) * (upper - lower)
            fixed[axis] = wanted if grid is None else float(grid[axis][np.argmin(np.abs(grid[axis] - wanted))])
    if grid is None:
        return Plane(domain, *pair, fixed, {axis: np.linspace(*domain.interval(axis), RESOLUTION) for axis in pair})
    return Plane(domain, *pair, fixed, {axis: grid[axis] for axis in pair})


def grid_axes(reference: Reference | None, domain: Box) -> dict[str, np.ndarray] | None:
    """The coordinates of a reference that is given on a grid."""
    if reference is None or reference.shape is None:
        return None
    points = reference.points.reshape(*reference.shape, domain.dimension)
    return {
        axis: points[tuple(slice(None) if j == i else 0 for j in range(domain.dimension))][:, i]
        for i, axis in enumerate(domain.axes)
    }


@dataclass(frozen=True, eq=False)
class Quality:
    """How wrong a solution is at which points: its error where there is a reference, else the residual of its equations."""

    solution: Solution
    reference: Reference | None
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self):
        names = tuple(self.reference.values) if self.reference is not None else ("",)
        object.__setattr__(self, "names", names)

    @property
    def points(self) -> np.ndarray:
        """Points all over the domain."""
        if self.reference is not None:
            return self.reference.points
        return sample(Interior(), self.solution.problem.domain, SAMPLE, generator(0, "figure"))

    @cached_property
    def everywhere(self) -> dict[str, np.ndarray]:
        """Magnitudes at `points`."""
        if self.reference is None:
            return {"": residual(self.solution, self.points)}
        return {name: np.abs(d) for name, d in self.reference.differences(self._values).items()}

    @cached_property
    def _values(self) -> dict[str, np.ndarray]:
        assert self.reference is not None
        values = self.solution.at(self.reference.points)
        return {name: values[:, k].astype(np.float64) for k, name in enumerate(self.solution.unknowns)}

    @cached_property
    def scale(self) -> dict[str, np.ndarray]:
        """What errors at `points` are measured against."""
        if self.reference is None:
            return {"": np.ones(len(self.points))}
        return {name: self.reference.centred(name) for name in self.reference.values}

    def on(self, plane: Plane) -> dict[str, np.ndarray] | None:
        """Magnitudes on a plane; None where the reference does not reach it."""
        if self.reference is None:
            return {"": residual(self.solution, plane.points).reshape(plane.shape)}
        domain, grid = self.solution.problem.domain, grid_axes(self.reference, self.solution.problem.domain)
        if grid is None:
            return self._from_function(plane)
        index = []
        for axis in domain.axes:
            index.append(slice(None) if axis in plane.grid else int(np.argmin(np.abs(grid[axis] - plane.fixed[axis]))))
        out = {}
        for name, error in self.everywhere.items():
            cut = error.reshape(self.reference.shape)[tuple(index)]
            out[name] = cut if domain.index(plane.vertical) < domain.index(plane.horizontal) else cut.T
        return out

    def _from_function(self, plane: Plane) -> dict[str, np.ndarray] | None:
        assert self.reference is not None
        if self.reference.function is None:
            return None
        values = self.solution.at(plane.points)
        exact = self.reference.function(**dict(zip(plane.domain.axes, plane.points.T, strict=True)))
        out = {}
        for k, name in enumerate(self.solution.unknowns):
            if name in exact:
                out[name] = np.abs(values[:, k] - np.asarray(exact[name], np.float64)).reshape(plane.shape)
        return out


def residual(solution: Solution, points: np.ndarray) -> np.ndarray:
    """The magnitude of all equations' residuals together at points (n, d)."""
    conditions = solution.problem.conditions
    names = [name for name, condition in conditions.items() if isinstance(condition.part, Interior)]
    coordinates = dict(zip(solution.problem.domain.axes, points.T, strict=True))
    squares = [solution.residual(name)(**coordinates).astype(np.float64) ** 2 for name in names]
    return np.sqrt(np.sum(squares, axis=0)) if squares else np.zeros(len(points))
