"""What the processes of a run agree on after each iteration: the time, whether it ends, and that they are at the same point.

Limits of time and signals come to processes at different moments, and all must stop after the same iteration. The time is
that of the first process; a signal to one is a signal to all. That parameters and decisions are equal everywhere is checked
by a number h made from them: the mean of h^2 is the square of the mean of h only if all have the same.
"""

import hashlib
from dataclasses import replace

import numpy as np

from dsgnar.calculus.team import Alone, TeamError
from dsgnar.solving.clock import Seconds
from dsgnar.solving.state import RunState


def timed(team: Alone, state: RunState) -> RunState:
    """The state with the seconds of the first process."""
    if team.size == 1:
        return state
    seconds = state.seconds
    return replace(state, seconds=Seconds(*map(float, team.first(np.array([seconds.solve, seconds.compile])))))


def asked_to_end(team: Alone, state: RunState, asked: bool = False) -> bool:
    """Whether any process was asked to end; raises where they have gone different ways."""
    if team.size == 1:
        return asked
    h = _mark(state)
    any_asked, sums, squares = team.total(np.array([float(asked), h, h * h]))
    if team.size * squares != sums * sums:
        raise TeamError(
            f"the processes have computed different numbers in iteration {state.iterate.iteration}: their machines or "
            "libraries differ. Resume from the last checkpoint, on equal machines or with one process"
        )
    return bool(any_asked)


def _mark(state: RunState) -> float:
    """20 bits made from what comes next depends on: float64 has the sums of their squares exactly."""
    iterate = state.iterate
    decided = state.plan, state.times, state.stop and state.stop.code, state.cuts, state.interval, state.sizes
    text = repr((iterate.radius, iterate.lam, iterate.iteration, *decided)).encode()
    mark = hashlib.sha256(iterate.theta.tobytes() + iterate.weights.tobytes() + text).digest()
    return float(int.from_bytes(mark[:3], "big") >> 4)
