"""Planes at which an equation jumps, as further inputs of a network.

At a plane x_i = c across axis i (`problem/jumps.py`) the m-th derivative of the solution along i jumps; on either side it is
smooth. So it is a smooth function of x and of

    z |z|^(m-1) / L^m,      z = x_i - c,  L the larger distance from c to the ends of [-1, 1]

(the sign of z where m = 0). A network of smooth units that is given these beside x bends there and nowhere else.
"""

import math
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from dsgnar.calculus.spaces import Kink
from dsgnar.networks.holes import Around


class Across(eqx.Module):
    """The features of all planes. Nothing in it is trained."""

    kinks: tuple[Kink, ...] = eqx.field(static=True)

    @property
    def size(self) -> int:
        return len(self.kinks)

    def __call__(self, x: Array) -> Array:
        return jnp.stack([_feature(x[axis] - place, 1 + abs(place), order) for axis, place, order in self.kinks])


class Further(eqx.Module):
    """Several kinds of further inputs together."""

    parts: tuple[Around | Across, ...]

    @property
    def size(self) -> int:
        return sum(part.size for part in self.parts)

    def __call__(self, x: Array) -> Array:
        return jnp.concatenate([part(x) for part in self.parts])


def _feature(z: Array, reach: float, order: int) -> Array:
    if order == 0:
        return jnp.sign(z)
    size = jnp.abs(z) / reach
    return size if order == 1 else size * (z / reach) ** (order - 1)


def further(around: Around | None, kinks: Sequence[Kink], axes: int) -> Around | Across | Further | None:
    """Holes and planes that a network sees beside its coordinates, along so many axes."""
    for axis, *_ in kinks:
        if axis >= axes:
            raise ValueError(f"kinks: there is no axis {axis}; the problem's axes are 0 to {axes - 1}")
    if not kinks:
        return around
    across = Across(tuple(kinks))
    return across if around is None else Further((around, across))


def check_kinks(kinks: Any, where: str) -> tuple[Kink, ...]:
    """Planes as tuples, or an error."""
    try:
        found = tuple((int(axis), float(place), int(order)) for axis, place, order in kinks)
    except (TypeError, ValueError):
        found = None
    if found is None or not all(axis >= 0 and math.isfinite(place) and order >= 0 for axis, place, order in found):
        raise ValueError(f"{where}: kinks must be triples of axis, place and order, as in ((0, 0.5, 2),), not {kinks!r}")
    return found
