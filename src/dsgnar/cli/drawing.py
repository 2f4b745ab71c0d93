"""Commands that draw: `plot`, and the paper's figures of the method."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from dsgnar import figures, runs
from dsgnar.cli.common import app, explained, out, wrong_values
from dsgnar.cli.measuring import reproduce
from dsgnar.cli.solving import Preset, Problem
from dsgnar.figures.page import DPI
from dsgnar.statement import find

Iterations = Annotated[int, typer.Option(help="after which to look at the next one", min=1)]
Where = Annotated[Path, typer.Option("--out", "-o", help="the picture; its ending says which kind", dir_okay=False)]


@app.command()
def plot(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="of a run", file_okay=False)],
    form: Annotated[Literal["png", "pdf", "svg"], typer.Option("--format", "-f", help="what kind of picture")] = "png",
) -> None:
    """Draw the solution and the course of a run, as figure.png in its directory (or figure.pdf, figure.svg)."""
    path = directory / f"figure.{form}"
    with explained():
        statement = runs.recall(directory)
        figures.save(runs.load(directory), statement.reference(), path, statement.title)
    out.print(f"written: {path}", markup=False)


@reproduce.command("figure3")
def jacobians(
    problem: Problem = "burgers",
    preset: Preset = "default",
    iterations: Iterations = 10,
    path: Where = Path("runs/figure3.png"),
) -> None:
    """Figure 3: the full Jacobian beside its sketch, with singular values, early in a run of the paper's method."""
    _draw(figures.jacobians, problem, preset, iterations, "paper", path)


@reproduce.command("figure4")
def probes(
    problem: Problem = "burgers",
    preset: Preset = "default",
    iterations: Iterations = 30,
    path: Where = Path("runs/figure4.png"),
) -> None:
    """Figure 4: ratio and regularisation over the radius, with the paper's probes and the search that is used here."""
    _draw(figures.probe_curve, problem, preset, iterations, "fast", path)


def _draw(picture: Any, problem: str, preset: str, iterations: int, method: Any, path: Path) -> None:
    with explained(), wrong_values():
        statement = find(problem, preset)
        run = figures.run_until(iterations, statement.problem, statement.network, statement.settings, method=method)
        path.parent.mkdir(parents=True, exist_ok=True)
        picture(run).savefig(path, dpi=DPI)
    out.print(f"written: {path}", markup=False)
