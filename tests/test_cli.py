"""The command line, and the README's commands and example."""

import errno
import json
import re
import signal
from functools import partial
from pathlib import Path

import jax
import numpy as np
import pytest
from typer.testing import CliRunner

import dsgnar as ds
from dsgnar.cli import app, looking
from dsgnar.showing import figures
from dsgnar.solving.context import Context
from dsgnar.storing import checkpoints, runs
from dsgnar.storing.directory import RunDirectory
from dsgnar.suite import SUITE
from dsgnar.suite.burgers import reference
from dsgnar.suite.own_file import check_settings, find
from dsgnar.suite.statement import from_suite
from dsgnar.tools.doctor import Check
from small import invented, problem, run_of_burgers
from test_report import drawn, plane

pytestmark = pytest.mark.usefixtures("shared_kernels")
README = (Path(__file__).parent.parent / "README.md").read_text()


def run(*args: str):
    return CliRunner().invoke(app, list(args))


def no_figure(solution, reference, path, title=""):
    """In the place of a figure, which takes longer than a short run."""
    path.write_bytes(b"")


@pytest.mark.parametrize("columns", ["80", "120"])
def test_list_says_what_each_problem_is_and_fits_the_terminal(columns):
    result = CliRunner().invoke(app, ["list"], env={"COLUMNS": columns})
    lines = result.output.splitlines()
    assert max(map(len, lines)) <= int(columns)
    for name, benchmark in SUITE.items():
        start = lines.index(f"{name}  {benchmark.title}: {benchmark.about}")
        presets = lines[start + 1 : start + 1 + len(benchmark.presets)]
        assert [line.split()[0] for line in presets] == list(benchmark.presets)
    assert "  default (single)   single    MLP           1,447     700  4.0e-07      6.4" in lines
    assert "…" not in result.output
    assert "    default, double: holds the exact solution" in lines  # wave
    assert "    paper-single: an earlier run: 1.5e-5, its rounding (the paper has 4.8e-7)" in lines


def test_list_for_programs():
    rows = json.loads(run("list", "--json").output)
    assert {(r["problem"], r["preset"]) for r in rows} >= {("burgers", "default"), ("burgers", "paper-double")}
    first = rows[0]
    assert {r["method"] for r in rows if r["preset"].startswith("paper")} == {"paper"} and first["method"] == "fast"
    assert (first["parameters"], first["sketch"], first["aliases"]) == (1447, 700, ["single"])
    assert first["description"].startswith("Burgers: ") and len({(r["problem"], r["preset"]) for r in rows}) == len(
        rows
    )


def test_the_version():
    result = run("--version")
    assert result.exit_code == 0 and result.output == f"dsgnar {ds.__version__}\n"


def test_doctor_finds_this_installation_sound():
    result = run("doctor")
    assert result.exit_code == 0 and "BAD" not in result.output
    assert result.output.splitlines()[-1] == "This installation is sound: all checks passed."


def test_doctor_has_one_verdict_on_a_faulty_installation(monkeypatch):
    monkeypatch.setattr(
        looking, "check_numerics", lambda: [Check("products", False, "wrong"), Check("dtypes", True, "")]
    )
    result = run("doctor")
    assert result.exit_code == 1
    assert result.output.splitlines()[-1] == "This installation is NOT sound: products failed."


def test_solve_writes_a_run_directory_and_says_that_it_stopped_early(tmp_path):
    result = run(
        "solve", "burgers", "--max-iterations", "3", "--points", "512", "--sketch", "100", "--out", str(tmp_path)
    )
    assert result.exit_code == 3, result.output
    assert json.loads((tmp_path / "result.json").read_text())["stop_reason"] == "max_iterations"
    assert (tmp_path / "figure.png").stat().st_size > 10_000
    assert "failed: " in result.output and "relative l2 error" in result.output


def test_a_preset_may_be_called_by_its_precision(tmp_path, monkeypatch):
    """`poisson5d --preset double` is the default; the directory is named after what was asked for."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(figures, "save", no_figure)
    args = ("--max-iterations", "1", "--points", "32", "--sketch", "20", "--set", "held_out=32", "--quiet")
    result = run("solve", "poisson5d", "--preset", "double", *args)
    assert result.exit_code == 3, result.output
    config = json.loads(Path("runs/poisson5d-double-fast-seed0/config.json").read_text())
    assert config["preset"] == "double" and config["settings"]["precision"] == "double"
    assert config["network"]["widths"] == [32] and ds.load("runs/poisson5d-double-fast-seed0").parameters == 226
    double, default = (from_suite("multiscale", preset) for preset in ("double", "default"))
    assert (double.network, double.settings) == (default.network, default.settings)
    assert runs.default_directory(double, double.settings) == Path("runs/multiscale-double-fast-seed0")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("nonsense",), "no problem 'nonsense'"),
        (("burgers", "--preset", "nonsense"), "no preset 'nonsense'"),
        (("burgers", "--precision", "half"), "precision"),
        (("burgers", "--sketch", "5000"), "sketch"),
        (("burger",), "did you mean burgers"),
        (("burgers", "--points", "-3"), "points must be a positive integer"),
        (("burgers", "--set", "wiat=3"), "no setting 'wiat' (did you mean wait?)"),
        (("burgers", "--set", "wait=soon"), "wait must be an integer, 0 or more: 'soon'"),
        (("burgers", "--set", "wait=1.5"), "wait must be an integer, 0 or more: 1.5"),
        (("burgers", "--set", "wait=[1"), "wait must be an integer, 0 or more: '[1'"),
        (("burgers", "--set", "hashes=0"), "hashes must be a positive integer: 0"),
        (("burgers", "--set", "gap=nan"), "gap must be positive, not 'nan'"),
        (("burgers", "--set", "method=quick"), "method must be 'fast' or 'paper'"),
        (("burgers", "--set", "precision=half"), "precision"),
        (("burgers", "--set", "seed=-1"), "seed must be an integer, 0 or more: -1"),
        (("burgers", "--set", "intervals=x"), "intervals must be a positive integer or a list of times: 'x'"),
        (("burgers", "--set", "row_sketch=none"), "row_sketch must be one of 'buckets', 'hashes', not 'none'"),
        (("burgers", "--set", "=3"), "--set =3: no setting ''"),
        (("burgers", "--sketch", "7", "--set", "sketch=5"), "--set sketch=5: sketch is given twice"),
        (("burgers", "--set", "wait=5", "--set", "wait=6"), "--set wait=6: wait is given twice"),
        (("burgers", "--set", "targets"), "--set targets: write NAME=VALUE"),
        (("burgers", "--set", "targets=0.5"), "targets must be two ratios between 0 and 1"),
        (("missing.py",), "cannot read missing.py"),
        (("broken.py",), "broken.py, line 2: '(' was never closed"),
        (("empty.py",), "defines no `problem`"),
        (("burgers", "--out", "empty.py"), "is a file"),
    ],
)
def test_wrong_calls_exit_with_2_and_say_why(args, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.py").write_text("import dsgnar\nproblem = dsgnar.Problem(\n")
    (tmp_path / "empty.py").write_text("")
    result = run("solve", *args)
    assert result.exit_code == 2 and message in " ".join(result.output.split()).replace("│ ", "")
    assert not (tmp_path / "runs").exists()


# --- a file of one's own ----------------------------------------------------------------------------------------------


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """The example of `dsgnar init`, in an empty directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(figures, "save", no_figure)
    result = run("init", "mine.py")
    assert result.exit_code == 0 and "dsgnar solve mine.py" in result.output
    return tmp_path / "mine.py"


SHORT = ("--points", "64", "--sketch", "40", "--max-iterations", "4")


def test_the_example_can_be_solved_and_its_run_loaded(mine):
    result = run("solve", "mine.py", *SHORT)
    assert result.exit_code == 3, result.output
    directory = mine.parent / "runs" / "mine-fast-seed0"
    assert (directory / "problem.py").read_text() == mine.read_text()
    found = json.loads((directory / "result.json").read_text())
    assert (found["problem"], found["iterations"]) == ("mine", 4) and found["relative_l2"]["u"] < 2
    assert np.isfinite(ds.load(directory)(x=0.5, t=0.5))


def test_any_setting_can_be_given_and_quiet_is_quiet(mine):
    ours = ("--set", "wait=7", "--set", "targets=(0.3, 0.6)", "--set", "gap=inf", "--set", "greedy=False")
    result = run("solve", "mine.py", *SHORT, "--max-seconds", "0.001", "--out", "run", "--quiet", *ours)
    assert result.exit_code == 3 and result.output == ""
    config = json.loads(Path("run/config.json").read_text())
    method = config["method"]
    assert method["wait"] == 7 and method["targets"] == [0.3, 0.6] and config["settings"]["sketch"] == 40
    assert method["gap"] is None and method["greedy"] is False  # null: infinity
    assert config["method_changes"] == ["fallen_loss", "gap", "greedy", "points", "targets", "wait"]


def test_the_example_is_not_written_over_a_file(mine):
    mine.write_text("mine")
    assert run("init", "mine.py").exit_code == 2 and mine.read_text() == "mine"


def test_the_example_is_a_python_file(mine):
    result = run("init", "foo.txt")
    assert result.exit_code == 2 and "foo.txt: a problem is a Python file; use a name such as foo.py" in result.output
    assert not Path("foo.txt").exists()


def test_a_misspelt_name_in_a_file_is_pointed_out(mine):
    mine.write_text(mine.read_text().replace("settings = dict", "setting = dict"))
    result = run("solve", "mine.py", *SHORT, "--max-seconds", "0.001", "--quiet")
    assert result.exit_code == 3
    assert result.output == "dsgnar: mine.py defines `setting`, which is ignored; did you mean `settings`?\n"


TABLE = 'ds.Reference(np.zeros((2, 2)), {"u": np.zeros(2)}, 0.0, "")'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"return {TABLE}".replace('"u"', '"v"'), "reference: its values are for 'v'"),
        (
            f"return {TABLE}".replace("np.zeros(2)}", "np.full(2, np.nan)}"),
            "2 of 2 numbers in its values of 'u' are NaN",
        ),
        (f"return {TABLE}".replace("np.zeros(2)}", "np.zeros(2) * 1j}"), "its values of 'u' are complex"),
        (f"return {TABLE}".replace("np.zeros(2)}", "np.zeros(3)}"), "its values of 'u' have shape (3,)"),
        ("return 3", "reference: expected a Reference(points, values, accuracy, source), got int"),
        ("return {'u': 1}['v']", "mine.py, line 39: KeyError: 'v' return {'u': 1}['v']"),
        ("import nowhere_to_be_found", "ModuleNotFoundError"),
    ],
)
def test_a_wrong_reference_is_refused_before_anything_is_compiled(text, message, mine, monkeypatch):
    monkeypatch.setattr(Context, "compile", lambda *_: pytest.fail("compiled"))
    start = mine.read_text().split("# Known values")[0]
    mine.write_text(f"{start}\ndef reference():\n    {text}\n")
    result = run("solve", "mine.py", *SHORT)
    said = " ".join(result.output.split())
    assert result.exit_code == 2 and message in said and "Traceback" not in said
    assert result.output.count("\n") <= 3 and not Path("runs").exists()


@pytest.mark.slow
def test_the_example_converges_as_it_is(mine):
    assert run("solve", "mine.py", "--quiet").exit_code == 0
    found = json.loads((mine.parent / "runs" / "mine-fast-seed0" / "result.json").read_text())
    assert found["relative_l2"]["u"] < 1e-5


WITH_HELPER = """
import numpy as np
import dsgnar as ds

problem = ds.Problem(
    domain=ds.Box(x=(0, 1), t=(0, 1)),
    unknowns=("u",),
    conditions={"pde": ds.interior(lambda u: u.t + u.x), "start": ds.initial(lambda u, x: u - x)},
)

def reference():
    from helper import HEIGHT
    axis = np.linspace(0.05, 0.95, 10)
    return ds.Reference.on_grid({"x": axis, "t": axis}, lambda x, t: {"u": HEIGHT + x}, accuracy=0.0, source="helper")
"""


def test_a_comparison_evaluates_each_run_with_its_own_helper(tmp_path, monkeypatch):
    """Two folders with a file and a helper.py each: both runs have the same solution, and other references."""
    monkeypatch.chdir(tmp_path)
    for name, height in (("a", 1000.0), ("b", 1.0)):
        Path(name).mkdir()
        Path(name, "mine.py").write_text(WITH_HELPER)
        Path(name, "helper.py").write_text(f"HEIGHT = {height}\n")
        statement = find(f"{name}/mine.py")
        statement.reference()  # as `solve` does: the helper is imported, and kept
        runs.write(Path("runs", name), invented(statement.problem, error=True), statement)
        assert Path("runs", name, "helpers", "helper.py").exists()
    result = run("report", "runs/a", "runs/b", "--out", "page.html")
    assert result.exit_code == 0, result.output
    maps = [
        t for chart in drawn(Path("page.html").read_text()).values() for t in chart["traces"] if t["type"] == "heatmap"
    ]
    high, low = (np.median(plane(trace)) for trace in maps)
    assert high - low == pytest.approx(999)


# --- interruptions and failures ---------------------------------------------------------------------------------------


class At:
    """Does something in an iteration."""

    def __init__(self, monkeypatch, iteration: int, act):
        real = RunDirectory.iterated

        def iterated(kept, run, record):
            real(kept, run, record)
            if record.iteration == iteration:
                act()

        monkeypatch.setattr(RunDirectory, "iterated", iterated)


def test_an_interrupted_run_says_how_to_go_on(mine, monkeypatch):
    with monkeypatch.context() as patch:
        At(patch, 1, lambda: signal.raise_signal(signal.SIGINT))
        result = run("solve", "mine.py", *SHORT, "--out", "run")
    assert result.exit_code == 3 and "continue with: dsgnar resume run" in result.output
    assert "stopped: the run was interrupted" in result.output  # the summary
    refused = run("solve", "mine.py", *SHORT, "--out", "run")
    assert refused.exit_code == 2 and "unfinished run" in refused.output and "--force" in refused.output
    assert run("resume", "run").exit_code == 3
    assert json.loads(Path("run/result.json").read_text())["iterations"] == 4
    again = run("resume", "run")
    assert again.exit_code == 3 and "has ended" in again.output and "--max-iterations N" in again.output
    more = run("resume", "run", "--max-iterations", "5")
    assert more.exit_code == 3 and json.loads(Path("run/result.json").read_text())["iterations"] == 5
    anew = run("solve", "mine.py", *SHORT, "--out", "run")
    assert anew.exit_code == 3 and "now in run/earlier-1" in anew.output


def test_ctrl_c_while_the_figure_is_drawn_says_what_is_safe(mine, monkeypatch):
    def interrupted(solution, reference, path, title=""):
        path.write_bytes(b"half a figure")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(figures, "save", interrupted)
        result = run("solve", "mine.py", *SHORT, "--out", "run")
    assert result.exit_code == 3 and "failed: " in result.output
    assert "the result is safe in run. Draw it later: dsgnar plot run" in result.output
    assert "(result.json, history.csv)" in result.output  # and no figure
    assert not list(Path("run").glob("figure*")) and Path("run/result.json").exists()
    assert run("plot", "run").exit_code == 0 and Path("run/figure.png").exists()


@pytest.mark.parametrize("name", ["config.json", "result.json"])
def test_an_empty_file_of_a_run_is_met_with_a_sentence(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(figures, "save", no_figure)
    run_of_burgers(tmp_path / "run")
    for command, text in (("show", "{}"), ("show", "[]"), ("report", "[]"), ("plot", "[]"), ("resume", "{}")):
        Path("run", name).write_text(text)
        result = run(command, "run")
        assert result.exit_code == 1, command
        assert result.output.startswith("dsgnar: ") and f"run/{name} was changed, or" in result.output
        assert result.output.count("\n") == 1


def test_a_run_of_an_earlier_version_is_refused_with_a_sentence(tmp_path):
    """As 0.1.0 wrote them: no constants of the method, no modules beside the file."""
    run_of_burgers(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    old = {
        name: config[name] for name in ("problem", "preset", "source", "file", "statement", "network", "environment")
    }
    old |= {"file_sha256": None, "settings": config["settings"] | {"method": "fast", "wait": 40}}
    (tmp_path / "config.json").write_text(json.dumps(old))
    (tmp_path / "result.json").unlink()
    (tmp_path / checkpoints.CURRENT).write_bytes(b"dsgnar checkpoint 1\n")
    for command in ("resume", "plot"):
        result = run(command, str(tmp_path))
        assert (
            result.exit_code == 1 and "config.json was changed, or another version of dsgnar wrote it" in result.output
        )


def test_a_run_that_is_interrupted_before_its_first_iteration_starts_again(mine, monkeypatch):
    def impatient(*_):
        raise KeyboardInterrupt  # the second Ctrl-C

    with monkeypatch.context() as patch:
        patch.setattr(Context, "compile", impatient)
        result = run("solve", "mine.py", *SHORT, "--out", "run")
    assert result.exit_code == 3 and "0 iterations" in result.output and "dsgnar resume run" in result.output
    assert run("resume", "run", "--quiet").exit_code == 3
    assert json.loads(Path("run/result.json").read_text())["iterations"] == 4


def test_resuming_what_cannot_be_resumed_is_a_wrong_call(tmp_path):
    nothing = run("resume", str(tmp_path))
    assert nothing.exit_code == 2 and "no run in" in nothing.output
    invented(problem()).save(tmp_path)
    stated = run("resume", str(tmp_path))
    assert stated.exit_code == 2 and "stated in a program" in stated.output


def test_a_directory_that_cannot_be_written_to_is_said_before_the_work(mine):
    result = run("solve", "mine.py", *SHORT, "--out", "/proc/dsgnar")
    assert result.exit_code == 1 and "cannot read or write /proc/dsgnar" in result.output and "--out" in result.output


def test_a_disk_that_fills_up_keeps_the_last_checkpoint(mine, monkeypatch):
    def full(path, content):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        At(patch, 2, lambda: patch.setattr(checkpoints, "_write_through", full))
        result = run("solve", "mine.py", *SHORT, "--out", "run", "--checkpoint-every", "0")
    assert result.exit_code == 1
    assert "No space left on device" in result.output and "dsgnar resume run" in result.output
    assert run("resume", "run").exit_code == 3
    assert json.loads(Path("run/result.json").read_text())["iterations"] == 4


def test_a_disk_that_fills_up_at_the_figure(mine, monkeypatch):
    def full(solution, reference, path, title=""):
        path.write_bytes(b"half a figure")
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(figures, "save", full)
        result = run("solve", "mine.py", *SHORT, "--out", "run")
    assert result.exit_code == 1 and "figure.png could not be written" in result.output
    assert not list(Path("run").glob("figure*")) and Path("run/result.json").exists()
    assert run("resume", "run").exit_code == 3 and Path("run/figure.png").exists()


def test_too_many_points_for_the_memory(mine):
    result = run("solve", "mine.py", "--points", str(10**15))
    assert result.exit_code == 1 and "out of memory" in result.output and "--points" in result.output


def test_a_device_without_memory_keeps_what_was_reached(mine, monkeypatch):
    def exhausted():
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 8 bytes.\nmore")

    with monkeypatch.context() as patch:
        At(patch, 3, exhausted)
        result = run("solve", "mine.py", *SHORT, "--out", "run")
    assert result.exit_code == 1 and "out of memory" in result.output and "dsgnar resume run" in result.output
    assert run("resume", "run").exit_code == 3
    assert json.loads(Path("run/result.json").read_text())["iterations"] == 4


# --- what is seen on the way ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("solve bur", {"burgers", "burgers-shifted"}),
        ("solve burgers --preset pap", {"paper-single", "paper-double"}),
        ("solve burgers --preset sin", {"single"}),
    ],
)
def test_the_shell_completes_names(line, expected):
    words = f"dsgnar {line}"
    env = {"_DSGNAR_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    result = CliRunner().invoke(app, [], env=env, prog_name="dsgnar")
    assert set(result.output.split()) == expected


def test_every_command_of_the_readme_exists():
    for line in re.findall(r"^dsgnar ([a-z]+.*)$", README, re.M):
        words = re.split(r"\s{2,}", line)[0].split()
        assert run(words[0], "--help").exit_code == 0
        if words[0] == "solve":
            assert words[1] in SUITE
            options = dict(zip(words[2::2], words[3::2], strict=True))
            assert SUITE[words[1]].find(options.get("--preset", "default")) is not None
            check_settings([options.get("--set", "wait").partition("=")[0]], line)


def test_the_examples_of_the_readme_solve_burgers(monkeypatch):
    first, *others = re.findall(r"```python\n(.*?)```", README, re.S)
    names: dict = {}
    assert "tol=1e-6" in first
    small = "tol=1e-3, network=ds.MLP(widths=(20,) * 3), points=2048"
    exec(first.replace("tol=1e-6", small), names)
    solution = names["solution"]
    monkeypatch.setattr(ds, "solve", partial(ds.solve, max_iterations=1, points=128, sketch=50))
    for other in others:  # they vary the first one; that they run is enough
        exec(other, names)
    assert isinstance(solution, ds.Solution) and solution.outcome is not None
    true = solution.relative_l2(reference())["u"]
    assert true < 1e-3 and 0.3 < true / solution.error_estimate["u"] < 3
    assert np.isfinite(names["solution"].derivative("u", "xx")(x=0.5, t=1.0))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_burgers_reaches_the_papers_single_precision_error(seed, tmp_path):
    assert run("solve", "burgers", "--seed", str(seed), "--out", str(tmp_path), "--quiet").exit_code == 0
    assert json.loads((tmp_path / "result.json").read_text())["relative_l2"]["u"] <= 7e-7


@pytest.mark.slow
def test_the_papers_method_solves_burgers_too(tmp_path):
    args = ("--preset", "paper-single", "--out", str(tmp_path), "--quiet")
    assert run("solve", "burgers", *args).exit_code == 0
    assert json.loads((tmp_path / "result.json").read_text())["relative_l2"]["u"] <= 1e-6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("problem", "seed", "allowed"), [("burgers", 0, 1e-11), ("burgers", 1, 1e-11), ("burgers-shifted", 0, 1e-10)]
)
def test_double_precision(problem, seed, allowed, tmp_path):
    args = ("--preset", "double", "--seed", str(seed), "--out", str(tmp_path), "--quiet")
    assert run("solve", problem, *args).exit_code == 0
    assert json.loads((tmp_path / "result.json").read_text())["relative_l2"]["u"] <= allowed


@pytest.mark.slow
def test_chaos_by_default_beats_what_was_published_before_the_paper(tmp_path):
    assert run("solve", "ks", "--out", str(tmp_path), "--quiet").exit_code == 0
    assert json.loads((tmp_path / "result.json").read_text())["relative_l2"]["u"] <= 6.51e-4
