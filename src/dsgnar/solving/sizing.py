"""Sizes of unknowns beyond what their data tell.

They are estimated from a problem's data (`problem/scales.py`), and a nonlinear problem may outgrow its data: the Lorenz
system begins at 1 and reaches 40. A rough solution tells more, where there is one (`forecast.py`, `survey.py`): sizes that
are far from its own are replaced before a run begins. Where an attempt at the equations fails all the same and its values
are far larger than the sizes assumed, the problem is begun again with the sizes seen. `RunState.sizes` holds them.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np

from dsgnar.problem import Problem
from dsgnar.problem.scales import Scales, estimate, power_of_two
from dsgnar.solving.forecast import forecast
from dsgnar.solving.settings import Resolved
from dsgnar.solving.state import RunState
from dsgnar.solving.survey import sizes
from dsgnar.solving.verdict import SAMPLE

if TYPE_CHECKING:
    from dsgnar.solving.context import Context

FAR = 4.0  # times the size assumed, or a part of it: what is not kept
MOST = 64.0  # by which a size changes at once; a failed attempt is not to be trusted beyond
TIMES = 2  # how often sizes change in a run


def foreseen(problem: Problem, given: Mapping[str, float] | None = None, surveyed: bool = True) -> Scales:
    """The scales of a problem, with sizes of a rough solution where those of its data are far from them.

    `surveyed` is whether a survey is made where time steps are not possible: it takes a second or two.
    """
    return _foreseen(problem, tuple((given or {}).items()), surveyed)


@lru_cache(maxsize=8)
def _foreseen(problem: Problem, given: tuple[tuple[str, float], ...], surveyed: bool) -> Scales:
    scales, known = estimate(problem, dict(given)), dict(given)
    if problem.inverse:
        return scales
    seen = forecast(problem, scales)
    if seen is None and surveyed:
        seen = sizes(problem, scales)
    for name, size, rough in zip(problem.unknowns, scales.unknowns, seen or scales.unknowns, strict=True):
        ratio, told = power_of_two(rough / size), name in known or name in problem.hard  # whose size is that of N alone
        if not told and rough > 0 and not 1 / FAR < ratio < FAR:
            known[name] = size * ratio
    return scales if known == dict(given) else estimate(problem, known)


def outgrown(context: "Context", state: RunState) -> tuple[float, ...] | None:
    """Better sizes of the unknowns, where values of an attempt are far larger than those assumed; else None."""
    scales = context.settings.scales
    if scales is None or state.resized >= TIMES:
        return None
    values = context.residuals.ansatz.values(
        jnp.asarray(state.iterate.theta),
        jnp.asarray(context.collocation.inside(state, SAMPLE), state.iterate.theta.dtype),
    )
    seen = np.sqrt(np.mean(np.asarray(values, np.float64) ** 2, axis=0))
    ratios = [min(power_of_two(value / size), MOST) for value, size in zip(seen, scales.unknowns, strict=True)]
    ratios[len(context.problem.unknowns) :] = [1.0] * len(context.problem.coefficients)  # these tell their sizes
    if not np.isfinite(seen).all() or max(ratios) < FAR:
        return None
    return tuple(size * max(1.0, ratio) for size, ratio in zip(scales.unknowns, ratios, strict=True))


def in_sizes(settings: Resolved, problem: Problem, sizes: tuple[float, ...] | None) -> Resolved:
    """The settings with other sizes of the unknowns."""
    if sizes is None or settings.scales is None or sizes == settings.scales.unknowns:
        return settings
    return replace(settings, scales=estimate(problem, dict(zip(problem.outputs, sizes, strict=True))))


def resized(context: "Context", sizes: tuple[float, ...] | None) -> "Context":
    """The same surroundings with other sizes of the unknowns."""
    settings = in_sizes(context.settings, context.problem, sizes)
    if settings is context.settings:
        return context
    return context.of(context.problem, context.model.network, settings, context.reference)
