"""The upper panels of a solution page: the solution, how wrong it is, and where (panels a to d of Appendix D)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize

from dsgnar.figures.course import Panel
from dsgnar.figures.planes import Plane, Quality, planes
from dsgnar.figures.style import BLACK, DIVERGING, ERRORS, LINES, SEQUENTIAL, VERMILION, label, maths
from dsgnar.solution import Solution

BINS = 40
DECADES = 4  # of error that a colour map spans below the largest
FAINT = 0.05  # of the larger sign: values of the other sign below it do not ask for a diverging colour map

Vectors = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, eq=False)
class Quantity:
    """What is drawn of a solution: an unknown, or the length of a vector of unknowns."""

    name: str
    members: tuple[str, ...]

    def of(self, values: Mapping[str, np.ndarray]) -> np.ndarray:
        if len(self.members) == 1:
            return values[self.members[0]]
        return np.sqrt(sum(values[m] ** 2 for m in self.members))


def quantities(solution: Solution, vectors: Vectors) -> list[Quantity]:
    """Vectors with as many members as the two axes of space that a plane shows, then the unknowns that are in none."""
    flows = {
        name: members for name, members in vectors.items() if len(members) == len(solution.problem.domain.space) == 2
    }
    taken = {m for members in flows.values() for m in members}
    out = [Quantity(name, members) for name, members in flows.items()]
    return out + [Quantity(name, (name,)) for name in solution.unknowns if name not in taken]


def rows(solution: Solution, quality: Quality, vectors: Vectors, timed: list[Panel]) -> list[list[Panel]]:
    """Rows of panels: the solution, its error, and when and where the error is (`timed`: over wall time)."""
    domain = solution.problem.domain
    if domain.dimension == 1:
        curves: Panel = ("Solution", lambda axis: _curves(axis, solution, quality))
        return [[curves, (_what(quality), lambda axis: _error_curves(axis, quality)), *timed]]
    where: list[Panel] = [_where(quality)]
    if domain.time is None or domain.dimension > 2:
        where.append((f"Distribution of the {_word(quality)}", lambda axis: _histogram(axis, quality)))
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
    values = [quantity.of(_values(solution, plane)) for plane in cuts]
    low, high = min(v.min() for v in values), max(v.max() for v in values)
    if min(-low, high) > FAINT * max(-low, high):
        norm, colours = Normalize(-max(-low, high), max(-low, high)), DIVERGING
    else:
        norm, colours = Normalize(low, high), SEQUENTIAL

    def panel(plane: Plane, array: np.ndarray) -> Panel:
        def draw(axis: Axes) -> None:
            _mesh(axis, plane, array, norm, colours)
            if len(quantity.members) == 2:
                _streamlines(axis, solution, quantity.members, plane)

        return _title(quantity, plane), draw

    return [panel(plane, array) for plane, array in zip(cuts, values, strict=True)]


def _values(solution: Solution, plane: Plane) -> dict[str, np.ndarray]:
    values = solution.at(plane.points).astype(np.float64)
    return {name: values[:, k].reshape(plane.shape) for k, name in enumerate(solution.unknowns)}


def _error_rows(quality: Quality, cuts: Sequence[Plane]) -> list[list[Panel]]:
    """A row for each unknown; nothing where the reference does not reach a plane."""
    found = [(plane, quality.on(plane)) for plane in cuts]
    rows = [[(plane, e[name]) for plane, e in found if e is not None and name in e] for name in quality.names]
    return [_error_row(quality, name, row) for name, row in zip(quality.names, rows, strict=True) if row]


def _error_row(quality: Quality, name: str, errors: Sequence[tuple[Plane, np.ndarray]]) -> list[Panel]:
    top = max(1e-300, *(error.max() for _, error in errors))
    usual = min(np.quantile(error, 0.01) for _, error in errors)
    low = min(max(usual, top * 10.0**-DECADES), top / 10)
    norm = LogNorm(low, top)
    title = _what(quality) + (f" {maths(name)}" if len(quality.names) > 1 else "")

    def panel(plane: Plane, error: np.ndarray) -> Panel:
        return title + _at(plane), lambda axis: _mesh(axis, plane, np.maximum(error, low), norm, ERRORS)

    return [panel(plane, error) for plane, error in errors]


def _mesh(axis: Axes, plane: Plane, array: np.ndarray, norm: Any, colours: str) -> None:
    h, v = plane.grid[plane.horizontal], plane.grid[plane.vertical]
    mesh = axis.pcolormesh(h, v, array, norm=norm, cmap=colours, shading="nearest", rasterized=True)
    # A colour bar inside its own axes keeps to the picture where equal scales leave room beside it.
    bar = axis.inset_axes((1.03, 0, 0.06, 1) if plane.spatial else (1.02, 0, 0.03, 1))
    colorbar = axis.figure.colorbar(mesh, cax=bar)
    colorbar.outline.set_linewidth(0.4)
    if isinstance(norm, LogNorm):
        bar.minorticks_off()
    axis.grid(False)
    if plane.spatial:
        axis.set(aspect="equal", anchor="W")
    axis.set(xlim=plane.domain.interval(plane.horizontal), ylim=plane.domain.interval(plane.vertical))
    label(axis, maths(plane.horizontal), maths(plane.vertical))


def _streamlines(axis: Axes, solution: Solution, members: tuple[str, ...], plane: Plane) -> None:
    even = plane.evenly()  # streamlines need even spacing
    values = _values(solution, even)
    h, v = even.grid[even.horizontal], even.grid[even.vertical]
    axis.streamplot(
        h, v, values[members[0]], values[members[1]], color="white", linewidth=0.5, arrowsize=0.5, density=1.3
    )


def _title(quantity: Quantity, plane: Plane) -> str:
    if len(quantity.members) > 1:
        return f"{quantity.name.capitalize()} and streamlines"
    return ("Slice of " if len(plane.fixed) > 2 else "Solution ") + maths(quantity.name) + _at(plane)


def _at(plane: Plane) -> str:
    """Where a plane cuts the other axes; in many dimensions all of them in the middle."""
    if len(plane.fixed) > 2:
        return ""
    return "".join(f", {maths(axis)} $= {value:.3g}$" for axis, value in plane.fixed.items())


# --- one dimension ----------------------------------------------------------------------------------------------------


def _curves(axis: Axes, solution: Solution, quality: Quality) -> None:
    (name,) = solution.problem.domain.axes
    x = np.linspace(*solution.problem.domain.interval(name), 1001)
    values = solution.at(x[:, None])
    for k, (unknown, colour) in enumerate(zip(solution.unknowns, LINES, strict=False)):
        axis.plot(x, values[:, k], color=colour, label=maths(unknown))
    if quality.reference is not None:
        order = np.argsort(quality.points[:, 0])
        for exact in quality.reference.values.values():
            axis.plot(quality.points[order, 0], exact[order], color=BLACK, ls=(0, (1, 2)), lw=0.9)
        axis.plot([], [], color=BLACK, ls=(0, (1, 2)), lw=0.9, label="reference")
    axis.legend(loc="best")
    label(axis, maths(name), ", ".join(map(maths, solution.unknowns)))


def _error_curves(axis: Axes, quality: Quality) -> None:
    order = np.argsort(quality.points[:, 0])
    for (name, error), colour in zip(quality.everywhere.items(), LINES, strict=False):
        axis.semilogy(
            quality.points[order, 0], np.maximum(error[order], 1e-300), color=colour, lw=0.7, label=maths(name)
        )
    if len(quality.names) > 1:
        axis.legend(loc="best")
    label(axis, maths(quality.solution.problem.domain.axes[0]), _word(quality))


# --- where the error is -----------------------------------------------------------------------------------------------


def _where(quality: Quality) -> Panel:
    domain = quality.solution.problem.domain
    kind = "Relative error" if quality.reference is not None else "Residual"
    if domain.time is not None:
        return f"{kind} over time", lambda axis: _over_time(axis, quality)
    if domain.dimension <= 3:
        return f"{kind} over space", lambda axis: _over_space(axis, quality)
    return f"{_what(quality)} towards the boundary", lambda axis: _towards_boundary(axis, quality)


def _over_time(axis: Axes, quality: Quality) -> None:
    domain = quality.solution.problem.domain
    assert domain.time is not None
    t = quality.points[:, domain.index(domain.time)]
    for (name, error), colour in zip(quality.everywhere.items(), LINES, strict=False):
        centre, above = mean_squares(t, error)
        _, below = mean_squares(t, quality.scale[name])
        axis.semilogy(centre, np.sqrt(above / below), color=colour, label=maths(name))
    for end in quality.solution.march.times[1:-1]:
        axis.axvline(end, color="#8a8a8a", lw=0.7, zorder=0.5)
    _finish(axis, quality, maths(domain.time))


def _over_space(axis: Axes, quality: Quality) -> None:
    """Root mean square over the other axes, relative to that over the whole domain."""
    domain = quality.solution.problem.domain
    styles = ("-", "--", ":")
    for (name, error), colour in zip(quality.everywhere.items(), LINES, strict=False):
        whole = np.sqrt(np.mean(quality.scale[name] ** 2))
        for k, space in enumerate(domain.axes):
            centre, above = mean_squares(quality.points[:, k], error)
            text = f"{maths(name)} over {maths(space)}" if name else f"over {maths(space)}"
            axis.semilogy(centre, np.sqrt(above) / whole, color=colour, ls=styles[k], label=text)
    axis.legend(loc="best", ncols=len(quality.names))
    label(axis, ", ".join(map(maths, domain.axes)), _ratio_label(quality))


def _towards_boundary(axis: Axes, quality: Quality) -> None:
    """In many dimensions: the error by the distance to the nearest face; nine tenths of it, and its median."""
    lower, upper = np.asarray(quality.solution.problem.domain.bounds).T
    unit = (quality.points - lower) / (upper - lower)
    distance = np.minimum(unit, 1 - unit).min(axis=1)
    edges = np.quantile(distance, np.linspace(0, 1, BINS // 2 + 1))
    which = np.clip(np.searchsorted(edges, distance, side="right") - 1, 0, len(edges) - 2)
    for (name, error), colour in zip(quality.everywhere.items(), LINES, strict=False):
        bins = [error[which == k] for k in range(len(edges) - 1)]
        low, middle, high = np.array([np.quantile(b, (0.05, 0.5, 0.95)) for b in bins]).T
        centre = (edges[1:] + edges[:-1]) / 2
        axis.fill_between(centre, low, high, color=colour, alpha=0.2, lw=0, label="5 to 95 %")
        axis.semilogy(centre, middle, color=colour, label=f"median {maths(name)}")
    axis.legend(loc="best")
    label(axis, "distance to the boundary (share of the domain)", _word(quality))


def _histogram(axis: Axes, quality: Quality) -> None:
    filled = len(quality.names) == 1
    for (name, error), colour in zip(quality.everywhere.items(), LINES, strict=False):
        positive = error[error > 0]
        if positive.size:
            edges = np.geomspace(np.quantile(positive, 1e-3), positive.max() * 1.01, BINS)
            style: dict[str, Any] = dict(alpha=0.75) if filled else dict(histtype="step", lw=1.1, label=maths(name))
            axis.hist(positive, edges, weights=np.full(positive.size, 100 / error.size), color=colour, **style)
            axis.axvline(error.max(), color=VERMILION if filled else colour, lw=0.9, ls="--")
    axis.plot([], [], color=VERMILION if filled else BLACK, lw=0.9, ls="--", label="largest")
    axis.set_xscale("log")
    axis.legend(loc="upper left")
    label(axis, _word(quality), "share of points (%)")


def mean_squares(coordinate: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean squares by coordinate: at each value of a grid, or in bins of a random sample."""
    seen, which = np.unique(coordinate, return_inverse=True)
    if seen.size > coordinate.size / 4:
        edges = np.linspace(coordinate.min(), coordinate.max(), BINS + 1)
        which = np.clip(np.searchsorted(edges, coordinate, side="right") - 1, 0, BINS - 1)
        seen = (edges[1:] + edges[:-1]) / 2
    counts = np.bincount(which, minlength=seen.size)
    kept = counts > 0
    sums = np.bincount(which, weights=values**2, minlength=seen.size)
    return seen[kept], sums[kept] / counts[kept]


def _finish(axis: Axes, quality: Quality, x: str) -> None:
    if len(quality.names) > 1:
        axis.legend(loc="best")
    label(axis, x, _ratio_label(quality))


def _ratio_label(quality: Quality) -> str:
    return r"$\ell_2^{\mathrm{rel}}$" if quality.reference is not None else "root mean square residual"


def _word(quality: Quality) -> str:
    return "absolute error" if quality.reference is not None else "residual"


def _what(quality: Quality) -> str:
    return _word(quality).capitalize()
