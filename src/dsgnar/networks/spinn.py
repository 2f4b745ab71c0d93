"""SPINN, the separable network (Cho et al. 2023; paper, Appendix B.6).

    u = W (f_1(e_1) * f_2(e_2) * .. * f_n(e_n)) + b

e_i is the embedding of coordinate i, * the elementwise product, and each branch f_i a tanh network with R
outputs, R being the rank. theta = the weights and biases of all branches and {W, b}; the branches have no
trained activation scales (the paper's parameter count for 10 dimensions rules them out). In the code:
`branches`, `output`.

Each branch sees one coordinate alone and is kept as a network of its own, so that derivatives along the other
coordinates are known to vanish in it.

At the start a factor f_i is 1 plus a perturbation of variance at most 1/n: its last bias is 1 and its last
weights are normal with variance 1/(n d), d being the last width. The mean square of the product is then at
most (1 + 1/n)^n < e for any number n of coordinates, and its mean is 1, whereas the product of ten normal
factors of zero mean and unit variance is below 1/500 half of the time. Hidden weights are orthogonal with
gain 5/3, hidden biases zero, W is LeCun-normal and b zero.

On a tensor grid with N_i points along axis i a branch is evaluated N_i times only, and so are its derivatives
(`on_grid`): sum N_i evaluations instead of prod N_i, and then products over ranks. Training draws its points at
random, as the paper does in ten dimensions, where two points along each axis are 1,024 already.
"""

import dataclasses
import functools
import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dsgnar.calculus.jets import Truncation
from dsgnar.calculus.precision import x64
from dsgnar.calculus.taylor import taylor
from dsgnar.networks.base import Affine, Architecture, check_widths, from_key, lecun_normal, orthogonal
from dsgnar.networks.embeddings import Embedding, Inputs, Spacing, check_count, check_modes, embed


@dataclasses.dataclass(frozen=True)
class SPINN(Architecture):
    """A separable network: one tanh branch with hidden layers of the given widths per coordinate.

    Rank 40 and three layers of 20 are the paper's choice for the ten-dimensional Poisson equation. `modes`
    asks for that many Fourier features per spatial axis, `spacing` for "linear" or "dyadic" ones (see
    `embeddings`).
    """

    rank: int = 40
    widths: Sequence[int] = (20,) * 3
    modes: int | None = None
    spacing: Spacing | None = None

    def __post_init__(self):
        object.__setattr__(self, "rank", check_count(self.rank, "SPINN: rank"))
        object.__setattr__(self, "widths", check_widths(self.widths, "SPINN"))
        check_modes(self.modes, self.spacing, "SPINN")

    @x64
    def build(self, inputs: Inputs, outputs: int, *, key: Array, dtype: Any) -> "SeparableNetwork":
        check_count(outputs, "SPINN: outputs")
        embedding = embed(inputs, self.modes, self.spacing)
        rng = from_key(key)
        branches = tuple(self._branch(part.size, inputs.size, rng, dtype) for part in embedding.parts)
        return SeparableNetwork(embedding, branches, Affine.of(lecun_normal(rng, self.rank, outputs), dtype))

    def _branch(self, n_in: int, factors: int, rng: np.random.Generator, dtype: Any) -> "Branch":
        sizes = (n_in, *self.widths)
        layers = tuple(Affine.of(orthogonal(rng, a, b), dtype) for a, b in itertools.pairwise(sizes))
        perturbation = lecun_normal(rng, sizes[-1], self.rank) / np.sqrt(factors)
        return Branch(layers, Affine.of(perturbation, dtype, bias=1.0))


class Branch(eqx.Module):
    """f_i: tanh layers and a last affine map to `rank` factors."""

    layers: tuple[Affine, ...]
    factor: Affine

    def __call__(self, h: Array) -> Array:
        for layer in self.layers:
            h = jnp.tanh(layer(h))
        return self.factor(h)


class SeparableNetwork(eqx.Module):
    """What `SPINN` builds. Branches come in the order of the embedding: space first, time last."""

    embedding: Embedding
    branches: tuple[Branch, ...]
    output: Affine

    def __call__(self, x: Array) -> Array:
        features = self.embedding.split(x)
        factors = [branch(e) for branch, e in zip(self.branches, features, strict=True)]
        return self.output(functools.reduce(operator.mul, factors))

    def on_grid(self, axes: Sequence[Array], orders: Sequence[int] | None = None) -> Array:
        """Values on the tensor grid of coordinates along each axis, or a derivative of the given order along each.

        The result has a dimension for every axis, in the order of the domain, and a last one for the outputs.
        """
        count = len(self.branches)
        orders = (0,) * count if orders is None else tuple(orders)
        if len(axes) != count or len(orders) != count:
            raise ValueError(f"SPINN: on_grid takes coordinates and an order for each of {count} axes")
        lines: list[Array] = [jnp.zeros(0)] * count
        for branch, part in zip(self.branches, self.embedding.parts, strict=True):
            alone = dataclasses.replace(part, axis=0)
            line = functools.partial(_derivative, lambda c, b=branch, e=alone: b(e(c)), order=orders[part.axis])
            lines[part.axis] = jax.vmap(line)(jnp.asarray(axes[part.axis])[:, None])
        first = functools.reduce(_outer, lines[: (count + 1) // 2])  # a matrix product joins the two halves
        second = functools.reduce(_outer, lines[(count + 1) // 2 :], jnp.ones((1, first.shape[1]), first.dtype))
        joined = jnp.einsum("ar,br,ro->abo", first, second, self.output.weight)
        values = joined if any(orders) else joined + self.output.bias
        return values.reshape(*(len(line) for line in lines), values.shape[-1])


def _outer(left: Array, right: Array) -> Array:
    """All products of two sets of factors, rank by rank."""
    return (left[:, None] * right[None]).reshape(-1, left.shape[1])


def _derivative(f: Callable, c: Array, order: int) -> Array:
    """A derivative of a function of one coordinate."""
    index = (order,)
    return taylor(f, c, Truncation.closure(1, [index]))[index]
