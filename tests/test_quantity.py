"""Quantities of a solution, with their error bars: against closed forms."""

import dataclasses
import json
import math

import jax.numpy as jnp
import numpy as np
import pytest
from typer.testing import CliRunner

import dsgnar as ds
from dsgnar.cli import app
from dsgnar.problem.quadrature import Sums, rule
from dsgnar.problem.region import as_domain
from dsgnar.solving.context import Context
from dsgnar.solving.estimate import SPREAD, Estimate, Measured
from dsgnar.solving.march import March
from dsgnar.solving.quantity import Gauge
from dsgnar.solving.solution import Solution
from dsgnar.storing.files import WrongDirectory

SMALL = dict(network=ds.MLP(widths=(6, 6), spread=2.0), points=256, max_points=256)
pi = math.pi

# --- quadrature -------------------------------------------------------------------------------------------------------


def integrated(part, domain, function, fixed=None, periodic=(), count=2**12):
    """An integral with its error, and the measure of the part."""
    points, weights = rule(part, domain, fixed or {}, periodic, count)
    sums = Sums(weights @ function(points), weights.sum(axis=1))
    return *sums.number(mean=False), sums.measure[0]


BOX = ds.Box(x=(0, 2), y=(-1, 1), t=(0, 3))


@pytest.mark.parametrize(
    ("part", "fixed", "function", "value", "measure"),
    [
        (ds.Interior(), {}, lambda p: p[:, 0] ** 3 * p[:, 1] ** 2 * p[:, 2], 4 * 2 / 3 * 4.5, 12),
        (ds.Interior(), {2: 1.5}, lambda p: np.exp(p[:, 0]) * p[:, 2], 2 * 1.5 * (math.exp(2) - 1), 4),
        (ds.Initial(), {}, lambda p: p[:, 0] + p[:, 2], 4, 4),
        (ds.Boundary([("x", "upper")]), {}, lambda p: p[:, 0] + p[:, 1] ** 2, 12 + 2, 6),
        (ds.Boundary(), {2: 0.0}, lambda p: p[:, 0] + p[:, 1], 0 + 4 + 2 * 2, 8),
        (ds.Interior(), {0: 0.5, 1: 0.5, 2: 1.0}, lambda p: p.sum(axis=1), 2.0, 1),
    ],
)
def test_integrals_over_parts_of_a_box_are_exact(part, fixed, function, value, measure):
    found, error, size = integrated(part, BOX, function, fixed)
    assert found == pytest.approx(value, rel=1e-13) and size == pytest.approx(measure, rel=1e-13)
    assert error < 1e-12


def test_periodic_axes_have_evenly_spaced_nodes():
    ring, f = ds.Box(x=(0, 2 * pi)), lambda p: np.exp(np.sin(p[:, 0]))
    found, error, _ = integrated(ds.Interior(), ring, f, periodic=("x",), count=40)
    assert found == pytest.approx(2 * pi * np.i0(1.0), rel=1e-14) and error < 1e-13


def test_a_kink_is_seen_in_the_error():
    found, error, _ = integrated(ds.Interior(), ds.Box(x=(0, 1)), lambda p: np.abs(p[:, 0] - 0.3), count=64)
    true = abs(found - (0.3**2 + 0.7**2) / 2)
    assert true > 1e-6 and error > 0.2 * true


PLATE = ds.Box(x=(0, 2), y=(0, 1)) - ds.Ball(x=1, y=0.5, radius=0.25, name="hole")


@pytest.mark.parametrize(
    ("shape", "part", "value", "small"),
    [
        (PLATE, ds.Interior(), 2 - pi / 16, 1e-12),
        (ds.Polygon([(0, 0), (3, 0), (0, 4)]), ds.Interior(), 6.0, 1e-9),
        (ds.Ball(x=0, y=0, radius=1) + ds.Ball(x=1, y=0, radius=1), ds.Interior(), 4 * pi / 3 + 3**0.5 / 2, 1e-3),
        (PLATE, ds.Boundary(on="hole"), pi / 2, 1e-12),
        (PLATE, ds.Boundary(), 6 + pi / 2, 1e-2),
        (PLATE, ds.Boundary(where=lambda x: x < 0.5), 2.0, 1e-2),
        (ds.Ellipse(x=0, y=0, radii=(2, 1), angle=0.3), ds.Boundary(), 9.688448220547675, 1e-9),
        (ds.Polygon([(0, 0), (3, 0), (0, 4)]), ds.Boundary(), 12.0, 1e-9),
        (ds.Ball(x=0, y=0, z=0, radius=1.0), ds.Interior(), 4 / 3 * pi, 1e-2),
    ],
)
def test_measures_of_shapes_are_right_within_their_error(shape, part, value, small):
    domain = as_domain(shape)
    found, error, size = integrated(part, domain, lambda p: np.ones(len(p)), count=2**16)
    assert found == pytest.approx(value, abs=4 * error + 1e-10) and error < small * value
    assert size == pytest.approx(found, rel=1e-12)


def test_integrals_over_shapes():
    """x^2 over a plate less that over its hole: 8/3 - pi r^2 (1 + r^2 / 4)."""
    found, error, _ = integrated(ds.Interior(), as_domain(PLATE), lambda p: p[:, 0] ** 2, count=2**16)
    assert found == pytest.approx(8 / 3 - pi / 16 * (1 + 0.25**2 / 4), rel=1e-12) and error < 1e-12


def test_integrals_over_curves_and_time():
    """x^2 t over a circle about (1, 0.5): of x^2 it is 2 pi r (1 + r^2 / 2)."""
    found, error, _ = integrated(
        ds.Boundary(on="hole"), as_domain(PLATE.over(t=(0, 2))), lambda p: p[:, 0] ** 2 * p[:, 2]
    )
    assert found == pytest.approx(2 * 2 * pi * 0.25 * (1 + 0.25**2 / 2), abs=4 * error) and error < 1e-2


def test_many_axes_and_picked_faces_are_drawn():
    many = ds.Box(**{f"x{k}": (0, 1) for k in range(7)})
    found, error, _ = integrated(ds.Interior(), many, lambda p: np.exp(p.sum(axis=1)))
    assert found == pytest.approx((math.e - 1) ** 7, abs=4 * error) and error < 0.03 * found
    picked = ds.Boundary([("x", "upper")], where=lambda y: y > 0.5)
    found, error, size = integrated(picked, BOX, lambda p: p[:, 1])
    assert found == pytest.approx(3 * 0.375, abs=4 * error + 1e-9) and size == pytest.approx(1.5, rel=1e-2)


# --- error bars -------------------------------------------------------------------------------------------------------


def reaction():
    """u'' = 6 u^2, whose solution is (1 + x)^-2."""
    conditions = {
        "equation": ds.interior(lambda u: u.xx - 6 * u**2),
        "ends": ds.boundary(lambda u, x: u - (1 + x) ** -2.0),
    }
    return ds.Problem(ds.Box(x=(0, 1)), ("u",), conditions)


OF_REACTION = {
    "mean": (ds.mean(lambda u: u), 0.5),
    "integral": (ds.integral(lambda u, x: x * u**2), 1 / 12),
    "flux": (ds.integral(lambda u: u.n, on=ds.Boundary([("x", "upper")])), -0.25),
    "fluxes": (ds.integral(lambda u: u.n, on=ds.Boundary()), 1.75),
    "value": (ds.value(lambda u: u, x=0.5), 1.5**-2),
    "slope": (ds.value(lambda u: u.x, x=0.25), -2 * 1.25**-3),
}


@pytest.fixture(scope="module")
def solved():
    return ds.solve(reaction(), **SMALL)


def moved(solution, by):
    """A solution that is wrong by about so much."""
    thetas = solution.thetas * (1 + by * np.random.default_rng(0).normal(size=solution.thetas.shape))
    return dataclasses.replace(solution, thetas=thetas, outcome=None)


@pytest.mark.parametrize("by", [1e-4, 1e-7])
def test_the_error_bar_is_the_error(solved, by):
    wrong = moved(solved, by)
    for quantity, exact in OF_REACTION.values():
        found = wrong.quantity(quantity)
        true = abs(found.value - exact)
        assert found.error is not None and 0.7 * true < found.error < 3 * true
        assert abs(found.corrected - exact) < 0.8 * true


def test_a_finished_run_has_small_error_bars(solved):
    for quantity, exact in OF_REACTION.values():
        found = solved.quantity(quantity)
        assert found.error < 1e-7 and abs(found.value - exact) < 5 * found.error + 1e-13


def heat(**parts):
    """u = exp(-pi^2 t) sin(pi x)."""
    return ds.Problem(
        ds.Box(x=(0, 1), t=(0, 0.2)),
        ("u",),
        {
            "heat": ds.interior(lambda u: u.t - u.xx),
            "start": ds.initial(lambda u, x: u - jnp.sin(jnp.pi * x)),
            "ends": ds.boundary(lambda u: u),
        },
        **parts,
    )


def decayed(t):
    return math.exp(-(pi**2) * t)


def almost(intervals):
    """A solution that is wrong by 1e-4 (x^2 + t): all of it is known, and its networks are next to nothing."""
    known = lambda x, t: jnp.exp(-(jnp.pi**2) * t) * jnp.sin(jnp.pi * x) + 1e-4 * (x**2 + t)
    settings = ds.Settings(scales={"u": 1e-12}, intervals=intervals)
    context = Context.of(heat(known={"u": known}), ds.MLP(widths=(8, 8)), settings)
    times = tuple(np.linspace(0, 0.2, intervals + 1).tolist())
    thetas = np.stack([context.first.astype(np.float64)] * intervals)
    return Solution(dataclasses.replace(context.model, march=March(times)), thetas)


@pytest.mark.parametrize("intervals", [1, 2])
def test_heat_through_a_wall(intervals):
    """Over all times and at one; in a march time is integrated piece by piece."""
    solution, wall = almost(intervals), ds.Boundary([("x", "upper")])
    for quantity, exact, wrong in [
        (ds.integral(lambda u: -u.n, on=wall), (1 - decayed(0.2)) / pi, -2 * 0.2),
        (ds.integral(lambda u: -u.n, on=wall, t=0.1), pi * decayed(0.1), -2),
        (ds.mean(lambda u: u), 2 / pi * (1 - decayed(0.2)) / pi**2 / 0.2, 1 / 3 + 0.1),
        (ds.mean(lambda u: u, on=ds.Initial()), 2 / pi, 1 / 3),
        (ds.value(lambda u: u, x=0.3, t=0.17), math.sin(0.3 * pi) * decayed(0.17), 0.09 + 0.17),
    ]:
        found = solution.quantity(quantity)
        assert found.value - exact == pytest.approx(1e-4 * wrong, abs=1e-9)
        assert found.error == pytest.approx(abs(1e-4 * wrong), rel=0.02)
        assert found.corrected == pytest.approx(exact, abs=1e-6 * abs(wrong))


def test_an_unknown_error_stays_unknown(solved):
    vague = Estimate({"u": 1e-3}, SPREAD * 2, 0.0, {"u": 0.0}, solved.outcome.estimate.spaces)
    outcome = dataclasses.replace(solved.outcome, estimate=vague)
    found = dataclasses.replace(solved, outcome=outcome).quantity(OF_REACTION["mean"][0])
    assert found.error is None and found.corrected is None and found.relative is None
    assert found.value == pytest.approx(0.5) and str(found) == "0.5 (error unknown: estimates differ by a factor of 1e+01)"


def test_where_nothing_is_solved_or_fitted_there_is_no_error_bar():
    failed = ds.solve(reaction(), max_iterations=1, **SMALL)
    assert failed.quantity(ds.mean(lambda u: u)).why == "the problem is not solved"
    fitted = ds.Problem(
        ds.Box(t=(0, 1)),
        ("u",),
        {"equation": ds.interior(lambda u, k: u.t + k * u), "start": ds.initial(lambda u: u - 1)},
        coefficients={"k": ds.Coefficient(2.0)},
    )
    context = Context.of(fitted, SMALL["network"])
    found = context.so_far(context.start()).quantity(ds.mean(lambda k: k))
    assert found.value == pytest.approx(2.0, rel=0.3) and "coefficients" in found.why


def test_times_that_were_not_reached_have_no_quantity():
    context = Context.of(heat(), ds.MLP(widths=(4,)), ds.Settings(intervals=2))
    half = context.so_far(context.start())
    gauge = lambda quantity: Gauge(quantity, half.residuals)(half.model, half.thetas, None)
    late = gauge(ds.mean(lambda u: u))
    assert math.isnan(late.value) and late.why == "the run got only to t=0.1"
    early = gauge(ds.value(lambda u: u, x=0.5, t=0.1))
    assert early.value == pytest.approx(float(half(x=0.5, t=0.1)), rel=1e-6)


def test_numbers_are_printed_with_the_digits_that_are_known():
    assert str(Measured(1.23456789, 2e-6)) == "1.234568 +- 2e-06"
    assert str(Measured(-1234.5, 0.3)) == "-1234.5 +- 0.3" and str(Measured(0.0, 1e-9)) == "0 +- 1e-09"
    assert float(Measured(2.0, None)) == 2.0 and Measured(2.0, 1e-3).relative == 5e-4
    assert Measured(0.0, 1e-9).relative == math.inf


# --- tolerances -------------------------------------------------------------------------------------------------------

SLOPE = ds.value(lambda u: u.x, x=1.0)


def test_a_tolerance_may_be_about_a_quantity(tmp_path):
    solution = ds.solve(reaction(), tol=1e-5, quantity=SLOPE, **SMALL)
    found = solution.outcome.estimate.quantity
    assert solution.stop.code == "tolerance_met" and solution.verdict == "solved" and solution.outcome.tolerance_met
    assert 1e-12 < abs(found.value / -0.25 - 1) < 1e-5 and found.relative < 0.5e-5
    assert solution.quantity(SLOPE) == found
    assert f"; quantity {found}; tolerance 1e-05 met" in solution.summary()
    solution.save(tmp_path / "run")
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["quantity"]["value"] == found.value and result["quantity"]["error"] == found.error
    assert f"{found}" in CliRunner().invoke(app, ["show", str(tmp_path / "run")]).output
    again = ds.load(tmp_path / "run", reaction())
    assert again.outcome.tolerance_met and again.outcome.estimate.quantity == found


def test_the_quantity_decides_and_not_the_unknowns():
    found = Estimate({"u": 1e-2}, 1.0, 0.0, {"u": 0.0}, quantity=Measured(2.0, 1e-6))
    assert found.meets(1e-6) and not found.meets(0.9e-6) and found.decisive == 5e-7
    assert not dataclasses.replace(found, quantity=Measured(2.0, None)).meets(1.0)


def test_a_run_about_a_quantity_is_resumed_with_it(tmp_path):
    options = dict(tol=1e-5, quantity=SLOPE, observers=[ds.RunDirectory(tmp_path)])
    ds.solve(reaction(), max_iterations=2, **options, **SMALL)
    with pytest.raises(WrongDirectory, match=r"the value at x=1.*give it again, as `quantity=\.\.\.`"):
        ds.resume(tmp_path, reaction())
    later = ds.resume(tmp_path, reaction(), quantity=SLOPE, max_iterations=400)
    assert later.outcome.tolerance_met and later.outcome.estimate.quantity.relative < 0.5e-5


# --- mistakes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("quantity", "message"),
    [
        (ds.mean(lambda v: v), r"quantity: its parameter 'v' is neither an unknown nor an axis"),
        (ds.mean(lambda u: u.y), "quantity: u.y"),
        (ds.mean(lambda u: u.n), "only conditions on the boundary"),
        (ds.mean(lambda u: (u, u)), "quantity: its function returned 2 values"),
        (ds.mean(lambda u: u, y=1.0), "there is no axis 'y'"),
        (ds.mean(lambda u: u, t=3.0), "t=3.0 must be a number between 0 and 0.2"),
        (ds.value(lambda u: u, x=0.5), r"needs all coordinates \(x, t\), t is missing"),
        (ds.mean(lambda u: u, on=ds.Initial(), t=0.1), "has its own t; leave t=0.1 out"),
        (ds.integral(lambda u: u, on=ds.Boundary([("x", "upper")]), x=0.5), "has its own x"),
        (ds.integral(lambda u: u, on=ds.Boundary([("z", "upper")])), "quantity: there is no axis 'z'"),
        (ds.mean(lambda u: u, on=ds.Points({"x": 0.5, "t": 0.1})), "given points have no measure"),
        (ds.mean(lambda u: u, on="wall"), "must be Interior"),
    ],
)
def test_what_is_wrong_with_a_quantity_is_said_before_any_work(quantity, message):
    with pytest.raises((ValueError, TypeError), match=message):
        ds.solve(heat(), quantity=quantity)


def test_shapes_are_cut_along_time_and_parameters_only():
    plate = ds.Problem(PLATE.over(t=(0, 1)), ("u",), {"f": ds.interior(lambda u: u.t - ds.laplacian(u))})
    with pytest.raises(ValueError, match="a shape cannot be cut at x"):
        ds.mean(lambda u: u, x=1.0).within(plate)
    with pytest.raises(ValueError, match="outside the domain"):
        ds.value(lambda u: u, x=1.0, y=0.5, t=0.0).within(plate)


def test_options_that_do_not_go_together():
    with pytest.raises(ValueError, match="quantity must be integral"):
        ds.solve(reaction(), quantity=lambda u: u)
    with pytest.raises(ValueError, match="tol is about the quantity"):
        ds.solve(reaction(), tol={"u": 1e-6}, quantity=SLOPE)
    context = Context.of(reaction(), SMALL["network"])
    with pytest.raises(TypeError, match=r"quantity takes integral"):
        context.so_far(context.start()).quantity(lambda u: u)
