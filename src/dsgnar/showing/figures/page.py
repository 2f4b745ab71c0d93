"""The solution page of Appendix D: the solution and its error above, the course of the run below."""

from collections.abc import Mapping
from pathlib import Path
from string import ascii_lowercase

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dsgnar.problem.reference import Reference
from dsgnar.showing.figures import course, fits, panels
from dsgnar.showing.figures.course import Panel
from dsgnar.showing.figures.style import WIDTH, decades, styled
from dsgnar.showing.quality import Quality
from dsgnar.showing.words import ERROR, HELD_OUT, duration, mathtext, mathtext_power
from dsgnar.solving.coefficients import Estimated
from dsgnar.solving.solution import Solution

# Inches: heights of a row, of the head and of the foot; margins of a panel, to the right also of one with a colour bar.
ROW, HEAD, FOOT = 1.75, 0.55, 0.3
LEFT, RIGHT, BAR, BELOW, ABOVE = 0.58, 0.1, 0.5, 0.4, 0.22
DPI = 200


@styled
def page(
    solution: Solution,
    reference: Reference | None = None,
    title: str = "",
    vectors: Mapping[str, tuple[str, ...]] | None = None,
    figure: Figure | None = None,
) -> Figure:
    """Draw the page. Without a reference it shows residuals of the equations in place of errors.

    `vectors` says which unknowns form a vector, `{"velocity": ("u", "v")}`; by default those that the reference names.
    """
    history, timed, lower = solution.history, [], []
    if history:
        followed = "Error" if any(r.error for r in history) else HELD_OUT.title
        timed = [(f"{followed} over wall time", lambda axis: course.errors(axis, history, "seconds"))]
        lower = course.panels(solution)
    rows = [*_upper(solution, reference, vectors, timed), *fits.rows(solution), lower[:3], lower[3:]]
    return _compose(solution, [row for row in rows if row], title, figure)


@styled
def summary(solution: Solution, reference: Reference | None = None, title: str = "") -> Figure:
    """The solution, its loss and its error in one row: Figure 1 of the paper."""
    (first, *_), *_ = _upper(solution, reference, None, [])
    return _compose(solution, [[first, *course.panels(solution)[:2]]], title, None)


def _upper(
    solution: Solution, reference: Reference | None, vectors: Mapping[str, tuple[str, ...]] | None, timed: list[Panel]
) -> list[list[Panel]]:
    if vectors is None:
        vectors = {} if reference is None else reference.groups
    return panels.rows(solution, Quality(solution, reference), vectors, timed)


def _compose(solution: Solution, rows: list[list[Panel]], title: str, figure: Figure | None) -> Figure:
    heights = [1.35 * ROW if k == 0 and len(row) == 2 else ROW for k, row in enumerate(rows)]
    height = sum(heights) + HEAD + FOOT
    figure = Figure() if figure is None else figure
    figure.set_size_inches(WIDTH, height)
    letters, history = iter(ascii_lowercase), solution.history
    bottom = height - HEAD
    for row, tall in zip(rows, heights, strict=True):
        bottom -= tall
        for j, (name, draw) in enumerate(row):
            axis = figure.add_subplot()
            draw(axis)
            decades(axis)
            axis.set_position(_place(axis, j, len(row), bottom, tall, height))
            axis.set_title(rf"$\bf{{({next(letters)})}}$ {name}", loc="left")
            if axis.get_xlabel() in ("iteration", "seconds"):
                course.mark(axis, history, axis.get_xlabel())
    _head(figure, solution, title, height)
    keys = course.legend(history)
    if keys:
        figure.legend(handles=keys, loc="lower center", ncols=len(keys), bbox_to_anchor=(0.5, 0.0))
    return figure


def _place(axis: Axes, column: int, columns: int, bottom: float, tall: float, height: float) -> tuple:
    """Where a panel goes. Margins have a fixed width, so panels line up from row to row."""
    left, right = LEFT, BAR if axis.child_axes else RIGHT
    wide = WIDTH / columns
    x, y = column * wide + left, bottom + BELOW
    return (x / WIDTH, y / height, (wide - left - right) / WIDTH, (tall - BELOW - ABOVE) / height)


def _head(figure: Figure, solution: Solution, title: str, height: float) -> None:
    outcome = solution.outcome
    top = 1 - 0.08 / height
    figure.text(0.012, top, title, weight="bold", size=11, va="top")
    if outcome is None:
        return
    figure.text(0.988, top, f"{outcome.settings.precision} precision", size=10, va="top", ha="right", style="italic")
    said = [f"{solution.parameters:,} parameters", f"sketch {outcome.settings.sketch:,}"]
    if solution.march.count > 1:
        said.append(f"{solution.march.count} time intervals")
    said += [f"{len(outcome.history):,} iterations", duration(outcome.seconds["solve"])]
    if outcome.relative_l2:
        said.append(f"{ERROR.symbol} {_errors(outcome.relative_l2)}")
    said += [_found(name, estimated) for name, estimated in solution.coefficients.items()]
    figure.text(0.012, 1 - 0.32 / height, "   ".join(said), size=8.5, va="top", color="#444444")


def _found(name: str, estimated: Estimated) -> str:
    error = estimated.standard_error
    if not estimated.determined:
        return f"{mathtext(name)} not determined"
    return f"{mathtext(name)} = {estimated.found:.4g}" + ("" if error is None else rf" $\pm$ {error:.2g}")


def _errors(errors: Mapping[str, float]) -> str:
    if len(errors) == 1:
        return mathtext_power(*errors.values(), digits=3)
    return ", ".join(f"{mathtext(name)} {mathtext_power(error)}" for name, error in errors.items())


def save(
    solution: Solution,
    reference: Reference | None,
    path: str | Path,
    title: str = "",
    vectors: Mapping[str, tuple[str, ...]] | None = None,
) -> None:
    """Write the page to a file; the suffix of the path chooses the format."""
    page(solution, reference, title, vectors).savefig(path, dpi=DPI)


def show(solution: Solution, reference: Reference | None = None, title: str = "", **options) -> Figure:
    """The page as a pyplot figure, for `plt.show()` and notebooks."""
    import matplotlib.pyplot as plt

    figure = plt.figure()
    page(solution, reference, title, figure=figure, **options)
    if "inline" in plt.get_backend():
        plt.close(figure)  # a notebook shows the figure that a cell returns, and would show it again
    return figure
