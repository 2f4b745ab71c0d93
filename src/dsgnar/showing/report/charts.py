"""Charts of the course of a run, or of several runs in one chart.

A chart is data for plotly.js as plain dictionaries. Colours are names of CSS variables (`--series-1`), which the page
resolves when it draws and again when it turns dark. Curves carry seconds beside iterations, so the page can show either.
"""

import html
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dsgnar.showing import words
from dsgnar.showing.colours import VARIABLES, repeated
from dsgnar.showing.iterations import EVENTS, RATIO_RANGE, Mark, drawn_ratio, split, worst_error
from dsgnar.showing.report.recorded import Recorded
from dsgnar.showing.words import number
from dsgnar.solving.record import Record

FIRST, SECOND, GREY = VARIABLES[0], VARIABLES[1], "--muted"
LAMBDA, RADIUS = f"{words.LAMBDA.title} λ", f"{words.RADIUS.title} Δ"
DRAWN = 2000  # points of a curve: more than a screen shows

Axis = dict[str, Any]  # of plotly.js
RATIO: Axis = {"range": list(RATIO_RANGE), "nticks": 6, "fixedrange": True}
COUNT: Axis = {"rangemode": "tozero", "tickformat": "~s", "nticks": 6, "fixedrange": True}
DASHES = {"dashed": "dash", "dotted": "dot", "solid": "solid"}  # as plotly.js calls them

Curve = tuple[dict[str, Any], list[float]]  # a trace over iterations, and the seconds of its points


@dataclass(frozen=True, eq=False)
class Chart:
    """A chart of the page."""

    name: str
    title: str  # as HTML
    about: str  # what it means
    traces: Sequence[dict[str, Any]]
    layout: dict[str, Any]
    summary: str  # what it shows, in words, for screen readers
    clocks: Sequence[list[float]] = ()  # seconds of each trace's points, where it has them
    marks: Sequence[dict[str, Any]] = ()  # vertical lines
    legend: bool = True  # of its own


def rounded(values: Iterable[float]) -> list[float]:
    """Numbers for the page: six digits are more than can be seen."""
    return [float(f"{value:.6g}") for value in values]


# --- one run ----------------------------------------------------------------------------------------------------------


def course(run: Recorded) -> list[Chart]:
    """Error, loss, residuals, ratio, lambda, radius, weights and points of one run."""
    history, conditions = run.history, list(enumerate(run.conditions))
    names = list(next((r.error for r in history if r.error), {}))
    accepted, rejected = split(history)
    cross: dict[str, Any] = dict(
        mode="markers", marker={"symbol": "x-thin", "size": 7, "line": {"width": 1.5, "color": GREY}}
    )
    dots: dict[str, Any] = dict(mode="markers", marker={"size": 4, "color": SECOND})
    charts = [
        _chart("error", words.ERROR.title, "ℓ₂, against the reference, every few iterations", [
            _curve(history, lambda r, n=n: r.error and r.error.get(n), n, c)
            for n, c in zip(names, repeated(VARIABLES), strict=False)
        ]),
        _chart("loss", words.LOSS.title, "weighted mean squares at training points and at held-out points", [
            _curve(history, lambda r: r.loss, "training", FIRST),
            _curve(history, lambda r: r.held_out, "held out", SECOND, **dots),
        ]),
        _chart("residuals", words.RESIDUALS.title, "root mean square of each condition", [
            _curve(history, lambda r, m=m: math.sqrt(r.mean_squares[m]), n, c)
            for (m, n), c in zip(conditions, repeated(VARIABLES), strict=False)
        ]),
        _chart("ratio", words.RATIO.title, "actual over predicted decrease, and its target", [
            _curve(accepted, drawn_ratio, "ratio", FIRST, False, mode="markers", marker={"size": 4, "color": FIRST}),
            _curve(rejected, drawn_ratio, "rejected", GREY, False, **cross),
            _curve(history, lambda r: r.target, "target", SECOND, False, line={"color": SECOND, "shape": "hvh"}),
        ], RATIO),
        _chart("lambda", LAMBDA, "of accepted steps", [_curve(accepted, lambda r: r.lam, "λ", FIRST)]),
        _chart("radius", RADIUS, "crosses: rejected steps" if rejected else "of all steps", [
            _curve(history, lambda r: r.radius, "radius", FIRST),
            _curve(rejected, lambda r: r.radius, "rejected", GREY, **cross),
        ]),
        _chart("weights", words.WEIGHTS.title, "of the conditions in the loss; their mean is 1", [
            _curve(history, lambda r, m=m: r.weights[m], n, c)
            for (m, n), c in zip(conditions, repeated(VARIABLES), strict=False)
        ]),
    ]  # fmt: skip
    if len({r.points for r in history}) > 1:
        steps = _curve(history, lambda r: r.points, "points", FIRST, line={"color": FIRST, "shape": "hvh"})
        charts.append(_chart("points", "Training points", "of all conditions together", [steps], COUNT))
    lines = [_line(mark) for mark in run.marks]
    return [replace(chart, marks=lines) for chart in charts if chart is not None]


def _line(mark: Mark) -> dict[str, Any]:
    """A vertical line."""
    event = EVENTS[mark.kind]
    look = {"colour": event.variable, "dash": DASHES[event.dash]}
    return {"label": mark.label, "iteration": mark.at("iteration"), "seconds": mark.at("seconds"), **look}


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
    """Each quantity of several runs in one chart, with a colour for each run."""
    out = []
    for name, title, about, value, log in _OVERLAID:
        pairs = zip(runs.items(), repeated(VARIABLES), strict=False)
        curves = [_curve(run.history, value, label, colour, log) for (label, run), colour in pairs]
        out.append(_chart(name, title, about, curves, None if log else RATIO))
    return [replace(chart, legend=False) for chart in out if chart is not None]


# --- curves -----------------------------------------------------------------------------------------------------------


def _curve(
    history: Sequence[Record], value: Callable[[Record], Any], name: str, colour: str, log: bool = True, **style: Any
) -> Curve | None:
    """A curve through the iterations that have a value; None if none has."""
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


def log_axis(traces: Sequence[dict[str, Any]]) -> Axis:
    """A logarithmic axis for curves, with ticks at powers of ten where they span several."""
    values = [y for trace in traces for y in trace["y"]]
    decades = math.log10(max(values) / min(values)) if values else 0
    ticks = {"dtick": math.ceil(decades / 5)} if decades > 1.2 else {"nticks": 6}
    return {"type": "log", "exponentformat": "power", "fixedrange": True, **ticks}


def _in_words(traces: Sequence[dict[str, Any]]) -> str:
    """Where each curve begins and ends."""
    said = [
        f"{t['name']} from {number(t['y'][0])} at iteration {t['x'][0]} to {number(t['y'][-1])} at iteration {t['x'][-1]}"
        for t in traces
    ]
    return "; ".join(said)


_OVERLAID: tuple[tuple[str, str, str, Callable[[Record], float | None], bool], ...] = (
    ("error", words.ERROR.title, "ℓ₂, against the reference; the worst unknown", worst_error, True),
    ("loss", words.LOSS.title, "at training points", lambda r: r.loss, True),
    ("held-out", words.HELD_OUT.title, "at points that are not used for training", lambda r: r.held_out, True),
    ("lambda", LAMBDA, "of accepted steps", lambda r: r.lam if r.accepted else None, True),
    ("radius", RADIUS, "of all steps", lambda r: r.radius, True),
    ("ratio", words.RATIO.title, "actual over predicted decrease of accepted steps",
     lambda r: drawn_ratio(r) if r.accepted else None, False),
)  # fmt: skip
