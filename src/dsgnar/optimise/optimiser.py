"""DSGNAR: Doubly-Sketched Gauss-Newton with Adaptive Ratio (Algorithm 1 of the paper), one iteration at a time.

    J, r     sketch of Jacobian and residual at theta, fresh operators           jacobian.py, sketch.py
    p(lam)   all damped steps of the sketched model, from one factorisation      subproblem.py, factorise.py
    D, lam   the radius whose step has the target ratio, and its damping         radius.py
    theta    theta + p if the loss L falls; else theta stays and the radius shrinks
    w        reweighting                                                         weights.py

Letters in the code are those of the paper: J and r are the sketched ones (with tilde in the paper), g a gradient that
replaces J^T r, s the mean squares of the conditions, L = 1/2 w.s the loss, rho the decrease ratio.

The optimiser is a composition of those parts. An iteration is a pure function of its state: all randomness comes from the
run's seed and the number of the iteration, so equal states go on equally. Which points, which precision and which target
ratio are in force is decided outside, by the rules of the stages (Algorithm 5).
"""

import math
from dataclasses import dataclass, field, replace

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from dsgnar.calculus.streams import stream
from dsgnar.optimise.agreement import Steps
from dsgnar.optimise.annealing import Annealing
from dsgnar.optimise.factorise import Factorisation
from dsgnar.optimise.jacobian import Jacobian
from dsgnar.optimise.radius import Found, Probe, Search
from dsgnar.optimise.residuals import Batched, PointSets, Residuals, weighted_loss
from dsgnar.optimise.subproblem import RADIUS_TOLERANCE, FactorisationError
from dsgnar.optimise.weights import Reweighting

NO_STEP = "the gradient is exactly zero, so there is no step to take"


@dataclass(frozen=True, eq=False)
class Active:
    """The points in force: in batches on the device for the loss, flat for the sketch."""

    batched: Batched
    flat: tuple[Float[np.ndarray, "n_m dimension"], ...]
    counts: tuple[int, ...]

    @classmethod
    def of(cls, residuals: Residuals, points: PointSets, dtype) -> "Active":
        """The points of every condition, rounded to `dtype`."""
        flat = tuple(points[name].astype(dtype) for name in residuals.problem.conditions)
        return cls(residuals.device_points(points, dtype), flat, tuple(len(p) for p in flat))


@dataclass(frozen=True, eq=False)
class State:
    """Where the optimiser is. Everything that the next iteration depends on, beside the points."""

    # With every iteration; theta only if the step is accepted.
    theta: Float[np.ndarray, " d"]
    weights: Float[np.ndarray, " conditions"]
    radius: float
    iteration: int = 0
    # With theta, and whenever points change.
    mean_squares: Float[np.ndarray, " conditions"] | None = None  # None: not known yet
    # With every accepted step.
    lam: float | None = None  # where the next search for lambda starts
    # For stopping.
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
    reweighting: Reweighting | Annealing
    seed: int
    shrink: float = 1 / 3  # of the radius on rejection (Algorithm 1)
    slack: float = RADIUS_TOLERANCE  # by which the length of a step may miss, relatively, the radius that was asked for
    redraws: int = 0  # how many other sketches a rejected step is given before the radius shrinks
    overshoot: float = math.inf  # reject a ratio above target + this, and widen (section 3.5); infinity: never

    def iterate(self, state: State, points: Active, target: float, exact: bool = False) -> tuple[State, Step]:
        """One pass of Algorithm 1; with `exact` the gradient is that of all points and only curvature is sketched."""
        theta, w, D, k = jnp.asarray(state.theta), state.weights, state.radius, state.iteration
        s, evaluations = state.mean_squares, 0
        if s is None:
            s, evaluations = self.residuals.kernel(theta, points.batched), 1
        L = weighted_loss(s, w)
        if not math.isfinite(L):
            raise FloatingPointError(self._not_finite(s))
        state = replace(state, mean_squares=s)

        # C, Omega, S <- GetSketchOperators;  J, r <- Sketch
        sketched = self.jacobian(theta, points.flat, w, stream(self.seed, "sketch", k))
        g = sketched.compress(self.residuals.gradient(theta, w, points.batched)) if exact else None

        def probe(radius: float) -> Probe:
            """The step of a given length, and the ratio of what it gains to what the model predicts."""
            trial, p = steps.to(radius, state.lam, self.slack)
            s_new = self.residuals.kernel(theta + p, points.batched)
            L_new = weighted_loss(s_new, w)
            rho = (L - L_new) / trial.decrease if trial.decrease > 0 else math.nan
            undamped = trial.norm < radius * (1 - max(self.slack, 1e-6))
            return Probe(trial.norm, trial.lam, rho, L_new, s_new, p, limit=undamped)

        # U, Sigma, V <- SVD(J);  D*, lam <- LambdaSolve
        try:
            steps = Steps.of(self.residuals.devices, theta, self.factorisation, sketched, g)
            found = self.search(probe, D, target)
        except FactorisationError as error:
            failed = Step(L, math.nan, target, math.nan, D, False, evaluations, str(error))
            return self._rejected(state, s, D), failed
        best, evaluations = found.best, evaluations + len(found.probes)
        problem = "" if best.radius > 0 else NO_STEP
        step = Step(L, best.ratio, target, best.lam, best.radius, False, evaluations, problem, found)

        # theta, D <- accept if the loss falls, else reject and shrink;  w <- UpdateWeights
        if not best.limit and best.ratio > target + self.overshoot:
            return replace(state, radius=best.radius / self.shrink, iteration=k + 1), step
        if not best.decreases(L):
            shortest = min(D, best.radius) if best.radius > 0 else D
            return self._rejected(state, s, shortest), replace(step, radius=shortest)
        accepted = State(
            theta=np.asarray(theta + best.step),
            weights=self.reweighting(best.mean_squares, w),
            radius=best.radius,
            iteration=k + 1,
            mean_squares=best.mean_squares,
            lam=best.lam,
        )
        return accepted, replace(step, accepted=True)

    def _rejected(self, state: State, s: Float[np.ndarray, " conditions"], radius: float) -> State:
        """The state after a rejection, where `radius` was the shortest that was tried."""
        return replace(
            state,
            weights=self.reweighting(s, state.weights),
            radius=state.radius if (state.failures + 1) % (self.redraws + 1) else radius * self.shrink,
            iteration=state.iteration + 1,
            failures=state.failures + 1,
        )

    def _not_finite(self, mean_squares: Float[np.ndarray, " conditions"]) -> str:
        names = [
            n for n, s in zip(self.residuals.problem.conditions, mean_squares, strict=True) if not math.isfinite(s)
        ]
        return f"the residual of condition {', '.join(map(repr, names))} is not finite at the current parameters"
