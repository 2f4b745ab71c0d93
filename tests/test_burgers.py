"""Burgers' equation: its exact solution satisfies the statement of the problem, through the same fields that users write."""

from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dsgnar.calculus.streams import stream
from dsgnar.problem.sampling import sample
from dsgnar.suite import SUITE, burgers

both_shifts = pytest.mark.parametrize("shift", [0.0, 2.0])


statement = cache(burgers.problem)  # a problem is checked when it is made, which compiles


def solution(shift, viscosity=burgers.VISCOSITY):
    return lambda x: burgers.exact(x[0], x[1], viscosity, shift, xp=jnp)[None]


@both_shifts
@pytest.mark.parametrize("viscosity", [burgers.VISCOSITY, 0.05])
def test_the_exact_solution_has_no_residual(shift, viscosity):
    """Zero to rounding: the second derivative multiplies rounding errors by up to 1/width^2 of the shock, 1e4."""
    problem = statement(viscosity, shift)
    points = sample(problem.conditions["pde"].part, problem.domain, 400, stream(0, "burgers"))
    points[:, 1] = 0.01 + 0.99 * points[:, 1]  # its formula is singular at t = 0
    u = solution(shift, viscosity)

    @jax.jit
    @jax.vmap
    def residual(x):
        return jnp.stack([problem.residual("pde", u, x, mode=mode) for mode in ("taylor", "nested")])

    x, t = points.T
    after, before = (burgers.exact(x + h, t, viscosity, shift) for h in (1e-4, -1e-4))
    steepest = np.abs((after - before) / 2e-4).max()
    assert steepest > 2
    assert np.abs(residual(points)).max() < 1e-13 * steepest**2


@both_shifts
def test_a_wrong_solution_has_a_residual(shift):
    """The check above would notice a viscosity that is wrong in the tenth digit."""
    problem = statement(burgers.VISCOSITY, shift)
    points = np.stack([np.linspace(-1, 1, 50), np.full(50, 0.8)], 1)
    u = solution(shift, burgers.VISCOSITY * (1 + 1e-10))
    residual = jax.jit(jax.vmap(partial(problem.residual, "pde", u)))(points)
    assert np.abs(residual).max() > 1e-11


@both_shifts
def test_the_initial_value_holds(shift):
    problem = statement(burgers.VISCOSITY, shift)
    x = np.linspace(-1, 1, 101)
    np.testing.assert_allclose(burgers.exact(x, np.zeros_like(x), shift=shift), shift - np.sin(np.pi * x), atol=1e-14)
    start = np.stack([x, np.zeros_like(x)], 1)
    residual = jax.jit(jax.vmap(partial(problem.residual, "ic", solution(shift))))(start)
    np.testing.assert_allclose(residual, 0, atol=1e-14)


@both_shifts
def test_the_solution_is_periodic(shift):
    x, t = np.linspace(-1, 1, 41), np.linspace(0, 1, 41)[:, None]
    one, next_one = (burgers.exact(*np.broadcast_arrays(x + k, t), shift=shift) for k in (0, 2))
    np.testing.assert_allclose(one, next_one, atol=1e-12)
    assert statement(burgers.VISCOSITY, shift).periodic == ("x",)


def test_a_shift_is_a_moving_frame():
    x, t = np.broadcast_arrays(np.linspace(-1, 1, 9), np.linspace(0, 1, 5)[:, None])
    np.testing.assert_allclose(burgers.exact(x, t, shift=2.0), 2 + burgers.exact(x - 2 * t, t), atol=1e-14)


def test_jax_and_numpy_agree():
    x, t = np.linspace(-0.9, 0.9, 7), np.linspace(0.1, 1, 7)
    np.testing.assert_allclose(burgers.exact(x, t), burgers.exact(jnp.asarray(x), jnp.asarray(t), xp=jnp), atol=1e-14)


def test_the_reference_holds_the_exact_solution():
    benchmark = SUITE["burgers-shifted"]
    reference = benchmark.reference()
    assert reference.shape == (256, 128) and len(reference.points) == 256 * 128
    some = slice(None, None, 97)
    exact = burgers.exact(*reference.points[some].T, shift=2.0)
    np.testing.assert_allclose(reference.values["u"][some], exact, rtol=1e-14)
    assert reference.errors(reference.values) == {"u": 0.0}
    assert benchmark.problem().domain.contains(reference.points).all()


@pytest.mark.parametrize("viscosity", [0.01, 0.01 / np.pi, 0.001])
def test_the_quadrature_reaches_far_enough_for_thin_fronts(viscosity):
    """A wider and finer rule gives the same: a fixed reach of 9 left 7e-9 at 0.01/pi, and 1e-3 at 0.001."""
    x, t = np.meshgrid(np.linspace(-1, 1, 41), np.linspace(0.01, 1, 20), indexing="ij")
    s, z = np.linspace(-30, 30, 9001), 1 / (2 * np.pi * viscosity)
    y = x[..., None] - 2 * np.sqrt(viscosity * t)[..., None] * s
    weight = np.exp(-z * (np.cos(np.pi * y) + 1) - s**2)
    wide = -np.sum(np.sin(np.pi * y) * weight, -1) / np.sum(weight, -1)
    np.testing.assert_allclose(burgers.exact(x, t, viscosity), wide, atol=1e-14)
