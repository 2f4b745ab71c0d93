"""Solids given by a closed surface of triangles, such as an STL file.

The signed distance is that to the nearest triangle, with the sign of the winding number: the sum of the solid angles under
which a point sees the triangles (van Oosterom and Strackee 1983),

    tan(omega / 2) = a . (b x c) / (|a||b||c| + (a . b)|c| + (b . c)|a| + (c . a)|b|),

is 4 pi inside and 0 outside. Many points are sorted out faster by counting the triangles that a ray crosses; triangles lie
in the cells of a grid across the rays, and the rays run aslant, so that none meets an edge of a surface along the axes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from dsgnar.problem.shapes.polygon import need
from dsgnar.problem.shapes.tree import Leaf, named

CELLS = 64  # on each side of the grid of rays
SLANT = np.array([0.0137193, 0.0219373])  # of the rays against the third axis


@dataclass(frozen=True, eq=False, init=False)
class Surface(Leaf):
    """The inside of a closed surface: `Surface("part.stl")`, or a `trimesh.Trimesh`.

    The axes are x, y and z, unless others are named. Normals in residuals look at every triangle for every point: up to some
    thousands of them that is quick.
    """

    triangles: np.ndarray  # (triangles, 3 corners, 3)

    def __init__(self, source: Any, *, axes: Sequence[str] = ("x", "y", "z"), name: str = "surface"):
        trimesh = need("trimesh", "Surface")
        names = tuple(axes)
        if len(names) != 3 or len(set(names)) != 3:
            raise ValueError(f"Surface: axes are three different names such as ('x', 'y', 'z'), not {axes!r}")
        what = f"Surface {str(source)!r}" if isinstance(source, str | Path) else f"Surface {name!r}"
        if isinstance(source, str | Path):
            if not Path(source).exists():
                raise FileNotFoundError(f"{what}: there is no such file")
            source = trimesh.load_mesh(source)
        if not isinstance(source, trimesh.Trimesh):
            raise TypeError(f"{what}: expected a file of triangles, such as an STL file, or a trimesh.Trimesh")
        mesh = source.copy()
        mesh.merge_vertices()
        if not mesh.is_watertight:
            edges = mesh.edges_unique[np.bincount(mesh.edges_unique_inverse) == 1]
            where = f", one near {mesh.vertices[edges[0]].mean(axis=0).round(6).tolist()}" if len(edges) else ""
            raise ValueError(f"{what}: it is open ({len(edges)} edges belong to one triangle only{where}); close its holes")
        if not mesh.is_winding_consistent:
            raise ValueError(f"{what}: neighbouring triangles look to different sides; make their orientation the same")
        if mesh.volume < 0:
            mesh.invert()
        if not mesh.volume > 1e-12 * mesh.scale**3:
            raise ValueError(f"{what}: it has no inside: its volume is {mesh.volume:g}")
        lower, upper = mesh.bounds.tolist()
        super().__init__(names, tuple(zip(lower, upper, strict=True)), named(name))
        object.__setattr__(self, "triangles", np.array(mesh.triangles, np.float64)[mesh.area_faces > 0])

    @cached_property
    def _crossed(self) -> np.ndarray:
        a, b, c = self.triangles.transpose(1, 0, 2)
        return np.cross(b - a, c - a)

    @cached_property
    def areas(self) -> np.ndarray:
        return np.linalg.norm(self._crossed, axis=1) / 2

    @cached_property
    def normals(self) -> np.ndarray:
        return self._crossed / (2 * self.areas[:, None])

    @property
    def volume(self) -> float:
        return float(np.sum(self.triangles[:, 0] * self._crossed) / 6)

    @property
    def surface(self) -> float:
        return float(self.areas.sum())

    def _squared(self, x: Any, xp: Any) -> Any:
        """Squared distances to all triangles (..., triangles): to the plane above them, else to the nearest edge."""
        corners, normals = xp.asarray(self.triangles, x.dtype), xp.asarray(self.normals, x.dtype)
        above, nearest = True, None
        for k in range(3):
            begin, along = corners[:, k], corners[:, (k + 1) % 3] - corners[:, k]
            away = x[..., None, :] - begin
            above = above & (xp.sum(away * xp.cross(normals, along), axis=-1) >= 0)
            share = xp.clip(xp.sum(away * along, axis=-1) / xp.sum(along**2, axis=-1), 0, 1)
            squared = xp.sum((away - share[..., None] * along) ** 2, axis=-1)
            nearest = squared if nearest is None else xp.minimum(nearest, squared)
        plane = xp.sum((x[..., None, :] - corners[:, 0]) * normals, axis=-1) ** 2
        return xp.where(above, plane, nearest)

    def depth(self, x: Any, xp: Any) -> Any:
        if xp is np and x.ndim == 2 and len(x) * len(self.triangles) > 2**20:  # memory
            return np.concatenate([self.depth(part, xp) for part in np.array_split(x, 2)]) if len(x) > 1 else x[:, 0]
        a, b, c = (xp.asarray(self.triangles[:, k], x.dtype) - x[..., None, :] for k in range(3))
        p, q, r = (xp.sqrt(xp.sum(v**2, axis=-1)) for v in (a, b, c))
        dot = lambda v, w: xp.sum(v * w, axis=-1)
        above, below = dot(a, xp.cross(b, c)), p * q * r + dot(a, b) * r + dot(b, c) * p + dot(c, a) * q
        angle = xp.sum(xp.arctan2(above, below), axis=-1)  # half of the solid angle
        distance = xp.sqrt(xp.min(self._squared(x, xp), axis=-1))
        return xp.where(angle > np.pi, -distance, distance)

    def normal(self, x: Any, xp: Any) -> Any:
        return xp.asarray(self.normals, x.dtype)[xp.argmin(self._squared(x, xp), axis=-1)]

    def on_surface(self, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        which = rng.choice(len(self.areas), count, p=self.areas / self.areas.sum())
        u, v = rng.random((2, count, 1))
        u, v = np.where(u + v > 1, 1 - u, u), np.where(u + v > 1, 1 - v, v)
        a, b, c = self.triangles[which].transpose(1, 0, 2)
        return a + u * (b - a) + v * (c - a), self.normals[which]

    # --- rays ---------------------------------------------------------------------------------------------------------

    def inside(self, points: np.ndarray) -> np.ndarray:
        flat = points[..., :2] - points[..., 2:] * SLANT
        lower, cells, corners, slopes = self._rays
        place = np.floor((flat - lower[0]) / lower[1]).astype(int)
        known = np.all((place >= 0) & (place < CELLS), axis=-1)
        place = np.clip(place, 0, CELLS - 1)
        candidates = cells[place[..., 0] * CELLS + place[..., 1]]  # (n, most), -1 where there are fewer
        away = flat[..., None, :] - corners[candidates, 0, :2]
        u, v = (np.sum(away * slopes[candidates, k], axis=-1) for k in range(2))
        hit = (candidates >= 0) & (u >= 0) & (v >= 0) & (u + v <= 1)
        a, b, c = (corners[candidates, k, 2] for k in range(3))
        higher = a + u * (b - a) + v * (c - a) > points[..., 2, None]
        return known & (np.sum(hit & higher, axis=-1) % 2 == 1)

    @cached_property
    def _rays(self) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
        """Triangles as the rays see them: the grid, which of them each cell holds, corners, and barycentric slopes."""
        corners = self.triangles.copy()
        corners[..., :2] -= corners[..., 2:] * SLANT
        flat = corners[..., :2]
        lower, upper = flat.min(axis=(0, 1)), flat.max(axis=(0, 1))
        width = (upper - lower) * (1 + 1e-9) / CELLS
        first, last = (np.floor((f(flat, axis=1) - lower) / width).astype(int) for f in (np.min, np.max))
        lists: list[list[int]] = [[] for _ in range(CELLS**2)]
        for k, (begin, end) in enumerate(zip(first, np.minimum(last, CELLS - 1), strict=True)):
            for i in range(begin[0], end[0] + 1):
                for j in range(begin[1], end[1] + 1):
                    lists[i * CELLS + j].append(k)
        most = max(map(len, lists))
        cells = np.array([held + [-1] * (most - len(held)) for held in lists])
        e, f = flat[:, 1] - flat[:, 0], flat[:, 2] - flat[:, 0]
        area = e[:, 0] * f[:, 1] - e[:, 1] * f[:, 0]
        safe = np.where(area == 0, np.nan, area)[:, None]  # seen from their edge, they are never crossed
        slopes = np.stack([np.stack([f[:, 1], -f[:, 0]], 1) / safe, np.stack([-e[:, 1], e[:, 0]], 1) / safe], axis=1)
        return (lower, width), cells, corners, slopes
