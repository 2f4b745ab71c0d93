"""A run as a value: everything that its next iteration depends on, beside problem, network and settings.

A checkpoint is this value, field by field (`storing/checkpoints.py`). Two runs with equal states go on equally, bit for bit.
"""

import math
from dataclasses import dataclass, field, replace

import numpy as np

from dsgnar.optimise.optimiser import State
from dsgnar.solving.clock import Seconds
from dsgnar.solving.record import Record
from dsgnar.solving.stages import Plan
from dsgnar.solving.stop import StopReason


@dataclass(frozen=True, eq=False)
class RunState:
    """Where a run is, after a complete iteration."""

    # --- changes in every iteration
    iterate: State  # parameters, weights, radius
    plan: Plan  # stage, precision, points
    evaluated: bool = False  # whether the iterate's mean squares belong to the points that the plan puts in force
    history: tuple[Record, ...] = ()
    seconds: Seconds = field(default_factory=Seconds)
    # --- changes at the end of a time interval
    times: tuple[float, ...] = ()  # where intervals begin and end, the one being solved included; empty without time
    begun: tuple[tuple[float, ...], ...] = ()  # what points of each interval carry about its beginning (`beginning.py`)
    cuts: int = 0  # how often the interval being solved was cut, or a problem without time begun again
    best: np.ndarray | None = None  # parameters of the best attempt before this one, at a problem without time
    best_residual: float = math.inf  # its largest residual over its terms; of the last attempt at an interval
    best_stop: StopReason | None = None  # and why it ended
    focused: bool = False  # whether points are drawn where residuals are large, since they were in few places
    whole: np.ndarray | None = None  # parameters of an attempt at all of the time, where that was not all wrong
    finished: tuple[np.ndarray, ...] = ()  # parameters of the intervals that are solved
    worst: tuple[float, ...] | None = None  # their largest held-out residuals, by condition
    relative: tuple[float, ...] | None = None  # their largest residuals over the size of their terms, by condition
    terms: tuple[float, ...] | None = None  # the largest sizes of the terms of each condition
    sizes: tuple[float, ...] | None = None  # of the unknowns; None: those that the data give
    resized: int = 0  # how often they changed
    unfinished: StopReason | None = None  # why one of them was left before it had converged
    # --- for stopping
    stop: StopReason | None = None  # why there is no next iteration in this time interval

    def __post_init__(self):
        iterate = self.iterate
        for array in (self.best, self.whole, iterate.theta, iterate.weights, iterate.mean_squares, *self.finished):
            if array is not None:
                array.setflags(write=False)  # who looks at a run cannot change it

    @property
    def interval(self) -> int:
        """The time interval that is being solved, from 0."""
        return len(self.finished)

    @property
    def points_key(self) -> tuple:
        """What the points in force depend on."""
        return self.plan.points, self.plan.draw, self.plan.precision, self.interval, self.times[-1:], self.focused

    def going_on(self) -> "RunState":
        """The state without a stop that an interruption or a limit has put there."""
        return replace(self, stop=None) if self.stop is not None and self.stop.is_limit else self
