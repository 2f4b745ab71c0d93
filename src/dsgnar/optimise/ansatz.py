"""The ansatz: the solution that a vector of parameters stands for.

With scales (`problem/scales.py`) the network N maps xi in [-1, 1]^d to numbers near one,

    u_j(x) = U_j N_j((x - c) / h),

and hard values and known parts are built around that, in the units of the problem. In a time march each interval has a
network of its own, whose time runs from -1 to 1 over the interval: points then carry the centre and the inverse half-width
of their interval behind their coordinates, so that all intervals share their compiled kernels.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

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

    def network(self, theta: Float[Array, " parameters"], place: Float[Array, " 2"] | None = None) -> Callable:
        """The solution `x -> u`, hard constraints included; `place` is its time interval."""
        inner, scales = self.parameters.network(theta), self.scales
        if scales is None:
            return self.problem.constrained(inner)
        domain = self.problem.domain
        time = None if domain.time is None else domain.index(domain.time)
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

    def place(self, x: Float[Array, " more"]) -> Float[Array, " 2"] | None:
        """The time interval that a point carries, if points do."""
        dimension = self.problem.domain.dimension
        return x[dimension : dimension + 2] if self.local else None

    def target(self, x: Float[Array, " more"]) -> Float[Array, ""] | None:
        """The value that a residual is to take at a point, if the point carries one."""
        known = self.problem.domain.dimension + 2 * self.local
        return None if x.shape[0] == known else x[known]

    def precision(self, x: Float[Array, " more"]) -> Float[Array, ""] | None:
        """By what the residual of a measurement is multiplied, since its noise is smaller or larger than others'."""
        known = self.problem.domain.dimension + 2 * self.local
        return None if x.shape[0] <= known + 1 else x[known + 1]

    def size(self, condition: str) -> float:
        """The size of a condition, by which its residual is divided."""
        return 1.0 if self.scales is None else self.scales.conditions[list(self.problem.conditions).index(condition)]
