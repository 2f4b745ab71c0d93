"""How fast a solution varies, seen before a network is chosen, and networks that begin as fast."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dsgnar as ds
from dsgnar.calculus.spaces import Polynomials
from dsgnar.networks import Inputs
from dsgnar.problem.scales import estimate
from dsgnar.solving.correction import FULL, HALF, ROUNDING, LeastSquares
from dsgnar.solving.model import default_network, slower
from dsgnar.solving.rough import Rough
from dsgnar.solving.sizing import foreseen
from dsgnar.solving.spectrum import SLOWEST, Survey
from dsgnar.solving.survey import survey


def waves(k: float, length: float = 1.0, size: float = 1.0) -> ds.Problem:
    """u'' + k^2 u = 0 between two values."""
    return ds.Problem(
        ds.Box(x=(0, length)),
        ("u",),
        {
            "pde": ds.interior(lambda u: u.xx + (k / length) ** 2 * u),
            "left": ds.boundary(lambda u: u - size, faces=[("x", "lower")]),
            "right": ds.boundary(lambda u: u, faces=[("x", "upper")]),
        },
    )


def travelling(speed: float) -> ds.Problem:
    return ds.Problem(
        ds.Box(x=(0, 2 * np.pi), t=(0, 1)),
        ("u",),
        {"pde": ds.interior(lambda u: u.t + speed * u.x), "ic": ds.initial(lambda u, x: u - jnp.sin(x))},
        periodic=("x",),
    )


def seen(problem: ds.Problem) -> Survey:
    found = survey(problem, estimate(problem))
    assert found is not None
    return found


@pytest.mark.parametrize("k", [20 * np.pi + 1, 60.0])
def test_the_frequency_of_an_oscillation_is_found(k):
    assert seen(waves(k)).frequencies[0] == pytest.approx(k / 2, rel=0.1)  # the half-width is 1/2


def test_frequencies_are_found_along_each_axis():
    x, t = seen(travelling(30.0)).frequencies
    assert x == pytest.approx(np.pi) and t == pytest.approx(15.0, rel=0.1)


def test_a_fast_wave_along_one_of_three_axes_is_seen():
    """No even space of this size holds ten periods in a cube; one that is made for the initial values does."""
    rates = (1 / (500 * np.pi) ** 2, 1 / np.pi**2)
    problem = ds.Problem(
        ds.Box(x=(0, 1), y=(0, 1), t=(0, 5)),
        ("u",),
        {
            "pde": ds.interior(lambda u: u.t - rates[0] * u.xx - rates[1] * u.yy),
            "ic": ds.initial(lambda u, x, y: u - jnp.sin(20 * jnp.pi * x) * jnp.sin(jnp.pi * y)),
            "bc": ds.boundary(lambda u: u),
        },
    )
    found = seen(problem)
    assert found.fast and found.left < 1e-3
    assert found.frequencies[0] == pytest.approx(10 * np.pi, rel=0.1) and max(found.frequencies[1:]) < 5


def test_linear_equations_are_recognised():
    box, ends = ds.Box(x=(0, 1)), {"ends": ds.boundary(lambda u, x: u - x)}
    equations = {True: lambda u, x: u.xx + x * u - 1, False: lambda u: u.xx + jnp.sin(u)}  # an odd one, too
    for linear, equation in equations.items():
        problem = ds.Problem(box, ("u",), {"pde": ds.interior(equation), **ends})
        with jax.enable_x64(True):
            rough = Rough(problem, estimate(problem), 20)
            assert rough.affine(Polynomials.of(20, (False,))) is linear


def test_frequencies_of_a_nonlinear_equation_are_found_by_newtons_method():
    # u'' = -k^2 u - c (u^3 - sin^3), u = sin(k x)
    k, c = 24.0, 40.0
    problem = ds.Problem(
        ds.Box(x=(0, 1)),
        ("u",),
        {
            "pde": ds.interior(lambda u, x: u.xx + k**2 * u + c * (u**3 - jnp.sin(k * x) ** 3)),
            "ends": ds.boundary(lambda u, x: u - jnp.sin(k * x)),
        },
    )
    assert seen(problem).frequencies[0] == pytest.approx(k / 2, rel=0.15)


def test_slow_solutions_are_not_called_fast():
    assert not seen(waves(1.0)).fast and not seen(travelling(2.0)).fast
    assert seen(waves(60.0)).fast and seen(travelling(30.0)).fast


def test_a_layer_and_a_pulse_are_not_called_fast():
    rate = 1e3
    layer = ds.Problem(
        ds.Box(t=(0, 2)), ("u",), {"ode": ds.interior(lambda u: u.t + rate * u), "start": ds.initial(lambda u: u - 1)}
    )
    pulse = ds.Problem(ds.Box(x=(-10, 10)), ("u",), {"values": ds.interior(lambda u, x: u - 1 / jnp.cosh(x))})
    assert seen(layer).frequencies[0] > 20 and not seen(layer).fast
    assert seen(pulse).frequencies[0] > 10 and not seen(pulse).fast


@pytest.mark.parametrize(("length", "size"), [(2.0**30, 2.0**-20), (2.0**-30, 2.0**10), (1e-6, 300.0)])
def test_units_do_not_change_what_a_network_begins_with(length, size):
    assert seen(waves(60.0, length, size)).begin_with() == seen(waves(60.0)).begin_with()


def test_what_newtons_method_does_not_find_is_not_known():
    blows_up = ds.Problem(
        ds.Box(t=(0, 5)), ("u",), {"ode": ds.interior(lambda u: u.t - u**2), "start": ds.initial(lambda u: u - 1)}
    )
    assert survey(blows_up, estimate(blows_up)) is None


def test_an_equation_that_zero_does_not_satisfy_in_any_sense_is_not_known():
    pole = ds.Problem(
        ds.Box(t=(0, 1)), ("u",), {"ode": ds.interior(lambda u: u.t + u / u**1.5), "start": ds.initial(lambda u: u - 1)}
    )
    assert survey(pole, estimate(pole)) is None


def test_the_default_network_is_given_fast_sines_only_where_the_solution_is_fast():
    quick, slow = waves(60.0), waves(1.0)
    fast = default_network(quick, estimate(quick))
    assert isinstance(fast, ds.Siren) and fast.frequencies == (16.0,)
    assert isinstance(default_network(slow, estimate(slow)), ds.MLP)
    assert isinstance(default_network(quick, None), ds.MLP)  # the paper's method has no scales


def test_a_network_for_a_share_of_the_time_begins_more_slowly_along_time_alone():
    problem, network = travelling(60.0), ds.Siren(widths=(4,), frequencies=(8.0, 32.0))
    quarter = slower(network, problem, 0.25)
    assert isinstance(quarter, ds.Siren) and quarter.frequencies == (8.0, 8.0)
    least = slower(network, problem, 1e-3)
    assert isinstance(least, ds.Siren) and least.frequencies == (8.0, SLOWEST)
    assert slower(ds.MLP(widths=(4,)), problem, 0.25) == ds.MLP(widths=(4,))


def test_the_first_layer_begins_with_waves_up_to_the_frequencies():
    inputs = Inputs(((-1.0, 1.0), (-1.0, 1.0)), time=1, periodic=(0,))
    network = ds.Siren(widths=(400,), frequencies=(6 * np.pi, 20.0)).build(
        inputs, 1, key=jax.random.key(0), dtype=np.float64
    )
    largest = np.abs(np.asarray(network.layers[0].affine.weight)).max(axis=1)
    np.testing.assert_allclose(largest, [6.0, 6.0, 20.0], rtol=0.02)  # harmonics of pi: cosine and sine; then time


@pytest.mark.parametrize("wrong", [(1.0, -2.0), (math.nan,), (), "ab", 3.0])
def test_frequencies_that_are_none_are_refused(wrong):
    with pytest.raises(ValueError, match="frequencies must be positive numbers"):
        ds.Siren(frequencies=wrong)


def test_a_wrong_number_of_frequencies_is_refused():
    with pytest.raises(ValueError, match="2 frequencies for 1 axes"):
        ds.Siren(frequencies=(1.0, 2.0)).build(Inputs(((-1.0, 1.0),)), 1, key=jax.random.key(0), dtype=np.float64)


@pytest.mark.slow
def test_a_wave_of_ten_periods_is_solved_without_a_setting():
    k = 20 * np.pi + 1
    solution = ds.solve(waves(k), max_seconds=60)
    x = np.linspace(0, 1, 301)
    exact = np.sin(k * (1 - x)) / np.sin(k)
    assert np.linalg.norm(solution(x=x) - exact) < 1e-6 * np.linalg.norm(exact)
    assert solution.verdict == "solved"


def test_a_correction_by_equations_that_are_not_finite_is_not_a_number():
    matrix = np.ones((4, 2))
    matrix[1, 1] = np.inf
    fit = LeastSquares.of(matrix, np.ones((4, 3)), 1)
    assert all(np.isnan(fit.solution(side)[0]).any() for side in (HALF, FULL, ROUNDING))


def test_sizes_of_a_shape_are_those_inside_it():
    """Polynomials that fit a torsion problem on an L grow beyond its corner, where nothing holds them."""
    shape = ds.Box(x=(-1, 1), y=(-1, 1)) - ds.Box(x=(0, 1), y=(-1, 0), name="cut")
    conditions = {"pde": ds.interior(lambda u: ds.laplacian(u) + 1), "sides": ds.boundary(lambda u: u)}
    problem = ds.Problem(domain=shape, unknowns=("u",), conditions=conditions)
    assert foreseen(problem).unknowns == estimate(problem).unknowns
