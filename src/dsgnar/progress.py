"""Live progress of a run: in a terminal and in a notebook updated in place, elsewhere plain lines.

Curves are drawn in blocks, the logarithm of a quantity over all iterations so far, from its smallest value to its largest.
"""

import io
import math
import time
from collections.abc import Sequence
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from dsgnar.solution import Record, Solution

PLAIN_EVERY = 10  # iterations between plain lines,
PLAIN_SECONDS = 60.0  # but never longer than this without one
NOTEBOOK_SECONDS = 0.5  # between updates of a notebook
CURVE = 40  # characters
BLOCKS = "▁▂▃▄▅▆▇█"
RATE_OVER = 10  # iterations over which the rate is averaged


class Progress:
    """Shows stage, rate, loss, held-out loss, error, lambda, ratio, radius, time interval and time."""

    def __init__(self, console: Console | None = None, title: str = ""):
        self.console = console or Console(stderr=True)
        self.title = title
        self._screen: Live | _Notebook | None = None
        self.run: Any = None
        self._spoke = 0.0
        self._ended = False

    def started(self, run) -> None:
        self.run, self._spoke, self._ended = run, time.monotonic(), False
        if self.console.is_jupyter:
            self._screen = _Notebook()
        elif self.console.is_terminal:
            self._screen = Live(console=self.console, refresh_per_second=4, get_renderable=self.view)
            self._screen.start(refresh=True)
        else:
            self.console.print(f"{self.title}: {self._about()}", highlight=False, markup=False)

    def iterated(self, run, record: Record) -> None:
        if isinstance(self._screen, _Notebook):
            self._screen.update(self.view())
        elif self._screen is None:
            now = time.monotonic()
            if record.iteration % PLAIN_EVERY == 0 or now - self._spoke > PLAIN_SECONDS:
                self._spoke = now
                self.console.print(self.line(), highlight=False, markup=False, soft_wrap=True)

    def finished(self, run, solution: Solution | None) -> None:
        self._ended = True
        if isinstance(self._screen, _Notebook):
            self._screen.update(self.view(), at_once=True)
        elif self._screen is not None:
            self._screen.stop()
        self._screen = None

    # --- what is shown ------------------------------------------------------------------------------------------------

    def line(self) -> str:
        """The last iteration in one line."""
        record: Record = self.run.history[-1]
        parts = [f"iteration {record.iteration}", f"stage {record.stage}"]
        if self.run.march.count > 1:
            parts.insert(0, f"interval {record.interval + 1}/{self.run.march.count}")
        parts += [f"{name} {value}" for name, value, _ in self._quantities()]
        return "  ".join([*parts, f"{record.seconds:.1f} s"])

    def view(self) -> RenderableType:
        """The state of the run as a panel."""
        table = Table.grid(padding=(0, 2))
        table.add_column(style="dim")
        table.add_column(justify="right")
        table.add_column(style="cyan", no_wrap=True)
        for name, value, curve in self._quantities():
            table.add_row(name, value, curve)
        return Panel(
            Group(self._headline(), Text(self._about(), style="dim"), "", table, *self._hint()),
            title=Text(self.title or "dsgnar", style="bold"),
            title_align="left",
            expand=False,
            padding=(0, 1),
        )

    def _headline(self) -> Text:
        run, history = self.run, self.run.history
        if not history:
            return Text("compiling the kernels; later runs take them from disk")
        last: Record = history[-1]
        parts = [f"iteration {last.iteration}", f"stage {last.stage}", rate(history), duration(last.seconds)]
        if run.march.count > 1:
            start, end = run.march.interval(last.interval)
            time_axis = run.problem.domain.time
            parts.insert(0, f"interval {last.interval + 1} of {run.march.count} ({time_axis} {start:g} to {end:g})")
        return Text("   ".join(filter(None, parts)))

    def _quantities(self) -> list[tuple[str, str, str]]:
        """Name, value and curve of everything that is followed."""
        history: list[Record] = self.run.history
        if not history:
            return []
        last = history[-1]
        held = _carried([r.held_out for r in history])
        errors = _carried([max(r.error.values()) if r.error else None for r in history])
        ratio = f"{last.ratio:.2f}" if math.isfinite(last.ratio) else "-"
        rows = [("loss", f"{last.loss:.2e}", curve([r.loss for r in history]))]
        if held:
            rows.append(("held-out loss", f"{held[-1]:.2e}", curve(held)))
        if errors:
            rows.append(("error", f"{errors[-1]:.2e}", curve(errors)))
        return [
            *rows,
            ("lambda", f"{last.lam:.1e}", curve([r.lam for r in history])),
            ("radius", f"{last.radius:.2e}", curve([r.radius for r in history])),
            ("ratio", ratio, f"aims at {last.target:g}"),
            ("points", str(last.points), f"{last.precision} precision"),
        ]

    def _hint(self) -> list[RenderableType]:
        if self._ended:
            return []
        asked = self.run.interruption.asked
        hint = (
            "ends after this iteration; Ctrl-C once more ends at once" if asked else "Ctrl-C ends it after an iteration"
        )
        return ["", Text(hint, style="dim")]

    def _about(self) -> str:
        run = self.run
        settings, count = run.settings, run.residuals.parameters.count
        kind = type(run.architecture).__name__
        return (
            f"{kind}, {count} parameters, sketch {settings.sketch}, {settings.precision} precision, {settings.method}"
        )


def curve(values: Sequence[float], width: int = CURVE) -> str:
    """The logarithms of values as a line of blocks."""
    if len(values) > width:  # the last value of each piece
        values = [values[(k + 1) * len(values) // width - 1] for k in range(width)]
    logs = [math.log10(v) if 0 < v < math.inf else math.nan for v in values]
    known = [v for v in logs if not math.isnan(v)]
    if not known:
        return ""
    low, high = min(known), max(known)
    scale = (len(BLOCKS) - 1) / (high - low) if high > low else 0.0
    return "".join(" " if math.isnan(v) else BLOCKS[round((v - low) * scale)] for v in logs)


def _carried(values: Sequence[float | None]) -> list[float]:
    """Values that were looked at now and then, carried on to the next look; empty if there was none yet."""
    out: list[float] = []
    for value in values:
        out.append(value if value is not None else out[-1] if out else math.nan)
    return [] if not out or math.isnan(out[-1]) else out


def rate(history: Sequence[Record]) -> str:
    """Iterations per second, or seconds per iteration, over the last few."""
    recent = history[-1 - RATE_OVER :]
    seconds = recent[-1].seconds - recent[0].seconds if len(recent) > 1 else 0.0
    if seconds <= 0:
        return ""
    per_second = (len(recent) - 1) / seconds
    return f"{per_second:.1f} per second" if per_second >= 1 else f"{1 / per_second:.1f} s each"


def duration(seconds: float) -> str:
    """13.2 s, 4:05, 1:02:33."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class _Notebook:
    """One output of a notebook cell that is replaced in place. Rich's own Live would need ipywidgets for that."""

    def __init__(self):
        self._handle: Any = None
        self._time = -math.inf

    def update(self, renderable: RenderableType, at_once: bool = False) -> None:
        if not at_once and time.monotonic() - self._time < NOTEBOOK_SECONDS:
            return
        from IPython.display import HTML, display  # type: ignore[import-not-found]  # a notebook has it

        self._time = time.monotonic()
        content = HTML(as_html(renderable))
        if self._handle is None:
            self._handle = display(content, display_id=True)
        else:
            self._handle.update(content)


def as_html(renderable: RenderableType) -> str:
    """A renderable as HTML that needs no style sheet."""
    console = Console(record=True, file=io.StringIO(), width=100, force_jupyter=False, force_terminal=True)
    console.print(renderable)
    style = "font-family: Menlo, 'DejaVu Sans Mono', consolas, monospace; line-height: normal; overflow-x: auto"
    return console.export_html(inline_styles=True, code_format=f'<pre style="{style}">{{code}}</pre>')
