"""Initial layers: the functions, their coefficients for textbook problems, and solutions that need them."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import erf, erfc

import dsgnar as ds
from dsgnar.problem.responses import Medium
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


MEDIA = [Medium(0.3), Medium(0.3, 1.0), Medium(0.1, -2.0, -0.7), Medium(0.3, 1.2, 0.4), Medium(0.01, 1.0)]


@pytest.mark.parametrize("medium", MEDIA)
def test_responses_solve_their_equation(wide, medium):
    """All of them, for flowing, decaying and growing media; and they do at the wall what they should."""
    D, v, c = medium.diffusivity, medium.drift, medium.growth
    slopes = (0.0, 0.01, 2.0, v / D, -0.3, 30.0)  # v/D, of an inlet, and 0 are confluent
    responses = {k: partial(medium.flux, k, end=1.0) for k in slopes}
    for u in (medium.step, partial(medium.series, (0.0, 0.0, 1.0)), *responses.values()):
        for d, tau in ((0.2, 0.1), (0.01, 0.001), (0.5, 0.9)):
            terms = np.array([
                jax.grad(u, 1)(d, tau), -D * jax.grad(jax.grad(u))(d, tau), v * jax.grad(u)(d, tau), -c * u(d, tau),
            ])  # fmt: skip
            assert abs(terms.sum()) <= 1e-10 * abs(terms).max()
        assert u(0.5, 1e-9) == 0.0
    for tau in (0.01, 0.5):
        assert medium.step(0.0, tau) == pytest.approx(1.0, rel=1e-12)
        for k, u in responses.items():
            assert jax.grad(u)(0.0, tau) - k * u(0.0, tau) == pytest.approx(-1.0, rel=1e-8)


def test_without_drift_the_series_is_that_of_repeated_integrals(wide):
    medium = Medium(0.3)
    N = [partial(medium.series, (0.0,) * n + (1.0,)) for n in range(4)]
    for d, tau in ((0.8, 0.1), (0.1, 0.01), (2.0, 2.0)):
        assert medium.step(d, tau) == pytest.approx(erfc(d / np.sqrt(4 * 0.3 * tau)), rel=1e-12)
        for lower, upper in zip([medium.step, *N], N, strict=False):
            assert jax.grad(upper)(d, tau) == pytest.approx(-float(lower(d, tau)), rel=1e-12)


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


@pytest.mark.parametrize(
    ("wall", "order"),
    [(lambda u, t: u - 2 + jnp.exp(-100 * t), 2), (lambda u, t: u.x + 5 - 5 * jnp.exp(-100 * t), 3)],
)
def test_what_saturates_soon_is_tapered(wide, wall, order):
    """The ramp of the first instant would go on to a hundred times the size; its beginning is right all the same."""
    problem = rod(left=wall)
    size = estimate(problem).unknowns[0]
    part = found(problem)["u"]
    given = 100.0 if order == 2 else 500 * 4 / (3 * np.sqrt(np.pi)) * 0.5
    for t in (1e-7, 1e-6):
        assert part(x=0.0, t=t) == pytest.approx(given * t ** (order / 2), rel=1e-3)
    assert max(abs(part(x=x, t=t)) for x in (0.0, 0.1, 0.5) for t in np.geomspace(1e-3, 1, 40)) < 1.1 * size


FLOWING = ds.interior(lambda u: u.t + 2 * u.x - 0.25 * u.xx + 0.7 * u)


@pytest.mark.parametrize("pde", [HEAT, FLOWING])
@pytest.mark.parametrize("value", [lambda x: 1.0 + 0.0 * x, lambda x: jnp.sin(3 * x)])
def test_a_wall_that_lets_heat_through(wide, value, pde):
    """What is left of its condition vanishes faster than the root of the time cubed, as the initial values change."""
    problem = rod(pde=pde, left=lambda u: u.x - 2 * (u - 7))
    conditions = {**problem.conditions, "ic": ds.initial(lambda u, x: u - value(x))}
    problem = ds.Problem(problem.domain, ("u",), conditions)
    part = found(problem)["u"]
    rate = lambda x: -problem.residual("pde", lambda z: jnp.atleast_1d(value(z[0])), jnp.array([x, 0.0]), "nested")
    u = lambda x, t: value(x) + t * rate(x) + part(x=x, t=t)
    left = [abs(float(jax.grad(u)(0.0, t) - 2 * (u(0.0, t) - 7))) for t in (1e-3, 1e-4)]
    assert left[0] < 0.02 and (left[0] < 1e-9 or np.log10(left[0] / left[1]) > 1.4)


@pytest.mark.parametrize(("wall", "power"), [(lambda u: u.x - 0.1 * u**4 + 0.2, 1.5)])
def test_a_wall_that_radiates(wide, wall, power):
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
