"""`dsgnar bench`, `reproduce jacobians`: what is timed is what a run does, and results are kept and compared rightly."""

import dataclasses
import itertools
import json
import math
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import pytest
from typer.testing import CliRunner

import dsgnar as ds
from dsgnar.cli import app, measuring
from dsgnar.networks import MLP, Inputs
from dsgnar.networks.parameters import Parameters
from dsgnar.optimise.residuals import Residuals
from dsgnar.solving.loop import run as run_of
from dsgnar.tools.bench import (
    Row,
    Spread,
    cases,
    find,
    isolated,
    jacobians,
    machine,
    measurements,
    parts,
    records,
    report,
)

DOCS = Path(__file__).parent.parent / "docs"
pytestmark = pytest.mark.usefixtures("shared_kernels")


def run(*args: str):
    return CliRunner().invoke(app, list(args))


# --- numbers ----------------------------------------------------------------------------------------------------------


def test_ratios_are_taken_pair_by_pair():
    ratio = Row("c", "p", Spread((1.0, 2.0, 4.0)), Spread((10.0, 30.0, 80.0))).ratio
    assert ratio == Spread((10.0, 15.0, 20.0))
    assert (ratio.median, ratio.low, ratio.high) == (15.0, 10.0, 20.0)


def test_rows_survive_json_also_where_an_error_was_not_reached():
    row = Row("c", "solve to 1e-9", Spread((1.5, math.inf)), Spread((9.0,)), facts={"errors": [1e-9]})
    text = json.dumps(row.to_json(), allow_nan=False)
    assert Row.from_json(json.loads(text)) == row
    assert "not reached" in str(row.fast)
    never = Row("case", "part", Spread((1.0,)), Spread((float("inf"),)))
    assert report.cells(never)[2:4] == ("1 s", "not reached")


def entry(row, machine="here", **more):
    return {"machine": machine, "version": "0.0.9", "date": "2026-01-01T00:00:00", **row.to_json(), **more}


@pytest.mark.parametrize(
    ("now", "before", "said"),
    [
        (Row("c", "p", Spread((1.0, 1.1))), Row("c", "p", Spread((0.9, 1.05))), ""),  # the spreads overlap
        (Row("c", "p", Spread((1.0, 1.1))), Row("c", "p", Spread((0.7, 0.9))), "SLOWER"),
        (Row("c", "p", Spread((1.0,))), Row("c", "p", Spread((0.9,))), ""),  # no spread is known
        (Row("c", "p", Spread((9.0, 9.0)), unit="GFLOP/s"), Row("c", "p", Spread((1.0, 1.0)), unit="GFLOP/s"), ""),
        (  # the machine was slower: paper is, too
            Row("c", "p", Spread((2.0, 2.2)), Spread((20.0, 22.0))),
            Row("c", "p", Spread((1.0, 1.1)), Spread((10.0, 11.0))),
            "slower, but so is paper",
        ),
        (
            Row("c", "p", Spread((2.0, 2.2)), Spread((10.0, 11.0))),
            Row("c", "p", Spread((1.0, 1.1)), Spread((10.0, 11.0))),
            "SLOWER",
        ),
    ],
)
def test_a_regression_is_said_only_when_it_is_more_than_the_spread(now, before, said):
    text = records.compare(now, entry(before))
    assert "0.0.9" in text
    assert said in text if said else "slower" not in text.lower()


def test_the_latest_result_of_this_machine_is_found(tmp_path):
    path = tmp_path / "deep" / "bench.jsonl"
    row = Row("c", "p", Spread((1.0,)))
    assert records.latest(path, "here") == {}
    for where, version in (("here", "1"), ("here", "2"), ("there", "3")):
        records.append(path, row, machine=where, version=version, date="2026-01-01")
    with open(path, "a") as file:
        file.write('{"machine": "here", "version": "4", "ca')  # cut off
    assert records.latest(path, "here")["c", "p"]["version"] == "2"
    assert records.compare(row, None) == ""


# --- what is timed ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "sizes"),
    [("burgers-single", (1447, 700)), ("burgers-double", (5125, 2000)), ("burgers-large", (11285, 4000))],
)
def test_named_cases_have_the_papers_sizes(name, sizes):
    paper = find(name).context("paper")
    assert (paper.residuals.parameters.count, paper.settings.sketch) == sizes
    assert paper.collocation.active(paper.start()).counts == (2**15, 2**14)


def test_any_preset_is_a_case_and_other_names_are_not():
    assert find("wave:double").context("fast").settings.precision == "double"
    for wrong in ("nonsense", "burgers:nonsense"):
        with pytest.raises(ValueError, match="nonsense"):
            find(wrong)


@pytest.mark.parametrize("method", cases.METHODS)
def test_watched_iterations_are_those_of_an_ordinary_run(method):
    plain = find("tiny").context(method, **{**parts.STEADY, "max_iterations": 3})
    solution = run_of(plain, plain.start())
    stepper = parts.Stepper(find("tiny").context(method, **parts.STEADY))
    laps = [stepper.step() for _ in range(3)]
    np.testing.assert_array_equal(stepper.state.iterate.theta, solution.thetas[0])
    assert [lap["evaluations"] for lap in laps] == [record.evaluations for record in solution.history]
    for lap in laps[1:]:
        assert all(lap[part] > 0 for part in ("sketch", "factorisation", "search", "rest"))
        assert sum(lap[part] for part in ("sketch", "factorisation", "search", "rest")) == pytest.approx(
            lap["iteration"]
        )


def test_both_methods_begin_at_the_same_place_in_the_precision_of_the_case():
    start = parts.typical(find("tiny"))
    double = dataclasses.replace(find("tiny"), preset="double")
    for method in cases.METHODS:
        state = parts.Stepper.at(double, method, start).state.iterate
        assert state.theta.dtype == np.float64 and state.iteration == 0
        np.testing.assert_array_equal(state.theta, start.theta)
        assert state.radius == start.radius != 1.0


def test_flops_of_a_residual_are_those_of_its_matrix_products():
    problem = find("tiny").statement.problem
    inputs = Inputs(problem.domain.bounds, 1, (0,))
    network = MLP((200, 200)).build(inputs, 1, key=jax.random.key(0), dtype=np.float32)
    residuals, _ = Residuals.of(problem, network)
    weights = 3 * 200 + 200 * 200 + 200
    equation, initial = parts.residual_flops(residuals, np.float32)
    assert 2 * weights < initial < 3.2 * weights
    assert 4 * 2 * weights < equation < 4 * 3.2 * weights  # u, u_x, u_t, u_xx


def test_flops_of_a_sketch_count_the_residuals_that_go_into_it():
    for method in cases.METHODS:
        stepper = parts.Stepper(find("tiny").context(method))
        each = parts.residual_flops(stepper.context.residuals, np.float32)
        used = parts.sketched_residuals(stepper)
        assert parts.sketch_flops(stepper.context, used) == 3 * np.dot(each, used)
        assert all(0 < u <= n for u, n in zip(used, stepper.counts, strict=True))
        if method == "paper":
            assert tuple(used) == stepper.counts


def test_singular_values_fall_over_sixteen_orders():
    A, _ = measurements.falling(60)
    np.testing.assert_allclose(np.linalg.svd(A, compute_uv=False), np.geomspace(1, 1e-16, 60), rtol=1e-6, atol=1e-15)


def test_the_gemm_rate_is_a_rate():
    assert 0.01 < machine.gemm(np.float32, size=64, repeats=1) < 1e6


def test_when_an_error_was_first_seen():
    watch = measurements.Reached(1e-3)
    for error, seconds in (
        ({"u": 1e-2}, 1.0),
        ({"u": 1e-4, "v": 1e-2}, 2.0),
        ({"u": 1e-4, "v": 1e-3}, 3.0),
        (None, 4.0),
    ):
        watch._look(error, seconds)
    assert watch.seconds == 3.0


# --- processes of their own -------------------------------------------------------------------------------------------


def test_what_a_process_yields_comes_back_with_its_memory():
    done = isolated.call(itertools.chain, [1, 2], ["three"])
    assert (done.values, done.ended) == ([1, 2, "three"], "done")
    assert 0.003 < done.peak < 4


def test_limits_end_a_process_and_keep_what_it_found():
    slow = isolated.call(itertools.count, 7, seconds=0.0)
    large = isolated.call(itertools.count, 7, gibibytes=0.003)  # less than Python
    assert (slow.ended, large.ended) == ("time", "memory")
    wrong = isolated.call(itertools.chain, [1], 2)
    assert wrong.ended == "failed" and wrong.values == [1] and "not iterable" in wrong.message


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="processes are looked up in /proc")
def test_a_process_ends_when_its_caller_is_killed(tmp_path):
    folder = str(Path(isolated.__file__).parent)  # alone, without the rest of dsgnar
    script = f"import itertools, sys\nsys.path.append({folder!r})\nimport isolated\nisolated.call(itertools.repeat, 7)"
    caller = subprocess.Popen([sys.executable, "-c", script], env=os.environ | {"TMPDIR": str(tmp_path)})
    try:
        assert _within_two_minutes(lambda: any(path.stat().st_size for path in tmp_path.glob("*/results")))
    finally:
        caller.kill()
        caller.wait()
    assert _within_two_minutes(lambda: not _running(str(tmp_path)))


def _running(word: str) -> bool:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if word.encode() in path.read_bytes():
                return True
        except OSError:  # it has just ended
            continue
    return False


def _within_two_minutes(happened) -> bool:
    deadline = time.monotonic() + 120
    while not happened() and time.monotonic() < deadline:
        time.sleep(0.1)
    return happened()


# --- the time to build Jacobians ------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [*jacobians.ROWS[4:], *jacobians.QUICK[:1]], ids=lambda size: size.parameters)
def test_networks_have_exactly_as_many_parameters(size):
    inputs = Inputs(((-1.0, 1.0), (0.0, 1.0)), 1, (0,))
    network = MLP(size.widths).build(inputs, 1, key=jax.random.key(0), dtype=np.float32)
    assert Parameters.of(network)[0].count == size.parameters


def test_columns_build_the_same_jacobian(monkeypatch):
    monkeypatch.setattr(jacobians, "MACRO", 16)
    columns = ("naive-rev", "macro-fwd", "macro-rev", *jacobians.SKETCHED)
    built = {column: np.asarray(jacobians.builder(32, (6,), 10, column)()) for column in columns}
    J = built["naive-rev"]
    for column in ("macro-fwd", "macro-rev"):  # two batches of what `sub` does
        np.testing.assert_allclose(built[column], J, atol=1e-5 * np.abs(J).max())
    for column in jacobians.SKETCHED:  # a sketch keeps within the row space
        sketched = built[column]
        assert sketched.shape == (10, J.shape[1])
        X = np.linalg.lstsq(J.T.astype(np.float64), sketched.T.astype(np.float64), rcond=1e-6)[0]
        np.testing.assert_allclose(J.T @ X, sketched.T, atol=1e-3 * np.abs(sketched).max())


def test_cells_are_measured_once(tmp_path, monkeypatch):
    asked = []

    def pretend(size, column, limits):
        asked.append((size.points, column))
        ended = "memory" if column == "naive-fwd" and limits.gibibytes < 2 else "done"
        seconds = (0.5, 0.7, 0.6) if ended == "done" else ()
        first = 1.0 if ended == "done" else None
        return jacobians.Cell(
            size.points, size.parameters, column, ended, first, seconds, 0.25, dataclasses.asdict(limits)
        )

    monkeypatch.setattr(jacobians, "measure", pretend)
    columns, limits = ("naive-fwd", "buckets"), jacobians.Limits(10.0, 1.0)
    first = list(jacobians.table(tmp_path, limits, jacobians.QUICK, columns))
    assert len(asked) == 4 and [str(cell) for _, cell in first[:2]] == ["> 1 GiB", "0.6 s, 0.25 GiB"]
    assert list(jacobians.table(tmp_path, limits, jacobians.QUICK, columns)) == first and len(asked) == 4
    (tmp_path / jacobians.FILE).rename(tmp_path / jacobians.EARLIER)
    assert list(jacobians.table(tmp_path, limits, jacobians.QUICK, columns)) == first and len(asked) == 4
    wider = list(jacobians.table(tmp_path, jacobians.Limits(10.0, 2.0), jacobians.QUICK, columns))
    assert asked[4:] == [(256, "naive-fwd"), (512, "naive-fwd")] and str(wider[0][1]) == "0.6 s, 0.25 GiB"
    assert "| 2^8 | 115 | 40 | > 1 GiB | 0.6 s, 0.25 GiB |" in jacobians.markdown(first)
    monkeypatch.setattr(machine, "key", lambda _: "another")
    with pytest.raises(ValueError, match="another machine"):
        list(jacobians.table(tmp_path, limits, jacobians.QUICK, columns))


def test_a_jacobian_that_cannot_fit_is_not_tried():
    cell = jacobians.measure(jacobians.ROWS[-1], "naive-rev", jacobians.Limits(0.0, 100.0))
    assert cell.ended == "memory" and "986.3 GiB" in cell.message


def test_the_papers_times_stand_beside_ours():
    size = jacobians.ROWS[0]
    text = jacobians.markdown(
        [(size, jacobians.Cell(size.points, size.parameters, "countsketch", "done", 2.0, (0.25,), 1.5))]
    )
    assert "0.25 s, 1.5 GiB<br>(H100: 0.001 s)" in text


# --- the commands -----------------------------------------------------------------------------------------------------


def test_table_1_up_to_a_number_of_points(tmp_path, monkeypatch):
    asked = []

    def pretend(size, column, limits):
        asked.append(size.points)
        return jacobians.Cell(
            size.points, size.parameters, column, "done", 1.0, (0.5,), 0.25, dataclasses.asdict(limits)
        )

    monkeypatch.setattr(jacobians, "measure", pretend)
    result = run("reproduce", "jacobians", "--max-points", "300000", "--columns", "buckets", "--out", str(tmp_path))
    assert result.exit_code == 0, result.output
    assert asked == [size.points for size in jacobians.ROWS if size.points <= 300_000] and max(asked) == 2**18


def test_bench_writes_results_and_compares_with_the_last_ones(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- mine -->\nold\n<!-- /mine -->\nafter\n")
    args = ("bench", "--quick", "--repeats", "1", "--history", str(tmp_path / "h.jsonl"), "--out", str(tmp_path))
    first = run(*args, "--parts", "iteration,svd", "--into", f"{page}#mine")
    assert first.exit_code == 0, first.output
    content = json.loads((tmp_path / "bench.json").read_text())
    measured = {(row["case"], row["part"]): row for row in content["rows"]}
    assert measured["tiny", "iteration"]["ratio"][0] == pytest.approx(
        measured["tiny", "iteration"]["paper"][0] / measured["tiny", "iteration"]["fast"][0]
    )
    assert ("svd 320x320 float64", "factorisation") in measured and ("tiny", "sketch") not in measured
    assert (tmp_path / "bench.png").stat().st_size > 10_000
    text = page.read_text()
    assert (tmp_path / "bench.md").read_text().strip() in text
    assert text.startswith("before\n") and text.endswith("after\n") and "old" not in text
    second = run(*args, "--parts", "svd")
    assert content["version"].startswith(ds.__version__)
    assert second.exit_code == 0 and f" x {content['version']} of " in second.output
    assert len((tmp_path / "h.jsonl").read_text().splitlines()) == len(content["rows"]) + 4


def test_reproduce_jacobians_stores_what_it_measures(tmp_path, monkeypatch):
    monkeypatch.setattr(jacobians, "QUICK", jacobians.QUICK[:1])
    args = ("reproduce", "jacobians", "--quick", "--repeats", "1", "--columns", "buckets", "--out", str(tmp_path))
    result = run(*args)
    assert result.exit_code == 0, result.output
    cells = json.loads((tmp_path / "jacobians.json").read_text())["cells"]
    assert [(cell["ended"], len(cell["seconds"])) for cell in cells] == [("done", 1)]
    assert "| 2^8 | 115 | 40 |" in (tmp_path / "jacobians.md").read_text()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("bench", "nonsense"), "nonsense"),
        (("bench", "--parts", "sketch,nonsense"), "no part 'nonsense'"),
        (("reproduce", "jacobians", "--columns", "nonsense"), "no column 'nonsense'"),
    ],
)
def test_wrong_calls_say_why(args, message, tmp_path):
    result = run(*args, "--out", str(tmp_path))
    assert result.exit_code == 2 and message in result.output


def test_commands_are_named_by_what_they_show_and_known_by_their_earlier_names(tmp_path, monkeypatch):
    shown = run("reproduce", "--help").output
    for name, earlier in {
        "results": "table2",
        "jacobians": "table1",
        "probes": "figure4",
        "sketches": "figure3",
    }.items():
        assert f" {name} " in shown and earlier not in shown
        assert run("reproduce", earlier, "--help").exit_code == 0
    monkeypatch.chdir(tmp_path)
    assert measuring._place(None, "results", "table2") == Path("runs/results")
    (tmp_path / "runs" / "table2").mkdir(parents=True)
    assert measuring._place(None, "results", "table2") == Path("runs/table2")
    assert measuring._place(Path("here"), "results", "table2") == Path("here")
    (tmp_path / "runs" / "results").mkdir()
    assert measuring._place(None, "results", "table2") == Path("runs/results")


def test_growth_and_compiling_are_measured_elsewhere(monkeypatch):
    asked = []

    def pretend(function, *arguments, environment=None):
        asked.append((function.__name__, *arguments))
        return isolated.Outcome([[0.5, 0.7] if function is measurements._grow else 3.0], 0.4, "done")

    monkeypatch.setattr(isolated, "call", pretend)
    rows = [*measurements.growth(find("tiny"), (512, 1024), 2), *measurements.compiling(find("tiny"), 1)]
    assert asked[:2] == [("_grow", "tiny", 512, 2), ("_grow", "tiny", 1024, 2)]
    assert [(row.part, row.fast.median, row.unit) for row in rows[:2]] == [
        ("iteration, N=512", 0.6, "s"),
        ("memory, N=512", 0.4, "GiB"),
    ]
    assert {row.part for row in rows[4:]} == {"compile", "compile, cached"}


def test_growth_takes_as_many_points_as_it_says():
    steps = measurements._grow("tiny", 600, 1)
    assert len(next(steps)) == 1
    assert sum(parts.Stepper(find("tiny").context("fast", **{**parts.STEADY, "points": 400})).counts) == 600


def test_every_table_of_the_cost_page_has_its_place():
    page = (DOCS / "cost.md").read_text()
    marks = {mark or {"bench": "bench", "reproduce": "jacobians"}[command] for command, mark in
             re.findall(r"^    dsgnar (bench|reproduce) .*--into docs/cost\.md#?(\w*)$", page, re.M)}  # fmt: skip
    assert marks == {"bench", "svd", "large", "single", "double", "growth", "jacobians"}
    for mark in marks:
        assert page.count(f"<!-- {mark} -->") == page.count(f"<!-- /{mark} -->") == 1
    with pytest.raises(ValueError, match="no place"):
        report.fill(DOCS / "cost.md", "nonsense", "")


def test_a_figure_is_drawn_of_times_and_growth(tmp_path):
    rows = [Row("c", "sketch", Spread((1.0, 2.0)), Spread((5.0, 6.0))), Row("c", "solve", Spread((math.inf,)))]
    rows += [Row("c", f"iteration, N={n}", Spread((n / 1e3,)), facts={"N": n}) for n in (512, 1024)]
    rows += [Row("c", f"memory, N={n}", Spread((0.4,)), unit="GiB", facts={"N": n}) for n in (512, 1024)]
    assert report.figure(rows, "title", tmp_path / "figure.png") and (tmp_path / "figure.png").stat().st_size > 10_000
    assert not report.figure([Row("machine", "GEMM", Spread((1.0,)), unit="GFLOP/s")], "", tmp_path / "none.png")
