"""Commands that show what a run reached: `show`, `report`."""

from pathlib import Path
from typing import Annotated

import typer

from dsgnar.cli.common import app, explained, out
from dsgnar.showing import report as reports

Directories = Annotated[list[Path], typer.Argument(help="Run directories; several are shown side by side.")]


@app.command()
def show(directories: Directories) -> None:
    """Print a table of what a run reached."""
    with explained():
        out.print(reports.table([reports.read(directory) for directory in directories]), soft_wrap=False)


@app.command()
def report(
    directories: Directories,
    path: Annotated[
        Path | None, typer.Option("--out", help="The file; report.html in the run directory by default.")
    ] = None,
) -> None:
    """Write an interactive HTML page about a run, or one that compares several. It is one file and works offline."""
    chosen = path or (directories[0] / "report.html" if len(directories) == 1 else Path("comparison.html"))
    with explained():
        reports.write(directories, chosen)
    out.print(f"written to {chosen}", markup=False)
