"""What is in force when: target ratio, precision, points; and when to stop (Algorithm 5, sections 3.1 and 4.2).

Stage 1 seeks a region where little regularisation is needed: with a small target ratio lambda falls over many orders of
magnitude. Once log lambda rises again over a window (a line fitted to it has a positive slope and correlation), stage 2
raises the target and descends. Eight rules go beyond the paper:

  target    In stage 2 the target goes on rising, from the paper's 0.5 to 0.8. A step with the ratio 0.5 halves the loss; one
            with 0.9 may take away nine tenths of it. But at once it would be too much: the wave equation then left the
            region of small lambda that stage 1 had found.
  fallen    Lambda that rises before it has fallen far is noise: until then the switch waits longer, unless it came near and
            has risen far since.
  undamped  Stage 1 also ends where lambda is down to rounding: there is nothing left to seek. In several variables only once
            the loss has fallen, since from a large one the first steps may need no damping either, and lead nowhere good.
  in time   Where a limit of time is near, stage 2 begins, whatever lambda does, once the loss has fallen: a step of
            stage 1 takes away a tenth of the loss, one of stage 2 most of it.
  stage 3   A residual that no network of this size or precision can remove turns into noise under a sketch: where the true
            gradient is small, its sketch points anywhere, and the radius collapses. Stage 3 takes the gradient of all
            points and sketches curvature only. The noise of data is such a residual from the start: where an attempt ends
            without a fit, the next one does so in all stages. (Not the first: with an exact gradient and a sketched
            curvature lambda falls less far, and conductivities that are found without it were found worse.)
  retreat   A switch that came too early shows: nothing is gained any more although the loss has fallen little since.
            Stage 1 is then taken up again from where it was.
  precision A double-precision run stays in single until lambda is so small that single no longer resolves the model.
  points    Points are drawn anew in every iteration, so the network cannot fit the points instead of the equation, and few
            of them do. The loss at the new points over the loss at those just trained on shows whether a step holds
            beyond its points; when this gap opens, or stage 3 comes to a stop, there are too few: more points.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from dsgnar.calculus.precision import Precision
from dsgnar.optimise.optimiser import State, Step
from dsgnar.solving.method import Method
from dsgnar.solving.stop import StopReason


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
    exact: bool = False  # whether the gradient is that of all points from the beginning


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
        recent = np.array(lams[-self.window :])
        known = np.isfinite(recent) & (recent > 0)  # an iteration without a factorisation says nothing about lambda
        if known.sum() < max(3, self.window // 2):
            return False
        y = np.log(recent[known])
        k = (np.arange(self.window) - (self.window - 1) / 2)[known]
        k = k - k.mean()
        slope = float(k @ y / (k @ k))
        spread = float(np.linalg.norm(y - y.mean()) * np.linalg.norm(k))
        return slope > self.slope and spread > 0 and float(k @ y) / spread > self.correlation


NEAR = 100.0  # lambda over the value that it is to reach: where it turns round so near, that is its minimum


def risen(lams: tuple[float, ...], window: int, factor: float, low: float) -> bool:
    """Whether the median of lambda over a window was low, and has risen by a factor since."""
    if len(lams) < 2 * window:
        return False
    medians = np.median(np.lib.stride_tricks.sliding_window_view(lams, window), axis=1)
    return bool(np.min(medians) < low and medians[-1] > factor * np.min(medians))


def fell(losses: tuple[float, ...], share: float) -> bool:
    """Whether a stage has left its first loss behind, so that a descent leads somewhere."""
    return losses[-1] <= share * losses[0]


class Next(NamedTuple):
    """What an iteration leads to: plan and iterate for the next one, or why there is none."""

    plan: Plan
    iterate: State
    stop: StopReason | None


@dataclass(frozen=True)
class Schedule:
    """The rules that change what is in force after an iteration; their constants are the method's."""

    method: Method
    precision: Precision

    def start(self, iteration: int = 0) -> Plan:
        """The plan with which a time interval begins."""
        first = "single" if self.method.warm_up and self.precision == "double" else self.precision
        return Plan(first, self.method.points, draw=iteration, begun=iteration)

    def target(self, plan: Plan) -> float:
        """The target ratio: with a ramp, that of stage 2 rises to the one that is set, and stage 3 has the lower one."""
        first, second = self.method.targets
        if plan.stage == 1:
            return first
        if not self.method.ramp:
            return second
        begin = min(self.method.ramp_from, second)
        return begin + (second - begin) * (min(1.0, len(plan.lams) / self.method.ramp) if plan.stage == 2 else 0.0)

    def exact(self, plan: Plan) -> bool:
        """Whether the gradient is that of all points."""
        return plan.stage == 3 or plan.exact

    def after(
        self,
        plan: Plan,
        state: State,
        step: Step,
        gap: float | None,
        at_floor: Callable[[], bool] = lambda: False,
        ends_soon: bool = False,
    ) -> Next:
        """Plan and state for the next iteration, or why there is none.

        `at_floor` says whether the loss is down to rounding; it is asked only where a stage comes to its end.
        """
        plan = replace(plan, lams=(*plan.lams, step.lam), losses=(*plan.losses, step.loss))
        if self.method.fresh:
            gaps = plan.gaps if gap is None else (*plan.gaps[1 - self.method.gaps :], gap)
            plan = replace(plan, draw=plan.draw + 1, gaps=gaps)
        stop = self._stop(plan, state, step)
        if stop is not None:
            return self._instead_of_stopping(plan, state, stop, at_floor)
        share = self.method.fallen_loss  # 1 in the paper's method and in one variable
        hurries = ends_soon and share < 1.0 and fell(plan.losses, share)
        if plan.stage == 1 and (self._rising(plan.lams) or self._undamped(plan) or hurries):
            plan = replace(plan, stage=2, lams=(), losses=(), radius_at_switch=state.radius, loss_at_switch=step.loss)
        if plan.precision != self.precision and self._needs_double(plan, state, step):
            plan = replace(plan, precision=self.precision)
        if self._too_few(plan) and self._can_grow(plan):
            plan = self._grown(plan)
        return Next(plan, state, None)

    def _rising(self, lams: tuple[float, ...]) -> bool:
        """Whether lambda rises again after it has fallen."""
        method = self.method
        high = len(lams) > 0 and np.median(lams[-method.window :]) > method.fallen  # single ones may be small at once
        turned = risen(lams, method.window, method.far, NEAR * method.fallen)
        wait = max(method.wait, method.long_wait) if high and not turned else method.wait
        return Rising(wait, method.window, method.slope, method.correlation)(lams)

    def _undamped(self, plan: Plan) -> bool:
        """Whether stage 1 has nothing left to seek: steps need no regularisation at all."""
        count, last = self.method.undamped, plan.lams[-self.method.undamped :]
        early = len(plan.lams) < 5 * count or plan.precision != self.precision
        early = early or not fell(plan.losses, self.method.fallen_loss)
        return count > 0 and not early and all(lam <= self.method.no_damping for lam in last)

    def _too_few(self, plan: Plan) -> bool:
        """Whether the gap between new points and those just trained on has opened, a little for long or wide at once."""
        count = self.method.gaps
        steady = len(plan.gaps) == count and math.prod(plan.gaps) > self.method.gap**count
        return steady or (plan.stage > 1 and any(gap > self.method.wide_gap for gap in plan.gaps[-1:]))

    def _fits_its_points(self, plan: Plan) -> bool:
        """Whether the loss is larger at new points than at those just trained on, so that more of them may help."""
        return not plan.gaps or float(np.exp(np.mean(np.log(plan.gaps)))) > self.method.stalled_gap

    def _instead_of_stopping(self, plan: Plan, state: State, stop: StopReason, at_floor: Callable[[], bool]) -> Next:
        """Above the floor stage 2 goes on to stage 3, which ends where nothing helps: points, other sketches, stage 1."""
        if plan.stage == 1 or not stop.found_nothing or not self.method.exact_stage:
            return Next(plan, state, stop)
        if at_floor():
            return Next(plan, state, StopReason.FLOOR)
        wide = replace(state, radius=max(state.radius, self.method.wider * self.method.minimum_radius), failures=0)
        if plan.stage == 2:
            return Next(replace(plan, stage=3, losses=(), lams=()), wide, None)
        collapsed = stop is not StopReason.STALLED
        if plan.retreats < self.method.retreats and self._came_too_early(plan):
            again = replace(plan, stage=1, lams=(), losses=(), retreats=plan.retreats + 1)
            return Next(again, replace(state, radius=plan.radius_at_switch, failures=0), None)
        if self._can_grow(plan) and self._fits_its_points(plan):
            return Next(replace(self._grown(plan), losses=()), wide, None)
        if collapsed and plan.tries < self.method.tries:
            return Next(replace(plan, tries=plan.tries + 1), wide, None)
        return Next(plan, state, stop)

    def _needs_double(self, plan: Plan, state: State, step: Step) -> bool:
        """The warm-up is over, and regularisation is so small that single precision no longer resolves the model."""
        warm = state.iteration - plan.begun >= self.method.warm_up
        return warm and (not step.lam > self.method.single_above or not step.accepted)

    def _can_grow(self, plan: Plan) -> bool:
        return plan.points < self.method.max_points

    def _grown(self, plan: Plan) -> Plan:
        return replace(plan, points=min(self.method.growth * plan.points, self.method.max_points), gaps=())

    def _stop(self, plan: Plan, state: State, step: Step) -> StopReason | None:
        too_often = state.failures >= self.method.rejections
        if too_often and (step.problem or math.isnan(step.ratio)):
            return StopReason.FAILED
        if state.radius < self.method.minimum_radius:
            return StopReason.RADIUS
        if too_often:
            return StopReason.REJECTED
        stall = self.method.stall
        if plan.stage > 1 and stall and len(plan.losses) > stall and plan.losses[-1] > 0.5 * plan.losses[-1 - stall]:
            return StopReason.STALLED
        return None

    def _came_too_early(self, plan: Plan) -> bool:
        return plan.losses[-1] > self.method.gain * plan.loss_at_switch
