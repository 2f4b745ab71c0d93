"""The page: one file with everything in it, which works offline.

plotly.js comes with the plotly package and is embedded whole. The page's security policy forbids loading anything else.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from string import Template

import numpy as np

from dsgnar.calculus.version import VERSION
from dsgnar.showing import colours
from dsgnar.showing.planes import planes
from dsgnar.showing.quality import Quality
from dsgnar.showing.report import charts, fits, maps, markup, result, sections
from dsgnar.showing.report.charts import Chart
from dsgnar.showing.report.recorded import Recorded, read
from dsgnar.solving.coefficients import Inference
from dsgnar.storing import runs
from dsgnar.storing.checkpoints import write_atomically
from dsgnar.suite.statement import Statement


def write(directories: Sequence[Path], path: Path) -> None:
    """Write the page about one run, or about several side by side."""
    recorded = [read(directory) for directory in dict.fromkeys(Path(d).resolve() for d in directories)]
    text = one(recorded[0]) if len(recorded) == 1 else several(recorded)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, text.encode())


def one(run: Recorded) -> str:
    """The page about one run."""
    statement, quality, why = evaluated(run)
    course, shown = charts.course(run), [] if quality is None else maps.charts(quality)
    found, data = (None, []) if quality is None else (_found(quality), fits.charts(quality.solution))
    drawn = (sections.tools({run.directory.name: run}), markup.figures(course)) if course else ()
    equations = statement.equations if statement else run.benchmark.equations if run.benchmark else ()
    title = run.title if run.benchmark or not statement else statement.title
    fitted = {} if found is None else {"fit": "Coefficients and data"}
    links = {"result": "Result", "problem": "Problem", **fitted, "solution": "Solution", "course": "Course of the run",
             "configuration": "Configuration", "files": "Files"}  # fmt: skip
    body = [
        markup.section("result", "Result", result.tiles(run), result.certificate(run, quality)),
        markup.section("problem", "Problem", sections.problem(run, equations, quality and quality.solution.problem)),
        _fitted(found, data),
        markup.section("solution", "Solution", _note(why), markup.figures(shown, "wide") if shown else ""),
        markup.section("course", "Course of the run", _note(run.missing), *drawn),
        markup.section("configuration", "Configuration", sections.configuration(run)),
        markup.section("files", "Files", sections.downloads({run.directory.name: run})),
    ]
    head = markup.header(f"dsgnar run {run.directory.name}", title, result.lead(run), links)
    return _page(f"{title} – dsgnar", head, body, [*data, *shown, *course])


def _found(quality: Quality) -> Inference | None:
    return None if quality.solution.outcome is None else quality.solution.outcome.inference


def _fitted(found: Inference | None, data: Sequence[Chart]) -> str:
    """Coefficients and data, where there are any."""
    if found is None:
        return ""
    drawn = markup.figures(data, "wide") if data else ""
    return markup.section("fit", "Coefficients and data", fits.tables(found), drawn)


def several(recorded: Sequence[Recorded]) -> str:
    """The page that compares runs."""
    labelled = labels(recorded)
    problems = list(dict.fromkeys(run.title for run in recorded))
    overlaid, shown = charts.overlaid(labelled), _error_maps(labelled)
    course = (sections.tools(labelled), markup.figures(overlaid))
    without = [f"{label}: {run.missing}" for label, run in labelled.items() if run.missing]
    body = [
        markup.section("result", "Results", sections.comparison(labelled)),
        markup.section("course", "Course of the runs", _note("; ".join(without)), *course),
        markup.section("solution", "Errors on one colour scale", markup.figures(shown, "wide")) if shown else "",
        markup.section("configuration", "Differences in configuration", sections.differences(labelled)),
        markup.section("files", "Files", sections.downloads(labelled)),
    ]  # fmt: skip
    links = {
        "result": "Results",
        "course": "Course",
        "solution": "Errors",
        "configuration": "Differences",
        "files": "Files",
    }
    if not shown:
        del links["solution"]
    head = markup.header(
        f"dsgnar, {len(recorded)} runs", "Comparison: " + ", ".join(problems), result.lead_of_several(labelled), links
    )
    return _page("Comparison – dsgnar", head, body, [*overlaid, *shown])


def labels(recorded: Sequence[Recorded]) -> dict[str, Recorded]:
    """Runs by name: that of their directory, or the whole path where names repeat."""
    names = [run.directory.name for run in recorded]
    unique = names if len(set(names)) == len(names) else [str(run.directory) for run in recorded]
    return dict(zip(unique, recorded, strict=True))


def evaluated(run: Recorded) -> tuple[Statement | None, Quality | None, str]:
    """The problem and its solution, or why they are not available."""
    statement = None
    try:
        statement = runs.recall(run.directory)
        solution = runs.load(run.directory)
        if not np.isfinite(solution.thetas).all():
            raise ValueError("its parameters are not finite")
        return statement, Quality(solution, statement.reference()), ""
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:  # files of other versions, too
        return statement, None, f"The solution cannot be drawn: {error}"


def _error_maps(labelled: Mapping[str, Recorded]) -> list[Chart]:
    """The errors of all runs of one problem, on the same planes and one colour scale."""
    if len({run.result.get("problem") for run in labelled.values()}) > 1:
        return []
    found = {label: evaluated(run)[1] for label, run in labelled.items()}
    qualities = {
        label: quality for label, quality in found.items() if quality is not None and quality.reference is not None
    }
    if len(qualities) < 2:
        return []
    first = next(iter(qualities.values()))
    if first.solution.problem.domain.dimension == 1:
        return []
    cuts = planes(first.solution.problem.domain, first.reference, most=1)
    out = []
    for name in first.names:
        out += maps.errors(qualities, name, cuts)
    return out


def _note(text: str) -> str:
    return markup.paragraph(markup.escape(text), "note")


def _page(title: str, head: str, body: Sequence[str], drawn: Sequence[Chart]) -> str:
    data = [asdict(chart) | {"id": markup.identifier(chart)} for chart in drawn]
    from plotly.offline import get_plotlyjs  # slow to import, and of no use to other commands

    here = files("dsgnar.showing.report")
    return Template((here / "page.html").read_text()).substitute(
        title=markup.escape(title),
        version=VERSION,
        style=f"{colours.style_sheet()}\n{(here / 'style.css').read_text()}",
        body=f'{head}\n<main id="content">\n' + "\n".join(body) + f"\n</main>\n{_footer()}",
        charts=json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c"),
        plotly=get_plotlyjs().replace("</script", "<\\/script"),
        script=(here / "page.js").read_text(),
    )


def _footer() -> str:
    return f"<footer>Written by dsgnar {VERSION}. This page works offline.</footer>"
