"""Of several attempts at a problem, which counts.

Attempts at the same are put aside one by one, the better one of two (`RunState.best`). Where time is cut, a rough attempt at
all of it is kept (`RunState.whole`) in case the march does not get to the end.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dsgnar.solving import judging
from dsgnar.solving.beginning import placed
from dsgnar.solving.state import RunState
from dsgnar.solving.verdict import FAILED

if TYPE_CHECKING:
    from dsgnar.solving.context import Context

ROUGH = 0.1  # residuals over their terms with which an attempt at all of the time is better than nothing


def better(state: RunState, size: float) -> RunState:
    """The state with the parameters of the better of two attempts put aside: those before, and this one."""
    better = dict(best=state.iterate.theta, best_residual=size, best_stop=state.stop)
    return replace(state, **better) if size < state.best_residual else state


def fair_before(context: "Context", state: RunState) -> bool:
    """Whether there was a fair attempt at all of the time, which is not thrown away for one in other sizes."""
    return state.whole is not None and max(judging.here(context, _at_once(context, state, state.whole))) <= FAILED


def settled(context: "Context", state: RunState) -> RunState:
    """The state of the best attempt; one at all of the time, where a march did not get there or is worse."""
    if state.whole is not None:
        at_once = _at_once(context, state, state.whole)
        size = max(judging.here(context, at_once))
        early = state.times[-1] < context.march.times[-1]
        if size <= (FAILED if state.finished else ROUGH) if early else size < max(judging.relative(context, state)):
            return at_once
    if state.best is None or max(judging.here(context, state)) <= state.best_residual:
        return state
    theta = state.best.astype(state.iterate.theta.dtype)
    return replace(state, iterate=replace(state.iterate, theta=theta, mean_squares=None))


def _at_once(context: "Context", state: RunState, whole: np.ndarray) -> RunState:
    """The state of the attempt at all of the time that was put aside."""
    iterate = replace(state.iterate, theta=whole, mean_squares=None)
    plan = replace(state.plan, precision="double" if whole.dtype == np.float64 else "single")
    times, past = (state.times[0], context.march.times[-1]), dict(finished=(), worst=None, relative=None, terms=None)
    return placed(context, replace(state, iterate=iterate, plan=plan, times=times, **past))
