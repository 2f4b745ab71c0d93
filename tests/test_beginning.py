"""Initial value problems in one variable: intervals begin with known values, and are as long as the solution is simple."""

import jax.numpy as jnp
import numpy as np
import pytest

import dsgnar as ds
from dsgnar.networks.parameters import Parameters
from dsgnar.solving.beginning import _in_w, simple
from dsgnar.solving.context import Context
from dsgnar.solving.forecast import orders
from dsgnar.storing.runs import RunError, load

SMALL = ds.MLP(widths=(8, 8), spread=2.0)


def oscillator(periods=1.0, unit=1.0, **more):
    """u = U cos(w t) + ..., stated in any units."""
    w = 2 * np.pi
    conditions = {
        "law": ds.interior(lambda u: u.tt + w**2 * u),
        "place": ds.initial(lambda u: u - 3 * unit),
        "speed": ds.initial(lambda u: u.t - 5 * unit),
    }
    return ds.Problem(ds.Box(t=(1.0, 1.0 + periods)), ("u",), conditions, **more)


def decay(rate, until=1.0):
    conditions = {"law": ds.interior(lambda u: u.t + rate * u), "start": ds.initial(lambda u: u - 1)}
    return ds.Problem(ds.Box(t=(0, until)), ("u",), conditions)


@pytest.mark.parametrize("rate", [0.0, 1.0, 64.0])
def test_coefficients_in_w_have_the_right_derivatives(rate):
    taylor, s = np.array([2.0, -3.0, 5.0, 7.0]), 1e-4 / max(1.0, rate) * np.arange(1, 9)
    in_w = np.polynomial.polynomial.polyval(s / (1 + rate * s), _in_w(taylor, rate))
    in_s = np.polynomial.polynomial.polyval(s, taylor)
    assert np.all(np.abs(in_w - in_s) <= 1e3 * (max(1.0, rate) * s) ** 4 * 10)


def test_values_hold_exactly_before_any_iteration():
    context = Context.of(oscillator(), SMALL)
    solution = context.so_far(context.start())
    assert solution(t=1.0) == pytest.approx(3.0, rel=1e-13)
    assert solution.derivative("u", "t")(t=1.0) == pytest.approx(5.0, rel=1e-12)
    assert solution.residual("speed")(t=1.0) == pytest.approx(0.0, abs=1e-11)


def test_residuals_are_those_of_the_statement_whatever_their_size_in_an_interval():
    context = Context.of(oscillator(20.0), SMALL)
    solution, t = context.so_far(context.start()), np.array([1.01, 1.05])
    u, utt = solution(t=t), solution.derivative("u", "tt")(t=t)
    assert context.start().begun[0][-3:] != (1.0, 1.0, 1.0)
    assert solution.residual("law")(t=t) == pytest.approx(utt + 4 * np.pi**2 * u, rel=1e-9)


def test_what_is_begun_and_what_is_not():
    scaled = Context.of(oscillator(), SMALL).settings.scales
    assert orders(oscillator(), scaled) == (2,)
    assert orders(oscillator(), None) == ()  # the paper's method has its own units
    assert orders(oscillator(known={"u": lambda t: jnp.sin(t)}), scaled) == ()
    ends = {"law": ds.interior(lambda u: u.xx - 1), "ends": ds.boundary(lambda u: u)}
    assert orders(ds.Problem(ds.Box(x=(0, 1)), ("u",), ends), scaled) == ()


def test_intervals_are_as_long_as_the_solution_is_simple():
    until = lambda problem, t: simple(Context.of(problem, ds.MLP(widths=(8,))), t)
    assert until(decay(1.0), 0.0) == 1.0
    first = until(decay(1e4), 0.0)
    assert 1e-4 < first < 2e-3  # a layer of 1e-4
    assert until(decay(1e4), 10 * first) > 0.5  # and nothing beyond
    assert 1.4 < until(oscillator(20.0), 1.0) < 2.2  # about one period
    assert until(oscillator(20.0 * 2**30), 1.0) > 2**30  # too long to be foreseen


def test_lengths_and_sizes_are_the_same_in_other_units():
    here, there = (Context.of(oscillator(5.0, unit), SMALL).start() for unit in (1.0, 2.0**33))
    assert here.times == there.times
    (c0, c1, size, rate, *stretch), (d0, d1, larger, same, *other) = here.begun[0], there.begun[0]
    assert (d0, d1, larger) == (c0 * 2**33, c1 * 2**33, size * 2**33)
    assert (rate, stretch) == (same, other)


def test_a_march_is_solved_continuous_and_kept(tmp_path):
    solution = ds.solve(oscillator(2.0), network=SMALL, seed=1, observers=[ds.RunDirectory(tmp_path / "run")])
    exact = lambda t: 3 * np.cos(2 * np.pi * (t - 1)) + 5 / (2 * np.pi) * np.sin(2 * np.pi * (t - 1))
    t = np.linspace(1, 3, 101)
    assert solution.march.count > 1
    assert np.max(np.abs(solution(t=t) - exact(t))) < 1e-5
    again = load(tmp_path / "run", problem=oscillator(2.0), network=SMALL)
    assert np.array_equal(again(t=t), solution(t=t))
    with np.load(tmp_path / "run" / "solution.npz") as file:
        older = {name: file[name] for name in file if name != "begun"}
    np.savez(tmp_path / "run" / "solution.npz", **older)
    with pytest.raises(RunError, match="began otherwise"):
        load(tmp_path / "run", problem=oscillator(2.0), network=SMALL)


def test_the_network_adds_nothing_where_its_output_is_zero():
    context = Context.of(decay(1.0), SMALL)
    parameters = context.residuals.parameters
    assert isinstance(parameters, Parameters)
    model = context.so_far(context.start()).model
    nothing = np.zeros(parameters.count)
    place = jnp.asarray(model.place(0))
    assert float(model.residuals.network(jnp.asarray(nothing), place)(jnp.array([0.7]))[0]) == 1.0


def test_other_problems_begin_with_all_of_their_time():
    conditions = {
        "pde": ds.interior(lambda u: u.t - u.xx),
        "start": ds.initial(lambda u, x: u - jnp.sin(jnp.pi * x)),
        "ends": ds.boundary(lambda u: u),
    }
    context = Context.of(ds.Problem(ds.Box(x=(0, 1), t=(2, 5)), ("u",), conditions), SMALL)
    assert context.start().times == (2.0, 5.0) and context.start().begun == ()
