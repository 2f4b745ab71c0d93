"""Rough solutions in slices of time, and attempts that begin near one."""

from dataclasses import replace
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest

import dsgnar as ds
from dsgnar.calculus.precision import x64
from dsgnar.problem.scales import estimate
from dsgnar.problem.singular import with_singular_parts
from dsgnar.solving import headstart, intervals, judging
from dsgnar.solving.context import Context
from dsgnar.solving.headstart import near_initial_values, near_rough_solution
from dsgnar.solving.rough import in_slices
from dsgnar.solving.settings import Settings
from dsgnar.solving.sizing import foreseen
from dsgnar.solving.stop import StopReason
from dsgnar.solving.survey import carried_far, rough_solution, seen_in_slices_only, survey
from small import problem as heat


def travelling(periods=5, order=1):
    """A wave that goes round a ring; of second order in time it needs its speed, too."""
    g = lambda s: jnp.exp(jnp.sin(2 * jnp.pi * s))
    slope = lambda s: 2 * jnp.pi * jnp.cos(2 * jnp.pi * s) * g(s)
    conditions = {"ic": ds.initial(lambda u, x: u - g(x))}
    if order == 1:
        conditions["pde"] = ds.interior(lambda u: u.t + u.x)
    else:
        conditions |= {"pde": ds.interior(lambda u: u.tt - u.xx), "speed": ds.initial(lambda u, x: u.t + slope(x))}
    return ds.Problem(ds.Box(x=(0, 1), t=(0, periods)), ("u",), conditions, periodic=("x",))


def packet():
    """A packet of about seven oscillations in a wide box."""
    g = lambda s: jnp.exp(-(s**2) / 0.2) * jnp.cos(10 * s)
    speed = lambda s: jnp.exp(-(s**2) / 0.2) * (10 * s * jnp.cos(10 * s) + 10 * jnp.sin(10 * s))
    conditions = {
        "pde": ds.interior(lambda u: u.tt - u.xx),
        "start": ds.initial(lambda u, x: u - g(x + 1.5)),
        "speed": ds.initial(lambda u, x: u.t - speed(x + 1.5)),
        "ends": ds.boundary(lambda u: u),
    }
    return ds.Problem(ds.Box(x=(-4, 4), t=(0, 3)), ("u",), conditions)


@pytest.mark.parametrize("order", [1, 2])
@x64
def test_slices_hand_over_what_they_end_with(order):
    problem = travelling(order=order)
    rough, left = in_slices(problem, estimate(problem))
    points = np.random.default_rng(0).uniform((0, 0), (1, 5), (400, 2))
    exact = np.exp(np.sin(2 * np.pi * (points[:, 0] - points[:, 1])))
    assert left < 0.02 and len(rough.pieces) > 1
    assert np.linalg.norm(rough.at(points)[:, 0] - exact) < 0.02 * np.linalg.norm(exact)


def test_a_packet_is_seen_in_slices():
    problem = packet()
    scales = estimate(problem)
    assert seen_in_slices_only(problem, scales)
    x, t = survey(problem, scales).frequencies
    assert 40 < x < 90 and 10 < t < 25 and survey(problem, scales).fast  # 10 radians in a half-width of 4 and of 1.5
    assert not seen_in_slices_only(travelling(1), estimate(travelling(1)))


def test_a_network_is_led_to_a_rough_solution():
    context = Context.of(heat(), ds.MLP((8, 8)), Settings(precision="double"))
    theta = near_rough_solution(context, heat().domain, 1)
    assert theta is not None and theta.shape == context.first.shape
    rough, _ = rough_solution(heat(), context.settings.scales)
    points = context.collocation.inside(context.start(), 200)
    values = context.residuals.ansatz.values(theta, points)
    expected = rough.at(points[:, :2])
    off = np.linalg.norm(values - expected)
    assert off < 0.5 * np.linalg.norm(expected) and off < 0.5 * np.linalg.norm(
        context.residuals.ansatz.values(context.first, points) - expected
    )
    again = near_rough_solution(context, heat().domain, 1)
    np.testing.assert_array_equal(theta, again)
    assert not np.array_equal(theta, near_rough_solution(context, heat().domain, 2))


def test_what_a_space_does_not_hold_gives_no_head_start():
    known = ds.Problem(heat().domain, ("u",), heat().conditions, known={"u": lambda x: x})
    context = Context.of(known, ds.MLP((4,)), Settings(precision="double"))
    assert near_rough_solution(context, known.domain, 1) is None


@pytest.mark.parametrize("size, begins", [(0.5, True), (1e-4, False)])
def test_a_failed_attempt_is_followed_by_one_with_a_head_start(size, begins, monkeypatch):
    """At all of the time, before it is cut; a fair one is cut at once."""
    context = Context.of(heat(), ds.MLP((4,)), Settings(precision="double"))
    led = np.full_like(context.first, 0.25)
    monkeypatch.setattr(intervals, "near_rough_solution", lambda *_: led)
    monkeypatch.setattr(judging, "here", lambda context, state: (size,))
    monkeypatch.setattr(judging, "concentrated", lambda context, state: False)
    monkeypatch.setattr(judging, "accurate", lambda context, state: False)
    monkeypatch.setattr(intervals, "outgrown", lambda context, state: None)
    whole = replace(context.start(), stop=StopReason.STALLED)
    after = intervals.again(context, whole)
    assert after is not None
    assert (after.times == whole.times and np.array_equal(after.iterate.theta, led)) == begins
    if begins:  # once
        shorter = intervals.again(context, replace(after, stop=StopReason.STALLED))
        assert shorter is not None and shorter.times[-1] < after.times[-1]


@pytest.mark.parametrize("given", [None, ds.MLP((4,))])
def test_a_hard_problem_begins_with_one(given, monkeypatch):
    """Not where a person chose the network."""
    led = []
    monkeypatch.setattr(headstart, "seen_in_slices_only", lambda *_: True)
    monkeypatch.setattr(headstart, "near_rough_solution", lambda context, *_: led.append(1) or context.first + 1)
    context = Context.of(heat(), given, Settings(precision="double"))
    assert len(led) == (given is None) and context.start().iterate.theta.shape == context.first.shape


def epidemic(slope=0.0):
    """What begins with a hundredth and grows by four powers of ten, if it grows; by residuals alone it need not."""
    new = lambda S, I: 10 * S * I
    conditions = {
        "S": ds.interior(lambda S, I: S.t - 0.1 * S.xx + new(S, I)),
        "I": ds.interior(lambda S, I: I.t - 0.1 * I.xx - new(S, I) + 1.5 * I),
        "S0": ds.initial(lambda S: S - 1),
        "I0": ds.initial(lambda I, x: I - 1e-3 * jnp.exp(-((x - 0.8) ** 2) / 0.05)),
        "ends": ds.boundary(lambda S: S.n),
        "other ends": ds.boundary(lambda I: I.n - slope),
    }
    return ds.Problem(ds.Box(x=(0, 4), t=(0, 1.5)), ("S", "I"), conditions)


def test_what_grows_from_small_values_is_seen_in_slices():
    problem = epidemic()
    scales = foreseen(problem)
    assert scales.unknowns[1] >= 32 * estimate(problem).unknowns[1]
    assert seen_in_slices_only(problem, scales)
    rough, left = rough_solution(problem, scales)
    assert left < 0.02 and rough.at(np.array([[0.8, 1.5]]))[0, 1] > 0.1
    with_parts = with_singular_parts(epidemic(slope=1e-3), scales)
    assert with_parts.implied and rough_solution(with_parts, scales) is rough_solution(with_parts.stated, scales)


@pytest.mark.parametrize("slope, begins", [(1e-3, True), (10.0, False)])
def test_slight_singular_parts_are_no_reason_for_no_head_start(slope, begins):
    context = Context.of(epidemic(slope), ds.MLP((4,)), Settings(precision="double", scales={"S": 1.0, "I": 0.25}))
    assert context.problem.implied
    theta = near_rough_solution(context, context.problem.domain, 1)
    assert (theta is not None) == begins


def hump(linear=True):
    """A narrow hump in a wide square, that is carried along."""
    speed = lambda c: 1.0 if linear else c
    conditions = {
        "pde": ds.interior(lambda c: c.t + speed(c) * c.x),
        "start": ds.initial(lambda c, x, y: c - jnp.exp(-((x + 2) ** 2 + y**2) / 0.2)),
        "rim": ds.boundary(lambda c: c),
    }
    return ds.Problem(ds.Box(x=(-5, 5), y=(-5, 5), t=(0, 4)), ("c",), conditions)


def test_what_is_carried_far_begins_with_the_initial_values():
    problem = hump()
    scales = estimate(problem)
    assert carried_far(problem, scales) and not carried_far(hump(linear=False), estimate(hump(linear=False)))
    assert not carried_far(heat(), estimate(heat()))
    context = Context.of(problem, ds.MLP((20, 20)), Settings(precision="double"))
    theta = near_initial_values(context, problem.domain, 0)
    points = context.collocation.inside(context.start(), 4000)
    expected = np.exp(-((points[:, 0] + 2) ** 2 + points[:, 1] ** 2) / 0.2)
    values = context.residuals.ansatz.values(theta, points)[:, 0]
    assert np.linalg.norm(values - expected) < 0.6 * np.linalg.norm(expected)


def test_initial_values_that_are_not_given_lead_nowhere():
    problem = hump()
    implicit = ds.initial(lambda c, x: c.x + jnp.sin(x))
    problem = ds.Problem(problem.domain, ("c",), {**problem.conditions, "start": implicit})
    context = Context.of(problem, ds.MLP((8, 8)), Settings(precision="double"))
    assert near_initial_values(context, problem.domain, 0) is None


@pytest.mark.parametrize("seed", [0, 51])
def test_thin_layers_of_one_variable_are_found(seed):
    """The first attempt ends in a local minimum; units where the rough solution bends do not (0.74 and 4e-4 without)."""
    e = 0.01
    conditions = {
        "beam": ds.interior(lambda w: e**2 * w.d("x", 4) - w.xx - 1),
        "ends": ds.boundary(lambda w: w),
        "clamped": ds.boundary(lambda w: w.x),
    }
    solution = ds.solve(ds.Problem(ds.Box(x=(0, 1)), ("w",), conditions), seed=seed, max_seconds=100)
    x, a, b = np.linspace(0, 1, 500), e / (2 * (1 - np.exp(-1 / e))), np.exp(-1 / e)
    exact = x * (1 - x) / 2 + a * (np.expm1(-x / e) + np.exp(-(1 - x) / e) - b)
    assert solution.verdict == "solved" and np.linalg.norm(solution(x=x) - exact) < 1e-6 * np.linalg.norm(exact)


def test_an_attempt_whose_loss_falls_is_not_given_up(monkeypatch):
    context = Context.of(heat(), ds.MLP((4,)), Settings(precision="double"))
    monkeypatch.setattr(judging, "here", lambda context, state: (1.0,))
    state = context.start()
    method = context.settings.method
    late = replace(state.iterate, iteration=method.hopeless + method.look_every - method.hopeless % method.look_every)
    for factor, expected in ((0.99, StopReason.STALLED), (0.95, None)):
        history = tuple(SimpleNamespace(loss=factor**k) for k in range(intervals.LONG))
        assert intervals.hopeless(context, replace(state, iterate=late, history=history)) is expected
