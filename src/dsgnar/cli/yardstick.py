"""The command that measures by a benchmark of others: `reproduce pinnacle`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from dsgnar.cli.common import NOT_SOLVED, err, explained, out, say, wrong_values
from dsgnar.cli.measuring import Into, fill, reproduce
from dsgnar.showing.progress import Progress
from dsgnar.solving.interruption import Terminated
from dsgnar.storing.checkpoints import write_atomically
from dsgnar.suite.pinnacle import CASES
from dsgnar.tools.bench import machine, pinnacle


@reproduce.command("pinnacle")
def pinnacle_(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[CASES]...", help=f"Some of {', '.join(CASES)}; all by default.")
    ] = None,
    seeds: Annotated[str, typer.Option(help="Seeds, with commas.")] = "0,1,2",
    max_seconds: Annotated[float, typer.Option(help="Time limit of each solve.")] = 600.0,
    tol: Annotated[float | None, typer.Option(help="One tolerance for all cases.")] = None,
    directory: Annotated[
        Path,
        typer.Option(
            "--out", "-o", help="Directory for the run directories; those already there are kept.", file_okay=False
        ),
    ] = Path("runs/pinnacle"),
    clone: Annotated[
        Path | None,
        typer.Option(help="Your copy of the benchmark's repository, for its files.", exists=True, file_okay=False),
    ] = None,
    into: Into = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Cases of the PINNacle benchmark (arXiv 2306.08827), all solved by the same call.

    Each case and seed is stored when it is done. Run the command again to continue. With --clone errors are also measured
    against the benchmark's files, of runs that are stored already, too.
    """
    options: dict[str, Any] = {"max_seconds": max_seconds} | ({} if tol is None else {"tol": tol})
    with wrong_values():
        chosen, numbers = pinnacle.cases(names or ()), _whole(seeds)
    rows, text = [], ""
    with explained(), wrong_values():
        try:
            observers = () if quiet else (Progress(err),)
            for row in pinnacle.table(directory, chosen, numbers, options, clone, observers):
                rows.append(row)
                out.print(pinnacle.line(row), markup=False)
                text = pinnacle.markdown(rows, _stamp(options, numbers, rows))
                directory.mkdir(parents=True, exist_ok=True)
                write_atomically(directory / "pinnacle.md", text.encode())
        except (KeyboardInterrupt, Terminated):
            say(f"interrupted; run the same command again to continue, what is done is in {directory}")
            raise typer.Exit(NOT_SOLVED) from None
        fill(into, "pinnacle", text)
    out.print(f"written to {directory}/pinnacle.md, with a run directory for each case and seed")


def _whole(text: str) -> list[int]:
    try:
        numbers = [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        numbers = []
    if not numbers or len(set(numbers)) != len(numbers):
        raise ValueError(f"--seeds takes different whole numbers with commas, such as 0,1,2, not {text!r}")
    return numbers


def _stamp(options: dict[str, Any], seeds: list[int], rows: Sequence[pinnacle.Row]) -> str:
    call = ", ".join(["problem", "seed=...", *(f"{name}={value:g}" for name, value in options.items())])
    chosen = ", ".join(map(str, seeds))
    versions = ", ".join(sorted({result["version"] for row in rows for result in row.results}))
    return (
        f"`dsgnar reproduce pinnacle`, {machine.stamp(versions)}. One call for all rows, "
        f"`ds.solve({call})`, seeds {chosen}; no network, points, weights or intervals chosen for a case."
    )
