"""Time marching: where time is cut, what is handed over, and the one solution that comes out."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dsgnar as ds
from dsgnar.solving import intervals
from dsgnar.solving.context import Context
from dsgnar.solving.march import March
from dsgnar.solving.settings import with_options
from small import NETWORK, SIZES, SMALL, heat_reference, problem

pytestmark = pytest.mark.usefixtures("shared_kernels")

DOUBLE = SMALL | dict(precision="double", warm_up=0)  # from the start: compiled in one precision only


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
    given = dataclasses.replace(
        problem(), conditions=dict(problem().conditions) | {"one": ds.at(lambda u: u, {"x": [0.5], "t": 0.2})}
    )
    with pytest.raises(ValueError, match="'one' has no point at times from 0.5 to 1"):
        March.of(given, 2)


@pytest.mark.parametrize("kind", ["hard", "known"])
def test_hard_values_on_walls_and_known_parts_march(kind):
    wall = {"walls": ds.boundary(lambda u, x: u - x)} if kind == "known" else {}
    given = (
        {"known": {"u": lambda x: x}} if kind == "known" else {"hard": {"u": ds.Hard(lambda x: x, on=(ds.Boundary(),))}}
    )
    rod = ds.Problem(
        ds.Box(x=(0, 1), t=(0, 1)),
        ("u",),
        {
            "heat": ds.interior(lambda u: u.t - 0.1 * u.xx),
            "start": ds.initial(lambda u, x: u - x - jnp.sin(jnp.pi * x)),
            **wall,
        },
        **given,
    )
    run = SIZES | dict(network=NETWORK, wait=10, intervals=2, precision="double", max_iterations=60)
    solution = ds.solve(rod, **run)
    x, t = np.meshgrid(np.linspace(0, 1, 11), np.linspace(0, 1, 11))
    exact = x + np.exp(-0.1 * np.pi**2 * t) * np.sin(np.pi * x)
    assert solution.march.count == 2
    np.testing.assert_allclose(solution(x=x, t=t), exact, atol=2e-3)
    if kind == "hard":
        np.testing.assert_array_equal(solution(x=np.array([0.0, 1.0]), t=0.8), [0.0, 1.0])


def double(network=NETWORK, **settings) -> Context:
    """Surroundings of a march in two intervals, in double precision from the start."""
    options = SIZES | dict(precision="double", warm_up=0, intervals=2) | settings
    return Context.of(problem(), network, with_options(ds.Settings(), options))


def test_what_is_handed_over_is_the_residual_of_the_interval_before():
    context = double()
    res, theta = context.residuals, np.asarray(context.first)
    vector = lambda theta, points: res.vector("start", jnp.asarray(theta), points)
    # the first interval starts from the problem's own value
    first = context.start()
    x = context.collocation.training(first)["start"]
    start = context.collocation.active(first).flat[1]
    np.testing.assert_array_equal(start, np.column_stack([x, np.zeros(len(x))]))
    np.testing.assert_array_equal(vector(theta, start), vector(theta, x))
    # the interval's own solution has no residual against itself, at the time where the next one begins
    second = dataclasses.replace(first, finished=(theta,), times=(0.0, 0.5, 1.0))
    carried = context.collocation.active(second).flat[1]
    assert carried.shape == (256, 3) and np.all(carried[:, 1] == 0.5)
    np.testing.assert_array_equal(vector(theta, carried), 0.0)
    # u - v, whatever the initial value of the problem is
    other = theta + 0.1
    u, v = (jax.vmap(res.network(jnp.asarray(p)))(carried[:, :2])[:, 0] for p in (other, theta))
    np.testing.assert_allclose(vector(other, carried), u - v, atol=1e-13)
    # only initial points carry a value
    assert context.collocation.active(second).flat[0].shape == (512, 2)


def test_what_is_handed_over_belongs_to_the_point_as_it_will_be_seen():
    """In single precision points are rounded first, or the residual at the rounded point would not vanish."""
    context = double(precision="single")
    theta = np.asarray(context.first)
    state = dataclasses.replace(context.start(), finished=(theta,), times=(0.0, 0.5, 1.0))
    carried = context.collocation.active(state).flat[1]
    assert carried.dtype == np.float32
    np.testing.assert_array_equal(context.residuals.vector("start", jnp.asarray(theta), carried), 0.0)


@pytest.mark.parametrize(("precision", "warm_up"), [("single", 0), ("double", 0), ("double", 10)])
def test_a_warm_start_is_near_and_keeps_the_precision(precision, warm_up):
    context = double(precision=precision, warm_up=warm_up)
    state = context.start()
    theta, dtype = state.iterate.theta, np.dtype("float32" if precision == "single" else "float64")
    after = intervals.following(context, dataclasses.replace(state, stop=ds.StopReason.ITERATIONS))
    fresh = context.model.fresh(precision, 0, 1)
    np.testing.assert_allclose(after.iterate.theta, theta + 0.01 * fresh, rtol=1e-6)
    assert not np.array_equal(fresh, theta)  # another initialisation than the first
    assert after.iterate.theta.dtype == theta.dtype == (np.float32 if warm_up else dtype)  # it warms up again
    assert after.plan == context.rules.start() and after.plan.stage == 1
    np.testing.assert_array_equal(after.finished[0], theta.astype(dtype), strict=True)
    assert after.interval == 1 and after.stop is None and after.unfinished is ds.StopReason.ITERATIONS
    assert len(after.worst) == 2 and min(after.worst) > 0
    converged = intervals.following(context, dataclasses.replace(state, stop=ds.StopReason.RADIUS))
    assert converged.unfinished is None


def test_a_network_of_ones_own_starts_where_the_last_one_ended():
    class Mine(eqx.Module):
        w: jax.Array

        def __call__(self, x):
            return jnp.sin(self.w @ x)[None]

    context = double(network=Mine(jnp.ones(2)), sketch=2)
    state = context.start()
    after = intervals.following(context, dataclasses.replace(state, stop=ds.StopReason.ITERATIONS))
    np.testing.assert_array_equal(after.iterate.theta, state.iterate.theta)


@pytest.fixture(scope="module")
def marched(shared_kernels):
    return ds.solve(problem(), reference=heat_reference(), max_iterations=100, **DOUBLE | dict(intervals=(0.4,)))


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
    assert history[begun].stage == 1 and history[begun - 1].stage > 1
    assert all(sum(r.interval == k for r in history) <= 100 for k in (0, 1))


def test_an_interval_that_ran_out_of_iterations_is_not_called_converged():
    solution = ds.solve(problem(), max_iterations=3, **DOUBLE | dict(intervals=2))
    assert solution.stop.code == "max_iterations" and len(solution.history) == 6 and not solution.converged


def test_a_march_that_is_cut_short_has_no_later_intervals():
    solution = ds.solve(problem(), max_seconds=1e-9, **DOUBLE | dict(intervals=3))
    assert solution.outcome.stop.code == "max_seconds"
    assert {r.interval for r in solution.outcome.history} == {0}


def test_velocity_is_handed_over_too():
    solution = ds.solve(wave(), max_iterations=70, **DOUBLE | dict(intervals=(0.25,)))
    x = np.linspace(0, 1, 9)
    exact = -2 * np.pi * np.sin(2 * np.pi * x)  # and u = 0: the next interval would stand still without its velocity
    for t in (0.25, 0.25 + 1e-9):
        np.testing.assert_allclose(solution.derivative("u", "t")(x=x, t=t), exact, atol=0.3)
    np.testing.assert_allclose(solution(x=x, t=0.5), -np.sin(2 * np.pi * x), atol=0.1)


def test_times_that_were_not_reached_have_no_values(marched):
    """Neither values nor derivatives; errors count them as zero, and the summary says how far the run got."""
    half = dataclasses.replace(marched.model, march=March(marched.march.times[:2]))
    short = dataclasses.replace(marched, model=half, thetas=marched.thetas[:1])
    assert marched.reached is None and short.reached == marched.march.times[1]
    with pytest.warns(UserWarning, match="1 of 2 points lie beyond t=0.4, where the run ended: the solution is nan there"):
        values = short(x=0.3, t=[0.3, 0.9])
    assert values[0] == pytest.approx(marched(x=0.3, t=0.3), rel=1e-9) and np.isnan(values[1])
    assert np.isnan(short.derivative("u", "x")(x=0.3, t=0.9, extrapolate=True))
    assert np.isnan(short.function(0.3, 0.9)) and np.isfinite(short.function(0.3, 0.3))
    assert np.isfinite(short(x=0.3, t=1.2, extrapolate=True))  # outside of the domain, and meant
    reference = heat_reference()
    later = reference.points[:, 1] > 0.4
    lost = np.linalg.norm(reference.values["u"][later]) / np.linalg.norm(reference.values["u"])
    assert short.relative_l2(reference)["u"] == pytest.approx(lost, rel=1e-3)
    assert "the end of the time was not reached" in short.summary()
    assert "only t <= 0.4 of 1 was reached, 40 % of the time; the solution is nan beyond" in short.summary()
    assert short.plot() is not None
