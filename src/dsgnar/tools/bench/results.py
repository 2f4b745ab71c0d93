"""Table 1 of the paper: the relative l2 error of every problem, the paper's beside the one reached here.

A row is a problem in one precision. It is solved with the preset `single` or `double`, or else the first one of that
precision, in its own run directory. A row that has ended is read; one that was interrupted continues from its last
checkpoint.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dsgnar.solving.context import Context
from dsgnar.solving.loop import run
from dsgnar.solving.observers import Observer
from dsgnar.solving.state import RunState
from dsgnar.storing.directory import RunDirectory, restored
from dsgnar.storing.files import read_result, unfinished
from dsgnar.suite import SUITE
from dsgnar.suite.base import Benchmark
from dsgnar.suite.own_file import find


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
            raise ValueError(f"there is no problem {name!r} in the table, only {', '.join(SUITE)}")
    return tuple(
        Row(name, precision, _preset(benchmark, precision))
        for name, benchmark in SUITE.items()
        for precision in benchmark.paper
        if not problems or name in problems
    )


def _preset(benchmark: Benchmark, precision: str) -> str:
    return benchmark.aliases.get(precision, precision)


def table(
    directory: Path, chosen: Sequence[Row], limits: dict[str, Any], observers: Sequence[Observer] = ()
) -> Iterator[tuple[Row, dict[str, Any]]]:
    """Solve row after row; each comes with the content of its result.json."""
    for row in chosen:
        path = directory / row.name
        if not _ended(path):
            kept = RunDirectory(path)
            context, state = _where_it_is(row, kept, limits)
            run(context, state, (kept, *observers))
        yield row, read_result(path)


def _ended(path: Path) -> bool:
    return (path / "result.json").exists() and not unfinished(path)


def _where_it_is(row: Row, kept: RunDirectory, limits: dict[str, Any]) -> tuple[Context, RunState]:
    if (kept.path / "config.json").exists():
        return restored(kept, **limits)
    kept.statement = statement = find(row.problem, row.preset)
    settings = replace(statement.settings, **limits)
    context = Context.of(statement.problem, statement.network, settings, statement.reference())
    return context, context.start()


def error(result: dict[str, Any]) -> float:
    """The error in the paper's table: of the velocity for the cavity, of the unknown otherwise."""
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
