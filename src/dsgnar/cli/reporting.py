"""Commands that tell what a run reached."""

from pathlib import Path
from typing import Annotated

import typer

from dsgnar import report as reports
from dsgnar.cli.common import app, explained, out

Directories = Annotated[list[Path], typer.Argument(help="run directories; several are shown side by side")]


@app.command()
def show(directories: Directories) -> None:
    """A table of what a run reached."""
    with explained():
        out.print(reports.table([reports.read(directory) for directory in directories]), soft_wrap=False)


@app.command()
def report(
    directories: Directories,
    path: Annotated[
        Path | None, typer.Option("--out", help="the file; by default report.html in the run directory")
    ] = None,
) -> None:
    """Write an HTML page about a run, or one that compares several: interactive, in one file, without a network."""
    chosen = path or (directories[0] / "report.html" if len(directories) == 1 else Path("comparison.html"))
    with explained():
        reports.write(directories, chosen)
    out.print(f"written to {chosen}", markup=False)
