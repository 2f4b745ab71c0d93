"""The ansatz: the solution that a vector of parameters stands for.

With scales (`problem/scales.py`) the network N maps xi in [-1, 1]^d to numbers near one,

    u_j(x) = U_j N_j((x - c) / h),

and hard values and known parts are built around that, in the units of the problem. In a time march each interval has a
network of its own, whose time runs from -1 to 1 over the interval: points then carry the centre and the inverse half-width
of their interval behind their coordinates, so that all intervals share their compiled kernels.

Where a problem in one variable begins with known values (`solving/beginning.py`), they hold exactly: with the derivatives
u_0, u_1, .. below order k at the beginning of an interval of length L, s = (xi + 1)/2 and w = s/(1 + r s),

    u = c_0 + c_1 w + .. + c_(k-1) w^(k-1) + w^k V N,

whose c_i are such that the derivatives are right. V is the size of what is added in that interval, and 1/r the share of the
interval after which the beginning is forgotten. Points carry c, V and r of every unknown, and the size of every equation in
the interval.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from dsgnar.networks.parameters import Parameters
from dsgnar.problem import Problem
from dsgnar.problem.scales import Scales


@dataclass(frozen=True, eq=False)
class Ansatz:
    """A problem's unknowns as functions of `theta` and a point."""

    problem: Problem
    parameters: Parameters
    scales: Scales | None = None  # None: coordinates and values enter and leave the network as they are
    local: bool = False  # whether points carry their time interval
    orders: tuple[int, ...] = ()  # of the unknowns, where points also carry how an interval begins

    def network(self, theta: Float[Array, " parameters"], place: Float[Array, " place"] | None = None) -> Callable:
        """The solution `x -> u`, hard constraints included; `place` is its time interval."""
        inner, scales = self.parameters.network(theta), self.scales
        if scales is None:
            return self.problem.constrained(inner)
        domain = self.problem.domain
        time = None if domain.time is None else domain.index(domain.time)
        if self.orders and place is not None:
            return self._begun(inner, place)
        sizes = jnp.asarray(scales.unknowns, theta.dtype)
        return self.problem.constrained(lambda x: sizes * inner(scales.inward(x, place, time)))

    @cached_property
    def values(self) -> Callable:
        """Compiled: the unknowns at points, which carry their time interval if points do."""
        one = lambda theta, x: self.network(theta, self.place(x))(self.coordinates(x))
        return jax.jit(jax.vmap(one, in_axes=(None, 0)))

    def coordinates(self, x: Float[Array, " more"]) -> Float[Array, " d"]:
        """The coordinates of a point."""
        return x[: self.problem.domain.dimension]

    @cached_property
    def carried(self) -> int:
        """How many numbers points carry about their time interval: centre and inverse half-width first."""
        begun = sum(self.orders) + 2 * len(self.orders) + len(self.problem.conditions) if self.orders else 0
        return 2 + begun if self.local else 0

    def place(self, x: Float[Array, " more"]) -> Float[Array, " place"] | None:
        """What a point carries about its time interval, if points do."""
        dimension = self.problem.domain.dimension
        return x[dimension : dimension + self.carried] if self.local else None

    def target(self, x: Float[Array, " more"]) -> Float[Array, ""] | None:
        """The value that a residual is to take at a point, if the point carries one."""
        known = self.problem.domain.dimension + self.carried
        return None if x.shape[0] == known else x[known]

    def precision(self, x: Float[Array, " more"]) -> Float[Array, ""] | None:
        """By what the residual of a measurement is multiplied, since its noise is smaller or larger than others'."""
        known = self.problem.domain.dimension + self.carried
        return None if x.shape[0] <= known + 1 else x[known + 1]

    def size(self, condition: str) -> float:
        """The size of a condition, by which its residual is divided."""
        return 1.0 if self.scales is None else self.scales.conditions[list(self.problem.conditions).index(condition)]

    def stretch(self, condition: str, place: Any) -> Any:
        """By what its residual is multiplied besides; `place`: what points of an interval carry, in the last axis."""
        if not self.orders or place is None:
            return 1.0
        return place[..., self.carried - len(self.problem.conditions) + list(self.problem.conditions).index(condition)]

    def _begun(self, inner: Callable, place: Float[Array, " place"]) -> Callable:
        """Unknowns that begin with given values."""

        def begun(x: Float[Array, " 1"]) -> Float[Array, " unknowns"]:
            xi = (x - place[0]) * place[1]
            raw, s, at, out = inner(xi), (xi[0] + 1) / 2, 2, []
            for j, order in enumerate(self.orders):
                size, rate = place[at + order], place[at + order + 1]
                w = s / (1 + rate * s)
                value = size * raw[j]
                for i in reversed(range(order)):
                    value = place[at + i] + w * value
                out.append(value)
                at += order + 2
            return jnp.stack(out)

        return begun
