"""Corners at which the velocities of two walls do not fit: the Stokes flow there, where it is found, and where it is not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dsgnar as ds
from dsgnar.problem.flow import CornerFlow, corner_flows
from dsgnar.problem.scales import Scales
from dsgnar.problem.singular import singular_parts, with_singular_parts
from dsgnar.suite.cavity import corner_flow
from dsgnar.suite.pinnacle.statements import cavity


@pytest.fixture(autouse=True)
def wide():
    with jax.enable_x64(True):
        yield


def lid(profile, *, scale=1.0, viscosity=lambda u: 0.01, mass=lambda u, v: u.x + v.y):
    """A cavity of 2 x 1 whose lid moves with a profile of x in [0, 2]; the first equation is multiplied by a number."""
    pde = lambda u, v, p, w: u * w.x + v * w.y - viscosity(u) * ds.laplacian(w)
    return ds.Problem(
        ds.Box(x=(0, 2), y=(0, 1)),
        ("u", "v", "p"),
        {
            "x": ds.interior(lambda u, v, p: scale * (pde(u, v, p, u) + p.x)),
            "y": ds.interior(lambda u, v, p: pde(u, v, p, v) + p.y),
            "mass": ds.interior(mass),
            "lid": ds.boundary(lambda u, x: u - profile(x), faces=[("y", "upper")]),
            "walls": ds.boundary(lambda u: u, faces=[("x", "lower"), ("x", "upper"), ("y", "lower")]),
            "still": ds.boundary(lambda v: v),
            "level": ds.at(lambda p: p, {"x": 0.0, "y": 0.0}),
        },
    )


def test_it_is_a_stokes_flow_with_the_divergence_of_its_walls():
    flow = CornerFlow((2.0, 1.0), (-1.0, -1.0), 3.0, 0.2, 0.5)
    u, v, p = (lambda x, k=k: flow(k, x) for k in range(3))
    for x in (jnp.array([1.2, 0.3]), jnp.array([1.9, 0.4])):
        assert abs(jax.grad(u)(x)[0] + jax.grad(v)(x)[1]) < 1e-12  # also where it ends
    for x in (jnp.array([1.999, 0.998]), jnp.array([1.997, 0.999])):
        for k, w in enumerate((u, v)):
            assert 0.2 * jnp.trace(jax.hessian(w)(x)) == pytest.approx(float(jax.grad(p)(x)[k]), rel=1e-4)
    on_lid, on_wall = jnp.array([1.99, 1.0]), jnp.array([2.0, 0.99])
    np.testing.assert_allclose([u(on_lid), v(on_wall)], [-0.015, -0.015], rtol=1e-5)


def test_the_flow_of_the_driven_cavity_is_found():
    """It differs from the one of the suite by something smooth."""
    parts = singular_parts(cavity(), Scales(((0.5, 0.5),) * 2, (0.25, 0.25, 0.0625), (1.0,) * 6))

    def rest(name, r, angle):
        x, y = r * np.cos(angle), 1 - r * np.sin(angle)
        return float(parts[name](x=x, y=y)) - float(corner_flow(x, y, 100.0)["uvp".index(name)])

    for name, linear in (("u", True), ("v", True), ("p", False)):
        about = rest(name, 1e-9, 0.5)
        slopes = [(rest(name, 1e-3, angle) - about) / 1e-3 for angle in (0.2, 0.6, 1.0, 1.4)]
        directions = np.stack([np.cos([0.2, 0.6, 1.0, 1.4]), np.sin([0.2, 0.6, 1.0, 1.4])], axis=1)
        missed = np.linalg.lstsq(directions, slopes, rcond=None)[1]
        assert missed[0] < 1e-4 if linear else max(map(abs, slopes)) < 1


def test_it_leaves_residuals_that_vanish_at_the_corner():
    """Viscous terms and the slope of the pressure are 0.02 / r."""
    problem = lid(lambda x: x * (2 - x) / 2)
    scales = Scales(((1.0, 1.0), (0.5, 0.5)), (0.5, 0.5, 0.1), (1.0,) * 7)
    alone = with_singular_parts(problem, scales).constrained(lambda z: jnp.zeros(3))
    for name in ("mass", "x"):
        r = 1e-4
        assert abs(float(problem.residual(name, alone, jnp.array([r, 1 - r / 2]), "nested"))) < r


@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_strength_and_viscosity_of_a_lid(scale):
    names, flows = corner_flows(lid(lambda x: x * (2 - x) / 2, scale=scale)) or ((), [])
    if scale == 1.0:
        assert names == ("u", "v", "p")
        assert [(f.corner, round(f.strength, 9), round(f.viscosity, 9)) for f in flows] == [
            ((0.0, 1.0), 1.0, 0.01), ((2.0, 1.0), -1.0, 0.01)
        ]  # fmt: skip
    else:  # the ratio of viscous terms and pressure is what counts
        assert [round(f.viscosity, 9) for f in flows] == [0.01, 0.01]


@pytest.mark.parametrize(
    "problem",
    [
        lid(lambda x: (x * (2 - x)) ** 2),  # the walls fit
        lid(lambda x: 1.0 + 0 * x),  # they jump
        lid(lambda x: x * (2 - x), viscosity=lambda u: 0.01 * (1 + u.y * u.y)),  # no Stokes flow
        lid(lambda x: x * (2 - x), mass=lambda u, v: u.x + 2 * v.y),  # other walls' gradients would fit
        lid(lambda x: x * (2 - x), mass=lambda u, v: u.x - v.y),
    ],
)
def test_other_problems_are_left_alone(problem):
    _, flows = corner_flows(problem) or ((), [])
    assert not flows


def test_walls_that_follow_a_flow_without_divergence_fit():
    """Kovasznay's flow, whose gradients at the corners cancel but for rounding."""
    lam = 20 - np.sqrt(400 + 4 * np.pi**2)
    u_ = lambda x, y: 1 - jnp.exp(lam * x) * jnp.cos(2 * jnp.pi * y)
    v_ = lambda x, y: lam / (2 * jnp.pi) * jnp.exp(lam * x) * jnp.sin(2 * jnp.pi * y)
    walls = {"u": ds.boundary(lambda u, x, y: u - u_(x, y)), "v": ds.boundary(lambda v, x, y: v - v_(x, y))}
    inside = {k: c for k, c in cavity().conditions.items() if k in ("momentum_x", "momentum_y", "continuity")}
    names, flows = corner_flows(ds.Problem(ds.Box(x=(-0.5, 1), y=(-0.4, 1.4)), ("u", "v", "p"), inside | walls)) or ((), [])
    assert names == ("u", "v", "p") and not flows


def test_a_known_part_takes_its_place():
    problem = cavity()
    known = {name: (lambda x, y, k=k: corner_flow(x, y, 100.0)[k]) for k, name in enumerate("uvp")}
    given = ds.Problem(problem.domain, problem.unknowns, dict(problem.conditions), known=known)
    assert not singular_parts(given, Scales(((0.5, 0.5),) * 2, (1.0,) * 3, (1.0,) * 6))
