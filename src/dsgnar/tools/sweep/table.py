"""The table of a sweep: one row for each run, those that are going on first where there is not room for all."""

from collections import Counter
from collections.abc import Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from dsgnar.showing.words import NOTHING, duration, scientific
from dsgnar.tools.sweep.status import Status

STYLES = {"running": "bold", "solved": "green", "partly": "yellow", "failed": "red", "error": "red", "waiting": "dim"}
_FIRST = ("running", "error", "failed", "partly", "interrupted", "solved", "waiting")


def table(statuses: Mapping[str, Status], height: int | None = None, note: str = "") -> RenderableType:
    """Runs as rows; at most `height` lines, where it is given."""
    out = Table(box=None, pad_edge=False)
    out.add_column("run", overflow="fold")
    for name, width in (("state", 7), ("iteration", 9), ("loss", 8), ("error", 8), ("time", 6)):
        out.add_column(name, justify="left" if name == "state" else "right", no_wrap=True, min_width=width)
    names = labels(list(statuses))
    shown = _shown(statuses, None if height is None else max(1, height - 3))
    for name in shown:
        found = statuses[name]
        state = Text(found.state, style=STYLES.get(found.state, ""))
        iteration = NOTHING if found.iteration is None else str(found.iteration)
        out.add_row(names[name], state, iteration, found.loss or NOTHING, _error(found), duration(found.seconds))
    left_out = f" ({len(statuses) - len(shown)} not shown)" if len(shown) < len(statuses) else ""
    return Group(out, Text(f"{counted(statuses)}{left_out}{f'   {note}' if note else ''}", style="dim"))


def _shown(statuses: Mapping[str, Status], most: int | None) -> list[str]:
    if most is None or len(statuses) <= most:
        return list(statuses)
    chosen = sorted(statuses, key=lambda name: _FIRST.index(statuses[name].state))[:most]
    return [name for name in statuses if name in chosen]


def labels(names: Sequence[str]) -> dict[str, str]:
    """Names without what all of them have in common."""
    parts = [name.split("-") for name in names]
    if len(names) < 2 or len({len(p) for p in parts}) > 1:
        return {name: name for name in names}
    differ = [k for k in range(len(parts[0])) if len({p[k] for p in parts}) > 1]
    return {name: "-".join(p[k] for k in differ) for name, p in zip(names, parts, strict=True)}


def _error(found: Status) -> str:
    if found.error is not None:
        return scientific(found.error)
    return NOTHING if found.estimated is None else f"~{scientific(found.estimated)}"


def counted(statuses: Mapping[str, Status]) -> str:
    """How many runs are in which state: `8 runs: 2 running, 6 waiting`."""
    counts = Counter(found.state for found in statuses.values())
    parts = ", ".join(f"{counts[state]} {state}" for state in _FIRST if counts[state])
    return f"{len(statuses)} run{'s' if len(statuses) > 1 else ''}: {parts}"


def line(name: str, found: Status) -> str:
    """A run that has ended, in one line."""
    parts = [f"{name}: {found.state}"]
    if found.iteration is not None:
        parts += [f"error {_error(found)}", f"{found.iteration} iterations", duration(found.seconds)]
    return ", ".join(parts)
