"""What a run's files say, in words and numbers: shared by the page and the terminal's table."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from dsgnar.report.recorded import Recorded
from dsgnar.stages import StopReason

NOTHING = "–"
SENTENCES = {reason.code: reason.sentence for reason in StopReason}


def number(value: Any, digits: int = 2) -> str:
    """A number as a person writes it: 1447, 0.25, 4.5e-07."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return NOTHING if value is None else str(value)
    if isinstance(value, int):
        return str(value)
    if not math.isfinite(value):
        return NOTHING if math.isnan(value) else str(value)
    if value == 0 or 1e-2 <= abs(value) < 1e5:
        return f"{value:.{digits + 1}g}"
    return f"{value:.{digits - 1}e}"


def listed(values: Any) -> str:
    """A value of the configuration: `16 x 6` for equal widths."""
    if isinstance(values, Mapping):
        return ", ".join(f"{name} {listed(value)}" for name, value in values.items()) or NOTHING
    if isinstance(values, Sequence) and not isinstance(values, str):
        if len(values) > 1 and all(v == values[0] for v in values):
            return f"{listed(values[0])} × {len(values)}"
        return ", ".join(map(listed, values)) or NOTHING
    if isinstance(values, bool):
        return "yes" if values else "no"
    return f"{values:g}" if isinstance(values, float) else number(values)


def worst(values: Any) -> float | None:
    """The largest of some named figures."""
    known = [v for v in values.values() if isinstance(v, int | float)] if isinstance(values, Mapping) else []
    return max(known) if known else None


def verdict(run: Recorded) -> str:
    return "Converged" if run.result.get("converged") else "Not converged"


def reason(run: Recorded) -> str:
    """Why the run stopped, as a sentence without its full stop."""
    code = run.result.get("stop_reason")
    return SENTENCES.get(str(code), f"it stopped with {code!r}" if code else "why it stopped is not recorded")


def paper_error(run: Recorded) -> float | None:
    """The paper's error for this problem and precision."""
    return run.benchmark.paper.get(str(run.result.get("precision"))) if run.benchmark else None


def seconds(value: Any) -> str:
    """A duration: 25.3 s, 6 min 37 s, 1 h 12 min."""
    if not isinstance(value, int | float):
        return NOTHING
    if value < 100:
        return f"{value:.3g} s"
    minutes, rest = divmod(round(value), 60)
    hours, left = divmod(minutes, 60)
    return f"{hours} h {left} min" if hours else f"{minutes} min {rest} s"


def facts(run: Recorded) -> dict[str, str]:
    """The run in a dozen lines, the most important first; only what is known."""
    result, time = run.result, run.result.get("seconds") or {}
    out = {
        "verdict": verdict(run),
        "stop reason": reason(run),
        "relative l2 error": errors(result.get("relative_l2")),
        "the paper's error": number(paper_error(run)),
        "held-out residual": errors(result.get("held_out")),
        "iterations": listed(result.get("iterations")),
        "loss evaluations": listed(result.get("loss_evaluations")),
        "solving": seconds(time.get("solve")),
        "compiling": seconds(time.get("compile")),
        "problem": listed(result.get("problem")),
        "preset": listed(result.get("preset")),
        "method": listed(result.get("method")),
        "precision": listed(result.get("precision")),
        "seed": listed(result.get("seed")),
        "network": network(run),
        "parameters": listed(result.get("parameters")),
        "sketch": listed(result.get("sketch")),
        "points": listed(result.get("points")),
        "switches": switches(run),
    }
    return {label: value for label, value in out.items() if value != NOTHING}


def errors(values: Any) -> str:
    """`4.5e-07`, or `u 1.2e-04, v 2.3e-04` where there are several."""
    if not isinstance(values, Mapping) or not values:
        return NOTHING
    if len(values) == 1:
        return number(*values.values())
    return ", ".join(f"{name} {number(value)}" for name, value in values.items())


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
