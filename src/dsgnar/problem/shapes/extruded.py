"""Extrusions: a shape times an interval [a, b] of one more axis.

Combinations are extruded primitive by primitive. A primitive with volume V and surface S becomes one with volume V (b - a),
sides of measure S (b - a) and two caps of measure V. Signed distances combine as those of a box: with p the depth of the
base and q = |z - (a + b)/2| - (b - a)/2, phi = |max((p, q), 0)| + min(max(p, q), 0).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dsgnar.problem.shapes.cuboid import Cuboid
from dsgnar.problem.shapes.tree import Combined, Leaf, Shape, Solid, number


def extrude(solid: Solid, /, **intervals: tuple[float, float]) -> Shape:
    """A shape times an interval of a further axis of space: `extrude(disc, z=(0, 1))` is a cylinder."""
    if not isinstance(solid, Solid):
        raise TypeError(f"extrude(...) takes a shape first, as in extrude(disc, z=(0, 1)), not {type(solid).__name__}")
    if len(intervals) != 1:
        raise ValueError("extrude(...) takes one axis and its interval, as in extrude(disc, z=(0, 1))")
    shape, ((axis, given),) = solid.as_shape(), intervals.items()
    if axis in shape.axes:
        raise ValueError(f"extrude({axis}=...): the shape has an axis {axis!r} already; use another name")
    try:
        lower, upper = given
    except (TypeError, ValueError):
        raise ValueError(f"extrude({axis}={given!r}): expected an interval (lower, upper)") from None
    interval = number(lower, f"extrude: the lower end of {axis}"), number(upper, f"extrude: the upper end of {axis}")
    if interval[0] >= interval[1]:
        raise ValueError(f"extrude({axis}={given!r}): the lower end must be below the upper one")
    return _extruded(shape, axis, interval)


def _extruded(shape: Shape, axis: str, interval: tuple[float, float]) -> Shape:
    axes, bounds = (*shape.axes, axis), (*shape.bounds, interval)
    if isinstance(shape, Combined):
        left, right = (_extruded(part, axis, interval) for part in (shape.left, shape.right))
        return Combined(shape.kind, left, right, axes, bounds)
    assert isinstance(shape, Leaf)
    if isinstance(shape, Cuboid):
        return Cuboid(axes, bounds, shape.name)
    return Extruded(axes, bounds, shape.name, shape, interval)


@dataclass(frozen=True, eq=False)
class Extruded(Leaf):
    """A primitive times an interval; the further axis comes last."""

    base: Leaf
    interval: tuple[float, float]

    @property
    def length(self) -> float:
        return self.interval[1] - self.interval[0]

    @property
    def volume(self) -> float:
        return self.base.volume * self.length

    @property
    def surface(self) -> float:
        return self.base.surface * self.length + 2 * self.base.volume

    @property
    def flat(self) -> tuple[str, ...]:
        return (*self.base.flat, self.axes[-1])

    def _gaps(self, x: Any, xp: Any) -> tuple[Any, Any]:
        a, b = self.interval
        return self.base.depth(x[..., :-1], xp), xp.abs(x[..., -1] - (a + b) / 2) - (b - a) / 2

    def depth(self, x: Any, xp: Any) -> Any:
        p, q = self._gaps(x, xp)
        outside = xp.sqrt(xp.maximum(p, 0) ** 2 + xp.maximum(q, 0) ** 2)
        return outside + xp.minimum(xp.maximum(p, q), 0)

    def inside(self, points: np.ndarray) -> np.ndarray:
        a, b = self.interval
        return self.base.inside(points[..., :-1]) & (points[..., -1] >= a) & (points[..., -1] <= b)

    def normal(self, x: Any, xp: Any) -> Any:
        p, q = self._gaps(x, xp)
        side = self.base.normal(x[..., :-1], xp)
        side = xp.concatenate([side, xp.zeros_like(side[..., :1])], axis=-1)
        up = xp.where(x[..., -1:] > (self.interval[0] + self.interval[1]) / 2, 1.0, -1.0).astype(x.dtype)
        cap = xp.concatenate([xp.zeros_like(side[..., :-1]), up], axis=-1)
        return xp.where((xp.abs(p) <= xp.abs(q))[..., None], side, cap)

    def on_surface(self, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        sides = rng.binomial(count, self.base.surface * self.length / self.surface)
        around, normals = self.base.on_surface(sides, rng)
        heights = self.interval[0] + self.length * rng.random((sides, 1))
        ends = rng.integers(2, size=(count - sides, 1))
        caps = np.hstack([self.base.in_volume(count - sides, rng), np.array(self.interval)[ends]])
        up = np.hstack([np.zeros((count - sides, len(self.axes) - 1)), 2.0 * ends - 1])
        points = np.concatenate([np.hstack([around, heights]), caps])
        return points, np.concatenate([np.hstack([normals, np.zeros((sides, 1))]), up])

    def in_volume(self, count: int, rng: np.random.Generator) -> np.ndarray:
        heights = self.interval[0] + self.length * rng.random((count, 1))
        return np.hstack([self.base.in_volume(count, rng), heights])

    def vanishing(self, x: Any, xp: Any, sign: int) -> Any:
        if sign < 0:
            return super().vanishing(x, xp, sign)
        a, b = self.interval
        return self.base.vanishing(x[..., :-1], xp, sign) * (x[..., -1] - a) * (b - x[..., -1]) * (4 / (b - a) ** 2)
