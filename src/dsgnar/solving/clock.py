"""Seconds of solving and of compiling. Looking at the error, and what observers do, count as neither."""

import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Seconds:
    """How long a run has worked so far."""

    solve: float = 0.0  # every iteration, also the first
    compile: float = 0.0  # what compiling added

    def plus(self, solve: float = 0.0, compile: float = 0.0) -> "Seconds":
        return Seconds(self.solve + solve, self.compile + compile)


class Stopwatch:
    """Tells how long ago it was last asked."""

    def __init__(self):
        self._since = time.perf_counter()

    def lap(self) -> float:
        """Seconds since the last lap."""
        before, self._since = self._since, time.perf_counter()
        return self._since - before
