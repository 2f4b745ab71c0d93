"""Sizes that are foreseen from a rough solution."""

import jax.numpy as jnp
import numpy as np
import pytest

import dsgnar as ds
from dsgnar.problem.scales import estimate
from dsgnar.solving.forecast import forecast
from dsgnar.solving.sizing import foreseen
from dsgnar.solving.tolerance import levels

IC = ds.initial(lambda u: u - 1)


def seen(problem):
    return forecast(problem, estimate(problem))


def first_order(residual, t=(0, 1), **more):
    return ds.Problem(ds.Box(t=t), ("u",), {"pde": ds.interior(residual), "ic": IC, **more})


def epidemic(N=8e6, days=1.0):
    b, g = 0.35 / days, 0.1 / days
    return ds.Problem(
        ds.Box(t=(0, 120 * days)),
        ("S", "I"),
        {
            "susceptible": ds.interior(lambda S, I: S.t + b * S * I / N),
            "infected": ds.interior(lambda S, I: I.t - b * S * I / N + g * I),
            "S0": ds.initial(lambda S: S - (N - 100)),
            "I0": ds.initial(lambda I: I - 100),
        },
    )


def test_growth_is_foreseen():
    (size,) = seen(first_order(lambda u: u.t - 9 * u))
    assert size == pytest.approx(np.sqrt(np.mean(np.exp(18 * np.linspace(0, 1, 400)))), rel=1e-3)


def test_an_oscillator_of_second_order():
    oscillator = {"pde": ds.interior(lambda u: u.tt + 4 * u), "ic": IC, "rest": ds.initial(lambda u: u.t)}
    (size,) = seen(ds.Problem(ds.Box(t=(0, 50 * np.pi)), ("u",), oscillator))
    assert size == pytest.approx(np.sqrt(0.5), rel=1e-2)


def test_rates_that_stand_inside_a_function():
    (size,) = seen(first_order(lambda u: jnp.sinh(u.t) - 1))
    assert size == pytest.approx(np.sqrt(np.mean((1 + np.arcsinh(1) * np.linspace(0, 1, 400)) ** 2)), rel=1e-3)


UNKNOWN = {
    "a boundary value problem": ds.Problem(
        ds.Box(x=(0, 1)), ("u",), {"pde": ds.interior(lambda u: u.xx - 1), "bc": ds.boundary(lambda u: u)}
    ),
    "an algebraic equation": first_order(lambda u: u**2 - 1),
    "too few conditions": ds.Problem(ds.Box(t=(0, 1)), ("u",), {"pde": ds.interior(lambda u: u.tt + u), "ic": IC}),
    "blow-up": first_order(lambda u: u.t - u**2, t=(0, 2)),
    "a value at another time": first_order(lambda u: u.t + u, later=ds.at(lambda u: u, {"t": [0.5]})),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_cannot_be_foreseen(name):
    assert seen(UNKNOWN[name]) is None


def test_sizes_follow_the_solution_in_any_units():
    assert estimate(epidemic()).unknowns[1] < 1e3  # what the data say
    people = foreseen(epidemic()).unknowns
    assert people[1] == pytest.approx(1.1e6, rel=0.5)
    assert foreseen(epidemic(days=2.0**-30)).unknowns == people
    assert foreseen(epidemic(), {"I": 64.0}).unknowns[1] == 64.0  # what was given stays


def test_sizes_that_are_nearly_right_stay():
    problem = first_order(lambda u: u.t - u)
    assert foreseen(problem).unknowns == estimate(problem).unknowns


def test_a_survey_tells_sizes_too():
    """A source that acts on a fast wave: the data overestimate it by the square of its frequency."""
    w = 20.0
    wave = lambda x: jnp.sin(w * x)
    equation, ends = ds.interior(lambda u, x: u.xx + w**2 * wave(x)), ds.boundary(lambda u, x: u - wave(x))
    problem = ds.Problem(ds.Box(x=(-1, 1)), ("u",), {"pde": equation, "ends": ends})
    assert foreseen(problem).unknowns == (0.5,)
    assert foreseen(problem, surveyed=False).unknowns == estimate(problem).unknowns


def test_a_tolerance_begins_with_the_same_sizes():
    sizes = dict(zip("SI", foreseen(epidemic()).unknowns, strict=True))
    assert all(level.scales == sizes for _, level in levels(epidemic(), None, ds.Settings(tol=1e-6)))
