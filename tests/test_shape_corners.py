"""Corners of plane shapes: where they are, and the functions that a network is given there."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dsgnar as ds
from dsgnar.networks.singular import Corner, Cornered
from dsgnar.problem.fields import supports_taylor
from dsgnar.problem.shape_corners import shape_corners
from dsgnar.solving.context import Context
from dsgnar.solving.model import corners

L = ds.Box(x=(-1, 1), y=(-1, 1)) - ds.Box(x=(0, 1), y=(-1, 0), name="cut")
VALUES = {"sides": ds.boundary(lambda u: u)}


def problem(domain=L, pde=lambda u: ds.laplacian(u) + 1, sides=None, **options):
    conditions = {"pde": ds.interior(pde), **(VALUES if sides is None else sides)}
    return ds.Problem(domain=domain, unknowns=("u",), conditions=conditions, **options)


def test_the_corners_of_an_l_shape():
    found = {tuple(np.round(c.place, 9)): c for c in shape_corners(problem())}
    assert set(found) == {(-1, -1), (-1, 1), (1, 1), (1, 0), (0, -1), (0, 0)}
    inwards = found.pop((0.0, 0.0))
    assert inwards.opening == pytest.approx(1.5 * math.pi) and inwards.middle == pytest.approx(0.75 * math.pi)
    np.testing.assert_allclose(inwards.powers, [2 / 3, 4 / 3, 2, 8 / 3], rtol=1e-12)
    assert inwards.logarithms == (False, False, True, False) and inwards.sine and inwards.reach == math.inf
    assert all(c.powers == (2.0,) and c.logarithms == (True,) for c in found.values())


def test_slopes_and_values_have_other_powers():
    sides = {"cut": ds.boundary(lambda u: u.n, on="cut"), "box": ds.boundary(lambda u: u, on="box")}
    found = {tuple(np.round(c.place, 9)): c for c in shape_corners(problem(sides=sides))}
    assert not found[0.0, 0.0].sine and found[0.0, 0.0].powers[0] == pytest.approx(2 / 3)
    assert (1.0, 0.0) not in found  # r sin(theta) is smooth
    triangle = ds.Polygon([(0, 0), (2, 0), (0, 2)])
    where = {
        "low": ds.boundary(lambda u: u.n, where=lambda x, y: y < 1e-6),
        "rest": ds.boundary(lambda u: u, where=lambda x, y: y > 1e-6),
    }
    mixed = {tuple(np.round(c.place, 9)): c for c in shape_corners(problem(triangle, sides=where))}
    assert mixed[2.0, 0.0].powers == (2.0,) and mixed[2.0, 0.0].logarithms == (True,)  # (k - 1/2) pi / (pi / 4)


def test_the_corners_of_a_square_hole_fade_out_before_they_come_back():
    domain = ds.Box(x=(-1, 1), y=(-1, 1)) - ds.Box(x=(-0.2, 0.2), y=(-0.2, 0.2), name="hole")
    found = {tuple(np.round(c.place, 9)): c for c in shape_corners(problem(domain))}
    assert 0.9 * 0.4 * math.sqrt(2) < found[0.2, 0.2].reach < 0.4 * math.sqrt(2)
    assert found[0.2, 0.2].powers[0] == pytest.approx(2 / 3) and found[1.0, 1.0].reach == math.inf


@pytest.mark.parametrize(
    "other",
    [
        dict(pde=lambda u: u.xx + 4 * u.yy),  # not isotropic
        dict(domain=ds.Ball(x=0, y=0, radius=1)),
        dict(sides={"sides": ds.boundary(lambda u: u, where=lambda x, y: y < -0.99999)}),  # one side of each corner
        dict(domain=ds.Box(x=(0, 1), y=(0, 1))),  # of plain boxes `wedges.py` knows
    ],
)
def test_no_corners_where_nothing_is_known(other):
    assert shape_corners(problem(**other)) == ()


@pytest.mark.parametrize("sine", [True, False])
def test_functions_of_corners_are_harmonic_and_meet_their_conditions(sine):
    opening = 1.5 * math.pi
    powers = (2 / 3, 4 / 3, 2.0)
    one = Corner(0, (0.1, -0.2), (1.0, 1.0), 0.75 * math.pi, opening, powers, (False, False, True), sine, math.inf)
    angles = np.linspace(0.1, opening - 0.1, 7)
    points = np.array([0.1, -0.2]) + 0.5 * np.stack([np.cos(angles), np.sin(angles)], 1)
    hessian = np.asarray(jax.vmap(jax.hessian(one))(jnp.asarray(points)))
    np.testing.assert_allclose(hessian[:, :, 0, 0] + hessian[:, :, 1, 1], 0, atol=1e-12)
    first, last = jnp.array([0.6, -0.2]), jnp.array([0.1, -0.7])
    slopes = jax.jacobian(one)
    along = (slopes(first)[:2, 1], slopes(last)[:2, 0])
    kept = (one(first)[:2], one(last)[:2]) if sine else along
    np.testing.assert_allclose(kept, 0, atol=1e-12)


def test_the_network_of_a_shape_has_its_corners_and_begins_without_them():
    context = Context.of(problem(), ds.MLP(widths=(4,)))
    network = context.residuals.parameters.network(jnp.asarray(context.first))
    assert isinstance(network, Cornered) and network.strengths.size == 5 + 4 and not np.any(network.strengths)
    assert context.residuals.mode == "taylor" and supports_taylor(network, 2, jnp.float64)
    made = {c.centre: c for c in corners(context.problem, context.settings.scales)}[0.0, 0.0]
    # In units of half the diagonal: the strength of one function is that of r^(2/3) sin(2 theta / 3) up to a factor.
    x = np.array([[0.3, 0.4]])
    theta, unit = np.arctan2(0.4, 0.3), math.sqrt(2)
    assert made(jnp.asarray(x[0]))[0] == pytest.approx((0.5 / unit) ** (2 / 3) * math.sin(2 * theta / 3))
