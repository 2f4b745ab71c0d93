"""What a run reached, at the top of its page: the verdict, the main numbers, and the evidence for them."""

import textwrap
from collections.abc import Mapping

from dsgnar.showing.quality import Quality
from dsgnar.showing.report.facts import errors, paper_error, reason, solved, verdict, worst
from dsgnar.showing.report.markup import escape, paragraph, scrolling
from dsgnar.showing.report.recorded import Recorded
from dsgnar.showing.words import NOTHING, duration, html_powers, listed, number
from dsgnar.solving.advice import advise, floors


def lead(run: Recorded) -> str:
    """The verdict in two sentences."""
    good = "good" if solved(run) else ""
    why = reason(run)
    out = f'<span class="badge {good}">{verdict(run)}</span> {escape(why[:1].upper() + why[1:])}.'
    found = worst(run.result.get("relative_l2"))
    if found is not None:
        several = "at most " if len(run.result["relative_l2"]) > 1 else ""
        out += f" The relative ℓ₂ error is {several}<strong>{html_powers(number(found, 3))}</strong>"
        paper = paper_error(run)
        out += (
            f"; the paper reports {html_powers(number(paper, 3))} in {escape(run.result['precision'])} precision."
            if paper
            else "."
        )
    else:
        out += " There is no reference solution, so the error is not known; the residuals below are the evidence."
    return out


def lead_of_several(runs: Mapping[str, Recorded]) -> str:
    """How many runs solved their problem, and which has the smallest error."""
    out = f"{sum(map(solved, runs.values()))} of {len(runs)} runs solved their problem."
    found = [(e, label) for label, run in runs.items() if (e := worst(run.result.get("relative_l2"))) is not None]
    if len(found) > 1 and len({run.result.get("problem") for run in runs.values()}) == 1:
        error, label = min(found)
        taken = duration((runs[label].result.get("seconds") or {}).get("solve"))
        value = f"<strong>{html_powers(number(error, 3))}</strong>"
        out += f" The smallest relative ℓ₂ error is {value} ({escape(label)}, {taken})."
    return out


def tiles(run: Recorded) -> str:
    """The most important numbers."""
    result, time = run.result, run.result.get("seconds") or {}
    misfits = result.get("data") or {}
    held = worst({name: v for name, v in (result.get("held_out") or {}).items() if name not in misfits})
    error = worst(result.get("relative_l2"))
    shown = [
        ("relative ℓ₂ error", number(error), "no reference" if error is None else ""),
        ("held-out residual", number(held), "root mean square, worst condition"),
        ("iterations", number(result.get("iterations")), f"{number(result.get('loss_evaluations'))} loss evaluations"),
        ("solve time", duration(time.get("solve")), f"plus {duration(time.get('compile'))} for compiling"),
        ("parameters", number(result.get("parameters")), f"sketch {number(result.get('sketch'))}"),
        ("precision", listed(result.get("precision")), f"method {result.get('method', NOTHING)}"),
    ]  # fmt: skip
    cells = (f"<div><dt>{escape(a)}</dt><dd>{html_powers(b)}<small>{escape(c)}</small></dd></div>" for a, b, c in shown)
    return f'<dl class="tiles">{"".join(cells)}</dl>'


def certificate(run: Recorded, quality: Quality | None) -> str:
    """Residuals on held-out points, on training points, and from rounding alone; errors; what would help."""
    floor = {} if quality is None else floors(quality.solution)
    rows = []
    for name, value in (run.result.get("held_out") or {}).items():
        trained = run.training.get(name)
        gap = number(value / trained) if trained else NOTHING
        points = (run.result.get("points") or {}).get(name)
        cells = (number(value), number(trained), gap, number(floor.get(name)), number(points))
        where = escape(textwrap.shorten(run.conditions.get(name, ""), 48, placeholder=" …"))
        numbers = "".join(f'<td class="number">{html_powers(cell)}</td>' for cell in cells)
        rows.append(f'<tr><th scope="row">{escape(name)}</th><td>{where}</td>{numbers}</tr>')
    heads = ("condition", "where", "held out", "training", "ratio", "rounding floor", "training points")
    head = "".join(f'<th scope="col"{" class=number" if k > 1 else ""}>{text}</th>' for k, text in enumerate(heads))
    about = (
        "Root mean square residual of each condition. Held-out points are not used for training: a residual there that is "
        "close to the one at training points shows that the network satisfies the equation between them, too. The rounding "
        "floor is the residual that rounding alone causes in this precision."
    )
    table = scrolling("Residuals", "certificate", head, rows) if rows else ""
    help_ = [] if quality is None else advise(quality.solution, floor)
    advice = paragraph("<strong>Advice:</strong> " + html_powers("; ".join(help_)) + ".") if help_ else ""
    return paragraph(about, "muted") + table + _measured(run, quality) + advice


def _measured(run: Recorded, quality: Quality | None) -> str:
    if not run.result.get("relative_l2"):
        return ""
    text = f"Relative ℓ₂ error: <strong>{html_powers(errors(run.result['relative_l2']))}</strong>"
    if quality is not None and quality.reference is not None and not quality.estimated:
        r = quality.reference
        text += (
            f", measured at {len(r.points):,} points that are not used for training. Relative accuracy of the reference: "
            f"{html_powers(number(r.accuracy))} ({html_powers(r.source)})"
        )
    return paragraph(text + ".")
