"""Coefficients, unknown functions of fewer axes, and data: how they are stated and what becomes of them."""

import dataclasses
import json
import math
import pickle
import re
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from typer.testing import CliRunner

import dsgnar as ds
from dsgnar.cli import app
from dsgnar.networks.composed import Composed
from dsgnar.optimise.annealing import MET, Annealing
from dsgnar.optimise.weights import Reweighting
from dsgnar.problem.data import Measurements, read_data, with_files
from dsgnar.problem.scales import estimate
from dsgnar.solving import intervals, judging
from dsgnar.solving.coefficients import Estimated
from dsgnar.solving.context import Context
from dsgnar.solving.fit import excess, inferred
from dsgnar.solving.gauss_newton import Rows, Triangle
from dsgnar.solving.inference import infer
from dsgnar.solving.loop import advance
from dsgnar.solving.stop import StopReason
from dsgnar.storing import checkpoints
from dsgnar.storing.inferred import from_json, to_json

pytestmark = pytest.mark.usefixtures("shared_kernels")

RATE, NOISE = 0.7, 0.05
TIMES = np.linspace(0.1, 5, 30)


def decay(noise=NOISE, unit=1.0, second=False, residual=None, seed=0, **options):
    """u' + k u = 0, u(0) = 3, measured with noise; `unit` is the unit of time."""
    rng = np.random.default_rng(seed)
    values = 3 * np.exp(-RATE * TIMES) + NOISE * rng.normal(size=TIMES.size)
    coefficients = {"k": ds.Coefficient(0.3 / unit, positive=True)} | ({"c": ds.Coefficient(1.0)} if second else {})
    return ds.Problem(
        domain=ds.Box(t=(0, 5 * unit)),
        unknowns="u",
        coefficients=coefficients,
        conditions={
            "ode": ds.interior(residual or (lambda u, k: u.t + k * u)),
            "start": ds.initial(lambda u: u - 3),
            "data": ds.data(lambda u: u, at={"t": unit * TIMES}, values=values, noise=noise),
        },
        **options,
    )


SMALL = dict(network=ds.MLP(widths=(8, 8), spread=2.0), points=128, max_points=128)


def best_rate(problem) -> float:
    """The most likely rate, by a search among exact solutions."""
    values = problem.conditions["data"].measured.values
    rates = np.linspace(0.6, 0.8, 20001)
    return rates[np.argmin([np.sum((3 * np.exp(-k * TIMES) - values) ** 2) for k in rates])]


def classical_error(rate: float, noise: float) -> float:
    """sigma / |du/dk|, from the exact solution."""
    return noise / np.linalg.norm(3 * TIMES * np.exp(-rate * TIMES))


@pytest.fixture(scope="module")
def solved(shared_kernels):
    with jax.enable_x64(True):
        return ds.solve(decay(), **SMALL)


# --- statements -------------------------------------------------------------------------------------------------------


def test_a_coefficient_is_a_number_in_every_kind_of_condition():
    problem = ds.Problem(
        domain=ds.Box(x=(0, 1), t=(0, 1)),
        unknowns="u",
        coefficients={"a": ds.Coefficient(2.0), "b": ds.Coefficient(-3.0)},
        conditions={
            "pde": ds.interior(lambda u, a: a * u.t),
            "ic": ds.initial(lambda u, b, x: u - b * x),
            "robin": ds.boundary(lambda u, a, b: u.x + a * u - jnp.exp(b)),
            "here": ds.at(lambda u, a: u - a, {"x": 0.5, "t": 0.5}),
            "data": ds.data(lambda u, b: b * u.x, at={"x": [0.1], "t": [0.2]}, values=[1.0], noise=0.1),
        },
    )
    network = lambda x: jnp.stack([x[0] ** 2 * x[1], jnp.full((), 2.0), jnp.full((), -3.0)])
    x = jnp.array([0.5, 0.25])
    expected = {
        "pde": 2 * 0.25,
        "ic": 0.0625 + 1.5,
        "robin": 0.25 + 2 * 0.0625 - math.exp(-3),
        "here": 0.0625 - 2,
        "data": -3 * 0.25,
    }
    for mode in ("taylor", "nested"):
        for name, value in expected.items():
            assert problem.residual(name, network, x, mode) == pytest.approx(value, rel=1e-14), name


def test_an_unknown_is_its_name_and_survives_copies():
    k = ds.Unknown("k", axes="x", positive=True)
    assert k == "k" and {"k": 1}[k] == 1 and k.axes == ("x",) and k.positive
    again = pickle.loads(pickle.dumps(k))
    assert again == k and again.axes == ("x",) and again.positive
    problem = conductivity()
    assert dataclasses.replace(problem).unknowns[1].axes == ("x",)


def conductivity(noise=0.01, count=40):
    """(k u_x)_x = f(x) with u = sin(pi x), k = 1 + x/2: no time, but two functions."""
    source = lambda x: 0.5 * jnp.pi * jnp.cos(jnp.pi * x) - (1 + x / 2) * jnp.pi**2 * jnp.sin(jnp.pi * x)
    x = np.linspace(0.05, 0.95, count)
    return ds.Problem(
        domain=ds.Box(x=(0, 1), t=(0, 1)),
        unknowns=("u", ds.Unknown("k", axes=("x",), positive=True)),
        conditions={
            "pde": ds.interior(lambda u, k, x: u.t + k.x * u.x + k * u.xx - source(x)),
            "data": ds.data(lambda u: u, at={"x": x, "t": 0.5}, values=np.sin(np.pi * x), noise=noise),
        },
    )


def test_functions_of_fewer_axes_do_not_depend_on_the_others():
    context = Context.of(conductivity(), ds.MLP(widths=(4,)))
    theta = jnp.asarray(context.first) + 0.1
    values = np.asarray(context.residuals.ansatz.values(theta, jnp.array([[0.3, 0.1], [0.3, 0.9], [0.6, 0.1]])))
    assert values[0, 1] == values[1, 1] != values[2, 1] and (values[:, 1] > 0).all()
    assert values[0, 0] != values[1, 0]
    solution = dataclasses.replace(context.so_far(context.start()), thetas=np.asarray(theta, np.float64)[None])
    x = np.linspace(0.1, 0.9, 5)
    assert (solution.derivative("k", "t")(x=x, t=0.3) == 0).all()
    slope = solution.derivative("k", "x")(x=x, t=0.3)
    there, here = solution(x=x + 1e-6, t=0.3)["k"], solution(x=x - 1e-6, t=0.3)["k"]
    np.testing.assert_allclose(slope, (there - here) / 2e-6, rtol=1e-6)


def test_coefficients_are_the_last_parameters_and_begin_where_asked():
    problem = decay(second=True, residual=lambda u, k, c: u.t + k * u + 0 * c)
    context = Context.of(problem, ds.MLP(widths=(4,)))
    values = context.residuals.ansatz.values(jnp.asarray(context.first), jnp.zeros((1, 1)))
    np.testing.assert_allclose(values[0, 1:], [0.3, 1.0], rtol=1e-15)
    moved = jnp.asarray(context.first).at[-2].add(1.0).at[-1].add(-2.0)
    values = context.residuals.ansatz.values(moved, jnp.zeros((1, 1)))
    np.testing.assert_allclose(values[0, 1:], [0.3 * math.e, -1.0], rtol=1e-14)


def test_a_problem_without_coefficients_has_no_composed_network():
    problem = ds.Problem(domain=ds.Box(t=(0, 1)), unknowns="u", conditions={"ode": ds.interior(lambda u: u.t + u)})
    network = Context.of(problem, ds.MLP(widths=(4,)), ds.Settings(intervals=1)).residuals
    assert not problem.inverse and network.parameters.count == 13 + 1
    built = Context.of(conductivity(), ds.MLP(widths=(4,))).residuals
    assert isinstance(built.parameters.network(jnp.zeros(built.parameters.count)), Composed)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: ds.Coefficient("a"), "finite number"),
        (lambda: ds.Coefficient(math.nan), "finite number"),
        (lambda: ds.Coefficient(0.0, positive=True), "above zero"),
        (lambda: ds.Unknown("k", axes=()), "coefficients="),
        (lambda: decay(residual=lambda u, q: u), "neither an unknown nor an axis; there are u, k, t"),
        (lambda: ds.data(lambda u: u, at={"t": [0.0, 1.0]}, values=[1.0]), "one for each point"),
        (lambda: ds.data(lambda u: u, at={"t": [0.0]}, values=[math.nan]), "not finite"),
        (lambda: ds.data(lambda u: u, at={"t": [0.0]}, values=[1.0], noise=0.0), "standard deviation"),
        (lambda: ds.data(lambda u: u, at={"t": [0.0]}, values=[1.0], noise=[1.0, 2.0]), "one for each value"),
        (lambda: ds.solve(decay(), intervals=2), "one interval"),
        (lambda: ds.solve(decay(), tol=1e-3), "leave tol out"),
    ],
)
def test_what_makes_no_sense_is_refused(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make()


def test_unknowns_of_fewer_axes_are_checked():
    with pytest.raises(ValueError, match="no axis 'y'"):
        ds.Problem(
            domain=ds.Box(x=(0, 1)),
            unknowns=(ds.Unknown("k", axes=("y",)),),
            conditions={"pde": ds.interior(lambda k: k.x)},
        )
    with pytest.raises(TypeError, match=r"write Coefficient\(0.1\)"):
        decay_with = dict(domain=ds.Box(t=(0, 1)), unknowns="u", conditions={"ode": ds.interior(lambda u, k: u + k)})
        ds.Problem(**decay_with, coefficients={"k": 0.1})


def test_scales_follow_the_data_and_the_starts():
    found = estimate(decay(unit=1e-6))
    assert found.unknowns[0] in (2.0, 4.0) and found.unknowns[1] == 2.0**18  # 3, and 0.3e6
    zero = decay(second=True, residual=lambda u, k, c: u.t + k * u + 1e5 * c)
    zero = dataclasses.replace(zero, coefficients=zero.coefficients | {"c": ds.Coefficient(0.0)})
    assert 1e-6 < estimate(zero).unknowns[2] < 1e-3  # balances u_t of size one


# --- weights ----------------------------------------------------------------------------------------------------------


def test_data_lose_weight_down_to_their_least_and_equations_keep_theirs():
    measured = Measurements(np.ones(50), np.full(50, 0.1))
    rule = Annealing(Reweighting(0.0), (None, measured), (1.0, 1.0), least=1e-4)
    weights, before = np.array([0.02, 1.0]), 1.0
    for _ in range(200):
        weights = rule(np.array([1e-6, 0.01]), weights)
        assert weights[0] == 0.02 and weights[1] <= before
        before = weights[1]
    assert weights[1] == pytest.approx(2e-6)
    unmet = rule(np.array([1e-6, 2 * MET * 0.01]), np.array([0.02, 1.0]))
    met = rule(np.array([1e-6, 0.01]), np.array([0.02, 1.0]))
    assert met[1] < unmet[1] < 1


def test_several_sets_of_data_have_the_weights_of_maximum_likelihood():
    """Loss and chi^2 have the same ratio for all of them: w_m s_m is proportional to n_m s_m / sigma_m^2."""
    sets = (Measurements(np.ones(50), np.full(50, 0.1)), Measurements(np.ones(8), np.full(8, 0.02)), None)
    rule = Annealing(Reweighting(0.0), sets, (2.0, 1.0, 1.0), least=1e-4)
    weights = rule(np.array([0.1, 0.1, 0.1]), np.array([1.0, 1.0, 1.0]))
    assert weights[0] / weights[1] == pytest.approx((50 * 2**2 / 0.1**2) / (8 / 0.02**2))


def test_precisions_of_values_give_chi_square():
    noise = np.array([0.1, 0.2, 0.4])
    measured, misfit = Measurements(np.zeros(3), noise), np.array([0.3, -0.1, 0.2])
    chi = np.sum((misfit / noise) ** 2)
    assert np.sum((measured.precision * misfit / measured.typical) ** 2) == pytest.approx(chi)
    assert np.mean(measured.precision**2) == pytest.approx(1)


def test_a_misfit_of_the_size_of_the_noise_is_no_failure():
    measured = Measurements(np.ones(100), np.full(100, 0.1))
    assert excess(measured, 0.11) == 0 and excess(measured, 0.3) > 0.25
    assert excess(Measurements(np.ones(100), None), 0.3) == 0
    assert excess(Measurements(np.ones(100), None), 0.6) == 0.6


# --- statistics -------------------------------------------------------------------------------------------------------


def test_profiling_agrees_with_the_inverse_of_the_whole_matrix():
    rng = np.random.default_rng(0)
    J, r = rng.normal(size=(40, 9)), rng.normal(size=40)
    triangle = Triangle.of([Rows(r[:25], J[:25]), Rows(r[25:], J[25:])], 2, prior=1e8)
    follow = triangle.profile()
    whole = np.linalg.inv(J.T @ J)[-2:, -2:]
    np.testing.assert_allclose(np.linalg.inv(follow.T @ J.T @ J @ follow), whole, rtol=1e-8)
    step = -np.linalg.solve(J.T @ J, J.T @ r)[-2:]
    assert triangle.decrement() == pytest.approx(math.sqrt(step @ np.linalg.inv(whole) @ step), rel=1e-8)


def test_intervals():
    normal = Estimated(2.0, 0.1)
    assert normal.interval(0.95) == pytest.approx((2 - 0.195996, 2 + 0.195996), rel=1e-5)
    few = Estimated(2.0, 0.1, freedom=3)
    assert few.interval(0.95)[1] == pytest.approx(2 + 0.318245, rel=1e-5)  # Student's t with three degrees of freedom
    positive = Estimated(2.0, 1.5, positive=True)
    low, high = positive.interval(0.95)
    assert low > 0 and low * high == pytest.approx(4)
    flat = Estimated(2.0, math.inf, determined=False, why="flat")
    assert flat.value is None and flat.interval() == (-math.inf, math.inf) and "not determined" in str(flat)
    with pytest.raises(ValueError, match="no data"):
        Estimated(2.0, None, why="there are no data").interval()


def test_the_rate_of_a_decay_with_its_standard_error(solved):
    found = solved.coefficients["k"]
    best = best_rate(solved.problem)
    assert solved.verdict == "solved" and solved.error_estimate is None
    assert abs(found.value - best) < 0.05 * found.standard_error  # where the balance of weights leaves it
    assert found.standard_error == pytest.approx(classical_error(best, NOISE), rel=0.02)
    assert solved.covariance.shape == (1, 1) and found.interval()[0] < RATE < found.interval()[1]
    fit = solved.outcome.inference.fits["data"]
    assert fit.freedom == pytest.approx(29, abs=0.1) and 0.5 < fit.misfit / fit.noise < 1.3
    # The prediction is exp(-k t): its deviation at a point is |du/dk| times that of k.
    np.testing.assert_allclose(fit.band, 3 * TIMES * np.exp(-best * TIMES) * found.standard_error, rtol=0.1, atol=1e-4)
    said = solved.summary()
    assert "k = 0.7" in said and "misfit 0.8" in said and "unknown (errors are not estimated" in said


def test_saved_and_loaded(solved, tmp_path):
    solved.save(tmp_path / "run")
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["coefficients"]["k"]["value"] == solved.coefficients["k"].value
    assert result["coefficients"]["k"]["standard_error"] == solved.coefficients["k"].standard_error
    assert result["verdict"] == "solved" and result["error_estimate"] is None
    again = ds.load(tmp_path / "run", decay())
    assert again.coefficients == solved.coefficients and again.summary() == solved.summary()
    np.testing.assert_array_equal(again.outcome.inference.fits["data"].band, solved.outcome.inference.fits["data"].band)
    with pytest.raises(ds.storing.files.RunError, match="this is not the problem"):
        ds.load(tmp_path / "run", decay(seed=1))


def test_a_run_goes_on_bit_for_bit():
    context = Context.of(decay(), **_context())
    state = context.start()
    for _ in range(3):
        state, _ = advance(context, state)
    stored = checkpoints.decode(checkpoints.encode(state, "run"), "run")
    other = Context.of(decay(), **_context())
    for _ in range(3):
        state, _ = advance(context, state)
        stored, _ = advance(other, stored)
    assert state.iterate.theta.tobytes() == stored.iterate.theta.tobytes()
    assert state.iterate.weights.tobytes() == stored.iterate.weights.tobytes()


def _context():
    return dict(network=SMALL["network"], settings=ds.Settings(points=128, max_points=128))


def test_an_attempt_without_a_fit_is_followed_by_one_with_the_exact_gradient(solved):
    context = Context.of(decay(), **_context())
    start = context.start()
    assert not context.rules.exact(start.plan)
    ended = dataclasses.replace(start, stop=StopReason.STALLED)
    other = intervals.again(context, ended)
    assert judging.unfitted(context, ended, 1e-4) and context.rules.exact(other.plan) and other.cuts == 1
    fits = dataclasses.replace(start, iterate=dataclasses.replace(start.iterate, theta=solved.thetas[0].astype("f4")))
    assert not judging.unfitted(context, fits, 1e-4)


def test_interrupted_runs_have_no_error_bars():
    solution = ds.solve(decay(), **SMALL, max_iterations=3)
    assert solution.coefficients["k"].standard_error is None and solution.coefficients["k"].value > 0
    assert "did not end by itself" in solution.summary()


# --- files ------------------------------------------------------------------------------------------------------------


def test_data_from_files(tmp_path):
    columns = {"t": np.array([0.5, 1.0, 2.0]), "value": np.array([1.0, 2.0, 3.0]), "noise": np.array([0.1, 0.2, 0.3])}
    np.savez(tmp_path / "a.npz", **columns)
    rows = "\n".join(f"{t},{v},{n}" for t, v, n in zip(*columns.values(), strict=True))
    (tmp_path / "a.csv").write_text(f"t, value,noise\n{rows}\n")
    import xarray

    xarray.Dataset({"value": ("t", columns["value"]), "noise": ("t", columns["noise"])}, {"t": columns["t"]}).to_netcdf(
        tmp_path / "a.nc"
    )
    for name in ("a.csv", "a.npz", "a.nc"):
        found = read_data(tmp_path / name)
        assert set(found) == set(columns)
        for column, values in columns.items():
            np.testing.assert_array_equal(found[column], values)
        changed = with_files(decay(), {"data": tmp_path / name}).conditions["data"].measured
        np.testing.assert_array_equal(changed.noise, columns["noise"])
    (tmp_path / "b.csv").write_text("t,value\n0.5,1.0\n")
    kept = with_files(decay(), {"data": tmp_path / "b.csv"}).conditions["data"].measured
    assert kept.noise == [NOISE]  # that of the statement


@pytest.mark.parametrize(
    "text, message",
    [("t,value\n1,a\n", "row 2"), ("x,value\n1,1\n", "t is missing"), ("", "empty"), ("t,value\n1\n", "1 entries")],
)
def test_files_that_cannot_be_used(tmp_path, text, message):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        with_files(decay(), {"data": tmp_path / "a.csv"})
    with pytest.raises(ValueError, match="no condition 'other'"):
        with_files(decay(), {"other": tmp_path / "a.csv"})


FILE = """
import numpy as np
import dsgnar as ds

problem = ds.Problem(
    domain=ds.Box(t=(0, 5)),
    unknowns="u",
    coefficients={"k": ds.Coefficient(0.3, positive=True)},
    conditions={
        "ode": ds.interior(lambda u, k: u.t + k * u),
        "start": ds.initial(lambda u: u - 3),
        "data": ds.data(lambda u: u, at={"t": [1.0]}, values=[1.0], noise=0.05),
    },
)
network = ds.MLP(widths=(8, 8), spread=2.0)
settings = dict(points=128, max_points=128)
"""


def test_the_command_line_takes_data_and_keeps_them(tmp_path):
    (tmp_path / "decay.py").write_text(FILE)
    values = decay().conditions["data"].measured.values
    rows = "\n".join(f"{t!r},{v!r}" for t, v in zip(TIMES.tolist(), values.tolist(), strict=True))
    (tmp_path / "measured.csv").write_text(f"t,value\n{rows}\n")
    call = ["solve", str(tmp_path / "decay.py"), "--data", f"data={tmp_path / 'measured.csv'}", "--quiet"]
    done = CliRunner().invoke(app, [*call, "--out", str(tmp_path / "run")])
    assert done.exit_code == 0, done.output
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["points"]["data"] == 30 and result["coefficients"]["k"]["value"] == pytest.approx(0.7, abs=0.03)
    (tmp_path / "measured.csv").unlink()  # the run has its own copy
    assert ds.load(tmp_path / "run").problem.conditions["data"].measured.values.tolist() == values.tolist()
    shown = CliRunner().invoke(app, ["show", str(tmp_path / "run")])
    assert shown.exit_code == 0 and "±" in shown.output and "chi-square" in shown.output
    page = CliRunner().invoke(app, ["report", str(tmp_path / "run")])
    text = (tmp_path / "run" / "report.html").read_text()
    assert page.exit_code == 0 and "Coefficients and data" in text and "Data (data) and prediction" in text
    wrong = CliRunner().invoke(app, [*call[:3], "data", "--out", str(tmp_path / "other")])
    assert wrong.exit_code == 2


def test_the_example_of_the_documentation(monkeypatch):
    page = (Path(__file__).parent.parent / "docs" / "inverse.md").read_text()
    monkeypatch.setattr(ds, "solve", partial(ds.solve, **SMALL))
    names: dict = {}
    exec(re.findall(r"```python\n(.*?)```", page, re.S)[0], names)
    found = names["solution"].coefficients["k"]
    assert found.value == pytest.approx(0.707, abs=1e-3) and found.standard_error == pytest.approx(0.0083, rel=0.03)


def at_the_fit(solved, problem, *further):
    """What is inferred for another statement of the same problem, at the solution of the first."""
    sizes = dict(zip(("u", "k"), solved.outcome.settings.scales.unknowns, strict=True))
    context = Context.of(problem, SMALL["network"], ds.Settings(scales=sizes))
    theta = np.concatenate([solved.thetas[0], further])
    return infer(context.residuals, theta, 1e-4, context.collocation.measured(context.start()))


def test_a_coefficient_that_data_do_not_determine(solved):
    """Of k and c = 1 only the product is determined; both are where they began to be the same solution."""
    found = at_the_fit(solved, decay(second=True, residual=lambda u, k, c: u.t + k * c * u), 1.0)
    for estimated in found.coefficients.values():
        assert not estimated.determined and estimated.value is None and estimated.standard_error == math.inf
    assert found.coefficients["k"].found == solved.coefficients["k"].value
    assert [line for line in inferred(found) if line.startswith("k is not determined")]
    kept = to_json(found)
    assert kept["coefficients"]["c"]["value"] is None and kept["coefficients"]["c"]["standard_error"] is None
    assert from_json(json.loads(json.dumps(kept)), {}).coefficients == found.coefficients


def test_a_coefficient_that_nothing_depends_on(solved):
    found = at_the_fit(solved, decay(second=True, residual=lambda u, k, c: u.t + k * u + 0 * c), 1.0)
    assert not found.coefficients["c"].determined
    assert found.coefficients["k"].standard_error == pytest.approx(solved.coefficients["k"].standard_error, rel=1e-3)


def test_estimated_noise(solved):
    found = at_the_fit(solved, decay(noise=None))
    fit, k = found.fits["data"], found.coefficients["k"]
    values, best = solved.problem.conditions["data"].measured.values, best_rate(solved.problem)
    expected = math.sqrt(np.sum((3 * np.exp(-best * TIMES) - values) ** 2) / 29)
    assert fit.noise == pytest.approx(expected, rel=0.01) and not fit.given
    assert k.standard_error == pytest.approx(classical_error(best, expected), rel=0.03)
    assert k.freedom == pytest.approx(29, abs=0.2) and "noise estimated" in str(fit)
