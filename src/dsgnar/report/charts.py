"""What is drawn of the course of a run, and of several runs over each other.

A chart is data for plotly.js as plain dictionaries. Colours are names of CSS variables (`--series-1`), which the page
resolves when it draws and again when it turns dark. Curves carry seconds beside iterations, so the page can show either.
"""

import html
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dsgnar.report.facts import number
from dsgnar.report.recorded import Mark, Recorded
from dsgnar.solution import Record

COLOURS = tuple(f"--series-{k}" for k in range(1, 8))
GREY = "--muted"
DRAWN = 2000  # points of a curve: more than a screen shows
FLOOR = -0.1  # ratios below it, or not finite, are drawn on it

Axis = dict[str, Any]  # of plotly.js
RATIO: Axis = {"range": [-0.15, 1.15], "nticks": 6, "fixedrange": True}
COUNT: Axis = {"rangemode": "tozero", "tickformat": "~s", "nticks": 6, "fixedrange": True}

Curve = tuple[dict[str, Any], list[float]]  # a trace over iterations, and the seconds of its points


@dataclass(frozen=True, eq=False)
class Chart:
    """A picture of the page."""

    name: str
    title: str  # as HTML
    about: str  # what it means
    traces: Sequence[dict[str, Any]]
    layout: dict[str, Any]
    summary: str  # what it shows, in words, for those who do not see it
    clocks: Sequence[list[float]] = ()  # seconds of each trace's points, where it has them
    marks: tuple[Mark, ...] = ()
    legend: bool = True  # of its own


def symbol(name: str) -> str:
    """A name of the user as mathematics, in the HTML that pages and plotly.js share: `x1` becomes x with an index."""
    head = name.rstrip("0123456789")
    if len(head) != 1:
        return html.escape(name.replace("_", " "))
    return f"<i>{html.escape(head)}</i>" + (f"<sub>{name[len(head) :]}</sub>" if head != name else "")


def rounded(values) -> list[float]:
    """Numbers for the page: six digits are more than can be seen."""
    return [float(f"{value:.6g}") for value in values]


# --- one run ----------------------------------------------------------------------------------------------------------


def course(run: Recorded) -> list[Chart]:
    """Error, loss, residuals, ratio, lambda, radius, weights and points of one run."""
    history = run.history
    names = list(next((r.error for r in history if r.error), {}))
    taken, refused = [r for r in history if r.accepted], [r for r in history if not r.accepted]
    cross: dict[str, Any] = dict(
        mode="markers", marker={"symbol": "x-thin", "size": 7, "line": {"width": 1.5, "color": GREY}}
    )
    dots: dict[str, Any] = dict(mode="markers", marker={"size": 4, "color": COLOURS[1]})
    charts = [
        _chart("error", "Relative error", "ℓ₂, against the reference, every few iterations", [
            _curve(history, lambda r, n=n: r.error and r.error.get(n), n, c) for n, c in zip(names, _cycle(), strict=False)
        ]),
        _chart("loss", "Loss", "weighted mean squares, where trained and at held-out points", [
            _curve(history, lambda r: r.loss, "training", COLOURS[0]),
            _curve(history, lambda r: r.held_out, "held out", COLOURS[1], **dots),
        ]),
        _chart("residuals", "Residuals", "root mean square of each condition at training points", [
            _curve(history, lambda r, m=m: math.sqrt(r.mean_squares[m]), n, c)
            for (m, n), c in zip(enumerate(run.conditions), _cycle(), strict=False)
        ]),
        _chart("ratio", "Decrease ratio", "actual over predicted decrease, and its target", [
            _curve(taken, _ratio, "ratio", COLOURS[0], False, mode="markers", marker={"size": 4, "color": COLOURS[0]}),
            _curve(refused, _ratio, "rejected", GREY, False, **cross),
            _curve(history, lambda r: r.target, "target", COLOURS[1], False, line={"color": COLOURS[1], "shape": "hvh"}),
        ], RATIO),
        _chart("lambda", "Regularisation λ", "of accepted steps", [
            _curve(taken, lambda r: r.lam, "λ", COLOURS[0])
        ]),
        _chart("radius", "Trust-region radius Δ", "crosses are rejected steps" if refused else "of all steps", [
            _curve(history, lambda r: r.radius, "radius", COLOURS[0]),
            _curve(refused, lambda r: r.radius, "rejected", GREY, **cross),
        ]),
        _chart("weights", "Weights", "of the conditions in the loss; their mean is one", [
            _curve(history, lambda r, m=m: r.weights[m], n, c)
            for (m, n), c in zip(enumerate(run.conditions), _cycle(), strict=False)
        ]),
    ]  # fmt: skip
    if len({r.points for r in history}) > 1:
        steps = _curve(history, lambda r: r.points, "points", COLOURS[0], line={"color": COLOURS[0], "shape": "hvh"})
        charts.append(_chart("points", "Training points", "of all conditions together", [steps], COUNT))
    return [replace(chart, marks=run.marks) for chart in charts if chart is not None]


def _chart(
    name: str,
    title: str,
    about: str,
    curves: list[Curve | None],
    axis: Axis | None = None,
) -> Chart | None:
    drawn = [curve for curve in curves if curve is not None]
    if not drawn:
        return None
    traces, clocks = [trace for trace, _ in drawn], [clock for _, clock in drawn]
    layout = {"yaxis": axis or log_axis(traces), "hovermode": "x unified"}
    return Chart(name, title, about, traces, layout, _in_words(traces), clocks)


# --- several runs -----------------------------------------------------------------------------------------------------


def overlaid(runs: dict[str, Recorded]) -> list[Chart]:
    """The same quantity of several runs in one chart, a colour for each run."""
    out = []
    for name, title, about, value, log in _OVERLAID:
        pairs = zip(runs.items(), _cycle(), strict=False)
        curves = [_curve(run.history, value, label, colour, log) for (label, run), colour in pairs]
        out.append(_chart(name, title, about, curves, None if log else RATIO))
    return [replace(chart, legend=False) for chart in out if chart is not None]


# --- curves -----------------------------------------------------------------------------------------------------------


def _curve(
    history: Sequence[Record], value: Callable[[Record], Any], name: str, colour: str, log: bool = True, **style: Any
) -> Curve | None:
    """A curve through the iterations that have a value; None where none has."""
    pairs = [(r, value(r)) for r in history]
    known = [(r, v) for r, v in pairs if v is not None and math.isfinite(v) and (v > 0 or not log)]
    if not known:
        return None
    step = -(-len(known) // DRAWN)
    kept = known[::-1][::step][::-1]  # the last one stays
    trace = {
        "type": "scatter",
        "mode": "lines" if len(kept) > 1 else "markers",
        "line": {"color": colour, "width": 1.6},
        "marker": {"color": colour},
        "name": html.escape(name),
        "x": [r.iteration for r, _ in kept],
        "y": rounded(v for _, v in kept),
        "hovertemplate": f"%{{y:{'.2e' if log else '.2f'}}}",
    }
    return trace | style, rounded(r.seconds for r, _ in kept)


def _ratio(record: Record) -> float:
    return min(max(record.ratio, FLOOR), 1.1) if math.isfinite(record.ratio) else FLOOR


def log_axis(traces: Sequence[dict[str, Any]]) -> Axis:
    """A logarithmic axis for curves, with ticks at powers of ten where they span several."""
    values = [y for trace in traces for y in trace["y"]]
    decades = math.log10(max(values) / min(values)) if values else 0
    ticks = {"dtick": math.ceil(decades / 5)} if decades > 1.2 else {"nticks": 6}
    return {"type": "log", "exponentformat": "power", "fixedrange": True, **ticks}


def _taken_ratio(record: Record) -> float | None:
    return _ratio(record) if record.accepted else None


def _worst_error(record: Record) -> float | None:
    return max(record.error.values()) if record.error else None


def _cycle() -> list[str]:
    return list(COLOURS) * 4


def _in_words(traces: Sequence[dict[str, Any]]) -> str:
    """Where each curve begins and ends."""
    said = [
        f"{t['name']} from {number(t['y'][0])} at iteration {t['x'][0]} to {number(t['y'][-1])} at iteration {t['x'][-1]}"
        for t in traces
    ]
    return "; ".join(said)


_OVERLAID: tuple[tuple[str, str, str, Callable[[Record], float | None], bool], ...] = (
    ("error", "Relative error", "ℓ₂, against the reference; the worst unknown", _worst_error, True),
    ("loss", "Loss", "at training points", lambda r: r.loss, True),
    ("held-out", "Held-out loss", "at points that were not trained on", lambda r: r.held_out, True),
    ("lambda", "Regularisation λ", "of accepted steps", lambda r: r.lam if r.accepted else None, True),
    ("radius", "Trust-region radius Δ", "of all steps", lambda r: r.radius, True),
    ("ratio", "Decrease ratio", "actual over predicted decrease of accepted steps", _taken_ratio, False),
)  # fmt: skip
