"""Initial layers: the functions, their coefficients for textbook problems, and solutions that need them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import erf, erfc

import dsgnar as ds
from dsgnar.problem.corners import Wall
from dsgnar.problem.layers import Layer
from dsgnar.problem.scales import estimate
from dsgnar.problem.singular import singular_parts, with_singular_parts

HEAT = ds.interior(lambda u: u.t - 0.25 * u.xx)


def rod(start=1.0, domain=None, pde=HEAT, **walls):
    """A rod from 0 to 2; by default it is insulated where nothing is said."""
    faces = {"left": [("x", "lower")], "right": [("x", "upper")]}
    made = {name: ds.boundary(walls.get(name, lambda u: u.x), faces=faces[name]) for name in faces}
    conditions = {"pde": pde, "ic": ds.initial(lambda u: u - start), **made}
    return ds.Problem(domain or ds.Box(x=(0, 2), t=(0, 1)), ("u",), conditions)


def found(problem):
    return singular_parts(problem, estimate(problem))


@pytest.fixture
def wide():
    with jax.enable_x64(True):
        yield


def test_the_functions_solve_the_diffusion_equation(wide):
    D = 0.3
    layer = Layer(Wall("pde", "ic", 0, 1.0, -1.0, True), D, lambda x: 0.0, (1.0, 1.0, 1.0, 1.0))
    at = lambda x, t: jnp.stack(layer.functions(jnp.stack([x, t]), t))
    for x, t in ((0.2, 0.1), (0.9, 0.01), (-1.0, 2.0)):
        N = at(x, t)
        along_x, along_t = (jax.jacfwd(at, i)(x, t) for i in (0, 1))
        np.testing.assert_allclose(along_x[1:], N[:-1], rtol=1e-12)  # the wall is on the right: d grows as x falls
        np.testing.assert_allclose(along_t[2:], D * N[:-2], rtol=1e-12)
        np.testing.assert_allclose(N[0], erfc((1 - x) / np.sqrt(4 * D * t)), rtol=1e-12)


def test_a_wall_that_is_suddenly_hot(wide):
    part = found(rod(left=lambda u: u - 5))["u"]
    x, t = 0.3, 0.02
    np.testing.assert_allclose(part(x=x, t=t), 4 * erfc(x / np.sqrt(4 * 0.25 * t)), rtol=1e-12)
    assert part(x=0.0, t=0.5) == pytest.approx(4.0)
    assert part(x=1e-6, t=0.0) == 0.0


def test_values_that_begin_to_change_too_fast(wide):
    part = found(rod(left=lambda u, t: u - 1 - 3 * t))["u"]
    for t in (0.01, 0.1):
        assert part(x=0.0, t=t) == pytest.approx(3 * t, rel=1e-9)


@pytest.mark.parametrize(("wall", "power"), [(lambda u: u.x - 2 * (u - 7), 2.5), (lambda u: u.x - 0.1 * u**4 + 0.2, 1.5)])
def test_a_wall_that_lets_heat_through(wide, wall, power):
    """What is left of its condition vanishes with a high power of the time: none was taken off before 0."""
    problem = rod(left=wall)
    u = with_singular_parts(problem, estimate(problem)).constrained(lambda z: jnp.ones(1))
    left = [abs(float(problem.residual("left", u, jnp.array([0.0, t]), "nested"))) for t in (1e-3, 1e-4)]
    assert left[0] < 0.1 and np.log10(left[0] / left[1]) == pytest.approx(power, abs=0.15)


def test_a_box_that_is_brought_into_the_cold(wide):
    """Four walls and their corners: the product of error functions, for short times."""
    domain = ds.Box(x=(0, 1), y=(0, 2), t=(0, 0.01))
    conditions = {
        "pde": ds.interior(lambda u: u.t - 0.3 * ds.laplacian(u)),
        "ic": ds.initial(lambda u: u - 2),
        "walls": ds.boundary(lambda u: u + 1),
    }
    part = found(ds.Problem(domain, ("u",), conditions))["u"]
    t, s = 0.002, np.sqrt(4 * 0.3 * 0.002)
    for x, y in ((0.01, 0.02), (0.98, 0.03), (0.5, 1.99), (0.0, 0.01)):
        ends = (erf(x / s) + erf((1 - x) / s) - 1) * (erf(y / s) + erf((2 - y) / s) - 1)
        assert 2 + part(x=x, y=y, t=t) == pytest.approx(3 * ends - 1, abs=1e-12)


def test_a_jump_that_varies_along_a_wall(wide):
    domain = ds.Box(x=(0, 1), y=(0, 1), t=(0, 1))
    conditions = {
        "pde": ds.interior(lambda u: u.t - ds.laplacian(u)),
        "ic": ds.initial(lambda u: u),
        "hot": ds.boundary(lambda u, y: u - jnp.sin(jnp.pi * y), faces=[("x", "lower")]),
        "others": ds.boundary(lambda u: u, faces=[("x", "upper"), ("y", "lower"), ("y", "upper")]),
    }
    problem = ds.Problem(domain, ("u",), conditions)
    part = with_singular_parts(problem, estimate(problem)).implied["u"]
    assert part(x=0.1, y=0.3, t=0.01) == pytest.approx(np.sin(0.3 * np.pi) * erfc(0.1 / 0.2))


STILL = {
    "fitting": rod(left=lambda u: u - 1),
    "insulated": rod(),
    "a jump that changes the diffusivity": rod(pde=ds.interior(lambda u: u.t - u * u.xx), left=lambda u: u - 2),
    "no diffusion": rod(pde=ds.interior(lambda u: u.t + u.x), left=lambda u: u - 2),
    "backwards": rod(pde=ds.interior(lambda u: u.t + u.xx), left=lambda u: u - 2),
    "fourth order": rod(pde=ds.interior(lambda u: u.t + u.d("x", 4)), left=lambda u: u - 2),
}


@pytest.mark.parametrize("name", STILL)
def test_nothing_where_there_is_nothing(name):
    assert found(STILL[name]) == {}


def test_a_known_part_is_left_alone():
    stated = rod(left=lambda u: u - 2)
    known = ds.Problem(stated.domain, ("u",), stated.conditions, known={"u": lambda x: x})
    assert found(known) == {}


def test_a_suddenly_heated_rod_is_solved(tmp_path):
    """And read back from a directory with its layer."""
    problem = rod(left=lambda u: u - 5, right=lambda u: u - 1)
    n = np.arange(1, 400)[:, None]

    def exact(x, t):
        series = 2 / (n * np.pi) * np.sin(n * np.pi * x / 2) * np.exp(-0.25 * (n * np.pi / 2) ** 2 * t)
        return {"u": 1 + 4 * (1 - x / 2 - series.sum(axis=0))}

    grid = {"x": np.linspace(0.05, 1.95, 30), "t": np.linspace(0.02, 1, 30)}
    reference = ds.Reference.on_grid(grid, exact, 1e-12, "series")
    with pytest.warns(UserWarning, match="differ at x=0, t=0"):
        solution = ds.solve(problem, network=ds.MLP(widths=(12, 12)), points=1024, max_iterations=60)
    error = solution.relative_l2(reference)["u"]
    assert error < 1e-4
    solution.save(tmp_path / "rod")
    again = ds.load(tmp_path / "rod", problem)
    assert again.relative_l2(reference)["u"] == pytest.approx(error, rel=1e-9)
