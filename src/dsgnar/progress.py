"""Live progress of a run in a terminal; plain lines where there is none."""

import math

from rich.console import Console
from rich.live import Live
from rich.table import Table

from dsgnar.solution import Record, Solution

PLAIN_EVERY = 10  # iterations between plain lines


class Progress:
    """Shows iteration, stage, loss, lambda, ratio, radius, error and time.

    On a terminal the display is updated in place; elsewhere a line is written every few iterations.
    """

    def __init__(self, console: Console | None = None, title: str = ""):
        self.console = console or Console(stderr=True)
        self.title = title
        self.live: Live | None = None

    def started(self, run) -> None:
        if self.console.is_terminal:
            self.live = Live(self._waiting(run), console=self.console, refresh_per_second=8)
            self.live.start()
        else:
            self.console.print(self._heading(run), highlight=False)

    def iterated(self, run, record: Record) -> None:
        if self.live is not None:
            self.live.update(self._table(run, record))
        elif record.iteration % PLAIN_EVERY == 0:
            parts = (f"{name} {value}" for name, value in self._cells(run, record) if value)
            self.console.print("  ".join(parts), highlight=False, soft_wrap=True)

    def finished(self, run, solution: Solution) -> None:
        if self.live is not None:
            self.live.stop()
            self.live = None

    def _heading(self, run) -> str:
        s = run.settings
        count = run.residuals.parameters.count
        return f"{self.title}: {count} parameters, sketch {s.sketch}, {s.precision} precision, method {s.method}"

    def _waiting(self, run) -> Table:
        table = Table(title=self._heading(run), title_justify="left")
        table.add_column("compiling the kernels; later runs take them from disk")
        return table

    def _table(self, run, record: Record) -> Table:
        table = Table(title=self._heading(run), title_justify="left")
        cells = self._cells(run, record)
        for name, _ in cells:
            table.add_column(name, justify="right")
        table.add_row(*(value for _, value in cells))
        return table

    def _cells(self, run, record: Record) -> list[tuple[str, str]]:
        error = _last(run.history, "error")
        held = _last(run.history, "held_out")
        return [
            ("iteration", str(record.iteration)),
            ("stage", str(record.stage)),
            ("loss", f"{record.loss:.2e}"),
            ("held out", "" if held is None else f"{held:.2e}"),
            ("lambda", f"{record.lam:.1e}"),
            ("ratio", f"{record.ratio:.2f}" if math.isfinite(record.ratio) else "-"),
            ("radius", f"{record.radius:.2e}"),
            ("error", "" if not error else f"{max(error.values()):.2e}"),
            ("points", str(record.points)),
            ("seconds", f"{record.seconds:.1f}"),
        ]


def _last(history: list[Record], name: str):
    return next((getattr(r, name) for r in reversed(history) if getattr(r, name) is not None), None)

