"""Time marching: where time is cut, what is handed over, and the one solution that comes out."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

import dsgnar as ds
from dsgnar.march import March, hand_over, warm_start
from small import points, problem, residuals
from test_solve import SMALL, heat_reference


def wave() -> ds.Problem:
    return ds.Problem(
        domain=ds.Box(x=(0, 1), t=(0, 1)),
        unknowns=("u",),
        conditions={
            "pde": ds.interior(lambda u: u.tt - u.xx, weight=1e-4),
            "ic": ds.initial(lambda u, x: u - jnp.sin(2 * jnp.pi * x)),
            "rate": ds.initial(lambda u: u.t, weight=1e-2),
        },
        periodic=("x",),
    )


def test_time_is_cut_evenly_or_where_asked():
    assert March.of(problem(), 4).times == (0, 0.25, 0.5, 0.75, 1)
    assert March.of(problem(), (0.5, 0.8)).times == (0, 0.5, 0.8, 1)
    assert March.of(problem(), (0, 0.5, 1)).times == (0, 0.5, 1)  # the outer ends may be named
    assert March.of(problem(), 1).count == 1
    march = March.of(problem(), (0.5, 0.8))
    np.testing.assert_array_equal(march.piece(np.array([0, 0.5, 0.51, 0.8, 0.9, 1])), [0, 0, 1, 1, 2, 2])
    assert march.domain(problem().domain, 1).bounds == ((0, 1), (0.5, 0.8))


def test_a_march_that_makes_no_sense_is_refused():
    steady = ds.Problem(ds.Box(x=(0, 1)), ("u",), {"pde": ds.interior(lambda u: u.xx), "bc": ds.boundary(lambda u: u)})
    with pytest.raises(ValueError, match="needs a time axis"):
        March.of(steady, 2)
    with pytest.raises(ValueError, match="increasing times between 0.0 and 1.0"):
        March.of(problem(), (0.8, 0.5))
    with pytest.raises(ValueError, match="increasing times between 0.0 and 1.0"):
        March.of(problem(), (0.5, 1.5))
    with pytest.raises(ValueError, match="positive integer"):
        ds.Settings(intervals=0)
    hard = dataclasses.replace(
        problem(),
        conditions={"heat": ds.interior(lambda u: u.t - 0.1 * u.xx)},
        hard={"u": ds.Hard(lambda x: jnp.sin(2 * jnp.pi * x), on=(ds.Initial(),))},
    )
    known = dataclasses.replace(problem(), known={"u": lambda x: x})
    for refused in (hard, known):
        with pytest.raises(ValueError, match="hard values and known parts cannot be handed"):
            March.of(refused, 2)
    given = dataclasses.replace(
        problem(), conditions=dict(problem().conditions) | {"data": ds.at(lambda u: u, {"x": [0.5], "t": 0.2})}
    )
    with pytest.raises(ValueError, match="'data' is stated at given points"):
        March.of(given, 2)


def test_what_is_handed_over_is_the_residual_of_the_interval_before():
    res, theta = residuals()
    x = points()["start"]
    carried = hand_over(res, "start", np.asarray(theta), x, np.float64)
    assert carried.shape == (len(x), 3)
    # the interval's own solution has no residual against itself
    np.testing.assert_array_equal(res.vector("start", theta, carried), 0.0)
    # u - v, whatever the initial value of the problem is
    other = theta + 0.1
    u, v = (np.array([res.network(p)(jnp.asarray(point))[0] for point in x]) for p in (other, theta))
    np.testing.assert_allclose(res.vector("start", other, carried), u - v, atol=1e-13)
    # the first interval starts from the problem's own value
    first = hand_over(res, "start", None, x, np.float64)
    np.testing.assert_array_equal(res.vector("start", theta, first), res.vector("start", theta, x))


def test_a_warm_start_is_near_and_keeps_the_precision():
    before, fresh = np.ones(4, np.float32), np.full(4, 2.0)
    np.testing.assert_allclose(warm_start(before, fresh), 1.02, rtol=1e-6)
    assert warm_start(before, fresh).dtype == np.float32
    assert warm_start(before, None) is before


@pytest.fixture(scope="module")
def marched():
    options = SMALL | dict(precision="double", intervals=(0.4,), max_iterations=100)
    return ds.solve(problem(), reference=heat_reference(), **options)


def test_a_march_solves_and_is_one_function(marched):
    assert marched.thetas.shape == (2, marched.parameters)
    assert marched.relative_l2(heat_reference())["u"] < 1e-3
    assert marched.outcome.relative_l2 == marched.relative_l2(heat_reference())
    times = np.array([0.4 - 1e-9, 0.4, 0.4 + 1e-9])
    jump = np.ptp(marched(x=0.2, t=times))
    assert 0 < jump < 1e-3
    shuffled = np.random.default_rng(0).permutation(np.linspace(0, 1, 9))
    one_by_one = np.array([marched(x=0.3, t=t) for t in shuffled])
    np.testing.assert_allclose(marched(x=0.3, t=shuffled), one_by_one, rtol=1e-10)  # batches round differently
    h = 1e-5
    slope = (marched(x=0.2, t=0.7 + h) - marched(x=0.2, t=0.7 - h)) / (2 * h)
    np.testing.assert_allclose(marched.derivative("u", "t")(x=0.2, t=0.7), slope, rtol=1e-5)


def test_the_history_tells_the_intervals(marched):
    history = marched.outcome.history
    intervals = [r.interval for r in history]
    assert sorted(set(intervals)) == [0, 1] and intervals == sorted(intervals)
    assert [r.iteration for r in history] == list(range(1, len(history) + 1))
    begun = intervals.index(1)
    assert history[begun].stage == 1 and history[begun].precision == "single"
    assert all(sum(r.interval == k for r in history) <= 100 for k in (0, 1))


def test_an_interval_that_ran_out_of_iterations_is_not_called_converged():
    solution = ds.solve(problem(), intervals=2, **SMALL | dict(max_iterations=3))
    assert solution.outcome.stop.code == "max_iterations" and len(solution.outcome.history) == 6


def test_a_march_that_is_cut_short_has_no_later_intervals():
    solution = ds.solve(problem(), intervals=3, max_seconds=1e-9, **SMALL)
    assert solution.outcome.stop.code == "max_seconds"
    assert {r.interval for r in solution.outcome.history} == {0}


def test_velocity_is_handed_over_too():
    solution = ds.solve(wave(), precision="double", intervals=(0.25,), **SMALL | dict(max_iterations=45))
    x = np.linspace(0, 1, 9)
    exact = -2 * np.pi * np.sin(2 * np.pi * x)  # and u = 0: the next interval would stand still without its velocity
    for t in (0.25, 0.25 + 1e-9):
        np.testing.assert_allclose(solution.derivative("u", "t")(x=x, t=t), exact, atol=0.3)
    np.testing.assert_allclose(solution(x=x, t=0.5), -np.sin(2 * np.pi * x), atol=0.1)
