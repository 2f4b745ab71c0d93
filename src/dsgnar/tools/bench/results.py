"""Table 1 of the paper: the error and time of every problem, the paper's and the best before it beside those reached here.

A row is a problem in one precision. It is solved with the preset `single` or `double`, or else the first one of that
precision, in its own run directory (`kept.py`). Some of those networks hold the exact solution or are given a part of it;
the table says so, and beside such a row there can be another: the paper's network, solved with `fast`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dsgnar.networks import MLP, Architecture, Siren
from dsgnar.networks.gabor import GaborNet
from dsgnar.networks.spinn import SPINN
from dsgnar.solving.observers import Observer
from dsgnar.solving.settings import Settings
from dsgnar.suite import SUITE
from dsgnar.suite.base import Benchmark, Preset
from dsgnar.suite.own_file import find
from dsgnar.suite.published import PUBLISHED
from dsgnar.suite.statement import Statement
from dsgnar.tools.bench.kept import solved


@dataclass(frozen=True)
class Row:
    """A problem in one precision, and the preset that solves it."""

    problem: str
    precision: str
    preset: str
    like_for_like: bool = False  # the paper's network with `fast`, beside a row whose network is given more

    @property
    def name(self) -> str:
        return f"{self.problem}-{self.precision}" + ("-paper-network" if self.like_for_like else "")

    @property
    def paper(self) -> float:
        return SUITE[self.problem].paper[self.precision]

    @property
    def chosen(self) -> Preset:
        return SUITE[self.problem].presets[self.preset]

    def stated(self, **limits: Any) -> tuple[Statement, Settings]:
        """What is solved, and how."""
        statement = find(self.problem, self.preset)
        return statement, statement.changed({"method": "fast", **limits} if self.like_for_like else limits)


def rows(problems: Sequence[str] = (), like_for_like: bool = False) -> tuple[Row, ...]:
    """All rows, or those of some problems; with `like_for_like`, the paper's network beside those that are given more."""
    for name in problems:
        if name not in SUITE:
            raise ValueError(f"there is no problem {name!r} in the table, only {', '.join(SUITE)}")
    out: list[Row] = []
    for name, benchmark in SUITE.items():
        for precision in benchmark.paper if not problems or name in problems else ():
            row = Row(name, precision, _preset(benchmark, precision))
            out.append(row)
            if like_for_like and row.chosen.given:
                out.append(Row(name, precision, f"paper-{precision}", like_for_like=True))
    return tuple(out)


def _preset(benchmark: Benchmark, precision: str) -> str:
    return benchmark.aliases.get(precision, precision)


def table(
    directory: Path, chosen: Sequence[Row], limits: dict[str, Any], observers: Sequence[Observer] = ()
) -> Iterator[tuple[Row, dict[str, Any]]]:
    """Solve row after row; each comes with the content of its result.json."""
    for row in chosen:
        yield row, solved(directory / row.name, lambda row=row: row.stated(**limits), limits, observers)


def error(result: dict[str, Any]) -> float:
    """The error in the paper's table: of the velocity for the cavity, of the unknown otherwise."""
    errors = result["relative_l2"]
    return errors.get("velocity", max(errors.values()))


def named(network: Architecture) -> str:
    """A network in a few words: `Siren 40x4`."""
    kind = type(network).__name__
    if isinstance(network, GaborNet):
        return f"{kind} {network.features}"
    widths: list[int] = list(getattr(network, "widths", ()))
    size = f"{widths[0]}x{len(widths)}" if len(set(widths)) == 1 else "-".join(map(str, widths))
    modes = f", {network.modes} modes" if isinstance(network, Siren | MLP) and network.modes else ""
    return f"{kind} {size}, rank {network.rank}" if isinstance(network, SPINN) else f"{kind} {size}{modes}"


def _ansatz(row: Row) -> str:
    words = [named(row.chosen.network), "the paper's" if row.like_for_like else "", f"**{row.chosen.given}**"]
    return ", ".join(word for word in words if word.strip("*"))


_HEAD = (
    "problem", "precision", "best before", "paper (H100)", "here", "here / paper", "ansatz", "parameters", "sketch",
    "iterations", "ended",
)  # fmt: skip


def markdown(found: Sequence[tuple[Row, dict[str, Any]]], stamp: str = "") -> str:
    """The table: relative l2 errors, and seconds in brackets."""
    lines = [stamp, ""] if stamp else []
    lines += ["| " + " | ".join(_HEAD) + " |", "|" + "---|" * len(_HEAD)]
    for row, result in found:
        here, published = error(result), PUBLISHED[row.problem, row.precision]
        cells = (
            SUITE[row.problem].title, row.precision, published.before or "-", _cell(row.paper, published.seconds),
            _cell(here, result["seconds"]["solve"]), f"{here / row.paper:.2g}", _ansatz(row), f"{result['parameters']:,}",
            result["sketch"], result["iterations"], result["stop_reason"].replace("_", " "),
        )  # fmt: skip
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines) + "\n"


def _cell(value: float, seconds: float) -> str:
    return f"{value:.2e} ({seconds:,.{1 if seconds < 10 else 0}f} s)"
