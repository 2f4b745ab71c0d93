"""The error that no space holds, judged by what they leave of the residuals."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dsgnar as ds
from dsgnar.calculus.precision import x64
from dsgnar.problem.reference import interior_grid
from dsgnar.solving.error import AGREE, Estimator, estimate
from dsgnar.solving.linearised import Equation
from dsgnar.solving.model import Model
from dsgnar.solving.solution import Solution
from dsgnar.solving.verdict import Judge

COARSE, FINE = 1e-5, 2e-5


def ring():
    """A hump that goes round twice."""
    return ds.Problem(
        ds.Box(x=(0, 1), t=(0, 2)),
        ("u",),
        {
            "pde": ds.interior(lambda u: u.t + u.x),
            "start": ds.initial(lambda u, x: u - jnp.exp(jnp.sin(2 * jnp.pi * x))),
        },
        periodic=("x",),
    )


def rod():
    return ds.Problem(
        ds.Box(x=(0, 1), t=(0, 1)),
        ("u",),
        {
            "pde": ds.interior(lambda u: u.t - 0.1 * u.xx),
            "start": ds.initial(lambda u, x: u - jnp.sin(jnp.pi * x)),
            "ends": ds.boundary(lambda u: u),
        },
    )


class Round(eqx.Module):
    """The solution with two errors that travel and grow: one as coarse as it, and one that is fine."""

    fine: jax.Array
    waves: int = eqx.field(static=True)

    def __call__(self, z):
        phase = 2 * jnp.pi * (z[0] - z[1])
        wrong = COARSE * jnp.sin(phase) + self.fine * jnp.sin(self.waves * phase)
        return jnp.stack([jnp.exp(jnp.sin(phase)) + z[1] * wrong])


class Rod(eqx.Module):
    """The solution with an error that is rough, as residuals of heat conduction leave it."""

    wrong: jax.Array

    def __call__(self, z):
        n = jnp.arange(1.0, 31.0)
        rough = jnp.sum(jnp.cos(7 * n) * jnp.sin(n * jnp.pi * z[0]) * jnp.sin(n * z[1]) / n**2)
        return jnp.stack([jnp.exp(-0.1 * jnp.pi**2 * z[1]) * jnp.sin(jnp.pi * z[0]) + self.wrong * rough])


@x64
def wrong(problem, network):
    model, theta = Model.of(problem, network, "double")
    return Solution(model, np.asarray(theta, np.float64)[None])


def true_error(solution, exact, end):
    X, T = np.meshgrid(interior_grid(0, 1, 120), interior_grid(0, end, 90))
    return np.linalg.norm(solution(x=X, t=T) - exact(X, T)) / np.linalg.norm(exact(X, T))


def polynomials(solution):
    return Estimator(Equation(solution.model, solution.thetas, Judge(solution.residuals))).smooth()


def travelling():
    solution = wrong(ring(), Round(jnp.asarray(FINE), 16))
    return solution, true_error(solution, lambda x, t: np.exp(np.sin(2 * np.pi * (x - t))), 2)


def test_spaces_may_agree_on_too_small_a_number():
    """All of them hold the coarse error and none the fine one; that what they leave could have as large a one tells."""
    solution, true = travelling()
    found = polynomials(solution)
    assert found.spread < AGREE and found.errors["u"] < 0.6 * true and found.unseen > 1


@pytest.mark.slow
def test_then_a_closer_look_is_taken():
    solution, true = travelling()
    found = estimate(solution.model, solution.thetas, Judge(solution.residuals))
    assert found.known and found.errors["u"] == pytest.approx(true, rel=0.1)


def test_what_diffuses_hides_little():
    solution = wrong(rod(), Rod(jnp.asarray(1e-5)))
    true = true_error(solution, lambda x, t: np.exp(-0.1 * np.pi**2 * t) * np.sin(np.pi * x), 1)
    found = polynomials(solution)
    assert found.settled(AGREE) and found.unseen < 1
    assert found.errors["u"] == pytest.approx(true, rel=0.1)
