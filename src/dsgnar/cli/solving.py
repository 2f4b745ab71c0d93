"""Commands that solve: `solve`, `resume`, `init`."""

from collections.abc import Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from dsgnar.calculus.devices import current
from dsgnar.calculus.team import PATIENCE
from dsgnar.cli import placing
from dsgnar.cli.assigning import assignments, data_files, tolerance
from dsgnar.cli.common import (
    FAILED,
    GOOD,
    NOT_SOLVED,
    app,
    drawn,
    err,
    explained,
    out,
    say,
    usage,
    wrong_values,
)
from dsgnar.cli.placing import Coordinator, Devices, Distributed, PatienceOption, Processes, ProcessId
from dsgnar.problem.data import with_files
from dsgnar.problem.doubts import doubts
from dsgnar.problem.reference import Reference
from dsgnar.showing import figures
from dsgnar.showing.progress import Progress
from dsgnar.solving.context import Context
from dsgnar.solving.interruption import Interrupted, Terminated
from dsgnar.solving.loop import run
from dsgnar.solving.observers import Observer, tell_preparing
from dsgnar.solving.record import Outcome
from dsgnar.solving.settings import Settings
from dsgnar.solving.solution import Solution
from dsgnar.solving.state import RunState
from dsgnar.solving.stop import StopReason
from dsgnar.solving.tolerance import reach
from dsgnar.solving.verdict import Verdict
from dsgnar.storing import runs
from dsgnar.storing.directory import EVERY, RunDirectory, restored
from dsgnar.suite import SUITE
from dsgnar.suite.own_file import find


def _problems(incomplete: str) -> list[str]:
    files = [str(path) for path in Path().glob("*.py")]
    return [name for name in (*SUITE, *files) if name.startswith(incomplete)]


def _presets(incomplete: str) -> list[str]:
    names = dict.fromkeys(name for benchmark in SUITE.values() for name in (*benchmark.presets, *benchmark.aliases))
    return [name for name in names if name.startswith(incomplete)]


Problem = Annotated[
    str,
    typer.Argument(
        metavar="PROBLEM", help="A name from `dsgnar list`, or your own Python file.", autocompletion=_problems
    ),
]
Preset = Annotated[str, typer.Option(help="Network and settings; see `dsgnar list`.", autocompletion=_presets)]
Iterations = Annotated[int | None, typer.Option(help="Maximum number of iterations in each time interval.")]
Seconds = Annotated[float | None, typer.Option(help="Maximum time for solving, in seconds.")]
Every = Annotated[float, typer.Option(help="Seconds between checkpoints.", min=0)]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no summary.")]


@app.command()
def solve(
    ctx: typer.Context,
    problem: Problem,
    preset: Preset = "default",
    precision: Annotated[
        Literal["single", "double"] | None, typer.Option(help="Precision of the network and the result.")
    ] = None,
    method: Annotated[
        Literal["fast", "paper"] | None,
        typer.Option(help="fast, or paper: the paper's algorithms. By default as the preset has it."),
    ] = None,
    tol: Annotated[
        str | None,
        typer.Option(help="Relative l2 error to reach, of all unknowns or of each: u=1e-6,p=1e-3. Sizes grow until it is."),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of all random numbers.")] = None,
    sketch: Annotated[int | None, typer.Option(help="Rows of the sketch.")] = None,
    points: Annotated[int | None, typer.Option(help="Interior points at the start.")] = None,
    max_iterations: Iterations = None,
    max_seconds: Seconds = None,
    assigned: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="Any other setting or constant of the method, such as wait=100."
        ),
    ] = None,
    measured: Annotated[
        list[str] | None,
        typer.Option(
            "--data",
            metavar="NAME=FILE",
            help="Measured values for the condition NAME from a .csv, .npz or .nc file with columns for the axes, "
            "`value` and perhaps `noise`.",
        ),
    ] = None,
    directory: Annotated[
        Path | None, typer.Option("--out", "-o", help="Run directory; runs/... by default.", file_okay=False)
    ] = None,
    checkpoint_every: Every = EVERY,
    force: Annotated[bool, typer.Option("--force", help="Move an unfinished run aside and start a new one.")] = False,
    quiet: Quiet = False,
    devices: Devices = None,
    distributed: Distributed = False,
    coordinator: Coordinator = None,
    processes: Processes = None,
    process_id: ProcessId = None,
    patience: PatienceOption = PATIENCE,
) -> None:
    """Solve a problem of the suite, or one that your own Python file states.

    The run directory holds result.json, history.csv, figure.png and checkpoints. Ctrl-C stops the run after the current
    iteration; `dsgnar resume` continues it.
    """
    given = dict(
        precision=precision, method=method, seed=seed, sketch=sketch, points=points,
        max_iterations=max_iterations, max_seconds=max_seconds,
    )  # fmt: skip
    options: Any = {name: value for name, value in given.items() if value is not None}
    placing.place(ctx, devices, distributed, coordinator, processes, process_id, patience)
    team = current().team
    with explained(), team.agreeing("reading the problem"):
        with wrong_values():
            options |= {} if tol is None else {"tol": tolerance(tol)}
        options |= assignments(assigned or (), options)
        statement = find(problem, preset, warn=say if team.leads else _unsaid)
        with wrong_values():
            if measured:
                statement = replace(statement, problem=with_files(statement.problem, data_files(measured)))
            settings = statement.changed(options)
    placing.compare(statement, settings)
    kept = RunDirectory(
        directory or runs.default_directory(statement, settings), statement,
        every=checkpoint_every, force=force, warn=say,
    )  # fmt: skip
    observers = (kept,) if quiet else (kept, Progress(err, statement.title))
    for doubt in doubts(statement.problem) if team.leads else ():
        say(doubt)
    with explained(), team.agreeing("reading the reference"):
        reference = statement.reference()
    last = None

    def attempt(network: Any, settings: Settings) -> Solution:
        nonlocal last
        with explained(), wrong_values():
            context = Context.of(statement.problem, network, settings, reference)
        with explained(kept.path, "; --out chooses another directory"):
            last = _run(context, context.start(), observers)
        return last

    if statement.network is None and team.leads:
        tell_preparing(observers)
    with wrong_values():
        solution = reach(statement.problem, statement.network, settings, attempt)
    placing.leave()
    if team.leads and solution is not last and kept.failure is None:
        runs.write(kept.path, solution, statement)  # an earlier attempt was the best
    _end(solution, reference, kept, quiet)


def _run(context: Context, state: RunState, observers: Sequence[Observer]) -> Solution:
    """The solution, also of a run that a signal stopped: figure and summary are still to come."""
    try:
        return run(context, state, observers)
    except (Interrupted, Terminated) as ended:
        return ended.solution


@app.command()
def resume(
    ctx: typer.Context,
    directory: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="Directory of a run that was interrupted or hit a limit.", file_okay=False),
    ],
    max_iterations: Iterations = None,
    max_seconds: Seconds = None,
    checkpoint_every: Every = EVERY,
    quiet: Quiet = False,
    devices: Devices = None,
    distributed: Distributed = False,
    coordinator: Coordinator = None,
    processes: Processes = None,
    process_id: ProcessId = None,
    patience: PatienceOption = PATIENCE,
) -> None:
    """Continue a run from its last checkpoint, to the same result as if it had never been interrupted.

    A run of your own file uses the copy of that file in the run directory. A run that hit a limit continues if
    --max-iterations or --max-seconds is larger. With another number of devices or processes the result is equal to rounding.
    """
    placing.place(ctx, devices, distributed, coordinator, processes, process_id, patience)
    given = dict(max_iterations=max_iterations, max_seconds=max_seconds)
    limits: Any = {name: value for name, value in given.items() if value is not None}
    kept, progress = RunDirectory(directory, every=checkpoint_every, warn=say), Progress(err)
    with explained(), wrong_values():
        context, state = restored(kept, **limits)
    assert kept.statement is not None
    placing.compare(kept.statement, context.settings)
    progress.title = kept.statement.title
    if state.stop is not None and current().team.leads:
        say(f"the run in {directory} has ended: {state.stop.sentence}{_more(state.stop, directory)}")
    with explained(directory):
        solution = _run(context, state, (kept,) if quiet else (kept, progress))
    placing.leave()
    _end(solution, context.reference, kept, quiet)


def _more(stop: StopReason, directory: Path) -> str:
    """How to continue after a stop that is not the end."""
    option = {StopReason.ITERATIONS: " --max-iterations N", StopReason.SECONDS: " --max-seconds S"}.get(stop, "")
    return f"; continue with: dsgnar resume {directory}{option}" if option or stop is StopReason.INTERRUPTED else ""


def _end(solution: Solution, reference: Reference | None, kept: RunDirectory, quiet: bool) -> None:
    """Figure, summary and exit code."""
    outcome = solution.outcome
    assert outcome is not None
    if not current().team.leads:
        raise typer.Exit(_code(outcome))
    files = ["result.json", "history.csv"]
    if kept.failure is None and _draw(solution, reference, kept):
        files.append("figure.png")
    if not quiet:
        out.print(solution.summary(), markup=False)
        if kept.failure is None:
            more = _more(outcome.stop, kept.path)
            out.print(f"written to {kept.path}/ ({', '.join(files)}){more}", markup=False)
    if kept.failure is not None:
        say(f"free some space, then run: dsgnar resume {kept.path}")
        raise typer.Exit(FAILED)
    raise typer.Exit(_code(outcome))


def _code(outcome: Outcome) -> int:
    whole = outcome.verdict is Verdict.SOLVED and outcome.stop is not StopReason.INTERRUPTED
    return GOOD if whole and outcome.tolerance_met is not False else NOT_SOLVED


def _unsaid(message: str) -> None:
    """What the first process says is not said again by the others."""


def _draw(solution: Solution, reference: Reference | None, kept: RunDirectory) -> bool:
    """Draw figure.png; whether that worked."""
    assert kept.statement is not None
    title = kept.statement.title
    try:
        drawn(kept.path / "figure.png", lambda path: figures.save(solution, reference, path, title=title))
    except KeyboardInterrupt:
        say(f"interrupted while drawing; the result is safe in {kept.path}. Draw it later: dsgnar plot {kept.path}")
        return False
    except OSError as error:
        kept.failure = error
        say(f"figure.png could not be written to {kept.path}: {error.strerror or error}")
        return False
    return True


@app.command()
def init(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write.")] = Path("my_problem.py"),
) -> None:
    """Write a commented example, to be changed into your own problem."""
    if file.suffix != ".py":
        usage(f"{file}: a problem is a Python file; use a name such as {file.with_suffix('.py')}")
    text = (resources.files("dsgnar.cli") / "example.txt").read_text("utf-8").replace("FILE", str(file))
    try:
        with open(file, "x", encoding="utf-8") as opened:
            opened.write(text)
    except FileExistsError:
        usage(f"{file} already exists; choose another name")
    except OSError as error:
        with explained():
            raise error
    out.print(f"written: {file}; solve it with: dsgnar solve {file}", markup=False)
