"""Sharp fronts: an error estimate in a space that follows the solution, and points where residuals are large."""

import dataclasses
import math

import jax.numpy as jnp
import numpy as np
import pytest

import dsgnar as ds
from dsgnar.calculus.precision import x64
from dsgnar.problem.reference import interior_grid
from dsgnar.solving import intervals, judging
from dsgnar.solving.context import Context
from dsgnar.solving.error import RESOLVED, Estimator, estimate
from dsgnar.solving.estimate import Estimate
from dsgnar.solving.linearised import Equation
from dsgnar.solving.model import Model
from dsgnar.solving.settings import CAREFUL, Settings
from dsgnar.solving.solution import Solution
from dsgnar.solving.stop import StopReason
from dsgnar.solving.tangents import Own, below
from dsgnar.solving.verdict import Judge
from small import problem as heat

STEEP = 80.0


def front(steep=STEEP):
    """A front that crosses the plane along x = 0.3 y."""
    exact = lambda x, y: jnp.tanh(steep * (x - 0.3 * y))
    return ds.Problem(
        ds.Box(x=(-1, 1), y=(-1, 1)),
        ("u",),
        {
            "pde": ds.interior(lambda u: 0.3 * u.x + u.y),
            "bc": ds.boundary(lambda u, x, y: u - exact(x, y)),
        },
    )


def reference(steep=STEEP):
    exact = lambda x, y: {"u": np.tanh(steep * (x - 0.3 * y))}
    return ds.Reference.on_grid(
        {"x": interior_grid(-1, 1, 301), "y": interior_grid(-1, 1, 61)}, exact, 1e-15, "closed form"
    )


@x64
def wrong_by(error, steep=STEEP, turned=0.0):
    """A network of two layers that is the front, moved aside by `error` over its width, or turned a little."""
    model, _ = Model.of(front(steep), ds.MLP(widths=(3, 3)), "double", scales=None)
    first, second = np.zeros((2, 3)), np.zeros((3, 3))
    first[:, 0] = 1e-3, -0.3e-3 * (1 + turned)  # tanh is the identity there
    second[0, 0] = 1e3 * steep
    nothing, slope, last = np.zeros(3), np.ones(1), np.array([1.0, 0.0, 0.0])
    moved = np.array([error, 0.0, 0.0])
    parts = first.ravel(), nothing, slope, second.ravel(), moved, slope, last, np.zeros(1)
    assert [p.size for p in parts] == [math.prod(s) for s in model.residuals.parameters.shapes]
    return Solution(model, np.concatenate(parts)[None], None)


@pytest.mark.parametrize("error", [1e-2, 1e-4])
def test_an_error_at_a_front_is_seen(error):
    solution = wrong_by(error)
    true = solution.relative_l2(reference())["u"]
    assert 0.01 * error < true < error
    found = estimate(solution.model, solution.thetas, Judge(solution.residuals))
    assert found.known and 0.5 < true / found.errors["u"] < 2


def test_polynomials_are_enough_where_they_resolve_the_solution():
    smooth, sharp = (
        Estimator(Equation(s.model, s.thetas, Judge(s.residuals))) for s in (wrong_by(1e-3, 2.0), wrong_by(1e-3, STEEP))
    )
    assert smooth.misfit < RESOLVED < sharp.misfit


def test_a_rough_estimate_does_above_the_tolerance(monkeypatch):
    """The space that follows the solution costs seconds."""
    solution = wrong_by(1e-2)
    monkeypatch.setattr(Estimator, "own", lambda self: pytest.fail("not needed"))
    found = estimate(solution.model, solution.thetas, Judge(solution.residuals), tol=1e-8)
    assert not found.meets(1e-8)


@pytest.mark.parametrize("spread, richer", [(1.1, None), (1.8, 2)])
def test_spaces_that_do_not_quite_agree_are_followed_by_a_richer_one(spread, richer, monkeypatch):
    """Standing waves in a cavity, error 9.4e-5: polynomials and waves differed by 3.8 and said 1.9e-5."""
    solution, asked = wrong_by(1e-3, steep=2.0), []
    smooth = Estimator.smooth
    monkeypatch.setattr(Estimator, "smooth", lambda self: dataclasses.replace(smooth(self), spread=spread))
    richer_one = Estimate({"u": 1.0}, 1.0, 0.0, {"u": 0.0})
    own = lambda self: asked.append((self.equation.richer, self.equation.size)) or richer_one
    monkeypatch.setattr(Estimator, "own", own)
    found = estimate(solution.model, solution.thetas, Judge(solution.model.residuals))
    usual = Equation(solution.model, solution.thetas, Judge(solution.model.residuals)).size
    assert asked == ([] if richer is None else [(richer, richer * usual)])
    assert (found is richer_one) == (richer is not None)


@pytest.mark.parametrize("size, tol, solved", [(5e-6, None, True), (2e-5, None, False), (5e-6, 1e-6, False)])
def test_an_interval_of_a_march_may_miss_its_goal_by_a_little(size, tol, solved, monkeypatch):
    """Its second half would cost as much again. Not where a tolerance was asked for, and not at all of the time."""
    context = Context.of(heat(), None, Settings(tol=tol, max_iterations=1))
    monkeypatch.setattr(judging, "here", lambda context, state: (size if state.times[-1] < 1 else 4 * size,))
    monkeypatch.setattr(judging, "concentrated", lambda context, state: False)
    monkeypatch.setattr(judging, "accurate", lambda context, state: False)
    whole = dataclasses.replace(context.start(), stop=StopReason.STALLED)
    half = intervals.again(context, whole)
    assert half is not None and half.times == (0.0, 0.5)
    assert (intervals.again(context, dataclasses.replace(half, stop=StopReason.STALLED)) is None) == solved


def test_points_of_the_estimate_are_where_residuals_are_large():
    solution = wrong_by(0.0, turned=0.01)
    equation = Equation(solution.model, solution.thetas, Judge(solution.residuals), fronts=True)
    pde = next(row for row in equation.rows[0] if row.name == "pde")
    near = np.abs(pde.points[:, 0] - 0.3 * pde.points[:, 1]) < 2 / STEEP
    assert near.mean() > 2 * (2 / STEEP)  # twice as many as uniform ones
    mean = np.sum(pde.weight[:, None] ** 2 * pde.points**2, axis=0) / np.sum(pde.weight**2)
    np.testing.assert_allclose(mean, 1 / 3, atol=0.05)  # weights undo it


@pytest.mark.parametrize("order", [(1, 0), (0, 1), (1, 1), (2, 0)])
def test_derivatives_of_the_space_agree_with_differences(order):
    with_time = ds.Problem(
        ds.Box(x=(-1, 3), t=(0, 0.5)),
        ("u", "v"),
        {
            "a": ds.interior(lambda u, v: u.t - u.xx + v),
            "b": ds.interior(lambda u, v: v.xt),
            "start": ds.initial(lambda u, v: u + v),
        },
    )
    model, theta = x64(Model.of)(with_time, ds.MLP(widths=(5, 5)), "double")
    space = Own.of(64, (False, False), Judge(model.residuals).tangents, model, 0, theta, 0)
    assert space.size == 64 == space.derivative(np.zeros((3, 2)), (0, 0)).shape[1]
    xi, axis = np.random.default_rng(1).uniform(-0.9, 0.9, (6, 2)), 0 if order[0] else 1
    lower = tuple(n - (i == axis) for i, n in enumerate(order))
    step = np.zeros(2)
    step[axis] = 1e-5
    differences = (space.derivative(xi + step, lower) - space.derivative(xi - step, lower)) / 2e-5
    np.testing.assert_allclose(space.derivative(xi, order), differences, rtol=1e-5, atol=1e-6)


def test_orders_below():
    assert set(below((2, 1))) == {(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)}


# --- attempts ---------------------------------------------------------------------------------------------------------


def ended(problem, theta=None, **options):
    """A run that has come to its end without being solved."""
    context = Context.of(problem, ds.MLP(widths=(3, 3)), Settings(points=512, max_points=512, **options))
    state = dataclasses.replace(context.start(), stop=StopReason.STALLED)
    if theta is not None:
        state = dataclasses.replace(state, iterate=dataclasses.replace(state.iterate, theta=theta))
    return context, state


def test_residuals_in_few_places_are_noticed():
    context, state = ended(
        front(), wrong_by(0.0, turned=0.01).thetas[0], scales=None, method=dataclasses.replace(ds.FAST, scaled=False)
    )
    assert judging.concentrated(context, state)
    context, state = ended(front())
    assert not judging.concentrated(context, state)


def test_a_fair_attempt_that_few_places_spoil_is_made_again_with_points_there(monkeypatch):
    heat = ds.Problem(
        ds.Box(x=(0, 1), t=(0, 1)),
        ("u",),
        {
            "pde": ds.interior(lambda u: u.t - u.xx),
            "ic": ds.initial(lambda u, x: u - jnp.sin(jnp.pi * x)),
            "bc": ds.boundary(lambda u: u),
        },
    )
    context, state = ended(heat)
    sizes = iter([1e-3, 1e-4, 1e-4])
    monkeypatch.setattr(judging, "here", lambda context, state: (next(sizes),))
    monkeypatch.setattr(judging, "concentrated", lambda context, state: True)
    again = intervals.again(context, state)
    assert again.focused and again.times == state.times and again.best_residual == 1e-3
    np.testing.assert_array_equal(again.best, state.iterate.theta)
    uniform, there = (context.collocation.training(s)["pde"] for s in (state, again))
    assert uniform.shape == there.shape and not np.array_equal(uniform, there)

    second = dataclasses.replace(again, stop=StopReason.STALLED)  # the better one, yet not solved: time is cut now
    cut = intervals.again(context, second)
    assert cut.focused and cut.times[-1] == 0.5 and cut.best is None
    np.testing.assert_array_equal(cut.whole, second.iterate.theta)


@pytest.mark.parametrize("options", [dict(focus=0.0), dict(fresh=False), dict(adaptive=0.5)])
def test_no_such_attempt_where_points_do_not_follow(options, monkeypatch):
    context, state = ended(front(), method=dataclasses.replace(ds.FAST, **options))
    monkeypatch.setattr(judging, "here", lambda context, state: (1e-3,))
    monkeypatch.setattr(judging, "concentrated", lambda context, state: True)
    assert not intervals.again(context, state).focused


# --- settings ---------------------------------------------------------------------------------------------------------


def test_stage_one_goes_as_far_as_the_error_asks():
    several, one = (
        front(),
        ds.Problem(ds.Box(x=(0, 1)), ("u",), {"f": ds.interior(lambda u: u.x), "b": ds.boundary(lambda u: u)}),
    )
    method = lambda problem, **options: Settings(**options).for_problem(problem).chosen_method()
    assert (
        method(several).fallen == 1e-10 and method(one).fallen == method(several, precision="single").fallen == math.inf
    )
    assert method(several).warm_up == method(one, warm_up=10).warm_up == 10 and method(one).warm_up == 0
    assert method(several).targets == CAREFUL and method(one).targets == ds.FAST.targets
    assert method(several).no_damping == pytest.approx((0.05 * 1e-8) ** 2)
    assert method(several, tol=1e-10).no_damping == pytest.approx((0.05 * 1e-10) ** 2)
    assert method(several, tol=1e-3).no_damping == 1e-16
    assert method(several, enough=0).no_damping == method(one).no_damping == ds.FAST.no_damping.double
    assert method(several, targets=(0.3, 0.7)).targets == (0.3, 0.7)
    assert method(several, method=dataclasses.replace(ds.FAST, no_damping=1e-20)).no_damping == 1e-20
    assert method(several, method="paper").targets == ds.PAPER.targets.single and math.isinf(
        method(several, method="paper").fallen
    )
