"""How a time interval of an initial value problem in one variable begins, and how long it is to be.

The state y = (u, u', ..) at the beginning of an interval is known: from the initial conditions, or as the network of the
interval before has it. It is built into the unknowns (`optimise/ansatz.py`), so that it holds exactly, and the network has
to find only what is added to it. The rough solution (`forecast.py`) says how large that is, after which time the beginning
is forgotten, how large the terms of every equation are in the interval, and over which time the solution is simple enough
for a small network: its length is such that polynomials of degree 8 follow it. All of that concerns sizes; values come from
the equations alone.
"""

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from dsgnar.calculus.precision import x64
from dsgnar.networks.mlp import TanhNetwork
from dsgnar.problem import Problem
from dsgnar.problem.domain import Interior
from dsgnar.problem.fields import Requests, evaluate
from dsgnar.problem.jumps import switches
from dsgnar.problem.scales import Scales, power_of_two
from dsgnar.solving.evaluation import located
from dsgnar.solving.forecast import ACCURACY, Rough, System, roughly
from dsgnar.solving.march import March

if TYPE_CHECKING:
    from dsgnar.solving.context import Context
    from dsgnar.solving.model import Model
    from dsgnar.solving.state import RunState

LONGER = 1.5  # the next interval than the last one, where no cut was needed
TWICE = 2.0  # and where the rough solution says that longer ones are simple
SIMPLE = 8  # degree of the polynomials that follow a solution over an interval
CLOSELY = 3e-4  # of its change there
LEAST = 2.0**-30  # of the size of an unknown or an equation: beyond what the rough solution resolves
CALM = 3.0  # largest value over the root mean square of what a network is to represent
RATES = (0.0, *(2.0**k for k in range(21)))
NODES = (1 - np.cos(np.pi * (np.arange(4 * SIMPLE) + 0.5) / (4 * SIMPLE))) / 2  # of an interval of length 1
CHEBYSHEV = np.polynomial.chebyshev.chebvander(2 * NODES - 1, SIMPLE)
FIT = np.linalg.pinv(CHEBYSHEV)
SHORTER, SHORTEST = 2.0**-0.25, 1e-9  # lengths that are tried, over the one before; and the least, over all of the time
STEPS, STEEPER = 100, 30.0  # steps of the rough solution that are looked at, and what single ones may miss


def begun(
    problem: Problem, scales: Scales, state: Float[np.ndarray, " y"], interval: tuple[float, float]
) -> tuple[float, ...]:
    """What points of an interval carry that begins with a state: c, V and r of every unknown, stretch of every condition."""
    system, rough = System.of(problem), roughly(problem, scales)
    assert system is not None
    begin, end = interval
    length, out, times = end - begin, [], begin + (end - begin) * NODES
    path = None if rough is None else rough(times) - rough(np.array([begin]))  # its own beginning, for it drifts away
    for j, order in enumerate(system.orders):
        at, unknown = system.first[j], scales.unknowns[j]
        taylor = np.array([state[at + i] * length**i / math.factorial(i) for i in range(order)])
        size, rate = unknown, 0.0
        if rough is not None and path is not None:
            first = rough(np.array([begin]))[at : at + order, 0]
            own = np.array([first[i] * length**i / math.factorial(i) for i in range(order)])
            size, rate = _added(path[at] + first[0], own, max(unknown, abs(float(state[at]))))
        out += [*_in_w(taylor, rate), size, rate]
    return (*map(float, out), *_stretches(problem, scales, rough, times))


def _added(values: np.ndarray, taylor: np.ndarray, unknown: float) -> tuple[float, float]:
    """Size and rate of forgetting of what a network adds."""
    added, order = np.zeros(1), len(taylor)
    rate = 0.0
    for rate in RATES:
        w = NODES / (1 + rate * NODES)
        added = (values - np.polynomial.polynomial.polyval(w, _in_w(taylor, rate))) / w**order
        late = added[len(NODES) // 8 :] if rate == 0 else added
        if not np.max(np.abs(late)) > CALM * np.sqrt(np.mean(late**2)):
            break
    size = float(np.sqrt(np.mean(added[len(NODES) // 8 :] ** 2)))
    return power_of_two(max(size, LEAST * unknown)), rate


def _in_w(taylor: np.ndarray, rate: float) -> np.ndarray:
    """Coefficients in w = s/(1 + r s) of what has the given coefficients in s, as far as there are any."""
    out = np.zeros(len(taylor))
    for j in range(len(taylor)):
        parts = [taylor[i] * math.comb(j - 1, j - i) * rate ** (j - i) for i in range(1, j + 1)]
        out[j] = taylor[0] if j == 0 else sum(parts)
    return out


def _stretches(problem: Problem, scales: Scales, rough: Rough | None, times: np.ndarray) -> tuple[float, ...]:
    """The size of an equation over that of its terms in an interval; 1 for other conditions."""
    inside = [isinstance(c.part, Interior) for c in problem.conditions.values()]
    if rough is None:
        return (1.0,) * len(inside)
    with np.errstate(all="ignore"):
        sizes = iter(np.sqrt(np.mean(rough.system.terms(times, rough(times)) ** 2, axis=0)))
    out = []
    for equation, size in zip(inside, scales.conditions, strict=True):
        here = float(next(sizes)) if equation else size
        known = math.isfinite(here) and here > 0
        out.append(1 / power_of_two(max(here / size, LEAST)) if known else 1.0)
    return tuple(out)


@x64
def state_at(model: "Model", theta: np.ndarray, k: int, time: float) -> Float[np.ndarray, " y"]:
    """y at a time, as the network of interval k has it."""
    problem, ansatz = model.problem, model.residuals.ansatz
    point = jnp.asarray(located(model, np.array([[time]]), k)[0])
    below = zip(problem.unknowns, ansatz.orders, strict=True)
    requests: Requests = {u: frozenset((i,) for i in range(order)) for u, order in below}
    network = ansatz.network(jnp.asarray(theta, jnp.float64), ansatz.place(point))
    fields = evaluate(network, point[:1], problem.outputs, requests, problem.domain, "nested")
    asked = [(u, i) for u, order in zip(problem.unknowns, ansatz.orders, strict=True) for i in range(order)]
    return np.array([float(fields[u]._lookup((i,))) for u, i in asked])


def placed(context: "Context", state: "RunState") -> "RunState":
    """The state with what points of the interval that is being solved carry, where the beginning is built in."""
    problem, scales, times = context.problem, context.settings.scales, state.times
    if not context.residuals.ansatz.orders or scales is None:
        return state
    earlier = state.begun[: state.interval]
    if state.finished:
        before = replace(context.model, march=March(times[:-1], earlier))
        y = state_at(before, state.finished[-1], state.interval - 1, times[-2])
    else:
        system = System.of(problem)
        y = None if system is None else system.start
    return state if y is None else replace(state, begun=(*earlier, begun(problem, scales, y, (times[-2], times[-1]))))


def next_end(context: "Context", state: "RunState") -> float:
    """Until when the next interval goes: as the rough solution suggests, or longer than the last one, if that was solved."""
    begin, end = state.times[-2:]
    last, scales = until_switch(context, end), context.settings.scales
    longer, most = LONGER, last
    if scales is not None and roughly(context.problem, scales) is not None:
        longer, most = TWICE, simple(context, end)
        if end >= simple(context, begin):
            return most
    length = (end - begin) * (1.0 if state.cuts else longer)
    if end + length >= most:
        return most
    count = max(1, math.ceil((last - end) / length - 1e-9))
    return last if count == 1 else end + (last - end) / count


def simple(context: "Context", begin: float) -> float:
    """Until when a small network follows the solution from a time on."""
    first, scales, last = context.march.times[0], context.settings.scales, until_switch(context, begin)
    rough = None if scales is None else roughly(context.problem, scales)
    plain = isinstance(context.residuals.parameters.network(jnp.asarray(context.first)), TanhNetwork)
    if rough is None or scales is None or not plain:
        return last
    length, sizes = last - begin, np.array(scales.unknowns)
    while length > SHORTEST * (last - first):
        if _followed(rough, begin, length, sizes):
            break
        length *= SHORTER
    count = math.ceil((last - begin) / length - 1e-9)
    return last if count == 1 else begin + (last - begin) / 2 if count == 2 else begin + length


def until_switch(context: "Context", begin: float) -> float:
    """Until when equations and boundary values are smooth from a time on: an interval ends where they jump."""
    last, scales = context.march.times[-1], context.settings.scales
    later = () if scales is None else (t for t in switches(context.problem.stated, scales) if t > begin)
    return min(later, default=last)


def _followed(rough: Rough, begin: float, length: float, sizes: np.ndarray) -> bool:
    """Whether polynomials follow a rough solution over an interval: at its nodes, and where its steps are short."""
    steps = (rough.steps - begin) / length
    steps = steps[(steps >= 0) & (steps <= 1)]
    steps = steps[:: max(1, len(steps) // STEPS)]
    values = rough(begin + length * np.concatenate([NODES, steps]))[rough.system.first]
    mean = values[:, : len(NODES)].mean(axis=1, keepdims=True)
    change, between = values[:, : len(NODES)] - mean, values[:, len(NODES) :] - mean
    rms = lambda v: np.sqrt(np.mean(v**2, axis=1))
    enough = CLOSELY * rms(change) + 10 * ACCURACY * (rms(values) + 0.1 * sizes)
    left = change @ FIT.T
    if np.any(rms(change - left @ CHEBYSHEV.T) > enough):
        return False
    there = np.polynomial.chebyshev.chebvander(2 * steps - 1, SIMPLE)
    return bool(np.all(np.abs(between - left @ there.T) <= (STEEPER * enough)[:, None]))
