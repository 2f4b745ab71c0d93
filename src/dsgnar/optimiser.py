"""DSGNAR: Doubly-Sketched Gauss-Newton with Adaptive Ratio (Algorithm 1 of the paper), one iteration at a time.

    J~, r~   sketch of Jacobian and residual at theta, fresh operators          jacobian.py, sketch.py
    p(lam)   all damped steps of the sketched model, from one factorisation     subproblem.py, factorise.py
    D, lam   the radius whose step has the target ratio                         radius.py
    theta    theta + p if the loss falls, else unchanged and the radius shrinks
    w        reweighting                                                        weights.py

The optimiser is a composition of those parts. An iteration is a pure function of its state: all randomness comes from the
run's seed and the number of the iteration, so equal states go on equally. Which points, which precision and which target
ratio are in force is decided outside, in `stages.py`.
"""

import math
from dataclasses import dataclass, field, replace

import jax.numpy as jnp
import numpy as np

from dsgnar.factorise import Factorisation
from dsgnar.jacobian import Jacobian
from dsgnar.radius import Found, Probe, Search
from dsgnar.residuals import Batched, PointSets, Residuals, weighted_loss
from dsgnar.sampling import generator
from dsgnar.subproblem import RADIUS_TOLERANCE, FactorisationError, Subproblem
from dsgnar.weights import Reweighting


@dataclass(frozen=True, eq=False)
class Active:
    """The points in force: in batches on the device for the loss, flat for the sketch."""

    batched: Batched
    flat: tuple
    counts: tuple[int, ...]

    @classmethod
    def of(cls, residuals: Residuals, points: PointSets, dtype) -> "Active":
        flat = tuple(points[name].astype(dtype) for name in residuals.problem.conditions)
        return cls(residuals.device_points(points, dtype), flat, tuple(len(p) for p in flat))


@dataclass(frozen=True, eq=False)
class State:
    """Where the optimiser is. Everything that the next iteration depends on, beside the points."""

    theta: np.ndarray
    weights: np.ndarray
    radius: float
    iteration: int = 0
    mean_squares: np.ndarray | None = None  # at theta and the points in force; None: not known yet
    lam: float | None = None  # of the last accepted step
    failures: int = 0  # consecutive iterations without an acceptable step

    @property
    def loss(self) -> float:
        return math.nan if self.mean_squares is None else weighted_loss(self.mean_squares, self.weights)


@dataclass(frozen=True)
class Step:
    """What one iteration did."""

    loss: float  # before the step, with the weights in force
    ratio: float
    target: float
    lam: float
    radius: float
    accepted: bool
    evaluations: int
    problem: str = ""  # why there was no step, where that was not simply a lack of decrease
    found: Found | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, eq=False)
class Optimiser:
    """The parts of which one iteration is composed."""

    residuals: Residuals
    jacobian: Jacobian
    factorisation: Factorisation
    search: Search
    reweighting: Reweighting
    seed: int
    shrink: float = 1 / 3  # of the radius on rejection (Algorithm 1)
    slack: float = RADIUS_TOLERANCE  # by which the length of a step may miss, relatively, the radius that was asked for
    overshoot: float | None = None  # reject a ratio above target + this, and widen (section 3.5)

    def iterate(self, state: State, points: Active, target: float, exact: bool = False) -> tuple[State, Step]:
        """One iteration of Algorithm 1; with `exact` the gradient is that of all points and only curvature is sketched."""
        theta = jnp.asarray(state.theta)
        mean_squares = state.mean_squares
        evaluations = 0
        if mean_squares is None:
            mean_squares, evaluations = self.residuals.kernel(theta, points.batched), 1
        loss = weighted_loss(mean_squares, state.weights)
        if not math.isfinite(loss):
            raise FloatingPointError(self._not_finite(mean_squares))
        state = replace(state, mean_squares=mean_squares)
        try:
            found = self._find(state, theta, points, loss, target, exact)
        except FactorisationError as error:
            return self._rejected(state, loss, target, state.radius, evaluations, None, str(error))
        evaluations += len(found.probes)
        best = found.best
        if self.overshoot is not None and not best.limit and best.ratio > target + self.overshoot:
            wider = replace(state, radius=best.radius / self.shrink, iteration=state.iteration + 1)
            return wider, Step(loss, best.ratio, target, best.lam, best.radius, False, evaluations, "", found)
        if not best.decreases(loss):
            shortest = min(state.radius, best.radius)
            return self._rejected(state, loss, target, shortest, evaluations, found)
        step = Step(loss, best.ratio, target, best.lam, best.radius, True, evaluations, "", found)
        return self._accepted(state, theta, best), step

    def _find(self, state: State, theta, points: Active, loss: float, target: float, exact: bool) -> Found:
        rng = generator(self.seed, "sketch", state.iteration)
        sketched = self.jacobian(theta, points.flat, state.weights, rng)
        gradient = None
        if exact:
            gradient = sketched.compress(self.residuals.gradient(theta, state.weights, points.batched))
        subproblem = self.factorisation.factorise(sketched.jacobian, sketched.residual, gradient)

        def evaluate(radius: float) -> Probe:
            return self._probe(subproblem, sketched.lift, theta, points, state, loss, radius)

        return self.search(evaluate, state.radius, target)

    def _probe(self, subproblem: Subproblem, lift, theta, points: Active, state: State, loss: float, radius) -> Probe:
        trial = subproblem.solve_radius(radius, state.lam, self.slack)
        step = lift(jnp.asarray(subproblem.step(trial.lam)))
        mean_squares = self.residuals.kernel(theta + step, points.batched)
        new = weighted_loss(mean_squares, state.weights)
        ratio = (loss - new) / trial.decrease if trial.decrease > 0 else math.nan
        return Probe(
            trial.norm,
            trial.lam,
            ratio,
            new,
            mean_squares,
            step,
            limit=trial.norm < radius * (1 - max(self.slack, 1e-6)),
        )

    def _accepted(self, state: State, theta, best: Probe) -> State:
        return State(
            theta=np.asarray(theta + best.step),
            weights=self.reweighting(best.mean_squares, state.weights),
            radius=best.radius,
            iteration=state.iteration + 1,
            mean_squares=best.mean_squares,
            lam=best.lam,
        )

    def _rejected(self, state: State, loss, target, radius, evaluations, found, problem="") -> tuple[State, Step]:
        assert state.mean_squares is not None
        ratio, lam = (found.best.ratio, found.best.lam) if found is not None else (math.nan, math.nan)
        kept = replace(
            state,
            weights=self.reweighting(state.mean_squares, state.weights),
            radius=radius * self.shrink,
            iteration=state.iteration + 1,
            failures=state.failures + 1,
        )
        return kept, Step(loss, ratio, target, lam, radius, False, evaluations, problem, found)

    def _not_finite(self, mean_squares: np.ndarray) -> str:
        names = [
            n for n, s in zip(self.residuals.problem.conditions, mean_squares, strict=True) if not math.isfinite(s)
        ]
        return f"the residual of condition {', '.join(map(repr, names))} is not finite at the current parameters"
