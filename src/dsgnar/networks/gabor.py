"""GaborNet: one layer of trained Gabor filters (Fathony et al. 2021; paper, Appendix B.5).

    g_f(e) = exp(-||e - mu_f||^2 / (2 sigma_f^2)) cos(omega_f . e + phi_f),  f = 1..F,    u = W g(e) + b

e is the embedded input with d_e features. theta = {mu_f, omega_f, log sigma_f, phi_f} and {W, b}; sigma_f > 0
is trained through its logarithm. In the code: `centres`, `frequencies`, `log_bandwidths`, `phases`, `output`.

The distance is expanded, ||e||^2 - 2 e . mu + ||mu||^2, after both have been moved by the mean of the
centres: one matrix product instead of an array of points x filters x features. The rounding error of the
exponent is then a few units (3 at the start, if unit roundoff is the unit) as long as sigma stays comparable
with the box.

At the start, for features that range over a box with sides L_i (`feature_box`):

    mu     uniform over the box;
    sigma  sqrt(sum_i L_i^2 / 6), the root mean square distance between a point and a centre: the mean
           exponent is -1/2 in any dimension, where a fixed sigma would make all filters vanish in a high one;
    omega  normal with standard deviation 2 pi / (L_i sqrt(d_e)): about one turn across the box along the
           filter's own direction. In linear least-squares fits with these filters, four times faster ones
           represented nothing from 5 dimensions on, and several times slower ones lost digits on oscillating
           functions in 2;
    phi    uniform in [0, 2 pi];
    W      LeCun-normal, b zero.
"""

import dataclasses
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from dsgnar.calculus.precision import x64
from dsgnar.networks.base import Affine, Architecture, from_key, lecun_normal, to_array
from dsgnar.networks.embeddings import (
    Embedding,
    Inputs,
    Spacing,
    check_count,
    check_modes,
    embed,
    feature_box,
)


@dataclasses.dataclass(frozen=True)
class GaborNet(Architecture):
    """A layer of `features` Gabor filters.

    1024 is the paper's number for the five-dimensional Poisson equation. `modes` asks for that many Fourier
    features per spatial axis, `spacing` for "linear" or "dyadic" ones (see `embeddings`).
    """

    features: int = 1024
    modes: int | None = None
    spacing: Spacing | None = None

    def __post_init__(self):
        object.__setattr__(self, "features", check_count(self.features, "GaborNet: features"))
        check_modes(self.modes, self.spacing, "GaborNet")

    @x64
    def build(self, inputs: Inputs, outputs: int, *, key: Array, dtype: Any) -> "GaborNetwork":
        check_count(outputs, "GaborNet: outputs")
        embedding = embed(inputs, self.modes, self.spacing)
        lower, upper = np.array(feature_box(embedding, inputs)).T[:, :, None]
        length = upper - lower
        shape = (embedding.size, self.features)
        rng = from_key(key)
        centres = rng.uniform(lower, upper, shape)
        frequencies = rng.normal(size=shape) * 2 * np.pi / (length * np.sqrt(embedding.size))
        bandwidth = np.sqrt(np.sum(length**2) / 6)
        phases = rng.uniform(0.0, 2 * np.pi, self.features)
        return GaborNetwork(
            embedding,
            to_array(centres, dtype),
            to_array(frequencies, dtype),
            to_array(np.full(self.features, np.log(bandwidth)), dtype),
            to_array(phases, dtype),
            Affine.of(lecun_normal(rng, self.features, outputs), dtype),
        )


class GaborNetwork(eqx.Module):
    """What `GaborNet` builds. Centres and frequencies are (features of the embedding, filters)."""

    embedding: Embedding
    centres: Array
    frequencies: Array
    log_bandwidths: Array
    phases: Array
    output: Affine

    def __call__(self, x: Array) -> Array:
        e = self.embedding(x)
        wave = jnp.cos(e @ self.frequencies + self.phases)
        return self.output(self.envelopes(e) * wave)

    def envelopes(self, e: Array) -> Array:
        """exp(-||e - mu_f||^2 / (2 sigma_f^2)). Any origin would do; the mean of the centres rounds least."""
        origin = jnp.mean(self.centres, axis=1)
        e, mu = e - origin, self.centres - origin[:, None]
        precision = jnp.exp(-2.0 * self.log_bandwidths)
        squares = jnp.sum(e * e) + jnp.sum(mu * mu, axis=0)
        return jnp.exp(e @ (mu * precision) - squares * (0.5 * precision))
