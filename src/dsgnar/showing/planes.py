"""Which planes of a domain are drawn, and what is drawn on them.

axes of the domain       planes
space and time (1 + 1)   the whole domain, time to the right
two of space             the whole domain
space and time (2 + 1)   space at the beginning, in the middle and at the end
three of space           the three planes through the middle
parameters               without time, or with one axis of space, at the beginning, in the middle and at the end
more                     three pairs of axes, all other coordinates in the middle
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise

import numpy as np

from dsgnar.problem.domain import Box
from dsgnar.problem.reference import Reference
from dsgnar.solving.solution import Solution

RESOLUTION = 201  # points on each axis of a plane where no reference grid gives them


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
        return self.horizontal in self.domain.space and self.vertical in self.domain.space

    @cached_property
    def points(self) -> np.ndarray:
        """The points (n, d), row by row."""
        v, h = np.meshgrid(self.grid[self.vertical], self.grid[self.horizontal], indexing="ij")
        columns = {self.horizontal: h, self.vertical: v} | {a: np.full(h.shape, x) for a, x in self.fixed.items()}
        return np.stack([columns[axis].ravel() for axis in self.domain.axes], axis=1)

    @cached_property
    def outside(self) -> np.ndarray | None:
        """Where the plane lies outside of a shape, which stays white; None for a box."""
        return None if not self.domain.shaped else ~self.domain.contains(self.points).reshape(self.shape)

    def blank(self, values: np.ndarray) -> np.ndarray:
        """Values on the plane with nothing outside of the shape."""
        return values if self.outside is None else np.where(self.outside, np.nan, values)

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
    if len(space) < 2:
        *others, last = [axis for axis in (*domain.parameters, time, *space) if axis is not None]
        across = time if time is not None and last != time else others[-1]
        cuts = [axis for axis in domain.parameters if axis != across][:1]
        return [((across, last), {axis: share for axis in cuts}) for share in ((0.0, 0.5, 1.0) if cuts else (0.5,))]
    if time is not None or domain.parameters:
        return [((space[0], space[1]), {time or domain.parameters[0]: share}) for share in (0.0, 0.5, 1.0)]
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
        count = 2 * RESOLUTION - 1 if domain.shaped else RESOLUTION  # round edges look round
        return Plane(domain, *pair, fixed, {axis: np.linspace(*domain.interval(axis), count) for axis in pair})
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
class Quantity:
    """An unknown, or the magnitude of a vector of unknowns."""

    name: str
    members: tuple[str, ...]

    def of(self, values: Mapping[str, np.ndarray]) -> np.ndarray:
        if len(self.members) == 1:
            return values[self.members[0]]
        return np.sqrt(sum(values[m] ** 2 for m in self.members))


def quantities(solution: Solution, vectors: Mapping[str, tuple[str, ...]]) -> list[Quantity]:
    """Vectors in two dimensions of space, then the unknowns that belong to none."""
    flat = len(solution.problem.domain.space) == 2
    flows = {name: members for name, members in vectors.items() if flat and len(members) == 2}
    taken = {m for members in flows.values() for m in members}
    out = [Quantity(name, members) for name, members in flows.items()]
    return out + [Quantity(name, (name,)) for name in solution.unknowns if name not in taken]


def values_on(solution: Solution, plane: Plane) -> dict[str, np.ndarray]:
    """Every unknown on a plane."""
    values = solution.at(plane.points).astype(np.float64)
    return {name: plane.blank(values[:, k].reshape(plane.shape)) for k, name in enumerate(solution.unknowns)}
