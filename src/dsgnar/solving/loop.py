"""The loop: one iteration after the other, time interval after time interval.

`advance` is a function from a state to the next one; everything around it is a plain loop that tells observers. It prints
nothing. Kernels are compiled by a call whose result is thrown away, so compiling neither trains the network nor counts as
solving.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import jax.numpy as jnp

from dsgnar.calculus.precision import DTYPES, x64
from dsgnar.calculus.team import TeamError
from dsgnar.optimise.optimiser import Active, State, Step
from dsgnar.optimise.residuals import weighted_loss
from dsgnar.solving import attempts, intervals, judging
from dsgnar.solving.beginning import placed
from dsgnar.solving.clock import Seconds
from dsgnar.solving.context import Context
from dsgnar.solving.interruption import Interruption
from dsgnar.solving.observers import Observer, View, tell_concluding
from dsgnar.solving.record import Record
from dsgnar.solving.sizing import resized
from dsgnar.solving.solution import Solution
from dsgnar.solving.state import RunState
from dsgnar.solving.stop import StopReason
from dsgnar.solving.together import asked_to_end, timed

PACE = 10  # iterations by which the time of one is known
DESCENT = 20  # iterations that stage 2 takes, or so


@x64
def advance(context: Context, state: RunState) -> tuple[RunState, Record]:
    """One iteration (Algorithm 1, with the stages of Algorithm 5)."""
    rules, plan, watch = context.rules, state.plan, context.watch
    before = state.iterate.loss  # at the points just trained on
    active = context.collocation.active(state)
    seconds = _compiled(context, state, active)
    theta_k, evaluations, gap = _at_new_points(context, state, active, before)

    optimiser = context.optimiser(plan)
    theta_next, step = optimiser.iterate(theta_k, active, rules.target(plan), rules.exact(plan))
    step = replace(step, evaluations=step.evaluations + evaluations)

    compiling = 0.0

    def at_floor() -> bool:
        nonlocal compiling, seconds
        key = ("floor", plan.precision, active.counts)
        if key not in context.compiled:  # the first call compiles
            context.compiled.add(key)
            seconds = seconds.plus(solve=watch.lap())
            context.at_floor(theta_k, active)
            compiling = watch.lap()
        return context.at_floor(theta_k, active)

    next_plan, theta, stop = rules.after(plan, theta_next, step, gap, at_floor, ends_soon(context, state))
    seconds = seconds.plus(solve=watch.lap(), compile=compiling)
    if next_plan.precision != plan.precision:
        theta = replace(theta, theta=theta.theta.astype(DTYPES[next_plan.precision]), mean_squares=None)
    after = timed(context.residuals.devices.team, replace(state, iterate=theta, plan=next_plan, seconds=seconds))
    stop = stop or context.limit(after) or intervals.hopeless(context, after) or intervals.exact(context, after)
    found = judging.estimated(context, after) if stop is None else None
    if found is not None and found.meets(context.settings.sought, context.settings.looser):
        stop = StopReason.TOLERANCE
    record = _record(context, state, after, active, theta_next, step)
    record = replace(record, estimate=None if found is None or not found.known else found.decisive)
    watch.lap()  # looking at errors is not solving
    after = replace(
        after,
        evaluated=after.points_key == state.points_key,
        history=(*state.history, record),
        stop=stop,
    )
    return after, record


def ends_soon(context: Context, state: RunState) -> bool:
    """Whether the time that was given suffices for little more than the descent of stage 2, at the end of the domain."""
    limit, recent = context.settings.max_seconds, state.history[-PACE:]
    begun = state.iterate.iteration - state.plan.begun >= PACE
    if limit == math.inf or not begun or context.problem.inverse or intervals.has_next(context, state):
        return False
    each = (recent[-1].seconds - recent[0].seconds) / (PACE - 1)
    return limit - state.seconds.solve <= DESCENT * each


def _compiled(context: Context, state: RunState, active: Active) -> Seconds:
    """The seconds so far; what compiling took now, if anything, apart."""
    solving = context.watch.lap()
    if not context.compile(state, active):
        return state.seconds.plus(solve=solving)
    return state.seconds.plus(solve=solving, compile=context.watch.lap())


def _at_new_points(context: Context, state: RunState, active: Active, before: float) -> tuple[State, int, float | None]:
    """The iterate with its mean squares at the points in force: if they are new, so many evaluations more, and the gap.

    The gap is the loss at the new points over the loss at those just trained on.
    """
    iterate = state.iterate
    if state.evaluated and iterate.mean_squares is not None:
        return iterate, 0, None
    mean_squares = context.residuals.kernel(jnp.asarray(iterate.theta), active.batched)
    iterate = replace(iterate, mean_squares=mean_squares)
    return iterate, 1, iterate.loss / before if before > 0 else None


def _record(context: Context, state: RunState, after: RunState, active: Active, iterate: State, step: Step) -> Record:
    assert iterate.mean_squares is not None
    look, held = iterate.iteration % context.settings.method.look_every == 0, None
    if look:
        mean_squares = context.residuals.kernel(jnp.asarray(iterate.theta), context.collocation.held_out(after))
        held = weighted_loss(mean_squares, iterate.weights)
    return Record(
        iteration=iterate.iteration,
        interval=state.interval,
        stage=state.plan.stage,
        precision=state.plan.precision,
        points=sum(active.counts),
        loss=step.loss,
        mean_squares=tuple(map(float, iterate.mean_squares)),
        weights=tuple(map(float, iterate.weights)),
        ratio=step.ratio,
        target=step.target,
        lam=step.lam,
        radius=step.radius,
        accepted=step.accepted,
        evaluations=step.evaluations,
        seconds=after.seconds.solve,
        held_out=held,
        error=context.error(after) if look else None,
    )


@x64
def run(context: Context, state: RunState, observers: Sequence[Observer] = ()) -> Solution:
    """Go on from a state until the run stops. A signal that ended it is raised again once everything is safe."""
    interruption, context = Interruption(), resized(context, state.sizes)
    state = resumed(context, state)
    observers = observers if context.residuals.devices.team.leads else ()  # one process writes and shows

    def tell(solution: Solution | None) -> None:
        for observer in observers:
            observer.finished(View(context, state, interruption), solution)

    try:
        for observer in observers:
            observer.started(View(context, state, interruption))
        with interruption:
            context, state, stop = _iterate(context, state, observers, interruption)
            best = attempts.settled(context, state)
            if best is not state and best.best_stop is not None and not stop.is_limit:
                stop = best.best_stop
            tell_concluding(observers)
            solution = context.solution(best, stop)
    except BaseException:
        tell(None)
        raise
    tell(solution)
    interruption.pass_on(solution)
    return solution


def resumed(context: Context, state: RunState) -> RunState:
    """A state to go on from: an interruption is over, and limits are those of the settings now."""
    going_on = state.going_on()
    return going_on if going_on is state or state.stop is None else replace(going_on, stop=context.limit(going_on))


def _iterate(
    context: Context, state: RunState, observers: Sequence[Observer], interruption: Interruption
) -> tuple[Context, RunState, StopReason]:
    """Iterate, interval after interval; the last state, its surroundings, and why that was the end."""
    context.watch.lap()
    team = context.residuals.devices.team
    try:
        while True:
            if state.stop is None:
                state, record = advance(context, state)
                if asked_to_end(team, state, interruption.asked) and state.stop is None:
                    state = replace(state, stop=StopReason.INTERRUPTED)
                for observer in observers:
                    observer.iterated(View(context, state, interruption), record)
                if interruption.asked and state.stop is None and team.size == 1:  # by an observer
                    state = replace(state, stop=StopReason.INTERRUPTED)
                context.watch.lap()
            stop = state.stop
            if stop is None:
                continue
            another = intervals.again(context, state)
            if another is not None:
                context = resized(context, another.sizes)
                state = another if another.sizes == state.sizes else placed(context, another)
            elif intervals.goes_on(context, state):
                state = intervals.following(context, state)
            asked_to_end(team, state)  # all have decided the same
            if state.stop is not None:
                return context, state, state.unfinished if state.unfinished is not None and stop.converged else stop
    except KeyboardInterrupt:  # a second Ctrl-C: the last complete iteration counts
        if team.size > 1:
            raise TeamError(f"process {team.rank} was interrupted within an iteration, and ends") from None
        interruption.note()
        return context, state, StopReason.INTERRUPTED
