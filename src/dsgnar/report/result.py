"""What a run reached, at the top of its page: the verdict, the figures, and what they rest on."""

import textwrap
from collections.abc import Mapping

from dsgnar.advice import advise, floors
from dsgnar.figures.planes import Quality
from dsgnar.report.facts import NOTHING, errors, listed, number, paper_error, reason, seconds, verdict, worst
from dsgnar.report.markup import escape, paragraph, pretty, scrolling
from dsgnar.report.recorded import Recorded


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
    table = scrolling("Residuals", "certificate", head, rows) if rows else ""
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
