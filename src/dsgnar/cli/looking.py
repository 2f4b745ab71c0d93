"""Commands that look: `list`, `doctor`, `references`."""

import json
from typing import Annotated, Any

import typer

from dsgnar.cli.common import FAILED, GOOD, app, err, out, usage
from dsgnar.suite import SUITE, Benchmark, truth
from dsgnar.tools.doctor import check_numerics, check_versions, facts, untested

# Of the table: what each column is called, its width, and which side its text is on. All of it fits into 80 columns.
_COLUMNS = (
    ("preset", 18, "<"), ("precision", 9, "<"), ("network", 8, "<"), ("parameters", 10, ">"),
    ("sketch", 7, ">"), ("error", 8, ">"), ("seconds", 8, ">"),
)  # fmt: skip


@app.command("list")
def list_problems(as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False) -> None:
    """List problems and presets, with the error and time measured on two CPU cores."""
    if as_json:
        out.print_json(
            json.dumps([_row(benchmark, name) for benchmark in SUITE.values() for name in benchmark.presets])
        )
        return
    out.print("  " + _line({name: name for name, _, _ in _COLUMNS}), style="bold")
    for name, benchmark in SUITE.items():
        out.print(f"\n[bold]{name}[/bold]  {benchmark.title}: {benchmark.about}", soft_wrap=False)
        for preset in benchmark.presets:
            row = _row(benchmark, preset)
            out.print("  " + _line({column: _cell(row, column) for column, _, _ in _COLUMNS}))
        for remark, presets in _remarks(benchmark).items():
            out.print(f"    {', '.join(presets)}: {remark}", style="dim", soft_wrap=False)
    out.print(
        "\nerror: relative l2; error and seconds as measured on two CPU cores (-: not run)\n"
        "in brackets: another name of the preset\n"
        "solve with: dsgnar solve PROBLEM --preset PRESET",
        style="dim",
    )


def _remarks(benchmark: Benchmark) -> dict[str, list[str]]:
    """What is to be said about presets, and about which."""
    out: dict[str, list[str]] = {}
    for name, preset in benchmark.presets.items():
        for remark in filter(None, (preset.given, preset.note)):
            out.setdefault(remark, []).append(name)
    return out


def _line(cells: dict[str, str]) -> str:
    return " ".join(f"{cells[name]:{side}{width}}" for name, width, side in _COLUMNS).rstrip()


def _cell(row: dict[str, Any], column: str) -> str:
    value = row[column]
    if column == "preset" and row["aliases"]:
        return f"{value} ({', '.join(row['aliases'])})"
    if value is None:
        return "-"
    return f"{value:.1e}" if column == "error" else f"{value:,}" if isinstance(value, int) else str(value)


def _row(benchmark: Benchmark, name: str) -> dict[str, Any]:
    preset = benchmark.presets[name]
    method = preset.settings.get("method", "fast")
    return {
        "problem": benchmark.name,
        "preset": name,
        "aliases": [alias for alias, known in benchmark.aliases.items() if known == name],
        "precision": preset.precision,
        "network": type(preset.network).__name__,
        "parameters": preset.parameters,
        "sketch": preset.settings.get("sketch"),
        "error": preset.measured and preset.measured.error,
        "seconds": preset.measured and preset.measured.seconds,
        "method": getattr(method, "name", method),
        "about": preset.about,
        "given": preset.given,
        "note": preset.note,
        "description": f"{benchmark.title}: {benchmark.about}",
    }


@app.command("references")
def references_(
    name: Annotated[str | None, typer.Argument(help="One reference; all of them by default.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Compare with other methods and resolutions.")] = False,
    generate: Annotated[bool, typer.Option("--generate", help="Compute again, check, and store.")] = False,
) -> None:
    """Show how accurate the reference solutions are; check them, or compute them again."""
    known = truth.STORED if generate else truth.CHECKED
    if name is not None and name not in known:
        only = ", ".join(known)
        usage(f"there is no reference {name!r} here, only {only}; the other problems have closed forms")
    good = True
    for each in known if name is None else (name,):
        if generate:
            with err.status(f"computing and checking {each} (minutes)"):
                truth.generate(each)
        if not check:
            reference = SUITE[each].reference() if each in SUITE else truth.load(each).reference()
            out.print(f"{each}: relative l2 accuracy {reference.accuracy:.1e}")
            continue
        with err.status(f"checking {each} (up to a few minutes)"):
            comparisons = truth.check(each)
        for comparison in comparisons:
            good &= comparison.holds
            mark = "ok " if comparison.holds else "BAD"
            out.print(f"{mark} {each}: {comparison.what}: {comparison.measured:.1e} (allowed {comparison.allowed:.0e})")
    raise typer.Exit(GOOD if good else FAILED)


@app.command()
def doctor() -> None:
    """Check this installation: versions, precision, device, numbers."""
    for name, value in facts().items():
        out.print(f"{name:12} {value}")
    checks = [*check_versions(), *check_numerics()]
    for check in checks:
        out.print(f"{'ok ' if check.ok else 'BAD'} {check.name}: {check.detail}")
    for what in untested():
        out.print(f"not tested: {what}")
    bad = [check.name for check in checks if not check.ok]
    verdict = f"NOT sound: {', '.join(bad)} failed." if bad else "sound: all checks passed."
    out.print(f"This installation is {verdict}", style="bold")
    raise typer.Exit(FAILED if bad else GOOD)
