"""The other parts of the page: the problem, the charts' controls, tables of several runs, files."""

import base64
import inspect
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from latex2mathml.converter import convert

from dsgnar.figures.course import EVENTS
from dsgnar.problem import Problem
from dsgnar.report.charts import symbol
from dsgnar.report.facts import NOTHING, facts, listed, number, worst
from dsgnar.report.markup import coloured, escape, pairs, paragraph, pretty, scrolling
from dsgnar.report.recorded import Recorded

FILES = {"history.csv": "text/csv", "result.json": "application/json", "config.json": "application/json"}


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
        "partly known": ", ".join(symbol(u) for u in statement.get("known") or ()),
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
    shown = [p for p in given if p.default not in (None, p.empty) and p.kind is not p.KEYWORD_ONLY]
    return ", ".join(f"{p.name.replace('_', ' ')} {listed(p.default)}" for p in shown)


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
        keys = "".join(f"<li>{coloured(label, k)}</li>" for k, label in enumerate(runs))
    return f'<div class="tools"><fieldset><legend>Horizontal axis</legend>{choices}</fieldset><ul>{keys}</ul></div>'


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
    head = "".join(f'<th scope="col">{coloured(label, k)}</th>' for k, label in enumerate(runs))
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
    return scrolling("Results", "comparison", f"<td></td>{head}", rows)


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
    return scrolling("Differences", "comparison", f"<td></td>{head}", rows)


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
