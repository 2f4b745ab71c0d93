"""Run directories: what a run leaves behind, in files that other programs can read.

    result.json    what was reached (see `result`); there once the run has ended
    config.json    everything needed to repeat the run; there from the start
    history.csv    a row for each iteration
    solution.npz   the parameters, a row for each time interval
    problem.py     a copy of the person's own file, where the run came from one
    checkpoint*    where the run was (see `checkpoints`)
    figure.png     the solution and the course of the run

Every file is written beside its final name and moved there, so a reader never sees half a file. Loading executes nothing,
with one exception that cannot be avoided: the equations of a person's own file are code, so `problem.py` is run when such
a run is loaded.
"""

import dataclasses
import io
import json
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dsgnar import checkpoints
from dsgnar.checkpoints import write_atomically
from dsgnar.config import Settings
from dsgnar.configuration import architecture_of, describe, environment, fingerprint, outline, settings_of
from dsgnar.history import from_csv, to_csv
from dsgnar.march import March
from dsgnar.problem import Problem
from dsgnar.solution import Outcome, Record, Solution
from dsgnar.solve import Run
from dsgnar.stages import StopReason
from dsgnar.statement import Statement, from_file, from_suite

KEYS = {"problem", "preset", "source", "file", "file_sha256", "statement", "network", "settings"}  # of config.json
# What belongs to a run, config.json last: without it the others are no run.
FILES = ("result.json", "history.csv", "solution.npz", "checkpoint*", "figure*", "report*", "problem.py", "config.json")

Warn = Callable[[str], Any]


class RunError(ValueError):
    """A run directory cannot be used; the message says what to do."""


class WrongDirectory(RunError):
    """The directory does not hold what was asked of it: another directory or another call is needed."""


def default_directory(statement: Statement, settings: Settings) -> Path:
    """`runs/burgers-default-fast-seed0`."""
    parts = (statement.name, statement.preset, settings.method, f"seed{settings.seed}")
    return Path("runs") / "-".join(part for part in parts if part)


def make_room(directory: Path, force: bool = False, warn: Warn = warnings.warn) -> None:
    """Move an earlier run out of the way, into `earlier-1`; an unfinished one only by `force`. Nothing is ever lost."""
    if not (directory / "config.json").exists():
        return
    if unfinished(directory) and not force:
        raise WrongDirectory(
            f"{directory} holds an unfinished run: `dsgnar resume {directory}` goes on with it; "
            "--force starts anew and keeps it in a directory of its own"
        )
    number = 1
    while (directory / f"earlier-{number}" / "config.json").exists():
        number += 1
    aside = directory / f"earlier-{number}"
    aside.mkdir(exist_ok=True)  # without a configuration a move was cut short, and is completed now
    for pattern in FILES:
        for path in sorted(directory.glob(pattern)):
            os.replace(path, aside / path.name)
    warn(f"an earlier run that was in {directory} is now in {aside}")


# --- writing ----------------------------------------------------------------------------------------------------------


def write(directory: Path, solution: Solution, statement: Statement | None = None) -> None:
    """Write everything about a run that has ended."""
    statement = statement or Statement(solution.problem)
    begin(directory, statement, solution.architecture, _outcome(solution).settings)
    end(directory, solution, statement)


def begin(directory: Path, statement: Statement, architecture: Any, settings: Settings) -> None:
    """Write what is known when a run starts: its configuration, and the person's own file."""
    directory.mkdir(parents=True, exist_ok=True)
    if statement.text is not None:
        write_atomically(directory / "problem.py", statement.text.encode())
    write_atomically(directory / "config.json", _json(describe(statement, architecture, settings)))


def go_on(directory: Path, settings: Settings) -> None:
    """Write that a run goes on, with other limits perhaps; `result.json` is there if and only if a run has ended."""
    write_atomically(
        directory / "config.json", _json(read_config(directory) | {"settings": dataclasses.asdict(settings)})
    )
    (directory / "result.json").unlink(missing_ok=True)


def end(directory: Path, solution: Solution, statement: Statement) -> None:
    """Write what was reached; `result.json` comes last and says that the rest is there."""
    table = to_csv(_outcome(solution).history, tuple(solution.problem.conditions))
    write_atomically(directory / "history.csv", table.encode())
    buffer = io.BytesIO()
    np.savez(buffer, thetas=solution.thetas, times=np.asarray(solution.march.times))
    write_atomically(directory / "solution.npz", buffer.getvalue())
    write_atomically(directory / "result.json", _json(result(solution, statement)))


def result(solution: Solution, statement: Statement) -> dict[str, Any]:
    """What was reached: the contract with programs that read result.json."""
    outcome = _outcome(solution)
    out = {
        "problem": statement.name,
        "preset": statement.preset,
        "method": outcome.settings.method,
        "precision": outcome.settings.precision,
        "seed": outcome.settings.seed,
        "relative_l2": outcome.relative_l2,
        "held_out": outcome.held_out,
        "iterations": len(outcome.history),
        "loss_evaluations": outcome.loss_evaluations,
        "stop_reason": outcome.stop.code,
        "converged": outcome.stop.converged,
        "seconds": {name: round(value, 3) for name, value in outcome.seconds.items()},
        "parameters": solution.parameters,
        "sketch": outcome.settings.sketch,
        "points": outcome.points,
        "environment": environment(),
    }
    if outcome.relative_l2 is None:
        del out["relative_l2"]
    return out


def _outcome(solution: Solution) -> Outcome:
    if solution.outcome is None:
        raise RunError("this solution has no account of its run, so there is nothing to write about it")
    return solution.outcome


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=2) + "\n").encode()


# --- reading ----------------------------------------------------------------------------------------------------------


def load(directory: Path | str, problem: Problem | None = None, *, network: Any = None) -> Solution:
    """The solution that a run directory holds.

    Of a run that has not ended it is what the last checkpoint holds. A run of the suite is loaded by its directory alone.
    So is a run of a person's own file; its copy in the directory is executed. For a problem that was stated in a program of
    your own, give the same `problem` again (and `network`, if it was not one of dsgnar's).
    """
    directory = Path(directory)
    described = read_config(directory)
    statement = recall(directory, problem, network)
    settings = settings_of(described)
    run = Run(statement.problem, statement.network, settings)
    if not (directory / "result.json").exists():
        return _so_far(directory, described, run)
    reached = read_result(directory)
    try:
        with np.load(directory / "solution.npz", allow_pickle=False) as file:
            thetas = file["thetas"]
    except Exception as error:  # a damaged archive raises whatever its reader stumbles over
        raise RunError(f"{directory / 'solution.npz'} cannot be read: {error}") from None
    march = March.of(statement.problem, settings.intervals)
    expected = (march.count, run.residuals.parameters.count)
    if thetas.shape != expected:
        raise RunError(f"{directory / 'solution.npz'} holds parameters {thetas.shape}; the network has {expected}")
    outcome = Outcome(
        settings=settings,
        history=read_history(directory / "history.csv", tuple(statement.problem.conditions)),
        stop=StopReason.of(reached["stop_reason"]),
        seconds=reached["seconds"],
        held_out=reached["held_out"],
        points=reached["points"],
        relative_l2=reached.get("relative_l2"),
    )
    return Solution(statement.problem, run.architecture, run.residuals, thetas, march, outcome)


def _so_far(directory: Path, described: dict[str, Any], run: Run) -> Solution:
    """The solution of a run that has not ended, from its last checkpoint."""
    checkpoint, complaints = checkpoints.latest(directory, fingerprint(described))
    if checkpoint is None:
        what = "; ".join(complaints) or "it has no checkpoint yet"
        raise RunError(f"the run in {directory} has not ended, and {what}; `dsgnar resume {directory}` goes on")
    run.restore(checkpoint)
    return run.solution(StopReason.INTERRUPTED)


def recall(directory: Path | str, problem: Problem | None = None, network: Any = None) -> Statement:
    """The problem of a run directory with its title, equations and reference, stated again."""
    directory = Path(directory)
    described = read_config(directory)
    if not isinstance(described, dict) or not KEYS.issubset(described):
        raise RunError(f"{directory / 'config.json'} was not written by this version of dsgnar")
    if problem is not None:
        statement = Statement(problem, described["problem"], preset=described["preset"])
    elif described["source"] == "suite":
        statement = from_suite(described["problem"], described["preset"])
    elif described["source"] == "file":
        statement = from_file(directory / "problem.py", Path(described["file"]))
    else:
        raise WrongDirectory(f"the problem in {directory} was stated in a program: give it again, as `problem=...`")
    chosen = network or architecture_of(described) or statement.network
    if chosen is None:
        kind = described["network"]["type"]
        raise WrongDirectory(f"the network in {directory} is a {kind} of your own: give it again, as `network=...`")
    statement = dataclasses.replace(statement, network=chosen)
    again, before = outline(statement), described["statement"]
    for name in again | before:
        if again.get(name) != before.get(name):
            raise WrongDirectory(
                f"this is not the problem in {directory}: its {name} is {again.get(name)}, and there {before.get(name)}"
            )
    return statement


def read_config(directory: Path) -> dict[str, Any]:
    """The configuration of a run, or what is wrong with the directory."""
    if not (directory / "config.json").is_file():
        raise WrongDirectory(f"there is no run in {directory}: it has no config.json")
    return _read(directory / "config.json")


def read_result(directory: Path) -> dict[str, Any]:
    """What a run reached, or that it has not ended."""
    return _read(directory / "result.json")


def unfinished(directory: Path) -> bool:
    """Whether a run was interrupted after it had reached something."""
    if (directory / "result.json").exists():
        return read_result(directory)["stop_reason"] == StopReason.INTERRUPTED.code
    return any((directory / name).exists() for name in (checkpoints.CURRENT, checkpoints.PREVIOUS))


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        raise RunError(f"there is no {path}: the run has not ended; `dsgnar resume {path.parent}` goes on") from None
    except (OSError, ValueError) as error:
        raise RunError(f"{path} cannot be read: {error}") from None


def read_history(path: Path, conditions: tuple[str, ...]) -> tuple[Record, ...]:
    """The history of a run."""
    try:
        return from_csv(path.read_bytes().decode(), conditions)
    except (OSError, KeyError, ValueError, TypeError, AttributeError) as error:  # rows too short or too long, too
        raise RunError(f"{path} cannot be read: {error!r}") from None
