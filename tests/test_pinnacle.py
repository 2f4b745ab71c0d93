"""The cases of the PINNacle benchmark: statements, our references, the benchmark's measure, and the table."""

import json
import signal
from dataclasses import replace
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from typer.testing import CliRunner

from dsgnar.calculus.streams import stream
from dsgnar.cli import app
from dsgnar.networks import Siren
from dsgnar.problem.doubts import doubts
from dsgnar.problem.reference import check_reference
from dsgnar.problem.sampling import sample
from dsgnar.solving.entry import solve
from dsgnar.suite import truth
from dsgnar.suite.pinnacle import CASES, File, Yardstick, solutions
from dsgnar.suite.pinnacle.measure import backwards, inner, stacked
from dsgnar.suite.truth import burgers2d, heat_longtime
from dsgnar.suite.truth.spectral import relative
from dsgnar.tools.bench import pinnacle

every_case = pytest.mark.parametrize("name", CASES)


@cache
def stated(name):
    return CASES[name].problem()


# Statements


@every_case
def test_statements_are_complete_and_plain(name):
    problem = stated(name)
    assert doubts(problem) == []
    assert not problem.hard and not problem.known
    assert all(c.weight is None and c.points is None and not c.near for c in problem.conditions.values())


def bump(p):
    return jnp.sin(jnp.pi * p[0]) * jnp.sin(jnp.pi * p[1])


EXACT = {
    "Heat2d-MS": lambda p: jnp.sin(20 * jnp.pi * p[0]) * jnp.sin(jnp.pi * p[1]) * jnp.exp(-626 / 625 * p[2]),
    "Wave1d-C": lambda p: (
        jnp.sin(jnp.pi * p[0]) * jnp.cos(2 * jnp.pi * p[1])
        + jnp.sin(4 * jnp.pi * p[0]) * jnp.cos(8 * jnp.pi * p[1]) / 2
    ),
    "PNd": lambda p: jnp.sum(jnp.sin(jnp.pi * p / 2)),
    "HNd": lambda p: jnp.exp(jnp.sum(p[:-1] ** 2) / 2 + p[-1]),
    "PInv": lambda p: jnp.stack([bump(p), 1 / (1 + jnp.sum(p**2) + jnp.sum((p - 1) ** 2))]),
    "HInv": lambda p: jnp.stack([jnp.exp(-p[2]) * bump(p), 2 + bump(p)]),
}


@pytest.mark.parametrize("name", EXACT)
def test_closed_forms_solve_their_statements(name):
    case, problem = CASES[name], stated(name)
    u = lambda p: jnp.atleast_1d(EXACT[name](p))
    for condition, stated_ in problem.conditions.items():
        if stated_.measured is not None:
            continue  # noisy
        part = stated_.part
        points = sample(part, problem.domain, 40, stream(0, "pinnacle"))
        residual = jax.jit(jax.vmap(lambda p, condition=condition: problem.residual(condition, u, p)))(points)
        assert np.abs(residual).max() < 1e-11 * 64 * np.pi**2, condition
        np.testing.assert_allclose(case.anywhere(points), jax.vmap(u)(jnp.asarray(points)), atol=1e-13)


@pytest.mark.parametrize("name", ["PInv", "HInv"])
def test_fields_are_sought_from_2500_values_with_a_noise_of_a_tenth(name):
    data = stated(name).conditions["data"]
    points = data.part.table(stated(name).domain)
    noise = data.measured.values - CASES[name].anywhere(points)[:, 0]
    assert len(noise) == 2500 and np.abs(points).max() <= 1
    assert abs(noise.mean()) < 4 * 0.1 / 50 and abs(noise.std() - 0.1) < 4 * 0.1 / np.sqrt(5000)
    np.testing.assert_array_equal(CASES[name].problem().conditions["data"].measured.values, data.measured.values)


@pytest.mark.parametrize("name", ["Burgers1d-C", "Burgers2d-C", "Heat2d-LT", "KS"])
def test_initial_values_of_statement_and_solution_agree(name):
    """The initial residual of zero is minus the initial value."""
    case, problem = CASES[name], stated(name)
    points = np.array([[0.3, 0.7, 0.0], [0.1, 0.6, 0.0], [0.9, 0.35, 0.0]])[:, -problem.domain.dimension :]
    zero = lambda p: jnp.zeros(len(problem.unknowns))
    ics = [name for name in problem.conditions if name.startswith("ic")]
    initial = [-np.array([problem.residual(ic, zero, p) for p in jnp.asarray(points)]) for ic in ics]
    if name == "Burgers2d-C":
        found = np.stack(burgers2d.start()(*points.T[:2]))
    elif name == "Heat2d-LT":
        series = heat_longtime.Series(8)
        waves_x, waves_y = (series.waves(x) for x in points.T[:2])
        found = [np.sum((waves_x @ series.coefficients(series.start())) * waves_y, axis=1)]
    else:
        found = case.anywhere(points if name == "Burgers1d-C" else np.vstack([points, [0.0, 2.0**-15]])).T[:, :3]
    np.testing.assert_allclose(initial, found, atol=1e-12)


# References


@every_case
def test_references_fit_their_statements(name):
    reference = CASES[name].reference()
    check_reference(reference, stated(name))
    assert set(reference.values) == set(stated(name).unknowns)
    assert reference.accuracy < 1e-3


def test_the_initial_value_of_burgers_2d_is_the_benchmarks():
    """M, the largest value before scaling, and the period."""
    start = burgers2d.start()
    assert abs(2 / start.scale - 8.15119) < 1e-5
    np.testing.assert_allclose(start(np.array(0.3), np.array(0.8)), start(np.array(3.3), np.array(2.8)), atol=1e-12)


def test_the_torus_solves_burgers_in_one_dimension():
    """Without y and v the flow is that of Cole-Hopf, here on [0, 1] in the place of [-1, 1]."""
    viscosity = 0.1
    torus = burgers2d.Torus(96, viscosity / 4)  # x = 2 x' - 1 and u = 2 u'
    x = np.arange(96) / 96
    u = np.broadcast_to(-np.sin(np.pi * (2 * x - 1))[:, None] / 2, (96, 96))
    modes = np.fft.rfft2(np.stack([u, 0 * u]), norm="forward").reshape(2, -1)
    (end,) = burgers2d.etdrk4(torus, modes, [0.5], 1 / 200)
    found = 2 * torus.on_grid(end, x, x[:3])
    exact = solutions.burgers.exact(2 * x - 1, np.full(96, 0.5), viscosity)
    np.testing.assert_allclose(found[0], np.broadcast_to(exact[:, None], (96, 3)), atol=1e-8)
    np.testing.assert_allclose(found[1], 0, atol=1e-14)
    np.testing.assert_allclose(2 * torus.at(end, x[:5], x[3:8])[0], exact[:5], atol=1e-8)


def test_the_stored_flow_of_burgers_2d_is_approached():
    """Coarse grids come nearer to its first column, and time steps have their order."""
    stored = truth.load("burgers2d")
    x, there = stored.axes["x"], np.stack([stored.values[name][..., 0] for name in ("u", "v")])

    def first(size, step):
        (state,) = burgers2d.states(size, stored.axes["t"][:1], step)
        return burgers2d.Torus(size).on_grid(state, x, x)

    errors = [relative(first(size, 1 / 1000), there) for size in (96, 192, 288)]
    assert errors[0] > 1.8 * errors[1] > 3.2 * errors[2] and errors[2] < 1.5e-2
    fine = first(48, 1 / 640)
    assert relative(first(48, 1 / 80), fine) > 10 * relative(first(48, 1 / 160), fine)


def test_the_stored_heat_over_a_long_time_is_approached():
    stored = truth.load("heat_longtime")
    x, times = stored.axes["x"], stored.axes["t"][:3]
    errors = [relative(heat_longtime.on_grid(n, x, times, 0.02), stored.values["u"][..., :3]) for n in (32, 48, 64)]
    assert errors[0] > 2 * errors[1] > 4 * errors[2] and errors[2] < 3e-2
    steps = [heat_longtime.on_grid(32, x, times[:1], h) for h in (0.02, 0.01, 0.0025)]
    assert relative(steps[0], steps[2]) > 10 * relative(steps[1], steps[2])


def test_the_sine_series_solves_its_equation():
    """The rate of a state, evaluated at grid points, is the right-hand side there."""
    series = heat_longtime.Series(64)
    state = heat_longtime.states(64, [0.2], 0.01)[0]
    rate = series.coefficients(series.linear * state + series.nonlinear(state))
    x = np.arange(1, 64) / 64
    waves, m = series.waves(x), np.pi * np.arange(1, 64)
    a = series.coefficients(state)
    u = waves @ a @ waves.T
    lap = -waves @ (a * (m[:, None] ** 2 + m**2)) @ waves.T
    source = (
        5 * np.sin(u**2) * (1 + 2 * np.sin(np.pi * 0.2 / 4)) * np.outer(np.sin(4 * np.pi * x), np.sin(2 * np.pi * x))
    )
    np.testing.assert_allclose(waves @ rate @ waves.T, 0.001 * lap + source, atol=1e-11)
    assert abs(state[-1] - 0.2) < 1e-12


def test_solutions_at_any_points_are_those_of_the_tables():
    for name, allowed in (("NS2d-C", 1e-4), ("Burgers1d-C", 1e-12)):
        case = CASES[name]
        reference = case.reference()
        there = np.stack([reference.values[unknown] for unknown in stated(name).unknowns], 1)
        some = slice(None, None, 7)
        assert stacked(case.anywhere(reference.points[some]), there[some]) < allowed
    reference = CASES["Heat2d-LT"].reference()
    early = reference.points[:, 2] < 2
    assert stacked(solutions.heat_longtime_(reference.points[early]), reference.values["u"][early][:, None]) < 2e-3


def test_steps_divide_times():
    for times, largest in (
        ([0, 0.1, 0.2], 1e-3),
        ([0.05, 0.15], 1 / 1000),
        ([0.2], 0.02),
        ([0, 0.004, 0.008], 2.0**-15),
    ):
        step = solutions.dividing(np.array(times), largest)
        assert step <= largest * (1 + 1e-9)
        np.testing.assert_allclose(np.array(times) / step, np.round(np.array(times) / step), atol=1e-6)


# The benchmark's measure


def test_grids_are_the_benchmarks():
    np.testing.assert_allclose(inner(8), np.arange(1, 9) / 9)
    times = backwards(313, 5.0)
    assert times[0] == 5 and len(times) == 313 and abs(times[-1] - 5 / 313) < 1e-12
    counts = {name: len(case.formula().points) for name, case in CASES.items() if case.formula is not None}
    forward = {"Wave1d-C": 2500, "Heat2d-MS": 8 * 8 * 313, "PNd": 32_768, "HNd": 800 * 25}
    assert counts == forward | {"PInv": 2500, "HInv": 17 * 17 * 71}
    for case in CASES.values():
        if case.formula is not None:
            made = case.formula()
            assert made.error(case.anywhere(made.points)) < 1e-15 and made.error(0 * made.values) == 1


def test_outputs_are_stacked_as_they_are():
    reference = np.array([[3.0, 0.0], [0.0, 4.0]])
    assert stacked(reference + np.array([[1.0, 0], [0, 0]]), reference) == 1 / 5


WIDE = """% Nodes: 2
% X  Y  u (1) @ t=0  v (1) @ t=0  u (1) @ t=0.5  v (1) @ t=0.5
0.25 1.5 1 2 3 4
3 4 5 6 7 NaN
"""


def test_wide_files_are_unfolded(tmp_path):
    (tmp_path / "wide.dat").write_text(WIDE)
    made = File("wide.dat", 3, 2, wide=True).read(tmp_path)
    np.testing.assert_array_equal(made.points, [[0.25, 1.5, 0], [0.25, 1.5, 0.5], [3, 4, 0]])
    np.testing.assert_array_equal(made.values, [[1, 2], [3, 4], [5, 6]])
    np.testing.assert_allclose(CASES["Burgers2d-C"].inside(made.points)[1:], [[0.25, 0.5, 0.5], [0, 0, 0]])


def test_flat_files_leave_out_what_does_not_count(tmp_path):
    (tmp_path / "flat.dat").write_text("% x y u\n0 1 5\n0.5 1 0.1\n1 1 7\n")
    made = File("flat.dat", 2, 1, left_out=((0, 1), (1, 1))).read(tmp_path)
    np.testing.assert_array_equal(made.points, [[0.5, 1]])
    assert made.values[0, 0] == float(np.float32(0.1)) != 0.1


@pytest.mark.parametrize("text", ["version https://example.org/spec\n", "% x\n1 2\n", "% u @ t=0\n1 2 3 4 5 6 7\n"])
def test_other_files_are_refused(tmp_path, text):
    (tmp_path / "wide.dat").write_text(text)
    with pytest.raises(ValueError):
        File("wide.dat", 3, 2, wide=True).read(tmp_path)


def test_the_floor_is_measured_where_a_file_is_at_hand(tmp_path):
    case = replace(CASES["Burgers1d-C"], file=File("a.dat", 2, 1, wide=True))
    missing = pinnacle.compared_with(case, tmp_path)
    assert (
        missing.yardstick is None
        and "a.dat cannot be read (No such file" in missing.why
        and missing.floor == case.floor
    )
    (tmp_path / "a.dat").write_text("% X  u @ t=0  u @ t=1\n-0.5 2 0\n0.5 -2 0\n")
    found = pinnacle.compared_with(case, tmp_path)
    exact = case.anywhere(found.yardstick.points)
    assert found.floor == stacked(exact, found.yardstick.values) and 0.4 < found.floor < 0.9
    assert pinnacle.compared_with(case, None).why == "no copy of the benchmark was given"


# The table


def result(seed, error, **more):
    out = {"case": "NS2d-C", "seed": seed, "options": {}, "failed": None, "seconds": 100.0 + seed, "verdict": "partly"}
    return out | {"ours": error, "each": {"u": error, "p": 2 * error}, "estimate": {"u": 3e-3}, "theirs": None} | more


def test_rows_show_the_median_and_keep_failures():
    case = CASES["NS2d-C"]
    broken = {"case": case.name, "seed": 2, "options": {}, "failed": "RuntimeError: no", "seconds": 5.0, "theirs": None}
    row = pinnacle.Row(
        case, (result(0, 1e-3), result(1, 4e-3, estimate=None), broken), pinnacle.Theirs(None, 5e-4, "why")
    )
    text = pinnacle.markdown([row], "Stamp.")
    assert text.startswith("Stamp.\n\n| case, equation solved | theirs")
    line = next(line for line in text.splitlines() if line.startswith("| NS2d-C: "))
    first, second, each, verdicts, estimates, seconds, published = (cell.strip() for cell in line.split("|")[2:-1])
    assert first == "failed (floor 5.0e-04)"  # of the only one that has no more to say
    assert second == "4.0e-03 (1.0e-03 to failed)" and each.startswith("u 4.0e-03 (1.0e-03 to failed); p 8.0e-03")
    assert verdicts == "partly, partly, error" and estimates == "3.0e-03, unknown, unknown"
    assert seconds == "100 (5 to 101)" and published == "3.60e-02, 4.40e-02"
    assert "second-hand" in text and "corners are left out" in text and "seed 2 ended with an error" in text
    assert pinnacle.spread([1.0, 3.0]) == "2.0e+00 (1.0e+00 to 3.0e+00)" and pinnacle.spread([None]) == "failed"
    assert all(line.count("|") == 9 for line in text.splitlines() if line.startswith(("| NS2d-C: ", "| case, ")))


def test_column_one_is_empty_without_a_file():
    row = pinnacle.Row(CASES["KS"], (result(0, 1e-3),), pinnacle.Theirs(None, None, "no copy"))
    assert pinnacle.cells(row)[1] == "(floor unknown)"
    assert "KS: the first column has no measurement, because no copy" in pinnacle.markdown([row])


def test_names_of_cases():
    assert [case.name for case in pinnacle.cases()] == list(CASES) and len(CASES) == 15
    assert [case.name for case in pinnacle.cases(["ks", "burgers1d-c"])] == ["Burgers1d-C", "KS"]
    with pytest.raises(ValueError, match="no case 'burgers'"):
        pinnacle.cases(["burgers"])


def call(directory, *more):
    return CliRunner().invoke(app, ["reproduce", "pinnacle", "wave1d-c", "-q", "--out", str(directory), *more])


def test_the_command_measures_once_and_continues(tmp_path, monkeypatch):
    options = ("--seeds", "0", "--max-seconds", "0.001")
    page = tmp_path / "page.md"
    page.write_text("<!-- pinnacle -->\n<!-- /pinnacle -->\n")
    monkeypatch.setattr(pinnacle, "solve", partial(solve, network=Siren(widths=(8,)), points=64, sketch=8))
    first = call(tmp_path, *options, "--into", str(page))
    assert first.exit_code == 0, first.output
    assert "Wave1d-C" in first.output and "floor 0" in first.output
    text = (tmp_path / "pinnacle.md").read_text()
    assert "max_seconds=0.001" in text and text.strip() in page.read_text()
    kept = tmp_path / "Wave1d-C-seed0" / "pinnacle.json"
    stored = json.loads(kept.read_text())
    assert stored["failed"] is None and stored["theirs"] > 0 and set(stored["each"]) == {"u"}

    def never(*args, **options):
        raise AssertionError("solved again")

    monkeypatch.setattr(pinnacle, "solve", never)
    assert call(tmp_path, *options).exit_code == 0 and json.loads(kept.read_text()) == stored
    other = call(tmp_path, "--seeds", "0", "--max-seconds", "1")
    assert other.exit_code == 2 and "use another --out" in other.output
    # without the benchmark's column the run is loaded and measured again, to the same figure
    kept.write_text(json.dumps(stored | {"theirs": None}))
    assert call(tmp_path, *options).exit_code == 0
    assert abs(json.loads(kept.read_text())["theirs"] / stored["theirs"] - 1) < 1e-6


def test_errors_of_the_solver_stay_and_interruptions_do_not(tmp_path, monkeypatch):
    def broken(problem, *, seed, **options):
        if seed == 1:
            signal.raise_signal(signal.SIGINT)
        raise FloatingPointError("all is lost")

    monkeypatch.setattr(pinnacle, "solve", broken)
    stopped = call(tmp_path, "--seeds", "0,1")
    assert stopped.exit_code == 3 and "run the same command again to continue" in stopped.output
    assert json.loads((tmp_path / "Wave1d-C-seed0" / "pinnacle.json").read_text())["failed"].endswith("all is lost")
    assert not (tmp_path / "Wave1d-C-seed1").exists() and not (tmp_path / "pinnacle.md").exists()
    ended = call(tmp_path, "--seeds", "0")
    assert ended.exit_code == 0 and "all is lost" in (tmp_path / "pinnacle.md").read_text()


@pytest.mark.parametrize("seeds", ["", "a", "0,0", "1.5"])
def test_seeds_are_whole_numbers(tmp_path, seeds):
    assert call(tmp_path, "--seeds", seeds).exit_code == 2


def test_one_call_for_all_cases(tmp_path, monkeypatch):
    """Nothing but the seed and the options that were given reaches the solver."""
    calls = []

    def noted(problem, **options):
        calls.append(options)
        raise RuntimeError("enough")

    monkeypatch.setattr(pinnacle, "solve", noted)
    monkeypatch.setattr(pinnacle, "compared_with", lambda case, clone: pinnacle.Theirs())
    chosen = [replace(case, problem=lambda: None) for case in pinnacle.cases()]
    list(pinnacle.table(tmp_path, chosen, [3], {"max_seconds": 5.0, "tol": 1e-3}))
    assert calls == [{"seed": 3, "observers": (), "max_seconds": 5.0, "tol": 1e-3}] * len(CASES)


def test_yardsticks_of_formulas_hold_points_of_the_domain():
    for case in CASES.values():
        if case.formula is not None:
            made = case.formula()
            assert isinstance(made, Yardstick) and stated(case.name).domain.contains(made.points).all()
