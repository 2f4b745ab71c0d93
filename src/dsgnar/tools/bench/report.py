"""Rows as lines of text, as markdown, and as a figure."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg", force=False)
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter

from dsgnar.tools.bench.spread import Row, Spread, short

COLOURS = {"fast": "#ad502b", "paper": "#998f84"}
HEADING = ("case", "part", "fast", "paper", "paper / fast", "")


def cells(row: Row, comparison: str = "") -> tuple[str, ...]:
    """One row as text: case, part, both methods, ratio, what else is known."""
    both = [_with_unit(spread, row.unit) for spread in (row.fast, row.paper)]
    facts = "; ".join(f"{name} {_fact(value)}" for name, value in row.facts.items() if name != "N")
    last = "; ".join(text for text in (facts, comparison) if text)
    return row.case, row.part, *both, "" if row.ratio is None else str(row.ratio), last


def _fact(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_fact, value))
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def markdown(rows: Sequence[Row], machine: str, version: str, date: str) -> str:
    """A table, and where and when it was measured."""
    lines = [f"{machine}; dsgnar {version}; {date[:10]}. Median (least to most) of the repeats.", ""]
    lines += ["| " + " | ".join(HEADING) + " |", "|---" * len(HEADING) + "|"]
    lines += ["| " + " | ".join(cells(row)) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def fill(path: Path, name: str, text: str) -> None:
    """Put `text` between `<!-- name -->` and `<!-- /name -->` in a page."""
    start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    page = path.read_text()
    if page.count(start) != 1 or page.count(end) != 1:
        raise ValueError(f"{path} has no place for the table: it must contain {start} and {end} once each")
    head, rest = page.split(start)
    path.write_text(f"{head}{start}\n\n{text.strip()}\n\n{end}{rest.split(end)[1]}")


def figure(rows: Sequence[Row], title: str, path: Path) -> bool:
    """Times of both methods, case by case, and growth with N; whether there was anything to draw."""
    timed = [row for row in rows if row.unit == "s" and "N" not in row.facts]
    grown = [row for row in rows if "N" in row.facts]
    names = list(dict.fromkeys(row.case for row in timed))
    panels = [[row for row in timed if row.case == name] for name in names]
    growing = list(dict.fromkeys(row.case for row in grown))
    if not panels and not growing:
        return False
    heights = [0.7 + 0.55 * len(panel) for panel in panels] + [3.0] * len(growing)
    fig, axes = plt.subplots(
        len(heights), 1, figsize=(8, sum(heights) + 0.6), height_ratios=heights, layout="constrained", squeeze=False
    )
    fig.suptitle(title, fontsize=10)
    for axis, name, panel in zip(axes[:, 0], names, panels, strict=False):
        _bars(axis, name, panel)
    for axis, name in zip(axes[len(panels) :, 0], growing, strict=True):
        _growth(axis, name, [row for row in grown if row.case == name])
    if panels:
        handles = [Patch(color=colour, label=method) for method, colour in COLOURS.items()]
        fig.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False)
    fig.savefig(path, dpi=130)
    plt.close(fig)
    return True


def _bars(axis: Any, name: str, rows: Sequence[Row]) -> None:
    y = np.arange(len(rows))[::-1]
    for method, shift in (("fast", 0.2), ("paper", -0.2)):
        spreads = [
            (k, getattr(row, method)) for k, row in zip(y, rows, strict=True) if getattr(row, method) is not None
        ]
        spreads = [(k, s) for k, s in spreads if np.isfinite(s.median)]
        if not spreads:
            continue
        places, medians = [k + shift for k, _ in spreads], [s.median for _, s in spreads]
        reach = [[s.median - s.low for _, s in spreads], [min(s.high, 1e9) - s.median for _, s in spreads]]
        axis.barh(places, medians, 0.38, xerr=reach, color=COLOURS[method], error_kw={"lw": 1})
    for k, row in zip(y, rows, strict=True):
        ratio = row.ratio
        if ratio is not None and np.isfinite(ratio.median):
            axis.text(1.01, k, f"{short(ratio.median)}x", transform=axis.get_yaxis_transform(), va="center", fontsize=9)
    if any(row.ratio is not None for row in rows):
        axis.text(1.01, 1.02, "paper / fast", transform=axis.transAxes, fontsize=8)
    axis.set(title=name, xscale="log", xlabel="seconds", yticks=y, yticklabels=[row.part for row in rows])
    axis.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))


def _growth(axis: Any, name: str, rows: Sequence[Row]) -> None:
    def curve(unit: str) -> tuple[list[int], list[Spread]]:
        chosen = [row for row in rows if row.unit == unit and row.fast is not None]
        return [row.facts["N"] for row in chosen], [row.fast for row in chosen if row.fast is not None]

    sizes, seconds = curve("s")
    medians = np.array([s.median for s in seconds])
    reach = np.array([[s.median - s.low, s.high - s.median] for s in seconds]).T
    axis.errorbar(sizes, medians, reach, color=COLOURS["fast"], marker="o", ms=4, label="seconds of an iteration")
    axis.plot(sizes, medians[-1] * np.array(sizes) / sizes[-1], color=COLOURS["fast"], lw=0.8, ls=":", label="linear")
    sizes, memory = curve("GiB")
    axis.plot(sizes, [m.median for m in memory], color="#3b6a7d", marker="s", ms=4, label="GiB at most")
    axis.set(title=f"{name}: growth", xlabel="points", xscale="log", yscale="log")
    axis.set_xscale("log", base=2)
    axis.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
    axis.legend(frameon=False, fontsize=8)


def _with_unit(spread: Spread | None, unit: str) -> str:
    if spread is None:
        return ""
    return f"{spread} {unit}" if math.isfinite(spread.low) else str(spread)
