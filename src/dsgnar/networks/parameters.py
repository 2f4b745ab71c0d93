"""A network's trainable parameters as one flat vector `theta` of dimension `d` (section 2.1 of the paper).

The optimiser sees only `theta`. `Parameters` remembers the network's structure, and rebuilds a network from a vector in the
vector's own precision.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float


def neighbour(theta: Float[np.ndarray, " d"], rng: np.random.Generator) -> Float[np.ndarray, " d"]:
    """`theta` with a quarter of its entries, chosen at random, replaced by neighbouring floating-point numbers.

    By how much a residual differs between the two is how much of it is rounding.
    """
    towards = np.where(rng.random(theta.shape) < 0.5, np.inf, -np.inf).astype(theta.dtype)
    return np.where(rng.random(theta.shape) < 0.25, np.nextafter(theta, towards), theta)


@dataclass(frozen=True, eq=False)
class Parameters:
    """Structure of a network: how a flat vector is cut into its arrays."""

    treedef: Any
    shapes: tuple[tuple[int, ...], ...]
    static: Any

    @classmethod
    def of(cls, network: Callable) -> tuple["Parameters", Float[Array, " d"]]:
        """The structure of `network`, and its parameters as a vector."""
        arrays, static = eqx.partition(network, eqx.is_inexact_array)
        leaves, treedef = jax.tree.flatten(arrays)
        if not leaves:
            raise ValueError("the network has no trainable parameters (floating-point arrays)")
        theta = jnp.concatenate([jnp.ravel(leaf) for leaf in leaves])
        return cls(treedef, tuple(leaf.shape for leaf in leaves), static), theta

    @property
    def count(self) -> int:
        """d, the number of parameters."""
        return sum(map(prod, self.shapes))

    def network(self, theta: Float[Array, " d"]) -> Callable:
        """The network with the parameters `theta`."""
        ends = np.cumsum([prod(shape) for shape in self.shapes])
        pieces = [
            theta[end - prod(shape) : end].reshape(shape) for end, shape in zip(ends.tolist(), self.shapes, strict=True)
        ]
        return eqx.combine(jax.tree.unflatten(self.treedef, pieces), self.static)
