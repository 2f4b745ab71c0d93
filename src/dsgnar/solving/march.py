"""Time marching (section 4.4 of the paper): the time axis is cut into intervals, which are solved one after the other.

Every interval has a network of its own, of the same structure. What an interval hands to the next:

    values      An initial condition with residual F[u] becomes  F[u](x, t_k) - F[v](x, t_k) = 0,  v the solution just found.
                For F[u] = u - g(x) that is u = v, and for F[u] = u_t it is u_t = v_t: an equation of second order in time
                hands over its velocity because its problem states one.
    parameters  The next network starts near the last one: theta + 0.01 theta', theta' a fresh initialisation. Near, not at:
                parameters that fit one interval to rounding are a poor place to begin another.

Given points (data, `ds.at`) belong to the interval in which their time lies, an end to the one that it ends. Hard initial
values are functions, in whose place no interval can put what the one before found: in a march they are conditions.

F[v] enters the residual as a further coordinate of the initial points, so all intervals share their compiled kernels
(`collocation.py` puts it there, `loop.py` starts the next network).
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from dsgnar.problem import Problem
from dsgnar.problem.domain import Box, Initial, Points
from dsgnar.problem.inverse import Unknown
from dsgnar.problem.softened import begins_hard, softened

Intervals = int | tuple[float, ...] | Literal["auto"]


@dataclass(frozen=True)
class March:
    """Where the time axis is cut."""

    times: tuple[float, ...]  # t_0 < t_1 < .. < t_K; empty for a problem without time
    begun: tuple[tuple[float, ...], ...] = ()  # what points of each interval carry about its beginning (beginning.py)

    @classmethod
    def of(cls, problem: Problem, intervals: Intervals) -> "March":
        """So many intervals of equal length, or intervals with the given inner ends."""
        domain = problem.domain
        if domain.time is None:
            if intervals not in (1, "auto"):
                raise ValueError("time marching needs a time axis, and this problem has none: leave `intervals` out")
            return cls(())
        start, end = domain.interval(domain.time)
        if intervals == "auto":
            return cls((start, end))
        if isinstance(intervals, int):
            return cls._checked(problem, tuple(np.linspace(start, end, intervals + 1).tolist()))
        inner = tuple(float(t) for t in intervals if start < t < end)
        outside = [t for t in intervals if not start <= t <= end]
        if outside or list(inner) != sorted(set(inner)):
            raise ValueError(f"intervals must be increasing times between {start} and {end}, not {intervals!r}")
        return cls._checked(problem, (start, *inner, end))

    @classmethod
    def _checked(cls, problem: Problem, times: tuple[float, ...]) -> "March":
        march = cls(times)
        obstacle = None if len(times) == 2 else why_not(problem) or march._without_points(problem)
        if obstacle is None and len(times) > 2 and begins_hard(problem):
            obstacle = "hard initial values hold in the first time interval only: state them as conditions (`restated`)"
        if obstacle is not None:
            raise ValueError(obstacle)
        return march

    def _without_points(self, problem: Problem) -> str | None:
        """Why intervals do not do: one of them has no point of a condition, which may be what makes its solution unique.

        Data may be where they are: an interval without any goes on from the one before.
        """
        domain = problem.domain
        for name, condition in problem.conditions.items():
            if isinstance(condition.part, Points) and condition.measured is None and domain.time is not None:
                pieces = self.piece(condition.part.table(domain)[:, domain.index(domain.time)])
                empty = sorted(set(range(self.count)) - set(pieces.tolist()))
                if empty:
                    begin, end = self.interval(empty[0])
                    return f"condition {name!r} has no point at times from {begin:g} to {end:g}: give each interval some"
        return None

    @property
    def count(self) -> int:
        return max(1, len(self.times) - 1)

    def interval(self, k: int) -> tuple[float, float]:
        return self.times[k], self.times[k + 1]

    def domain(self, whole: Box, k: int) -> Box:
        """The part of the domain that belongs to interval k."""
        return whole if self.count == 1 or whole.time is None else whole.with_interval(whole.time, self.interval(k))

    def piece(self, times: np.ndarray) -> np.ndarray:
        """To which interval each time belongs; an end belongs to the interval that it ends."""
        return np.searchsorted(np.asarray(self.times[1:-1]), times, side="left")


def why_not(problem: Problem) -> str | None:
    """Why the time of a problem cannot be cut, if it cannot."""
    shared = [*problem.coefficients, *(u for u in problem.unknowns if isinstance(u, Unknown) and u.axes is not None)]
    if shared:
        return (
            f"{', '.join(shared)} belong to all of the time, and time intervals are solved one after the other: "
            "a problem with coefficients or unknowns of fewer axes is solved in one interval; leave `intervals` out"
        )
    begins = begins_hard(problem) or any(isinstance(c.part, Initial) for c in problem.conditions.values())
    if not begins:
        return "time marching hands initial values over, and this problem has no initial condition"
    return None


def possible(problem: Problem, intervals: Intervals, scaled: bool = True) -> Intervals:
    """The intervals that were asked for; one where automatic ones cannot be had.

    Nor are they looked for where there are given points, since a fit of all data at once knows more than one after the
    other, nor where a method in the problem's own units would have to restate hard values.
    """
    given = any(isinstance(condition.part, Points) for condition in problem.conditions.values())
    as_stated = given or (begins_hard(problem) and not scaled)
    if intervals == "auto" and (problem.domain.time is None or as_stated or why_not(problem) is not None):
        return 1
    return intervals


def restated(problem: Problem, intervals: Intervals) -> Problem:
    """The problem as time intervals need it: where time may be cut, its initial values are conditions.

    In initial value problems in one variable they hold exactly all the same (`beginning.py`).
    """
    return problem if intervals == 1 else softened(problem, (Initial,))
