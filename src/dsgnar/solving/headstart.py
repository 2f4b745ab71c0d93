"""First parameters near a rough solution, for hard problems and for an attempt that follows one that failed.

From random parameters an attempt may end far from any solution: in a local minimum, or where u = 0 is the best it finds.
A rough solution in a linear space (`rough.py`) knows no such minima. A network is fitted to its values by a few iterations
of the same optimiser, with the target ratio of stage 1, and goes on from there with the equations.

Where a rough solution could be found in slices of time only, or in a space made for its data, the first attempt begins like
that, and so do those at less of the time that follow. Where equations in time are linear and no small space holds their
solution, such as a pulse that travels, every attempt at the first interval begins near the initial values. Else it is no
first choice: networks that were led there need more regularisation than those that found their own way (docs/method.md).
"""

import inspect
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from dsgnar.calculus.precision import DTYPES
from dsgnar.calculus.streams import stream
from dsgnar.networks.base import Affine
from dsgnar.networks.mlp import TanhNetwork
from dsgnar.networks.parameters import Parameters
from dsgnar.optimise.weights import Reweighting
from dsgnar.problem import Problem
from dsgnar.problem.conditions import Condition
from dsgnar.problem.corners import first_value, given_first
from dsgnar.problem.data import data
from dsgnar.problem.domain import Box, Interior
from dsgnar.problem.doubts import highest
from dsgnar.problem.sampling import Sampling, sample
from dsgnar.problem.scales import estimate
from dsgnar.problem.singular import slight, with_parts
from dsgnar.solving.correction import Correction
from dsgnar.solving.forecast import System
from dsgnar.solving.rough import NEAR
from dsgnar.solving.survey import carried_far, rough_solution, seen_as_given_only, seen_in_slices_only

if TYPE_CHECKING:
    from dsgnar.solving.context import Context

Values = dict[tuple[str, int], Float[np.ndarray, " n"]]  # of an unknown, and of which derivative

POINTS = 2**13
GRID = 4001  # points of an axis
ITERATIONS = 30
TAKES, TAKES_1D = 30.0, 3.0  # seconds, at most or so: no head start where fewer are left


def at_once(context: "Context") -> np.ndarray | None:
    """Parameters for a first attempt at a hard problem; None for others."""
    return None if context.settings.max_seconds < TAKES else led(context, context.problem.domain, 0)


def led(context: "Context", box: Box, tries: int) -> np.ndarray | None:
    """Parameters for an attempt at a hard problem, in all of the time or in a first part of it; None for others."""
    problem, scales = context.problem, context.settings.scales
    if scales is None or not _can_be_found(context):
        return None
    hard = seen_in_slices_only(problem, scales) or seen_as_given_only(problem, scales)
    return near_rough_solution(context, box, tries) if hard else near_initial_values(context, box, tries)


def near_rough_solution(context: "Context", box: Box, tries: int) -> np.ndarray | None:
    """Parameters for a part of the domain that are fitted to a rough solution there; None where none is known."""
    problem, scales = context.problem, context.settings.scales
    if scales is None or not _can_be_found(context):
        return None
    found = rough_solution(problem, scales)
    if found is None or not found[1] <= NEAR:
        return None
    single = box.dimension == 1
    points = _points(context, box, tries, "clustered" if single else "uniform")
    values = {}  # in one variable those of derivatives, too, for values alone do not tell a thin layer
    for j, name in enumerate(problem.unknowns):
        for order in range(max(1, highest(problem, name, box.axes[0])) if single else 1):
            values[name, order] = found[0].derivative(points, (order,) + (0,) * (box.dimension - 1))[:, j]
    fresh = _fresh(context, tries)
    if fresh is None:
        return None
    return _fitted(context, box, points, values, _bent_where(context, fresh, found[0], box) if single else fresh)


def near_initial_values(context: "Context", box: Box, tries: int) -> np.ndarray | None:
    """Parameters for an interval at the beginning of the time, fitted to the initial values; None where that is no help.

    A narrow hump in a wide box is hard to find, and soon followed once it is there. Where equations are linear, and no small
    space holds their solution; a nonlinear front was found with much more regularisation (docs/notes.md).
    """
    problem, scales = context.problem, context.settings.scales
    if scales is None or not _can_be_found(context) or not carried_far(problem, scales):
        return None
    given, fresh = [given_first(problem, name) for name in problem.unknowns], _fresh(context, tries)
    if None in given or fresh is None:
        return None
    points = _points(context, box, tries)
    values = {}
    for k, (name, condition) in enumerate(zip(problem.unknowns, given, strict=True)):
        values[name, 0] = np.asarray(jax.vmap(partial(first_value, problem, str(condition), k))(jnp.asarray(points)))
    return _fitted(context, box, points, values, fresh)


def _fresh(context: "Context", tries: int) -> np.ndarray | None:
    return context.model.fresh("double", context.settings.seed, 1000 * tries)


def _points(context: "Context", box: Box, tries: int, method: Sampling = "uniform") -> Float[np.ndarray, "n d"]:
    rng = stream(context.settings.seed, "head start", tries)
    return sample(Interior(), box, POINTS, rng, method, periodic=context.problem.periodic)


def _fitted(context: "Context", box: Box, points: np.ndarray, values: Values, theta: np.ndarray) -> np.ndarray:
    """Parameters with which a network has given values at points of a box: a problem without equations."""
    problem, settings, scales = context.problem, context.settings, context.settings.scales
    assert scales is not None
    at = dict(zip(box.axes, points.T, strict=True))
    conditions = {f"{of[0]} {of[1]}": _value(*of, at, column) for of, column in values.items()}
    wanted = with_parts(Problem(box, problem.unknowns, conditions, periodic=problem.periodic), problem.implied)
    sizes = dict(zip(problem.unknowns, scales.unknowns, strict=True))
    resolved = replace(settings, precision="double", intervals=1, quantity=None, scales=estimate(wanted, sizes))
    inner = type(context).of(wanted, context.model.network, resolved)
    state = inner.start()
    optimiser = replace(inner.optimisers[0], reweighting=Reweighting(0.0, 0.0))
    theta = context.residuals.devices.team.first(theta)  # a rough solution is not rounded equally everywhere
    iterate, active = replace(state.iterate, theta=theta), inner.collocation.active(state)
    for _ in range(ITERATIONS):
        iterate, _ = optimiser.iterate(iterate, active, settings.method.targets[0])
    return np.asarray(iterate.theta, DTYPES[settings.precision])


def _can_be_found(context: "Context") -> bool:
    """Whether a rough solution is what a network is to begin with.

    Not beside singular parts, which no space holds, unless they are small; nor where the network is only what hard values
    leave.
    """
    problem, scales = context.problem, context.settings.scales
    if scales is None or problem.hard or problem.inverse or problem.domain.shaped or System.of(problem):
        return False
    return not problem.implied or slight(problem, scales, _points(context, problem.domain, 0))


def _bent_where(context: "Context", theta: np.ndarray, rough: Correction, box: Box) -> np.ndarray:
    """A tanh network of one variable whose first units lie where a rough solution and its derivatives vary.

    As the points of a mesh that is equidistributed; the closer they lie, the steeper they are.
    """
    parameters = context.model.residuals.parameters
    network = parameters.network(jnp.asarray(theta))
    if not isinstance(network, TanhNetwork) or network.layers[0].affine.weight.shape[0] != 1:
        return theta
    grid = np.linspace(*box.bounds[0], GRID)
    amount = np.ones(GRID - 1)
    for j, name in enumerate(context.problem.unknowns):
        for order in range(max(1, highest(context.problem, name, box.axes[0]))):
            steps = np.abs(np.diff(rough.derivative(grid[:, None], (order,))[:, j]))
            amount += steps / max(float(np.mean(steps)), 1e-300)
    share = np.concatenate([[0.0], np.cumsum(amount)]) / np.sum(amount)
    weight, bias = (np.asarray(a) for a in (network.layers[0].affine.weight, network.layers[0].affine.bias))
    centres = np.argsort(np.argsort(-bias / weight[0]))  # from left to right
    xi = np.linspace(-1, 1, GRID)
    middle = np.interp((centres + 0.5) / len(centres), share, xi)
    close = np.interp((centres + 1) / len(centres), share, xi) - np.interp(centres / len(centres), share, xi)
    steeper = 2 / len(centres) / close
    affine = Affine.of(weight * steeper, weight.dtype, -weight[0] * steeper * middle)
    return np.asarray(Parameters.of(eqx.tree_at(lambda n: n.layers[0].affine, network, affine))[1])


def _value(name: str, order: int, at: dict[str, np.ndarray], values: Float[np.ndarray, " n"]) -> Condition:
    """A derivative of one unknown along the first axis has given values."""

    def unknown(**fields):
        return fields[name].d(next(iter(at)), order) if order else fields[name]

    parameter = inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    unknown.__signature__ = inspect.Signature([parameter])  # type: ignore[attr-defined]
    return data(unknown, at, values)
