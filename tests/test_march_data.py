"""Given points in a time march: each interval takes its own."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

import dsgnar as ds
from dsgnar.solving.context import Context
from dsgnar.solving.march import March, possible

pytestmark = pytest.mark.usefixtures("shared_kernels")

TIMES = np.array([0.5, 1.0, 1.5, 2.0, 3.0])
NOISE = 0.01
SMALL = dict(network=ds.MLP(widths=(8, 8), spread=2.0), points=128, max_points=128)


def decay(times=TIMES, noise=NOISE, **conditions):
    """u' + u = 0, u(0) = 3."""
    values = 3 * np.exp(-times) + NOISE * np.random.default_rng(0).normal(size=times.size)
    return ds.Problem(
        domain=ds.Box(t=(0, 4)),
        unknowns="u",
        conditions={
            "ode": ds.interior(lambda u: u.t + u),
            "start": ds.initial(lambda u: u - 3),
            "data": ds.data(lambda u: u, at={"t": times}, values=values, noise=noise),
            **conditions,
        },
    )


def in_interval(problem, k, intervals=2):
    """Points of the data in interval k, as residuals want them: coordinate, place of the interval, value, weight."""
    context = Context.of(problem, SMALL["network"], ds.Settings(intervals=intervals, points=64, max_points=64))
    state = context.start()
    for _ in range(k):
        end = context.march.times[state.interval + 2]
        done = dataclasses.replace(state, finished=(*state.finished, context.first))
        state = context.begin(done, context.first, end)
    return context, context.collocation.measured(state)["data"]


def test_each_interval_takes_its_own_values():
    problem = decay(noise=np.array([0.01, 0.01, 0.02, 0.01, 0.01]))
    precision = problem.conditions["data"].measured.precision
    context, first = in_interval(problem, 0)
    _, second = in_interval(problem, 1)
    np.testing.assert_array_equal(first[:, 0], [0.5, 1, 1.5, 2, 2])
    np.testing.assert_array_equal(second[:, 0], [2, 2, 2, 2, 3])
    np.testing.assert_allclose(first[:, -1], np.sqrt(5 / 4) * np.array([1, 1, 1, 1, 0]) * precision)
    np.testing.assert_allclose(second[:, -1], np.sqrt(5) * np.array([0, 0, 0, 0, 1]) * precision)
    for points in (first, second):
        np.testing.assert_allclose(points[:, -2] * context.residuals.ansatz.size("data"),
                                   problem.conditions["data"].measured.values)  # fmt: skip


def test_mean_squares_are_those_of_the_values_of_the_interval():
    problem = decay()
    context, points = in_interval(problem, 0)
    theta = jnp.asarray(context.first, jnp.float64)
    found = context.residuals.vector("data", theta, points)
    there = np.asarray(context.residuals.ansatz.values(theta, points[:4, :3]))[:, 0]
    off = (there - problem.conditions["data"].measured.values[:4]) / context.residuals.ansatz.size("data")
    assert np.mean(found**2) == pytest.approx(np.mean(off**2), rel=1e-6)


def test_data_in_a_march_are_fitted_in_all_of_its_intervals():
    solution = ds.solve(decay(), intervals=2, **SMALL)
    fit = solution.outcome.inference.fits["data"]
    assert solution.verdict == "solved" and solution.march.count == 2
    assert fit.count == 5 and 0.2 < fit.misfit / NOISE < 2 and fit.band is None
    t = np.linspace(0, 4, 50)
    assert np.abs(solution(t=t) - 3 * np.exp(-t)).max() < 1e-3
    assert "5 values, misfit" in solution.summary()


def test_an_interval_without_data_goes_on_and_one_without_other_points_is_refused():
    assert March.of(decay(), 4).count == 4  # none after t = 3
    problem = decay(here=ds.at(lambda u: u - 3 * np.exp(-1), {"t": [1.0]}))
    with pytest.raises(ValueError, match="'here' has no point at times from 2 to 4"):
        March.of(problem, 2)
    assert March.of(decay(here=ds.at(lambda u, t: u - 3 * jnp.exp(-t), {"t": [1.0, 3.0]})), 2).count == 2


def test_intervals_are_not_looked_for_where_points_are_given():
    assert possible(decay(), "auto") == 1 and possible(decay(), 2) == 2


def test_a_fit_that_contradicts_the_equations_is_no_success():
    """The values belong to another rate: the interval that has them says so."""
    problem = decay()
    other = ds.data(lambda u: u, at={"t": TIMES}, values=3 * np.exp(-1.5 * TIMES), noise=NOISE)
    problem = dataclasses.replace(problem, conditions=dict(problem.conditions) | {"data": other})
    solution = ds.solve(problem, intervals=2, **SMALL)
    assert solution.verdict == "failed" and "does not fit" in solution.summary()
