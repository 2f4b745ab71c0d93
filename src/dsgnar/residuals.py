"""Residuals of all conditions, their mean squares and the weighted loss (eqs. 5 and 9 of the paper).

For condition m with points X_m, weight w_m and residual F_m,

    mean square   s_m = 1/|X_m| sum_{x in X_m} F_m(u_theta, x)^2,        loss   L = 1/2 sum_m w_m s_m.

Points are worked through in batches, so memory does not grow with their number. Residuals are computed in the precision of
`theta`; their squares are summed in float64, so that the loss itself carries no rounding noise of its own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import jax
import jax.numpy as jnp
import numpy as np

from dsgnar.fields import Mode, supports_taylor
from dsgnar.networks import check_network
from dsgnar.parameters import Parameters
from dsgnar.precision import x64
from dsgnar.problem import Problem

# Points per batch: bounds memory. Sizes from 1,024 to 16,384 took the same time within the noise of a busy machine.
BATCH = 2048

PointSets = dict[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class Residuals:
    """The residuals of a problem for a network of given structure, as functions of `theta`."""

    problem: Problem
    parameters: Parameters
    mode: Mode
    batch: int = BATCH

    @classmethod
    @x64
    def of(cls, problem: Problem, network: Callable, mode: Mode | None = None) -> tuple["Residuals", jax.Array]:
        """Residuals for `network`, and its parameters. Taylor mode is used wherever the network allows it."""
        parameters, theta = Parameters.of(network)
        dimension = problem.domain.dimension
        check_network(network, dimension, len(problem.unknowns), theta.dtype)
        if mode is None:
            whole = problem.constrained(network)
            mode = "taylor" if supports_taylor(whole, dimension, theta.dtype) else "nested"
        return cls(problem, parameters, mode), theta

    def network(self, theta: jax.Array) -> Callable:
        """The solution `x -> u` that `theta` stands for, hard constraints included."""
        return self.problem.constrained(self.parameters.network(theta))

    def at_point(self, name: str, theta: jax.Array, x: jax.Array) -> jax.Array:
        """The residual at one point; a further entry of `x` is the value that it is to take there (`march.py`)."""
        dimension = self.problem.domain.dimension
        value = self.problem.residual(name, self.network(theta), x[:dimension], self.mode)
        return value if x.shape[0] == dimension else value - x[dimension]

    @x64
    def vector(self, name: str, theta: jax.Array, points: np.ndarray) -> np.ndarray:
        """The residuals of one condition at points (n, d)."""
        batches, count = self._batched(name, points, theta.dtype)
        return np.asarray(self._vectors[name](theta, batches)).reshape(-1)[:count]

    @x64
    def mean_squares(self, theta: jax.Array, points: PointSets) -> np.ndarray:
        """The mean square of every condition, in the order of the conditions, as float64."""
        return np.asarray(self.kernel(theta, self.device_points(points, theta.dtype)))

    def loss(self, theta: jax.Array, points: PointSets, weights: Sequence[float]) -> float:
        """The weighted loss."""
        return weighted_loss(self.mean_squares(theta, points), np.asarray(weights))

    def device_points(self, points: PointSets, dtype) -> tuple:
        """Points as the kernel wants them: for each condition batches (k, b, d) and how many are real."""
        return tuple(self._batched(name, points[name], dtype) for name in self.problem.conditions)

    @cached_property
    def kernel(self) -> Callable:
        """Compiled: mean squares from `theta` and batched points."""
        return jax.jit(self._mean_squares)

    @cached_property
    def trial(self) -> Callable:
        """Compiled: mean squares at `theta + p`."""
        return jax.jit(lambda theta, p, batched: self._mean_squares(theta + p, batched))

    @cached_property
    def gradient(self) -> Callable:
        """Compiled: the gradient of the weighted loss from `theta`, weights and batched points."""

        def loss(theta, weights, batched):
            return 0.5 * jnp.dot(weights, self._mean_squares(theta, batched))

        return jax.jit(jax.grad(loss))

    def _mean_squares(self, theta: jax.Array, batched: tuple) -> jax.Array:
        sums = []
        for name, (batches, count) in zip(self.problem.conditions, batched, strict=True):
            total = partial(self._batch_sum, name, theta, count)
            starts = jnp.arange(batches.shape[0]) * batches.shape[1]
            sums.append(jnp.sum(jax.lax.map(lambda args, f=total: f(*args), (batches, starts))) / count)
        return jnp.stack(sums)

    def _batch_sum(self, name: str, theta: jax.Array, count, batch: jax.Array, start: jax.Array) -> jax.Array:
        values = jax.vmap(partial(self.at_point, name, theta))(batch)
        real = start + jnp.arange(batch.shape[0]) < count
        return jnp.sum(jnp.where(real, values.astype(jnp.float64) ** 2, 0.0))

    @cached_property
    def _vectors(self) -> dict[str, Callable]:
        """Compiled, by condition: residuals from `theta` and batched points."""

        def vector(name: str, theta: jax.Array, batches: jax.Array) -> jax.Array:
            return jax.lax.map(jax.vmap(partial(self.at_point, name, theta)), batches)

        return {name: jax.jit(partial(vector, name)) for name in self.problem.conditions}

    def _batched(self, name: str, points: np.ndarray, dtype) -> tuple[jax.Array, int]:
        count = len(points)
        if not count:
            raise ValueError(f"condition {name!r} has no points to evaluate its residual at; give it at least one")
        size = min(self.batch, count)
        padding = -count % size
        padded = np.concatenate([points, np.broadcast_to(points[:1], (padding, points.shape[1]))])
        return jnp.asarray(padded.astype(dtype).reshape(-1, size, points.shape[1])), count


def weighted_loss(mean_squares: np.ndarray, weights: np.ndarray) -> float:
    """The loss of eq. 5, with the factor 1/2 of the text."""
    return 0.5 * float(np.dot(weights, mean_squares))
