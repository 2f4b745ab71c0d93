"""A run is a value: `advance` is a function of it, observers only look, and signals end it with what there is."""

import dataclasses
import math
import os
import signal
import threading
from dataclasses import replace

import numpy as np
import pytest

import dsgnar as ds
from dsgnar.solving import intervals
from dsgnar.solving.clock import Seconds
from dsgnar.solving.context import Context
from dsgnar.solving.interruption import Interruption
from dsgnar.solving.loop import advance, resumed, run
from dsgnar.solving.observers import View
from dsgnar.solving.settings import with_options
from dsgnar.solving.state import RunState
from small import NETWORK, SIZES, SMALL, heat_reference, problem

pytestmark = pytest.mark.usefixtures("shared_kernels")


def make_context(**settings) -> Context:
    """Surroundings of a run with these settings, or constants of its method."""
    return Context.of(problem(), NETWORK, with_options(ds.Settings(), SIZES | settings))


def after(context: Context, state: RunState, count: int) -> RunState:
    for _ in range(count):
        state, _record = advance(context, state)
    return state


def content(value):
    """A state as plain data: arrays as their bytes, and no seconds, which never repeat."""
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.shape, value.tobytes()
    if isinstance(value, Seconds):
        return None
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [f.name for f in dataclasses.fields(value) if f.name != "seconds"]
        return {name: content(getattr(value, name)) for name in names}
    if isinstance(value, tuple):
        return [content(each) for each in value]
    return value if value == value else "nan"


# --- a function of the state ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def begun(shared_kernels):
    """A context, and the state after three iterations."""
    context = make_context()
    return context, after(context, context.start(), 3)


def test_advance_leaves_its_state_alone(begun):
    context, state = begun
    before = content(state)
    theta = state.iterate.theta.copy()
    later, record = advance(context, state)
    assert content(state) == before and np.array_equal(state.iterate.theta, theta)
    assert content(later) != before and later.iterate.iteration == record.iteration == 4
    assert later.history[:-1] == state.history and later.history[-1] is record


def test_equal_states_go_on_equally(begun):
    context, state = begun
    expected = content(after(context, state, 3))
    assert content(after(context, state, 3)) == expected
    assert content(after(make_context(), state, 3)) == expected  # in other surroundings
    copied = replace(state, iterate=replace(state.iterate, theta=state.iterate.theta.copy()))
    assert content(after(context, copied, 3)) == expected
    assert content(after(context, replace(state, plan=replace(state.plan, draw=99)), 3)) != expected


@pytest.mark.parametrize(
    "settings", [dict(adaptive=0.5), dict(intervals=2, precision="double", warm_up=0)], ids=["adaptive", "marched"]
)
def test_nothing_of_another_state_is_left_in_the_surroundings(settings):
    """Points that follow the residual, and values that are handed over, are remembered between calls: whose are they?"""

    def states(context):
        one = after(context, context.start(), 1)
        one = (
            intervals.following(context, replace(one, stop=ds.StopReason.ITERATIONS))
            if "intervals" in settings
            else one
        )
        moved = replace(one, iterate=replace(one.iterate, theta=1.1 * one.iterate.theta))
        return one, replace(moved, finished=tuple(1.1 * theta for theta in one.finished))

    context = make_context(**settings)
    one, other = states(context)
    alone = content(advance(make_context(**settings), other)[0])
    advance(context, one)
    assert content(advance(context, other)[0]) == alone


def test_a_state_is_frozen_and_so_are_its_arrays(begun):
    context, state = begun
    marched = make_context(intervals=2)
    last = replace(after(marched, marched.start(), 1), stop=ds.StopReason.ITERATIONS)
    states = [context.start(), state, intervals.following(marched, last)]
    double = make_context(precision="double", warm_up=1, single_above=math.inf)
    states.append(after(double, double.start(), 1))  # has just changed its precision
    assert states[-1].iterate.theta.dtype == np.float64
    for each in states:
        with pytest.raises(dataclasses.FrozenInstanceError):
            each.stop = ds.StopReason.RADIUS
        for array in (each.iterate.theta, each.iterate.weights, *each.finished):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0.0


def test_limits_are_those_of_the_settings_now(begun):
    context, state = begun
    short = make_context(max_iterations=3)
    assert resumed(short, state) is state  # it had not stopped
    stopped = replace(state, stop=ds.StopReason.ITERATIONS)
    assert resumed(short, stopped).stop is ds.StopReason.ITERATIONS
    for reason in (ds.StopReason.ITERATIONS, ds.StopReason.SECONDS, ds.StopReason.INTERRUPTED):
        assert resumed(context, replace(state, stop=reason)).stop is None
    for reason in (ds.StopReason.RADIUS, ds.StopReason.REJECTED, ds.StopReason.FAILED):
        assert resumed(context, replace(state, stop=reason)).stop is reason


# --- the clock --------------------------------------------------------------------------------------------------------


class Clock:
    """A stopwatch whose time passes only where a test lets it."""

    def __init__(self):
        self.now = self.since = 0.0

    def lap(self) -> float:
        before, self.since = self.since, self.now
        return self.since - before


def test_judging_the_floor_is_solving_except_for_its_first_call_which_compiles(begun, monkeypatch):
    clock, calls = Clock(), []
    context = replace(make_context(stall=1), watch=clock)

    def compile(self, state, active):
        clock.now += 50
        return True

    def at_floor(self, iterate, active):
        calls.append(iterate)
        clock.now += 100 if len(calls) == 1 else 3
        return False

    monkeypatch.setattr(Context, "compile", compile)
    monkeypatch.setattr(Context, "at_floor", at_floor)
    state = begun[1]
    ending = replace(state, plan=replace(state.plan, stage=2, losses=(1e-30,) * 3), seconds=Seconds(7, 5))
    once, _ = advance(context, ending)
    assert once.plan.stage == 3 and len(calls) == 2  # the stage came to its end, and the floor was judged
    assert once.seconds == Seconds(7 + 3, 5 + 50 + 100)
    assert once.history[-1].seconds == once.seconds.solve
    again, _ = advance(context, replace(ending, seconds=once.seconds))
    assert len(calls) == 3
    assert again.seconds == Seconds(10 + 3, 155 + 50)


def test_looking_at_errors_and_observers_count_as_neither(begun, monkeypatch):
    clock = Clock()
    context = replace(make_context(max_iterations=2, look_every=1), watch=clock)

    def error(self, state):
        clock.now += 1000

    class Slow(Watcher):
        def iterated(self, run, record):
            clock.now += 1000

    monkeypatch.setattr(Context, "error", error)
    monkeypatch.setattr(Context, "compile", lambda self, state, active: False)
    assert run(context, context.start(), [Slow()]).outcome.seconds == {"solve": 0, "compile": 0, "estimate": 0}


# --- observers --------------------------------------------------------------------------------------------------------


class Watcher:
    """An observer that notes what it is told."""

    def __init__(self):
        self.told: list = []

    def started(self, run):
        self.told.append("started")

    def iterated(self, run, record):
        self.told.append(record.iteration)

    def finished(self, run, solution):
        self.told.append(solution)


class At(Watcher):
    """Does something after an iteration."""

    def __init__(self, iteration, action):
        super().__init__()
        self.iteration, self.action = iteration, action

    def iterated(self, run, record):
        super().iterated(run, record)
        if record.iteration == self.iteration:
            self.action(run)


def test_a_view_cannot_be_assigned_to(begun):
    context, state = begun
    view = View(context, state, Interruption())
    names = [name for name in dir(view) if not name.startswith("_") and name != "ask_to_stop"]
    assert {"problem", "network", "settings", "history", "state", "march", "reference", "asked_to_stop"} <= set(names)
    for name in (*names, "something_new"):
        with pytest.raises(AttributeError):
            setattr(view, name, None)
        with pytest.raises(AttributeError):
            delattr(view, name)
    assert view.problem is context.problem and view.history is state.history and isinstance(view.history, tuple)


def test_an_observer_is_told_from_start_to_end():
    watcher = Watcher()
    solution = ds.solve(problem(), observers=[watcher], reference=heat_reference(), **SMALL | dict(max_iterations=2))
    assert watcher.told == ["started", 1, 2, solution]


def test_an_observer_may_ask_the_run_to_stop():
    asks, other = At(2, lambda run: run.ask_to_stop()), Watcher()
    solution = ds.solve(problem(), observers=[asks, other], **SMALL)
    assert solution.stop is ds.StopReason.INTERRUPTED and not solution.converged
    assert other.told == asks.told == ["started", 1, 2, solution]


def test_an_observer_that_fails_ends_the_run_and_all_are_told():
    def fail(run):
        raise RuntimeError("no room on the disk")

    failing, other = At(1, fail), Watcher()
    with pytest.raises(RuntimeError, match="no room"):
        ds.solve(problem(), observers=[failing, other], **SMALL)
    assert failing.told == ["started", 1, None] and other.told == ["started", None]


# --- signals ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def handlers():
    """The handlers of the program, which a run must put back."""

    def mine(number, frame):
        raise AssertionError("a run did not take care of a signal")

    before = {number: signal.signal(number, mine) for number in (signal.SIGINT, signal.SIGTERM)}
    yield lambda: all(signal.getsignal(number) is mine for number in before)
    for number, handler in before.items():
        signal.signal(number, handler)


def kill(number, times=1):
    def action(run):
        for _ in range(times):
            os.kill(os.getpid(), number)

    return action


def test_ctrl_c_ends_the_run_and_then_goes_on_to_the_program(handlers):
    observer = At(2, kill(signal.SIGINT))
    with pytest.raises(ds.Interrupted) as raised:
        ds.solve(problem(), observers=[observer], **SMALL)
    solution = raised.value.solution
    assert isinstance(raised.value, KeyboardInterrupt)  # a loop of solves ends
    assert observer.told == ["started", 1, 2, solution]  # before it was raised
    assert solution.stop is ds.StopReason.INTERRUPTED and len(solution.history) == 2
    assert solution(x=0.2, t=0.1).shape == ()
    assert handlers()


def test_a_termination_ends_the_run_and_then_the_process(handlers):
    observer = At(2, kill(signal.SIGTERM))
    with pytest.raises(ds.Terminated) as raised:
        ds.solve(problem(), observers=[observer], **SMALL)
    assert isinstance(raised.value, SystemExit) and raised.value.code == 143
    assert observer.told == ["started", 1, 2, raised.value.solution]
    assert raised.value.solution.stop is ds.StopReason.INTERRUPTED
    assert handlers()


def test_a_second_ctrl_c_ends_the_run_at_once(handlers):
    observer, other = At(2, kill(signal.SIGINT, times=2)), Watcher()
    with pytest.raises(ds.Interrupted) as raised:
        ds.solve(problem(), observers=[observer, other], **SMALL)
    solution = raised.value.solution
    assert len(solution.history) == 2  # the last complete iteration counts
    assert observer.told == ["started", 1, 2, solution] and other.told == ["started", 1, solution]
    assert handlers()


def test_an_observer_that_raises_a_keyboard_interrupt_ends_the_run_with_what_there_is():
    def interrupt(run):
        raise KeyboardInterrupt

    with pytest.raises(ds.Interrupted) as raised:
        ds.solve(problem(), observers=[At(3, interrupt)], **SMALL)
    assert raised.value.solution.stop.code == "interrupted" and len(raised.value.solution.history) == 3


def test_a_signal_in_the_last_iteration_is_not_lost(handlers):
    with pytest.raises(ds.Interrupted) as raised:
        ds.solve(problem(), observers=[At(2, kill(signal.SIGINT))], **SMALL | dict(max_iterations=2))
    assert raised.value.solution.stop is ds.StopReason.ITERATIONS
    assert handlers()


def test_handlers_are_put_back_after_an_error(handlers):
    def fail(run):
        raise RuntimeError

    with pytest.raises(RuntimeError):
        ds.solve(problem(), observers=[At(1, fail)], **SMALL)
    assert handlers()


def test_a_run_in_another_thread_leaves_signals_alone(handlers):
    kept, solutions = [], []

    def work():
        options = SMALL | dict(max_iterations=1)
        solutions.append(ds.solve(problem(), observers=[At(1, lambda run: kept.append(handlers()))], **options))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert kept == [True] and len(solutions[0].history) == 1
