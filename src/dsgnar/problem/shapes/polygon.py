"""Polygons in the plane, with holes.

Edges run anticlockwise around the polygon and clockwise around its holes, so that the inside lies to their left and the
outward normal of an edge (a, b) is (b - a) turned clockwise by a right angle. The signed distance is that to the nearest
edge, positive where a ray to the right crosses an even number of edges.

Hard values need a function that vanishes on the edges alone. For a convex polygon that is the product of the distances to
the lines of its edges. Otherwise it is the product of Rvachev's functions of the edges (Sukumar and Srivastava 2022): with
f the distance to the line of an edge of length L and centre m, and t = ((L/2)^2 - |x - m|^2) / L,

    phi = (f^2 + ((t^2 + f^4)^(1/2) - t)^2 / 4)^(1/2).
"""

import importlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dsgnar.problem.shapes.tree import Leaf, along_edges, named


def need(module: str, what: str) -> Any:
    """A package that only some shapes use."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise ImportError(f"{what} needs {module}; install it with: pip install 'dsgnar[shapes]'") from None


@dataclass(frozen=True, eq=False, init=False)
class Polygon(Leaf):
    """A polygon: `Polygon([(0, 0), (2, 0), (1, 1)])`; `holes` are lists of corners too. A shapely polygon will do as well.

    The axes are x and y, unless others are named: `axes=("r", "z")`.
    """

    geometry: Any

    def __init__(self, corners: Any, *, holes: Sequence[Any] = (), axes: Sequence[str] = ("x", "y"), name: str = "polygon"):
        shapely = need("shapely", "Polygon")
        names = tuple(axes)
        if len(names) != 2 or len(set(names)) != 2 or not all(isinstance(axis, str) for axis in names):
            raise ValueError(f"Polygon: axes are two different names such as ('x', 'y'), not {axes!r}")
        if isinstance(corners, shapely.Polygon):
            geometry = corners
        else:
            rings = [_ring(corners, "its corners"), *(_ring(hole, f"hole {k}") for k, hole in enumerate(holes, 1))]
            geometry = shapely.Polygon(rings[0], rings[1:])
        if not geometry.is_valid:
            why = shapely.is_valid_reason(geometry).replace("[", " at (").replace("]", ")")
            raise ValueError(f"Polygon {name!r}: it is not simple ({why.lower()}); give its corners in order around it")
        if not geometry.area > 0:
            raise ValueError(f"Polygon {name!r}: it has no inside: its area is {geometry.area:g}")
        geometry = shapely.geometry.polygon.orient(geometry)
        shapely.prepare(geometry)
        low_x, low_y, high_x, high_y = map(float, geometry.bounds)
        super().__init__(names, ((low_x, high_x), (low_y, high_y)), named(name))
        object.__setattr__(self, "geometry", geometry)

    @cached_property
    def edges(self) -> tuple[np.ndarray, np.ndarray]:
        """Where the edges begin and end (edges, 2)."""
        rings = [np.asarray(ring.coords)[:, :2] for ring in (self.geometry.exterior, *self.geometry.interiors)]
        begin, end = np.concatenate([r[:-1] for r in rings]), np.concatenate([r[1:] for r in rings])
        real = np.linalg.norm(end - begin, axis=1) > 0
        return begin[real], end[real]

    @cached_property
    def normals(self) -> np.ndarray:
        along = self.edges[1] - self.edges[0]
        turned = np.stack([along[:, 1], -along[:, 0]], axis=1)
        return turned / np.linalg.norm(turned, axis=1, keepdims=True)

    @cached_property
    def lengths(self) -> np.ndarray:
        return np.linalg.norm(self.edges[1] - self.edges[0], axis=1)

    @property
    def volume(self) -> float:
        return float(self.geometry.area)

    @property
    def surface(self) -> float:
        return float(self.lengths.sum())

    @cached_property
    def convex(self) -> bool:
        return not self.geometry.interiors and math.isclose(self.geometry.convex_hull.area, self.volume, rel_tol=1e-12)

    def _squared(self, x: Any, xp: Any) -> Any:
        """Squared distances to all edges (..., edges)."""
        begin, end = (xp.asarray(e, x.dtype) for e in self.edges)
        along, away = end - begin, x[..., None, :] - begin
        share = xp.clip(xp.sum(away * along, axis=-1) / xp.sum(along**2, axis=-1), 0, 1)
        return xp.sum((away - share[..., None] * along) ** 2, axis=-1)

    def depth(self, x: Any, xp: Any) -> Any:
        begin, end = (xp.asarray(e, x.dtype) for e in self.edges)
        across, up = x[..., None, 0], x[..., None, 1]
        spans = (begin[:, 1] > up) != (end[:, 1] > up)
        rise = xp.where(begin[:, 1] == end[:, 1], 1.0, end[:, 1] - begin[:, 1])
        crossing = begin[:, 0] + (up - begin[:, 1]) / rise * (end[:, 0] - begin[:, 0])
        odd = xp.sum(spans & (across < crossing), axis=-1) % 2 == 1
        distance = xp.sqrt(xp.min(self._squared(x, xp), axis=-1))
        return xp.where(odd, -distance, distance)

    def inside(self, points: np.ndarray) -> np.ndarray:
        shapely = need("shapely", "Polygon")
        return shapely.contains_xy(self.geometry, points[..., 0], points[..., 1])

    def normal(self, x: Any, xp: Any) -> Any:
        return xp.asarray(self.normals, x.dtype)[xp.argmin(self._squared(x, xp), axis=-1)]

    def on_surface(self, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        edge = rng.choice(len(self.lengths), count, p=self.lengths / self.lengths.sum())
        begin, end = self.edges
        return begin[edge] + rng.random((count, 1)) * (end - begin)[edge], self.normals[edge]

    def along(self, share: np.ndarray) -> np.ndarray:
        return along_edges(*self.edges, share)

    def vanishing(self, x: Any, xp: Any, sign: int) -> Any:
        factors = []
        for begin, normal, length in zip(self.edges[0].tolist(), self.normals.tolist(), self.lengths, strict=True):
            scale = 1 / self.size
            f = ((begin[0] - x[..., 0]) * normal[0] + (begin[1] - x[..., 1]) * normal[1]) * scale
            if sign < 0 or not self.convex:
                f = _segment(x, xp, f, begin, normal, float(length), scale)
            factors.append(f)
        return math.prod(factors[1:], start=factors[0])


def _segment(x: Any, xp: Any, f: Any, begin: Sequence[float], normal: Sequence[float], length: float, scale: float) -> Any:
    """Rvachev's function of an edge: its distance to first order, zero there alone."""
    middle = begin[0] - normal[1] * length / 2, begin[1] + normal[0] * length / 2
    away = (x[..., 0] - middle[0]) ** 2 + (x[..., 1] - middle[1]) ** 2
    t = ((length / 2) ** 2 - away) * (scale / length)
    return xp.sqrt(f**2 + (xp.sqrt(t**2 + f**4) - t) ** 2 * 0.25)


def _ring(corners: Any, what: str) -> np.ndarray:
    try:
        ring = np.asarray(corners, np.float64)
    except (TypeError, ValueError):
        ring = np.empty(0)
    if ring.ndim != 2 or ring.shape[-1] != 2 or len(ring) < 3 or not np.isfinite(ring).all():
        raise ValueError(f"Polygon: {what} must be at least three points (x, y), as in [(0, 0), (1, 0), (0, 1)]")
    return ring
