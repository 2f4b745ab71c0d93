"""What is in force when: target ratio, precision, points; and when to stop (Algorithm 5, sections 3.1 and 4.2).

Stage 1 seeks a region where little regularisation is needed: with a small target ratio lambda falls over many orders of
magnitude. Once log lambda rises again over a window (a line fitted to it has a positive slope and correlation), stage 2
raises the target and descends. Five rules go beyond the paper:

  target    In stage 2 the target goes on rising, from the paper's 0.5 to 0.8. A step with the ratio 0.5 halves the loss; one
            with 0.9 may take away nine tenths of it. But at once it would be too much: the wave equation then left the
            region of small lambda that stage 1 had found.
  stage 3   A residual that no network of this size or precision can remove turns into noise under a sketch: where the true
            gradient is small, its sketch points anywhere, and the radius collapses. Stage 3 takes the gradient of all
            points and sketches curvature only.
  retreat   A switch that came too early shows: the radius collapses for good although the loss has fallen little since.
            Stage 1 is then taken up again from where it was.
  precision A double-precision run stays in single until lambda is so small that single no longer resolves the model.
  points    Points are drawn anew in every iteration, so the network cannot fit the points instead of the equation, and few
            of them do. The loss at the new points over the loss at those just trained on shows whether a step holds
            beyond its points; when this gap opens, or stage 3 comes to a stop, there are too few: more points.
"""

import enum
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from dsgnar.config import Settings
from dsgnar.optimiser import State, Step

BEGIN = 0.5  # target ratio with which stage 2 begins
RISE = 6  # iterations in which it rises; 0 was too few for the wave equation, other values were not tried
WIDE = 3.0  # a gap that is believed at once where the loss falls fast; not tuned (8 and 9 were noticed too late)
GAPS = 3  # how many gaps are averaged (geometrically): single ones are noisy
WIDER = 100  # times the minimum radius: where a collapsed radius starts again
GROWTH = 4  # by which points are multiplied: few sizes, since every size is compiled once


class StopReason(enum.Enum):
    """Why a run ended: a code for programs, a sentence for people, and whether it had converged."""

    RADIUS = (
        "radius_below_minimum",
        "the trust-region radius fell below its minimum: no further decrease was found",
        True,
    )
    STALLED = (
        "no_further_decrease",
        "the loss no longer decreases: the floor of network and precision is reached",
        True,
    )
    FLOOR = (
        "rounding_floor",
        "the loss is down to what rounding makes of it in this precision",
        True,
    )
    ITERATIONS = (
        "max_iterations",
        "the maximum number of iterations (of one time interval) was reached before convergence",
        False,
    )
    SECONDS = ("max_seconds", "the maximum time was reached before convergence", False)
    INTERRUPTED = ("interrupted", "the run was interrupted", False)
    FAILED = (
        "no_usable_step",
        "no usable step was found: residuals or factorisation are not finite near the solution",
        False,
    )

    def __init__(self, code: str, sentence: str, converged: bool):
        self.code, self.sentence, self.converged = code, sentence, converged

    @classmethod
    def of(cls, code: str) -> "StopReason":
        """The reason with a code."""
        for reason in cls:
            if reason.code == code:
                return reason
        raise ValueError(f"there is no reason to stop that is called {code!r}")

    @property
    def hands_over(self) -> bool:
        """Whether a time march goes on to its next interval."""
        return self.converged or self is StopReason.ITERATIONS


@dataclass(frozen=True)
class Plan:
    """What is in force. Part of a run's state."""

    precision: str
    points: int  # interior points of each condition
    draw: int = 0  # which draw of them
    gaps: tuple[float, ...] = ()  # loss at new points over loss at those just trained on, the last few
    stage: int = 1
    begun: int = 0  # iterations before this time interval
    lams: tuple[float, ...] = ()  # of this stage so far
    losses: tuple[float, ...] = ()  # of this stage so far, with the points in force
    retreats: int = 0
    tries: int = 0  # how often a collapsed radius was widened again
    radius_at_switch: float = 1.0  # where stage 2 began
    loss_at_switch: float = 0.0


@dataclass(frozen=True)
class Rising:
    """The stage switch of Algorithm 5: log lambda rises over the last `window` iterations, `wait` at the earliest."""

    wait: int
    window: int
    slope: float = 1e-4
    correlation: float = 0.1

    def __call__(self, lams: tuple[float, ...]) -> bool:
        if len(lams) < max(self.window, self.wait):
            return False
        y = np.log(np.maximum(np.nan_to_num(lams[-self.window :], nan=1.0), 1e-300))
        k = np.arange(self.window) - (self.window - 1) / 2
        slope = float(k @ y / (k @ k))
        spread = float(np.linalg.norm(y - y.mean()) * np.linalg.norm(k))
        return slope > self.slope and spread > 0 and float(k @ y) / spread > self.correlation


@dataclass(frozen=True)
class Schedule:
    """The rules that change what is in force after an iteration."""

    settings: Settings
    switch: Rising
    fresh: bool  # new points in every iteration
    gap: float  # loss at new points over loss at those just trained on, above which points are added
    retreats: int  # how often stage 1 may be taken up again
    tries: int  # how often a radius that collapses in stage 3 is widened: another sketch may do better
    stall: int | None  # stages 2 and 3 stop when the loss has not halved within so many iterations; None: never

    # A stage 2 that collapses before the loss has fallen by this factor came too early. Healthy ones gain 1e5 and more.
    GAIN = 1e-3

    def start(self, iteration: int = 0) -> Plan:
        """The plan with which a time interval begins."""
        assert self.settings.points is not None
        first = "single" if self.settings.warm_up and self.settings.precision == "double" else self.settings.precision
        return Plan(first, self.settings.points, draw=iteration, begun=iteration)

    def target(self, plan: Plan) -> float:
        """The target ratio: in stage 2 it rises from the paper's to the one that is set."""
        assert self.settings.targets is not None
        first, second = self.settings.targets
        if plan.stage == 1:
            return first
        begin = min(BEGIN, second)
        return begin + (second - begin) * (min(1.0, len(plan.lams) / RISE) if plan.stage == 2 else 0.0)

    def exact(self, plan: Plan) -> bool:
        """Whether the gradient is that of all points."""
        return plan.stage == 3

    def after(
        self,
        plan: Plan,
        state: State,
        step: Step,
        gap: float | None,
        at_floor: Callable[[], bool] = lambda: False,
    ) -> tuple[Plan, State, StopReason | None]:
        """Plan and state for the next iteration, or why there is none.

        `at_floor` says whether the loss is down to rounding; it is asked only where a stage comes to its end.
        """
        plan = replace(plan, lams=(*plan.lams, step.lam), losses=(*plan.losses, step.loss))
        if self.fresh:
            plan = replace(plan, draw=plan.draw + 1, gaps=plan.gaps if gap is None else (*plan.gaps[1 - GAPS :], gap))
        stop = self._stop(plan, state, step)
        if stop is not None:
            return self._instead_of_stopping(plan, state, stop, at_floor)
        if plan.stage == 1 and self.switch(plan.lams):
            plan = replace(plan, stage=2, lams=(), losses=(), radius_at_switch=state.radius, loss_at_switch=step.loss)
        if plan.precision != self.settings.precision and self._needs_double(plan, state, step):
            plan = replace(plan, precision=self.settings.precision)
        if self._too_few(plan) and self._can_grow(plan):
            plan = self._grown(plan)
        return plan, state, None

    def _too_few(self, plan: Plan) -> bool:
        """Whether the gap between new points and those just trained on has opened, a little for long or wide at once."""
        steady = len(plan.gaps) == GAPS and math.prod(plan.gaps) > self.gap**GAPS
        return steady or (plan.stage > 1 and any(gap > WIDE for gap in plan.gaps[-1:]))

    def _instead_of_stopping(self, plan: Plan, state: State, stop: StopReason, at_floor: Callable[[], bool]):
        """Above the floor stage 2 goes on to stage 3, which ends where nothing helps: points, other sketches, stage 1."""
        if plan.stage == 1 or not stop.converged or not self.fresh:
            return plan, state, stop
        if at_floor():
            return plan, state, StopReason.FLOOR
        assert self.settings.minimum_radius is not None
        wide = replace(state, radius=max(state.radius, WIDER * self.settings.minimum_radius), failures=0)
        if plan.stage == 2:
            return replace(plan, stage=3, losses=(), lams=()), wide, None
        if stop is StopReason.RADIUS and plan.retreats < self.retreats and self._came_too_early(plan):
            again = replace(plan, stage=1, lams=(), losses=(), retreats=plan.retreats + 1)
            return again, replace(state, radius=plan.radius_at_switch, failures=0), None
        if self._can_grow(plan):
            return replace(self._grown(plan), losses=()), wide, None
        if stop is StopReason.RADIUS and plan.tries < self.tries:
            return replace(plan, tries=plan.tries + 1), wide, None
        return plan, state, stop

    def _needs_double(self, plan: Plan, state: State, step: Step) -> bool:
        """The warm-up is over, and regularisation is so small that single precision no longer resolves the model."""
        above = self.settings.single_above
        warm = state.iteration - plan.begun >= self.settings.warm_up
        return warm and (above is None or not step.lam > above or not step.accepted)

    def _can_grow(self, plan: Plan) -> bool:
        return plan.points < (self.settings.max_points or plan.points)

    def _grown(self, plan: Plan) -> Plan:
        return replace(plan, points=min(GROWTH * plan.points, self.settings.max_points or plan.points), gaps=())

    def _stop(self, plan: Plan, state: State, step: Step) -> StopReason | None:
        assert self.settings.minimum_radius is not None
        if state.failures >= 10:
            return StopReason.FAILED if step.problem or math.isnan(step.ratio) else StopReason.RADIUS
        if state.radius < self.settings.minimum_radius:
            return StopReason.RADIUS
        if plan.stage > 1 and self.stall is not None and len(plan.losses) > self.stall:
            if plan.losses[-1] > 0.5 * plan.losses[-1 - self.stall]:
                return StopReason.STALLED
        return None

    def _came_too_early(self, plan: Plan) -> bool:
        return plan.losses[-1] > self.GAIN * plan.loss_at_switch


def schedule(settings: Settings) -> Schedule:
    """The rules of a method: the paper's alone, or all."""
    assert settings.wait is not None and settings.window is not None
    switch = Rising(settings.wait, settings.window)
    if settings.method == "paper":
        return Schedule(settings, switch, fresh=False, gap=math.inf, retreats=0, tries=0, stall=None)
    return Schedule(settings, switch, fresh=True, gap=1.3, retreats=2, tries=4, stall=12)
