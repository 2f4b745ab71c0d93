"""How well a state satisfies its problem, on points that took no part in training. The worst time interval counts."""

import math
from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np

from dsgnar.problem.domain import Interior
from dsgnar.solving.coefficients import Inference
from dsgnar.solving.error import estimate
from dsgnar.solving.estimate import Estimate
from dsgnar.solving.inference import infer, marched, unfinished
from dsgnar.solving.state import RunState
from dsgnar.solving.stop import StopReason
from dsgnar.solving.verdict import FAILED, SAMPLE, Judged

if TYPE_CHECKING:
    from dsgnar.solving.context import Context

ACCURATE = 1e-6  # an estimated error that no further attempt is made for, unless it was asked for
NOTHING = 1e-8  # of the size of a condition: a residual of 1e-14 of it, which is rounding, is then 1e-6 of its terms
FEW, MOST = 0.02, 0.5  # residuals are concentrated where so few of the points have most of the sum of squares


def worst(context: "Context", state: RunState) -> tuple[float, ...]:
    """Root mean squares of residuals over the size of their conditions."""
    held = np.sqrt(context.residuals.kernel(jnp.asarray(state.iterate.theta), context.collocation.held_out(state)))
    place = np.array(context.collocation.at(state).place(state.interval)) if state.begun else None
    held = held / [context.residuals.ansatz.stretch(name, place) for name in context.problem.conditions]
    return tuple(map(float, held if state.worst is None else np.maximum(held, state.worst)))


def local(context: "Context", state: RunState) -> float:
    """The largest residual over the size of its terms in the interval alone, where that is known beforehand."""
    if not state.begun:
        return 0.0
    held = context.residuals.kernel(jnp.asarray(state.iterate.theta), context.collocation.held_out(state))
    return float(np.sqrt(np.max(held)))


def here(context: "Context", state: RunState) -> tuple[float, ...]:
    """Root mean squares of residuals over the size of their terms, in the interval that is being solved."""
    before = state.terms or _least(context, state)
    return tuple(judged.relative(size) for judged, size in zip(_judged(context, state), before, strict=True))


def _least(context: "Context", state: RunState) -> tuple[float, ...]:
    """What terms count for at least in a first part of the time: before a switch nothing may happen but rounding."""
    part = bool(state.times) and state.times[-1] < context.march.times[-1] and context.settings.scales is not None
    return tuple(NOTHING * context.residuals.ansatz.size(name) if part else 0.0 for name in context.problem.conditions)


def terms(context: "Context", state: RunState) -> tuple[float, ...]:
    """The size of the terms of every condition, the largest so far."""
    now = tuple(judged.terms for judged in _judged(context, state))
    return now if state.terms is None else tuple(map(max, now, state.terms))


def _judged(context: "Context", state: RunState) -> tuple[Judged, ...]:
    points, inside = context.collocation.held_out_points(state), context.collocation.inside(state, SAMPLE)
    return context.judge(state.iterate.theta, points, inside)


def relative(context: "Context", state: RunState) -> tuple[float, ...]:
    """The same, of the worst interval so far."""
    now = here(context, state)
    return now if state.relative is None else tuple(map(max, now, state.relative))


def concentrated(context: "Context", state: RunState) -> bool:
    """Whether most of the squared residual of an equation sits in few of its held-out points."""
    for name, points in context.collocation.held_out_points(state).items():
        if isinstance(context.problem.conditions[name].part, Interior):
            residual = context.residuals.vector(name, jnp.asarray(state.iterate.theta), points).astype(np.float64)
            squares = np.sort(residual**2)
            if squares[-round(FEW * len(squares)) :].sum() > MOST * squares.sum():
                return True
    return False


def unfitted(context: "Context", state: RunState, goal: float) -> bool:
    """Whether data differ from the solution by more than their noise."""
    measured = [k for k, c in enumerate(context.problem.conditions.values()) if c.measured is not None]
    return bool(measured) and max(here(context, state)[k] for k in measured) > goal


def estimated(context: "Context", state: RunState) -> Estimate | None:
    """The error where a run ends by it; looked at now and then, since an estimate costs as much as an iteration or more.

    Only where the loss has halved since it could last be looked at. Not in a march: the error at the end of one interval
    says little about that of the whole.
    """
    every, losses = context.settings.method.look_every, state.plan.losses
    look, stuck = state.iterate.iteration % every == 0, len(losses) > every and losses[-1] > 0.5 * losses[-1 - every]
    if context.settings.sought == 0 or not look or stuck or context.problem.inverse:
        return None
    if state.plan.stage == 1 or state.interval:
        return None
    if state.times and state.times[-1] < context.march.times[-1]:
        return None
    if max(here(context, state)) > FAILED:
        return None
    model, settings = context.so_far(state).model, context.settings
    return estimate(model, state.iterate.theta[None], context.judge, settings.sought, settings.looser, context.gauge)


def accurate(context: "Context", state: RunState) -> bool:
    """Whether a solution with residuals that are not small has a small error all the same, where a run ends by it."""
    if context.problem.inverse or not context.settings.sought:
        return False
    limit = context.settings.tol if context.settings.tol < math.inf else ACCURATE
    model, looser = context.so_far(state).model, context.settings.looser
    found = estimate(model, state.iterate.theta[None], context.judge, limit, looser, context.gauge)
    return found.meets(limit, looser)


def inferred(context: "Context", state: RunState, stop: StopReason) -> Inference | None:
    """What data say about coefficients; error bars only after a run that ended by itself, since they take seconds."""
    if not context.problem.inverse:
        return None
    theta, data = state.iterate.theta, context.collocation.measured(state)
    if len(state.times) > 2:
        return marched(context.problem, context.so_far(state).residual)
    if not stop.converged:
        return unfinished(context.residuals, theta, data, "the run did not end by itself")
    return infer(context.residuals, theta, context.settings.method.data_weight, data)
