"""The other parts of the page: problem, controls of the charts, configuration, comparison of runs, files."""

import base64
import inspect
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from latex2mathml.converter import convert

from dsgnar.problem import Problem
from dsgnar.showing.iterations import EVENTS
from dsgnar.showing.report.facts import change, facts, solved, worst
from dsgnar.showing.report.markup import coloured, escape, folded, pairs, paragraph, scrolling, spaced
from dsgnar.showing.report.recorded import Recorded
from dsgnar.showing.words import NOTHING, html_powers, html_symbol, listed, minus, number

FILES = {"history.csv": "text/csv", "result.json": "application/json", "config.json": "application/json"}


def equation(latex: str) -> str:
    """LaTeX as MathML, which browsers render; the LaTeX itself if the converter fails."""
    # The converter does not escape text.
    safe = re.sub(r"(\\(?:text\w*|mbox)\s*\{)([^{}]*)", lambda match: match[1] + escape(match[2]), latex)
    try:
        return convert(safe, display="block")
    except Exception:  # the converter's exceptions have no common class
        return f"<code>{escape(latex)}</code>"


def problem(run: Recorded, equations: Sequence[str], stated: Problem | None) -> str:
    """Equations, domain, unknowns and parameters."""
    statement = run.config.get("statement") or {}
    domain: Mapping[str, Sequence[float]] = statement.get("domain") or {}
    periodic = statement.get("periodic") or ()
    box = [f"{html_symbol(a)} ∈ [{minus(number(b[0]))}, {minus(number(b[1]))}]" for a, b in domain.items()]
    if len(box) > 4 and len({tuple(b) for b in domain.values()}) == 1:  # a cube
        box = [f"{html_symbol(next(iter(domain)))}, …, {box[-1]}"]
    rows = {
        "domain": ", ".join(box),
        "shape": escape(statement.get("shape") or ""),
        "unknowns": ", ".join(html_symbol(u) for u in statement.get("unknowns") or ()),
        "coefficients": ", ".join(html_symbol(c) for c in statement.get("coefficients") or ()),
        "periodic": ", ".join(html_symbol(a) for a in periodic),
        "parameters": html_powers(_parameters(run)),
        "hard constraints": ", ".join(html_symbol(u) for u in stated.hard) if stated is not None else "",
        "partly known": ", ".join(html_symbol(u) for u in statement.get("known") or ()),
    }
    table = "".join(f'<tr><th scope="row">{name}</th><td>{text}</td></tr>' for name, text in rows.items() if text)
    shown = "".join(map(equation, equations))
    left = f'<div class="card equations">{shown}</div>' if shown else ""
    return _columns(left, f'<div class="scroll"><table class="pairs"><tbody>{table}</tbody></table></div>')


def _parameters(run: Recorded) -> str:
    """The parameters of a problem of the suite: `viscosity 0.01, shift 0`."""
    if run.benchmark is None:
        return ""
    given = inspect.signature(run.benchmark.problem).parameters.values()
    shown = [p for p in given if p.default not in (None, p.empty) and p.kind is not p.KEYWORD_ONLY]
    return ", ".join(f"{p.name.replace('_', ' ')} {listed(p.default)}" for p in shown)


def tools(runs: Mapping[str, Recorded]) -> str:
    """The choice between iterations and seconds, and the meaning of lines and colours in all charts of the course."""
    choices = "".join(
        f'<label><input type="radio" name="over" value="{value}"{" checked" if value == "iteration" else ""}>{text}</label>'
        for value, text in (("iteration", "iterations"), ("seconds", "seconds"))
    )
    if len(runs) == 1:
        kinds = {mark.kind for run in runs.values() for mark in run.marks}
        keys = "".join(f"<li>{_key(kind)}{kind}</li>" for kind in EVENTS if kind in kinds)
    else:
        keys = "".join(f"<li>{coloured(label, k)}</li>" for k, label in enumerate(runs))
    return f'<div class="tools"><fieldset><legend>Horizontal axis</legend>{choices}</fieldset><ul>{keys}</ul></div>'


def _key(kind: str) -> str:
    """How the line of an event looks."""
    event = EVENTS[kind]
    return f'<span class="key" style="border-left-style: {event.dash}; border-color: var({event.variable})"></span>'


def configuration(run: Recorded) -> str:
    """Everything needed to repeat the run, and where it ran."""
    config, network, method = run.config, run.config.get("network"), _unlimited(run.config.get("method"))
    environment = run.result.get("environment") or config.get("environment") or {}
    name = method.pop("name", NOTHING)
    left = pairs("Settings", _unlimited(config.get("settings"))) + pairs("Environment", environment)
    right = pairs(f"Method {name}", _changes(run)) if method else ""
    right += pairs("Network", network if isinstance(network, Mapping) else {"kind": network})
    return _columns(f'<div class="stack">{left}</div>', f'<div class="stack">{right}</div>') + _constants(method)


def _changes(run: Recorded) -> dict[str, str]:
    """Where the method differs from its defaults."""
    changed = {name: change(*pair) for name, pair in run.changed.items()}
    return changed or ({"constants": "all at their defaults"} if run.constants else {})


def _constants(method: Mapping[str, Any]) -> str:
    """Every constant of the method, on request."""
    if not method:
        return ""
    items = list(method.items())
    half = -(-len(items) // 2)
    columns = _columns(pairs("", dict(items[:half])), pairs("", dict(items[half:])))
    return folded(f"All {len(items)} constants of the method", columns)


def _columns(*parts: str) -> str:
    return f'<div class="columns">{"".join(parts)}</div>'


def _unlimited(values: Any) -> dict[str, Any]:
    """A group of the configuration, in which null stands for infinity."""
    if not isinstance(values, Mapping):
        return {}
    return {name: math.inf if value is None else value for name, value in values.items()}


def comparison(runs: Mapping[str, Recorded]) -> str:
    """The facts of several runs side by side; of one problem's solved runs the best values are marked."""
    columns = {label: facts(run) for label, run in runs.items()}
    head = "".join(f'<th scope="col">{coloured(label, k)}</th>' for k, label in enumerate(runs))
    best = {}
    if len({run.result.get("problem") for run in runs.values()}) == 1:
        results = [run.result if solved(run) else {} for run in runs.values()]
        best = {
            "relative l2 error": _least(worst(result.get("relative_l2")) for result in results),
            "held-out residual": _least(worst(result.get("held_out")) for result in results),
            "solve time": _least((result.get("seconds") or {}).get("solve") for result in results),
        }
    rows = []
    for label in dict.fromkeys(label for column in columns.values() for label in column):
        cells = [html_powers(column.get(label, NOTHING)) for column in columns.values()]
        marked = (f"<td{' class=best' if best.get(label) == k else ''}>{cell}</td>" for k, cell in enumerate(cells))
        rows.append(f'<tr><th scope="row">{label}</th>{"".join(marked)}</tr>')
    return scrolling("Results", "comparison", f"<td></td>{head}", rows)


def differences(runs: Mapping[str, Recorded]) -> str:
    """Settings, constants of the method, network and environment in which runs differ."""
    columns = [_everything(run) for run in runs.values()]
    names = dict.fromkeys(name for column in columns for name in column)
    differing = [name for name in names if len({column.get(name) for column in columns}) > 1]
    if not differing:
        return paragraph("The runs have the same settings, method, network and environment.")
    rows = []
    for name in differing:
        cells = "".join(f"<td>{html_powers(column.get(name, NOTHING))}</td>" for column in columns)
        rows.append(f'<tr><th scope="row">{spaced(name)}</th>{cells}</tr>')
    head = "".join(f'<th scope="col">{escape(label)}</th>' for label in runs)
    return scrolling("Differences", "comparison", f"<td></td>{head}", rows)


def _everything(run: Recorded) -> dict[str, str]:
    """The whole configuration of a run, by name."""
    method, network = _unlimited(run.config.get("method")), run.config.get("network")
    method = {"method": method.pop("name", NOTHING), **method}
    built = {f"network {name}": v for name, v in network.items()} if isinstance(network, Mapping) else {}
    groups = (_unlimited(run.config.get("settings")), method, built, run.result.get("environment"))
    return {name: listed(v) for group in groups if isinstance(group, Mapping) for name, v in group.items()}


def _least(values: Iterable[Any]) -> int | None:
    """Which of several values is the smallest; None if fewer than two are known."""
    known = [(value, k) for k, value in enumerate(values) if isinstance(value, int | float)]
    return min(known)[1] if len(known) > 1 else None


def downloads(runs: Mapping[str, Recorded]) -> str:
    """Links to the files of the runs, which are embedded in the page."""
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
