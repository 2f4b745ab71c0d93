"""The report and the table of a run say what its files say, and say what is missing."""

import base64
import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import dsgnar as ds
from dsgnar.cli import app
from dsgnar.showing import report
from dsgnar.showing.quality import Quality
from dsgnar.showing.report import charts, facts, maps, markup, sections
from dsgnar.showing.report.recorded import Recorded
from dsgnar.showing.words import number
from dsgnar.solving.model import Model
from dsgnar.solving.record import Record
from dsgnar.solving.solution import Solution
from dsgnar.suite import SUITE
from small import run_of_burgers

pytestmark = pytest.mark.filterwarnings("error:.*outside the domain")  # a warning for people who evaluate


@pytest.fixture(scope="module")
def burgers(tmp_path_factory):
    """The directory of a run over two time intervals."""
    return run_of_burgers(tmp_path_factory.mktemp("runs") / "burgers")


@pytest.fixture(scope="module")
def page(burgers):
    report.write([burgers], burgers / "report.html")
    return (burgers / "report.html").read_text()


@pytest.fixture
def copy(burgers, tmp_path):
    """Files of the run that a test may spoil."""
    for name in ("config.json", "result.json", "history.csv", "solution.npz"):
        (tmp_path / name).write_bytes((burgers / name).read_bytes())
    return tmp_path


def written(*directories, to):
    report.write(list(directories), to / "page.html")
    return (to / "page.html").read_text()


def drawn(html: str) -> dict[str, dict]:
    """The charts of a page by name."""
    data = re.search(r'<script type="application/json" id="charts">(.*?)</script>', html, re.S)
    assert data is not None
    return {chart["name"]: chart for chart in json.loads(data[1])}


def prose(html: str) -> str:
    """What a person reads: the body without scripts and tags."""
    body = html[html.index("<header>") : html.index("<noscript>")]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", body))


def plane(trace) -> np.ndarray:
    numbers = np.frombuffer(base64.b64decode(trace["z"]["float32"]), "<f4")
    return numbers.reshape(-1, trace["z"]["columns"])


def record(**changes) -> Record:
    first = Record(1, 0, 1, "single", 10, 1.0, (4.0,), (1.0,), 0.5, 0.5, 1.0, 1.0, True, 3, 0.5, None, None)
    return dataclasses.replace(first, **changes)


def recorded(*history: Record) -> Recorded:
    config = {"statement": {"conditions": {"pde": "the interior"}}}
    return Recorded(Path("somewhere"), {"problem": "burgers"}, config, history)


# --- the page of one run ----------------------------------------------------------------------------------------------


def test_the_page_says_what_the_run_reached(burgers, page):
    result = json.loads((burgers / "result.json").read_text())
    text = prose(page)
    assert "Burgers" in text and "Solved" in text and "maximum number of iterations" in text
    assert number(result["relative_l2"]["u"]) in text.replace(" × 10−", "e-")
    for name, value in result["held_out"].items():
        assert name in text and number(value) in text.replace(" × 10−", "e-")
    assert "viscosity 0.01" in text and result["environment"]["jax"] in text
    assert page.count("<math ") == len(SUITE["burgers"].equations)


def test_the_page_is_one_small_file_that_refers_to_nothing_outside(page):
    assert len(page.encode()) < 6e6
    own = page.replace(re.search(r"<script>(.{1000000,})</script>", page, re.S)[1], "")  # type: ignore[index]
    assert "Content-Security-Policy" in own and "default-src 'none'" in own
    addresses = set(re.findall(r"https?://[^\s\"'<]+", own))
    assert addresses <= {"http://www.w3.org/1998/Math/MathML"}  # a name, not a place
    assert not re.search(r'(src|href)="(?!data:|#)', own)


def test_the_planes_are_the_solution_and_its_error(burgers, page):
    solution, reference = ds.load(burgers), SUITE["burgers"].reference()
    shown = drawn(page)
    trace = shown["solution-u-0"]["traces"][0]
    t, x = np.meshgrid(trace["x"], trace["y"])
    np.testing.assert_allclose(plane(trace), solution(x=x, t=t), atol=2e-5)
    error = np.abs(reference.differences({"u": solution.at(reference.points)[:, 0]})["u"]).reshape(reference.shape)
    np.testing.assert_allclose(plane(shown["error-u-0"]["traces"][0]), error[::2], rtol=1e-5, atol=1e-12)


def test_the_curves_are_the_history(burgers, page):
    history = report.read(burgers).history
    shown = drawn(page)
    loss, held = shown["loss"]["traces"]
    np.testing.assert_allclose(loss["y"], [r.loss for r in history], rtol=1e-5)
    np.testing.assert_allclose(held["y"], [r.held_out for r in history if r.held_out], rtol=1e-5)
    np.testing.assert_allclose(shown["loss"]["clocks"][0], [r.seconds for r in history], rtol=1e-5)
    assert shown["error"]["traces"][0]["y"][-1] == pytest.approx(
        [r.error for r in history if r.error][-1]["u"], rel=1e-5
    )
    assert set(shown) == {
        "solution-u-0", "error-u-0", "over-time", "error", "loss", "residuals", "ratio", "lambda", "radius", "weights",
    }  # fmt: skip
    assert [mark["label"] for mark in shown["loss"]["marks"]] == ["double precision", "interval 2", "stage 2"]


def test_every_chart_is_described_in_words(page):
    described = re.findall(r'<div class="plot" id="([^"]+)" role="img" aria-label="([^"]+)">', page)
    assert {name for name, _ in described} == {chart["id"] for chart in drawn(page).values()}


def test_history_is_inside_the_page(burgers, page):
    link = re.search(r'download="burgers-history.csv" href="data:text/csv;base64,([^"]+)"', page)
    assert link and base64.b64decode(link[1]) == (burgers / "history.csv").read_bytes()


def test_names_of_the_user_cannot_inject_anything(copy):
    evil = "</script><script>alert(1)</script>"
    for name in ("config.json", "result.json", "history.csv"):
        text = (copy / name).read_text()
        (copy / name).write_text(text.replace('"burgers"', json.dumps(evil)).replace("pde", evil))
    html = written(copy, to=copy)
    assert evil not in html and "alert(1)" in prose(html)
    assert evil.replace("<", "&lt;").replace(">", "&gt;") in drawn(html)["weights"]["traces"][0]["name"]


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda d: (d / "history.csv").unlink(), "history.csv cannot be read"),
        (lambda d: (d / "history.csv").write_text("iteration\nx,y"), "history.csv cannot be read"),
        (lambda d: (d / "solution.npz").unlink(), "solution.npz cannot be read"),
        (lambda d: (d / "solution.npz").write_bytes(b"PK"), "solution.npz cannot be read"),
        (lambda d: spoil_parameters(d), "parameters are not finite"),
        (
            lambda d: change(d, "result.json", relative_l2=None, points=None),
            "no reference solution, so the error is not known",
        ),
        (lambda d: change(d, "result.json", stop_reason="another"), "The run stopped with 'another'"),
        (lambda d: change(d, "config.json", source="python"), "was stated in a program"),
        (lambda d: change(d, "config.json", statement=None, network=None, settings=None), "cannot be drawn"),
        (lambda d: change(d, "config.json", method={"name": "old"}, settings={}), "cannot be drawn"),
    ],
)
def test_the_page_says_what_is_missing(copy, spoil, said):
    spoil(copy)
    assert said in prose(written(copy, to=copy)).replace("&#x27;", "'")


def spoil_parameters(directory):
    with np.load(directory / "solution.npz") as file:
        stored = dict(file)
    np.savez(directory / "solution.npz", **stored | {"thetas": stored["thetas"] * np.nan})


def change(directory, name, **values):
    """Give entries of a file other values; None takes them out."""
    described = json.loads((directory / name).read_text()) | values
    kept = {key: value for key, value in described.items() if key not in values or value is not None}
    (directory / name).write_text(json.dumps(kept))


# --- the method -------------------------------------------------------------------------------------------------------


def defaults() -> dict:
    """The constants of `fast`, as config.json has them."""
    constants = dataclasses.asdict(ds.FAST.at("double"))
    return {name: None if value == float("inf") else value for name, value in constants.items()}


def test_constants_at_their_defaults_are_folded(copy):
    change(copy, "config.json", method=defaults())
    shown = sections.configuration(report.read(copy))
    text = re.sub(r"<[^>]*>", " ", shown)
    assert "Method fast" in text and "all at their defaults" in text
    folded = shown[shown.index("<details>") : shown.index("</details>")]
    fields = [f.name for f in dataclasses.fields(ds.Method) if f.name != "name"]
    assert f"All {len(fields)} constants of the method" in folded
    assert re.findall(r'<th scope="row">([^<]*)</th>', folded) == [name.replace("_", " ") for name in fields]
    assert "max seconds ∞" in re.sub(r"\s+", " ", text)  # no limit


def test_constants_that_differ_are_shown_with_their_defaults(copy):
    changes = {"wait": 77, "targets": [0.2, 0.6], "overshoot": 0.5, "columns_from": None}
    change(copy, "config.json", method=defaults() | changes)
    run, default = report.read(copy), ds.FAST.at("double")
    assert run.changed == {
        "columns_from": (float("inf"), default.columns_from), "overshoot": (0.5, float("inf")),
        "targets": ((0.2, 0.6), default.targets), "wait": (77, default.wait),
    }  # fmt: skip
    text = re.sub(r"<[^>]*>", " ", sections.configuration(run))
    assert "wait  77 (default 60)" in text and "overshoot  0.5 (default ∞)" in text
    assert "wait 77 (default 60)" in facts.facts(run)["method"]


def test_a_method_of_your_own_is_compared_with_fast(copy):
    change(copy, "config.json", method=defaults() | {"name": "mine", "hashes": 1})
    assert report.read(copy).changed == {"hashes": (1, 4)}


def test_a_configuration_of_another_version_is_shown_as_it_is(copy):
    change(copy, "config.json", method={"name": "fast", "patience": 9})
    run = report.read(copy)
    assert run.changed == {} and "patience" in sections.configuration(run)


# --- marks and facts, by hand -----------------------------------------------------------------------------------------


def test_marks_stand_where_something_changes():
    run = recorded(
        record(),
        record(iteration=2, stage=2, seconds=1.0),
        record(iteration=3, stage=2, precision="double", seconds=1.5),
        record(iteration=4, interval=1, seconds=2.0),
    )
    assert [(m.kind, m.label, m.iteration, m.seconds) for m in run.marks] == [
        ("stage switch", "stage 2", 2, 0.75),
        ("precision switch", "double precision", 3, 1.25),
        ("end of a time interval", "interval 2", 4, 1.75),
    ]
    assert (
        facts.switches(run)
        == "stage 2 from iteration 2, double precision from iteration 3, interval 2 from iteration 4"
    )


def test_training_residuals_are_those_of_the_worst_interval():
    run = recorded(record(mean_squares=(25.0,)), record(mean_squares=(9.0,)), record(interval=1, mean_squares=(4.0,)))
    assert run.training == {"pde": 3.0}


def test_what_has_no_logarithm_is_left_out_and_ratios_stay_in_sight():
    run = recorded(
        record(lam=0.0, ratio=float("nan"), accepted=False), record(iteration=2, ratio=-40.0, loss=float("inf"))
    )
    shown = {chart.name: chart for chart in charts.course(run)}
    assert "lambda" in shown and shown["lambda"].traces[0]["x"] == [2]
    assert shown["loss"].traces[0]["x"] == [1]
    assert all(-0.15 < y < 1.15 for trace in shown["ratio"].traces for y in trace["y"])


def test_long_histories_are_thinned_and_keep_their_end():
    run = recorded(*(record(iteration=k) for k in range(1, 7002)))
    x = charts.course(run)[0].traces[0]["x"]
    assert len(x) <= charts.DRAWN and x[-1] == 7001


@pytest.mark.parametrize("latex", sorted({latex for b in SUITE.values() for latex in b.equations}))
def test_every_equation_of_the_suite_becomes_mathml(latex):
    assert sections.equation(latex).startswith("<math ") and "\\" not in sections.equation(latex)


def test_latex_that_cannot_be_converted_stays_latex():
    assert sections.equation(r"\left( < x") == "<code>\\left( &lt; x</code>"
    assert "<b>" not in sections.equation(r"\text{<b>}")


# --- problems of other kinds ------------------------------------------------------------------------------------------


def untrained(domain: ds.Box, residual, unknowns=("u",)) -> Solution:
    problem = ds.Problem(domain=domain, unknowns=unknowns, conditions={"pde": ds.interior(residual)})
    model, theta = Model.of(problem, ds.MLP(widths=(4,)), "single")
    return Solution(model, theta[None])


def test_many_dimensions_are_cut_and_their_errors_counted():
    solution = untrained(ds.Box(time=None, a=(0, 1), b=(0, 1), c=(0, 1), d1=(0, 1)), lambda u: u.aa)
    points = np.random.default_rng(0).random((500, 4))
    reference = ds.Reference(points, {"u": solution.at(points)[:, 0] + 1e-3}, accuracy=0.0, source="made")
    shown = {chart.name: chart for chart in maps.charts(Quality(solution, reference))}
    assert {name[:10] for name in shown} == {"solution-u", "distributi"}  # there is no error on a plane
    bars = shown["distribution"].traces[0]
    assert sum(bars["y"]) == pytest.approx(100, abs=0.5)
    assert np.average(bars["x"], weights=bars["y"]) == pytest.approx(1e-3, rel=0.05)


def test_several_unknowns_have_a_legend_and_exact_values_do_no_harm():
    solution = untrained(ds.Box(time=None, a=(0, 1), b=(0, 1), c=(0, 1)), lambda u, v: u.aa + v, ("u", "v"))
    points = np.random.default_rng(0).random((50, 3))
    values = solution.at(points).T
    reference = ds.Reference(points, {"u": values[0] + 1, "v": values[1] - 1}, accuracy=0.0, source="made")
    assert markup.figures(maps.charts(Quality(solution, reference))).count("<li>") == 2
    exact = ds.Reference(points, {"u": values[0], "v": values[1]}, accuracy=0.0, source="made")
    assert "distribution" not in {chart.name for chart in maps.charts(Quality(solution, exact))}


def test_without_a_reference_the_residual_is_drawn():
    solution = untrained(ds.Box(x=(0, 1), y=(0, 2)), lambda u, v: u.xx + v.y, ("u", "v"))
    shown = {chart.name: chart for chart in maps.charts(Quality(solution, None))}
    assert set(shown) == {"solution-u-0", "solution-v-0", "error--0"}
    trace = shown["error--0"].traces[0]
    x, y = np.meshgrid(trace["x"], trace["y"])
    np.testing.assert_allclose(plane(trace), np.abs(solution.residual("pde")(x=x, y=y)), rtol=1e-2, atol=1e-4)


def test_one_dimension_is_drawn_as_curves():
    solution = untrained(ds.Box(x=(0, 1)), lambda u: u.xx)
    solved, residual = maps.charts(Quality(solution, None))
    np.testing.assert_allclose(solved.traces[0]["y"], solution(x=np.array(solved.traces[0]["x"])), rtol=1e-4, atol=1e-5)
    assert residual.layout["yaxis"]["type"] == "log"


# --- several runs -----------------------------------------------------------------------------------------------------


def test_runs_are_compared_side_by_side(burgers, copy, tmp_path):
    change(copy, "result.json", verdict="failed", relative_l2={"u": 1e-9})
    method = json.loads((copy / "config.json").read_text())["method"]
    change(copy, "config.json", method=method | {"wait": 77})
    html = written(burgers, copy, to=tmp_path)
    shown, text = drawn(html), prose(html)
    assert "1 of 2 runs solved their problem" in text and copy.name in text and burgers.name in text
    assert [trace["name"] for trace in shown["loss"]["traces"]] == ["burgers", copy.name]
    first, second = (shown[name]["traces"][0] for name in ("error-u-0", "error-u-1"))
    assert (first["zmin"], first["zmax"]) == (second["zmin"], second["zmax"])
    differences = html[html.index('id="configuration"') : html.index('id="files"')]
    assert ">wait<" in differences and ">window<" not in differences


def test_equal_runs_have_no_differences(burgers):
    run = report.read(burgers)
    assert "same settings, method, network and environment" in sections.differences({"a": run, "b": run})


def test_runs_of_one_name_are_told_apart(tmp_path):
    both = [dataclasses.replace(recorded(record()), directory=tmp_path / k / "run") for k in "ab"]
    assert list(report.page.labels(both)) == [str(tmp_path / "a" / "run"), str(tmp_path / "b" / "run")]


# --- the command line -------------------------------------------------------------------------------------------------


def test_the_commands(burgers, tmp_path):
    shown = CliRunner().invoke(app, ["show", str(burgers)])
    assert shown.exit_code == 0 and "Solved" in shown.output and "relative l2 error" in shown.output
    made = CliRunner().invoke(app, ["report", str(burgers), "--out", str(tmp_path / "deep" / "a.html")])
    assert made.exit_code == 0 and (tmp_path / "deep" / "a.html").stat().st_size > 1e6


@pytest.mark.parametrize("command", ["show", "report"])
def test_a_directory_that_is_no_run_is_refused(command, copy, tmp_path):
    def refused(path, message):
        result = CliRunner().invoke(app, [command, str(path)])
        assert result.exit_code in (1, 2) and message in result.output, result.output
        assert not (path / "report.html").exists()

    refused(tmp_path / "nowhere", "there is no run in")
    (copy / "result.json").write_text("[]")
    refused(copy, "was changed, or another version of dsgnar wrote it")
    (copy / "result.json").write_text("{")
    refused(copy, "cannot be read")
    (copy / "result.json").unlink()
    refused(copy, "dsgnar resume")
    (copy / "config.json").unlink()
    refused(copy, "there is no run in")
