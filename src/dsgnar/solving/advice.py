"""How good an answer is, in words, and what would make it better.

Known at the end of a run, for each condition m with weight w_m:

    q_m   root mean square residual on held-out points               (`Outcome.held_out`)
    t_m   the same on the points last trained on                     (`Record.mean_squares`)
    f_m   the floor of the precision: by how much the residual moves when a quarter of the parameters, chosen at random,
          is replaced by neighbouring floating-point numbers         (`floors`)

and from them the loss 1/2 sum w q^2 and its floor 1/2 sum w f^2. On Burgers in single precision a finished run had a loss
of 1.9e-13; its floor is 1.3e-13, and comparing float32 with float64 residuals at the same parameters gives 1.5e-13.

    rule       when                                                  advice
    failed     no usable step was found                              a smaller first radius; residuals that are finite
    limit      a limit or an interruption ended the run              raise the limit, or resume
    floor      loss <= NEAR floor, or the run stopped there          double precision; in double nothing helps
    points     above the floor, and q_m > GAP t_m for some m         more points
    network    above the floor, and no step helped any more          a larger network or sketch, or time marching
    broken     not solved though the run ended by itself             the conditions that do not hold, and what may be wrong
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from dsgnar.calculus.precision import DTYPES
from dsgnar.calculus.streams import stream
from dsgnar.networks.parameters import neighbour
from dsgnar.problem.domain import Interior, Points
from dsgnar.problem.jumps import switches
from dsgnar.problem.sampling import sample
from dsgnar.solving.estimate import NO_ESTIMATE, UNSOLVED
from dsgnar.solving.fit import about_data, inferred
from dsgnar.solving.record import Outcome, Record
from dsgnar.solving.solution import Solution
from dsgnar.solving.stop import StopReason
from dsgnar.solving.verdict import FAILED, Verdict

NEAR = 10.0  # residuals within a factor of three of what rounding makes of them
GAP = 2.0  # two sets of points differ by some per cent
SAMPLE = 512  # points of each condition at which the floor is measured
FINE = 1e-6  # an estimated error with which most people are content
_IMPLIED = "conditions for {} do not fit where they meet, initial values jump or a source sets in: that part is built in"
LIGHT = 1e-3  # of the largest weight: a condition that may have been weighted away


def summary(solution: Solution) -> str:
    """What was reached, how it compares with what the precision allows, and what would help."""
    outcome = solution.outcome
    if outcome is None:
        return "a solution without an account of its run"
    floor, precision = floors(solution), _precision(solution)
    lines = [
        f"{outcome.verdict.code}: {_judged(solution, outcome)}",
        *_reached(solution),
        *map(_IMPLIED.format, solution.problem.implied),
        *_jumping(solution),
        f"stopped: {outcome.stop.sentence}",
        f"{len(outcome.history)} iterations, {outcome.loss_evaluations} loss evaluations, "
        f"{outcome.seconds['solve']:.1f} s (+ {outcome.seconds['compile']:.1f} s compiling), "
        f"{solution.parameters} parameters, sketch {outcome.settings.sketch}, {outcome.settings.precision} precision",
        "root mean square on held-out points, and what rounding alone makes of it:",
        *_table(solution, outcome.held_out, floor),
    ]
    if outcome.history:
        loss, least = (weighted(outcome, values) for values in (outcome.held_out, floor))
        lines.append(f"loss on held-out points {loss:.1e}; the floor of {precision} precision is {least:.1e}")
    lines += inferred(outcome.inference)
    lines.append(_estimated(outcome))
    if outcome.relative_l2:
        lines.append("true relative l2 error: " + ", ".join(f"{n} {v:.2e}" for n, v in outcome.relative_l2.items()))
    return "\n".join(lines + [f"advice: {sentence}" for sentence in advise(solution, floor)])


def _jumping(solution: Solution) -> list[str]:
    """Where equations jump, and what was made of it."""
    model, lines = solution.model, []
    scales, domain = model.residuals.ansatz.scales, model.problem.domain
    if scales is None:
        return []
    for k, axis in enumerate(domain.axes):
        middle, half = scales.axes[k]
        places = [middle + half * place for i, place, _ in getattr(model.network, "kinks", ()) if i == k]
        lines += [f"equations jump at {axis} = {_listed(places)}: the network bends there"] if places else []
    ended = [t for t in switches(model.problem.stated, scales) if t in model.march.times] if model.march.count > 1 else []
    return lines + ([f"time intervals end where equations jump: {domain.time} = {_listed(ended)}"] if ended else [])


def _listed(values: Sequence[float]) -> str:
    """Numbers as a person lists them."""
    *most, last = [f"{value:.6g}" for value in values]
    return f"{', '.join(most)} and {last}" if most else last


def _reached(solution: Solution) -> list[str]:
    """How far a march got that did not get to its end."""
    time, outcome = solution.problem.domain.time, solution.outcome
    if solution.reached is None or outcome is None or time is None:
        return []
    first, last = solution.problem.domain.interval(time)
    solved, share = solution.march.times[-2], (solution.reached - first) / (last - first)
    return [
        f"only {time} <= {solution.reached:g} of {last:g} was reached, {100 * share:.0f} % of the time; the solution is nan "
        f"beyond, and rough from {time} = {solved:g} on"
    ]


def _judged(solution: Solution, outcome: Outcome) -> str:
    """Which condition holds worst, against the size of its own terms."""
    name, worst = max(outcome.relative_residuals.items(), key=lambda item: item[1])
    sentence = outcome.verdict.sentence if solution.reached is None else "the end of the time was not reached"
    return f"{sentence}; the largest residual is {worst:.1e} of its terms ({name})"


def _estimated(outcome: Outcome) -> str:
    """The estimated error, or why there is none; and the tolerance."""
    found, tolerance = outcome.estimate, outcome.settings.tolerance
    if outcome.inference is not None:
        text = f"estimated relative l2 error: unknown ({NO_ESTIMATE})"
    elif found is None:
        text = f"estimated relative l2 error: unknown, since {UNSOLVED}"
    elif found.known:
        text = "estimated relative l2 error: " + ", ".join(f"{n} {v:.1e}" for n, v in found.errors.items())
    else:
        text = f"estimated relative l2 error: unknown ({found.why})"
    if found is not None and found.quantity is not None:
        text += f"; quantity {found.quantity}"
    if not tolerance:
        return text
    if not outcome.hidden or found is None:
        return f"{text}; tolerance {tolerance} {'met' if outcome.tolerance_met else 'not met'}"
    return f"{text}; tolerance {tolerance} not met: rounding alone makes {max(found.rounding.values()):.0e}"


def _table(solution: Solution, held_out: Mapping[str, float], floor: Mapping[str, float]) -> list[str]:
    width = max(map(len, held_out))
    out = []
    for name, value in held_out.items():
        condition = solution.problem.conditions[name]
        kind = "residual" if isinstance(condition.part, Interior) else "violation"
        kind = kind if condition.measured is None else "misfit"
        out.append(f"  {name:{width}}  {kind:9}  {value:.1e}  ({floor[name]:.1e})")
    return out


def floors(solution: Solution) -> dict[str, float]:
    """By how much rounding moves the residual of each condition (root mean square)."""
    rng = stream(0, "floor")
    moved = dataclasses.replace(solution, thetas=neighbour(solution.thetas, rng))
    out = {}
    for name, condition in solution.problem.conditions.items():
        given = isinstance(condition.part, Points)
        points = sample(condition.part, solution.problem.domain if given else solution.covered, SAMPLE, rng)
        at = dict(zip(solution.problem.domain.axes, points.T, strict=True))
        there, here = (s.residual(name)(**at).astype(np.float64) for s in (moved, solution))
        out[name] = float(np.sqrt(np.nanmean((there - here) ** 2)))  # nan: at times that were not reached
    return out


def _precision(solution: Solution) -> str:
    """The precision that the parameters are in."""
    return next(name for name, dtype in DTYPES.items() if solution.thetas.dtype == dtype)


def weighted(outcome: Outcome, values: Mapping[str, float]) -> float:
    """The loss that root mean squares by condition amount to, with the last weights."""
    weights, values_ = outcome.history[-1].weights, values.values()
    return 0.5 * sum(w * (v / size) ** 2 for w, v, size in zip(weights, values_, outcome.sizes, strict=True))


_ENOUGH = (StopReason.TOLERANCE, StopReason.RESIDUAL)  # nothing more was wanted


def advise(solution: Solution, floor: Mapping[str, float]) -> list[str]:
    """What would help, by the rules above."""
    outcome = solution.outcome
    assert outcome is not None
    out = _about_stopping(outcome) + _about_conditions(solution, outcome)
    if outcome.inference is not None and outcome.inference.fits:
        return out + about_data(outcome)
    if not outcome.history or outcome.stop in _ENOUGH or outcome.tolerance_met or _fine(outcome):
        return out
    settings = outcome.settings
    above = weighted(outcome, outcome.held_out) / max(weighted(outcome, floor), 1e-300)
    name, gap = _widest_gap(outcome)
    if above <= NEAR or (outcome.stop is StopReason.FLOOR and gap <= GAP):
        # A double-precision run that was stopped in its single-precision beginning is not at its floor.
        return out + ([_FLOOR[settings.precision]] if _precision(solution) == settings.precision else [])
    if gap > GAP:
        larger = f"the residual of {name!r} is {gap:.1f} times as large on held-out points"
        out.append(f"too few points: {larger}; raise points and max_points (now {settings.method.max_points})")
    elif outcome.stop in _ENDED:
        at_once = solution.problem.domain.time and solution.march.count == 1 and settings.intervals != "auto"
        march = ", or time marching (intervals=4)" if at_once else ""  # which "auto" has tried
        far = f"well above the floor (residuals {math.sqrt(above):.0e} times)"
        fronts = "" if settings.method.adaptive else ", points where residuals are large (adaptive=0.5)"
        out.append(f"{_ENDED[outcome.stop]} {far}: a larger network or sketch{fronts}{march}")
    return out


def _fine(outcome: Outcome) -> bool:
    """Whether a problem is solved so well that nobody needs advice."""
    errors = outcome.error_estimate
    return outcome.verdict is Verdict.SOLVED and errors is not None and max(errors.values()) < FINE


def _widest_gap(outcome: Outcome) -> tuple[str, float]:
    """The condition whose residual on held-out points exceeds that on training points most, and by which factor."""
    trained = dict(zip(outcome.held_out, training(outcome.history, outcome.sizes), strict=True))
    gaps = {name: q / trained[name] for name, q in outcome.held_out.items() if trained[name] > 0}
    return max(gaps.items(), key=lambda item: item[1], default=("", 0.0))


_FLOOR = {
    "single": "single-precision floor reached: use precision='double'",
    "double": "double-precision floor reached: this is what the arithmetic allows",
}


_ENDED = {
    StopReason.RADIUS: "radius collapsed",
    StopReason.STALLED: "loss stalled",
    StopReason.REJECTED: "steps were rejected",
}


def _about_conditions(solution: Solution, outcome: Outcome) -> list[str]:
    """Advice where conditions do not hold although the run ended by itself."""
    if outcome.verdict is not Verdict.FAILED or not outcome.stop.converged:
        return []
    broken = {name: q for name, q in outcome.relative_residuals.items() if not q <= FAILED}
    if not broken:
        return []
    conditions = solution.problem.conditions
    shown = ", ".join(f"{name!r} ({q:.0e} of its terms)" for name, q in broken.items())
    light = [name for name in broken if conditions[name].initial_weight < LIGHT * _heaviest(solution)]
    if light:
        return [f"{shown}: the weight of {light[0]!r} is far below the others'; raise weight="]
    if len(broken) > 1 and any(not isinstance(conditions[name].part, Interior) for name in broken):
        return [f"these do not hold together: {shown}; do they contradict each other?"]
    return [f"this does not hold: {shown}; check its signs and units, and whether other conditions contradict it"]


def _heaviest(solution: Solution) -> float:
    return max(condition.initial_weight for condition in solution.problem.conditions.values())


def _about_stopping(outcome: Outcome) -> list[str]:
    """Advice for a run that did not end by itself."""
    settings = outcome.settings
    if outcome.stop is StopReason.ITERATIONS:
        return [f"not converged: raise max_iterations (now {settings.max_iterations}), or resume"]
    if outcome.stop is StopReason.SECONDS:
        return [f"not converged: raise max_seconds (now {settings.max_seconds:g}), or resume"]
    if outcome.stop is StopReason.INTERRUPTED:
        return ["not converged: resume"]
    if outcome.stop in _ENOUGH:
        further = "a smaller tol" if settings.tol < math.inf else "tol= or enough=0"
        return [f"the error is small enough: {further} goes further"]
    if outcome.stop is StopReason.FAILED:
        smaller = settings.method.radius / 10
        return [
            f"no usable step: start with a smaller radius ({smaller:g}), or keep the residuals finite near the solution"
        ]
    return []


def training(history: tuple[Record, ...], sizes: tuple[float, ...]) -> list[float]:
    """Root mean squares on the last training points; of several time intervals the largest, as with held-out points.

    `sizes` are those of the conditions, by which residuals are divided in the history.
    """
    ends = [before for before, after in pairwise(history) if before.interval != after.interval] + [history[-1]]
    largest = [math.sqrt(max(values)) for values in zip(*(record.mean_squares for record in ends), strict=True)]
    return [value * size for value, size in zip(largest, sizes, strict=True)]
