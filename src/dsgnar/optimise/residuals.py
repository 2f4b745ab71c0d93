"""Residuals of all conditions, their mean squares and the weighted loss (eqs. 5 and 9 of the paper).

For condition m with points X_m, weight w_m and residual F_m,

    mean square   s_m = 1/|X_m| sum_{x in X_m} F_m(u_theta, x)^2,        loss   L = 1/2 sum_m w_m s_m.

Points are worked through batch by batch, so memory does not grow with their number. Residuals are computed in the precision
of `theta`; their squares are summed in float64, so that the loss itself carries no rounding noise of its own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from dsgnar.calculus import choices, devices, threads
from dsgnar.calculus.devices import Devices, Home, Numbers
from dsgnar.calculus.precision import x64
from dsgnar.networks import check_network
from dsgnar.networks.parameters import Parameters
from dsgnar.optimise.ansatz import Ansatz
from dsgnar.problem import Problem
from dsgnar.problem.fields import Mode, supports_taylor
from dsgnar.problem.scales import Scales

# A further column holds the value that the residual is to take at a point (time marching, data), and one more the weight of
# its difference (data of different noise).
Points = Float[np.ndarray, "n dimension"]
PointSets = dict[str, Points]
Theta = Float[Array, " d"]
PerCondition = Float[np.ndarray, " conditions"]
PIECE = 128  # points whose gradients are summed at once
TOGETHER = 16  # batches whose gradients processes exchange at once: bounds memory
Batch = tuple[Float[Array, "b dimension"], Int[Array, ""]]  # points, and how many of them are real


@dataclass(frozen=True, eq=False)
class Batched:
    """Points on the devices, in batches of one size, so that nothing is compiled anew when there are more of them.

    The batches are dealt out in shares that are worked through side by side, each on a device. Those of other processes are
    not here.
    """

    shares: tuple[list[tuple[int, Float[Array, "b dimension"], Int[Array, ""]]], ...]  # number of the condition, batch
    homes: tuple[Home, ...]  # the device of each share
    places: tuple[list[int], ...]  # of the batches of each share among all
    conditions: Numbers  # of all batches, condition after condition
    counts: Int[np.ndarray, " conditions"]  # points of each condition


@dataclass(frozen=True, eq=False)
class Residuals:
    """The residuals of a problem for a network of given structure, as functions of `theta`."""

    problem: Problem
    parameters: Parameters
    mode: Mode
    ansatz: Ansatz
    batch: int = field(default_factory=lambda: choices.here().batch)
    devices: Devices = field(default_factory=devices.current)

    @classmethod
    @x64
    def of(
        cls,
        problem: Problem,
        network: Callable,
        mode: Mode | None = None,
        scales: Scales | None = None,
        local: bool = False,
        orders: tuple[int, ...] = (),
    ) -> tuple["Residuals", Theta]:
        """Residuals for `network`, and its parameters. Taylor mode is used wherever the network allows it."""
        parameters, theta = Parameters.of(network)
        dimension = problem.domain.dimension
        check_network(network, dimension, len(problem.outputs), theta.dtype)
        if mode is None:
            whole = problem.constrained(network)
            mode = "taylor" if supports_taylor(whole, dimension, theta.dtype) else "nested"
        return cls(problem, parameters, mode, Ansatz(problem, parameters, scales, local, orders)), theta

    def network(self, theta: Theta, place: Float[Array, " place"] | None = None) -> Callable:
        """The solution `x -> u` that `theta` stands for, hard constraints included; `place` is its time interval."""
        return self.ansatz.network(theta, place)

    def at_point(self, name: str, theta: Theta, x: Float[Array, " dimension"]) -> Float[Array, ""]:
        """The residual at one point, over its size; a further entry of `x` is the value that it is to take there."""
        return self._traced[name](theta, x)

    @cached_property
    def _traced(self) -> dict[str, Callable]:
        """By condition: the residual at one point, traced once for all the kernels that it becomes part of."""
        return {name: jax.jit(partial(self._at_point, name), inline=True) for name in self.problem.conditions}

    def _at_point(self, name: str, theta: Theta, x: Float[Array, " dimension"]) -> Float[Array, ""]:
        ansatz = self.ansatz
        network, target = ansatz.network(theta, ansatz.place(x)), ansatz.target(x)
        wide = ansatz.scales is not None
        value = self.problem.residual(name, network, ansatz.coordinates(x), self.mode, wide)
        if wide:
            value = (value * (1 / ansatz.size(name)) * ansatz.stretch(name, ansatz.place(x))).astype(x.dtype)
        value, precision = value if target is None else value - target, ansatz.precision(x)
        return value if precision is None else precision * value

    @x64
    def vector(self, name: str, theta: Theta, points: Points) -> Float[np.ndarray, " n"]:
        """The residuals of one condition at points."""
        done = [self._values[name](theta, batch) for batch, _ in _batches(name, points, theta.dtype, self.batch)]
        return np.concatenate(done)[: len(points)]

    @x64
    def mean_squares(self, theta: Theta, points: PointSets) -> PerCondition:
        """The mean square of every condition, in the order of the conditions, as float64."""
        return self.kernel(theta, self.device_points(points, theta.dtype))

    def loss(self, theta: Theta, points: PointSets, weights: Sequence[float]) -> float:
        """The weighted loss."""
        return weighted_loss(self.mean_squares(theta, points), np.asarray(weights))

    def device_points(self, points: PointSets, dtype) -> Batched:
        """Points as the kernels want them."""
        homes = [home for home, _ in self.devices.dealt(0)]
        shares: list[list] = [[] for _ in homes]
        places: list[list[int]] = [[] for _ in homes]
        conditions: list[int] = []
        for number, name in enumerate(self.problem.conditions):
            batches = _batches(name, points[name], dtype, self.batch)
            for share, place, (home, cut) in zip(shares, places, self.devices.dealt(len(batches)), strict=True):
                share += [(number, *(devices.at(home, part) for part in batches[k])) for k in cut]
                place += [len(conditions) + int(k) for k in cut]
            conditions += [number] * len(batches)
        counts = np.array([len(points[name]) for name in self.problem.conditions])
        return Batched(tuple(shares), tuple(homes), tuple(places), np.array(conditions), counts)

    def kernel(self, theta: Theta, batched: Batched) -> PerCondition:
        """Mean squares at `theta`. Batches are summed in one order, however they are dealt out."""
        each, sums = np.zeros(len(batched.conditions)), np.zeros(len(batched.counts))
        for place, _, value in _each(self._squares, theta, batched):
            each[place] = float(value)
        for number, value in zip(batched.conditions, self.devices.team.total(each), strict=True):
            sums[number] += value
        return sums / batched.counts

    def gradient(self, theta: Theta, weights: PerCondition, batched: Batched) -> Theta:
        """The gradient of the weighted loss, batches summed in one order, however they are dealt out."""
        shares = 0.5 * np.asarray(weights)[batched.conditions] / batched.counts[batched.conditions]
        slopes = {place: slope for place, _, slope in _each(self._slopes, theta, batched)}
        total = np.zeros(theta.size)
        for cut in np.split(np.arange(len(shares)), range(TOGETHER, len(shares), TOGETHER)):
            each = np.zeros((len(cut), theta.size))
            for row, place in enumerate(cut):
                if place in slopes:
                    each[row] = shares[place] * np.asarray(slopes[place], np.float64)
            for slope in self.devices.team.total(each.ravel()).reshape(each.shape):
                total += slope
        return jnp.asarray(total.astype(theta.dtype))

    @cached_property
    def _squares(self) -> list[Callable]:
        """Compiled, by condition: the sum of squares over a batch."""
        return [jax.jit(partial(self._batch_sum, name)) for name in self.problem.conditions]

    @cached_property
    def _slopes(self) -> list[Callable]:
        """Compiled, by condition: the gradient of the sum of squares over a batch."""
        return [jax.jit(partial(_slope, partial(self._batch_sum, name))) for name in self.problem.conditions]

    @cached_property
    def _values(self) -> dict[str, Callable]:
        """Compiled, by condition: residuals at a batch."""
        return {
            name: jax.jit(jax.vmap(partial(self.at_point, name), in_axes=(None, 0))) for name in self.problem.conditions
        }

    def _batch_sum(
        self, name: str, theta: Theta, batch: Float[Array, "b dimension"], real: Int[Array, ""]
    ) -> Float[Array, ""]:
        values = jax.vmap(partial(self.at_point, name, theta))(batch)
        return jnp.sum(jnp.where(jnp.arange(batch.shape[0]) < real, values.astype(jnp.float64) ** 2, 0.0))


def _slope(batch_sum: Callable, theta: Theta, batch: Float[Array, "b dimension"], real: Int[Array, ""]) -> Theta:
    """The gradient of a batch's sum, piece by piece.

    Sums over thousands of points are split among threads, so that their last digits depend on how many there are.
    """
    size, slope = min(PIECE, len(batch)), jax.grad(batch_sum)
    padded = jnp.concatenate([batch, jnp.broadcast_to(batch[0], (-len(batch) % size, batch.shape[1]))])

    def add(total, piece):
        points, before = piece
        return total + slope(theta, points, real - before), None

    pieces = padded.reshape(-1, size, batch.shape[1]), jnp.arange(0, len(padded), size)
    return jax.lax.scan(add, jnp.zeros_like(theta), pieces)[0]


def weighted_loss(mean_squares: PerCondition, weights: PerCondition) -> float:
    """The loss of eq. 5, with the factor 1/2 of the text."""
    return 0.5 * float(np.dot(weights, mean_squares))


def _each(kernels: list[Callable], theta: Theta, batched: Batched) -> list[tuple[int, int, Array]]:
    """Place, number of the condition and what its kernel makes of a batch, for all of them here, by their places."""

    def work(share):
        home, batches, places = share
        there = devices.at(home, theta)
        return [
            (place, number, kernels[number](there, batch, real))
            for place, (number, batch, real) in zip(places, batches, strict=True)
        ]

    shares = list(zip(batched.homes, batched.shares, batched.places, strict=True))
    done = [triple for share in threads.each(work, shares) for triple in share]
    return sorted(done, key=lambda triple: triple[0])


def _batches(name: str, points: Points, dtype, most: int) -> list[Batch]:
    """Points of one condition in equal batches, and how many of each are real.

    What is missing in the last one repeats its first point. A mask keeps it out of sums, but reverse mode multiplies
    its derivative by zero, which does not silence one that is not finite: it must not come from another batch.
    """
    count, dimension = points.shape
    if not count:
        raise ValueError(f"condition {name!r} has no points to evaluate its residual at; give it at least one")
    size = min(most, count)
    missing = -count % size
    first = count + missing - size  # of the last batch
    padded = np.concatenate([points, np.broadcast_to(points[first], (missing, dimension))]).astype(dtype)
    real = np.full(len(padded) // size, size)
    real[-1] -= missing
    return [(jnp.asarray(p), jnp.asarray(n)) for p, n in zip(padded.reshape(-1, size, dimension), real, strict=True)]
