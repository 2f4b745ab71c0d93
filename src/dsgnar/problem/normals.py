"""The outward unit normal of a boundary, in residuals: `n`, and `u.n` for the derivative along it.

    u.n = sum_i n_i du/dx_i        over the axes of space.

It is found from the point alone: the normal of the nearest surface among those that the condition is on. Where an axis or
an unknown is called n, that name keeps its meaning, and the normal is not offered.
"""

from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np

from dsgnar.problem.domain import Boundary, Box, Part, Points
from dsgnar.problem.region import Region

NAME = "n"


class Normal:
    """A unit normal with components by axis, `n.x` or `n["x"]`, or by number, `n[0]`. Computed when first used."""

    __slots__ = ("_axes", "_compute", "_value")

    def __init__(self, axes: tuple[str, ...], compute: Callable[[], jax.Array]):
        self._axes, self._compute, self._value = axes, compute, None

    def __jax_array__(self) -> jax.Array:
        if self._value is None:
            self._value = self._compute()
        return self._value

    def __getitem__(self, which: str | int) -> jax.Array:
        if isinstance(which, str):
            if which not in self._axes:
                raise AttributeError(f"n has no component along {which!r}; it has {', '.join(self._axes)}")
            which = self._axes.index(which)
        return self.__jax_array__()[which]

    def __getattr__(self, axis: str) -> jax.Array:
        if axis.startswith("_"):
            raise AttributeError(axis)
        return self[axis]

    def __iter__(self) -> Iterator[jax.Array]:
        return (self[i] for i in range(len(self._axes)))

    def __len__(self) -> int:
        return len(self._axes)


def normal_of(domain: Box, part: Part, x: jax.Array) -> Normal | None:
    """The normal at a point `x` (d,) of a part; None on parts that have none."""
    if not isinstance(part, Boundary | Points) or not domain.space:
        return None
    where = part if isinstance(part, Boundary) else None
    if isinstance(domain, Region):
        return Normal(domain.shape.axes, lambda: domain.normal(where, x, jnp))
    return Normal(domain.space, lambda: _of_box(domain, where or Boundary(), x))


def _of_box(box: Box, part: Boundary, x: jax.Array) -> jax.Array:
    """That of the nearest of the faces."""
    gaps, directions = [], []
    for axis, side in part.resolve(box):
        lower, upper = box.interval(axis)
        gaps.append(jnp.abs(x[box.index(axis)] - (upper if side == "upper" else lower)) / (upper - lower))
        directions.append([(1.0 if side == "upper" else -1.0) * (axis == other) for other in box.space])
    table = jnp.asarray(directions, x.dtype)
    return table[0] if len(gaps) == 1 else table[jnp.argmin(jnp.stack(gaps))]


def normals(domain: Box, part: Boundary, points: np.ndarray) -> np.ndarray:
    """The outward normals at points (n, d) of a part of the boundary: (n, axes of space)."""
    if isinstance(domain, Region):
        return np.asarray(domain.normal(part, np.asarray(points, np.float64), np))
    return np.asarray(jax.vmap(lambda x: _of_box(domain, part, x))(jnp.asarray(points)))
