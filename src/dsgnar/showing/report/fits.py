"""The part of the page about inverse problems: coefficients and functions with error bars, data against the prediction."""

import html

import numpy as np

from dsgnar.showing.colours import VARIABLES
from dsgnar.showing.fitted import OUT, Drawn, Fitted, drawn, fitted
from dsgnar.showing.report.charts import Chart, rounded
from dsgnar.showing.report.markup import escape, paragraph, scrolling
from dsgnar.showing.words import NOTHING, html_powers, html_symbol, number
from dsgnar.solving.coefficients import Account, Estimated, Inference
from dsgnar.solving.solution import Solution

MOST = 2000  # points of a chart


def tables(found: Inference | None) -> str:
    """Coefficients and fits of data as tables; nothing for other problems."""
    if found is None:
        return ""
    out = []
    if found.coefficients:
        heads = ("coefficient", "value", "standard error", "95 % interval")
        rows = [_row(html_symbol(name), *_cells(c)) for name, c in found.coefficients.items()]
        out.append(scrolling("Coefficients", "certificate", _head(heads), rows))
        flat = [name for name, c in found.coefficients.items() if not c.determined]
        if flat:
            why = found.coefficients[flat[0]].why
            out.append(paragraph(f"<strong>Not determined:</strong> {escape(', '.join(flat))}. {escape(why)}."))
        out.append(_correlations(found))
    if found.functions:
        heads = ("function", "standard error, median", "largest", "not determined")
        rows = [_row(html_symbol(name), *_account(account)) for name, account in found.functions.items()]
        out.append(scrolling("Functions", "certificate", _head(heads), rows))
    if found.fits:
        heads = ("data", "values", "misfit", "noise", "misfit / noise", "degrees of freedom")
        rows = []
        for name, f in found.fits.items():
            noise = number(f.noise) + ("" if f.given else " (estimated)")
            cells = (str(f.count), number(f.misfit), noise, number(f.misfit / f.noise), number(f.freedom, 3))
            rows.append(_row(escape(name), *cells))
        out.append(scrolling("Data", "certificate", _head(heads), rows))
    return f'<div class="stack">{"".join(out)}</div>'


def _cells(c: Estimated) -> tuple[str, ...]:
    if not c.determined:
        return "not determined", NOTHING, NOTHING
    if c.standard_error is None:
        return number(c.found, 5), NOTHING, NOTHING
    low, high = c.interval()
    return number(c.found, 5), number(c.standard_error), f"{number(low, 3)} to {number(high, 3)}"


def _account(account: Account) -> tuple[str, ...]:
    shares = (account.median, account.largest)
    cells = [NOTHING if share is None else f"{number(100 * share)} %" for share in shares]
    place = f" ({account.where})" if account.where else ""
    return *cells, f"{number(100 * account.undetermined)} %{escape(place)}" if account.undetermined else "nowhere"


def _correlations(found: Inference) -> str:
    names = [name for name, c in found.coefficients.items() if c.determined]
    if found.covariance is None or len(names) < 2:
        return ""
    which = [list(found.coefficients).index(name) for name in names]
    covariance = found.covariance[np.ix_(which, which)]
    size = np.sqrt(np.diag(covariance))
    correlation = covariance / np.outer(size, size)
    pairs = [
        f"{names[i]} and {names[j]} {number(float(correlation[i, j]))}" for i in range(len(names)) for j in range(i)
    ]
    return paragraph(f"Correlations of the estimates: {escape(', '.join(pairs))}.", "muted")


def _head(texts: tuple[str, ...]) -> str:
    return "".join(f'<th scope="col"{" class=number" if k else ""}>{text}</th>' for k, text in enumerate(texts))


def _row(name: str, *cells: str) -> str:
    numbers = "".join(f'<td class="number">{html_powers(cell)}</td>' for cell in cells)
    return f'<tr><th scope="row">{name}</th>{numbers}</tr>'


def charts(solution: Solution) -> list[Chart]:
    """Functions with their error bars, and data against the prediction: a chart for each."""
    functions = [_band(one) if len(one.axes) == 1 else _errors(one) for one in drawn(solution)]
    return functions + [_chart(solution, one) for one in fitted(solution)]


def _band(one: Drawn) -> Chart:
    """A function of one axis."""
    (x,), (low, high), known = one.grid, one.band.interval(0.95), one.band.determined
    line = {"color": VARIABLES[0], "width": 1.6}
    common = {"type": "scatter", "mode": "lines", "x": rounded(x)}
    ends = [_gaps(np.where(known, end, np.nan)) for end in (low, high)]
    traces = [
        common | {"name": html_symbol(one.name), "y": rounded(one.band.found), "line": line},
        *(common | {"name": "95 %", "y": end, "line": line | {"width": 0.8, "dash": "dot"}} for end in ends),
    ]
    layout = {"xaxis": {"title": {"text": html_symbol(one.axes[0])}}, "yaxis": {"nticks": 6}, "hovermode": "closest"}
    about = "dotted: the 95 % band; none where data do not determine the function"
    said = f"{one.name} between {number(float(one.band.found.min()))} and {number(float(one.band.found.max()))}"
    return Chart(f"band-{one.name}", f"{html_symbol(one.name)} and its 95 % band", about, traces, layout, said)


def _errors(one: Drawn) -> Chart:
    """A function of two axes: its standard error."""
    rows = [_gaps(row) for row in one.percent.T]
    bar = {"thickness": 10, "outlinewidth": 0, "ticklen": 3, "nticks": 6}
    trace = {"type": "heatmap", "x": rounded(one.grid[0]), "y": rounded(one.grid[1]), "z": rows, "colorbar": bar}
    names = [{"title": {"text": html_symbol(axis)}} for axis in one.axes]
    layout = {"xaxis": names[0], "yaxis": names[1], "hovermode": "closest"}
    median = np.nanmedian(one.percent) if one.band.determined.any() else np.nan
    said = f"median {number(float(median))} %"
    about = f"in per cent; white where data do not determine it; {said}"
    return Chart(f"band-{one.name}", f"Standard error of {html_symbol(one.name)}", about, [trace], layout, said)


def _gaps(values: np.ndarray) -> list[float | None]:
    """Numbers for the page, with nothing where there is none."""
    return [float(f"{v:.6g}") if np.isfinite(v) else None for v in values]


def _chart(solution: Solution, one: Fitted) -> Chart:
    axes = solution.problem.domain.axes
    curve = len(axes) == 1  # else what values differ by from predictions, over these
    over, text = (one.points[:, 0], html_symbol(axes[0])) if curve else (one.predicted, "predicted")
    order = np.argsort(over)[:: -(-len(over) // MOST)]
    base = np.zeros_like(one.predicted) if curve else one.predicted
    x, middle, values = over[order], (one.predicted - base)[order], (one.values - base)[order]
    wide = OUT * (one.band if curve else one.noise)[order]
    line = {"color": VARIABLES[0], "width": 1.6}
    thin = line | {"width": 0.8, "dash": "dot"}
    traces = [
        {"type": "scatter", "mode": "lines", "name": "prediction", "x": rounded(x), "y": rounded(middle), "line": line},
        {
            "type": "scatter", "mode": "lines", "name": "95 %", "x": rounded([*x, *x[::-1]]),
            "y": rounded([*(middle + wide), *(middle - wide)[::-1]]), "line": thin,
        },
        {
            "type": "scatter", "mode": "markers", "name": "data", "x": rounded(x), "y": rounded(values),
            "marker": {"color": VARIABLES[1], "size": 4},
        },
    ]  # fmt: skip
    side = {} if curve else {"title": {"text": "measured − predicted"}}
    layout = {"xaxis": {"title": {"text": text}}, "yaxis": {"nticks": 6} | side, "hovermode": "closest"}
    inside = float(np.mean(np.abs(one.normalised) <= OUT))
    about = "dotted: the 95 % band of the prediction" if curve else "dotted: 95 % of the noise"
    said = f"{len(one.values)} values, of which {100 * inside:.0f} % lie within 1.96 standard deviations of the noise"
    return Chart(f"fit-{one.name}", f"Data ({html.escape(one.name)}) and prediction", about, traces, layout, said)
