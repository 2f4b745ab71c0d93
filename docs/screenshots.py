"""Make the pictures of the documentation from one run: `.venv/bin/python docs/screenshots.py [NAME ...] [--run DIR]`.

Without `--run` it first solves Burgers in single precision (under a minute on two cores). Needs chromium.
"""

import argparse
import io
import re
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal

from playwright.sync_api import sync_playwright
from rich.console import Console

from dsgnar.cli import app
from dsgnar.showing import figures, report
from dsgnar.showing.progress import panel
from dsgnar.solving.context import Context
from dsgnar.solving.interruption import Interruption
from dsgnar.solving.observers import View
from dsgnar.storing import runs

HERE = Path(__file__).parent


def photograph(html: Path, picture: Path, width: int, height: int, scheme: Literal["light", "dark"] = "light") -> None:
    """A picture of a page in the browser."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(
            viewport={"width": width, "height": height}, color_scheme=scheme, device_scale_factor=1.5
        )
        page.goto(html.as_uri())
        page.wait_for_selector("html[data-drawn]", state="attached")
        page.screenshot(path=picture)
        browser.close()


def report_page(run: Path) -> None:
    """report.png: the upper part of the report."""
    with tempfile.TemporaryDirectory() as folder:
        html = Path(folder) / "report.html"
        report.write([run], html)
        photograph(html, HERE / "report.png", 1100, 1500)


def terminal(run: Path) -> None:
    """terminal.png: the live view in the middle of a run."""
    statement, solution = runs.recall(run), runs.load(run)
    assert solution.outcome is not None
    context = Context.of(statement.problem, statement.network, solution.outcome.settings)
    history = solution.history[: 2 * len(solution.history) // 3]
    view = View(context, replace(context.start(), history=history), Interruption())
    console = Console(record=True, width=70, file=io.StringIO(), force_terminal=True)
    console.print(panel(view, statement.title))
    drawing = re.sub(r"@font-face \{.*?\}", "", console.export_svg(title="dsgnar solve burgers"), flags=re.S)
    with tempfile.TemporaryDirectory() as folder:
        html = Path(folder) / "terminal.html"
        html.write_text(f'<html data-drawn><meta charset="utf-8"><body style="margin: 0">{drawing}</body></html>')
        photograph(html, HERE / "terminal.png", 880, 395)


def solution_page(run: Path) -> None:
    """burgers.png: the solution page."""
    statement = runs.recall(run)
    figures.save(runs.load(run), statement.reference(), HERE / "burgers.png", statement.title)


PICTURES: dict[str, Callable[[Path], None]] = {"burgers": solution_page, "report": report_page, "terminal": terminal}


def main() -> None:
    """Make the pictures that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(PICTURES), metavar="NAME", help=", ".join(PICTURES))
    parser.add_argument("--run", type=Path, help="a run directory")
    given = parser.parse_args()
    unknown = sorted(set(given.names) - set(PICTURES))
    if unknown:
        parser.error(f"there is no picture {', '.join(unknown)}; there are {', '.join(PICTURES)}")
    with tempfile.TemporaryDirectory() as folder:
        run = given.run or Path(folder) / "burgers"
        if given.run is None:
            app(["solve", "burgers", "--out", str(run), "--quiet"], standalone_mode=False)
        for name in given.names:
            PICTURES[name](run)
            print(f"docs/{name}.png")


if __name__ == "__main__":
    main()
