"""How fast sources vary, and networks of sines that follow them where a first network failed."""

import jax.numpy as jnp
import numpy as np
import pytest

import dsgnar as ds
from dsgnar.problem.scales import estimate
from dsgnar.solving.model import default_network, other_network
from dsgnar.solving.settings import Settings
from dsgnar.solving.sources import sources
from dsgnar.solving.tolerance import kinds
from dsgnar.suite.pinnacle import shaped


def stated(f, **sides):
    conditions = {"pde": ds.interior(lambda u, x, y: ds.laplacian(u) - f(x, y)), "sides": ds.boundary(lambda u: u)}
    return ds.Problem(ds.Box(**(sides or dict(x=(0, 2), y=(0, 2)))), ("u",), conditions)


def test_the_frequency_of_a_source_along_each_axis():
    x, y = sources(stated(lambda x, y: 3 + jnp.sin(20 * x) * jnp.cos(y)))
    assert x == pytest.approx(20, rel=0.1) and y < 2
    twice = sources(stated(lambda x, y: 3 + jnp.sin(20 * x) * jnp.cos(y), x=(0, 4), y=(0, 2)))
    assert twice[0] == pytest.approx(40, rel=0.1)  # radians per half-width


@pytest.mark.parametrize("f", [lambda x, y: 0 * x, lambda x, y: jnp.sign(jnp.sin(50 * x))])
def test_no_source_and_a_rough_one_say_nothing(f):
    assert sources(stated(f)) is None


def test_waves_of_a_source_around_balls_are_begun_with():
    """Five periods along y: a survey does not see them, and networks do not find them by themselves."""
    problem = shaped.poisson3d()
    x, y, z = sources(problem)
    assert 0.9 * 5 * np.pi < y < 1.1 * 10 * np.pi and z > 7 and x < 5  # or of the second harmonic
    scales = estimate(problem)
    chosen = other_network(problem, scales, default_network(problem, scales))
    assert isinstance(chosen, ds.Siren) and chosen.holes and chosen.frequencies[1] >= 8


def test_a_first_network_that_is_too_slow_is_tried_once_and_the_next_weighs_the_equation_fully():
    (first, once), (second, settings) = kinds(shaped.poisson3d(), None, Settings(), ds.MLP)
    assert first is None and once.chosen_method().restarts == 0
    assert isinstance(second, ds.Siren) and settings.chosen_method().interior_weight == 1
    assert settings.chosen_method().restarts == Settings().chosen_method().restarts == 2
    slow = stated(lambda x, y: 1 + x)
    assert [s.chosen_method().interior_weight for _, s in kinds(slow, None, Settings(), ds.MLP)] == [0.01, 0.01]
