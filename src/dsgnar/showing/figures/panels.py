"""The upper panels of a solution page: the solution, its error, and where the error is (panels a to d of Appendix D)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize

from dsgnar.problem.domain import Box
from dsgnar.problem.region import Region
from dsgnar.showing import words
from dsgnar.showing.colours import BLACK, ERRORS, GREY, LINES, VERMILION, error_range, ticks, value_range
from dsgnar.showing.figures.course import Panel
from dsgnar.showing.figures.style import label
from dsgnar.showing.planes import Plane, Quantity, planes, quantities, values_on
from dsgnar.showing.quality import BINS, Quality, log_bins
from dsgnar.showing.words import mathtext, mathtext_tick, minus
from dsgnar.solving.solution import Solution

Vectors = Mapping[str, tuple[str, ...]]


def rows(solution: Solution, quality: Quality, vectors: Vectors, timed: list[Panel]) -> list[list[Panel]]:
    """Rows of panels: the solution, its error, and where the error is. `timed` is the panel over wall time, if any."""
    domain = solution.problem.domain
    if domain.dimension == 1:
        curves: Panel = ("Solution", lambda axis: _curves(axis, solution, quality))
        return [[curves, (_what(quality), lambda axis: _error_curves(axis, quality)), *timed]]
    where: list[Panel] = [_where(quality)]
    if domain.time is None or domain.dimension > 2:
        where.append((f"Distribution of the {quality.word}", lambda axis: _histogram(axis, quality)))
    shown = quantities(solution, vectors)
    cuts = planes(domain, quality.reference, most=3 if len(shown) == 1 else 1)
    above = [_solution_row(solution, quantity, cuts) for quantity in shown]
    below = _error_rows(quality, cuts)
    if len(cuts) > 1:
        return [*above, *below, timed + where]
    above, below = sum(above, []), sum(below, [])
    if len(shown) == 1:
        above, below = above + below, []
    if domain.time is None and len(above) == 2:  # square panels leave room for a third
        return [above + timed, below, where]
    return [above, below, timed + where]


# --- planes -----------------------------------------------------------------------------------------------------------


def _solution_row(solution: Solution, quantity: Quantity, cuts: Sequence[Plane]) -> list[Panel]:
    values = [quantity.of(values_on(solution, plane)) for plane in cuts]
    low, high, colours = value_range(values)
    norm = Normalize(low, high)

    def panel(plane: Plane, array: np.ndarray) -> Panel:
        def draw(axis: Axes) -> None:
            _mesh(axis, plane, array, norm, colours)
            if len(quantity.members) == 2:
                _streamlines(axis, solution, quantity.members, plane)

        return _title(quantity, plane), draw

    return [panel(plane, array) for plane, array in zip(cuts, values, strict=True)]


def _error_rows(quality: Quality, cuts: Sequence[Plane]) -> list[list[Panel]]:
    """A row for each unknown; nothing where the reference does not reach a plane."""
    found = [(plane, quality.on(plane)) for plane in cuts]
    rows = [[(plane, e[name]) for plane, e in found if e is not None and name in e] for name in quality.names]
    return [_error_row(quality, name, row) for name, row in zip(quality.names, rows, strict=True) if row]


def _error_row(quality: Quality, name: str, errors: Sequence[tuple[Plane, np.ndarray]]) -> list[Panel]:
    low, high = error_range([error for _, error in errors])
    norm = LogNorm(low, high)
    title = _what(quality) + (f" {mathtext(name)}" if len(quality.names) > 1 else "")

    def panel(plane: Plane, error: np.ndarray) -> Panel:
        return title + _at(plane), lambda axis: _mesh(axis, plane, np.maximum(error, low), norm, ERRORS)

    return [panel(plane, error) for plane, error in errors]


def _mesh(axis: Axes, plane: Plane, array: np.ndarray, norm: Any, colours: str) -> None:
    h, v = plane.grid[plane.horizontal], plane.grid[plane.vertical]
    mesh = axis.pcolormesh(h, v, array, norm=norm, cmap=colours, shading="nearest", rasterized=True)
    # In axes of its own the colour bar stays beside the picture, which equal scales may make narrower than its panel.
    bar = axis.inset_axes((1.03, 0, 0.06, 1) if plane.spatial else (1.02, 0, 0.03, 1))
    colorbar = axis.figure.colorbar(mesh, cax=bar)
    colorbar.outline.set_linewidth(0.4)
    if isinstance(norm, LogNorm):
        shown = ticks(*mesh.get_clim())
        bar.set_yticks([m * 10.0**k for m, k in shown], [mathtext_tick(m, k) for m, k in shown])
        bar.minorticks_off()
    axis.grid(False)
    if plane.spatial:
        axis.set(aspect="equal", anchor="W")
    axis.set(xlim=plane.domain.interval(plane.horizontal), ylim=plane.domain.interval(plane.vertical))
    label(axis, mathtext(plane.horizontal), mathtext(plane.vertical))


def _streamlines(axis: Axes, solution: Solution, members: tuple[str, ...], plane: Plane) -> None:
    even = plane.evenly()  # streamlines need even spacing
    values = {name: np.ma.masked_invalid(v) for name, v in values_on(solution, even).items()}
    h, v = even.grid[even.horizontal], even.grid[even.vertical]
    axis.streamplot(
        h, v, values[members[0]], values[members[1]], color="white", linewidth=0.5, arrowsize=0.5, density=1.3
    )


def _title(quantity: Quantity, plane: Plane) -> str:
    if len(quantity.members) > 1:
        return f"{quantity.name.capitalize()} and streamlines"
    return ("Slice of " if len(plane.fixed) > 2 else "Solution ") + mathtext(quantity.name) + _at(plane)


def _at(plane: Plane) -> str:
    """Where a plane cuts the other axes; in many dimensions all of them in the middle."""
    if len(plane.fixed) > 2:
        return ""
    return "".join(f", {mathtext(axis)} = {minus(f'{value:.3g}')}" for axis, value in plane.fixed.items())


# --- one dimension ----------------------------------------------------------------------------------------------------


def _curves(axis: Axes, solution: Solution, quality: Quality) -> None:
    (name,) = solution.problem.domain.axes
    x = np.linspace(*solution.problem.domain.interval(name), 1001)
    values = solution.at(x[:, None])
    for k, (unknown, colour) in enumerate(zip(solution.unknowns, LINES, strict=False)):
        axis.plot(x, values[:, k], color=colour, label=mathtext(unknown))
    if quality.reference is not None and not quality.estimated:
        order = np.argsort(quality.points[:, 0])
        for exact in quality.reference.values.values():
            axis.plot(quality.points[order, 0], exact[order], color=BLACK, ls=(0, (1, 2)), lw=0.9)
        axis.plot([], [], color=BLACK, ls=(0, (1, 2)), lw=0.9, label="reference")
    axis.legend(loc="best")
    label(axis, mathtext(name), ", ".join(map(mathtext, solution.unknowns)))


def _error_curves(axis: Axes, quality: Quality) -> None:
    order = np.argsort(quality.points[:, 0])
    for (name, error), colour in zip(quality.everywhere.items(), LINES, strict=False):
        axis.semilogy(
            quality.points[order, 0], np.maximum(error[order], 1e-300), color=colour, lw=0.7, label=mathtext(name)
        )
    if len(quality.names) > 1:
        axis.legend(loc="best")
    label(axis, mathtext(quality.solution.problem.domain.axes[0]), quality.word)


# --- where the error is -----------------------------------------------------------------------------------------------


def _where(quality: Quality) -> Panel:
    domain = quality.solution.problem.domain
    kind = quality.relative.capitalize()
    if domain.time is not None:
        return f"{kind} over time", lambda axis: _over_time(axis, quality)
    if domain.dimension <= 3:
        return f"{kind} over space", lambda axis: _over_space(axis, quality)
    return f"{_what(quality)} towards the boundary", lambda axis: _towards_boundary(axis, quality)


def _over_time(axis: Axes, quality: Quality) -> None:
    domain = quality.solution.problem.domain
    assert domain.time is not None
    for (name, (t, values)), colour in zip(quality.over_time().items(), LINES, strict=False):
        axis.semilogy(t, values, color=colour, label=mathtext(name))
    for end in quality.solution.march.times[1:-1]:
        axis.axvline(end, color=GREY, lw=0.7, zorder=1.5)
    if len(quality.names) > 1:
        axis.legend(loc="best")
    label(axis, mathtext(domain.time), _ratio_label(quality))


def _over_space(axis: Axes, quality: Quality) -> None:
    """Root mean square over the other axes, relative to that over the whole domain."""
    domain = quality.solution.problem.domain
    styles = ("-", "--", ":")
    for name, colour in zip(quality.names, LINES, strict=False):
        for space, style in zip(domain.axes, styles, strict=False):
            text = f"{mathtext(name)} over {mathtext(space)}" if name else f"over {mathtext(space)}"
            axis.semilogy(*quality.over(space, name), color=colour, ls=style, label=text)
    axis.legend(loc="best", ncols=len(quality.names))
    label(axis, ", ".join(map(mathtext, domain.axes)), _ratio_label(quality))


def _towards_boundary(axis: Axes, quality: Quality) -> None:
    """In many dimensions: the median of the error, and its 5 to 95 %, by the distance to the nearest face."""
    distance = _to_boundary(quality.solution.problem.domain, quality.points)
    edges = np.unique(np.quantile(distance, np.linspace(0, 1, BINS // 2 + 1)))
    which = np.searchsorted(edges[1:-1], distance, side="right")  # as many points in each bin
    centre = [distance[which == k].mean() for k in np.unique(which)]
    for (name, error), colour in zip(quality.everywhere.items(), LINES, strict=False):
        spread = [np.quantile(error[which == k], (0.05, 0.5, 0.95)) for k in np.unique(which)]
        low, middle, high = np.array(spread).T
        axis.fill_between(centre, low, high, color=colour, alpha=0.2, lw=0, label="5 to 95 %")
        axis.semilogy(centre, middle, color=colour, label=f"median {mathtext(name)}")
    axis.legend(loc="best")
    label(axis, "distance to the boundary (share of the domain)", quality.word)


def _to_boundary(domain: Box, points: np.ndarray) -> np.ndarray:
    """Distances to the nearest face, as shares of the domain; in a shape to its boundary, as shares of its size."""
    if isinstance(domain, Region):
        return -domain.shape.depth(points[:, : len(domain.shape.axes)], np) / domain.shape.size
    lower, upper = np.asarray(domain.bounds).T
    unit = (points - lower) / (upper - lower)
    return np.minimum(unit, 1 - unit).min(axis=1)


def _histogram(axis: Axes, quality: Quality) -> None:
    filled = len(quality.names) == 1
    for (name, error), colour in zip(quality.everywhere.items(), LINES, strict=False):
        edges = log_bins(error)
        if edges is not None:
            style: dict[str, Any] = dict(alpha=0.75) if filled else dict(histtype="step", lw=1.1, label=mathtext(name))
            axis.hist(error, edges.tolist(), weights=np.full(error.size, 100 / error.size), color=colour, **style)
            axis.axvline(error.max(), color=VERMILION if filled else colour, lw=0.9, ls="--")
    axis.plot([], [], color=VERMILION if filled else BLACK, lw=0.9, ls="--", label="largest")
    axis.set_xscale("log")
    axis.legend(loc="upper left")
    label(axis, quality.word, "share of points (%)")


def _ratio_label(quality: Quality) -> str:
    return words.ERROR.symbol if quality.reference is not None else "root mean square residual"


def _what(quality: Quality) -> str:
    return quality.word.capitalize()
