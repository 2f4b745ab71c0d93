"""Pieces of HTML that all parts of the page are made of. Everything that comes from a file is escaped."""

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dsgnar.showing.colours import VARIABLES
from dsgnar.showing.report.charts import Chart
from dsgnar.showing.words import html_powers, listed

escape = html.escape


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


def scrolling(label: str, style: str, head: str, rows: Sequence[str]) -> str:
    """A table that scrolls inside its frame where the screen is narrow."""
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{label}"><table class="{style}">'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def pairs(title: str, values: Mapping[str, Any]) -> str:
    """A table of names and values under a title."""
    caption = f"<caption>{escape(title)}</caption>" if title else ""
    rows = "".join(
        f'<tr><th scope="row">{spaced(name)}</th><td>{html_powers(listed(value))}</td></tr>'
        for name, value in values.items()
    )
    return f'<div class="scroll"><table class="pairs">{caption}<tbody>{rows}</tbody></table></div>'


def folded(title: str, inside: str) -> str:
    """Something that is shown on request."""
    return f"<details><summary>{escape(title)}</summary>{inside}</details>"


def spaced(name: Any) -> str:
    """The name of a setting in words."""
    return escape(str(name).replace("_", " "))


def coloured(label: str, k: int) -> str:
    """The name of run k with its colour."""
    return f'<span class="swatch" style="background: var({VARIABLES[k % len(VARIABLES)]})"></span>{escape(label)}'


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
<figcaption><h3 id="{name}-title">{chart.title}</h3><p>{html_powers(chart.about)}</p>{_legend(chart)}</figcaption>
<div class="plot" id="{name}" role="img" aria-label="{said}"></div>
</figure>"""


def _legend(chart: Chart) -> str:
    """The names of curves; nothing for a single curve, or where each run has one colour on the whole page."""
    if len(chart.traces) < 2 or not chart.legend:
        return ""
    items = []
    for trace in chart.traces:
        marker = trace.get("marker") or {}
        colour = (trace.get("line") or marker)["color"]
        style = "line" if trace.get("mode") == "lines" else "cross" if "symbol" in marker else "dot"
        items.append(f'<li><span class="{style}" style="--colour: var({colour})"></span>{trace["name"]}</li>')
    return f'<ul class="legend">{"".join(items)}</ul>'
