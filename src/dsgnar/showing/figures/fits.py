"""Panels of inverse problems: functions with bands, data against the prediction, and residuals over their noise."""

import numpy as np
from matplotlib.axes import Axes

from dsgnar.showing.colours import BLACK, BLUE, ERRORS, GREY, VERMILION
from dsgnar.showing.figures.course import Panel
from dsgnar.showing.figures.style import label
from dsgnar.showing.fitted import OUT, Drawn, Fitted, drawn, fitted
from dsgnar.showing.words import mathtext
from dsgnar.solving.solution import Solution

RANGE = 4.5  # residuals over noise that are shown; what lies beyond is drawn at the ends


def rows(solution: Solution) -> list[list[Panel]]:
    """Rows of up to two functions, and a row for each set of data."""
    functions = [_function(one) for one in drawn(solution)]
    pairs = [functions[k : k + 2] for k in range(0, len(functions), 2)]
    return [*pairs, *(_row(solution, one) for one in fitted(solution))]


def _function(one: Drawn) -> Panel:
    if len(one.axes) == 1:
        return f"{mathtext(one.name)} with its 95 % band", lambda axis: _band(axis, one)
    return f"Standard error of {mathtext(one.name)} (%)", lambda axis: _errors(axis, one)


def _band(axis: Axes, one: Drawn) -> None:
    """A function of one axis; its band is empty where it is not determined."""
    (x,), (low, high) = one.grid, one.band.interval(0.95)
    axis.plot(x, one.band.found, color=GREY, lw=0.7, ls=(0, (3, 2)))
    axis.plot(x, one.band.value, color=BLUE, label=mathtext(one.name))
    known = one.band.determined
    axis.fill_between(x, low, high, where=known.tolist(), color=BLUE, alpha=0.3, lw=0, label="95 %")
    if not known.all():
        axis.plot([], [], color=GREY, lw=0.7, ls=(0, (3, 2)), label="not determined")
    axis.legend(loc="best")
    label(axis, mathtext(one.axes[0]), mathtext(one.name))


def _errors(axis: Axes, one: Drawn) -> None:
    """A function of two axes: where it is known how well, white where it is not determined."""
    mesh = axis.pcolormesh(*one.grid, one.percent.T, cmap=ERRORS, shading="nearest", rasterized=True)
    axis.figure.colorbar(mesh, cax=axis.inset_axes((1.02, 0, 0.03, 1))).outline.set_linewidth(0.4)
    axis.grid(False)
    label(axis, *map(mathtext, one.axes))


def _row(solution: Solution, one: Fitted) -> list[Panel]:
    axes = solution.problem.domain.axes
    first: Panel = (
        f"Data ({one.name}) and prediction",
        (lambda axis: _over(axis, one, axes[0])) if len(axes) == 1 else (lambda axis: _against(axis, one)),
    )
    return [first, ("Residuals over noise", lambda axis: _residuals(axis, one))]


def _over(axis: Axes, one: Fitted, coordinate: str) -> None:
    """Values and prediction over the only axis."""
    order = np.argsort(one.points[:, 0])
    x, predicted, band = one.points[order, 0], one.predicted[order], OUT * one.band[order]
    axis.errorbar(
        one.points[:, 0], one.values, OUT * one.noise, fmt="o", ms=2.2, lw=0.5, color=BLACK, label="data, 95 %"
    )
    axis.plot(x, predicted, color=BLUE, label="prediction")
    axis.fill_between(x, predicted - band, predicted + band, color=BLUE, alpha=0.3, lw=0, label="95 %")
    axis.legend(loc="best")
    label(axis, mathtext(coordinate), "value")


def _against(axis: Axes, one: Fitted) -> None:
    """What values differ by from predictions, with 95 % bands of their noise and bars of the predictions."""
    order = np.argsort(one.predicted)
    line, wide, narrow = (v[order] for v in (one.predicted, OUT * one.noise, OUT * one.band))
    axis.fill_between(line, -wide, wide, color=BLUE, alpha=0.15, lw=0, label="noise, 95 %")
    axis.vlines(line, -narrow, narrow, color=BLUE, lw=0.9, label="prediction, 95 %")
    axis.plot(one.predicted, one.values - one.predicted, "o", ms=2, color=BLACK, mew=0, alpha=0.7)
    axis.legend(loc="best", ncols=2)
    label(axis, "predicted", "measured - predicted")


def _residuals(axis: Axes, one: Fitted) -> None:
    edges = np.linspace(-RANGE, RANGE, 28)
    shown, width = np.clip(one.normalised, -RANGE, RANGE), edges[1] - edges[0]
    share = np.full(shown.size, 100 / shown.size)
    axis.hist(shown, edges.tolist(), weights=share, color=GREY, alpha=0.75, label="data")
    z = np.linspace(-RANGE, RANGE, 200)
    density = 100 * width * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    axis.plot(z, density, color=VERMILION, label="normal distribution")
    axis.legend(loc="upper left")
    label(axis, "(measured - predicted) / noise", "share of the data (%)")
