"""The solution page of Appendix D: the solution and its error above, the course of the run below."""

from collections.abc import Mapping
from pathlib import Path
from string import ascii_lowercase

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dsgnar.figures import course, panels
from dsgnar.figures.course import Panel
from dsgnar.figures.planes import Quality
from dsgnar.figures.style import WIDTH, decades, power, styled
from dsgnar.reference import Reference
from dsgnar.solution import Solution

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
    """Draw the page. Without a reference the residual of the equations stands for the error.

    `vectors` says which unknowns belong together, `{"velocity": ("u", "v")}`; left out, the reference may say so.
    """
    quality = Quality(solution, reference)
    if vectors is None:
        vectors = {} if reference is None else reference.groups
    outcome, timed, lower = solution.outcome, [], []
    if outcome is not None and outcome.history:
        over = "Error" if any(r.error for r in outcome.history) else "Held-out loss"
        timed = [(f"{over} over wall time", lambda axis: course.errors(axis, outcome.history, "seconds"))]
        lower = course.panels(solution)
    rows = [*panels.rows(solution, quality, vectors, timed), lower[:3], lower[3:]]
    return _compose(solution, [row for row in rows if row], title, figure)


def _compose(solution: Solution, rows: list[list[Panel]], title: str, figure: Figure | None) -> Figure:
    heights = [1.35 * ROW if k == 0 and len(row) == 2 else ROW for k, row in enumerate(rows)]
    height = sum(heights) + HEAD + FOOT
    figure = Figure() if figure is None else figure
    figure.set_size_inches(WIDTH, height)
    letters = iter(ascii_lowercase)
    history = solution.outcome.history if solution.outcome is not None else ()
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
    """Where a panel goes: margins of a fixed width, so that panels are in line with each other from row to row."""
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
    said += [f"{len(outcome.history):,} iterations", f"{outcome.seconds['solve']:.1f} s"]
    if outcome.relative_l2:
        said.append(
            r"$\ell_2^{\mathrm{rel}}$ "
            + ", ".join(_error(n, e, outcome.relative_l2) for n, e in outcome.relative_l2.items())
        )
    figure.text(0.012, 1 - 0.32 / height, "   ".join(said), size=8.5, va="top", color="#444444")


def _error(name: str, error: float, all_of_them: Mapping[str, float]) -> str:
    return power(error, 3) if len(all_of_them) == 1 else f"{name} {power(error)}"


def save(
    solution: Solution,
    reference: Reference | None,
    path: str | Path,
    title: str = "",
    vectors: Mapping[str, tuple[str, ...]] | None = None,
) -> None:
    """Write the page as a picture; the ending of the path says which kind."""
    page(solution, reference, title, vectors).savefig(path, dpi=DPI)


def show(solution: Solution, reference: Reference | None = None, title: str = "", **options) -> Figure:
    """The page as a pyplot figure, for `plt.show()` and notebooks."""
    import matplotlib.pyplot as plt

    figure = plt.figure()
    page(solution, reference, title, figure=figure, **options)
    if "inline" in plt.get_backend():
        plt.close(figure)  # a notebook shows the figure that a cell returns, and would show it again
    return figure
