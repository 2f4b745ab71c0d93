"""How well a state satisfies its problem, on points that took no part in training. The worst time interval counts."""

from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np

from dsgnar.solving.state import RunState
from dsgnar.solving.verdict import SAMPLE

if TYPE_CHECKING:
    from dsgnar.solving.context import Context


def worst(context: "Context", state: RunState) -> tuple[float, ...]:
    """Root mean squares of residuals over the size of their conditions."""
    held = np.sqrt(context.residuals.kernel(jnp.asarray(state.iterate.theta), context.collocation.held_out(state)))
    return tuple(map(float, held if state.worst is None else np.maximum(held, state.worst)))


def here(context: "Context", state: RunState) -> tuple[float, ...]:
    """Root mean squares of residuals over the size of their terms, in the interval that is being solved."""
    points, inside = context.collocation.held_out_points(state), context.collocation.inside(state, SAMPLE)
    return context.judge(state.iterate.theta, points, inside)


def relative(context: "Context", state: RunState) -> tuple[float, ...]:
    """The same, of the worst interval so far."""
    now = here(context, state)
    return now if state.relative is None else tuple(map(max, now, state.relative))
