"""The secular solver on known spectra; what must hold for every factorisation is in test_factorise.py."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsgnar.optimise.subproblem import FactorisationError, Spectral, checked

EXPONENTS = st.floats(-30.0, 4.0)


def spectral(s, c, floor: float = 0.0) -> Spectral:
    s, c = np.asarray(s, float), np.asarray(c, float)
    return Spectral(float(np.linalg.norm(c)), float(np.linalg.norm(s * c)), floor, s, s * c, lambda t: t)


def test_hand_computed_numbers():
    problem = spectral([2.0], [3.0])  # p = -2*3/(4 + lam)
    trial = problem.at(2.0)
    assert trial.norm == pytest.approx(1.0, rel=1e-15)
    assert trial.decrease == pytest.approx(0.5 * 9 - 0.5 * (3 - 2) ** 2, rel=1e-15)
    assert trial.slope == pytest.approx(-1 / 6, rel=1e-15)
    assert problem.solve_radius(0.5).lam == pytest.approx(8.0, rel=1e-10)
    assert problem.step(2.0) == pytest.approx([-1.0])


@settings(max_examples=200, deadline=None)
@given(exponent=EXPONENTS, seed=st.integers(0, 2**31), lowest=st.floats(-16.0, 1.0), decay=st.floats(0.0, 12.0))
def test_norm_equals_radius_over_thirty_orders_of_lambda(exponent, seed, lowest, decay):
    c = np.random.default_rng(seed).normal(size=40) * np.logspace(0, -decay, 40)
    problem = spectral(np.logspace(2, lowest, 40), c)
    radius = problem.at(10.0**exponent).norm
    problem.trials.clear()
    trial = problem.solve_radius(radius)
    assert trial.norm == pytest.approx(radius, rel=1e-10)
    assert len(problem.trials) < 60


@settings(max_examples=100, deadline=None)
@given(
    exponent=st.floats(-12.0, 3.0),
    seed=st.integers(0, 2**31),
    zeros=st.integers(1, 19),
    noise=st.sampled_from([0.0, 1e-17]),
)
def test_zero_singular_values(exponent, seed, zeros, noise):
    s = np.concatenate((np.logspace(1, -3, 20 - zeros), np.full(zeros, noise)))
    problem = spectral(s, np.random.default_rng(seed).normal(size=20))
    radius = problem.at(10.0**exponent).norm
    problem.trials.clear()
    assert problem.solve_radius(radius).norm == pytest.approx(radius, rel=1e-10)


def test_minimum_norm_step_when_it_fits_the_radius():
    problem = spectral([2.0, 1.0, 0.0], [2.0, 1.0, 5.0])
    trial = problem.solve_radius(10.0)
    assert trial.lam == 0.0
    assert trial.norm == pytest.approx(math.sqrt(2.0), rel=1e-15)
    assert trial.decrease == pytest.approx(2.5, rel=1e-15)
    assert problem.step(0.0) == pytest.approx([-1.0, -1.0, 0.0])


def test_a_floor_raises_lambda_and_says_so():
    problem = spectral([2.0, 1.0], [2.0, 1.0], floor=1e-3)
    assert problem.at(0.0).lam == 1e-3
    assert problem.solve_radius(10.0).lam == 1e-3


@pytest.mark.parametrize("s, c", [([1.0, 2.0], [0.0, 0.0]), ([0.0, 0.0], [1.0, 1.0])])
def test_nothing_to_gain(s, c):
    problem = spectral(s, c)
    for radius in (1.0, 0.1, 3.0):  # what one search leaves in memory must not break the next
        trial = problem.solve_radius(radius)
        assert (trial.norm, trial.decrease, trial.lam) == (0.0, 0.0, 0.0)


def test_one_search_brackets_the_next():
    problem = spectral(np.logspace(2, -14, 300), np.random.default_rng(0).normal(size=300))
    radius = problem.at(1e-16).norm
    problem.solve_radius(radius * 0.5)
    before = len(problem.trials)
    assert problem.solve_radius(radius * 0.8).norm == pytest.approx(radius * 0.8, rel=1e-10)
    assert len(problem.trials) - before <= 5


@settings(max_examples=50, deadline=None)
@given(EXPONENTS, EXPONENTS, st.integers(0, 2**31))
def test_norm_and_decrease_fall_with_lambda(a, b, seed):
    rng = np.random.default_rng(seed)
    problem = spectral(10.0 ** rng.uniform(-14, 2, 30), rng.normal(size=30))
    less, more = sorted((10.0**a, 10.0**b))
    assert problem.at(less).norm >= problem.at(more).norm
    assert problem.at(less).decrease >= problem.at(more).decrease * (1 - 1e-14)


def test_slope_is_the_derivative():
    problem = spectral(np.logspace(1, -2, 20), np.ones(20))
    lam, h = 0.03, 1e-6
    difference = (problem.at(lam + h).norm - problem.at(lam - h).norm) / (2 * h)
    assert problem.at(lam).slope == pytest.approx(difference, rel=1e-6)


@pytest.mark.parametrize("radius", [0.0, -1.0, math.nan, math.inf])
def test_a_bad_radius_is_named(radius):
    with pytest.raises(ValueError, match="radius"):
        spectral([1.0], [1.0]).solve_radius(radius)


@pytest.mark.parametrize("lam", [-1.0, math.nan])
def test_a_bad_lambda_is_named(lam):
    with pytest.raises(ValueError, match="lam"):
        spectral([1.0], [1.0]).at(lam)


def test_inputs_are_checked():
    with pytest.raises(ValueError, match="rows"):
        checked(np.ones((3, 4)), np.ones(4))
    with pytest.raises(ValueError, match="float32 or float64"):
        checked(np.ones((3, 4), int), np.ones(3))
    with pytest.raises(FactorisationError, match="inf or nan"):
        checked(np.full((3, 4), np.nan), np.ones(3))
