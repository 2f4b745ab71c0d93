"""A linear space for errors of a solution with sharp fronts: polynomials times directions in which its network can move.

Polynomials on all of a domain do not resolve a front, and an error that sits there is not seen by them. The network does
resolve it. The derivatives of a solution along random directions in the space of its parameters, g_j, vary where the
solution does; products g_j T_k with polynomials of low degree are no such derivatives, so that a residual which the network
cannot make smaller is still seen.
"""

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from dsgnar.calculus.jets import Key, MultiIndex, Truncation
from dsgnar.calculus.spaces import Points, Polynomials
from dsgnar.calculus.streams import stream
from dsgnar.optimise.residuals import Residuals
from dsgnar.problem.domain import Box
from dsgnar.problem.fields import Requests, evaluate
from dsgnar.problem.scales import intervals
from dsgnar.solving.evaluation import in_rows, located
from dsgnar.solving.model import Model

DIRECTIONS = 15
REMEMBERED = 8  # sets of points


class Tangents:
    """Derivatives of a solution, and of their changes along directions of its parameters."""

    def __init__(self, residuals: Residuals, keys: Iterable[tuple[str, Key]]):
        self.residuals = residuals
        domain = residuals.problem.domain
        seconds = [Truncation.unit(domain.dimension, domain.index(axis), 2) for axis in domain.space]
        tops = [top for _, key in keys for top in (seconds if isinstance(key, str) else [key])]  # a word: the Laplacian
        self.orders = sorted({low for top in tops for low in below(top)})
        self._kernel = jax.jit(jax.vmap(self._changes, (None, None, 0)))

    def __call__(self, theta: np.ndarray, directions: np.ndarray, points: np.ndarray) -> Float[np.ndarray, "n j orders"]:
        """For direction j, of the unknowns in turn."""
        wide = jnp.asarray(theta, jnp.float64), jnp.asarray(directions)
        found = in_rows(lambda x: self._kernel(*wide, x), points)
        j = np.arange(len(directions))
        return found[:, j, j % found.shape[2]]

    def _changes(self, theta: jax.Array, directions: jax.Array, x: jax.Array) -> jax.Array:
        here = lambda parameters: self._derivatives(parameters, x)
        return jax.vmap(lambda v: jax.jvp(here, (theta,), (v,))[1])(directions)

    def _derivatives(self, theta: jax.Array, x: jax.Array) -> jax.Array:
        problem, ansatz = self.residuals.problem, self.residuals.ansatz
        requests: Requests = {name: frozenset(self.orders) for name in problem.unknowns}
        network, point = ansatz.network(theta, ansatz.place(x)), ansatz.coordinates(x)
        fields = evaluate(network, point, problem.outputs, requests, problem.domain, self.residuals.mode)
        rows = [[jnp.asarray(fields[name]._lookup(key)) for key in self.orders] for name in problem.unknowns]
        return jnp.stack([jnp.stack(row) for row in rows])


@dataclass(frozen=True, eq=False)
class Own:
    """T_k and g_j T_k on a time interval, by the degree of T_k."""

    tangents: Tangents
    model: Model
    interval: int
    theta: np.ndarray
    directions: Float[np.ndarray, "j parameters"]
    polynomials: Polynomials
    _known: dict[bytes, dict[MultiIndex, np.ndarray]] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(cls, size: int, periodic: tuple[bool, ...], tangents: Tangents, model: Model, k: int, theta, seed: int) -> "Own":
        """About `size` functions for the solution with parameters `theta` on interval k."""
        directions = stream(seed, "tangents").standard_normal((DIRECTIONS, theta.size))
        polynomials = Polynomials.of(max(2, size // (DIRECTIONS + 1)), periodic)
        return cls(tangents, model, k, theta, directions, polynomials)

    @property
    def size(self) -> int:
        return self.polynomials.size * (len(self.directions) + 1)

    @property
    def box(self) -> Box:
        return self.model.march.domain(self.model.problem.domain, self.interval)

    def derivative(self, xi: Points, order: MultiIndex) -> Float[np.ndarray, "n size"]:
        changes, out = self._changes(xi), np.zeros((len(xi), self.polynomials.size, len(self.directions) + 1))
        for low in below(order):
            ways = math.prod(map(math.comb, order, low))
            rest = tuple(n - b for n, b in zip(order, low, strict=True))
            out += ways * self.polynomials.derivative(xi, rest)[:, :, None] * changes[low][:, None, :]
        return out.reshape(len(xi), -1)

    def _changes(self, xi: Points) -> dict[MultiIndex, Float[np.ndarray, "n j"]]:
        """1 and g_j with their derivatives, in the coordinates of the space."""
        key = xi.tobytes()
        if key not in self._known:
            if len(self._known) > REMEMBERED:
                self._known.clear()
            centre, half = np.array(intervals(self.box)).T
            found = self.tangents(self.theta, self.directions, located(self.model, centre + half * xi, self.interval))
            one = np.ones((len(xi), 1))
            self._known[key] = {
                order: np.hstack([one * (sum(order) == 0), found[:, :, i] * np.prod(half ** np.array(order))])
                for i, order in enumerate(self.tangents.orders)
            }
        return self._known[key]


def below(top: MultiIndex) -> Iterable[MultiIndex]:
    """All orders up to this one along every axis."""
    return itertools.product(*(range(n + 1) for n in top))
