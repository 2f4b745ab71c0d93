"""Commands that draw: `plot`, and the paper's figures of the method."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from dsgnar.cli.common import app, drawn, explained, out, say, wrong_values
from dsgnar.cli.measuring import reproduce
from dsgnar.cli.solving import Preset, Problem
from dsgnar.showing import figures
from dsgnar.showing.figures.page import DPI
from dsgnar.storing import runs
from dsgnar.suite.own_file import find

Iterations = Annotated[int, typer.Option(help="Iterations before the one that is drawn.", min=1)]
Where = Annotated[Path, typer.Option("--out", "-o", help="The picture: .png, .pdf or .svg.", dir_okay=False)]


@app.command()
def plot(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A run directory.", file_okay=False)],
    form: Annotated[
        Literal["png", "pdf", "svg"], typer.Option("--format", "-f", help="Format of the picture.")
    ] = "png",
) -> None:
    """Draw the solution and the course of a run, as figure.png (or .pdf, .svg) in its directory."""
    path = directory / f"figure.{form}"
    with explained():
        statement, solution = runs.recall(directory), runs.load(directory)
        drawn(path, lambda partial: figures.save(solution, statement.reference(), partial, statement.title))
    out.print(f"written: {path}", markup=False)


@reproduce.command("figure3", hidden=True)  # its earlier name; by the paper's numbers it is Figure 2
@reproduce.command("sketches")
def sketches(
    problem: Problem = "burgers",
    preset: Preset = "default",
    iterations: Iterations = 10,
    path: Where = Path("runs/sketches.png"),
) -> None:
    """The full Jacobian beside its sketch, early in a run of the paper's method, with singular values (Figure 2)."""
    _draw(figures.jacobians, problem, preset, iterations, "paper", path)


@reproduce.command("figure4", hidden=True)  # its earlier name; by the paper's numbers it is Figure 3
@reproduce.command("probes")
def probes(
    problem: Problem = "burgers",
    preset: Preset = "default",
    iterations: Iterations = 30,
    path: Where = Path("runs/probes.png"),
) -> None:
    """Ratio and regularisation over the radius, with the paper's probes and the search of `fast` (Figure 3)."""
    _draw(figures.probe_curve, problem, preset, iterations, "fast", path)


def _draw(picture: Any, problem: str, preset: str, iterations: int, method: Any, path: Path) -> None:
    with explained(), wrong_values():
        statement = find(problem, preset, warn=say)
        settings = statement.changed({"method": method})
        run = figures.run_until(iterations, statement.problem, statement.network, settings)
        drawn(path, lambda partial: picture(run).savefig(partial, dpi=DPI))
    out.print(f"written: {path}", markup=False)
