"""SIREN, the network of sines (Sitzmann et al. 2020; paper, Appendix B.4).

    h_0 = e,    h_l = sin(omega_l (W_l h_{l-1} + b_l)),  l = 1..H,    u = W_{H+1} h_H + b_{H+1}

e is the embedded input. omega_l > 0 is trained as exp(log omega_l) or stays fixed.
theta = {W_l, b_l} and, if trained, {log omega_l}. In the code: `layers[l].affine` holds W_l and b_l,
`layers[l].log_frequency` holds log omega_l, `output` the last map.

At the start, with d_l the width of layer l,

    W_1 uniform in +-1/d_0,    W_l uniform in +-sqrt(6/d_{l-1}) / omega_l  for l > 1,

the latter so that a layer fed with well-spread sines passes on arguments of unit variance. b_1 is uniform in
[-1, 1], as the authors have it: phases that differ, so that the first layer holds even and odd functions
alike. The other biases start at zero: what reaches them has mixed phases already. The last map starts like
the MLP's. With `frequencies` w_i, one for each axis, the weights of the first layer are uniform in +-w_i and its
phases in [-pi, pi]: a solution that oscillates is not found from slow sines (`solving/survey.py`).
"""

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dsgnar.calculus.elementary import angle
from dsgnar.calculus.precision import x64
from dsgnar.calculus.spaces import Kink
from dsgnar.networks.base import Affine, Architecture, check_widths, from_key, lecun_normal, to_array
from dsgnar.networks.embeddings import (
    Embedding,
    Inputs,
    Spacing,
    check_count,
    check_frequencies,
    check_modes,
    embed,
    feature_frequencies,
)
from dsgnar.networks.holes import Around, beside
from dsgnar.networks.kinks import Across, Further, check_kinks, further


@dataclasses.dataclass(frozen=True)
class Siren(Architecture):
    """A sine network with hidden layers of the given widths, all starting at the frequency `omega`.

    Four layers of 40 and omega = 1 are the paper's choice for most problems (section 4.3; 60 for the
    hardest). `train_frequency=False` keeps the frequencies. `modes` asks for that many Fourier features per
    spatial axis, `spacing` for "linear" or "dyadic" ones (see `embeddings`). With `frequencies` the first layer starts
    with waves of up to so many radians per unit of length along each axis. `wide` makes the sums of a network in single
    precision in double: parameters, waves and what enters a wave stay in single. With `holes` it sees the holes of a domain
    beside the coordinates (`holes.py`), with `kinks` planes at which the solution bends (`kinks.py`), and begins slowly with
    them.
    """

    widths: Sequence[int] = (40,) * 4
    omega: float = 1.0
    train_frequency: bool = True
    modes: int | None = None
    spacing: Spacing | None = None
    frequencies: Sequence[float] | None = None
    wide: bool = False
    holes: bool = False
    kinks: Sequence[Kink] = ()

    def __post_init__(self):
        object.__setattr__(self, "widths", check_widths(self.widths, "Siren"))
        object.__setattr__(self, "frequencies", check_frequencies(self.frequencies, "Siren"))
        object.__setattr__(self, "kinks", check_kinks(self.kinks, "Siren"))
        check_modes(self.modes, self.spacing, "Siren")
        if not (math.isfinite(self.omega) and self.omega > 0):
            raise ValueError(f"Siren: omega must be a positive number, not {self.omega!r}")

    @x64
    def build(self, inputs: Inputs, outputs: int, *, key: Array, dtype: Any) -> "SineNetwork":
        check_count(outputs, "Siren: outputs")
        embedding = embed(inputs, self.modes, self.spacing)
        around = further(Around(inputs.holes) if self.holes and inputs.holes else None, self.kinks, inputs.size)
        sizes = (embedding.size, *self.widths)
        rng = from_key(key)
        layers = []
        for index, (n_in, n_out) in enumerate(itertools.pairwise(sizes)):
            bound = 1 / n_in if index == 0 else math.sqrt(6 / n_in) / self.omega
            weight = rng.uniform(-bound, bound, (n_in, n_out))
            bias = rng.uniform(-1.0, 1.0, n_out) if index == 0 else 0.0
            if index == 0 and self.frequencies is not None:
                fast = feature_frequencies(embedding, inputs, self.frequencies, "Siren")
                weight = rng.uniform(-1.0, 1.0, (n_in, n_out)) * fast[:, None] / self.omega
                bias = rng.uniform(-math.pi, math.pi, n_out) / self.omega
            if index == 0 and around is not None:
                bound = 1 / math.sqrt(around.size) / self.omega
                weight = np.concatenate([weight, rng.uniform(-bound, bound, (around.size, n_out))])
            log_frequency = to_array(math.log(self.omega), dtype) if self.train_frequency else None
            layers.append(SineLayer(Affine.of(weight, dtype, bias), log_frequency, float(self.omega), self.wide))
        output = Affine.of(lecun_normal(rng, sizes[-1], outputs), dtype)
        return SineNetwork(embedding, tuple(layers), output, self.wide, around)


class SineLayer(eqx.Module):
    """sin(omega (W h + b)), where omega is exp(log_frequency) if trained and `frequency` otherwise."""

    affine: Affine
    log_frequency: Array | None
    frequency: float = eqx.field(static=True)
    wide: bool = eqx.field(static=True, default=False)

    def __call__(self, h: Array) -> Array:
        if self.wide and h.dtype == jnp.float32:
            return self._wide(h)
        omega = self.frequency if self.log_frequency is None else jnp.exp(self.log_frequency)
        return jnp.sin(self.affine.scaled(h, omega))

    def _wide(self, h: Array) -> Array:
        """The argument in float64, less whole turns: what is left is rounded by 2^-24 of pi at most."""
        affine = widened(self.affine)
        omega = self.frequency if self.log_frequency is None else jnp.exp(self.log_frequency.astype(affine.bias.dtype))
        turns = affine.scaled(h.astype(affine.bias.dtype), omega / (2 * math.pi))
        return jnp.sin(angle(turns).astype(h.dtype))


class SineNetwork(eqx.Module):
    """What `Siren` builds."""

    embedding: Embedding
    layers: tuple[SineLayer, ...]
    output: Affine
    wide: bool = eqx.field(static=True, default=False)
    around: Around | Across | Further | None = None

    def __call__(self, x: Array) -> Array:
        h = beside(self.embedding(x), self.around, x)
        for layer in self.layers:
            h = layer(h)
        if self.wide and h.dtype == jnp.float32:
            output = widened(self.output)
            return output(h.astype(output.bias.dtype)).astype(h.dtype)
        return self.output(h)


def widened(affine: Affine) -> Affine:
    """The same map in float64, where JAX has it."""
    dtype = jax.dtypes.canonicalize_dtype(jnp.float64)
    return Affine(affine.weight.astype(dtype), affine.bias.astype(dtype))
