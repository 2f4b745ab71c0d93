"""The command line, and the README's commands and example."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import dsgnar as ds
from dsgnar.cli import app
from dsgnar.problems import SUITE
from dsgnar.problems.burgers import reference

README = (Path(__file__).parent.parent / "README.md").read_text()


def run(*args: str):
    return CliRunner().invoke(app, list(args))


def test_list():
    assert all(name in run("list").output for name in SUITE)
    rows = json.loads(run("list", "--json").output)
    assert {(r["problem"], r["preset"]) for r in rows} >= {("burgers", "default"), ("burgers", "paper-double")}


def test_doctor_finds_this_installation_sound():
    result = run("doctor")
    assert result.exit_code == 0 and "BAD" not in result.output


def test_solve_writes_a_run_directory_and_says_that_it_stopped_early(tmp_path):
    result = run("solve", "burgers", "--max-iterations", "3", "--points", "512", "--sketch", "100", "--out", str(tmp_path))
    assert result.exit_code == 3, result.output
    assert json.loads((tmp_path / "result.json").read_text())["stop_reason"] == "max_iterations"
    assert (tmp_path / "figure.png").stat().st_size > 10_000
    assert "NOT converged" in result.output and "relative l2 error" in result.output


def test_quiet_is_quiet(tmp_path):
    args = ("--max-iterations", "1", "--points", "256", "--sketch", "50", "--out", str(tmp_path), "--quiet")
    assert run("solve", "burgers", *args).output == ""


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("nonsense",), "no problem 'nonsense'"),
        (("burgers", "--preset", "nonsense"), "no preset 'nonsense'"),
        (("burgers", "--precision", "half"), "precision"),
        (("burgers", "--sketch", "5000"), "sketch"),
    ],
)
def test_wrong_calls_exit_with_2_and_say_why(args, message):
    result = run("solve", *args)
    assert result.exit_code == 2 and message in result.output


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
@pytest.mark.parametrize(("problem", "allowed"), [("burgers", 1e-11), ("burgers-shifted", 5e-10)])
def test_double_precision(problem, allowed, tmp_path):
    assert run("solve", problem, "--preset", "double", "--out", str(tmp_path), "--quiet").exit_code == 0
    assert json.loads((tmp_path / "result.json").read_text())["relative_l2"]["u"] <= allowed
