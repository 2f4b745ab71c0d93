"""What the files of a run say, in words and numbers, for the page and for the table in a terminal."""

from collections.abc import Mapping
from typing import Any

from dsgnar.showing.report.recorded import Recorded
from dsgnar.showing.words import NOTHING, duration, listed, number
from dsgnar.solving.stop import StopReason
from dsgnar.storing.estimated import quantity_in
from dsgnar.storing.inferred import from_json

SENTENCES = {reason.code: reason.sentence for reason in StopReason}


def worst(values: Any) -> float | None:
    """The largest of some named numbers."""
    known = [v for v in values.values() if isinstance(v, int | float)] if isinstance(values, Mapping) else []
    return max(known) if known else None


VERDICTS = {"solved": "Solved", "partly": "Partly solved", "failed": "Not solved"}


def verdict(run: Recorded) -> str:
    return VERDICTS.get(str(run.result.get("verdict")), "Not judged")


def solved(run: Recorded) -> bool:
    return run.result.get("verdict") == "solved"


def reason(run: Recorded) -> str:
    """Why the run stopped, as a sentence without its full stop."""
    code = run.result.get("stop_reason")
    return SENTENCES.get(str(code), f"the run stopped with {code!r}" if code else "the reason to stop is not recorded")


def paper_error(run: Recorded) -> float | None:
    """The paper's error for this problem and precision."""
    return run.benchmark.paper.get(str(run.result.get("precision"))) if run.benchmark else None


def facts(run: Recorded) -> dict[str, str]:
    """The run in a dozen lines, the most important first. What is not known is left out."""
    result, time = run.result, run.result.get("seconds") or {}
    out = {
        "verdict": verdict(run),
        "stop reason": reason(run),
        **inferred(run),
        "quantity": quantity(run),
        "estimated error": errors(result.get("error_estimate")),
        "tolerance": errors(tol) if isinstance(tol := result.get("tol"), Mapping) else number(tol),
        "relative l2 error": errors(result.get("relative_l2")),
        "error in the paper": number(paper_error(run)),
        "held-out residual": errors(result.get("held_out")),
        "iterations": listed(result.get("iterations")),
        "loss evaluations": listed(result.get("loss_evaluations")),
        "solve time": duration(time.get("solve")),
        "compile time": duration(time.get("compile")),
        "problem": listed(result.get("problem")),
        "preset": listed(result.get("preset")),
        "method": method(run),
        "precision": listed(result.get("precision")),
        "seed": listed(result.get("seed")),
        "network": network(run),
        "parameters": listed(result.get("parameters")),
        "sketch": listed(result.get("sketch")),
        "points": listed(result.get("points")),
        "switches": switches(run),
    }
    return {label: value for label, value in out.items() if value != NOTHING}


def inferred(run: Recorded) -> dict[str, str]:
    """Coefficients and functions with their error bars, and how data fit."""
    try:
        found = from_json(run.result, {})
    except (KeyError, TypeError, ValueError):  # a changed file
        return {}
    if found is None:
        return {}
    fits = {f"fit of {name}": str(fit) for name, fit in found.fits.items()}
    every = found.coefficients | found.functions
    return {name: str(known) for name, known in every.items()} | fits


def quantity(run: Recorded) -> str:
    """What the error is of, where that is not the unknowns: `1.2345 +- 2e-06`."""
    try:
        found = quantity_in(run.result)
    except (KeyError, TypeError, ValueError):  # a changed file
        return NOTHING
    return NOTHING if found is None else str(found)


def errors(values: Any) -> str:
    """`4.5e-07`, or `u 1.2e-04, v 2.3e-04` for several unknowns."""
    if not isinstance(values, Mapping) or not values:
        return NOTHING
    if len(values) == 1:
        return number(*values.values())
    return ", ".join(f"{name} {number(value)}" for name, value in values.items())


def method(run: Recorded) -> str:
    """`fast`, or `fast with wait 77 (default 40)`."""
    name = listed(run.result.get("method"))
    changed = ", ".join(f"{label} {change(*pair)}" for label, pair in run.changed.items())
    return f"{name} with {changed}" if changed else name


def change(value: Any, default: Any) -> str:
    """`77 (default 40)`."""
    return f"{listed(value)} (default {listed(default)})"


def network(run: Recorded) -> str:
    """`MLP, 16 x 6`."""
    described = run.config.get("network")
    if not isinstance(described, Mapping):
        return NOTHING if described is None else str(described)
    kind, widths = described.get("kind"), described.get("widths")
    return f"{kind}, {listed(widths)}" if widths else str(kind)


def switches(run: Recorded) -> str:
    """`stage 2 from iteration 71, double precision from 80`."""
    if len(run.marks) > 6:
        kinds = [mark.kind for mark in run.marks]
        return ", ".join(f"{kind}: {kinds.count(kind)} times" for kind in dict.fromkeys(kinds))
    return ", ".join(f"{mark.label} from iteration {mark.iteration}" for mark in run.marks) or NOTHING
