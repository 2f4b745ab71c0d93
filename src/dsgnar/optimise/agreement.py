"""One step for all processes.

Each process factorises the same sketch. Machines of different kinds may round differently, and a search that took another
turn in one of them would leave the others waiting; so the step of the first process counts for all. This costs one exchange
of d + 4 numbers for each step that is tried.
"""

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from dsgnar.calculus.team import Alone
from dsgnar.optimise.subproblem import Trial


def agreed(team: Alone, trial: Trial, step: Float[Array, " d"]) -> tuple[Trial, Float[Array, " d"]]:
    """The step of the first process, and what is known about it."""
    if team.size == 1:
        return trial, step
    known = np.array([trial.lam, trial.norm, trial.decrease, trial.slope])
    first = team.first(np.concatenate([known, np.asarray(step, np.float64)]))
    lam, norm, decrease, slope = map(float, first[:4])
    return Trial(lam, norm, decrease, slope), jnp.asarray(first[4:].astype(step.dtype))
