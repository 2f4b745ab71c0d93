"""The files of a run directory, as they were written (`runs.py`): reading them neither needs nor runs the problem."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from dsgnar import runs
from dsgnar.advice import training
from dsgnar.figures.course import EVENTS
from dsgnar.problems import SUITE, Benchmark
from dsgnar.solution import Record

LABELS: dict[str, Callable[[Record], str]] = {
    "stage switch": lambda after: f"stage {after.stage}",
    "precision switch": lambda after: f"{after.precision} precision",
    "end of a time interval": lambda after: f"interval {after.interval + 1}",
}


@dataclass(frozen=True)
class Mark:
    """Where something changed in the course of a run: between two iterations."""

    kind: str  # one of `figures.course.EVENTS`
    label: str
    iteration: int  # the first after the change
    seconds: float


@dataclass(frozen=True, eq=False)
class Recorded:
    """A run that has ended, as its directory tells it."""

    directory: Path
    result: dict[str, Any]
    config: dict[str, Any]
    history: tuple[Record, ...]
    missing: str = ""  # why there is no history

    @property
    def benchmark(self) -> Benchmark | None:
        """The problem of the suite that was solved, if it was one."""
        return SUITE.get(str(self.result.get("problem")))

    @property
    def title(self) -> str:
        return self.benchmark.title if self.benchmark else str(self.result.get("problem") or self.directory.name)

    @property
    def conditions(self) -> dict[str, str]:
        """Conditions by name, and where each is stated."""
        return _conditions(self.config)

    @functools.cached_property
    def marks(self) -> tuple[Mark, ...]:
        """Switches of stage and precision, and ends of time intervals."""
        out = []
        for before, after in pairwise(self.history):
            middle = (before.seconds + after.seconds) / 2
            for kind, (_, happens) in EVENTS.items():
                if happens(before, after):
                    out.append(Mark(kind, LABELS[kind](after), after.iteration, middle))
        return tuple(out)

    @functools.cached_property
    def training(self) -> dict[str, float]:
        """Root mean square residual of each condition on the last training points; of the worst time interval."""
        return dict(zip(self.conditions, training(self.history), strict=True)) if self.history else {}


def read(directory: Path) -> Recorded:
    """Read a run directory, or raise a `runs.RunError` that says why it is none."""
    directory = Path(directory)
    config, result = runs.read_config(directory), runs.read_result(directory)
    if not isinstance(config, dict) or not isinstance(result, dict):
        raise runs.RunError(f"config.json and result.json in {directory} do not describe a run")
    history, missing = (), ""
    try:
        history = runs.read_history(directory / "history.csv", tuple(_conditions(config)))
    except runs.RunError as error:
        missing = str(error)
    return Recorded(directory.resolve(), result, config, history, missing)


def _conditions(config: dict[str, Any]) -> dict[str, str]:
    return (config.get("statement") or {}).get("conditions") or {}
