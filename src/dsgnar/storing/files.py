"""The files of a run directory, which other programs can read too.

    result.json    what was reached (see `runs.result`); there once the run has ended
    config.json    everything needed to repeat the run; there from the start
    history.csv    one row per iteration
    solution.npz   the parameters, one row per time interval
    problem.py     a copy of your own file, where the run came from one
    helpers/       copies of the modules beside it that it imports
    data.npz       measured values, where there are any
    checkpoint*    the state of the run (see `checkpoints`)
    figure.png     the solution and the course of the run

Each file is written under another name and then moved into place, so a reader never sees half a file.
"""

import hashlib
import json
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dsgnar.solving.record import Record
from dsgnar.solving.stop import StopReason
from dsgnar.storing import checkpoints
from dsgnar.storing.history import from_csv
from dsgnar.suite.statement import StatementError

# What belongs to a run, config.json last: without it the others are no run.
FILES = (
    "result.json", "history.csv", "solution.npz", "checkpoint*", "figure*", "report*", "problem.py", "helpers", "data.npz",
    "config.json",
)  # fmt: skip

Warn = Callable[[str], Any]


class RunError(ValueError):
    """A run directory cannot be used; the message says what to do."""


class WrongDirectory(RunError):
    """The directory does not hold what was asked for: use another directory or another command."""


def read_config(directory: Path) -> dict[str, Any]:
    """The configuration of a run."""
    if not (directory / "config.json").is_file():
        raise WrongDirectory(f"there is no run in {directory}: it has no config.json")
    return _read(directory / "config.json", "problem")


def read_result(directory: Path) -> dict[str, Any]:
    """What a run reached."""
    if not (directory / "result.json").exists():
        path = directory / "result.json"
        raise RunError(f"there is no {path}: the run has not ended; continue it with `dsgnar resume {directory}`")
    return _read(directory / "result.json", "stop_reason")


def _read(path: Path, key: str) -> dict[str, Any]:
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise RunError(f"{path} cannot be read: {error}") from None
    if not isinstance(content, dict) or key not in content:
        raise _not_ours(path, f"it has no {key!r}")
    return content


def _not_ours(path: Path, why: str) -> RunError:
    return RunError(f"{path} was changed, or another version of dsgnar wrote it: {why}")


@contextmanager
def understood(path: Path) -> Iterator[None]:
    """Within, a value that is missing or of the wrong type means that this version did not write the file."""
    try:
        yield
    except (RunError, StatementError):
        raise
    except KeyError as error:
        raise _not_ours(path, f"it has no {error}") from error
    except (TypeError, ValueError, AttributeError) as error:
        raise _not_ours(path, str(error)) from error


def read_history(path: Path, conditions: tuple[str, ...]) -> tuple[Record, ...]:
    """The history of a run."""
    try:
        return from_csv(path.read_bytes().decode(), conditions)
    except (OSError, KeyError, ValueError, TypeError, AttributeError) as error:  # rows too short or too long, too
        raise RunError(f"{path} cannot be read: {error!r}") from None


def unfinished(directory: Path) -> bool:
    """Whether a run was interrupted after it had reached something."""
    if (directory / "result.json").exists():
        return read_result(directory)["stop_reason"] == StopReason.INTERRUPTED.code
    return any((directory / name).exists() for name in (checkpoints.CURRENT, checkpoints.PREVIOUS))


def changed_copies(directory: Path, config: dict[str, Any]) -> list[Path]:
    """Copies of a person's files that are no longer what they were when the run began."""
    changed = []
    for name, digest in config["files_sha256"].items():
        path = directory / name if name == "problem.py" else directory / "helpers" / name
        if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != digest:
            changed.append(path)
    return changed


def make_room(directory: Path, force: bool = False, warn: Warn = warnings.warn) -> None:
    """Move an earlier run aside, into `earlier-1`; an unfinished one only with `force`. Nothing is ever deleted."""
    if not (directory / "config.json").exists():
        return
    if not force and unfinished(directory):
        raise WrongDirectory(
            f"{directory} holds an unfinished run: continue it with `dsgnar resume {directory}`, or use --force, which "
            "moves it aside and starts a new run"
        )
    number = 1
    while (directory / f"earlier-{number}" / "config.json").exists():
        number += 1
    aside = directory / f"earlier-{number}"
    aside.mkdir(exist_ok=True)  # without a configuration a move was cut short, and is completed now
    for pattern in FILES:
        for path in sorted(directory.glob(pattern)):
            os.replace(path, aside / path.name)
    warn(f"the earlier run in {directory} is now in {aside}")
