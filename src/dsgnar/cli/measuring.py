"""Commands that measure: `bench`, `reproduce`."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from dsgnar.cli.common import app, continued, err, explained, failed, out, wrong_values
from dsgnar.showing.progress import Progress
from dsgnar.storing.checkpoints import write_atomically
from dsgnar.tools import bench as benches
from dsgnar.tools.bench import jacobians, machine, records, report, results
from dsgnar.tools.bench.isolated import EndedEarly

Into = Annotated[str | None, typer.Option(help="PAGE or PAGE#MARK: also put the table into a page, at its mark.")]
Quick = Annotated[bool, typer.Option("--quick", help="A tiny case, to see that the command works.")]


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


@app.command()
def bench(
    cases: Annotated[
        list[str] | None,
        typer.Argument(
            help=f"{', '.join(benches.CASES)}, problem:preset, or your own file; burgers-single by default."
        ),
    ] = None,
    parts: Annotated[str, typer.Option(help=f"Some of {','.join(benches.PARTS)}.")] = ",".join(benches.Options.parts),
    repeats: Annotated[int, typer.Option(help="Repeats of every measurement.", min=1)] = benches.Options.repeats,
    seeds: Annotated[int, typer.Option(help="Whole solves with fast.", min=1)] = benches.Options.seeds,
    paper_seeds: Annotated[int, typer.Option(help="Whole solves with paper.", min=0)] = benches.Options.paper_seeds,
    error: Annotated[float | None, typer.Option(help="Also measure when whole solves reach this error.")] = None,
    directory: Annotated[Path, typer.Option("--out", "-o", help="Directory for the results.", file_okay=False)] = Path(
        "runs/bench"
    ),
    history: Annotated[
        Path | None,
        typer.Option(help="Earlier results; ~/.local/share/dsgnar/bench.jsonl by default.", dir_okay=False),
    ] = None,
    into: Into = None,
    quick: Quick = False,
) -> None:
    """Measure speed: `fast` side by side with `paper`.

    Both methods take turns on this machine. Ratios say how many times faster `fast` is: median, least and most of the
    repeats. Writes bench.json, bench.md and bench.png, and compares with the last result on this machine.
    """
    with wrong_values():
        chosen = [benches.find(name) for name in cases or (["tiny"] if quick else ["burgers-single"])]
        options = benches.Options(_names(parts), repeats, seeds, paper_seeds, error)
    here, date = machine.describe(), datetime.now(UTC).isoformat(timespec="seconds")
    stamp = {"machine": machine.key(here), "version": machine.version(), "date": date}
    file = history or records.default_path()
    before, rows = records.latest(file, stamp["machine"]), []
    out.print(f"{stamp['machine']}; dsgnar {stamp['version']}; median (least to most)")
    with explained():
        try:
            for row in _shown(benches.measure(chosen, options.quick() if quick else options)):
                rows.append(row)
                comparison = records.compare(row, before.get((row.case, row.part)))
                out.print(_line(report.cells(row, comparison)), markup=False)
                records.append(file, row, **stamp)
        except EndedEarly as ended:
            failed(f"{ended}; the rows so far are in {file}")
        except KeyboardInterrupt:
            failed(f"interrupted; the rows so far are in {file}")
        directory.mkdir(parents=True, exist_ok=True)
        content = {**stamp, "environment": here, "rows": [row.to_json() for row in rows]}
        write_atomically(directory / "bench.json", (json.dumps(content, indent=1) + "\n").encode())
        text = report.markdown(rows, **stamp)
        write_atomically(directory / "bench.md", text.encode())
        drawn = report.figure(rows, f"{stamp['machine']}; dsgnar {stamp['version']}", directory / "bench.png")
        fill(into, "bench", text)
    out.print(
        f"written to {directory}/ (bench.json, bench.md{', bench.png' if drawn else ''}); earlier results: {file}"
    )


def _shown(rows):
    """The same rows, with a spinner while each is measured."""
    iterator = iter(rows)
    while True:
        with err.status("measuring"):
            row = next(iterator, None)
        if row is None:
            return
        yield row


def _line(cells: tuple[str, ...]) -> str:
    case, part, fast, paper, ratio, rest = cells
    words = [f"{case:16} {part:18}", f"fast {fast:28}" if paper else f"{fast:33}"]
    words += [f"paper {paper:28}", f"ratio {ratio}"] if paper else []
    return "  ".join([*words, rest]).rstrip()


def fill(into: str | None, mark: str, text: str) -> None:
    """Put a table into the page that was asked for, if any."""
    if into is not None:
        page, _, wanted = into.partition("#")
        with wrong_values():
            report.fill(Path(page), wanted or mark, text)


def _place(given: Path | None, name: str, earlier: str) -> Path:
    """The directory that was asked for, else runs/NAME, or where an earlier version has left its results."""
    new, old = Path("runs") / name, Path("runs") / earlier
    return given or (old if old.is_dir() and not new.exists() else new)


reproduce = typer.Typer(help="Reproduce the paper's tables and figures on this machine.", no_args_is_help=True)
app.add_typer(reproduce, name="reproduce")


@reproduce.command("table1", hidden=True)  # its earlier name; by the paper's numbers it is Table 2
@reproduce.command("jacobians")
def jacobians_(
    directory: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Directory for the results, runs/jacobians by default; those there are kept.",
            file_okay=False,
        ),
    ] = None,
    max_seconds: Annotated[float, typer.Option(help="Time limit of each cell.")] = 1800.0,
    memory: Annotated[
        float | None, typer.Option(help="Memory limit of each cell in GiB; 90 % of what is available by default.")
    ] = None,
    repeats: Annotated[int, typer.Option(help="Calls that are timed, after the first one, which compiles.", min=1)] = 3,
    columns: Annotated[str, typer.Option(help="Some of the columns.")] = ",".join(jacobians.COLUMNS),
    max_points: Annotated[int, typer.Option(help="Leave out rows with more points.", min=1)] = jacobians.ROWS[
        -1
    ].points,
    into: Into = None,
    quick: Quick = False,
) -> None:
    """Time and memory to build Jacobians of up to 2^20 x 252,503, in full and sketched (the paper's Table 2).

    Every cell is measured in its own process and stored at once. Run the command again to continue.
    """
    directory, free = _place(directory, "jacobians", "table1"), machine.available_memory()
    limits = jacobians.Limits(max_seconds, memory or (0.9 * free if free else None), repeats)
    measured = []
    with explained(), wrong_values():
        sizes = [size for size in (jacobians.QUICK if quick else jacobians.ROWS) if size.points <= max_points]
        for size, cell in _shown(jacobians.table(directory, limits, sizes, _names(columns))):
            measured.append((size, cell))
            out.print(
                f"{size.points:>8} x {size.parameters:<7} {cell.column:12} {cell} {cell.message}".rstrip(), markup=False
            )
        text = jacobians.markdown(measured)
        write_atomically(directory / "jacobians.md", text.encode())
        fill(into, "jacobians", text)
    out.print(f"written to {directory}/ (jacobians.json, jacobians.md)")


@reproduce.command("table2", hidden=True)  # its earlier name; by the paper's numbers it is Table 1
@reproduce.command("results")
def results_(
    problems: Annotated[list[str] | None, typer.Argument(help="Some problems of the suite; all by default.")] = None,
    directory: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Directory for the runs, runs/results by default; those there are kept.",
            file_okay=False,
        ),
    ] = None,
    max_seconds: Annotated[float | None, typer.Option(help="Time limit of each row.")] = None,
    like_for_like: Annotated[
        bool,
        typer.Option(
            "--like-for-like", help="Also the paper's network, where ours holds the solution or a part of it."
        ),
    ] = False,
    into: Into = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """The error of every problem, the paper's beside the one reached here (the paper's Table 1).

    Each row is a run directory. Ctrl-C stops after the current iteration. Run the command again to continue.
    """
    with wrong_values():
        chosen = results.rows(problems or (), like_for_like)
    directory = _place(directory, "results", "table2")
    limits = {} if max_seconds is None else {"max_seconds": max_seconds}
    found = []
    with explained():
        with continued(directory):
            for row, result in results.table(directory, chosen, limits, () if quiet else (Progress(err),)):
                found.append((row, result))
                here = results.error(result)
                out.print(f"{row.name:28} paper {row.paper:.2e}  here {here:.2e}  {result['seconds']['solve']:.0f} s")
        text = results.markdown(found, f"`dsgnar reproduce results`, {machine.stamp()}.")
        write_atomically(directory / "results.md", text.encode())
        fill(into, "results", text)
    out.print(f"written to {directory}/results.md, with a run directory for each row")
