"""A problem with a network for its unknowns, on a time axis that may be cut into intervals."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from dsgnar.calculus.precision import DTYPES, Precision, x64
from dsgnar.networks import MLP, Architecture, Inputs, cast, check_network
from dsgnar.networks.composed import compose, shared
from dsgnar.networks.parameters import Parameters
from dsgnar.optimise.residuals import Residuals
from dsgnar.problem import Problem
from dsgnar.problem.scales import Scales
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
        cls,
        problem: Problem,
        network: Network | None,
        precision: Precision,
        seed: int = 0,
        intervals: Intervals = 1,
        scales: Scales | None = None,
    ) -> tuple["Model", np.ndarray]:
        """The model, and the parameters with which its network starts."""
        network = default_network(problem) if network is None else network
        march = March.of(problem, intervals)
        built = build(network, problem, precision, seed, scales=scales)
        cut = problem.domain.time is not None and intervals != 1
        residuals, theta = Residuals.of(problem, built, scales=scales, local=scales is not None and cut)
        return cls(problem, network, residuals, march), np.asarray(theta)

    def place(self, k: int) -> tuple[float, float]:
        """Centre and inverse half-width of a time interval."""
        begin, end = self.march.interval(k)
        return (begin + end) / 2, 2 / (end - begin)

    def fresh(self, precision: Precision, seed: int, interval: int) -> np.ndarray | None:
        """Other first parameters, for a later interval; a person's own network has none."""
        if not isinstance(self.network, Architecture):
            return None
        scales = self.residuals.ansatz.scales
        return np.asarray(Parameters.of(build(self.network, self.problem, precision, seed, interval, scales))[1])


def default_network(problem: Problem) -> Architecture:
    """Small for functions of one variable, and large enough for the problems of the development set in several.

    With four layers of 30 all but the hardest of them reached 1e-6 in single precision; three of 12 hold a solution of
    ordinary differential equations over an interval of time to 1e-12 in double. In one variable, units that start all over
    the interval find boundary layers and oscillations; in several no difference was seen.
    """
    return MLP(widths=(12,) * 3, spread=2.0) if problem.domain.dimension == 1 else MLP(widths=(30,) * 4)


def build(
    network: Network,
    problem: Problem,
    precision: Precision,
    seed: int,
    interval: int = 0,
    scales: Scales | None = None,
) -> Any:
    """A network with its first parameters; with scales its coordinates all lie in [-1, 1]."""
    domain, dtype, count = problem.domain, DTYPES[precision], len(shared(problem))
    time_axis = None if domain.time is None else domain.index(domain.time)
    bounds = domain.bounds if scales is None else ((-1.0, 1.0),) * domain.dimension
    inputs = Inputs(bounds, time_axis, tuple(domain.index(a) for a in problem.periodic))
    key = jax.random.key(seed)
    key = jax.random.fold_in(key, interval) if interval else key
    if isinstance(network, Architecture):
        module = network.build(inputs, count, key=key, dtype=dtype) if count else None
    else:
        module = cast(network, dtype)
        check_network(module, domain.dimension, count, dtype)
    return compose(module, problem, inputs, scales, key, dtype)
