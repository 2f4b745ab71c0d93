"""Singular corners of rectangles: the functions, their coefficients for textbook problems, a solution that needs them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dsgnar as ds
from dsgnar.problem.scales import estimate
from dsgnar.problem.singular import singular_parts, with_singular_parts
from dsgnar.problem.wedges import Wedge, wedges

WALLS = {"left": ("x", "lower"), "right": ("x", "upper"), "bottom": ("y", "lower"), "top": ("y", "upper")}


def plate(pde=lambda u: u.xx + u.yy, **walls):
    """A plate of 2 x 1 at 0, but for what is said about its walls."""
    sides = {name: ds.boundary(walls.get(name, lambda u: u), faces=[face]) for name, face in WALLS.items()}
    return ds.Problem(ds.Box(x=(0, 2), y=(0, 1)), ("u",), {"pde": ds.interior(pde), **sides})


def found(problem):
    return singular_parts(problem, estimate(problem))


@pytest.fixture(autouse=True)
def wide():
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize("n", [0, 1, 2])
def test_the_functions_are_harmonic_and_vanish_on_one_wall(n):
    wedge = Wedge((0, 1), (2.0, 0.0), (-1.0, 1.0), (2.0, 3.0), tuple(float(k == n) for k in range(3)), 0.0)
    for x in (jnp.array([1.2, 0.3]), jnp.array([1.99, 0.5])):
        H = jax.hessian(wedge)(x)
        assert abs(4 * H[0, 0] + 9 * H[1, 1]) < 1e-10 * abs(4 * H[0, 0])
    assert wedge(jnp.array([0.7, 0.0])) == 0
    r = 0.4 / 3
    slope = -2 * jax.grad(wedge)(jnp.array([2.0, 0.4]))[0]  # with X
    values = [np.pi / 2, r * np.log(r), -(r**2) * np.pi / 2]
    slopes = [-1 / r, np.pi / 2, 2 * r * np.log(r) + r]
    np.testing.assert_allclose([wedge(jnp.array([2.0, 0.4])), slope], [values[n], slopes[n]], rtol=1e-12)


def test_a_hot_edge():
    problem = plate(top=lambda u: u - 100)
    u = with_singular_parts(problem, estimate(problem)).constrained(lambda z: jnp.zeros(1))
    for end in (0.0, 2.0):
        inside = abs(end - 1e-3)
        assert u(jnp.array([inside, 1.0]))[0] - u(jnp.array([end, 0.999]))[0] == pytest.approx(100, rel=2e-3)
    residual = problem.residual("pde", u, jnp.array([0.01, 0.98]), "nested")
    assert abs(float(residual)) < 1e-6  # terms are of the size 1e4


def test_a_hot_edge_beside_one_that_is_cooled():
    """The rest of the slope at the cooled edge is of the order of the square of the distance."""
    problem = plate(left=lambda u: u - 4, right=lambda u: u.x, top=lambda u: u.y + 3 * (u - 1), bottom=lambda u: u.y)
    u = with_singular_parts(problem, estimate(problem)).constrained(lambda z: 4 + jnp.zeros(1))
    at = lambda r: float(problem.residual("top", u, jnp.array([r, 1.0]), "nested"))
    fitted = [at(r) / r for r in (1e-3, 1e-4, 1e-5)]  # a smooth part that is linear in r is left
    assert abs(at(1e-6)) < 1e-4 and abs(fitted[1] - fitted[2]) < 0.02 * abs(fitted[1])


def test_a_membrane_under_pressure():
    (part,) = found(plate(pde=lambda u: -2 * u.xx - 2 * u.yy - 3)).values()
    problem = plate(pde=lambda u: -2 * u.xx - 2 * u.yy - 3)
    terms = [wedge.terms for wedge, _ in wedges(problem, "u")]
    np.testing.assert_allclose(terms, [(0, 0, -3 / np.pi)] * 4)
    assert np.isfinite(part(x=0.0, y=0.0))


FINE = {
    "values that fit": plate(top=lambda u, x: u - jnp.sin(np.pi * x)),
    "slopes": plate(left=lambda u: u.x - 1, right=lambda u: u.x, top=lambda u: u.y - 2, bottom=lambda u: u.y),
    "waves": plate(pde=lambda u: u.xx - u.yy, top=lambda u: u - 1),
    "mixed derivatives": plate(pde=lambda u: u.xx + u.xy + u.yy, top=lambda u: u - 1),
    "fourth order": plate(pde=lambda u: u.d("x", 4) + u.d("y", 4), top=lambda u: u - 1),
    "a jump that changes the diffusivity": plate(pde=lambda u: (1 + u) * (u.xx + u.yy), top=lambda u: u - 1),
    "a layer": plate(pde=lambda u: -1e-4 * (u.xx + u.yy) + u.x - 1),
}


@pytest.mark.parametrize("name", FINE)
def test_nothing_where_there_is_nothing(name):
    assert found(FINE[name]) == {}


@pytest.mark.slow
def test_a_membrane_is_solved():
    """Against its series. On a square without its singular part it was at 4e-5 after 250 iterations (seed 21)."""
    x = np.linspace(0.02, 1.98, 25)
    n = np.arange(1, 4000, 2)[:, None]

    def exact(x, y):
        k = n * np.pi / 2
        decay = (np.exp(-k * y) + np.exp(-k * (1 - y))) / (1 + np.exp(-k))
        return {"u": (2 / k**3 * np.sin(k * x) * (1 - decay)).sum(axis=0)}

    reference = ds.Reference.on_grid({"x": x, "y": x / 2}, exact, 1e-10, "series")
    problem = plate(pde=lambda u: u.xx + u.yy + 1)
    solution = ds.solve(problem, max_seconds=200)
    assert solution.verdict == "solved" and solution.relative_l2(reference)["u"] < 1e-6
