"""Residual-based reweighting of the conditions (Algorithm 4, UpdateWeights).

With the weighted mean squares `l_m = w_m s_m` at the point kept after acceptance or rejection, and their mean `l`,

    w_m  <-  w_m (l / (l_m + eps))^alpha,        then scaled to mean 1.

A condition whose share is above the mean is weighed down. A sketch adds residuals of all conditions into the same buckets,
so their scales must be comparable.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float


@dataclass(frozen=True)
class Reweighting:
    """The paper's rule; `exponent` and `floor` as in section 4.2 and Appendix A."""

    exponent: float = 0.05
    floor: float = 1e-8

    def __call__(
        self, mean_squares: Float[np.ndarray, " conditions"], weights: Float[np.ndarray, " conditions"]
    ) -> Float[np.ndarray, " conditions"]:
        losses = weights * mean_squares
        if not np.isfinite(losses).all():
            return weights
        factors = (losses.mean() / (losses + self.floor)) ** self.exponent if self.exponent else 1.0
        scaled = weights * factors
        if not (scaled > 0).all():  # the loss is exactly zero everywhere
            return weights
        return scaled / scaled.mean()
