"""Points of a region, and of a boundary of which `where` picks a part: drawn and kept where they belong.

Inside, a way of placing points (`sampling.py`) fills the box around a region, and the points in the shape are kept; so
"uniform" points are uniform in the region, and "clustered" ones have the density of the box. On the boundary of a region
points are always independent and uniform in space, and placed in the given way along time and parameters only.
"""

import math
from collections.abc import Callable

import numpy as np

from dsgnar.problem.domain import Boundary, Box, Part
from dsgnar.problem.region import TRIES, Region, selected
from dsgnar.problem.shapes.tree import Leaf


def placed(
    part: Part, domain: Box, count: int, unit: Callable, shrunk: dict, spread: Callable, rng: np.random.Generator,
    method: str,
) -> np.ndarray:  # fmt: skip
    """`count` points of a part; `spread` places points in a box, `shrunk` are narrower intervals of some axes."""
    if isinstance(domain, Region) and isinstance(part, Boundary):
        return _on_boundary(part, domain, count, unit, shrunk, rng)
    if isinstance(domain, Region):
        return _inside(part, domain, count, unit, shrunk, spread, rng, method)
    assert isinstance(part, Boundary)
    picks = selected(part, domain)
    return _kept(lambda n: spread(part, domain, n, unit, shrunk), picks, count, part.describe())


def _on_boundary(
    part: Boundary, region: Region, count: int, unit: Callable, shrunk: dict, rng: np.random.Generator
) -> np.ndarray:
    space, picks = len(region.shape.axes), selected(part, region)
    further = list(range(space, region.dimension))

    def keep(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        wide = np.empty((len(points), region.dimension))
        wide[:, :space] = points
        if further and len(points):
            lower, upper = np.array([shrunk.get(i, region.bounds[i]) for i in further]).T
            wide[:, further] = lower + (upper - lower) * rng.permutation(unit(len(points), further))
        wanted = np.ones(len(points), bool)
        for i, (low, high) in shrunk.items():
            wanted &= (wide[:, i] >= low) & (wide[:, i] <= high)
        wanted[wanted] = picks(wide[wanted])
        return wide, wanted

    return region.on_boundary(part, count, rng, keep) if count else np.empty((0, region.dimension))


def _inside(
    part: Part, region: Region, count: int, unit: Callable, shrunk: dict, spread: Callable, rng: np.random.Generator,
    method: str,
) -> np.ndarray:  # fmt: skip
    space, shape = len(region.shape.axes), region.shape
    if method == "even":
        return _evenly(part, region, count, unit, shrunk, spread)
    if method == "uniform" and not shrunk and isinstance(shape, Leaf):  # in many dimensions most of the box is corners
        points = spread(part, region, count, unit, shrunk)
        points[:, :space] = shape.in_volume(count, rng)
        return points
    belongs = lambda points: shape.inside(points[:, :space])
    return _kept(lambda n: spread(part, region, n, unit, shrunk), belongs, count, part.describe())


def _kept(draw: Callable, belongs: Callable, count: int, what: str) -> np.ndarray:
    """Draw points until `count` of them belong."""
    found = draw(count)
    found = found[belongs(found)]
    tried = count
    while len(found) < count:
        share = max(len(found), 0.5) / tried
        points = draw(min(math.ceil(1.1 * (count - len(found)) / share) + 16, 2**17))
        tried += len(points)
        found = np.concatenate([found, points[belongs(points)]])
        if not len(found) and tried >= TRIES:
            raise ValueError(f"no point of {what} was found among {tried:,}: is there such a part?")
    return found[:count]


def _evenly(part: Part, region: Region, count: int, unit: Callable, shrunk: dict, spread: Callable) -> np.ndarray:
    """A lattice of the box, as fine as it takes to have enough points in the shape, thinned out to `count`."""
    space, dimension = len(region.shape.axes), region.dimension - sum(map(len, part.fixed(region)))
    side = 2
    while side**dimension <= TRIES:
        points = spread(part, region, side**dimension, unit, shrunk)
        points = points[region.shape.contains(points[:, :space])]
        if len(points) >= count:
            return points[np.linspace(0, len(points) - 1, count).round().astype(int)]
        side = math.ceil(1.2 * side)
    raise ValueError(f"no lattice of {count:,} points fits into the shape; use sampling='uniform'")
