"""One iteration: with identity sketches it is Levenberg-Marquardt; bad regions of parameter space are survived."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import least_squares

import dsgnar as ds
from dsgnar.calculus import threads
from dsgnar.optimise.band import Band
from dsgnar.optimise.factorise import SVD, Auto
from dsgnar.optimise.jacobian import Jacobian
from dsgnar.optimise.optimiser import NO_STEP, Active, Optimiser, State
from dsgnar.optimise.radius import Bracket, Probes
from dsgnar.optimise.residuals import Residuals
from dsgnar.optimise.sketch import AllColumns, AllRows, Buckets
from dsgnar.optimise.subproblem import FactorisationError
from dsgnar.optimise.weights import Reweighting
from small import WEIGHTS, points, residuals, weighted

NO_REWEIGHTING = Reweighting(exponent=0.0)
SETS = points()


@pytest.fixture(autouse=True)
def in_turn():
    """Threads that meet a shape for the first time would each compile for it."""
    with threads.in_turn():
        yield


def exact(jacobian, factorisation, search=None, **options):
    return Optimiser(jacobian.residuals, jacobian, factorisation, search or Bracket(), NO_REWEIGHTING, 0, **options)


def identity(problem, network):
    """The Jacobian without a sketch, and the network's parameters."""
    res, theta = Residuals.of(problem, network)
    return Jacobian(res, AllRows(), AllColumns()), np.asarray(theta)


@functools.cache
def heat():
    """The small problem: what is compiled for it, its parameters and its points."""
    res, theta = residuals()
    return Jacobian(res, AllRows(), AllColumns()), np.asarray(theta), Active.of(res, SETS, np.float64)


@pytest.mark.parametrize("factorisation", [SVD(), Auto(), Band(2)], ids=repr)
def test_identity_sketches_give_the_levenberg_marquardt_step(factorisation):
    jacobian, theta, active = heat()
    after, step = exact(jacobian, factorisation).iterate(State(theta, WEIGHTS, 1.0), active, 0.5)
    j, r = full()
    expected = -np.linalg.solve(j.T @ j + step.lam * np.eye(theta.size), j.T @ r)
    assert step.accepted
    np.testing.assert_allclose(after.theta - theta, expected, rtol=1e-6, atol=1e-8 * np.abs(expected).max())
    assert np.linalg.norm(after.theta - theta) == pytest.approx(step.radius, rel=1e-8)
    assert step.loss == pytest.approx(0.5 * r @ r, rel=1e-12)


@functools.cache
def full():
    jacobian, theta, _ = heat()
    r = lambda t: weighted(jacobian.residuals, t, SETS)
    return tuple(map(np.asarray, jax.jit(lambda t: (jax.jacobian(r)(t), r(t)))(jnp.asarray(theta))))


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
    jacobian, theta = identity(problem, Line(jnp.zeros(4)))
    sets = {"poisson": np.linspace(0.01, 0.99, 50)[:, None]}
    state, active = State(theta, np.ones(1), 1.0), Active.of(jacobian.residuals, sets, np.float64)
    optimiser = exact(jacobian, SVD())
    for _ in range(15):
        state, _ = optimiser.iterate(state, active, 0.9)
    r = jax.jit(lambda t: weighted(jacobian.residuals, t, sets, np.ones(1)))
    reference = least_squares(lambda t: np.asarray(r(t)), np.zeros(4), xtol=1e-15)
    np.testing.assert_allclose(state.theta, reference.x, rtol=1e-6)


class Cliff(eqx.Module):
    """A network that is not finite where its parameter exceeds a bound which the first steps cross."""

    a: jax.Array

    def __call__(self, x):
        inside = jnp.where(self.a[0] < 1.2, self.a[0], jnp.nan)
        return jnp.stack([jnp.tanh(inside * x[0]) + self.a[1]])


@functools.cache
def cliff():
    problem = ds.Problem(ds.Box(x=(0, 1)), ("u",), {"fit": ds.interior(lambda u, x: u - jnp.tanh(1.1 * x) - 0.3)})
    jacobian, theta = identity(problem, Cliff(jnp.array([-2.0, 5.0])))
    sets = {"fit": np.linspace(0, 1, 30)[:, None]}
    return exact(jacobian, SVD()), theta, Active.of(jacobian.residuals, sets, np.float64)


def test_a_region_without_numbers_is_stepped_around():
    optimiser, theta, active = cliff()
    state, tried = State(theta, np.ones(1), 50.0), []
    for _ in range(40):
        state, step = optimiser.iterate(state, active, 0.5)
        tried += [p.loss for p in step.found.probes]
    assert not np.isfinite(tried).all()
    np.testing.assert_allclose(state.theta, [1.1, 0.3], atol=1e-6)


def test_a_start_without_numbers_names_the_condition():
    optimiser, _, active = cliff()
    with pytest.raises(FloatingPointError, match="condition 'fit' is not finite"):
        optimiser.iterate(State(np.array([2.0, 0.0]), np.ones(1), 1.0), active, 0.5)


class Constant(eqx.Module):
    a: jax.Array

    def __call__(self, x):
        return self.a + 0 * x


# At a = 0: no derivative at all, no residual left, and two residuals whose gradients cancel to the last bit.
NOTHING_TO_GAIN = {
    "flat": lambda u, x: 0 * u + 1,
    "solved": lambda u, x: u,
    "balanced": lambda u, x: u - x,
}


@functools.cache
def nothing_to_gain(which):
    problem = ds.Problem(ds.Box(x=(-1, 1)), ("u",), {"fit": ds.interior(NOTHING_TO_GAIN[which])})
    jacobian, theta = identity(problem, Constant(jnp.zeros(1)))
    sets = {"fit": np.array([[-1.0], [1.0]])}
    return jacobian, theta, Active.of(jacobian.residuals, sets, np.float64)


@pytest.mark.parametrize("factorisation", [SVD(), Band(2)], ids=repr)
@pytest.mark.parametrize("search", [Bracket(), Bracket(greedy=True), Probes(5)], ids=repr)
@pytest.mark.parametrize("which", NOTHING_TO_GAIN)
def test_a_step_of_length_zero_is_rejected_and_the_radius_shrinks(which, search, factorisation):
    jacobian, theta, active = nothing_to_gain(which)
    optimiser, state = exact(jacobian, factorisation, search), State(theta, np.ones(1), 0.9)
    for count in (1, 2):
        state, step = optimiser.iterate(state, active, 0.5, exact=which == "balanced")
        assert not step.accepted and step.problem == NO_STEP
        assert step.loss == (0.0 if which == "solved" else 0.5)
        assert state.failures == count and state.radius == pytest.approx(0.9 / 3**count)
        assert step.radius == pytest.approx(3 * state.radius)
    assert (state.theta == theta).all() and (state.weights == 1).all()


def test_a_failed_factorisation_shrinks_the_radius_and_is_noted():
    class Broken:
        def factorise(self, A, r, g=None, overwrite=False):  # noqa: N803
            raise FactorisationError("did not converge")

    jacobian, theta, active = heat()
    after, step = exact(jacobian, Broken()).iterate(State(theta, WEIGHTS, 1.0), active, 0.5)
    assert not step.accepted and step.problem == "did not converge" and step.found is None
    assert after.radius == pytest.approx(1 / 3) and after.failures == 1
    np.testing.assert_array_equal(after.theta, theta)


def test_an_overshooting_ratio_can_be_rejected_in_favour_of_a_wider_radius():
    jacobian, theta, active = heat()
    state = State(theta, WEIGHTS, 1e-4)
    after, step = exact(jacobian, SVD(), Bracket(evaluations=1), overshoot=0.1).iterate(state, active, 0.2)
    assert not step.accepted and step.ratio > 0.3
    assert after.radius == pytest.approx(3e-4, rel=1e-6) and after.failures == 0
    _, step = exact(jacobian, SVD(), Bracket(evaluations=1)).iterate(state, active, 0.2)
    assert step.accepted  # by default no ratio is too good


def test_equal_states_go_on_equally_bit_for_bit():
    jacobian, theta, active = heat()
    res = jacobian.residuals

    def run():
        optimiser = Optimiser(res, Jacobian(res, Buckets(20), AllColumns()), Auto(), Bracket(), Reweighting(), 7)
        state = State(theta, WEIGHTS, 1.0)
        for _ in range(5):
            state, _ = optimiser.iterate(state, active, 0.3)
        return state

    one, two = run(), run()
    assert one.theta.tobytes() == two.theta.tobytes() and one.weights.tobytes() == two.weights.tobytes()
