"""Commands that solve: `solve`, `resume`, `init`."""

import ast
import dataclasses
from collections.abc import Collection, Sequence
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from dsgnar import figures, keeper, runs
from dsgnar.cli.common import CONVERGED, FAILED, NOT_CONVERGED, app, err, explained, out, say, usage, wrong_values
from dsgnar.keeper import RunDirectory
from dsgnar.problems import SUITE
from dsgnar.progress import Progress
from dsgnar.solution import Solution
from dsgnar.solve import Run
from dsgnar.stages import StopReason
from dsgnar.statement import StatementError, check_settings, find


def _problems(incomplete: str) -> list[str]:
    files = [str(path) for path in Path().glob("*.py")]
    return [name for name in (*SUITE, *files) if name.startswith(incomplete)]


def _presets(incomplete: str) -> list[str]:
    names = dict.fromkeys(name for benchmark in SUITE.values() for name in benchmark.presets)
    return [name for name in names if name.startswith(incomplete)]


Problem = Annotated[
    str,
    typer.Argument(metavar="PROBLEM", help="a name of `dsgnar list`, or a file of your own", autocompletion=_problems),
]
Preset = Annotated[str, typer.Option(help="how: see `dsgnar list`", autocompletion=_presets)]
Iterations = Annotated[int | None, typer.Option(help="give up after so many, in each time interval")]
Seconds = Annotated[float | None, typer.Option(help="give up after so many")]
Every = Annotated[float, typer.Option(help="seconds between checkpoints", min=0)]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="no progress, no summary")]


@app.command()
def solve(
    problem: Problem,
    preset: Preset = "default",
    precision: Annotated[Literal["single", "double"] | None, typer.Option(help="of the network and the result")] = None,
    method: Annotated[Literal["fast", "paper"] | None, typer.Option(help="paper: the paper to the letter")] = None,
    seed: Annotated[int | None, typer.Option(help="of all randomness")] = None,
    sketch: Annotated[int | None, typer.Option(help="rows of the sketch")] = None,
    points: Annotated[int | None, typer.Option(help="interior points to begin with")] = None,
    max_iterations: Iterations = None,
    max_seconds: Seconds = None,
    assigned: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="any other setting, such as wait=100")
    ] = None,
    directory: Annotated[
        Path | None, typer.Option("--out", "-o", help="the run directory; runs/... unless given", file_okay=False)
    ] = None,
    checkpoint_every: Every = keeper.EVERY,
    force: Annotated[bool, typer.Option("--force", help="start anew where an unfinished run lies")] = False,
    quiet: Quiet = False,
) -> None:
    """Solve a problem of the suite, or the one that a Python file of your own states.

    The run directory holds result.json, history.csv, figure.png and checkpoints. Ctrl-C ends the run after its iteration;
    `dsgnar resume` goes on.
    """
    given = dict(
        precision=precision, method=method, seed=seed, sketch=sketch, points=points,
        max_iterations=max_iterations, max_seconds=max_seconds,
    )  # fmt: skip
    options: Any = {name: value for name, value in given.items() if value is not None}
    with explained():
        options |= _values(assigned or (), options)
        statement = find(problem, preset)
    with wrong_values():
        settings = dataclasses.replace(statement.settings, **options)
    kept = RunDirectory(
        directory or runs.default_directory(statement, settings), statement,
        every=checkpoint_every, force=force, warn=say,
    )  # fmt: skip
    observers = (kept,) if quiet else (kept, Progress(err, statement.title))
    with explained(), wrong_values():
        run = Run(statement.problem, statement.network, settings, statement.reference(), observers)
    with explained(kept.path, "; --out chooses another directory"):
        solution = run.run()
    _end(solution, run, kept, quiet)


def _values(assigned: Sequence[str], given: Collection[str]) -> dict[str, Any]:
    """What `--set` gives: Python's numbers and tuples by name; anything else is text. Nothing may be `given` twice."""
    values: dict[str, Any] = {}
    for assignment in assigned:
        name, _, text = assignment.partition("=")
        if name in values or name in given:
            raise StatementError(f"--set {assignment}: {name} is given twice; leave one out")
        try:
            values[name] = ast.literal_eval(text)
        except (SyntaxError, ValueError):
            values[name] = text
    check_settings(values, "--set NAME=VALUE")
    return values


@app.command()
def resume(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="of a run that was interrupted, or gave up", file_okay=False)
    ],
    max_iterations: Iterations = None,
    max_seconds: Seconds = None,
    checkpoint_every: Every = keeper.EVERY,
    quiet: Quiet = False,
) -> None:
    """Go on with a run from its last checkpoint, to the same result as if it had never been interrupted.

    A run of your own file is resumed with the copy of it in the run directory, which is executed. A run that gave up goes
    on with a larger --max-iterations or --max-seconds.
    """
    given = dict(max_iterations=max_iterations, max_seconds=max_seconds)
    limits: Any = {name: value for name, value in given.items() if value is not None}
    kept, progress = RunDirectory(directory, every=checkpoint_every, warn=say), Progress(err)
    with explained(), wrong_values():
        run = keeper.restored(kept, observers=() if quiet else (progress,), **limits)
    assert kept.statement is not None
    progress.title = kept.statement.title
    if run.stop is not None:
        say(f"the run in {directory} has ended: {run.stop.sentence}{_more(run.stop, directory)}")
    with explained(directory):
        solution = run.run()
    _end(solution, run, kept, quiet)


def _more(stop: StopReason, directory: Path) -> str:
    """How to go on after a stop that is not the end."""
    option = {StopReason.ITERATIONS: " --max-iterations N", StopReason.SECONDS: " --max-seconds S"}.get(stop, "")
    return f"; go on with: dsgnar resume {directory}{option}" if option or stop is StopReason.INTERRUPTED else ""


def _end(solution: Solution, run: Run, kept: RunDirectory, quiet: bool) -> None:
    """Figure, summary and exit code."""
    outcome = solution.outcome
    assert outcome is not None and kept.statement is not None
    if kept.failure is None:
        _draw(solution, run, kept)
    if not quiet:
        out.print(solution.summary(), markup=False)
        if kept.failure is None:
            out.print(f"written to {kept.path}/ (result.json, history.csv, figure.png){_more(outcome.stop, kept.path)}")
    if kept.failure is not None:
        say(f"make room and write again from the last checkpoint: dsgnar resume {kept.path}")
        raise typer.Exit(FAILED)
    raise typer.Exit(CONVERGED if outcome.stop.converged else NOT_CONVERGED)


def _draw(solution: Solution, run: Run, kept: RunDirectory) -> None:
    """figure.png, whole or not at all."""
    assert kept.statement is not None
    partial = kept.path / "figure.partial.png"
    try:
        figures.save(solution, run.reference, partial, title=kept.statement.title)
        partial.replace(kept.path / "figure.png")
    except OSError as error:
        partial.unlink(missing_ok=True)
        kept.failure = error
        say(f"figure.png could not be written to {kept.path}: {error.strerror or error}")


@app.command()
def init(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="where to write it")] = Path("my_problem.py"),
) -> None:
    """Write a commented example to start a problem of your own from."""
    text = (resources.files("dsgnar") / "example.py").read_text().replace("FILE", str(file))
    try:
        with open(file, "x") as opened:
            opened.write(text)
    except FileExistsError:
        usage(f"{file} exists already; choose another name")
    except OSError as error:
        with explained():
            raise error
    out.print(f"written: {file}; solve it with: dsgnar solve {file}", markup=False)
