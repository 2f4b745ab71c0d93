"""Commands that draw: `plot`, and the paper's figures of the method."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from dsgnar.cli.common import app, continued, drawn, err, explained, out, say, wrong_values
from dsgnar.cli.measuring import reproduce
from dsgnar.cli.solving import Preset, Problem
from dsgnar.showing import figures
from dsgnar.showing.figures.page import DPI
from dsgnar.showing.progress import Progress
from dsgnar.storing import runs
from dsgnar.suite.own_file import find
from dsgnar.tools.bench import kept

Iterations = Annotated[int, typer.Option(help="Iterations before the one that is drawn.", min=1)]
Form = Annotated[Literal["png", "pdf", "svg"], typer.Option("--format", "-f", help="Format of the picture.")]
Where = Annotated[Path, typer.Option("--out", "-o", help="The picture: .png, .pdf or .svg.", dir_okay=False)]


@app.command()
def plot(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A run directory.", file_okay=False)],
    form: Form = "png",
) -> None:
    """Draw the solution and the course of a run, as figure.png (or .pdf, .svg) in its directory."""
    path = directory / f"figure.{form}"
    with explained():
        statement, solution = runs.recall(directory), runs.load(directory)
        drawn(path, lambda partial: figures.save(solution, statement.reference(), partial, statement.title))
    out.print(f"written: {path}", markup=False)


@reproduce.command("summary")
def summary(
    problem: Problem = "burgers",
    preset: Preset = "double",
    directory: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Directory of the run, runs/summary-PROBLEM-PRESET by default; one that is there continues.",
            file_okay=False,
        ),
    ] = None,
    max_seconds: Annotated[float | None, typer.Option(help="Time limit of the solve.")] = None,
    form: Form = "png",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Solve a problem, and draw its solution, its loss and its error side by side (Figure 1).

    Ctrl-C stops after the current iteration. Run the command again to continue, or to draw a run that has ended.
    """
    limits = {} if max_seconds is None else {"max_seconds": max_seconds}
    with explained(), wrong_values():
        statement = find(problem, preset, warn=say)
        directory = directory or Path("runs") / f"summary-{statement.name}-{statement.preset}"
        path, there = directory / f"summary.{form}", directory / "config.json"
        if there.exists():
            run = runs.recall(directory)
            if (run.name, run.preset) != (statement.name, statement.preset):
                raise ValueError(f"{directory} holds a run of {run.name} ({run.preset}): use another --out")
        with continued(directory):
            stated = lambda: (statement, statement.changed(limits))
            kept.solved(directory, stated, limits, () if quiet else (Progress(err),))
        solution = runs.load(directory)
        picture = figures.summary(solution, statement.reference(), statement.title)
        drawn(path, lambda partial: picture.savefig(partial, dpi=DPI))
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
