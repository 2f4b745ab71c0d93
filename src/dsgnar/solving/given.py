"""How far the spectrum of what is given reaches: sources, initial values and values on walls.

The residual F(0) of a condition for u = 0 is a function of the point alone. It is looked at along lines through its part of
the box, in Chebyshev polynomials: along each axis it ends at the degree beyond which little of its energy is left.
"""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.fft import dct

from dsgnar.calculus.streams import stream
from dsgnar.problem import Problem
from dsgnar.problem.conditions import Condition
from dsgnar.problem.domain import Boundary, Initial, Interior

LINES, DEGREE = 24, 128
FULL = 0.9  # a spectrum that reaches so far is cut off


def ends(problem: Problem, kinds: tuple[type, ...], left: float) -> Float[np.ndarray, " d"] | None:
    """The degree along each axis at which what conditions of some kinds give ends, up to a share of its energy.

    Zero where nothing varies; None where something is too rough to tell.
    """
    domain, zero = problem.domain, lambda x: jnp.zeros(len(problem.outputs))
    lower, upper = np.array(domain.bounds).T
    nodes, out = np.cos(np.pi * np.arange(DEGREE + 1) / DEGREE), np.zeros(domain.dimension)
    for name, condition in problem.conditions.items():
        if not isinstance(condition.part, kinds):
            continue
        given = jax.jit(jax.vmap(lambda x, name=name: problem.residual(name, problem.constrained(zero), x, "nested")))
        for held, place in _places(problem, condition):
            for axis in (i for i in range(domain.dimension) if i != held):
                xi = stream(0, "sources", name).uniform(-1, 1, (LINES, 1, domain.dimension)).repeat(DEGREE + 1, 1)
                xi[:, :, axis] = nodes
                points = (lower + upper) / 2 + (upper - lower) / 2 * xi
                if held is not None:
                    points[:, :, held] = place
                values = np.asarray(given(jnp.asarray(points.reshape(-1, domain.dimension)))).reshape(LINES, -1)
                values = values[np.isfinite(values).all(axis=1)]
                if not values.size or not np.ptp(values) > 0:
                    continue
                energy = np.sum(np.asarray(dct(values - values.mean(), type=1)) ** 2, axis=0)
                beyond = np.cumsum(energy[::-1])[::-1] / energy.sum()
                end = int(np.count_nonzero(beyond > left)) - 1
                if end > FULL * DEGREE:
                    return None
                out[axis] = max(out[axis], end)
    return out


def _places(problem: Problem, condition: Condition) -> Iterator[tuple[int | None, float]]:
    """The axis that is held on each part of a condition, and where; no axis inside."""
    domain, part = problem.domain, condition.part
    if isinstance(part, Interior):
        yield None, 0.0
    elif isinstance(part, Initial) and domain.time is not None:
        time = domain.index(domain.time)
        yield time, domain.bounds[time][0]
    elif isinstance(part, Boundary) and not domain.shaped:
        for axis, side in part.resolve(domain):
            yield domain.index(axis), domain.bounds[domain.index(axis)][side == "upper"]
