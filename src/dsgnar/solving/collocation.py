"""Where residuals are evaluated: training points, held-out points, and the values that a time interval hands to the next.

All of them are functions of a run's state: of its plan (how many points, which draw, which precision), of its time interval
and, for points that follow the residual, of its parameters. The last ones made are remembered, since an iteration asks for
them several times.
"""

import math
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np

from dsgnar.calculus.precision import DTYPES
from dsgnar.calculus.streams import stream
from dsgnar.optimise.optimiser import Active
from dsgnar.optimise.residuals import Batched, PointSets, Residuals
from dsgnar.problem.domain import Box, Initial, Interior, Part, Points
from dsgnar.problem.sampling import held_out, prefer, sample
from dsgnar.solving.evaluation import located
from dsgnar.solving.march import March
from dsgnar.solving.method import Method
from dsgnar.solving.model import Model
from dsgnar.solving.settings import Resolved
from dsgnar.solving.state import RunState


@dataclass(frozen=True, eq=False)
class Collocation:
    """The points of a run."""

    model: Model
    settings: Resolved
    _last: dict[str, tuple[Any, Any]] = field(default_factory=dict, init=False, repr=False)

    @property
    def residuals(self) -> Residuals:
        return self.model.residuals

    @property
    def marching(self) -> bool:
        """Whether time may be cut, so that intervals hand values over."""
        return self.settings.intervals != 1 and self.residuals.problem.domain.time is not None

    def at(self, state: RunState) -> Model:
        """The model with the time intervals of a state."""
        return replace(self.model, march=March(state.times, state.begun)) if self.marching or state.begun else self.model

    def domain(self, state: RunState) -> Box:
        """The part of the problem's domain that is being solved."""
        whole = self.residuals.problem.domain
        if not self.marching or whole.time is None:
            return whole
        return whole.with_interval(whole.time, (state.times[-2], state.times[-1]))

    def active(self, state: RunState) -> Active:
        """The training points in force, on the device."""
        return self._remembered("training", state, self._active)

    def held_out(self, state: RunState) -> Batched:
        """Held-out points on the device, none of which is a training point in force."""
        make = lambda s: self.residuals.device_points(self.held_out_points(s), DTYPES[s.plan.precision])
        return self._remembered("held out", state, make)

    def held_out_points(self, state: RunState) -> PointSets:
        """Held-out points as residuals want them."""
        return self._remembered("held-out points", state, self._held_out)

    def measured(self, state: RunState) -> PointSets:
        """The points of data with their values."""
        problem, points = self.residuals.problem, self.held_out_points(state)
        return {name: points[name] for name, c in problem.conditions.items() if c.measured is not None}

    def inside(self, state: RunState, count: int) -> np.ndarray:
        """Points all over the interval that is being solved."""
        points = sample(Interior(), self.domain(state), count, stream(self.settings.seed, "inside"))
        return located(self.at(state), points, state.interval)

    def training(self, state: RunState) -> PointSets:
        """The training points: so many for interior conditions, half for others, unless a condition has its own number."""
        problem, method, seed = self.residuals.problem, self.settings.method, self.settings.seed
        count, domain, out = state.plan.points, self.domain(state), {}
        for name, condition in problem.conditions.items():
            inside = isinstance(condition.part, Interior)
            number = condition.points or (count if inside else max(1, count // 2))
            if not isinstance(condition.part, Points):
                fixed = condition.part.fixed(domain)
                number = len(fixed) if all(len(f) == domain.dimension for f in fixed) else number  # single points
            rng = stream(seed, "points", name, count, state.plan.draw)
            draw = partial(
                sample, condition.part, _where(self, state, condition.part), rng=rng, method=condition.sampling or "uniform",
                near=condition.near, periodic=problem.periodic,
            )  # fmt: skip
            large = round(_following(method, state) * number) if inside else 0
            out[name] = draw(count=number - large)
            if large:
                candidates = draw(count=method.candidates * large)
                placed = located(self.at(state), candidates, state.interval)
                residual = self.residuals.vector(name, jnp.asarray(state.iterate.theta), placed)
                chosen = prefer(np.abs(residual.astype(np.float64)), large, rng)
                out[name] = np.concatenate([out[name], candidates[chosen]])
        return out

    def _remembered(self, purpose: str, state: RunState, make) -> Any:
        key = self._key(state)
        known = self._last.get(purpose)
        if known is None or known[0] != key:
            known = self._last[purpose] = key, make(state)
        return known[1]

    def _key(self, state: RunState) -> tuple:
        """All that the points of a state, and the values handed over to them, depend on."""
        followed = state.iterate.theta.tobytes() if _following(self.settings.method, state) else b""
        handed_over = state.finished[-1].tobytes() if state.finished else b""
        return *state.points_key, followed, handed_over

    def _active(self, state: RunState) -> Active:
        points = {name: self._with_values(state, name, p) for name, p in self.training(state).items()}
        return Active.of(self.residuals, points, DTYPES[state.plan.precision])

    def _held_out(self, state: RunState) -> PointSets:
        problem, dtype = self.residuals.problem, DTYPES[state.plan.precision]
        training, out = self.training(state), {}
        for name, condition in problem.conditions.items():
            points = held_out(
                condition.part, _where(self, state, condition.part), self.settings.method.held_out,
                stream(self.settings.seed, "held-out", name), training[name], dtype, condition.near,
                method=condition.sampling or "uniform", periodic=problem.periodic,
            )  # fmt: skip
            out[name] = self._with_values(state, name, points)
        return out

    def _with_values(self, state: RunState, name: str, points: np.ndarray) -> np.ndarray:
        """Points with the value that their residual is to take: measured, or at first points that of the interval before."""
        if isinstance(self.residuals.problem.conditions[name].part, Points):
            return _given(self, state, name, points)
        if not (self.marching or state.begun):
            return points
        points = points.astype(DTYPES[state.plan.precision]).astype(np.float64)  # as the point will be seen
        model = self.at(state)
        placed = located(model, points, state.interval)
        if not isinstance(self.residuals.problem.conditions[name].part, Initial):
            return placed
        values = np.zeros(len(points))
        if state.finished:
            before = located(model, points, state.interval - 1)
            values = self.residuals.vector(name, jnp.asarray(state.finished[-1]), before)
        return np.concatenate([placed, values[:, None].astype(np.float64)], axis=1)


def _where(collocation: Collocation, state: RunState, part: Part) -> Box:
    """Where the points of a part are drawn; given ones may lie at any time."""
    return collocation.residuals.problem.domain if isinstance(part, Points) else collocation.domain(state)


def _given(collocation: Collocation, state: RunState, name: str, points: np.ndarray) -> np.ndarray:
    """Points that a person gave, with measured values and weights.

    In a march those of other intervals are moved into this one and weigh nothing, so that all intervals share their kernels;
    mean squares are those of the points that belong here.
    """
    residuals = collocation.residuals
    measured, domain = residuals.problem.conditions[name].measured, residuals.problem.domain
    if measured is None and not collocation.marching:
        return points
    values, weights = np.zeros(len(points)), np.ones(len(points))
    if measured is not None:
        values, weights = measured.values / residuals.ansatz.size(name), measured.precision
    if collocation.marching and domain.time is not None:
        t, (begin, end) = points[:, domain.index(domain.time)], state.times[-2:]
        here = (March(state.times).piece(t) == state.interval) & (t <= end)
        weights = np.where(here, math.sqrt(len(t) / max(1, np.count_nonzero(here))) * weights, 0.0)
        points = points.copy()
        points[:, domain.index(domain.time)] = np.clip(t, begin, end)
    return np.column_stack([located(collocation.at(state), points, state.interval), values, weights])


def _following(method: Method, state: RunState) -> float:
    """The share of the points that follows the residual."""
    return method.adaptive or (method.focus if state.focused else 0.0)
