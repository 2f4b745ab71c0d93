"""Table 2 of the paper: the relative l2 error of every problem, the paper's beside the one reached here.

A row is a problem in one precision. It is solved with the preset of that name, or the first one of that precision, and
kept in a run directory of its own: a row that has ended is read, one that was interrupted goes on from its last checkpoint.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dsgnar import keeper, runs
from dsgnar.keeper import RunDirectory
from dsgnar.problems import SUITE
from dsgnar.problems.base import Benchmark
from dsgnar.solve import Observer, Run
from dsgnar.stages import StopReason
from dsgnar.statement import find


@dataclass(frozen=True)
class Row:
    """A problem in one precision, and the preset that solves it."""

    problem: str
    precision: str
    preset: str

    @property
    def name(self) -> str:
        return f"{self.problem}-{self.precision}"

    @property
    def paper(self) -> float:
        return SUITE[self.problem].paper[self.precision]


def rows(problems: Sequence[str] = ()) -> tuple[Row, ...]:
    """All rows, or those of some problems."""
    for name in problems:
        if name not in SUITE:
            raise ValueError(f"there is no problem {name!r}; the table has {', '.join(SUITE)}")
    return tuple(
        Row(name, precision, _preset(benchmark, precision))
        for name, benchmark in SUITE.items()
        for precision in benchmark.paper
        if not problems or name in problems
    )


def _preset(benchmark: Benchmark, precision: str) -> str:
    if precision in benchmark.presets:
        return precision
    return next(name for name, preset in benchmark.presets.items() if preset.precision == precision)


class Interrupted(Exception):
    """The person wants to stop; what was reached is kept."""


def table(
    directory: Path, chosen: Sequence[Row], limits: dict[str, Any], observers: Sequence[Observer] = ()
) -> Iterator[tuple[Row, dict[str, Any]]]:
    """Solve row after row; each with what its result.json says."""
    for row in chosen:
        path = directory / row.name
        if not _ended(path):
            outcome = _run(row, path, limits, observers).run().outcome
            if outcome is not None and outcome.stop is StopReason.INTERRUPTED:
                raise Interrupted
        yield row, runs.read_result(path)


def _ended(path: Path) -> bool:
    return (path / "result.json").exists() and not runs.unfinished(path)


def _run(row: Row, path: Path, limits: dict[str, Any], observers: Sequence[Observer]) -> Run:
    if (path / "config.json").exists():
        return keeper.restored(RunDirectory(path), observers=observers, **limits)
    statement = find(row.problem, row.preset)
    settings = dataclasses.replace(statement.settings, **limits)
    return Run(
        statement.problem,
        statement.network,
        settings,
        statement.reference(),
        (RunDirectory(path, statement), *observers),
    )


def error(result: dict[str, Any]) -> float:
    """The error that the paper's table names: that of the velocity for the cavity, of the unknown otherwise."""
    errors = result["relative_l2"]
    return errors.get("velocity", max(errors.values()))


_HEAD = (
    "problem",
    "precision",
    "paper",
    "here",
    "here / paper",
    "parameters",
    "sketch",
    "iterations",
    "seconds",
    "ended",
)


def markdown(found: Sequence[tuple[Row, dict[str, Any]]], stamp: str = "") -> str:
    """The table."""
    lines = [stamp, ""] if stamp else []
    lines += ["| " + " | ".join(_HEAD) + " |", "|" + "---|" * len(_HEAD)]
    for row, result in found:
        here = error(result)
        cells = (
            SUITE[row.problem].title, row.precision, f"{row.paper:.2e}", f"{here:.2e}", f"{here / row.paper:.2g}",
            f"{result['parameters']:,}", result["sketch"], result["iterations"], f"{result['seconds']['solve']:.0f}",
            result["stop_reason"].replace("_", " "),
        )  # fmt: skip
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines) + "\n"
