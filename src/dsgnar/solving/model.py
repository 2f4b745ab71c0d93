"""A problem with a network for its unknowns, on a time axis that may be cut into intervals."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import jax
import numpy as np

from dsgnar.calculus.precision import DTYPES, Precision, x64
from dsgnar.networks import MLP, Architecture, Inputs, Siren, begun_at, cast, check_network
from dsgnar.networks.composed import compose, shared
from dsgnar.networks.holes import Hole
from dsgnar.networks.parameters import Parameters
from dsgnar.networks.singular import Corner, cornered
from dsgnar.optimise.residuals import Residuals
from dsgnar.problem import Problem
from dsgnar.problem.jumps import kinks
from dsgnar.problem.region import Region
from dsgnar.problem.scales import Scales
from dsgnar.problem.shape_corners import shape_corners
from dsgnar.problem.singular import with_singular_parts
from dsgnar.solving.forecast import orders
from dsgnar.solving.march import Intervals, March
from dsgnar.solving.sources import followed
from dsgnar.solving.spectrum import SLOWEST, begin_with
from dsgnar.solving.survey import survey

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
        network = default_network(problem, scales) if network is None else network
        problem = problem if scales is None else with_singular_parts(problem, scales)
        march = March.of(problem, intervals)
        built = build(network, problem, precision, seed, scales=scales)
        cut, begun = problem.domain.time is not None and intervals != 1, orders(problem, scales)
        local = scales is not None and (cut or bool(begun))
        residuals, theta = Residuals.of(problem, built, scales=scales, local=local, orders=begun)
        return cls(problem, network, residuals, march), np.asarray(theta)

    def place(self, k: int) -> tuple[float, ...]:
        """Centre and inverse half-width of a time interval, and how it begins where that is built in."""
        begin, end = self.march.interval(k)
        return (begin + end) / 2, 2 / (end - begin), *(self.march.begun[k] if self.march.begun else ())

    def fresh(self, precision: Precision, seed: int, interval: int, share: float = 1.0) -> np.ndarray | None:
        """Other first parameters, for a later interval or for a `share` of the time; a person's own network has none."""
        if not isinstance(self.network, Architecture):
            return None
        scales = self.residuals.ansatz.scales
        network = self.network if scales is None else slower(self.network, self.problem, share)
        return np.asarray(Parameters.of(build(network, self.problem, precision, seed, interval, scales))[1])


def default_network(problem: Problem, scales: Scales | None) -> Architecture:
    """Small for functions of one variable, and large enough for the problems of the development set in several.

    With four layers of 30 all but the hardest of them reached 1e-6 in single precision; three of 12 hold a solution of
    ordinary differential equations over an interval of time to 1e-12 in double. In one variable, units that start all over
    the interval find boundary layers; in several no difference was seen on boxes. Solutions that oscillate are given sines
    that vary as fast (`survey.py`): from others they were not found at all. On shapes in the plane (Poisson2d-CG of
    `suite/pinnacle/`, seed 0) four layers of 30 ended at 1.8e-2, of 40, spread out, at 8e-4, and of 30 or 40 that see the
    holes of the shape (`networks/holes.py`) at 2e-5. With time as a third axis iterations of larger ones took too long.
    Planes at which equations jump are further inputs (`networks/kinks.py`).
    """
    seen = None if scales is None else survey(problem, scales)
    bent = kinks(problem, scales)
    if seen is not None and seen.fast:
        return _sines(problem, scales, seen.begin_with())
    if holes(problem, scales):
        return MLP(widths=(30,) * 4, spread=2.0, holes=True, kinks=bent)
    if problem.domain.shaped and problem.domain.dimension == 2:
        return MLP(widths=(40,) * 4, spread=2.0, kinks=bent)
    single = problem.domain.dimension == 1
    return MLP(widths=(12,) * 3, spread=2.0, kinks=bent) if single else MLP(widths=(30,) * 4, kinks=bent)


def other_network(problem: Problem, scales: Scales, first: Network) -> Architecture:
    """A network of another kind, for a problem that the default one did not solve.

    Sines after the tanh network: a Poisson equation in three variables ended at 1.1e-4 with it and at 8e-9 with them (seed
    10), heat in two and time at 2e-8 and 7e-7 (seed 1), so neither is the better one for all. Where a survey sees nothing
    they are as fast as the sources (`sources.py`).
    """
    if isinstance(first, Siren):
        bent = kinks(problem, scales)
        single = problem.domain.dimension == 1
        return MLP(widths=(20,) * 3, spread=2.0, kinks=bent) if single else MLP(widths=(30,) * 4, kinks=bent)
    seen, given = survey(problem, scales), followed(problem, scales)
    if seen is not None:
        return _sines(problem, scales, seen.begin_with())
    slow = (2 * SLOWEST,) * problem.domain.dimension
    return _sines(problem, scales, slow if given is None else tuple(map(max, slow, begin_with(given))))


def _sines(problem: Problem, scales: Scales | None, frequencies: tuple[float, ...]) -> Siren:
    """Layers of 45 in several variables: of 30 were too few for waves in a cavity and a packet in a trap (docs/notes.md)."""
    widths = (20,) * 3 if problem.domain.dimension == 1 else (45,) * 3
    return Siren(widths, frequencies=frequencies, holes=bool(holes(problem, None)), kinks=kinks(problem, scales))


def slower(network: Architecture, problem: Problem, share: float) -> Architecture:
    """The network for a share of the time, which it sees stretched to the same length: it varies less there."""
    if not isinstance(network, Siren) or network.frequencies is None or problem.domain.time is None:
        return network
    time = problem.domain.index(problem.domain.time)
    at_least = min(SLOWEST, network.frequencies[time])
    changed = tuple(max(at_least, f * share) if i == time else f for i, f in enumerate(network.frequencies))
    return replace(network, frequencies=changed)


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
    inputs = Inputs(bounds, time_axis, tuple(domain.index(a) for a in problem.periodic), holes(problem, scales))
    key = jax.random.key(seed)
    key = jax.random.fold_in(key, interval) if interval else key
    if isinstance(network, Architecture):
        module = network.build(inputs, count, key=key, dtype=dtype) if count else None
        plain = scales is None or problem.hard or problem.known or orders(problem, scales)
        module = module if plain or scales is None else begun_at(module, scales.levels)
        module = None if module is None else cornered(module, corners(problem, scales), dtype)
    else:
        module = cast(network, dtype)
        check_network(module, domain.dimension, count, dtype)
    return compose(module, problem, inputs, scales, key, dtype)


def corners(problem: Problem, scales: Scales | None) -> tuple[Corner, ...]:
    """The singular corners of a shape in the coordinates of its network."""
    domain, out = problem.domain, []
    if scales is None or not isinstance(domain, Region):
        return ()
    for found in _corners(problem):
        unit, ((x, wide), (y, high)) = domain.shape.size / 2, scales.axes[:2]
        centre = (found.place[0] - x) / wide, (found.place[1] - y) / high
        about = found.middle, found.opening, found.powers, found.logarithms, found.sine, found.reach / unit
        out.append(Corner(shared(problem).index(found.unknown), centre, (wide / unit, high / unit), *about))
    return tuple(out)


_corners = lru_cache(maxsize=8)(shape_corners)


def holes(problem: Problem, scales: Scales | None) -> tuple[Hole, ...]:
    """The holes of a domain in the coordinates of its network."""
    if not isinstance(problem.domain, Region):
        return ()
    shape, out = problem.domain.shape, []
    axes = [(0.0, 1.0)] * len(shape.axes) if scales is None else scales.axes[: len(shape.axes)]
    for middle, radius in problem.domain.holes:
        place = tuple((c - centre) / half for c, (centre, half) in zip(middle, axes, strict=True))
        out.append(Hole(place, tuple(half / radius for _, half in axes), shape.size / radius))
    return tuple(out)
