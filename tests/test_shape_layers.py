"""Initial layers around round holes: they solve their equation, take what is stated on the holes, and stay out elsewhere."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special

import dsgnar as ds
from dsgnar.problem.scales import estimate
from dsgnar.problem.shape_layers import erfcx
from dsgnar.problem.singular import singular_parts, with_singular_parts


@pytest.fixture(autouse=True)
def wide():
    with jax.enable_x64(True):
        yield


def room(law, sides="xyz", **changes):
    """A box with a ball of radius 0.5 cut out, at 1 in the beginning, diffusivity 0.3."""
    solid = ds.Box(**dict.fromkeys(sides, (-2, 2)))
    shape = solid - ds.Ball(radius=0.5, name="hole", **dict.fromkeys(sides, 0.25))
    conditions = {
        "pde": ds.interior(lambda u: u.t - 0.3 * ds.laplacian(u)),
        "ic": ds.initial(lambda u: u - 1),
        "hole": ds.boundary(law, on="hole"),
        "sides": ds.boundary(lambda u: u.n, on="box"),
    }
    return ds.Problem(shape.over(t=(0, 0.5)), ("u",), conditions | changes)


def found(problem):
    return singular_parts(problem, estimate(problem))


def residuals(problem, name, points):
    """Of a network that is 1 everywhere, with the singular part."""
    u = with_singular_parts(problem, estimate(problem)).constrained(lambda z: jnp.ones(1))
    return np.asarray(jax.jit(jax.vmap(lambda p: problem.residual(name, u, p, "nested")))(jnp.asarray(points)))


def near(radius, t, sides):
    """Points around the hole."""
    directions = np.random.default_rng(0).normal(size=(3, sides))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return np.hstack([0.25 + radius * directions, np.full((3, 1), t)])


def test_erfcx():
    z = np.linspace(-3, 60, 500)
    np.testing.assert_allclose(erfcx(jnp.asarray(z)), special.erfcx(z), rtol=1e-12)


@pytest.mark.parametrize("hole", [lambda u: u - 3, lambda u: u.n - 2 * (3 - u), lambda u: u.n - 4])
def test_around_a_ball_the_layer_is_exact(hole):
    """In three dimensions nothing is left, however large the time."""
    problem = room(hole)
    assert "u" in found(problem)
    times = 0.001, 0.4
    assert np.abs(residuals(problem, "hole", np.concatenate([near(0.5, t, 3) for t in times]))).max() < 1e-9
    inside = [near(radius, t, 3) for t in times for radius in (0.52, 0.9)]
    assert np.abs(residuals(problem, "pde", np.concatenate(inside))).max() < 1e-8


def test_around_a_disc_little_is_left():
    """A term without derivatives: of the equation there is a small part of its own terms, however early."""
    problem = room(lambda u: u.n - 2 * (3 - u), "xy")
    for t in (1e-4, 1e-2):
        assert np.abs(residuals(problem, "hole", near(0.5, t, 2))).max() < 1e-9
        left = np.abs(residuals(problem, "pde", near(0.5 + 0.5 * np.sqrt(t), t, 2))).max()
        assert 0 < left < 4 * np.sqrt(t)  # u_t is 1/sqrt(t)


def test_layers_of_several_holes_are_added():
    def plate(*places):
        solid = ds.Box(x=(-4, 4), y=(-4, 4))
        for x in places:
            solid = solid - ds.Ball(x=x, y=0, radius=1, name="holes")
        conditions = {
            "pde": ds.interior(lambda u: u.t - ds.laplacian(u)),
            "ic": ds.initial(lambda u: u),
            "holes": ds.boundary(lambda u: u - 5, on="holes"),
            "sides": ds.boundary(lambda u: u, on="box"),
        }
        return found(ds.Problem(solid.over(t=(0, 1)), ("u",), conditions))["u"]

    at = dict(x=0.1, y=0.5, t=0.7)
    assert float(plate(-2, 2)(**at)) == pytest.approx(float(plate(-2)(**at) + plate(2)(**at)))


@pytest.mark.parametrize(
    "hole",
    [
        ds.boundary(lambda u: u - 1, on="hole"),  # fits
        ds.boundary(lambda u, x: u - 1 - x, on="hole"),  # differs along the hole
        ds.boundary(lambda u: u - 3, on="hole", where=lambda x, y: x > 0),  # on a part of it
        ds.boundary(lambda u: u.t + u, on="hole"),
    ],
)
def test_where_there_is_none(hole):
    assert found(room(lambda u: u, "xy", hole=hole)) == {}


def test_what_does_not_diffuse_alike_in_all_directions_has_none():
    uneven = ds.interior(lambda u: u.t - 0.3 * u.xx - 0.1 * u.yy)
    assert found(room(lambda u: u - 3, "xy", pde=uneven)) == {}
