"""A network beside the singular functions of corners, whose strengths are found with it.

In polar coordinates of a corner of a plane shape (`problem/shape_corners.py`), r in the same units along both axes and theta
from the first side at the corner, the functions are

    r^p sin(p theta)  or  r^p cos(p theta),      and for whole p, where these are polynomials,  their products with log r,
                                                 Im or Re of z^p log z,  z = r exp(i theta)

all harmonic. They do not vary with the shape elsewhere, so how strong they are is not known beforehand: each has a trained
factor, zero at first. Where the line on which theta jumps comes back into the shape at the distance R, they fade out before,
with (1 - r^2/R^2)^4.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import Array

NEAR = 1e-12  # of the unit of r


@dataclass(frozen=True)
class Corner:
    """A corner of an unknown, in the coordinates that a network receives."""

    unknown: int  # its place among the outputs
    centre: tuple[float, float]
    stretch: tuple[float, float]  # from these coordinates to those of r
    middle: float  # direction of the line that halves the corner
    opening: float
    powers: tuple[float, ...]
    logarithms: tuple[bool, ...]
    sine: bool  # else cosine
    reach: float  # R; infinite where nothing has to fade out

    def __call__(self, x: Array) -> Array:
        """Its functions."""
        X, Y = ((x[i] - c) * s for i, (c, s) in enumerate(zip(self.centre, self.stretch, strict=True)))
        cos, sin = math.cos(self.middle), math.sin(self.middle)
        along, across = cos * X + sin * Y, cos * Y - sin * X
        theta, squared = jnp.arctan2(across, along) + self.opening / 2, along * along + across * across + NEAR**2
        log, out = 0.5 * jnp.log(squared), []
        for p, logarithm in zip(self.powers, self.logarithms, strict=True):
            size, odd, even = jnp.exp(p * log), jnp.sin(p * theta), jnp.cos(p * theta)
            if logarithm:
                out.append(size * (log * odd + theta * even if self.sine else log * even - theta * odd))
            else:
                out.append(size * (odd if self.sine else even))
        if math.isfinite(self.reach):
            left = jnp.maximum(1 - squared / self.reach**2, 0.0)
            out = [left * left * left * left * function for function in out]
        return jnp.stack(out)


class Cornered(eqx.Module):
    """A network plus the functions of corners."""

    network: Callable
    strengths: Array
    corners: tuple[Corner, ...] = eqx.field(static=True)

    def __call__(self, x: Array) -> Array:
        out, begin = self.network(x), 0
        for corner in self.corners:
            end = begin + len(corner.powers)
            more = jnp.dot(self.strengths[begin:end], corner(x))
            out = out + jnp.stack([more if k == corner.unknown else jnp.zeros_like(more) for k in range(out.shape[0])])
            begin = end
        return out


def cornered(network: Any, corners: tuple[Corner, ...], dtype: Any) -> Any:
    """The network with the functions of corners, if there are any."""
    count = sum(len(corner.powers) for corner in corners)
    return Cornered(network, jnp.zeros(count, dtype), corners) if count else network
