"""The parts of the page as HTML. Everything that comes out of a file is escaped."""

import base64
import html
import inspect
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from latex2mathml.converter import convert

from dsgnar.advice import advise, floors
from dsgnar.figures.course import EVENTS
from dsgnar.figures.planes import Quality
from dsgnar.problem import Problem
from dsgnar.report.charts import COLOURS, Chart, symbol
from dsgnar.report.facts import NOTHING, errors, facts, listed, number, paper_error, reason, seconds, verdict, worst
from dsgnar.report.recorded import Recorded

FILES = {"history.csv": "text/csv", "result.json": "application/json", "config.json": "application/json"}

escape = html.escape


def pretty(text: str) -> str:
    """Escaped text with powers of ten written out: 4.5e-07 becomes 4.5 times ten to the minus seven."""

    def power(match: re.Match) -> str:
        exponent = str(int(match[2])).replace("-", "−")
        return f'<span class="nowrap">{match[1]} × 10<sup>{exponent}</sup></span>'

    return re.sub(r"(?<![\w.])(-?\d+(?:\.\d+)?)e([+-]\d+)\b", power, escape(text))


def header(kind: str, title: str, lead: str, links: Mapping[str, str]) -> str:
    items = "".join(f'<li><a href="#{name}">{escape(text)}</a></li>' for name, text in links.items())
    return f"""<header>
<p class="kind">{escape(kind)}</p>
<h1>{escape(title)}</h1>
<p class="verdict">{lead}</p>
<nav aria-label="Parts of this page"><ul>{items}</ul></nav>
</header>"""


def section(name: str, title: str, *parts: str) -> str:
    inside = "\n".join(part for part in parts if part)
    head = f'<h2 id="{name}-title">{escape(title)}</h2>'
    return f'<section id="{name}" aria-labelledby="{name}-title">\n{head}\n{inside}\n</section>'


def paragraph(text: str, style: str = "") -> str:
    return f'<p class="{style}">{text}</p>' if text else ""


# --- the result -------------------------------------------------------------------------------------------------------


def lead(run: Recorded) -> str:
    """The verdict in two sentences."""
    good = "good" if run.result.get("converged") else ""
    why = reason(run)
    out = f'<span class="badge {good}">{verdict(run)}</span> {escape(why[:1].upper() + why[1:])}.'
    found = worst(run.result.get("relative_l2"))
    if found is not None:
        several = "at most " if len(run.result["relative_l2"]) > 1 else ""
        out += f" The relative ℓ₂ error is {several}<strong>{pretty(number(found, 3))}</strong>"
        paper = paper_error(run)
        out += (
            f"; the paper reports {pretty(number(paper, 3))} in {escape(run.result['precision'])} precision."
            if paper
            else "."
        )
    else:
        out += " There is no reference to measure the error against; the residuals below are the evidence."
    return out


def lead_of_several(runs: Mapping[str, Recorded]) -> str:
    """How many runs converged, and which has the least error."""
    out = f"{sum(bool(run.result.get('converged')) for run in runs.values())} of {len(runs)} runs converged."
    found = [(e, label) for label, run in runs.items() if (e := worst(run.result.get("relative_l2"))) is not None]
    if len(found) > 1 and len({run.result.get("problem") for run in runs.values()}) == 1:
        error, label = min(found)
        taken = seconds((runs[label].result.get("seconds") or {}).get("solve"))
        out += f" The least relative ℓ₂ error is <strong>{pretty(number(error, 3))}</strong>, of {escape(label)} in {taken}."
    return out


def tiles(run: Recorded) -> str:
    """The most important figures."""
    result, time = run.result, run.result.get("seconds") or {}
    error, held = worst(result.get("relative_l2")), worst(result.get("held_out"))
    shown = [
        ("relative ℓ₂ error", number(error), "no reference" if error is None else ""),
        ("held-out residual", number(held), "root mean square, worst condition"),
        ("iterations", number(result.get("iterations")), f"{number(result.get('loss_evaluations'))} loss evaluations"),
        ("time", seconds(time.get("solve")), f"and {seconds(time.get('compile'))} compiling"),
        ("parameters", number(result.get("parameters")), f"sketched to {number(result.get('sketch'))}"),
        ("precision", listed(result.get("precision")), f"method {result.get('method', NOTHING)}"),
    ]  # fmt: skip
    cells = (f"<div><dt>{escape(a)}</dt><dd>{pretty(b)}<small>{escape(c)}</small></dd></div>" for a, b, c in shown)
    return f'<dl class="tiles">{"".join(cells)}</dl>'


def certificate(run: Recorded, quality: Quality | None) -> str:
    """Residuals where nobody trained beside those where somebody did and those of rounding; errors; what would help."""
    floor = {} if quality is None else floors(quality.solution)
    rows = []
    for name, value in (run.result.get("held_out") or {}).items():
        trained = run.training.get(name)
        gap = f"{value / trained:.2f}" if trained else NOTHING
        points = (run.result.get("points") or {}).get(name)
        cells = (number(value), number(trained), gap, number(floor.get(name)), number(points))
        where = escape(textwrap.shorten(run.conditions.get(name, ""), 48, placeholder=" …"))
        numbers = "".join(f'<td class="number">{pretty(cell)}</td>' for cell in cells)
        rows.append(f'<tr><th scope="row">{escape(name)}</th><td>{where}</td>{numbers}</tr>')
    heads = ("condition", "stated on", "held out", "training", "ratio", "rounding floor", "training points")
    head = "".join(f'<th scope="col"{" class=number" if k > 1 else ""}>{text}</th>' for k, text in enumerate(heads))
    about = (
        "Root mean square residuals of each condition. Held-out points take no part in training: where the residual there "
        "is about that at training points, the network satisfies the equation, and not merely the points. The rounding "
        "floor is by how much the precision alone moves a residual."
    )
    table = _scrolling("Residuals", "certificate", head, rows) if rows else ""
    help_ = [] if quality is None else advise(quality.solution, floor)
    advice = paragraph("<strong>Advice:</strong> " + pretty("; ".join(help_)) + ".") if help_ else ""
    return paragraph(about, "muted") + table + _measured(run, quality) + advice


def _measured(run: Recorded, quality: Quality | None) -> str:
    if not run.result.get("relative_l2"):
        return ""
    text = f"Relative ℓ₂ error: <strong>{pretty(errors(run.result['relative_l2']))}</strong>"
    if quality is not None and quality.reference is not None:
        r = quality.reference
        text += (
            f", at {len(r.points):,} points that are no training points. The reference is known to a relative accuracy of "
            f"{pretty(number(r.accuracy))} ({pretty(r.source)})"
        )
    return paragraph(text + ".")


# --- the problem ------------------------------------------------------------------------------------------------------


def equation(latex: str) -> str:
    """LaTeX as MathML, which browsers render by themselves; the LaTeX itself where it is beyond the converter."""
    # The converter takes text as it stands.
    safe = re.sub(r"(\\(?:text\w*|mbox)\s*\{)([^{}]*)", lambda match: match[1] + escape(match[2]), latex)
    try:
        return convert(safe, display="block")
    except Exception:  # every fault has a class of its own there, without a common one
        return f"<code>{escape(latex)}</code>"


def problem(run: Recorded, equations: Sequence[str], stated: Problem | None) -> str:
    """Equations, domain, unknowns and parameters."""
    statement = run.config.get("statement") or {}
    domain: Mapping[str, Sequence[float]] = statement.get("domain") or {}
    periodic = statement.get("periodic") or ()
    box = [f"{symbol(a)} ∈ [{number(b[0])}, {number(b[1])}]" for a, b in domain.items()]
    if len(box) > 4 and len({tuple(b) for b in domain.values()}) == 1:  # a cube
        box = [f"{symbol(next(iter(domain)))}, …, {box[-1]}"]
    rows = {
        "domain": ", ".join(box),
        "unknowns": ", ".join(symbol(u) for u in statement.get("unknowns") or ()),
        "periodic": ", ".join(symbol(a) for a in periodic),
        "parameters": pretty(_parameters(run)),
        "held exactly": ", ".join(symbol(u) for u in stated.hard) if stated is not None else "",
    }
    table = "".join(f'<tr><th scope="row">{name}</th><td>{text}</td></tr>' for name, text in rows.items() if text)
    shown = "".join(map(equation, equations))
    left = f'<div class="card equations">{shown}</div>' if shown else ""
    return f'<div class="columns">{left}<div class="scroll"><table class="pairs"><tbody>{table}</tbody></table></div></div>'


def _parameters(run: Recorded) -> str:
    """The parameters of a problem of the suite: `viscosity 0.01, shift 0`."""
    if run.benchmark is None:
        return ""
    given = inspect.signature(run.benchmark.problem).parameters.values()
    return ", ".join(f"{p.name.replace('_', ' ')} {listed(p.default)}" for p in given if p.default is not p.empty)


# --- charts -----------------------------------------------------------------------------------------------------------


def figures(charts: Iterable[Chart], style: str = "") -> str:
    """Places for charts; the page's script draws them."""
    return f'<div class="charts {style}">' + "".join(map(_figure, charts)) + "</div>"


def identifier(chart: Chart) -> str:
    return "chart-" + re.sub(r"\W+", "-", chart.name)


def _figure(chart: Chart) -> str:
    name, kind = identifier(chart), "map" if chart.traces[0]["type"] == "heatmap" else "curves"
    if "scaleanchor" in chart.layout["yaxis"]:
        kind += " square"
    said = escape(re.sub(r"<[^>]*>", "", html.unescape(chart.summary)))
    return f"""<figure class="{kind}" aria-labelledby="{name}-title">
<figcaption><h3 id="{name}-title">{chart.title}</h3><p>{pretty(chart.about)}</p>{_legend(chart)}</figcaption>
<div class="plot" id="{name}" role="img" aria-label="{said}"></div>
</figure>"""


def _legend(chart: Chart) -> str:
    """What the curves of a chart are called; nothing where there is one, or where runs have a colour on the whole page."""
    if len(chart.traces) < 2 or not chart.legend:
        return ""
    items = []
    for trace in chart.traces:
        marker = trace.get("marker") or {}
        style = "line" if trace.get("mode") == "lines" else "cross" if "symbol" in marker else "dot"
        items.append(
            f'<li><span class="{style}" style="--colour: var({trace["line"]["color"]})"></span>{trace["name"]}</li>'
        )
    return f'<ul class="legend">{"".join(items)}</ul>'


def tools(runs: Mapping[str, Recorded]) -> str:
    """The choice between iterations and seconds, and what lines and colours mean in all charts of the course."""
    choices = "".join(
        f'<label><input type="radio" name="over" value="{value}"{" checked" if value == "iteration" else ""}>{text}</label>'
        for value, text in (("iteration", "iterations"), ("seconds", "seconds"))
    )
    if len(runs) == 1:
        kinds = {mark.kind for run in runs.values() for mark in run.marks}
        keys = "".join(
            f'<li><span class="key {kind.split()[0]}"></span>{kind}</li>' for kind in EVENTS if kind in kinds
        )
    else:
        keys = "".join(f"<li>{_coloured(label, k)}</li>" for k, label in enumerate(runs))
    return f'<div class="tools"><fieldset><legend>Horizontal axis</legend>{choices}</fieldset><ul>{keys}</ul></div>'


def _coloured(label: str, k: int) -> str:
    """The name of run k with its colour."""
    return f'<span class="swatch" style="background: var({COLOURS[k % len(COLOURS)]})"></span>{escape(label)}'


# --- tables -----------------------------------------------------------------------------------------------------------


def pairs(title: str, values: Mapping[str, Any]) -> str:
    rows = "".join(
        f'<tr><th scope="row">{escape(str(name).replace("_", " "))}</th><td>{pretty(listed(value))}</td></tr>'
        for name, value in values.items()
    )
    return f'<div class="scroll"><table class="pairs"><caption>{title}</caption><tbody>{rows}</tbody></table></div>'


def configuration(run: Recorded) -> str:
    """Everything needed to repeat the run, and where it ran."""
    described, config = run.config.get("network"), run.config
    network = described if isinstance(described, Mapping) else {"kind": described}
    environment = run.result.get("environment") or config.get("environment") or {}
    parts = [pairs("Settings", config.get("settings") or {})]
    parts.append(
        f'<div style="display: grid; gap: 1.25rem">{pairs("Network", network)}{pairs("Environment", environment)}</div>'
    )
    return f'<div class="columns">{"".join(parts)}</div>'


def comparison(runs: Mapping[str, Recorded]) -> str:
    """The facts of several runs side by side; the best figures among converged runs of one problem are marked."""
    columns = {label: facts(run) for label, run in runs.items()}
    head = "".join(f'<th scope="col">{_coloured(label, k)}</th>' for k, label in enumerate(runs))
    best = {}
    if len({run.result.get("problem") for run in runs.values()}) == 1:
        results = [run.result if run.result.get("converged") else {} for run in runs.values()]
        best = {
            "relative l2 error": _least(worst(result.get("relative_l2")) for result in results),
            "held-out residual": _least(worst(result.get("held_out")) for result in results),
            "solving": _least((result.get("seconds") or {}).get("solve") for result in results),
        }
    rows = []
    for label in dict.fromkeys(label for column in columns.values() for label in column):
        cells = [pretty(column.get(label, NOTHING)) for column in columns.values()]
        marked = (f"<td{' class=best' if best.get(label) == k else ''}>{cell}</td>" for k, cell in enumerate(cells))
        rows.append(f'<tr><th scope="row">{label}</th>{"".join(marked)}</tr>')
    return _scrolling("Results", "comparison", f"<td></td>{head}", rows)


def differences(runs: Mapping[str, Recorded]) -> str:
    """Settings, network and environment in which runs differ."""
    flat = []
    for run in runs.values():
        groups = (run.config.get("settings"), run.config.get("network"), run.result.get("environment"))
        flat.append({name: listed(v) for group in groups if isinstance(group, Mapping) for name, v in group.items()})
    names = dict.fromkeys(name for column in flat for name in column)
    differing = [name for name in names if len({column.get(name) for column in flat}) > 1]
    if not differing:
        return paragraph("The runs have the same settings, network and environment.")
    rows = []
    for name in differing:
        cells = "".join(f"<td>{pretty(column.get(name, NOTHING))}</td>" for column in flat)
        rows.append(f'<tr><th scope="row">{escape(name.replace("_", " "))}</th>{cells}</tr>')
    head = "".join(f'<th scope="col">{escape(label)}</th>' for label in runs)
    return _scrolling("Differences", "comparison", f"<td></td>{head}", rows)


def _scrolling(label: str, style: str, head: str, rows: Sequence[str]) -> str:
    """A table that scrolls inside its frame where the screen is narrow."""
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{label}"><table class="{style}">'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _least(values: Iterable[Any]) -> int | None:
    """Which of several figures is the least; None where fewer than two are known."""
    known = [(value, k) for k, value in enumerate(values) if isinstance(value, int | float)]
    return min(known)[1] if len(known) > 1 else None


def downloads(runs: Mapping[str, Recorded]) -> str:
    """The run's files inside the page."""
    links = []
    for label, run in runs.items():
        for name, kind in FILES.items():
            path = run.directory / name
            if path.is_file() and (name == "history.csv" or len(runs) == 1):
                content = base64.b64encode(path.read_bytes()).decode()
                saved = f"{label}-{name}"
                text = name if len(runs) == 1 else f"{label}: {name}"
                href = f"data:{kind};base64,{content}"
                links.append(f'<li><a download="{escape(saved)}" href="{href}">{escape(text)}</a></li>')
    return f'<ul class="downloads">{"".join(links)}</ul>'
