"""Residuals of all conditions, their mean squares and the weighted loss (eqs. 5 and 9 of the paper).

For condition m with points X_m, weight w_m and residual F_m,

    mean square   s_m = 1/|X_m| sum_{x in X_m} F_m(u_theta, x)^2,        loss   L = 1/2 sum_m w_m s_m.

Points are worked through in batches, so memory does not grow with their number. Residuals are computed in the precision of
`theta`; their squares are summed in float64, so that the loss itself carries no rounding noise of its own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce

import jax
import jax.numpy as jnp
import numpy as np

from dsgnar import streams
from dsgnar.fields import Mode, supports_taylor
from dsgnar.networks import check_network
from dsgnar.parameters import Parameters
from dsgnar.precision import x64
from dsgnar.problem import Problem

# Points per batch: bounds memory. Sizes from 1,024 to 16,384 took the same time within the noise of a busy machine.
BATCH = 2048

PointSets = dict[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class Batched:
    """Points on the device, in shares of equal shapes that are worked through side by side."""

    shares: tuple  # for each share and condition: batches (k, b, d), and how many points of each batch are real (k,)
    counts: np.ndarray  # points of each condition


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
        return self._traced[name](theta, x)

    @cached_property
    def _traced(self) -> dict[str, Callable]:
        """By condition: the residual at one point, traced once for all the kernels that it becomes part of."""
        return {name: jax.jit(partial(self._at_point, name), inline=True) for name in self.problem.conditions}

    def _at_point(self, name: str, theta: jax.Array, x: jax.Array) -> jax.Array:
        dimension = self.problem.domain.dimension
        value = self.problem.residual(name, self.network(theta), x[:dimension], self.mode)
        return value if x.shape[0] == dimension else value - x[dimension]

    @x64
    def vector(self, name: str, theta: jax.Array, points: np.ndarray) -> np.ndarray:
        """The residuals of one condition at points (n, d)."""
        ((batches, _),) = self._shares(name, points, theta.dtype, 1)
        return np.asarray(self._vectors[name](theta, batches)).reshape(-1)[: len(points)]

    @x64
    def mean_squares(self, theta: jax.Array, points: PointSets) -> np.ndarray:
        """The mean square of every condition, in the order of the conditions, as float64."""
        return self.kernel(theta, self.device_points(points, theta.dtype))

    def loss(self, theta: jax.Array, points: PointSets, weights: Sequence[float]) -> float:
        """The weighted loss."""
        return weighted_loss(self.mean_squares(theta, points), np.asarray(weights))

    def device_points(self, points: PointSets, dtype) -> Batched:
        """Points as the kernels want them."""
        parts = [self._shares(name, points[name], dtype, streams.count()) for name in self.problem.conditions]
        counts = np.array([len(points[name]) for name in self.problem.conditions])
        return Batched(tuple(zip(*parts, strict=True)), counts)

    def kernel(self, theta: jax.Array, batched: Batched) -> np.ndarray:
        """Mean squares at `theta`."""
        return _means(streams.each(lambda share: self._sums(theta, share), batched.shares), batched)

    def gradient(self, theta: jax.Array, weights: np.ndarray, batched: Batched) -> jax.Array:
        """The gradient of the weighted loss."""
        scales = jnp.asarray(weights / batched.counts)
        return reduce(jnp.add, streams.each(lambda share: self._slope(theta, scales, share), batched.shares))

    @cached_property
    def _sums(self) -> Callable:
        """Compiled: sums of squares, by condition and batch, of one share of the points."""
        return jax.jit(self._squares)

    @cached_property
    def _slope(self) -> Callable:
        def loss(theta, scales, share):
            return 0.5 * jnp.dot(scales, jnp.stack([jnp.sum(part) for part in self._squares(theta, share)]))

        return jax.jit(jax.grad(loss))

    def _squares(self, theta: jax.Array, share: tuple) -> tuple:
        return tuple(
            jax.lax.map(lambda batch, name=name: self._batch_sum(name, theta, *batch), part)
            for name, part in zip(self.problem.conditions, share, strict=True)
        )

    def _batch_sum(self, name: str, theta: jax.Array, batch: jax.Array, real: jax.Array) -> jax.Array:
        values = jax.vmap(partial(self.at_point, name, theta))(batch)
        return jnp.sum(jnp.where(jnp.arange(batch.shape[0]) < real, values.astype(jnp.float64) ** 2, 0.0))

    @cached_property
    def _vectors(self) -> dict[str, Callable]:
        """Compiled, by condition: residuals from `theta` and batched points."""

        def vector(name: str, theta: jax.Array, batches: jax.Array) -> jax.Array:
            return jax.lax.map(jax.vmap(partial(self.at_point, name, theta)), batches)

        return {name: jax.jit(partial(vector, name)) for name in self.problem.conditions}

    def _shares(self, name: str, points: np.ndarray, dtype, shares: int) -> list[tuple[jax.Array, jax.Array]]:
        """Points of one condition in equal shares of equal batches; what is missing at the end is not real."""
        count, dimension = points.shape
        if not count:
            raise ValueError(f"condition {name!r} has no points to evaluate its residual at; give it at least one")
        batches = shares * -(-count // (shares * self.batch))
        size = -(-count // batches)
        filled = np.broadcast_to(points[:1], (batches * size - count, dimension))
        padded = np.concatenate([points, filled]).astype(dtype).reshape(shares, -1, size, dimension)
        real = np.clip(count - size * np.arange(batches), 0, size).reshape(shares, -1)
        return [(jnp.asarray(p), jnp.asarray(n)) for p, n in zip(padded, real, strict=True)]


def _means(sums: list[tuple], batched: Batched) -> np.ndarray:
    """Mean squares from sums by share, condition and batch; added in the order of the batches, whatever the shares."""
    return np.array([np.concatenate(parts).sum() for parts in zip(*sums, strict=True)]) / batched.counts


def weighted_loss(mean_squares: np.ndarray, weights: np.ndarray) -> float:
    """The loss of eq. 5, with the factor 1/2 of the text."""
    return 0.5 * float(np.dot(weights, mean_squares))
