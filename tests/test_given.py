"""Where the spectra of data end, and rough solutions in spaces that are made for them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dsgnar as ds
from dsgnar.calculus.spaces import Polynomials
from dsgnar.problem.domain import Boundary, Initial, Interior
from dsgnar.problem.scales import estimate
from dsgnar.solving.given import ends
from dsgnar.solving.rough import Rough
from dsgnar.solving.survey import as_given, rough_solution, seen_as_given_only, survey
from dsgnar.suite.pinnacle import solutions
from dsgnar.suite.pinnacle.statements import heat_multiscale

ALL = Interior, Initial, Boundary


def heat(k, walls=lambda u: u):
    """A wave of k half-periods that decays at once along y and slowly along x."""
    start = lambda x, y: jnp.sin(k * jnp.pi * x) * jnp.sin(jnp.pi * y)
    conditions = {
        "pde": ds.interior(lambda u: u.t - u.xx / (k * jnp.pi) ** 2 - u.yy / jnp.pi**2),
        "ic": ds.initial(lambda u, x, y: u - start(x, y)),
        "bc": ds.boundary(walls),
    }
    return ds.Problem(ds.Box(x=(0, 1), y=(0, 1), t=(0, 0.5)), ("u",), conditions)


@pytest.fixture(autouse=True)
def wide():
    with jax.enable_x64(True):
        yield


def test_a_box_of_degrees_begins_with_the_smoothest():
    space = Polynomials.box((4, 1), (False, False))
    assert space.size == 10 and space.degrees.tolist()[0] == [0, 0] and space.degrees.tolist()[-1] == [4, 1]
    sums = space.degrees / np.array([4, 1])
    assert np.all(np.diff(sums.sum(axis=1)) >= -1e-12)


def test_where_data_end():
    x, y, t = ends(heat(12), ALL, 1e-6)  # cos(6 pi xi): Bessel functions J_n(18.8)
    assert 22 <= x <= 30 and 4 <= y <= 8 and t == 0
    assert ends(heat(12), (Interior,), 1e-6).tolist() == [0, 0, 0]


def test_values_on_walls_and_sources_count():
    problem = heat(1, walls=lambda u, t: u - jnp.sin(40 * t))
    assert ends(problem, ALL, 1e-6)[2] > 10


def test_what_is_rough_says_nothing():
    assert ends(heat(1, walls=lambda u, t: u - jnp.sign(t - 0.2)), ALL, 1e-6) is None


def test_a_space_has_the_degrees_of_the_data_and_even_ones_beside_them():
    space = as_given(heat(12), 1500, (False,) * 3)
    x, y, t = space.degrees.max(axis=0)
    assert 22 <= x <= 30 and 5 <= y <= 8 and 5 <= t <= 8 and space.size <= 1500
    assert as_given(heat(12), 100, (False,) * 3) is None  # too few functions
    assert as_given(heat(1), 1500, (False,) * 3).degrees.max(axis=0).tolist() == [10, 10, 10]  # even: 11^3 functions


def test_such_a_space_holds_a_wave_that_even_ones_of_its_size_do_not():
    problem = heat(8)
    scales, space = estimate(problem), as_given(problem, 800, (False,) * 3)
    even = Polynomials.of(space.size, (False,) * 3)
    rough = Rough(problem, scales, space.size)
    assert rough.solve(space).left < 5e-3 < 0.1 < rough.solve(even).left


@pytest.mark.slow
def test_a_heat_equation_that_conducts_far_better_along_one_axis():
    problem = heat_multiscale()
    scales = estimate(problem)
    found = survey(problem, scales)
    assert found.fast and found.frequencies[0] == pytest.approx(10 * np.pi, rel=0.1) and max(found.frequencies[1:]) < 5
    assert seen_as_given_only(problem, scales)
    rough, left = rough_solution(problem, scales)
    points = np.random.default_rng(0).uniform(0, 1, (500, 3)) * [1, 1, 5]
    exact = solutions.heat_multiscale(points).ravel()
    assert left < 1e-3 and np.linalg.norm(rough.at(points)[:, 0] - exact) < 5e-3 * np.linalg.norm(exact)
