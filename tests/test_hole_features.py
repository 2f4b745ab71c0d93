"""Holes that a network sees: which there are, and what it is told about them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dsgnar as ds
from dsgnar.networks.holes import MANY, TINY, Around, Hole
from dsgnar.problem.region import as_domain
from dsgnar.problem.scales import estimate
from dsgnar.solving.model import build, default_network, holes
from dsgnar.suite.pinnacle import shaped

SQUARE = ds.Box(x=(-1, 1), y=(-1, 1))


def test_which_holes_there_are():
    disc = ds.Ball(x=0.2, y=0.1, radius=0.3)
    ((middle, radius),) = as_domain(SQUARE - disc).holes
    assert middle == pytest.approx((0.2, 0.1)) and radius == pytest.approx(0.3)
    box = ds.Box(x=(-0.6, -0.4), y=(0.2, 0.8), name="slot")
    ((middle, radius),) = as_domain(SQUARE - box).holes
    assert middle == pytest.approx((-0.5, 0.5)) and radius == pytest.approx(0.1)
    assert as_domain(SQUARE - ds.Box(x=(0, 1), y=(-1, 0), name="cut")).holes == ()  # reaches the side
    assert as_domain(SQUARE - (disc - ds.Ball(x=0.2, y=0.1, radius=0.1))).holes == ()  # its middle is inside
    assert as_domain(SQUARE & disc).holes == ()


def test_features_are_harmonic_and_of_size_one():
    """In the plane: log r, and the coordinates of the point mirrored in the circle."""
    hole = Hole((0.2, -0.1), (4.0, 4.0), 12.0)  # of radius 1/4
    around = Around((hole,))
    with jax.enable_x64(True):
        for x in (jnp.array([0.2, 0.16]), jnp.array([0.9, -0.7])):
            hessian = jax.hessian(around)(x)
            np.testing.assert_allclose(hessian[:, 0, 0] + hessian[:, 1, 1], 0, atol=1000 * TINY)  # of about 100
            assert np.abs(around(x)).max() <= 1
        np.testing.assert_allclose(around(jnp.array([0.45, -0.1])), [-1, 1, 0], atol=2 * TINY)
        assert np.isfinite(around(jnp.array([0.2, -0.1]))).all()


def test_many_holes_have_one_feature_each():
    hole = Hole((0.0, 0.0, 0.0), (1.0, 1.0, 1.0), 4.0)
    count = MANY // 4 + 1
    assert Around((hole,) * (count - 1)).size == MANY and Around((hole,) * count).size == count
    assert Around((hole,) * count)(jnp.array([1.0, 1.0, 1.0, 0.3])).shape == (count,)


def test_holes_in_units_of_the_network():
    """A hole of radius 0.4 in a plate of half-widths 8 and 12."""
    problem = shaped.heat()
    small = holes(problem, estimate(problem))[-1]
    assert small.centre == pytest.approx((0.4, 0.5)) and small.stretch == pytest.approx((20.0, 30.0))


def test_the_default_network_sees_them():
    problem = shaped.poisson_classic()
    scales = estimate(problem)
    chosen = default_network(problem, scales)
    assert chosen.holes
    with jax.enable_x64(True):
        network = build(chosen, problem, "double", 0, scales=scales)
        assert network.network.layers[0].affine.weight.shape[0] == 2 + 3 * 4  # beside the functions of corners
        assert network(jnp.array([0.1, 0.2])).shape == (1,)


def test_a_box_has_none():
    conditions = {"pde": ds.interior(lambda u: ds.laplacian(u)), "sides": ds.boundary(lambda u: u - 1)}
    problem = ds.Problem(SQUARE, ("u",), conditions)
    assert not default_network(problem, estimate(problem)).holes and holes(problem, None) == ()
