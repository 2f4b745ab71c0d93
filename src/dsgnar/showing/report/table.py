"""A run, or several side by side, as a table for the terminal."""

from collections.abc import Sequence

from rich.table import Table

from dsgnar.showing.report.facts import facts
from dsgnar.showing.report.recorded import Recorded
from dsgnar.showing.words import NOTHING


def table(recorded: Sequence[Recorded]) -> Table:
    """The facts of each run in a column."""
    columns = [facts(run) for run in recorded]
    title = recorded[0].title if len({run.title for run in recorded}) == 1 else None
    out = Table(box=None, pad_edge=False, show_header=len(recorded) > 1, title=title, title_justify="left")
    out.add_column("", style="dim", no_wrap=True)
    for run in recorded:
        out.add_column(run.directory.name, overflow="fold")
    for label in dict.fromkeys(label for column in columns for label in column):
        out.add_row(label, *(column.get(label, NOTHING) for column in columns))
    return out
