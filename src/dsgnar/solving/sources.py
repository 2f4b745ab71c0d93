"""How fast does what is given vary? Where a survey (`survey.py`) does not find a rough solution, the data still tell.

A solution follows its source: the residual F(0) of an equation for u = 0, a function of the point alone, is looked at along
lines through the box, in Chebyshev polynomials. The degree beyond which little of its energy is left is a frequency, as in
a survey. Networks begin with sines of it then, and the equation weighs as much as other conditions: with its usual weight
u = 0 is a trap, where slopes of a wave at the boundary cost more than its source gains (Poisson3d-CG, docs/notes.md).
"""

from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
from scipy.fft import dct

from dsgnar.calculus.precision import x64
from dsgnar.calculus.streams import stream
from dsgnar.problem import Problem
from dsgnar.problem.domain import Interior
from dsgnar.problem.scales import Scales
from dsgnar.solving.survey import FAST, FULL, frequency, survey

LINES, DEGREE = 24, 128
LEFT = 1e-3  # share of the energy beyond the degree at which a source is said to end


def followed(problem: Problem, scales: Scales) -> tuple[float, ...] | None:
    """Frequencies of fast sources, where nothing better is known; None elsewhere."""
    found = None if survey(problem, scales) is not None else sources(problem)
    return found if found is not None and max(found) >= FAST else None


@lru_cache(maxsize=8)
@x64
def sources(problem: Problem) -> tuple[float, ...] | None:
    """Frequencies of sources along each axis, in radians per half-width; None where there are none, or they are rough."""
    lower, upper = np.array(problem.domain.bounds).T
    nodes, out = np.cos(np.pi * np.arange(DEGREE + 1) / DEGREE), np.zeros(problem.domain.dimension)
    zero = lambda x: jnp.zeros(len(problem.outputs))
    for name, condition in problem.conditions.items():
        if not isinstance(condition.part, Interior):
            continue
        given = jax.jit(jax.vmap(lambda x, name=name: problem.residual(name, problem.constrained(zero), x, "nested")))
        for axis in range(problem.domain.dimension):
            xi = stream(0, "sources", name).uniform(-1, 1, (LINES, 1, problem.domain.dimension)).repeat(DEGREE + 1, 1)
            xi[:, :, axis] = nodes
            points = (lower + upper) / 2 + (upper - lower) / 2 * xi
            values = np.asarray(given(jnp.asarray(points.reshape(-1, points.shape[-1])))).reshape(LINES, -1)
            values = values[np.isfinite(values).all(axis=1)]
            if not values.size or not np.ptp(values) > 0:
                continue
            energy = np.sum(np.asarray(dct(values - values.mean(), type=1)) ** 2, axis=0)
            beyond = np.cumsum(energy[::-1])[::-1] / energy.sum()
            end = int(np.count_nonzero(beyond > LEFT)) - 1
            if end > FULL * DEGREE:
                return None
            out[axis] = max(out[axis], frequency(end))
    return tuple(map(float, out)) if out.any() else None
