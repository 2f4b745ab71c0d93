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

import csv
import dataclasses
import hashlib
import io
import json
import os
import typing
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

from dsgnar import checkpoints, networks
from dsgnar.checkpoints import write_atomically
from dsgnar.config import Settings
from dsgnar.march import March
from dsgnar.networks import Architecture
from dsgnar.problem import Problem
from dsgnar.solution import Outcome, Record, Solution
from dsgnar.solve import Run
from dsgnar.stages import StopReason
from dsgnar.statement import Statement, from_file, from_suite

# What belongs to a run, config.json last: without it the others are no run.
FILES = ("result.json", "history.csv", "solution.npz", "checkpoint*", "figure*", "report*", "problem.py", "config.json")
LIMITS = ("max_iterations", "max_seconds")  # settings that say when to give up, and change nothing else


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
    while (directory / f"earlier-{number}").exists():
        number += 1
    aside = directory / f"earlier-{number}"
    aside.mkdir()
    for pattern in FILES:
        for path in sorted(directory.glob(pattern)):
            os.replace(path, aside / path.name)
    warn(f"an earlier run that was in {directory} is now in {aside}")


# --- writing ----------------------------------------------------------------------------------------------------------


def write(directory: Path, solution: Solution, statement: Statement | None = None) -> None:
    """Write everything about a run that has ended; `result.json` comes last and says that the rest is there."""
    outcome = _outcome(solution)
    statement = statement or Statement(solution.problem)
    begin(directory, statement, solution.architecture, outcome.settings)
    write_atomically(directory / "history.csv", history(solution))
    buffer = io.BytesIO()
    np.savez(buffer, thetas=solution.thetas, times=np.asarray(solution.march.times))
    write_atomically(directory / "solution.npz", buffer.getvalue())
    write_atomically(directory / "result.json", _json(result(solution, statement)))


def begin(directory: Path, statement: Statement, architecture: Any, settings: Settings) -> dict[str, Any]:
    """Write what is known when a run starts: its configuration, and the person's own file."""
    directory.mkdir(parents=True, exist_ok=True)
    if statement.text is not None:
        write_atomically(directory / "problem.py", statement.text.encode())
    described = config(statement, architecture, settings)
    write_atomically(directory / "config.json", _json(described))
    return described


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


def config(statement: Statement, architecture: Any, settings: Settings) -> dict[str, Any]:
    """Problem, network and all settings as they are in force."""
    problem = statement.problem
    described: Any = {"kind": "custom", "type": type(architecture).__name__}
    if isinstance(architecture, Architecture):
        described = {"kind": type(architecture).__name__, **dataclasses.asdict(architecture)}
    return {
        "problem": statement.name,
        "preset": statement.preset,
        "source": statement.source,
        "file": None if statement.path is None else str(statement.path),
        "statement": {
            "domain": {axis: list(problem.domain.interval(axis)) for axis in problem.domain.axes},
            "time": problem.domain.time,
            "unknowns": list(problem.unknowns),
            "periodic": list(problem.periodic),
            "conditions": {name: c.part.describe() for name, c in problem.conditions.items()},
        },
        "network": described,
        "settings": dataclasses.asdict(settings),
        "environment": environment(),
    }


def fingerprint(config: dict[str, Any]) -> str:
    """What makes a run the run that it is: checkpoints carry it. When to give up and where it ran do not count."""
    settings = {name: value for name, value in config["settings"].items() if name not in LIMITS}
    kept = {name: config[name] for name in ("problem", "source", "statement", "network")} | {"settings": settings}
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()[:16]


def history(solution: Solution) -> bytes:
    """The history as CSV; every number is written so that it reads back as the same number."""
    names = tuple(solution.problem.conditions)
    rows = [record.row(names) for record in _outcome(solution).history]
    columns = list(dict.fromkeys(column for row in rows for column in row)) or ["iteration"]
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, fieldnames=columns)
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue().encode()


def environment() -> dict[str, str]:
    """Versions and device."""
    from dsgnar import __version__

    return {
        "dsgnar": __version__,
        "jax": jax.__version__,
        "numpy": np.__version__,
        "device": jax.default_backend(),
        "cores": str(os.cpu_count()),
    }


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
    again = config(statement, chosen, settings_of(described))["statement"]
    if again != described["statement"]:
        differs = next(name for name in again if again[name] != described["statement"][name])
        raise WrongDirectory(
            f"this is not the problem in {directory}: its {differs} is {again[differs]}, "
            f"and there {described['statement'][differs]}"
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


def settings_of(config: dict[str, Any]) -> Settings:
    """The settings that a configuration records."""
    return Settings(**config["settings"])


def architecture_of(config: dict[str, Any]) -> Architecture | None:
    """The network that a configuration records; None if it was somebody's own."""
    options = dict(config["network"])
    kind = options.pop("kind")
    known: dict[str, Callable] = {
        c.__name__: c for c in (networks.MLP, networks.Siren, networks.GaborNet, networks.SPINN)
    }
    return known[kind](**options) if kind in known else None


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        raise RunError(f"there is no {path}: the run has not ended; `dsgnar resume {path.parent}` goes on") from None
    except (OSError, ValueError) as error:
        raise RunError(f"{path} cannot be read: {error}") from None


def read_history(path: Path, conditions: tuple[str, ...]) -> tuple[Record, ...]:
    """The history that `history` wrote to a file."""
    try:
        with open(path, newline="") as file:
            return tuple(_record(row, conditions) for row in csv.DictReader(file))
    except (OSError, KeyError, ValueError) as error:
        raise RunError(f"{path} cannot be read: {error!r}") from None


def _record(row: dict[str, str], conditions: tuple[str, ...]) -> Record:
    errors = {name[6:-1]: float(value) for name, value in row.items() if name.startswith("error[") and value}
    values: dict[str, Any] = {
        "mean_squares": tuple(float(row[f"mean_square[{name}]"]) for name in conditions),
        "weights": tuple(float(row[f"weight[{name}]"]) for name in conditions),
        "lam": float(row["lambda"]),
        "held_out": float(row["held_out"]) if row["held_out"] else None,
        "error": errors or None,
        "accepted": row["accepted"] == "True",
    }
    for name, kind in typing.get_type_hints(Record).items():
        if name not in values:
            values[name] = kind(row[name])
    return Record(**values)
