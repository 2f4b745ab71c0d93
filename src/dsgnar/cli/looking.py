"""Commands that look: `list`, `doctor`, `references`."""

import json
from typing import Annotated, Any

import typer
from rich.table import Table

from dsgnar import references
from dsgnar.cli.common import CONVERGED, FAILED, app, err, out, usage
from dsgnar.doctor import check_numerics, check_versions, environment
from dsgnar.problems import SUITE, Benchmark

_COLUMNS = ("problem", "preset", "precision", "network", "sketch", "error", "seconds")


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


@app.command("references")
def references_(
    name: Annotated[str | None, typer.Argument(help="one reference; without it all of them")] = None,
    check: Annotated[bool, typer.Option("--check", help="compare with other methods and resolutions")] = False,
    generate: Annotated[bool, typer.Option("--generate", help="compute anew, check, and store")] = False,
) -> None:
    """Reference solutions: how accurate the stored ones are; check them again, or compute them anew."""
    known = references.STORED if generate else references.CHECKED
    if name is not None and name not in known:
        only = ", ".join(known)
        usage(f"there is no reference {name!r} to work on, only {only}; the other problems have closed forms")
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
