"""The command line, and the README's commands and example."""

import errno
import json
import re
import signal
from pathlib import Path

import jax
import numpy as np
import pytest
from typer.testing import CliRunner

import dsgnar as ds
from dsgnar import checkpoints, figures
from dsgnar.cli import app
from dsgnar.keeper import RunDirectory
from dsgnar.problems import SUITE
from dsgnar.problems.burgers import reference
from small import problem

pytestmark = pytest.mark.usefixtures("shared_kernels")
README = (Path(__file__).parent.parent / "README.md").read_text()


def run(*args: str):
    return CliRunner().invoke(app, list(args))


def no_figure(solution, reference, path, title=""):
    """In the place of a figure, which takes longer than a short run."""
    path.write_bytes(b"")


def test_list():
    assert all(name in run("list").output for name in SUITE)
    rows = json.loads(run("list", "--json").output)
    assert {(r["problem"], r["preset"]) for r in rows} >= {("burgers", "default"), ("burgers", "paper-double")}


def test_doctor_finds_this_installation_sound():
    result = run("doctor")
    assert result.exit_code == 0 and "BAD" not in result.output


def test_solve_writes_a_run_directory_and_says_that_it_stopped_early(tmp_path):
    result = run(
        "solve", "burgers", "--max-iterations", "3", "--points", "512", "--sketch", "100", "--out", str(tmp_path)
    )
    assert result.exit_code == 3, result.output
    assert json.loads((tmp_path / "result.json").read_text())["stop_reason"] == "max_iterations"
    assert (tmp_path / "figure.png").stat().st_size > 10_000
    assert "NOT converged" in result.output and "relative l2 error" in result.output


def test_any_setting_can_be_given(tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "save", no_figure)
    args = ("--max-iterations", "1", "--points", "512", "--sketch", "100", "--out", str(tmp_path), "--quiet")
    run("solve", "burgers", *args, "--set", "wait=7", "--set", "targets=(0.3, 0.6)")
    settings = json.loads((tmp_path / "config.json").read_text())["settings"]
    assert settings["wait"] == 7 and settings["targets"] == [0.3, 0.6] and settings["sketch"] == 100


def test_quiet_is_quiet(tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "save", no_figure)
    args = ("--max-iterations", "1", "--points", "512", "--sketch", "100", "--out", str(tmp_path), "--quiet")
    assert run("solve", "burgers", *args).output == ""


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
        (("burgers", "--set", "wait=soon"), "wait must be a number of iterations, 0 or more: 'soon'"),
        (("burgers", "--sketch", "7", "--set", "sketch=5"), "--set sketch=5: sketch is given twice"),
        (("burgers", "--set", "wait=5", "--set", "wait=6"), "--set wait=6: wait is given twice"),
        (("burgers", "--set", "targets"), "targets must be two ratios between 0 and 1"),
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


def test_the_example_is_not_written_over_a_file(mine):
    mine.write_text("mine")
    assert run("init", "mine.py").exit_code == 2 and mine.read_text() == "mine"


@pytest.mark.slow
def test_the_example_converges_as_it_is(mine):
    assert run("solve", "mine.py", "--quiet").exit_code == 0
    found = json.loads((mine.parent / "runs" / "mine-fast-seed0" / "result.json").read_text())
    assert found["relative_l2"]["u"] < 1e-5


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
    assert result.exit_code == 3 and "go on with: dsgnar resume run" in result.output
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


def test_resuming_what_cannot_be_resumed_is_a_wrong_call(tmp_path):
    nothing = run("resume", str(tmp_path))
    assert nothing.exit_code == 2 and "no run in" in nothing.output
    ds.solve(problem(), network=ds.MLP(widths=(4,)), points=32, max_iterations=1).save(tmp_path)
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
    [("solve bur", {"burgers", "burgers-shifted"}), ("solve burgers --preset pap", {"paper-single", "paper-double"})],
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
            assert options.get("--preset", "default") in SUITE[words[1]].presets


def test_the_example_of_the_readme_solves_burgers():
    code = re.search(r"```python\n(.*?)```", README, re.S)
    assert code is not None
    names: dict = {}
    exec(code.group(1), names)
    solution = names["solution"]
    assert isinstance(solution, ds.Solution) and solution.outcome is not None
    assert solution.relative_l2(reference())["u"] < 2e-6
    assert np.isfinite(names["solution"].derivative("u", "xx")(x=0.5, t=1.0))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_burgers_reaches_the_papers_single_precision_error(seed, tmp_path):
    assert run("solve", "burgers", "--seed", str(seed), "--out", str(tmp_path), "--quiet").exit_code == 0
    assert json.loads((tmp_path / "result.json").read_text())["relative_l2"]["u"] <= 7e-7


@pytest.mark.slow
def test_the_papers_method_solves_burgers_too(tmp_path):
    args = ("--method", "paper", "--preset", "paper-single", "--out", str(tmp_path), "--quiet")
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
