"""Holes of a domain as further inputs of a network.

Around a hole of radius R about c, solutions of equations that diffuse are sums of log r, r^-1 cos(theta), r^-2 cos(2 theta),
.. and of something smooth across the hole: smooth functions of

    2 log(r / R) / log(L / R) - 1,      R (x - c) / r^2           r = |x - c|,  L the size of the domain

(the last is x mirrored in the circle), but not of x, in which they vary faster the smaller the hole is. A network that is
given these beside x does not have to make them up. In more dimensions than two they serve as well. All lie within [-1, 1]
outside the hole. Where there are very many holes, each has the first one only: what it adds to the first layer is paid for
in every iteration. Heat2d-CG, with 17 holes, needs all (docs/notes.md).
"""

import dataclasses
import math
from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
from jax import Array

MANY = 96  # features, beyond which every hole has one
TINY = 1e-6  # added to (r/R)^2: the centre of a hole is a point like others


@dataclasses.dataclass(frozen=True)
class Hole:
    """A hole, in the coordinates that a network receives."""

    centre: tuple[float, ...]  # along the first axes
    stretch: tuple[float, ...]  # by which a step along each of them is longer in units of the hole's radius
    reach: float  # L / R


class Around(eqx.Module):
    """The features of all holes. Nothing in it is trained."""

    holes: tuple[Hole, ...] = eqx.field(static=True)

    @property
    def mirrored(self) -> bool:
        """Whether there are features of all directions."""
        return sum(1 + len(hole.centre) for hole in self.holes) <= MANY

    @property
    def size(self) -> int:
        return sum(1 + len(hole.centre) * self.mirrored for hole in self.holes)

    def __call__(self, x: Array) -> Array:
        centre = jnp.asarray([hole.centre for hole in self.holes], x.dtype)
        stretch = jnp.asarray([hole.stretch for hole in self.holes], x.dtype)
        inverse = jnp.asarray([1 / math.log(hole.reach) for hole in self.holes], x.dtype)
        away = (x[: centre.shape[1]] - centre) * stretch
        squared = jnp.sum(away * away, axis=1) + TINY
        far = jnp.log(squared) * inverse - 1.0
        return jnp.concatenate([far, (away / squared[:, None]).ravel()]) if self.mirrored else far


def beside(features: Array, around: Callable | None, x: Array) -> Array:
    """The features of a point with further ones behind them: of holes, and of planes (`kinks.py`)."""
    return features if around is None else jnp.concatenate([features, around(x)])
