"""The estimate of an error in slices of time: for what travels far."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dsgnar as ds
from dsgnar.calculus.precision import x64
from dsgnar.problem.reference import interior_grid
from dsgnar.solving.error import Estimator, estimate
from dsgnar.solving.estimate import LITTLE
from dsgnar.solving.linearised import Equation
from dsgnar.solving.model import Model
from dsgnar.solving.slices import sliceable, sliced
from dsgnar.solving.solution import Solution
from dsgnar.solving.verdict import Judge
from small import problem as heat

PERIODS, WRONG, FINE = 3, 1e-5, 4


def travelling():
    """A wave that goes round a ring three times."""
    return ds.Problem(
        ds.Box(x=(0, 1), t=(0, PERIODS)),
        ("u",),
        {
            "pde": ds.interior(lambda u: u.t + u.x),
            "ic": ds.initial(lambda u, x: u - jnp.exp(jnp.sin(2 * jnp.pi * x))),
        },
        periodic=("x",),
    )


class Travelling(eqx.Module):
    """The solution with an error that travels with it, and is four times as fine."""

    wrong: jax.Array

    def __call__(self, z):
        phase = 2 * jnp.pi * (z[0] - z[1])
        return jnp.stack([jnp.exp(jnp.sin(phase)) + self.wrong * jnp.sin(FINE * phase)])


@x64
def wrong():
    model, theta = Model.of(travelling(), Travelling(jnp.asarray(WRONG)), "double")
    return Solution(model, np.asarray(theta, np.float64)[None])


def true_error(solution):
    x, t = interior_grid(0, 1, 40), interior_grid(0, PERIODS, 90)
    X, T = np.meshgrid(x, t)
    exact = np.exp(np.sin(2 * np.pi * (X - T)))
    return np.linalg.norm(solution(x=X, t=T) - exact) / np.linalg.norm(exact)


def test_an_error_that_travels_far_is_seen_in_slices():
    solution = wrong()
    judge = Judge(solution.residuals)
    found = estimate(solution.model, solution.thetas, judge)
    assert found.known and found.correction.march.count > 1
    assert found.errors["u"] == pytest.approx(true_error(solution), rel=0.1)
    at_once = Estimator(Equation(solution.model, solution.thetas, judge)).smooth()
    assert at_once.errors["u"] < 0.5 * found.errors["u"]
    assert at_once.beyond > LITTLE > 10 * found.beyond  # polynomials leave much of the residuals


@x64
def test_slices_belong_to_the_network_of_their_interval():
    model, theta = Model.of(heat(), ds.MLP((4,)), "double", intervals=2)
    thetas = np.stack([theta, 2 * theta])
    fine, repeated = sliced(model, thetas, 3)
    assert fine.march.count == 6 and len(repeated) == 6
    assert [fine.place(k) for k in range(6)] == [model.place(0)] * 3 + [model.place(1)] * 3
    np.testing.assert_array_equal(repeated, np.repeat(thetas, 3, axis=0))


def test_what_has_no_initial_condition_is_not_cut():
    still = ds.Problem(ds.Box(x=(0, 1)), ("u",), {"pde": ds.interior(lambda u: u.xx), "ends": ds.boundary(lambda u: u)})
    assert not sliceable(Model.of(still, None, "double")[0]) and sliceable(wrong().model)


def test_a_correction_by_slices_corrects():
    solution = wrong()
    judge = Judge(solution.residuals)
    found = Estimator(Equation(*sliced(solution.model, solution.thetas, 8), judge)).smooth()
    points = np.random.default_rng(0).uniform((0, 0), (1, PERIODS), (500, 2))
    expected = -WRONG * np.sin(2 * np.pi * FINE * (points[:, 0] - points[:, 1]))
    assert np.max(np.abs(found.correction.at(points)[:, 0] - expected)) < 0.05 * WRONG
