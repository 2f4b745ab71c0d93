"""A problem with a network for its unknowns, on a time axis that may be cut into intervals."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import numpy as np

from dsgnar.calculus.precision import DTYPES, Precision, x64
from dsgnar.networks import MLP, Architecture, Inputs, Siren, cast, check_network
from dsgnar.networks.parameters import Parameters
from dsgnar.optimise.residuals import Residuals
from dsgnar.problem import Problem
from dsgnar.solving.march import Intervals, March

Network = Architecture | Callable


@dataclass(frozen=True, eq=False)
class Model:
    """What a solution is made of, beside its parameters."""

    problem: Problem
    network: Network
    residuals: Residuals
    march: March

    @classmethod
    @x64
    def of(
        cls, problem: Problem, network: Network | None, precision: Precision, seed: int = 0, intervals: Intervals = 1
    ) -> tuple["Model", np.ndarray]:
        """The model, and the parameters with which its network starts."""
        network = default_network(precision) if network is None else network
        march = March.of(problem, intervals)
        residuals, theta = Residuals.of(problem, build(network, problem, precision, seed))
        return cls(problem, network, residuals, march), np.asarray(theta)

    @cached_property
    def values(self) -> Callable:
        """Compiled, for all solutions that a run looks at: the unknowns at points, for the parameters of one network."""
        return jax.jit(lambda theta, x: jax.vmap(self.residuals.network(theta))(x))

    def fresh(self, precision: Precision, seed: int, interval: int) -> np.ndarray | None:
        """Other first parameters, for a later interval; a person's own network has none."""
        if not isinstance(self.network, Architecture):
            return None
        return np.asarray(Parameters.of(build(self.network, self.problem, precision, seed, interval))[1])


def default_network(precision: Precision) -> Architecture:
    """Small enough for a laptop; the paper's for single precision, and its smaller one for double."""
    return MLP() if precision == "single" else Siren()


def build(network: Network, problem: Problem, precision: Precision, seed: int, interval: int = 0) -> Any:
    """A network with its first parameters."""
    domain, dtype = problem.domain, DTYPES[precision]
    if isinstance(network, Architecture):
        time_axis = None if domain.time is None else domain.index(domain.time)
        inputs = Inputs(domain.bounds, time_axis, tuple(domain.index(a) for a in problem.periodic))
        key = jax.random.key(seed)
        key = jax.random.fold_in(key, interval) if interval else key
        return network.build(inputs, len(problem.unknowns), key=key, dtype=dtype)
    module = cast(network, dtype)
    check_network(module, domain.dimension, len(problem.unknowns), dtype)
    return module
