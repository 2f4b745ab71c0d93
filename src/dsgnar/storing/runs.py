"""Run directories: what a run leaves behind (`files.py` lists the files), written and read.

Loading executes nothing, with one exception that cannot be avoided: the equations of your own file are code, so loading such
a run executes the copy of the file in the directory.
"""

import dataclasses
import io
import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from dsgnar.problem import Problem
from dsgnar.solving.context import Context
from dsgnar.solving.march import March, restated
from dsgnar.solving.model import Model
from dsgnar.solving.record import Outcome
from dsgnar.solving.settings import Resolved, Settings
from dsgnar.solving.sizing import in_sizes
from dsgnar.solving.solution import Solution
from dsgnar.solving.stop import StopReason
from dsgnar.solving.verdict import Verdict
from dsgnar.storing import checkpoints, estimated, inferred
from dsgnar.storing.checkpoints import write_atomically
from dsgnar.storing.configuration import (
    architecture_of,
    describe,
    fingerprint,
    outline,
    settings_in,
    settings_of,
)
from dsgnar.storing.environment import environment
from dsgnar.storing.files import (
    RunError,
    WrongDirectory,
    make_room,
    read_config,
    read_history,
    read_result,
    understood,
)
from dsgnar.storing.history import to_csv
from dsgnar.suite.own_file import from_file
from dsgnar.suite.statement import Statement, from_suite

__all__ = [
    "RunError",
    "WrongDirectory",
    "begin",
    "default_directory",
    "end",
    "go_on",
    "identity",
    "load",
    "read_config",
    "read_history",
    "read_result",
    "recall",
    "result",
    "save",
    "write",
]


def default_directory(statement: Statement, settings: Settings) -> Path:
    """`runs/burgers-default-fast-seed0`."""
    parts = (statement.name, statement.preset, settings.chosen_method().name, f"seed{settings.seed}")
    return Path("runs") / "-".join(part for part in parts if part)


# --- writing ----------------------------------------------------------------------------------------------------------


def write(directory: Path, solution: Solution, statement: Statement | None = None) -> None:
    """Write everything about a run that has ended."""
    statement = statement or Statement(solution.problem)
    begin(directory, statement, solution.model.network, _outcome(solution).settings)
    end(directory, solution, statement)


def save(solution: Solution, directory: Path | str) -> None:
    """Write a run directory of a solution; an earlier run there is moved aside."""
    make_room(Path(directory))
    write(Path(directory), solution)


def begin(directory: Path, statement: Statement, network: Any, settings: Resolved) -> None:
    """Write what is known when a run starts: its configuration, the person's file and the modules beside it."""
    directory.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(directory / "helpers", ignore_errors=True)  # left by a start that was cut short
    if statement.text is not None:
        write_atomically(directory / "problem.py", statement.text.encode())
    for name, text in statement.helpers.items():
        path = directory / "helpers" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, text.encode())
    inferred.keep_data(directory, statement.problem)
    write_atomically(directory / "config.json", _json(describe(statement, network, settings)))


def go_on(directory: Path, settings: Resolved) -> None:
    """Write that a run continues, perhaps with other limits; `result.json` is there only if a run has ended."""
    write_atomically(directory / "config.json", _json(read_config(directory) | {"settings": settings_in(settings)}))
    (directory / "result.json").unlink(missing_ok=True)


def end(directory: Path, solution: Solution, statement: Statement) -> None:
    """Write what was reached; `result.json` comes last and says that the rest is there."""
    table = to_csv(_outcome(solution).history, tuple(solution.problem.conditions))
    write_atomically(directory / "history.csv", table.encode())
    buffer = io.BytesIO()
    scales = _outcome(solution).settings.scales
    sizes = () if scales is None else scales.unknowns
    arrays = dict(thetas=solution.thetas, times=np.asarray(solution.march.times), sizes=np.asarray(sizes))
    arrays["begun"] = np.asarray(solution.march.begun)
    np.savez(buffer, allow_pickle=False, **arrays, **inferred.arrays(_outcome(solution).inference))
    write_atomically(directory / "solution.npz", buffer.getvalue())
    write_atomically(directory / "result.json", _json(result(solution, statement)))


def result(solution: Solution, statement: Statement) -> dict[str, Any]:
    """What was reached: the contract with programs that read result.json."""
    outcome = _outcome(solution)
    out = {
        "problem": statement.name,
        "preset": statement.preset,
        "method": outcome.settings.method.name,
        "precision": outcome.settings.precision,
        "seed": outcome.settings.seed,
        "relative_l2": outcome.relative_l2,
        "held_out": outcome.held_out,
        "iterations": len(outcome.history),
        "loss_evaluations": outcome.loss_evaluations,
        "stop_reason": outcome.stop.code,
        "converged": outcome.stop.converged,
        "verdict": outcome.verdict.code,
        "relative_residuals": outcome.relative_residuals,
        "error_estimate": outcome.error_estimate,
        "error_checks": estimated.checks(outcome.estimate),
        "tol": _tolerance(outcome.settings),
        "tolerance_met": outcome.tolerance_met,
        "seconds": {name: round(value, 3) for name, value in outcome.seconds.items()},
        "parameters": solution.parameters,
        "sketch": outcome.settings.sketch,
        "points": outcome.points,
        "environment": environment(),
    }
    out |= estimated.quantity(outcome.estimate) | inferred.to_json(outcome.inference)
    if outcome.relative_l2 is None:
        del out["relative_l2"]
    return out


def _tolerance(settings: Resolved) -> float | dict[str, float] | None:
    if settings.tol == math.inf:
        return None
    return {name: settings.tol * factor for name, factor in settings.looser.items()} or settings.tol


def _outcome(solution: Solution) -> Outcome:
    if solution.outcome is None:
        raise RunError("this solution has no record of its run, so there is nothing to write about it")
    return solution.outcome


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=2) + "\n").encode()


# --- reading ----------------------------------------------------------------------------------------------------------


def load(directory: Path | str, problem: Problem | None = None, *, network: Any = None) -> Solution:
    """The solution in a run directory; of a run that has not ended, what its last checkpoint holds.

    A run of the suite or of your own file needs nothing but its directory; the copy of your file there is executed. For a
    problem that a program stated, give the same `problem` again (and `network`, unless it was one of dsgnar's).
    """
    directory = Path(directory)
    statement = recall(directory, problem, network)
    with understood(directory / "config.json"):
        settings = settings_of(read_config(directory))
    if not (directory / "result.json").exists():
        return _so_far(directory, statement, settings)
    reached = read_result(directory)
    try:
        with np.load(directory / "solution.npz", allow_pickle=False) as file:
            thetas, times, sizes = file["thetas"], file["times"], file.get("sizes", ())
            begun = tuple(tuple(map(float, row)) for row in file.get("begun", ()))
            bands, spread = inferred.bands(file), file.get(inferred.SPREAD)
    except Exception as error:  # a damaged archive raises whatever its reader stumbles over
        raise RunError(f"{directory / 'solution.npz'} cannot be read: {error}") from None
    settings = in_sizes(settings, statement.problem, tuple(map(float, sizes)) or None)
    stated = statement.problem, statement.network, settings.precision, settings.seed, settings.intervals
    model, _ = Model.of(*stated, scales=settings.scales)
    model = dataclasses.replace(model, march=March(tuple(map(float, times)), begun))
    expected = (model.march.count, model.residuals.parameters.count)
    if thetas.shape != expected:
        raise RunError(f"{directory / 'solution.npz'} holds parameters {thetas.shape}; the network has {expected}")
    if model.residuals.ansatz.orders and len(begun) != model.march.count:
        raise RunError(f"{directory / 'solution.npz'} was written by a version whose intervals began otherwise; solve again")
    with understood(directory / "result.json"):
        outcome = Outcome(
            settings=settings,
            history=read_history(directory / "history.csv", tuple(statement.problem.conditions)),
            stop=StopReason.of(reached["stop_reason"]),
            seconds=reached["seconds"],
            held_out=reached["held_out"],
            points=reached["points"],
            relative_residuals=reached["relative_residuals"],
            verdict=Verdict.of(reached["verdict"]),
            relative_l2=reached.get("relative_l2"),
            estimate=estimated.estimate_in(reached),
            inference=inferred.from_json(reached, bands, spread),
        )
    return Solution(model, thetas, outcome)


def _so_far(directory: Path, statement: Statement, settings: Resolved) -> Solution:
    """The solution of a run that has not ended, from its last checkpoint."""
    state, complaints = checkpoints.latest(directory, identity(directory))
    if state is None:
        what = "; ".join(complaints) or "it has no checkpoint yet"
        raise RunError(f"the run in {directory} has not ended, and {what}; continue with `dsgnar resume {directory}`")
    settings = in_sizes(settings, statement.problem, state.sizes)
    return Context.of(statement.problem, statement.network, settings).solution(state, StopReason.INTERRUPTED)


def recall(directory: Path | str, problem: Problem | None = None, network: Any = None) -> Statement:
    """The problem of a run directory with its title, equations and reference, stated again."""
    directory = Path(directory)
    described = read_config(directory)
    with understood(directory / "config.json"):
        statement = _stated(directory, described, problem)
        if problem is None:
            kept = inferred.with_kept_data(statement.problem, directory)
            statement = dataclasses.replace(statement, problem=kept)
        chosen = network or architecture_of(described) or statement.network
        if chosen is None:
            kind = described["network"]["type"]
            raise WrongDirectory(f"the network in {directory} is a {kind} of your own: give it again, as `network=...`")
        stated = restated(statement.problem, described["settings"]["intervals"])
        statement = dataclasses.replace(statement, problem=stated, network=chosen)
        again, before = outline(statement), described["statement"]
        for name in again | before:
            if again.get(name) != before.get(name):
                raise WrongDirectory(
                    f"this is not the problem in {directory}: "
                    f"its {name} is {again.get(name)}, and there {before.get(name)}"
                )
    return statement


def _stated(directory: Path, described: dict[str, Any], problem: Problem | None) -> Statement:
    if problem is not None:
        return Statement(problem, described["problem"], preset=described["preset"])
    if described["source"] == "suite":
        return from_suite(described["problem"], described["preset"])
    if described["source"] == "file":
        return from_file(directory / "problem.py", Path(described["file"]), directory / "helpers")
    raise WrongDirectory(f"the problem in {directory} was stated in a program: give it again, as `problem=...`")


def identity(directory: Path) -> str:
    """The fingerprint of the run in a directory."""
    with understood(directory / "config.json"):
        return fingerprint(read_config(directory))
