"""Residual vectors and the loss: against a computation by hand, in batches, in both precisions, in little memory."""

import functools
import subprocess
import sys
import textwrap
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import small
from dsgnar.calculus import threads
from dsgnar.calculus.streams import stream
from dsgnar.networks import MLP, Inputs, cast, count_parameters
from dsgnar.networks.parameters import Parameters
from dsgnar.optimise.residuals import Residuals, weighted_loss
from dsgnar.problem import Problem, initial, interior
from dsgnar.problem.constraints import Hard
from dsgnar.problem.domain import Box, Initial
from dsgnar.problem.sampling import sample

BOX = Box(x=(-1, 1), t=(0, 1))
CONDITIONS = {
    "pde": interior(lambda u: u.t + u * u.x - 0.1 * u.xx),
    "start": initial(lambda u, x: u + jnp.sin(jnp.pi * x)),
}
PROBLEM = Problem(BOX, ("u",), CONDITIONS)
NETWORK = MLP((9,)).build(Inputs(BOX.bounds, time=1), 1, key=jax.random.key(1), dtype=np.float64)
POINTS = {
    name: sample(c.part, BOX, n, stream(0, name)) for (name, c), n in zip(CONDITIONS.items(), (70, 33), strict=True)
}


@functools.cache
def of(mode=None):
    """Residuals of the problem, whose kernels are compiled once for all tests."""
    return Residuals.of(PROBLEM, NETWORK, mode)


def by_hand(x, t):
    """u and its derivatives for one tanh layer, in NumPy: with h = tanh(z), h' = 1 - h^2 and h'' = -2 h h'."""
    layer, out = NETWORK.layers[0], NETWORK.output
    W, b = np.asarray(layer.scale * layer.affine.weight), np.asarray(layer.scale * layer.affine.bias)
    h = np.tanh(np.stack([x, t], 1) @ W + b)
    slope = 1 - h**2
    v = np.asarray(out.weight)[:, 0]
    u = h @ v + np.asarray(out.bias)[0]
    return u, slope * W[0] @ v, slope * W[1] @ v, (-2 * h * slope * W[0] ** 2) @ v


def expected():
    u, u_x, u_t, u_xx = by_hand(*POINTS["pde"].T)
    x, t = POINTS["start"].T
    return {"pde": u_t + u * u_x - 0.1 * u_xx, "start": by_hand(x, t)[0] + np.sin(np.pi * x)}


@pytest.mark.parametrize("mode", ["taylor", "nested"])
def test_residuals_and_loss_against_a_computation_by_hand(mode):
    residuals, theta = of(None if mode == "taylor" else mode)
    assert residuals.mode == mode
    hand = expected()
    for name, r in hand.items():
        vector = residuals.vector(name, theta, POINTS[name])
        assert vector.shape == r.shape
        np.testing.assert_allclose(vector, r, rtol=1e-12, atol=1e-13)
    mean_squares = residuals.mean_squares(theta, POINTS)
    np.testing.assert_allclose(mean_squares, [np.mean(r**2) for r in hand.values()], rtol=1e-12)
    loss = residuals.loss(theta, POINTS, [0.3, 2.0])
    assert loss == pytest.approx(0.5 * (0.3 * np.mean(hand["pde"] ** 2) + 2 * np.mean(hand["start"] ** 2)), rel=1e-12)
    assert weighted_loss(np.array([2.0, 4.0]), np.array([3.0, 0.5])) == 4.0


def test_parameters_as_one_vector():
    parameters, theta = Parameters.of(NETWORK)
    assert theta.shape == (parameters.count,) == (count_parameters(NETWORK),)
    again = parameters.network(theta)
    assert jax.tree.structure(again) == jax.tree.structure(NETWORK)
    for a, b in zip(jax.tree.leaves(again), jax.tree.leaves(NETWORK), strict=True):
        np.testing.assert_array_equal(a, b)
    assert {leaf.dtype for leaf in jax.tree.leaves(parameters.network(theta.astype(np.float32)))} == {
        np.dtype("float32")
    }
    with pytest.raises(ValueError, match="no trainable parameters"):
        Parameters.of(lambda x: x)


def test_hard_constraints_are_part_of_the_residuals():
    hard = {"u": Hard(lambda x: -jnp.sin(jnp.pi * x), on=(Initial(),))}
    problem = Problem(BOX, ("u",), {"pde": CONDITIONS["pde"]}, hard=hard)
    residuals, theta = Residuals.of(problem, NETWORK)
    u = lambda p: -jnp.sin(jnp.pi * p[0]) + p[1] * NETWORK(p)
    wanted = jax.jit(jax.vmap(lambda p: PROBLEM.residual("pde", u, p, "nested")))(POINTS["pde"])
    np.testing.assert_allclose(residuals.vector("pde", theta, POINTS["pde"]), wanted, rtol=1e-11, atol=1e-12)
    x = jnp.array([0.3, 0.5])
    np.testing.assert_allclose(*jax.jit(lambda p: (residuals.network(theta)(p), u(p)))(x), rtol=1e-14)


@pytest.mark.parametrize("batch", [1, 33])
def test_batches_do_not_change_the_results(batch):
    """33 leaves the last batch of one condition incomplete and fits the other exactly."""
    whole, theta = of()
    residuals = replace(whole, batch=batch)
    for name in CONDITIONS:
        vector = residuals.vector(name, theta, POINTS[name])
        np.testing.assert_allclose(vector, whole.vector(name, theta, POINTS[name]), rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(residuals.mean_squares(theta, POINTS), whole.mean_squares(theta, POINTS), rtol=1e-13)


@functools.cache
def with_a_hole():
    """A residual that is nan, value and derivative, at x = 0, in batches of two."""
    hole = interior(lambda u, x: u * jnp.where(x == 0.0, jnp.nan, 1.0))
    residuals, theta = Residuals.of(Problem(BOX, ("u",), {"hole": hole}), NETWORK)
    return replace(residuals, batch=2), theta


def test_padding_that_is_not_a_number_does_not_count():
    residuals, theta = with_a_hole()
    points = np.array([[0.7, 0.5], [-0.2, 0.5], [0.5, 0.5]])
    batched = residuals.device_points({"hole": points}, np.float64)
    *others, (number, last, real) = [entry for share in batched.shares for entry in share]
    assert last.shape == (2, 2) and real == 1  # one point, and one slot of padding
    one = dict(shares=([*others, (number, last.at[1, 0].set(0.0), real)],), homes=(None,), places=([0, 1],))
    holed = replace(batched, **one)
    expected = np.mean(residuals.vector("hole", theta, points) ** 2)
    for points_on_device in (batched, holed):
        assert residuals.kernel(theta, points_on_device)[0] == pytest.approx(expected, rel=1e-13)
    assert np.isnan(residuals.vector("hole", theta, np.array([[0.0, 0.5], [0.5, 0.5]]))).tolist() == [True, False]


def test_padding_does_not_spread_what_is_not_a_number_to_another_batch():
    """The first point of all is the nan, and the last batch, which is padded, has neither sum nor gradient of it."""
    residuals, theta = with_a_hole()
    points = np.array([[0.0, 0.5], [-0.2, 0.5], [0.5, 0.5]])
    shares = residuals.device_points({"hole": points}, np.float64).shares
    (_, first, full), (_, last, real) = [entry for share in shares for entry in share]
    for kernel in (residuals._squares[0], residuals._slopes[0]):
        assert np.isnan(kernel(theta, first, full)).any()
        assert np.isfinite(kernel(theta, last, real)).all()
    alone = residuals.device_points({"hole": points[2:]}, np.float64)
    weights = np.ones(1)
    np.testing.assert_allclose(
        0.5 * residuals._slopes[0](theta, last, real), residuals.gradient(theta, weights, alone), rtol=1e-13
    )


def test_no_points_are_an_error():
    residuals, theta = of()
    with pytest.raises(ValueError, match="condition 'start' has no points"):
        residuals.mean_squares(theta, POINTS | {"start": np.zeros((0, 2))})
    with pytest.raises(ValueError, match="condition 'pde' has no points"):
        residuals.vector("pde", theta, np.zeros((0, 2)))


@pytest.mark.parametrize("mode", [False, True])
def test_precision_is_chosen_per_call_whatever_the_callers_mode(mode):
    with jax.enable_x64(mode):
        residuals, theta = of() if mode else Residuals.of(PROBLEM, NETWORK)
        assert theta.dtype == np.float64
        single = np.asarray(theta).astype(np.float32)
        one, two, three = (residuals.vector("pde", t, POINTS["pde"]) for t in (theta, single, theta))
        assert (one.dtype, two.dtype) == (np.float64, np.float32)
        np.testing.assert_array_equal(one, three)  # the other precision in between leaves no trace
        assert 1e-9 < np.abs(one - two).max() < 1e-5
        assert residuals.mean_squares(single, POINTS).dtype == np.float64
        assert jax.config.jax_enable_x64 == mode
        assert jnp.ones(1).dtype == (np.float64 if mode else np.float32)


def test_squares_are_summed_in_float64():
    """In float32 the sum of a million ones and small numbers would lose the latter."""
    residuals, theta = Residuals.of(PROBLEM, cast(NETWORK, np.float32))
    points = sample(CONDITIONS["start"].part, BOX, 100_000, stream(0, "many"))
    vector = residuals.vector("start", theta, points)
    assert vector.dtype == np.float32
    exact = np.mean(vector.astype(np.float64) ** 2)
    found = residuals.mean_squares(theta, {"start": points, "pde": points[:1]})[1]
    assert found == pytest.approx(exact, rel=1e-9)  # float32 would be good for 1e-7 at best


def test_residuals_repeat_to_the_last_bit():
    residuals, theta = of()
    again, _ = Residuals.of(PROBLEM, NETWORK)
    np.testing.assert_array_equal(residuals.mean_squares(theta, POINTS), again.mean_squares(theta, POINTS))


def test_residual_vectors_are_compiled_once():
    calls = []

    def residual(u):
        calls.append(1)
        return u.t - u.xx

    residuals, theta = Residuals.of(Problem(BOX, ("u",), {"pde": interior(residual)}), NETWORK)
    residuals.vector("pde", theta, POINTS["pde"])
    count = len(calls)
    residuals.vector("pde", theta, POINTS["pde"])
    assert len(calls) == count


def test_a_million_points_fit_into_little_memory():
    """One million points and 1,447 parameters: less than 1.5 GiB resident at the peak, the interpreter included."""
    script = """
        from pathlib import Path

        import jax
        import numpy as np

        from dsgnar.calculus.streams import stream
        from dsgnar.networks import MLP, Inputs
        from dsgnar.optimise.residuals import Residuals
        from dsgnar.problem.sampling import sample
        from dsgnar.suite import burgers

        problem = burgers.problem()
        network = MLP((16,) * 6).build(Inputs(problem.domain.bounds, 1, (0,)), 1, key=jax.random.key(0), dtype=np.float64)
        residuals, theta = Residuals.of(problem, network)
        assert theta.size == 1447
        million = {n: sample(c.part, problem.domain, 10**6, stream(0, n)) for n, c in problem.conditions.items()}
        assert np.isfinite(residuals.loss(theta, million, [1.0, 1.0]))
        status = Path("/proc/self/status").read_text()  # getrusage would count the process that started this one
        print(status.split("VmHWM:")[1].split()[0])
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) / 2**20 < 1.5  # counted in KiB


@functools.cache
def heat():
    """The small problem in batches of 4 at most, and the gradient of its loss."""
    whole, theta = small.residuals()
    res, sets = replace(whole, batch=4), small.points()
    loss = lambda t: 0.5 * jnp.sum(small.weighted(res, t, sets) ** 2)
    return res, theta, sets, jax.jit(jax.grad(loss))(theta)


def test_the_gradient_of_the_loss():
    res, theta, sets, expected = heat()
    g = res.gradient(theta, np.asarray(small.WEIGHTS), res.device_points(sets, np.float64))
    np.testing.assert_allclose(g, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("shares", [1, 3, 100])
def test_shares_change_nothing(shares, monkeypatch):
    """100: more than there are points, so that some shares are empty."""
    res, theta, sets, expected = heat()
    monkeypatch.setattr(threads, "count", lambda: shares)
    batched = res.device_points(sets, np.float64)
    assert len(batched.shares) == shares
    assert {batch.shape for share in batched.shares for _, batch, _ in share} == {(4, 2)}
    by_hand = [np.mean(res.vector(name, theta, x) ** 2) for name, x in sets.items()]
    np.testing.assert_allclose(res.kernel(theta, batched), by_hand, rtol=1e-13)
    np.testing.assert_allclose(
        res.gradient(theta, np.asarray(small.WEIGHTS), batched), expected, rtol=1e-11, atol=1e-13
    )
