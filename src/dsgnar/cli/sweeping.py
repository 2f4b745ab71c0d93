"""The command `sweep`: many runs side by side."""

import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import jax
import typer
from rich.live import Live

from dsgnar.cli.assigning import assignments
from dsgnar.cli.common import FAILED, GOOD, NOT_SOLVED, app, err, explained, failed, out, say, usage, wrong_values
from dsgnar.cli.solving import Preset
from dsgnar.showing import report as reports
from dsgnar.storing.files import read_config
from dsgnar.suite.own_file import find
from dsgnar.suite.statement import StatementError
from dsgnar.tools import sweep as sweeps
from dsgnar.tools.sweep import Run, Sweep
from dsgnar.tools.sweep.status import Status


@app.command()
def sweep(
    problems: Annotated[list[str], typer.Argument(metavar="PROBLEM...", help="Names from `dsgnar list`, or files.")],
    seeds: Annotated[str, typer.Option(help="0:8 for 0 to 7, or 0,2,5.")] = "0",
    assigned: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE,...", help="Values of a setting, such as sketch=500,700."),
    ] = None,
    preset: Preset = "default",
    jobs: Annotated[
        int | None, typer.Option(help="Runs side by side; one for each core by default.", min=1, max=4096)
    ] = None,
    directory: Annotated[
        Path | None, typer.Option("--out", "-o", help="Directory of the sweep; runs/sweep-... by default.")
    ] = None,
    slurm: Annotated[
        str | None, typer.Option(metavar="NAME=VALUE,...", help="Submit to SLURM: partition=NAME, time=MINUTES, ...")
    ] = None,
) -> None:
    """Solve a problem with many seeds and settings, side by side, and compare the results on one page.

    Run the same command again to continue: runs that have ended are kept, interrupted ones continue. A run that fails does
    not stop the others. Ctrl-C stops all of them after their current iteration.
    """
    jax.config.update("jax_platforms", "cpu")  # runs are other processes: this one must not take a GPU from them
    with explained(), wrong_values():
        settings = sweeps.values(assigned or ())
        runs = sweeps.grid(problems, sweeps.seeds(seeds), settings, preset)
        home = directory or Path("runs") / "-".join(["sweep", *dict.fromkeys(Path(p).stem for p in problems)])
        for run in runs:
            _check(run, home)
    try:
        pool = sweeps.Local(jobs) if slurm is None else sweeps.Slurm(home, _options(slurm), jobs)
    except sweeps.PoolError as error:
        usage(error)
    with explained(home):
        planned = Sweep(runs, home, pool)
        _work(planned)
        _end(planned)


def _check(run: Run, home: Path) -> None:
    """Raise what is wrong with a run before any is started."""
    statement = find(run.problem, run.preset, warn=say)
    statement.changed({"seed": run.seed, **assignments([f"{n}={v}" for n, v in run.settings.items()], ())})
    kept = home / run.name
    if (kept / "config.json").exists() and read_config(kept).get("files_sha256") != statement.digests():
        raise StatementError(
            f"{kept} is a run of {run.problem} as it was earlier; choose another --out for the new one"
        )


def _options(text: str) -> dict[str, str]:
    pairs = [part.partition("=") for part in text.split(",")]
    if not all(name and equals and value for name, equals, value in pairs):
        usage(f"--slurm {text}: write NAME=VALUE,..., such as --slurm partition=gpu,time=120")
    return {name: value for name, _, value in pairs}


def _work(planned: Sweep) -> None:
    """All runs, shown in a table that is updated in place, or line by line where there is no terminal."""
    if planned.kept:
        say(f"{len(planned.kept)} of {len(planned.runs)} runs in {planned.home} have ended already and are kept")
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        if not err.is_terminal:
            planned.work(lambda name, found: say(sweeps.line(name, found)))
            return
        with Live(console=err, refresh_per_second=4, get_renderable=lambda: _table(planned), transient=True):
            planned.work()
    except sweeps.PoolError as error:
        failed(error)
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupt(number: int, frame: Any) -> None:
    raise KeyboardInterrupt


def _table(planned: Sweep) -> Any:
    note = "Ctrl-C stops the sweep after the current iterations"
    if planned.stopping:
        note = "stopping after the current iterations; press Ctrl-C again to stop now"
    return sweeps.table(planned.statuses, err.height - 1, note)


def _end(planned: Sweep) -> None:
    """The last table, the page, and the exit code."""
    statuses = planned.statuses
    out.print(sweeps.table(statuses), soft_wrap=False)
    for name, found in statuses.items():
        if found.why:
            log = f"; its output is in {planned.directory(name)}/log.txt" if found.state == "error" else ""
            say(f"{name}: {found.why}{log}")
    if planned.stopping:
        say("interrupted; run the same command again to continue")
        raise typer.Exit(NOT_SOLVED)
    _compare(planned, [name for name, found in statuses.items() if found.iteration is not None])
    raise typer.Exit(_code(statuses))


def _compare(planned: Sweep, names: Sequence[str]) -> None:
    if names:
        page = planned.home / ("comparison.html" if len(names) > 1 else "report.html")
        reports.write([planned.directory(name) for name in names], page)
        out.print(f"written to {planned.home}/: {page.name}, and a run directory for each run", markup=False)


def _code(statuses: Mapping[str, Status]) -> int:
    if any(found.state == "error" for found in statuses.values()):
        return FAILED
    return GOOD if all(found.good for found in statuses.values()) else NOT_SOLVED
