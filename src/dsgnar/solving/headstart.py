"""First parameters near a rough solution, for hard problems and for an attempt that follows one that failed.

From random parameters an attempt may end far from any solution: in a local minimum, or where u = 0 is the best it finds.
A rough solution in a linear space (`rough.py`) knows no such minima. A network is fitted to its values by a few iterations
of the same optimiser, with the target ratio of stage 1, and goes on from there with the equations.

Where a rough solution could be found in slices of time only, the first attempt begins like that. Else it is no first
choice: networks that were led there need more regularisation than those that found their own way (docs/method.md).
"""

import inspect
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from dsgnar.calculus.precision import DTYPES
from dsgnar.calculus.streams import stream
from dsgnar.optimise.weights import Reweighting
from dsgnar.problem import Problem
from dsgnar.problem.conditions import Condition
from dsgnar.problem.data import data
from dsgnar.problem.domain import Box, Interior
from dsgnar.problem.sampling import sample
from dsgnar.problem.scales import estimate
from dsgnar.solving.correction import Correction
from dsgnar.solving.rough import NEAR
from dsgnar.solving.survey import rough_solution, seen_in_slices_only

if TYPE_CHECKING:
    from dsgnar.solving.context import Context

POINTS = 2**13
ITERATIONS = 30
TAKES = 30.0  # seconds, at most or so: no head start where fewer are left


def at_once(context: "Context") -> np.ndarray | None:
    """Parameters for a first attempt at a hard problem; None for others."""
    scales, few = context.settings.scales, context.settings.max_seconds < TAKES
    if few or scales is None or not _can_be_found(context.problem) or not seen_in_slices_only(context.problem, scales):
        return None
    return near_rough_solution(context, context.problem.domain, 0)


def near_rough_solution(context: "Context", box: Box, tries: int) -> np.ndarray | None:
    """Parameters for a part of the domain that are fitted to a rough solution there; None where none is known."""
    problem, scales, settings = context.problem, context.settings.scales, context.settings
    if scales is None or not _can_be_found(problem):
        return None
    found = rough_solution(problem, scales)
    if found is None or not found[1] <= NEAR:
        return None
    values = _fitted_values(problem, box, found[0], settings.seed, tries)
    sizes = dict(zip(problem.unknowns, scales.unknowns, strict=True))
    resolved = replace(settings, precision="double", intervals=1, quantity=None, scales=estimate(values, sizes))
    inner = type(context).of(values, context.model.network, resolved)
    fresh = inner.model.fresh("double", settings.seed, 1000 * tries)
    if fresh is None:
        return None
    state = inner.start()
    optimiser = replace(inner.optimisers[0], reweighting=Reweighting(0.0, 0.0))
    iterate, points = replace(state.iterate, theta=fresh), inner.collocation.active(state)
    for _ in range(ITERATIONS):
        iterate, _ = optimiser.iterate(iterate, points, settings.method.targets[0])
    return np.asarray(iterate.theta, DTYPES[settings.precision])


def _can_be_found(problem: Problem) -> bool:
    """Whether a rough solution is what a network is to begin with: not beside singular parts, which no space holds."""
    plain = not (problem.implied or problem.inverse or problem.domain.shaped)
    return plain and problem.domain.dimension > 1


def _fitted_values(problem: Problem, box: Box, rough: Correction, seed: int, tries: int) -> Problem:
    """A problem without equations: a network is to have the values of a rough solution."""
    points = sample(Interior(), box, POINTS, stream(seed, "head start", tries))
    values = rough.at(points)
    at = dict(zip(box.axes, points.T, strict=True))
    conditions = {name: _value(name, at, column) for name, column in zip(problem.unknowns, values.T, strict=True)}
    return Problem(box, problem.unknowns, conditions, periodic=problem.periodic)


def _value(name: str, at: dict[str, Float[np.ndarray, " n"]], values: Float[np.ndarray, " n"]) -> Condition:
    """One unknown has given values."""

    def unknown(**values):
        return values[name]

    parameter = inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    unknown.__signature__ = inspect.Signature([parameter])  # type: ignore[attr-defined]
    return data(unknown, at, values)
