"""Charts of a solution: its values and errors on planes of the domain, and where the error is.

Without a reference they show the residual of the equations in place of the error, as the figures do.
"""

import base64
import html
import math
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import to_hex

from dsgnar.showing.colours import ERRORS, VARIABLES, error_range, ticks, value_range
from dsgnar.showing.planes import Plane, Quantity, planes, quantities, values_on
from dsgnar.showing.quality import Curve, Quality, log_bins
from dsgnar.showing.report.charts import Chart, log_axis, rounded
from dsgnar.showing.words import html_symbol, minus, number

LARGEST = 200  # points on each axis of a plane: as many as a screen shows, in a file of moderate size
SMOOTH = 1000  # points of a curve over a coordinate


def charts(quality: Quality) -> list[Chart]:
    """Solution and error of every unknown, then the error over time or its distribution."""
    solution, domain = quality.solution, quality.solution.problem.domain
    if domain.dimension == 1:
        return _lines(quality)
    cuts = planes(domain, quality.reference, most=3 if len(solution.unknowns) == 1 else 1)
    wrong = {name: errors({"": quality}, name, cuts) for name in quality.names}
    out = []
    for name in solution.unknowns:
        both = zip_longest(_solutions(quality, Quantity(name, (name,)), cuts), wrong.pop(name, []))
        out += [chart for pair in both for chart in pair if chart is not None]
    for rest in wrong.values():  # of the equations together, where no error is known
        out += rest
    vectors = {} if quality.reference is None else quality.reference.groups
    for quantity in quantities(solution, vectors):
        if len(quantity.members) > 1:
            out += _solutions(quality, quantity, cuts)
    return out + _where(quality)


def _solutions(quality: Quality, quantity: Quantity, cuts: Sequence[Plane]) -> list[Chart]:
    found = [quantity.of(values_on(quality.solution, plane)) for plane in cuts]
    low, high, colours = value_range(found)
    out = []
    for k, (plane, values) in enumerate(zip(cuts, found, strict=True)):
        shown = html_symbol(quantity.name)
        trace = _heat_map(plane, values, low, high, colours) | {"hovertemplate": _hover(plane, f"{shown} = %{{z:.5g}}")}
        title = f"Solution {shown}" if len(quantity.members) == 1 else f"Magnitude of {shown}"
        words = f"{quantity.name} between {number(float(np.nanmin(values)))} and {number(float(np.nanmax(values)))}"
        out.append(Chart(f"solution-{quantity.name}-{k}", title, _at(plane), [trace], _layout(plane), words))
    return out


def errors(qualities: Mapping[str, Quality], name: str, cuts: Sequence[Plane]) -> list[Chart]:
    """The absolute error of an unknown on planes, for one run or for several on one scale of colours."""
    found = []
    for label, quality in qualities.items():
        found += [(label, quality, p, f[name]) for p in cuts if (f := quality.on(p)) is not None and name in f]
    if not found:
        return []
    low, high = np.log10(error_range([error for *_, error in found]))
    out = []
    for k, (label, quality, plane, error) in enumerate(found):
        shown = f"{quality.word} of {html_symbol(name)}" if name else quality.word
        trace = _heat_map(plane, error, low, high, ERRORS)
        trace |= {"logarithmic": True, "hovertemplate": _hover(plane, shown + " = %{customdata:.2e}")}
        trace["colorbar"] |= _decades(low, high)
        words = f"maximum {number(float(np.nanmax(error)))}, median {number(float(np.nanmedian(error)))}"
        title = html.escape(label) or (f"{quality.word.capitalize()} of {html_symbol(name) or 'the equations'}")
        about = ", ".join(part for part in (_at(plane), words) if part)
        out.append(Chart(f"error-{name}-{k}", title, about, [trace], _layout(plane), words))
    return out


def _heat_map(plane: Plane, values: np.ndarray, low: float, high: float, colours: str) -> dict[str, Any]:
    every = tuple(-(-size // LARGEST) for size in plane.shape)
    thin = np.ascontiguousarray(values[:: every[0], :: every[1]], "<f4")
    return {
        "type": "heatmap",
        "x": rounded(plane.grid[plane.horizontal][:: every[1]]),
        "y": rounded(plane.grid[plane.vertical][:: every[0]]),
        "z": {"float32": base64.b64encode(thin.tobytes()).decode(), "columns": thin.shape[1]},
        "zmin": float(low),
        "zmax": float(high),
        "colorscale": _colours(colours),
        "colorbar": {"thickness": 10, "outlinewidth": 0, "ticklen": 3, "nticks": 6, "exponentformat": "power"},
    }


def _colours(name: str) -> list[list]:
    """A colour map of the figures for plotly.js."""
    colours, at = colormaps[name], np.linspace(0, 1, 17)
    return [[float(x), to_hex(colours(x))] for x in at]


def _decades(low: float, high: float) -> dict[str, Any]:
    """Ticks of a colour bar over logarithms."""
    shown = ticks(10**low, 10**high)
    text = [f"{'' if m == 1 else f'{m}·'}10<sup>{minus(k)}</sup>" for m, k in shown]
    return {"tickvals": [math.log10(m) + k for m, k in shown], "ticktext": text}


def _hover(plane: Plane, value: str) -> str:
    at = (f"{html_symbol(plane.horizontal)} = %{{x:.4g}}", f"{html_symbol(plane.vertical)} = %{{y:.4g}}")
    return "<br>".join((*at, value)) + "<extra></extra>"


def _layout(plane: Plane) -> dict[str, Any]:
    out = {
        "xaxis": {
            "title": {"text": html_symbol(plane.horizontal)},
            "range": list(plane.domain.interval(plane.horizontal)),
        },
        "yaxis": {"title": {"text": html_symbol(plane.vertical)}, "range": list(plane.domain.interval(plane.vertical))},
        "hovermode": "closest",
    }
    if plane.spatial:
        out["yaxis"] |= {"scaleanchor": "x", "constrain": "domain"}
        out["xaxis"] |= {"constrain": "domain"}
    return out


def _at(plane: Plane) -> str:
    """Where a plane cuts the other axes."""
    if len(plane.fixed) > 2:
        return "all other coordinates in the middle"
    return ", ".join(f"{axis} = {number(value)}" for axis, value in plane.fixed.items())


# --- one axis ---------------------------------------------------------------------------------------------------------


def _lines(quality: Quality) -> list[Chart]:
    solution = quality.solution
    (axis,) = solution.problem.domain.axes
    x = np.linspace(*solution.problem.domain.interval(axis), 501)
    values = solution.at(x[:, None]).astype(np.float64)
    curves = {name: (x, values[:, k]) for k, name in enumerate(solution.unknowns)}
    order = np.argsort(quality.points[:, 0])
    wrong = {name: (quality.points[order, 0], error[order]) for name, error in quality.everywhere.items()}
    about = "at the points of the reference" if quality.reference and not quality.estimated else ""
    return [
        _over("solution-curves", "Solution", "", axis, curves, log=False),
        _over("error-curves", quality.word.capitalize(), about, axis, wrong),
    ]


# --- where the error is -----------------------------------------------------------------------------------------------


def _where(quality: Quality) -> list[Chart]:
    domain = quality.solution.problem.domain
    if domain.dimension > 2:
        return _distribution(quality)
    if domain.time is None:
        return []
    about = "root mean square at each time"
    if quality.reference is not None:
        about = "relative ℓ₂ error at each time"
    title = f"{quality.relative.capitalize()} over time {html_symbol(domain.time)}"
    return [_over("over-time", title, about, domain.time, quality.over_time())]


def _distribution(quality: Quality) -> list[Chart]:
    traces = []
    for (name, error), colour in zip(quality.everywhere.items(), VARIABLES, strict=False):
        edges = log_bins(error)
        if edges is None:
            continue
        counts, _ = np.histogram(error, edges)
        traces.append(
            {
                "type": "bar",
                "name": html.escape(name),
                "x": rounded(np.sqrt(edges[1:] * edges[:-1])),
                "y": rounded(100 * counts / error.size),
                "width": rounded(np.diff(edges)),
                "marker": {"color": colour},
                "hovertemplate": "near %{x:.1e}: %{y:.1f} % of the points<extra></extra>",
            }
        )
    layout = {
        "xaxis": {"type": "log", "exponentformat": "power", "dtick": 1},
        "yaxis": {"ticksuffix": " %"},
        "hovermode": "closest",
    }
    words = "; ".join(
        f"{name or 'residual'} at most {number(float(e.max()))}" for name, e in quality.everywhere.items()
    )
    about = f"share of {len(quality.points):,} points"
    title = f"Distribution of the {quality.word}"
    return [Chart("distribution", title, about, traces, layout, words)] if traces else []


def _over(name: str, title: str, about: str, axis: str, curves: Mapping[str, Curve], log: bool = True) -> Chart:
    """Curves over a coordinate."""
    traces, said = [], []
    for (unknown, (x, y)), colour in zip(curves.items(), VARIABLES, strict=False):
        drawable = np.flatnonzero(np.isfinite(y) & ((y > 0) | (not log)))
        kept = drawable[:: -(-len(drawable) // SMOOTH) or 1]
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": html_symbol(unknown),
                "x": rounded(x[kept]),
                "y": rounded(y[kept]),
                "line": {"color": colour, "width": 1.6},
                "hovertemplate": "%{y:.2e}" if log else "%{y:.5g}",
            }
        )
        said.append(f"{unknown or 'residual'} between {number(float(np.nanmin(y)))} and {number(float(np.nanmax(y)))}")
    symbol = html_symbol(axis)
    layout = {
        "xaxis": {"title": {"text": symbol}, "unifiedhovertitle": {"text": f"{symbol} = %{{x:.4g}}"}},
        "yaxis": log_axis(traces) if log else {"nticks": 6},
        "hovermode": "x unified",
    }
    return Chart(name, title, about, traces, layout, "; ".join(said))
