"""A box as a shape: a product of intervals [a_i, b_i] with centre c and half-widths h.

With q = |x - c| - h the signed distance is |max(q, 0)| + min(max_i q_i, 0). A face has the measure of the product of the
other intervals; hard values inside take prod_i 4 (x_i - a_i) (b_i - x_i) / (b_i - a_i)^2.
"""

import math
from typing import Any

import numpy as np

from dsgnar.problem.shapes.tree import Leaf, along_edges


class Cuboid(Leaf):
    """A box in space."""

    @property
    def widths(self) -> np.ndarray:
        lower, upper = np.array(self.bounds).T
        return upper - lower

    @property
    def volume(self) -> float:
        return float(np.prod(self.widths))

    @property
    def surface(self) -> float:
        return float(2 * np.sum(self.volume / self.widths))

    @property
    def flat(self) -> tuple[str, ...]:
        return self.axes

    def depth(self, x: Any, xp: Any) -> Any:
        lower, upper = (xp.asarray(b, x.dtype) for b in np.array(self.bounds).T)
        q = xp.abs(x - (lower + upper) / 2) - (upper - lower) / 2
        outside = xp.sqrt(xp.sum(xp.maximum(q, 0) ** 2, axis=-1))
        return outside + xp.minimum(xp.max(q, axis=-1), 0)

    def inside(self, points: np.ndarray) -> np.ndarray:
        lower, upper = np.array(self.bounds).T
        return np.all((points >= lower) & (points <= upper), axis=-1)

    def normal(self, x: Any, xp: Any) -> Any:
        lower, upper = (xp.asarray(b, x.dtype) for b in np.array(self.bounds).T)
        gaps = xp.concatenate([xp.abs(x - lower), xp.abs(upper - x)], axis=-1)  # to each face
        d = len(self.axes)
        directions = xp.asarray(np.concatenate([-np.eye(d), np.eye(d)]), x.dtype)
        return directions[xp.argmin(gaps, axis=-1)]

    def on_surface(self, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        lower, upper = np.array(self.bounds).T
        d = len(self.axes)
        areas = np.repeat(self.volume / self.widths, 2)
        face = rng.choice(2 * d, count, p=areas / areas.sum())
        axis, high = face // 2, face % 2
        points = lower + self.widths * rng.random((count, d))
        points[np.arange(count), axis] = np.where(high, upper[axis], lower[axis])
        return points, np.eye(d)[axis] * (2 * high - 1)[:, None]

    def along(self, share: np.ndarray) -> np.ndarray:
        (left, right), (low, high) = self.bounds
        corners = np.array([(left, low), (right, low), (right, high), (left, high)])
        return along_edges(corners, np.roll(corners, -1, axis=0), share)

    def in_volume(self, count: int, rng: np.random.Generator) -> np.ndarray:
        return np.array(self.bounds)[:, 0] + self.widths * rng.random((count, len(self.axes)))

    def vanishing(self, x: Any, xp: Any, sign: int) -> Any:
        if sign < 0:
            return super().vanishing(x, xp, sign)
        factors = [
            4 * (x[..., i] - a) * (b - x[..., i]) * (1 / (b - a) ** 2) for i, (a, b) in enumerate(self.bounds)
        ]
        return math.prod(factors[1:], start=factors[0])

    @property
    def why_soft(self) -> str:
        return "its corners point into the domain, where no smooth function vanishes on just the surface"
