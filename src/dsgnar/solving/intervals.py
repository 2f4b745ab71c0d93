"""Time intervals found on the way, as an ODE solver finds its steps (`intervals="auto"`), or fixed beforehand.

An interval whose residuals are not small against their terms is cut and begun again; after one that was solved at once the
next is longer by half. What remains is divided evenly, so the last interval is no splinter. A march does not build on an
interval that failed. Where time runs out before the end is reached, an attempt at all of it counts, if there was a fair one;
where the march got nowhere, a rough one will do.

A cut interval begins near the network of the last one, every other time from scratch: that may be a poor place to begin.

A first attempt at all of a problem that fails is followed by one near a rough solution, if there is one (`headstart.py`);
one that is trapped early, by one from other parameters. One at all of the time with a small
estimated error is good enough, whatever its residuals are. Where no tolerance was asked for, an interval ends once its
residuals are far below the error with which a run is content.

An attempt that ends fairly, with residuals that are large in few places (a sharp front), is followed by one at the same
with half of the points there; from then on points stay that way, and intervals are cut as before.

Where there is nothing to cut (no time, one interval that was asked for), a problem is begun again from other
parameters, and the best attempt counts. Where values outgrow the sizes assumed, the whole is begun again (`sizing.py`).
"""

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dsgnar.calculus.precision import DTYPES
from dsgnar.problem import Problem
from dsgnar.solving import judging
from dsgnar.solving.attempts import ROUGH, better, fair_before
from dsgnar.solving.beginning import next_end
from dsgnar.solving.headstart import TAKES, TAKES_1D, led, near_initial_values, near_rough_solution
from dsgnar.solving.method import Method
from dsgnar.solving.settings import Resolved
from dsgnar.solving.sizing import outgrown
from dsgnar.solving.state import RunState
from dsgnar.solving.stop import StopReason
from dsgnar.solving.verdict import FAILED, SOLVED

if TYPE_CHECKING:
    from dsgnar.solving.context import Context

NEARLY = 10.0  # by which an interval of a march may miss its goal
LONG, STILL = 40, 0.9  # iterations in whose last quarter the loss is above so much of that in the first: it is stuck
FALLS = 0.3  # and one that falls so far is not given up, however late
UNSEEN = 0.01  # residuals of intervals over the error that is sought
EXACT = 1e-12  # residuals over the size of their terms in an interval that begins with a known state: near rounding
FITTED = 6  # iterations without much gain that end a stage where data are fitted


def automatic(context: "Context") -> bool:
    """Whether intervals are found on the way."""
    return context.settings.intervals == "auto" and context.problem.domain.time is not None


def without_retreat(problem: Problem, settings: Resolved) -> Method:
    """The method in force: where failing intervals are cut, that is better than going back to stage 1.

    The noise of data keeps the loss from falling to where it could: that is no reason to retreat, nor to add points.
    """
    cutting = settings.intervals == "auto" and problem.domain.time is not None and settings.method.hopeless
    if any(condition.measured for condition in problem.conditions.values()):
        stall = min(settings.method.stall, FITTED)
        return replace(settings.method, retreats=0, stall=stall, max_points=settings.method.points)
    return replace(settings.method, retreats=0) if cutting else settings.method


def has_next(context: "Context", state: RunState) -> bool:
    """Whether there is time left after the interval that is being solved."""
    return context.collocation.marching and state.times[-1] < context.march.times[-1]


def goes_on(context: "Context", state: RunState) -> bool:
    """Whether a march goes on to the next interval; an automatic one builds on none that failed or reached a limit."""
    if not has_next(context, state) or state.stop is None or not state.stop.hands_over:
        return False
    return not automatic(context) or (not state.stop.is_limit and max(judging.here(context, state)) <= FAILED)


def following(context: "Context", state: RunState) -> RunState:
    """The first state of the next interval."""
    settings, stop = context.settings, state.stop
    theta = state.iterate.theta.astype(DTYPES[settings.precision])
    closed = replace(
        state,
        finished=(*state.finished, theta),
        worst=judging.worst(context, state),
        relative=judging.relative(context, state),
        terms=judging.terms(context, state),
        best_residual=math.inf,
        best=None,
        best_stop=None,
        unfinished=state.unfinished if stop is None or stop.converged else stop,
        cuts=0,
    )
    end = _next_end(context, state)
    share = _share(context, state.times[-1], end)
    fresh = context.model.fresh(settings.precision, settings.seed, closed.interval, share)
    return context.begin(closed, near(context, theta, fresh), end)


def near(context: "Context", theta: np.ndarray, fresh: np.ndarray | None) -> np.ndarray:
    """Parameters near those of the last interval, a little of the way to fresh ones."""
    return theta if fresh is None else theta + (context.settings.method.perturbation * fresh).astype(theta.dtype)


def _next_end(context: "Context", state: RunState) -> float:
    if not automatic(context):
        return context.march.times[state.interval + 2]
    return next_end(context, state)


def hopeless(context: "Context", state: RunState) -> StopReason | None:
    """A reason to stop, where an attempt fails and another can be made; looked at now and then.

    After many iterations, if an automatic interval can be cut; sooner, if the loss has ceased to fall in stage 1.
    """
    method, iterations = context.settings.method, state.iterate.iteration - state.plan.begun
    if not method.hopeless or iterations % method.look_every or context.problem.inverse:
        return None
    cutting = automatic(context)
    if state.cuts >= (method.cuts if cutting else method.restarts) or (not cutting and context.march.count > 1):
        return None
    late = cutting and iterations >= method.hopeless and not _falls(state, FALLS)
    ends = late or _stuck(state, iterations)
    return StopReason.STALLED if ends and max(judging.here(context, state)) > FAILED else None


def _stuck(state: RunState, iterations: int) -> bool:
    """Whether the loss of stage 1 has not fallen for long; attempts that got anywhere fell all the time."""
    return state.plan.stage == 1 and iterations > LONG and not _falls(state, STILL)


def _falls(state: RunState, share: float) -> bool:
    """Whether the loss has fallen to a share within the last iterations."""
    losses = [record.loss for record in state.history[-LONG:]]
    return len(losses) == LONG and min(losses[-LONG // 4 :]) <= share * min(losses[: LONG // 4])


def exact(context: "Context", state: RunState) -> StopReason | None:
    """A reason to stop where residuals in a march are so small that going on would not be seen; looked at now and then."""
    settings, look = context.settings, state.iterate.iteration % context.settings.method.look_every == 0
    if state.begun and state.plan.stage > 1 and settings.tol == math.inf and state.iterate.mean_squares is not None:
        return StopReason.RESIDUAL if np.max(state.iterate.mean_squares) <= EXACT**2 else None
    if not look or state.plan.stage == 1 or not automatic(context) or settings.tol < math.inf or not settings.enough:
        return None
    if _whole(context, state):
        return None  # there the error itself is looked at
    return StopReason.RESIDUAL if max(judging.here(context, state)) <= UNSEEN * settings.enough else None


def again(context: "Context", state: RunState) -> RunState | None:
    """The interval that is being solved begun again, and shorter; None if it is solved or was begun often enough."""
    method, stop, cutting = context.settings.method, state.stop, automatic(context)
    if stop is None or not stop.hands_over or stop.is_limit or stop is StopReason.TOLERANCE:
        return None
    if not cutting and context.march.count > 1:
        return None  # intervals that a person chose
    size, goal = max(*judging.here(context, state), judging.local(context, state)), _goal(context, state)
    if size <= goal or (stop is StopReason.FLOOR and size <= FAILED):
        return None  # shorter intervals do not help against rounding
    sizes = None if size <= FAILED or fair_before(context, state) else outgrown(context, state)
    if sizes is not None:
        return _in_new_sizes(context, state, sizes)
    if size <= FAILED and _whole(context, state) and judging.accurate(context, state):
        return None
    if state.cuts >= (method.cuts if cutting else method.restarts):
        return None
    end = state.times[-1] if state.times else math.inf
    focused = state.focused or _focus(context, state, size)
    part = context.collocation.domain(state)
    near = near_rough_solution(context, part, state.cuts + 1) if _lost(context, state, size) else None
    if not cutting or focused != state.focused or near is not None or _trapped(context, state, size):
        first = _again(context, state, 1.0) if near is None else near
        anew = context.begin(better(state, size), first, end)
        plan = replace(anew.plan, exact=state.plan.exact or judging.unfitted(context, state, goal))
        return replace(anew, plan=plan, cuts=state.cuts + 1, focused=focused)
    if size <= min(FAILED, NEARLY * method.interval_goal) and size > 0.5 * state.best_residual:
        return None  # the last cut did not help, so the next will not
    begin, end = state.times[-2:]
    if _whole(context, state) and size <= ROUGH:
        state = replace(state, whole=better(state, size).best)
    state = replace(state, best=None, best_stop=None)  # of another interval than the next
    share = 0.5 if size <= FAILED else 0.25
    end = begin + share * (end - begin)
    first = _again(context, replace(state, times=(*state.times[:-1], end)), _share(context, begin, end))
    return replace(context.begin(state, first, end), cuts=state.cuts + 1, best_residual=size)


def _goal(context: "Context", state: RunState) -> float:
    """Residuals over their terms with which an interval is solved.

    In a march one may miss the goal by a little, where nobody asked for a tolerance: another cut costs as much again. Not
    in one variable, where cutting is cheap and errors grow.
    """
    settings, several = context.settings, context.problem.domain.dimension > 1
    if context.problem.inverse:
        return SOLVED
    nearly = several and automatic(context) and settings.tol == math.inf and not _whole(context, state)
    return settings.method.interval_goal * (NEARLY if nearly else 1.0)


def _whole(context: "Context", state: RunState) -> bool:
    """Whether all of the time, if there is any, is being solved at once."""
    return not state.finished and (not state.times or state.times[-1] == context.march.times[-1])


def _lost(context: "Context", state: RunState, size: float) -> bool:
    """Whether an attempt at all of a problem failed, with time left for a head start.

    The first attempt; in one variable, where a head start takes a second or so, any at what cannot be cut.
    """
    single, left = context.problem.domain.dimension == 1, context.settings.max_seconds - state.seconds.solve
    lost = not automatic(context) if single else size > FAILED and state.cuts == 0
    return lost and _whole(context, state) and left >= (TAKES_1D if single else TAKES)


def _trapped(context: "Context", state: RunState, size: float) -> bool:
    """Whether a first attempt ended soon and far from any solution: bad luck, which other parameters may not have.

    In one variable cutting is cheaper.
    """
    soon = state.iterate.iteration - state.plan.begun < context.settings.method.hopeless and state.plan.stage == 1
    return soon and size > FAILED and state.cuts == 0 and context.problem.domain.dimension > 1


def _in_new_sizes(context: "Context", state: RunState, sizes: tuple[float, ...]) -> RunState:
    """The problem begun again from its first time, since unknowns have other sizes than was assumed."""
    end = math.inf
    if state.times:
        begin, end = state.times[-2:]
        end = state.times[0] + (0.5 if automatic(context) else 1.0) * (end - begin)
    anew = replace(
        state,
        sizes=sizes,
        resized=state.resized + 1,
        finished=(),
        worst=None,
        relative=None,
        terms=None,
        unfinished=None,
        whole=None,
        best=None,
        best_residual=math.inf,
        best_stop=None,
    )
    return replace(context.begin(anew, context.first, end), cuts=state.cuts + 1)


def _focus(context: "Context", state: RunState, size: float) -> bool:
    """Whether another attempt at the same is to have points where residuals are large: few places spoil a fair one."""
    method = context.settings.method
    steps = automatic(context) and context.problem.domain.dimension == 1  # cutting is cheaper there
    if not (method.fresh and method.focus) or method.adaptive or context.problem.inverse or steps:
        return False
    return size <= FAILED and judging.concentrated(context, state)


def _share(context: "Context", begin: float, end: float) -> float:
    """The share of an interval in all of the time."""
    first, *_, last = context.march.times
    return (end - begin) / (last - first)


def _again(context: "Context", state: RunState, share: float) -> np.ndarray:
    settings, tries, part = context.settings, state.cuts + 1, context.collocation.domain(state)
    early = not state.finished and settings.max_seconds - state.seconds.solve >= TAKES
    begun = (led if share < 1 else near_initial_values)(context, part, tries) if early else None
    if begun is not None:
        return begun
    fresh = context.model.fresh(settings.precision, settings.seed, state.interval + 1000 * tries, share)
    if fresh is None or (state.finished and tries % 2):
        return near(context, state.finished[-1], fresh) if state.finished else context.first
    return fresh
