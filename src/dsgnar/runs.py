"""Run directories: what a run leaves behind, in files that other programs can read.

    result.json    what was reached (see `result`)
    config.json    everything needed to repeat the run
    history.csv    a row for each iteration
    solution.npz   the parameters
    figure.png     the solution and the course of the run

Every file is written beside its final name and moved there, so a reader never sees half a file.
"""

import csv
import dataclasses
import io
import json
import os
from pathlib import Path
from typing import Any

import jax
import numpy as np

from dsgnar.networks import Architecture
from dsgnar.solution import Solution


def default_directory(problem: str, preset: str, settings: Any) -> Path:
    """`runs/burgers-default-fast-seed0`."""
    return Path("runs") / f"{problem}-{preset}-{settings.method}-seed{settings.seed}"


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file in one step."""
    temporary = path.with_name(path.name + ".partial")
    with open(temporary, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def write(directory: Path, solution: Solution, *, problem: str, preset: str) -> None:
    """Write everything about a finished run."""
    directory.mkdir(parents=True, exist_ok=True)
    result_ = result(solution, problem=problem, preset=preset)
    write_atomically(directory / "result.json", _json(result_))
    write_atomically(directory / "config.json", _json(config(solution, problem=problem, preset=preset)))
    write_atomically(directory / "history.csv", history(solution))
    buffer = io.BytesIO()
    np.savez(buffer, thetas=solution.thetas, times=np.asarray(solution.march.times))
    write_atomically(directory / "solution.npz", buffer.getvalue())


def result(solution: Solution, *, problem: str, preset: str) -> dict[str, Any]:
    """What was reached: the contract with programs that read result.json."""
    outcome = solution.outcome
    assert outcome is not None
    out = {
        "problem": problem,
        "preset": preset,
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


def config(solution: Solution, *, problem: str, preset: str) -> dict[str, Any]:
    """Problem, network and all settings as they were in force."""
    outcome = solution.outcome
    assert outcome is not None
    network = solution.architecture
    described: Any = repr(type(network).__name__)
    if isinstance(network, Architecture):
        described = {"kind": type(network).__name__, **dataclasses.asdict(network)}
    return {
        "problem": problem,
        "preset": preset,
        "network": described,
        "settings": dataclasses.asdict(outcome.settings),
        "environment": environment(),
    }


def history(solution: Solution) -> bytes:
    """The history as CSV."""
    outcome = solution.outcome
    assert outcome is not None
    names = tuple(solution.problem.conditions)
    rows = [record.row(names) for record in outcome.history]
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, fieldnames=list(rows[0]) if rows else ["iteration"])
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


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=2) + "\n").encode()
