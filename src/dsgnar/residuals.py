"""Residuals of all conditions, their mean squares and the weighted loss (eqs. 5 and 9 of the paper).

For condition m with points X_m, weight w_m and residual F_m,

    mean square   s_m = 1/|X_m| sum_{x in X_m} F_m(u_theta, x)^2,        loss   L = 1/2 sum_m w_m s_m.

Points are worked through batch by batch, so memory does not grow with their number. Residuals are computed in the precision
of `theta`; their squares are summed in float64, so that the loss itself carries no rounding noise of its own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import jax
import jax.numpy as jnp
import numpy as np

from dsgnar import streams
from dsgnar.fields import Mode, supports_taylor
from dsgnar.networks import check_network
from dsgnar.parameters import Parameters
from dsgnar.precision import x64
from dsgnar.problem import Problem

# Points per batch: bounds memory. On a CPU 1,024 made a search slower by a third, 2,048 by a tenth, since each is a call;
# other devices need more to be busy (not measured).
BATCH, DEVICE_BATCH = 2**12, 2**15

PointSets = dict[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class Batched:
    """Points on the device, in batches of one size, so that nothing is compiled anew when there are more of them.

    The batches are dealt out in shares that are worked through side by side.
    """

    shares: tuple  # each a list of (number of the condition, batch (b, d), how many of its points are real)
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
        batch = BATCH if jax.default_backend() == "cpu" else DEVICE_BATCH
        return cls(problem, parameters, mode, batch), theta

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
        done = [self._values[name](theta, batch) for batch, _ in self._batches(name, points, theta.dtype)]
        return np.concatenate(done)[: len(points)]

    @x64
    def mean_squares(self, theta: jax.Array, points: PointSets) -> np.ndarray:
        """The mean square of every condition, in the order of the conditions, as float64."""
        return self.kernel(theta, self.device_points(points, theta.dtype))

    def loss(self, theta: jax.Array, points: PointSets, weights: Sequence[float]) -> float:
        """The weighted loss."""
        return weighted_loss(self.mean_squares(theta, points), np.asarray(weights))

    def device_points(self, points: PointSets, dtype) -> Batched:
        """Points as the kernels want them."""
        shares: list[list] = [[] for _ in range(streams.count())]
        for number, name in enumerate(self.problem.conditions):
            batches = self._batches(name, points[name], dtype)
            for share, cut in zip(shares, np.array_split(np.arange(len(batches)), len(shares)), strict=True):
                share += [(number, *batches[k]) for k in cut]
        return Batched(tuple(shares), np.array([len(points[name]) for name in self.problem.conditions]))

    def kernel(self, theta: jax.Array, batched: Batched) -> np.ndarray:
        """Mean squares at `theta`."""
        sums = np.zeros(len(batched.counts))
        for number, value in self._each(self._squares, theta, batched):
            sums[number] += float(value)
        return sums / batched.counts

    def gradient(self, theta: jax.Array, weights: np.ndarray, batched: Batched) -> jax.Array:
        """The gradient of the weighted loss."""
        total = np.zeros(theta.size)
        for number, slope in self._each(self._slopes, theta, batched):
            total += 0.5 * weights[number] / batched.counts[number] * np.asarray(slope, np.float64)
        return jnp.asarray(total.astype(theta.dtype))

    def _each(self, kernels: list[Callable], theta: jax.Array, batched: Batched) -> list[tuple[int, jax.Array]]:
        """The number of the condition and what its kernel makes of a batch, for all of them in the order of the batches."""

        def work(share):
            return [(number, kernels[number](theta, batch, real)) for number, batch, real in share]

        done = [pair for share in streams.each(work, batched.shares) for pair in share]
        return sorted(done, key=lambda pair: pair[0])  # stable: the same order whatever the shares

    @cached_property
    def _squares(self) -> list[Callable]:
        """Compiled, by condition: the sum of squares over a batch."""
        return [jax.jit(partial(self._batch_sum, name)) for name in self.problem.conditions]

    @cached_property
    def _slopes(self) -> list[Callable]:
        """Compiled, by condition: the gradient of the sum of squares over a batch."""
        return [jax.jit(jax.grad(partial(self._batch_sum, name))) for name in self.problem.conditions]

    @cached_property
    def _values(self) -> dict[str, Callable]:
        """Compiled, by condition: residuals at a batch."""
        return {
            name: jax.jit(jax.vmap(partial(self.at_point, name), in_axes=(None, 0))) for name in self.problem.conditions
        }

    def _batch_sum(self, name: str, theta: jax.Array, batch: jax.Array, real: jax.Array) -> jax.Array:
        values = jax.vmap(partial(self.at_point, name, theta))(batch)
        return jnp.sum(jnp.where(jnp.arange(batch.shape[0]) < real, values.astype(jnp.float64) ** 2, 0.0))

    def _batches(self, name: str, points: np.ndarray, dtype) -> list[tuple[jax.Array, jax.Array]]:
        """Points of one condition in equal batches; what is missing in the last one repeats a point and is not real."""
        count, dimension = points.shape
        if not count:
            raise ValueError(f"condition {name!r} has no points to evaluate its residual at; give it at least one")
        size = min(self.batch, count)
        missing = -count % size
        padded = np.concatenate([points, np.broadcast_to(points[:1], (missing, dimension))]).astype(dtype)
        real = np.full(len(padded) // size, size)
        real[-1] -= missing
        return [
            (jnp.asarray(p), jnp.asarray(n)) for p, n in zip(padded.reshape(-1, size, dimension), real, strict=True)
        ]


def weighted_loss(mean_squares: np.ndarray, weights: np.ndarray) -> float:
    """The loss of eq. 5, with the factor 1/2 of the text."""
    return 0.5 * float(np.dot(weights, mean_squares))
