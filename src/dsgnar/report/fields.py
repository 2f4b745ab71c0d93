"""What is drawn of a solution: itself and its error on planes of the domain, and where the error is.

Without a reference the residual of the equations stands for the error, as on the figures' pages.
"""

import base64
import html
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import to_hex

from dsgnar.figures.panels import BINS, DECADES, Quantity, mean_squares, quantities
from dsgnar.figures.planes import Plane, Quality, planes
from dsgnar.figures.style import DIVERGING, ERRORS, SEQUENTIAL
from dsgnar.report.charts import COLOURS, Chart, log_axis, rounded, symbol
from dsgnar.report.facts import number

LARGEST = 200  # points on each axis of a plane: what a screen shows, and a file of moderate size


def charts(quality: Quality) -> list[Chart]:
    """Solution and error of every unknown, then the error over time, or its distribution."""
    solution, domain = quality.solution, quality.solution.problem.domain
    if domain.dimension == 1:
        return _lines(quality)
    cuts = planes(domain, quality.reference, most=3 if len(solution.unknowns) == 1 else 1)
    wrong = {name: errors({"": quality}, name, cuts) for name in quality.names}
    out = []
    for name in solution.unknowns:
        both = zip_longest(_solutions(quality, Quantity(name, (name,)), cuts), wrong.pop(name, []))
        out += [chart for pair in both for chart in pair if chart is not None]
    for rest in wrong.values():  # of the equations together, where there is no reference
        out += rest
    vectors = {} if quality.reference is None else quality.reference.groups
    for quantity in quantities(solution, vectors):
        if len(quantity.members) > 1:
            out += _solutions(quality, quantity, cuts)
    return out + _where(quality)


def _solutions(quality: Quality, quantity: Quantity, cuts: Sequence[Plane]) -> list[Chart]:
    solution, found = quality.solution, []
    for plane in cuts:
        values = solution.at(plane.points).astype(np.float64)
        found.append(quantity.of({n: values[:, k].reshape(plane.shape) for k, n in enumerate(solution.unknowns)}))
    low, high = float(min(v.min() for v in found)), float(max(v.max() for v in found))
    if low < 0 < high:
        low, high, colours = -max(-low, high), max(-low, high), DIVERGING
    else:
        colours = SEQUENTIAL
    out = []
    for k, (plane, values) in enumerate(zip(cuts, found, strict=True)):
        shown = symbol(quantity.name)
        trace = _heat_map(plane, values, low, high, colours) | {"hovertemplate": _hover(plane, f"{shown} = %{{z:.5g}}")}
        title = f"Solution {shown}" if len(quantity.members) == 1 else f"Magnitude of {shown}"
        words = f"{quantity.name} between {number(float(values.min()))} and {number(float(values.max()))}"
        out.append(Chart(f"solution-{quantity.name}-{k}", title, _at(plane), [trace], _layout(plane), words))
    return out


def errors(qualities: Mapping[str, Quality], name: str, cuts: Sequence[Plane]) -> list[Chart]:
    """The absolute error of an unknown on planes, for one run or for several on one scale of colours."""
    found = []
    for label, quality in qualities.items():
        found += [(label, quality, p, f[name]) for p in cuts if (f := quality.on(p)) is not None and name in f]
    if not found:
        return []
    top = max(max(float(a.max()) for *_, a in found), 1e-300)
    low = min(max(float(np.quantile(a, 0.01)), float(a.max()) * 10.0**-DECADES, 1e-300) for *_, a in found)
    low = np.log10(low)
    out = []
    for k, (label, quality, plane, error) in enumerate(found):
        word = "Error" if quality.reference is not None else "Residual"
        shown = f"|{word.lower()} {symbol(name)}|" if name else "|residual|"
        trace = _heat_map(plane, error, low, np.log10(top), ERRORS)
        trace |= {"logarithmic": True, "hovertemplate": _hover(plane, shown + " = %{customdata:.2e}")}
        trace["colorbar"] |= _decades(low, np.log10(top))
        words = f"largest {number(float(error.max()))}, median {number(float(np.median(error)))}"
        title = html.escape(label) or (f"Absolute error of {symbol(name)}" if name else "Residual of the equations")
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
    """Ticks of a logarithmic colour bar."""
    steps = (1, 2, 5) if high - low < 2 else (1,)
    ticks = [(k, m) for k in range(int(np.floor(low)), int(np.ceil(high)) + 1) for m in steps]
    inside = [(k + np.log10(m), k, m) for k, m in ticks if low - 1e-9 <= k + np.log10(m) <= high + 1e-9]
    text = [f"{'' if m == 1 else f'{m}·'}10<sup>{k}</sup>".replace("-", "−") for _, k, m in inside]
    return {"tickvals": [float(x) for x, *_ in inside], "ticktext": text}


def _hover(plane: Plane, value: str) -> str:
    at = (f"{symbol(plane.horizontal)} = %{{x:.4g}}", f"{symbol(plane.vertical)} = %{{y:.4g}}")
    return "<br>".join((*at, value)) + "<extra></extra>"


def _layout(plane: Plane) -> dict[str, Any]:
    out = {
        "xaxis": {"title": {"text": symbol(plane.horizontal)}, "range": list(plane.domain.interval(plane.horizontal))},
        "yaxis": {"title": {"text": symbol(plane.vertical)}, "range": list(plane.domain.interval(plane.vertical))},
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
    series = [(n, x, values[:, k]) for k, n in enumerate(solution.unknowns)]
    order = np.argsort(quality.points[:, 0])
    wrong = [(n, quality.points[order, 0], v[order]) for n, v in quality.everywhere.items()]
    return [
        _over("solution-curves", "Solution", "", axis, series, log=False),
        _over("error-curves", _word(quality), "at the reference's points" if quality.reference else "", axis, wrong),
    ]


# --- where the error is -----------------------------------------------------------------------------------------------


def _where(quality: Quality) -> list[Chart]:
    domain = quality.solution.problem.domain
    if domain.dimension > 2:
        return _distribution(quality)
    if domain.time is None:
        return []
    t, series = quality.points[:, domain.index(domain.time)], []
    for name, error in quality.everywhere.items():
        centre, above = mean_squares(t, error)
        _, below = mean_squares(t, quality.scale[name])
        series.append((name, centre, np.sqrt(above / below)))
    about = "relative ℓ₂ error at each instant" if quality.reference else "root mean square residual at each instant"
    return [_over("over-time", f"{_word(quality)} over time {symbol(domain.time)}", about, domain.time, series)]


def _distribution(quality: Quality) -> list[Chart]:
    traces = []
    for (name, error), colour in zip(quality.everywhere.items(), COLOURS, strict=False):
        positive = error[error > 0]
        if not positive.size:
            continue
        edges = np.geomspace(np.quantile(positive, 1e-3), positive.max() * 1.01, BINS)
        counts, _ = np.histogram(positive, edges)
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
    title = f"Distribution of the {_word(quality).lower()}"
    return [Chart("distribution", title, about, traces, layout, words)] if traces else []


def _over(name: str, title: str, about: str, axis: str, series: list, log: bool = True) -> Chart:
    """Curves over a coordinate."""
    traces = []
    for (unknown, x, y), colour in zip(series, COLOURS, strict=False):
        drawable = np.flatnonzero(np.isfinite(y) & ((y > 0) | (not log)))
        kept = drawable[:: -(-len(drawable) // 1000) or 1]
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": symbol(unknown),
                "x": rounded(x[kept]),
                "y": rounded(y[kept]),
                "line": {"color": colour, "width": 1.6},
                "hovertemplate": "%{y:.2e}" if log else "%{y:.5g}",
            }
        )
    layout = {
        "xaxis": {"title": {"text": symbol(axis)}, "unifiedhovertitle": {"text": f"{symbol(axis)} = %{{x:.4g}}"}},
        "yaxis": log_axis(traces) if log else {"nticks": 6},
        "hovermode": "x unified",
    }
    words = "; ".join(
        f"{n or 'residual'} between {number(float(y.min()))} and {number(float(y.max()))}" for n, _, y in series
    )
    return Chart(name, title, about, traces, layout, words)


def _word(quality: Quality) -> str:
    return "Error" if quality.reference is not None else "Residual"
