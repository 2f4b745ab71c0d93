"""The command line: thin over the library."""

import dataclasses
import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from dsgnar import figures, references, runs
from dsgnar.doctor import check_numerics, check_versions, environment
from dsgnar.problems import SUITE, Benchmark
from dsgnar.progress import Progress
from dsgnar.solve import solve as solve_problem
from dsgnar.statement import StatementError, find

CONVERGED, FAILED, USAGE, NOT_CONVERGED = 0, 1, 2, 3

app = typer.Typer(
    help="Solve partial differential equations with neural networks to the accuracy of a classical solver.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
out = Console(highlight=False)
err = Console(stderr=True, highlight=False)


@app.command("list")
def list_problems(as_json: Annotated[bool, typer.Option("--json", help="for programs")] = False) -> None:
    """Problems and presets, with the error and time measured on two CPU cores."""
    rows = [_row(b, name) for b in SUITE.values() for name in b.presets]
    if as_json:
        out.print_json(json.dumps(rows))
        return
    table = Table(box=None)
    for column in _COLUMNS:
        table.add_column(column, no_wrap=column in ("problem", "preset"))
    for row in rows:
        table.add_row(*("not run" if row[k] is None and k in ("error", "seconds") else str(row[k]) for k in _COLUMNS))
    out.print(table)


_COLUMNS = ("problem", "preset", "precision", "network", "sketch", "error", "seconds")


def _row(benchmark: Benchmark, name: str) -> dict[str, Any]:
    preset = benchmark.presets[name]
    return {
        "problem": benchmark.name,
        "preset": name,
        "precision": preset.precision,
        "network": type(preset.network).__name__,
        "sketch": preset.settings.get("sketch"),
        "error": preset.measured and preset.measured.error,
        "seconds": preset.measured and preset.measured.seconds,
        "about": preset.about,
    }


@app.command()
def solve(
    problem: Annotated[str, typer.Argument(help="a problem of `dsgnar list`")],
    preset: Annotated[str, typer.Option(help="a preset of `dsgnar list`")] = "default",
    precision: Annotated[str | None, typer.Option(help="single or double")] = None,
    method: Annotated[str | None, typer.Option(help="fast, or paper: the paper to the letter")] = None,
    seed: Annotated[int, typer.Option(help="of all randomness")] = 0,
    sketch: Annotated[int | None, typer.Option(help="rows of the sketch")] = None,
    points: Annotated[int | None, typer.Option(help="interior points to begin with")] = None,
    max_iterations: Annotated[int | None, typer.Option()] = None,
    max_seconds: Annotated[float | None, typer.Option()] = None,
    directory: Annotated[Path | None, typer.Option("--out", help="the run directory")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="no progress, no summary")] = False,
) -> None:
    """Solve a problem and write a run directory with result.json, history.csv and figure.png."""
    try:
        statement = find(problem, preset)
    except StatementError as error:
        _usage(str(error))
    given = dict(
        precision=precision, method=method, seed=seed, sketch=sketch, points=points,
        max_iterations=max_iterations, max_seconds=max_seconds,
    )  # fmt: skip
    options: Any = {name: value for name, value in given.items() if value is not None}
    try:
        settings = dataclasses.replace(statement.settings, **options)
    except (TypeError, ValueError) as error:
        _usage(str(error))
    target = directory or runs.default_directory(statement, settings)
    observers = [] if quiet else [Progress(title=statement.title)]
    reference = statement.reference()
    try:
        solution = solve_problem(
            statement.problem, network=statement.network, reference=reference, observers=observers, settings=settings
        )
    except ValueError as error:
        _usage(str(error))
    except FloatingPointError as error:
        err.print(f"dsgnar: {error}")
        raise typer.Exit(FAILED) from None
    runs.write(target, solution, statement)
    figures.save(solution, reference, target / "figure.png", title=statement.title)
    if not quiet:
        out.print(solution.summary())
        out.print(f"written to {target}/ (result.json, history.csv, figure.png)")
    assert solution.outcome is not None
    raise typer.Exit(CONVERGED if solution.outcome.stop.converged else NOT_CONVERGED)


def _usage(message: str):
    err.print(f"dsgnar: {message}")
    raise typer.Exit(USAGE)


@app.command("references")
def references_(
    name: Annotated[str | None, typer.Argument(help="one reference; without it all of them")] = None,
    check: Annotated[bool, typer.Option("--check", help="compare with other methods and resolutions")] = False,
    generate: Annotated[bool, typer.Option("--generate", help="compute anew, check, and store")] = False,
) -> None:
    """Reference solutions: how accurate the stored ones are; check them again, or compute them anew."""
    known = references.STORED if generate else references.CHECKED
    if name is not None and name not in known:
        _usage(
            f"there is no reference {name!r} to work on, only {', '.join(known)}; the other problems have closed forms"
        )
    good = True
    for each in known if name is None else (name,):
        if generate:
            with err.status(f"computing and checking {each} (minutes)"):
                references.generate(each)
        if not check:
            out.print(f"{each}: relative l2 accuracy {SUITE[each].reference().accuracy:.1e}")
            continue
        with err.status(f"checking {each} (up to a few minutes)"):
            comparisons = references.check(each)
        for comparison in comparisons:
            good &= comparison.holds
            mark = "ok " if comparison.holds else "BAD"
            out.print(f"{mark} {each}: {comparison.what}: {comparison.measured:.1e} (allowed {comparison.allowed:.0e})")
    raise typer.Exit(CONVERGED if good else FAILED)


@app.command()
def doctor() -> None:
    """Is this installation sound: versions, precision, device."""
    for name, value in environment().items():
        out.print(f"{name:12} {value}")
    checks = [*check_versions(), *check_numerics()]
    for check in checks:
        out.print(f"{'ok ' if check.ok else 'BAD'} {check.name}: {check.detail}")
    raise typer.Exit(CONVERGED if all(check.ok for check in checks) else FAILED)


def main() -> None:
    """Entry point of the `dsgnar` command."""
    sys.exit(app())
