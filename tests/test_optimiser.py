"""One iteration: with identity sketches it is Levenberg-Marquardt; bad regions of parameter space are survived."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import least_squares

import dsgnar as ds
from dsgnar.factorise import SVD, Auto
from dsgnar.jacobian import Jacobian
from dsgnar.optimiser import Active, Optimiser, State
from dsgnar.radius import Bracket
from dsgnar.sketch import AllColumns, AllRows, Buckets
from dsgnar.subproblem import FactorisationError
from dsgnar.weights import Reweighting
from small import WEIGHTS, points, residuals, weighted

NO_REWEIGHTING = Reweighting(exponent=0.0)


def exact(res, factorisation, search=None, **options):
    jacobian = Jacobian(res, AllRows(), AllColumns())
    return Optimiser(res, jacobian, factorisation, search or Bracket(), NO_REWEIGHTING, 0, **options)


@pytest.mark.parametrize("factorisation", [SVD(), Auto()], ids=repr)
def test_identity_sketches_give_the_levenberg_marquardt_step(factorisation):
    res, theta = residuals()
    sets = points()
    start = State(np.asarray(theta), WEIGHTS, 1.0)
    after, step = exact(res, factorisation).iterate(start, Active.of(res, sets, np.float64), 0.5)
    j = np.asarray(jax.jacobian(lambda t: weighted(res, t, sets))(theta))
    r = np.asarray(weighted(res, theta, sets))
    expected = -np.linalg.solve(j.T @ j + step.lam * np.eye(theta.size), j.T @ r)
    assert step.accepted
    np.testing.assert_allclose(after.theta - theta, expected, rtol=1e-6, atol=1e-8 * np.abs(expected).max())
    assert np.linalg.norm(after.theta - theta) == pytest.approx(step.radius, rel=1e-8)
    assert step.loss == pytest.approx(0.5 * r @ r, rel=1e-12)


def test_it_finds_the_minimum_that_scipy_finds():
    """A problem whose minimum is unique: the last layer only, so that the residual is linear in what is trained."""

    class Line(eqx.Module):
        weights: jax.Array

        def __call__(self, x):
            k = jnp.arange(1, 5)
            return jnp.stack([jnp.dot(self.weights, jnp.sin(jnp.pi * k * x[0]))])

    problem = ds.Problem(
        ds.Box(x=(0, 1)), ("u",), {"poisson": ds.interior(lambda u, x: u.xx + 10 * jnp.exp(x) * u + x)}
    )
    from dsgnar.residuals import Residuals

    res, theta = Residuals.of(problem, Line(jnp.zeros(4)))
    sets = {"poisson": np.linspace(0.01, 0.99, 50)[:, None]}
    state, active = State(np.asarray(theta), np.ones(1), 1.0), Active.of(res, sets, np.float64)
    optimiser = exact(res, SVD())
    for _ in range(15):
        state, _ = optimiser.iterate(state, active, 0.9)
    reference = least_squares(
        lambda t: np.asarray(weighted(res, jnp.asarray(t), sets, np.ones(1))), np.zeros(4), xtol=1e-15
    )
    np.testing.assert_allclose(state.theta, reference.x, rtol=1e-6)


class Cliff(eqx.Module):
    """A network that is not finite where its parameter exceeds a bound which the first steps cross."""

    a: jax.Array

    def __call__(self, x):
        inside = jnp.where(self.a[0] < 1.2, self.a[0], jnp.nan)
        return jnp.stack([jnp.tanh(inside * x[0]) + self.a[1]])


def cliff_run():
    from dsgnar.residuals import Residuals

    problem = ds.Problem(ds.Box(x=(0, 1)), ("u",), {"fit": ds.interior(lambda u, x: u - jnp.tanh(1.1 * x) - 0.3)})
    res, theta = Residuals.of(problem, Cliff(jnp.array([-2.0, 5.0])))
    sets = {"fit": np.linspace(0, 1, 30)[:, None]}
    return res, State(np.asarray(theta), np.ones(1), 50.0), Active.of(res, sets, np.float64)


def test_a_region_without_numbers_is_stepped_around():
    res, state, active = cliff_run()
    tried = []
    for _ in range(40):
        state, step = exact(res, SVD()).iterate(state, active, 0.5)
        tried += [p.loss for p in step.found.probes]
    assert not np.isfinite(tried).all()
    np.testing.assert_allclose(state.theta, [1.1, 0.3], atol=1e-6)


def test_a_start_without_numbers_names_the_condition():
    res, state, active = cliff_run()
    with pytest.raises(FloatingPointError, match="condition 'fit' is not finite"):
        exact(res, SVD()).iterate(State(np.array([2.0, 0.0]), np.ones(1), 1.0), active, 0.5)


def test_a_failed_factorisation_shrinks_the_radius_and_is_noted():
    class Broken:
        def factorise(self, A, r, g=None):  # noqa: N803
            raise FactorisationError("did not converge")

    res, theta = residuals()
    state = State(np.asarray(theta), WEIGHTS, 1.0)
    after, step = exact(res, Broken()).iterate(state, Active.of(res, points(), np.float64), 0.5)
    assert not step.accepted and step.problem == "did not converge"
    assert after.radius == pytest.approx(1 / 3) and after.failures == 1
    np.testing.assert_array_equal(after.theta, theta)


def test_an_overshooting_ratio_can_be_rejected_in_favour_of_a_wider_radius():
    res, theta = residuals()
    active = Active.of(res, points(), np.float64)
    state = State(np.asarray(theta), WEIGHTS, 1e-4)
    optimiser = exact(res, SVD(), search=Bracket(evaluations=1), overshoot=0.1)
    after, step = optimiser.iterate(state, active, 0.2)
    assert not step.accepted and step.ratio > 0.3
    assert after.radius == pytest.approx(3e-4, rel=1e-6)


def test_equal_states_go_on_equally_bit_for_bit():
    res, theta = residuals()
    active = Active.of(res, points(), np.float64)

    def run():
        optimiser = Optimiser(res, Jacobian(res, Buckets(20), AllColumns()), Auto(), Bracket(), Reweighting(), 7)
        state = State(np.asarray(theta), WEIGHTS, 1.0)
        for _ in range(5):
            state, _ = optimiser.iterate(state, active, 0.3)
        return state

    one, two = run(), run()
    assert one.theta.tobytes() == two.theta.tobytes() and one.weights.tobytes() == two.weights.tobytes()
