"""Singular parts that a statement implies, found and added to the network (`Problem.implied`).

Where conditions do not fit each other, at a wall and the first instant (`layers.py`, `shape_layers.py`) or at the corners of
a rectangle (`wedges.py`; of a fluid, `flow.py`), where initial values or their slopes jump (`breaks.py`), and where a source
sets in on a part of a rod (`onsets.py`), a solution is singular, and no network follows it. Its singular part is known.
"""

import inspect
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import replace
from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dsgnar.calculus.precision import x64
from dsgnar.problem.breaks import initial_breaks
from dsgnar.problem.corners import Point, Start
from dsgnar.problem.domain import Box
from dsgnar.problem.flow import corner_flows
from dsgnar.problem.jumps import planes, switches
from dsgnar.problem.layers import BEGIN, SMALLEST, initial_layers
from dsgnar.problem.onsets import onsets, switched_layers
from dsgnar.problem.problem import Problem
from dsgnar.problem.scales import Scales
from dsgnar.problem.shape_layers import shape_layers
from dsgnar.problem.wedges import wedges

SLIGHT = 0.02  # a part over the size of its unknown that a rough solution may leave out
LARGEST = 32.0  # a part over the size of its unknown at the far end of the box; where it is larger, other terms take over


def with_singular_parts(problem: Problem, scales: Scales) -> Problem:
    """The problem with the singular parts that it implies; itself where there are none, or they are found already."""
    return problem if problem.implied else with_parts(problem, singular_parts(problem, scales))


def with_parts(problem: Problem, parts: Mapping[str, Callable]) -> Problem:
    """The problem with these singular parts; itself where there are none."""
    if not parts:
        return problem
    having = copy(problem)  # not made anew: the statement has been checked
    object.__setattr__(having, "implied", parts)
    object.__setattr__(having, "_stated", problem)
    return having


def slight(problem: Problem, scales: Scales, points: Float[np.ndarray, "n d"]) -> bool:
    """Whether the singular parts are small at all of these points, against the sizes of their unknowns."""
    sizes = dict(zip(problem.unknowns, scales.unknowns, strict=True))
    at = dict(zip(problem.domain.axes, jnp.asarray(points).T, strict=True))
    largest = lambda part: float(jnp.max(jnp.abs(jax.vmap(lambda at: part(**at))(at))))
    return all(largest(part) <= SLIGHT * sizes[name] for name, part in problem.implied.items())


@lru_cache(maxsize=8)
@x64
def singular_parts(problem: Problem, scales: Scales) -> dict[str, Callable]:
    """The singular part of every unknown that has one, a function of all axes."""
    domain, out = problem.domain, {}
    if problem.inverse or not domain.space or (domain.shaped and domain.time is None):
        return {}
    for unknown, size in zip(problem.unknowns, scales.unknowns, strict=True):
        if unknown not in problem.hard and unknown not in problem.known:
            if domain.time is None:
                part = _at_corners(problem, unknown, size)
            elif domain.shaped:
                part = shape_layers(Start(problem, unknown), size)
            else:
                start = Start(problem, unknown)
                own = initial_breaks(start, size, BEGIN), onsets(start, size, BEGIN, planes(problem, scales))
                own = *own, switched_layers(start, size, BEGIN, switches(problem, scales))
                part = _together(initial_layers(start, size), *own)
            if part is not None:
                out[unknown] = _named(domain, part)
    return out | {name: _named(domain, part) for name, part in _of_a_flow(problem, scales).items() if name not in out}


def _of_a_flow(problem: Problem, scales: Scales) -> dict[str, Callable[[Point], Array]]:
    """The singular parts of velocities and a pressure at the corners of a rectangle; nothing where there are none."""
    names, flows = corner_flows(problem) or ((), [])
    if not names or any(name in problem.hard or name in problem.known for name in names):
        return {}
    sizes = dict(zip(problem.unknowns, scales.unknowns, strict=True))
    speed, side = max(sizes[name] for name in names[:2]), max(float(np.ptp(b)) for b in problem.domain.bounds)
    there = [flow for flow in flows if SMALLEST * speed < abs(flow.strength) * side <= LARGEST * speed]
    parts = {name: _together(*(partial(flow, k) for flow in there)) for k, name in enumerate(names)}
    return {name: part for name, part in parts.items() if part is not None}


def _together(*parts: Callable[[Point], Array] | None) -> Callable[[Point], Array] | None:
    """The sum of those that there are."""
    there = [part for part in parts if part is not None]
    return (lambda x: sum((part(x) for part in there), start=jnp.zeros(()))) if there else None


def _at_corners(problem: Problem, unknown: str, size: float) -> Callable[[Point], Array] | None:
    """The sum of the singular parts at the corners of a rectangle; None where there are none."""
    kept = []
    for wedge, sizes in wedges(problem, unknown):
        worth = [SMALLEST * size < largest <= LARGEST * size for largest in sizes]
        if any(worth):
            kept.append(replace(wedge, terms=tuple(c if w else 0.0 for c, w in zip(wedge.terms, worth, strict=True))))
    return _together(*kept)


def _named(domain: Box, part: Callable[[Point], Array]) -> Callable:
    """A function of a point as one of coordinates by name, evaluated in float64."""

    def value(**coordinates):
        return part(jnp.stack([jnp.asarray(coordinates[axis], jnp.float64) for axis in domain.axes]))

    named = [inspect.Parameter(axis, inspect.Parameter.KEYWORD_ONLY) for axis in domain.axes]
    value.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]
    return value
