"""The tanh network with trained activation scales (paper, Appendix B.3).

    h_0 = e,    h_l = tanh(a_l (W_l h_{l-1} + b_l)),  l = 1..H,    u = W_{H+1} h_H + b_{H+1}

e is the embedded input. theta = {W_l, b_l} and {a_l}. In the code: `layers[l].affine` holds W_l and b_l,
`layers[l].scale` holds a_l, `output` the last map.

At the start a_l = 1, all biases are zero, hidden weights are orthogonal with gain 5/3 (which makes up for the
contraction of tanh), output weights are LeCun-normal.
"""

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from dsgnar.calculus.precision import x64
from dsgnar.networks.base import Affine, Architecture, check_widths, from_key, lecun_normal, orthogonal, to_array
from dsgnar.networks.embeddings import Embedding, Inputs, Spacing, check_count, check_modes, embed


@dataclasses.dataclass(frozen=True)
class MLP(Architecture):
    """A tanh network with hidden layers of the given widths.

    The default, six layers of 16, is the paper's for Burgers' equation in single precision. `modes` asks for
    that many Fourier features per spatial axis, `spacing` for "linear" or "dyadic" ones (see `embeddings`).
    """

    widths: Sequence[int] = (16,) * 6
    modes: int | None = None
    spacing: Spacing | None = None

    def __post_init__(self):
        object.__setattr__(self, "widths", check_widths(self.widths, "MLP"))
        check_modes(self.modes, self.spacing, "MLP")

    @x64
    def build(self, inputs: Inputs, outputs: int, *, key: Array, dtype: Any) -> "TanhNetwork":
        check_count(outputs, "MLP: outputs")
        embedding = embed(inputs, self.modes, self.spacing)
        sizes = (embedding.size, *self.widths)
        rng = from_key(key)
        layers = tuple(
            TanhLayer(Affine.of(orthogonal(rng, n_in, n_out), dtype), to_array(1.0, dtype))
            for n_in, n_out in itertools.pairwise(sizes)
        )
        return TanhNetwork(embedding, layers, Affine.of(lecun_normal(rng, sizes[-1], outputs), dtype))


class TanhLayer(eqx.Module):
    """tanh(a (W h + b))."""

    affine: Affine
    scale: Array

    def __call__(self, h: Array) -> Array:
        return jnp.tanh(self.affine.scaled(h, self.scale))


class TanhNetwork(eqx.Module):
    """What `MLP` builds."""

    embedding: Embedding
    layers: tuple[TanhLayer, ...]
    output: Affine

    def __call__(self, x: Array) -> Array:
        h = self.embedding(x)
        for layer in self.layers:
            h = layer(h)
        return self.output(h)
