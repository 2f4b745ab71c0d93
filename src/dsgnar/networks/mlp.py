"""The tanh network with trained activation scales (paper, Appendix B.3).

    h_0 = e,    h_l = tanh(a_l (W_l h_{l-1} + b_l)),  l = 1..H,    u = W_{H+1} h_H + b_{H+1}

e is the embedded input. theta = {W_l, b_l} and {a_l}. In the code: `layers[l].affine` holds W_l and b_l,
`layers[l].scale` holds a_l, `output` the last map.

At the start a_l = 1, all biases are zero, hidden weights are orthogonal with gain 5/3 (which makes up for the
contraction of tanh), output weights are LeCun-normal. So all units of the first layer bend at the origin. With
`spread` sigma they bend all over the box: W_1 is normal with variance sigma^2/d_0, b_1 = -W_1 c with c uniform in
[-1, 1]^d_0. Boundary layers and oscillations are then found sooner (docs/notes.md).

With `holes` e has features of the holes of the domain behind the coordinates (`holes.py`). Their weights begin as if there
were no others, and so do those of the coordinates.
"""

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from dsgnar.calculus.precision import x64
from dsgnar.calculus.spaces import Kink
from dsgnar.networks.base import Affine, Architecture, check_widths, from_key, lecun_normal, orthogonal, to_array
from dsgnar.networks.embeddings import Embedding, Inputs, Spacing, check_count, check_modes, embed
from dsgnar.networks.holes import Around, beside
from dsgnar.networks.kinks import Across, Further, check_kinks, further


@dataclasses.dataclass(frozen=True)
class MLP(Architecture):
    """A tanh network with hidden layers of the given widths.

    The default, six layers of 16, is the paper's for Burgers' equation in single precision. `modes` asks for
    that many Fourier features per spatial axis, `spacing` for "linear" or "dyadic" ones (see `embeddings`).
    With `spread` the first layer starts with slopes of that size and with its units centred all over [-1, 1]^d. With
    `holes` it sees the holes of a domain beside the coordinates, and with `kinks` planes at which the solution bends: axis,
    place in the coordinates that it receives, and the order of the derivative that jumps (`kinks.py`).
    """

    widths: Sequence[int] = (16,) * 6
    modes: int | None = None
    spacing: Spacing | None = None
    spread: float = 0.0
    holes: bool = False
    kinks: Sequence[Kink] = ()

    def __post_init__(self):
        object.__setattr__(self, "widths", check_widths(self.widths, "MLP"))
        object.__setattr__(self, "kinks", check_kinks(self.kinks, "MLP"))
        check_modes(self.modes, self.spacing, "MLP")
        if not (math.isfinite(self.spread) and self.spread >= 0):
            raise ValueError(f"MLP: spread must be a number, 0 or more, not {self.spread!r}")

    @x64
    def build(self, inputs: Inputs, outputs: int, *, key: Array, dtype: Any) -> "TanhNetwork":
        check_count(outputs, "MLP: outputs")
        embedding = embed(inputs, self.modes, self.spacing)
        around = further(Around(inputs.holes) if self.holes and inputs.holes else None, self.kinks, inputs.size)
        sizes = (embedding.size, *self.widths)
        rng = from_key(key)
        layers = []
        for index, (n_in, n_out) in enumerate(itertools.pairwise(sizes)):
            weight, bias = self._first(rng, n_in, n_out) if index == 0 else (orthogonal(rng, n_in, n_out), 0.0)
            if index == 0 and around is not None:
                more, shift = self._first(rng, around.size, n_out)
                weight, bias = np.concatenate([weight, more]), bias + shift
            layers.append(TanhLayer(Affine.of(weight, dtype, bias), to_array(1.0, dtype)))
        layers = tuple(layers)
        return TanhNetwork(embedding, layers, Affine.of(lecun_normal(rng, sizes[-1], outputs), dtype), around)

    def _first(self, rng: np.random.Generator, n_in: int, n_out: int) -> tuple[np.ndarray, np.ndarray | float]:
        """Weight and bias of the first layer."""
        even = orthogonal(rng, n_in, n_out)  # drawn in any case: a seed means the same networks as ever
        if not self.spread:
            return even, 0.0
        weight = rng.normal(size=(n_in, n_out)) * self.spread / math.sqrt(n_in)
        return weight, -np.sum(rng.uniform(-1.0, 1.0, (n_in, n_out)) * weight, axis=0)


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
    around: Around | Across | Further | None = None

    def __call__(self, x: Array) -> Array:
        h = beside(self.embedding(x), self.around, x)
        for layer in self.layers:
            h = layer(h)
        return self.output(h)
