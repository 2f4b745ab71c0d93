"""Inverse problems in space and time, solved without settings."""

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.polynomial.legendre import leggauss

import dsgnar as ds
from dsgnar.suite.burgers import exact as burgers

pytestmark = pytest.mark.slow


def close(solution, truth, sizes=3.5):
    """Every coefficient within some standard errors of the truth, and each of these below a tenth of the value."""
    assert solution.verdict == "solved", solution.summary()
    for name, value in truth.items():
        found = solution.coefficients[name]
        assert found.determined and found.standard_error < 0.1 * abs(value)
        assert abs(found.value - value) < sizes * found.standard_error, (name, found)
    assert solution.outcome.inference.distance < 0.3


def test_the_viscosity_of_burgers_equation():
    """The standard error is that of the exact solution's derivative by the viscosity."""
    rng = np.random.default_rng(0)
    x, t = rng.uniform(-1, 1, 100), rng.uniform(0, 1, 100)
    values = burgers(x, t) + 0.01 * rng.normal(size=100)
    problem = ds.Problem(
        domain=ds.Box(x=(-1, 1), t=(0, 1)),
        unknowns="u",
        coefficients={"nu": ds.Coefficient(0.1, positive=True)},
        conditions={
            "pde": ds.interior(lambda u, nu: u.t + u * u.x - nu * u.xx),
            "ic": ds.initial(lambda u, x: u + jnp.sin(jnp.pi * x)),
            "data": ds.data(lambda u: u, at={"x": x, "t": t}, values=values, noise=0.01),
        },
        periodic=("x",),
    )
    solution = ds.solve(problem)
    close(solution, {"nu": 0.01})
    nu = solution.coefficients["nu"]
    slope = (burgers(x, t, nu.value + 1e-5) - burgers(x, t, nu.value - 1e-5)) / 2e-5
    assert nu.standard_error == pytest.approx(0.01 / np.linalg.norm(slope), rel=0.05)


def test_two_coefficients_of_the_korteweg_de_vries_equation():
    """A soliton of u_t + a u u_x + b u_xxx = 0 with a = 6, b = 1."""
    speed = 2.0
    root = np.sqrt(speed)

    def soliton(x, t, xp=jnp):
        return speed / 2 / xp.cosh(root / 2 * (x - speed * t + 1)) ** 2

    rng = np.random.default_rng(0)
    x, t = rng.uniform(-5, 5, 200), rng.uniform(0, 1, 200)
    values = soliton(x, t, np) + 0.01 * rng.normal(size=200)
    slope = lambda x, t: -root * jnp.tanh(root / 2 * (x - speed * t + 1)) * soliton(x, t)
    problem = ds.Problem(
        domain=ds.Box(x=(-5, 5), t=(0, 1)),
        unknowns="u",
        coefficients={"a": ds.Coefficient(1.0), "b": ds.Coefficient(0.1)},
        conditions={
            "pde": ds.interior(lambda u, a, b: u.t + a * u * u.x + b * u.xxx),
            "ic": ds.initial(lambda u, x: u - soliton(x, 0.0)),
            "ends": ds.boundary(lambda u, x, t: u - soliton(x, t)),
            "slope": ds.boundary(lambda u, x, t: u.x - slope(x, t), faces=[("x", "upper")]),
            "data": ds.data(lambda u: u, at={"x": x, "t": t}, values=values, noise=0.01),
        },
    )
    close(ds.solve(problem), {"a": 6.0, "b": 1.0})


def test_a_coefficient_inside_a_boundary_condition():
    """Heat with u_x = h u and u_x = -h u at the ends: cos(m (x - 1/2)) exp(-m^2 t) with h = m tan(m / 2)."""
    m = 1.2
    rng = np.random.default_rng(0)
    x, t = rng.uniform(0, 1, 60), rng.uniform(0, 1, 60)
    values = np.cos(m * (x - 0.5)) * np.exp(-(m**2) * t) + 0.005 * rng.normal(size=60)
    problem = ds.Problem(
        domain=ds.Box(x=(0, 1), t=(0, 1)),
        unknowns="u",
        coefficients={"h": ds.Coefficient(2.0, positive=True)},
        conditions={
            "heat": ds.interior(lambda u: u.t - u.xx),
            "ic": ds.initial(lambda u, x: u - jnp.cos(m * (x - 0.5))),
            "left": ds.boundary(lambda u, h: u.x - h * u, faces=[("x", "lower")]),
            "right": ds.boundary(lambda u, h: u.x + h * u, faces=[("x", "upper")]),
            "data": ds.data(lambda u: u, at={"x": x, "t": t}, values=values, noise=0.005),
        },
    )
    close(ds.solve(problem), {"h": m * np.tan(m / 2)})


def test_the_position_of_a_source():
    """lap u + 10 exp(-|x - x0|^2 / (2 w^2)) = 0 with u = 0 on a square; the reference is a sine series."""
    place, width, modes = (0.62, 0.35), 0.15, np.arange(1, 41)
    nodes, weights = leggauss(200)
    nodes, weights = (nodes + 1) / 2, weights / 2
    waves = np.sin(np.pi * modes[:, None] * nodes)
    first, second = (2 * waves @ (weights * np.exp(-((nodes - c) ** 2) / (2 * width**2))) for c in place)
    series = 10 * np.outer(first, second) / (np.pi**2 * (modes[:, None] ** 2 + modes**2))
    rng = np.random.default_rng(0)
    x, y = rng.uniform(0, 1, 50), rng.uniform(0, 1, 50)
    clean = np.einsum("kl,kn,ln->n", series, *(np.sin(np.pi * modes[:, None] * z) for z in (x, y)))
    source = lambda x, y, x0, y0: 10 * jnp.exp(-((x - x0) ** 2 + (y - y0) ** 2) / (2 * width**2))
    problem = ds.Problem(
        domain=ds.Box(x=(0, 1), y=(0, 1)),
        unknowns="u",
        coefficients={"x0": ds.Coefficient(0.5), "y0": ds.Coefficient(0.5)},
        conditions={
            "pde": ds.interior(lambda u, x, y, x0, y0: ds.laplacian(u) + source(x, y, x0, y0)),
            "bc": ds.boundary(lambda u: u),
            "data": ds.data(lambda u: u, at={"x": x, "y": y}, values=clean + 0.001 * rng.normal(size=50), noise=0.001),
        },
    )
    close(ds.solve(problem), dict(zip(("x0", "y0"), place, strict=True)))


def test_a_conductivity_of_space_in_a_problem_of_space_and_time():
    """u_t = (k u_x)_x + f with u = exp(-t) sin(pi x) and k = 1 + sin(2 pi x) / 2."""
    rng = np.random.default_rng(0)
    x, t = rng.uniform(0, 1, 300), rng.uniform(0, 1, 300)
    values = np.exp(-t) * np.sin(np.pi * x) + 0.01 * rng.normal(size=300)

    def source(x, t):
        k, slope = 1 + jnp.sin(2 * jnp.pi * x) / 2, jnp.pi * jnp.cos(2 * jnp.pi * x)
        sine, cosine = jnp.sin(jnp.pi * x), jnp.cos(jnp.pi * x)
        return jnp.exp(-t) * ((jnp.pi**2 * k - 1) * sine - jnp.pi * slope * cosine)

    problem = ds.Problem(
        domain=ds.Box(x=(0, 1), t=(0, 1)),
        unknowns=("u", ds.Unknown("k", axes=("x",), positive=True)),
        conditions={
            "heat": ds.interior(lambda u, k, x, t: u.t - k * u.xx - k.x * u.x - source(x, t)),
            "ic": ds.initial(lambda u, x: u - jnp.sin(jnp.pi * x)),
            "bc": ds.boundary(lambda u: u),
            "data": ds.data(lambda u: u, at={"x": x, "t": t}, values=values, noise=0.01),
        },
    )
    solution = ds.solve(problem)
    grid = np.linspace(0, 1, 201)
    found, true = solution(x=grid, t=0.5)["k"], 1 + np.sin(2 * np.pi * grid) / 2
    assert solution.verdict == "solved"
    assert np.linalg.norm(found - true) < 1e-2 * np.linalg.norm(true)
