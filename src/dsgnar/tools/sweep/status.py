"""Where a run of a sweep is, from what it has left in its directory.

result.json   it has ended: verdict, error, time
log.txt       what it has printed: a line every few iterations, and what went wrong
"""

import csv
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from dsgnar.showing.words import scientific
from dsgnar.storing import runs
from dsgnar.storing.files import unfinished

LOG = "log.txt"
TAIL = 4096  # bytes of the log that are looked at

State = Literal["waiting", "running", "interrupted", "error", "solved", "partly", "failed"]
WHOLE: tuple[State, ...] = ("solved", "partly", "failed")  # there is a result


@dataclass(frozen=True)
class Status:
    """What is known about a run."""

    state: State = "waiting"
    iteration: int | None = None
    loss: str = ""
    error: float | None = None  # relative l2, against a reference
    estimated: float | None = None  # where there is none
    seconds: float | None = None
    why: str = ""  # it has no result, or not the one that was asked for

    @property
    def good(self) -> bool:
        """Whether the problem is solved, to the tolerance if there is one."""
        return self.state == "solved" and not self.why


def ended(directory: Path) -> bool:
    """Whether a run has a result; an interrupted one is still to be continued."""
    return (directory / "result.json").exists() and not unfinished(directory)


def reached(directory: Path) -> Status:
    """The status of a run that has ended."""
    result = runs.read_result(directory)
    errors, estimates = result.get("relative_l2"), result.get("error_estimate")
    estimated = max(estimates.values()) if estimates else None
    missed = result.get("tolerance_met") is False
    return Status(
        result["verdict"],
        result["iterations"],
        _last_loss(directory),
        max(errors.values()) if errors else None,
        estimated,
        result["seconds"]["solve"],
        "the tolerance is not met" if missed else "",
    )


def going_on(directory: Path, seconds: float) -> Status:
    """The status of a run that is being solved, from the last line about it."""
    found: dict[str, Any] = {}
    for line in reversed(_tail(directory)):
        match = re.search(r"iteration (\d+)  ", line)
        if match is not None:
            shown = dict(re.findall(r"  (loss|error|estimated error) (\S+)", line))
            found = {"iteration": int(match[1]), "loss": shown.get("loss", ""), "error": _number(shown.get("error"))}
            found["estimated"] = _number(shown.get("estimated error"))
            break
    return Status("running", seconds=seconds, **found)


def broken(directory: Path, how: str) -> Status:
    """The status of a run that ended without a result."""
    said = [line for line in _tail(directory) if line.strip()]
    return Status("error", why=said[-1].removeprefix("dsgnar: ") if said else how)


def _last_loss(directory: Path) -> str:
    try:
        with open(directory / "history.csv", newline="") as file:
            return scientific(float([row["loss"] for row in csv.DictReader(file)][-1]))
    except (OSError, KeyError, ValueError, IndexError):
        return ""


def _tail(directory: Path) -> list[str]:
    try:
        with open(directory / LOG, "rb") as file:
            file.seek(max(0, file.seek(0, 2) - TAIL))
            return file.read().decode(errors="replace").splitlines()
    except OSError:
        return []


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None
