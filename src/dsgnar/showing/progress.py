"""Live progress of a run: a panel that is updated in place in terminals and notebooks, plain lines elsewhere.

Curves show the logarithm of a quantity over all iterations so far, from its smallest value to its largest.
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

from dsgnar.showing import words
from dsgnar.showing.iterations import worst_error
from dsgnar.showing.words import NOTHING, duration, scientific
from dsgnar.solving.observers import View
from dsgnar.solving.record import Record
from dsgnar.solving.solution import Solution

PLAIN_EVERY = 10  # iterations between plain lines,
PLAIN_SECONDS = 60.0  # and at most this long between two of them
NOTEBOOK_SECONDS = 0.5  # between updates in a notebook
CURVE = 40  # characters
BLOCKS = "▁▂▃▄▅▆▇█"
RATE_OVER = 10  # iterations over which the rate is averaged


class Progress:
    """An observer that shows stage, rate, loss, error, lambda, radius, ratio, points and time while a run is solved."""

    def __init__(self, console: Console | None = None, title: str = ""):
        self.console = console or Console(stderr=True)
        self.title = title
        self._screen: Live | _Notebook | None = None
        self._run: View | None = None  # as it was last seen
        self._printed = 0.0  # when the last plain line was
        self._ended = self._concluding = False

    def preparing(self) -> None:
        self.console.print(f"{self.title or 'dsgnar'}: looking at the problem", highlight=False, markup=False)

    def started(self, run: View) -> None:
        self._run, self._printed, self._ended, self._concluding = run, time.monotonic(), False, False
        if self.console.is_jupyter:
            self._screen = _Notebook()
        elif self.console.is_terminal:
            self._screen = Live(console=self.console, refresh_per_second=4, get_renderable=self.view)
            self._screen.start(refresh=True)
        else:
            self.console.print(f"{self.title or 'dsgnar'}: {_about(run)}", highlight=False, markup=False)

    def iterated(self, run: View, record: Record) -> None:
        self._run = run
        if isinstance(self._screen, _Notebook):
            self._screen.update(self.view())
        elif self._screen is None:
            now = time.monotonic()
            if record.iteration % PLAIN_EVERY == 0 or now - self._printed > PLAIN_SECONDS:
                self._printed = now
                self.console.print(line(run), highlight=False, markup=False, soft_wrap=True)

    def concluding(self) -> None:
        self._concluding = True
        if isinstance(self._screen, _Notebook):
            self._screen.update(self.view(), at_once=True)

    def finished(self, run: View, solution: Solution | None) -> None:
        self._run, self._ended = run, True
        if isinstance(self._screen, _Notebook):
            self._screen.update(self.view(), at_once=True)
        elif self._screen is not None:
            self._screen.stop()
        self._screen = None

    def view(self) -> RenderableType:
        """The run as it was last seen, as a panel."""
        return Text() if self._run is None else panel(self._run, self.title, self._ended, self._concluding)


# --- what is shown ----------------------------------------------------------------------------------------------------


def panel(run: View, title: str = "", ended: bool = False, concluding: bool = False) -> Panel:
    """The state of a run as a panel."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim")
    table.add_column(justify="right")
    table.add_column(style="cyan", no_wrap=True)
    for row in _quantities(run.history):
        table.add_row(*row)
    hint = "Ctrl-C stops the run after the current iteration"
    if run.asked_to_stop:
        hint = "stopping after this iteration; press Ctrl-C again to stop now"
    if concluding:
        hint = "iterations are over; estimating the error"
    below = [] if ended else ["", Text(hint, style="dim")]
    return Panel(
        Group(*_headline(run), Text(_about(run), style="dim"), "", table, *below),
        title=Text(title or "dsgnar", style="bold"),
        title_align="left",
        expand=False,
        padding=(0, 1),
    )


def line(run: View) -> str:
    """The last iteration in one line."""
    record = run.history[-1]
    parts = [f"iteration {record.iteration}", f"stage {record.stage}"]
    if run.marching:
        parts.insert(0, f"interval {record.interval + 1}{f'/{run.intervals}' if run.intervals else ''}")
    parts += [f"{name} {value}" for name, value, _ in _quantities(run.history)]
    return "  ".join([*parts, duration(record.seconds)])


def _headline(run: View) -> list[Text]:
    history = run.history
    if not history:
        return [Text("compiling; the next run of this problem will find the result on disk")]
    last, precision = history[-1], run.settings.precision
    now = f"{last.precision} precision" if last.precision != precision else ""  # a double run begins in single
    parts = [f"iteration {last.iteration}", f"stage {last.stage}", now, rate(history), duration(last.seconds)]
    lines = [Text("   ".join(filter(None, parts)))]
    if run.state.cuts and not run.marching:
        lines.insert(0, Text(f"attempt {run.state.cuts + 1}: the equations did not hold well enough before"))
    if run.marching:
        start, end = run.march.times[-2:]
        whole = f" of {run.intervals}" if run.intervals else ""
        until = "" if run.intervals else f", to reach {run.context.march.times[-1]:g}"
        where = f"{start:g} ≤ {run.problem.domain.time} ≤ {end:g}{until}"
        lines.insert(0, Text(f"time interval {last.interval + 1}{whole}: {where}{_left(run)}"))
    return lines


def _left(run: View) -> str:
    """How long a march may still take, if it goes on as fast as so far; nothing in its first interval."""
    first, start, end = run.march.times[0], run.march.times[-2], run.context.march.times[-1]
    last = run.history[-1]
    before = [record.seconds for record in run.history if record.interval < last.interval]
    if start <= first or not before:
        return ""
    passed = last.seconds - before[-1]
    left = before[-1] / (start - first) * (end - start) - passed
    return f", about {duration(left)} left" if left > 0 else ""


def _quantities(history: Sequence[Record]) -> list[tuple[str, str, str]]:
    """Name, value and curve of each quantity that is followed."""
    if not history:
        return []
    last = history[-1]
    held = _carried([r.held_out for r in history])
    errors = _carried([worst_error(r) for r in history])
    rows = [("loss", scientific(last.loss), curve([r.loss for r in history]))]
    if held:
        rows.append(("held-out loss", scientific(held[-1]), curve(held)))
    if errors:
        rows.append(("error", scientific(errors[-1]), curve(errors)))
    estimates = _carried([r.estimate for r in history])
    if estimates:
        rows.append(("estimated error", scientific(estimates[-1]), curve(estimates)))
    return [
        *rows,
        ("lambda", scientific(last.lam, 2), curve([r.lam for r in history])),
        ("radius", scientific(last.radius), curve([r.radius for r in history])),
        ("ratio", f"{last.ratio:.2f}" if math.isfinite(last.ratio) else NOTHING, f"target {last.target:.3g}"),
        ("points", str(last.points), ""),
    ]


def _about(run: View) -> str:
    settings, count = run.settings, run.residuals.parameters.count
    sizes = f"{type(run.network).__name__}, {count} parameters, sketch {settings.sketch}"
    tol = f", tolerance {settings.tolerance}" if settings.tolerance else ""
    where = run.residuals.devices.describe()
    return f"{sizes}, {settings.precision} precision, method {settings.method.name}{tol}{f', {where}' if where else ''}"


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
    """Values that are known only now and then, each repeated until the next; empty if none is known yet."""
    out: list[float] = []
    for value in values:
        out.append(value if value is not None else out[-1] if out else math.nan)
    return [] if not out or math.isnan(out[-1]) else out


def rate(history: Sequence[Record]) -> str:
    """The speed over the last few iterations; nothing where it is not known yet."""
    recent = history[-1 - RATE_OVER :]
    seconds = recent[-1].seconds - recent[0].seconds
    return words.rate(len(recent) - 1, seconds) if seconds > 0 else ""


class _Notebook:
    """One output of a notebook cell that is replaced in place. (Rich's own Live needs ipywidgets for that.)"""

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
