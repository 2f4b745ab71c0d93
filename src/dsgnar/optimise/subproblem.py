r"""The damped subproblem: step, norm, predicted decrease, and the lambda of a radius (paper, section 3.3, Alg. 3).

With the sketched Jacobian A (m x n) and the sketched residual r (m), for lambda >= 0:

    p(lam)        = -(A^T A + lam I)^-1 A^T r                       the step, `step(lam)`
    decrease(lam) = 1/2 ||r||^2 - 1/2 ||r + A p||^2
                  = -1/2 r^T A p + 1/2 lam ||p||^2                  no cancellation: both terms are >= 0
    slope(lam)    = d||p||/dlam = -q / ||p||,  q = p^T (A^T A + lam I)^-1 p
    lam(radius)   solves ||p(lam)|| = radius                        `solve_radius(radius)`

With a gradient g given in place of A^T r, for instance that of the whole loss, the same holds with

    p(lam)        = -(A^T A + lam I)^-1 P g                         P projects onto the row space of A
    decrease(lam) = -1/2 g^T p + 1/2 lam ||p||^2

A factorisation of A makes all of them cheap for many lambdas; `factorise.py` and `band.py` hold the factorisations.
In terms of singular values s, left vectors U, right ones V, and h = V^T A^T r = s U^T r, or h = V^T g:
||p||^2 = sum h^2/(s^2+lam)^2 and decrease = 1/2 sum h^2 (s^2+2 lam)/(s^2+lam)^2. (Alg. 3 of the paper
prints the step without its minus sign.) p(0) means the limit lam -> 0+, the minimum-norm step: a singular value
that is zero contributes nothing.

The secular equation. Where ||p|| ~ 1/lam, Newton's method on ||p|| - D as printed in Alg. 3 only doubles lambda
per iteration. On 1/D - 1/||p|| (Hebden 1973, More and Sorensen 1983) it is nearly exact, and since 1/||p|| is
concave its iterate never lies above the root: every evaluation yields a lower bound. As (s^2+lam)/lam falls with
lam, lam ||p||/D is an upper bound from the right. Between two evaluated points log lam is interpolated by a monotone
cubic in log ||p||, which crosses tens of orders of magnitude of lambda in a few evaluations: 4 to 5 from a start
within a factor of 100 to a relative 1e-9, against 6 to 7 for Newton's method alone (singular values
1e2 .. 1e-14, 60 draws).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from jax import Array
from jaxtyping import Float

AnyArray = Array | np.ndarray  # a factorisation takes what lives on a device as well as what lives on the host
Matrix = Float[AnyArray, "m n"]  # A
OfRows = Float[AnyArray, " m"]  # one number per row of A, as r
OfColumns = Float[AnyArray, " n"]  # one number per column of A, as p and g

RADIUS_TOLERANCE = 1e-11  # relative; ||p|| = radius, unless a caller is content with less
MAX_EVALUATIONS = 60  # a bracket that spans all floats is bisected to a relative 1e-11 in about 50


class FactorisationError(ArithmeticError):
    """The sketched Jacobian could not be factorised; the message says why."""


def checked(A: Matrix, r: OfRows, g: OfColumns | None = None) -> None:
    """Raise unless A is a real float32 or float64 matrix, r and g fitting vectors, and all are finite."""
    if g is not None and g.shape != A.shape[1:]:
        raise ValueError(f"g must be a vector with as many entries as A has columns, not {g.shape} for {A.shape}")
    if A.ndim != 2 or r.shape != A.shape[:1]:
        raise ValueError(f"A must be a matrix and r a vector with as many rows, not {A.shape} and {r.shape}")
    if A.dtype not in (np.float32, np.float64):
        raise ValueError(f"A must be float32 or float64, not {A.dtype}")
    # One reduction instead of an elementwise test: a sum is finite only if every term is.
    if not all(np.isfinite(float(part.sum())) for part in (A, r, g) if part is not None):
        raise FactorisationError(
            f"the sketched Jacobian {A.shape} or residual holds inf or nan; the last step left the network's range"
        )


@dataclass(frozen=True)
class Trial:
    """What is known about a damped step without forming it."""

    lam: float  # the damping that is in effect (never below the factorisation's floor)
    norm: float  # ||p(lam)||
    decrease: float  # predicted decrease of 1/2 ||r||^2
    slope: float  # d||p||/dlam <= 0


@dataclass
class Subproblem(ABC):
    """One factorised pair (A, r). Evaluations are remembered, so a search over radii starts from what it knows."""

    residual_norm: float  # ||r||
    gradient_norm: float  # ||A^T r||
    floor: float  # smallest lambda that the factorisation resolves; smaller ones are raised to it
    trials: dict[float, Trial] = field(default_factory=dict, init=False, repr=False)

    @abstractmethod
    def evaluate(self, lam: float) -> Trial:
        """Norm, decrease and slope at one lambda >= floor."""

    @abstractmethod
    def step(self, lam: float) -> OfColumns:
        """The vector p(lam), in the type of A."""

    def at(self, lam: float) -> Trial:
        """Norm and predicted decrease of p(lam), from memory where possible."""
        if not lam >= 0.0:
            raise ValueError(f"lam must be a number >= 0, not {lam}")
        lam = max(float(lam), self.floor)
        if lam not in self.trials:
            trial = self.evaluate(lam)
            if not (math.isfinite(trial.norm) and math.isfinite(trial.decrease)):
                raise FactorisationError(f"the step at lambda = {lam:.3e} is not finite; raise the damping")
            self.trials[lam] = trial
        return self.trials[lam]

    def solve_radius(self, radius: float, start: float | None = None, tolerance: float = RADIUS_TOLERANCE) -> Trial:
        """The trial with ||p(lam)|| = radius, or the least damped one if even that is shorter.

        `start` is a first guess of lambda, for example the last iteration's; evaluations made before bracket the
        root as well. `tolerance` is how far, relatively, the norm may be from the radius.
        """
        if not 0.0 < radius < math.inf:
            raise ValueError(f"radius must be positive and finite, not {radius}")
        return _solve_secular(self, float(radius), start, tolerance)


def _solve_secular(problem: Subproblem, radius: float, start: float | None, tolerance: float) -> Trial:
    low, high = problem.floor, max(problem.gradient_norm / radius, problem.floor)
    left = max((t for t in problem.trials.values() if t.norm > radius), key=lambda t: t.lam, default=None)
    right = min((t for t in problem.trials.values() if t.norm <= radius), key=lambda t: t.lam, default=None)
    for known in (left, right):
        if known is not None:
            low, high = _tighten(low, high, known, radius)
    if left is not None or right is not None:
        lam = _propose(low, high, left, right, radius, problem.floor)
    else:
        lam = min(max(start, low), high) if start is not None and start > 0.0 else high
    trial = None
    for evaluation in range(MAX_EVALUATIONS):
        last, trial = trial, problem.at(lam)
        if abs(trial.norm - radius) <= tolerance * radius:
            return trial
        if trial.norm > radius:
            left = trial
        elif trial.lam <= problem.floor:
            return trial  # the least damped step is inside the radius
        else:
            right = trial
        low, high = _tighten(low, high, trial, radius)
        if high - low <= 1e-14 * high or (last is not None and last.lam == trial.lam):
            return trial  # lambda is determined to the last bit; ||p|| is what rounding leaves of it
        lam = _propose(low, high, left, right, radius, problem.floor)
        if evaluation >= 8 and evaluation % 2:  # interpolation creeps where the norm turns from flat to steep
            lam = math.sqrt(low) * math.sqrt(high)
    assert trial is not None
    return trial


def _newton(trial: Trial, radius: float) -> float:
    """Newton's iterate for 1/radius - 1/||p||: a lower bound of the root."""
    if trial.slope == 0.0:
        return 0.0
    return trial.lam - (trial.norm / radius - 1.0) * trial.norm / trial.slope


def _tighten(low: float, high: float, trial: Trial, radius: float) -> tuple[float, float]:
    bound = _newton(trial, radius)
    if trial.norm > radius:
        low = max(low, trial.lam)
    else:
        high = min(high, trial.lam * trial.norm / radius)
    # A bound within rounding of the root may pass it; a hair of slack keeps the bracket valid.
    low = max(low, min(bound * (1.0 - 1e-12), high))
    return low, max(low, high)


def _propose(low: float, high: float, left: Trial | None, right: Trial | None, radius: float, floor: float) -> float:
    """The next lambda in [low, high]."""
    if left is not None and right is not None and left.lam > floor:
        lam = _interpolate(left, right, radius)
        if not low < lam < high:
            lam = math.sqrt(low) * math.sqrt(high)
    elif left is not None:
        newton = _newton(left, radius)
        lam = min(max(newton, _power_law(left, radius)), 1e3 * newton)  # the cubic takes over after an overshoot
    else:
        assert right is not None
        lam = _newton(right, radius)
        if lam <= 0.0:
            lam = _power_law(right, radius)
            if lam < 1e-8 * right.lam:  # too flat to extrapolate: perhaps no damping is needed at all
                lam = floor
    return min(max(lam, low), high)


def _power_law(trial: Trial, radius: float) -> float:
    """Where ||p|| ~ lam^-a through the trial's value and slope reaches the radius."""
    if trial.slope == 0.0:  # flat, perhaps because there is no step at all: ||p|| = 0
        return 0.0
    a = -trial.lam * trial.slope / trial.norm
    if a <= 0.0:
        return 0.0
    return trial.lam * math.exp(min(max(math.log(trial.norm / radius) / a, -600.0), 600.0))


def _interpolate(left: Trial, right: Trial, radius: float) -> float:
    """Monotone cubic (Fritsch-Carlson) for log lam as a function of log ||p|| between two trials."""
    x0, x1 = math.log(left.lam), math.log(right.lam)
    y0, y1 = math.log(left.norm), math.log(right.norm)
    h = y1 - y0
    secant = (x1 - x0) / h
    d0, d1 = (secant * min(_elasticity(t) / secant, 3.0) for t in (left, right))
    t = (math.log(radius) - y0) / h
    u = 1.0 - t
    return math.exp(u * u * (x0 * (1 + 2 * t) + d0 * h * t) + t * t * (x1 * (1 + 2 * u) - d1 * h * u))


def _elasticity(trial: Trial) -> float:
    """d log lam / d log ||p|| at a trial."""
    return trial.norm / (trial.lam * trial.slope) if trial.slope < 0.0 else -1e300


@dataclass
class Spectral(Subproblem):
    """A singular value decomposition: every quantity is a sum over singular values.

    The sums run in float64 whatever the type of A, because lambda and s^2 leave the range of float32.
    """

    s: Float[np.ndarray, " k"]  # singular values, float64
    h: Float[np.ndarray, " k"]  # V^T A^T r, or V^T g; float64
    lift: Callable[[Float[np.ndarray, " k"]], OfColumns]  # coefficients in V -> vector in the type of A

    def evaluate(self, lam: float) -> Trial:
        d = self.s * self.s + lam
        t = self._coefficients(lam)
        norm = float(np.linalg.norm(t))
        q = float(np.sum(np.divide(t * t, d, out=np.zeros_like(t), where=d > 0)))
        decrease = 0.5 * float(np.sum(t * t * (self.s * self.s + 2.0 * lam)))
        return Trial(lam, norm, decrease, -q / norm if norm > 0.0 else 0.0)

    def step(self, lam: float) -> OfColumns:
        return self.lift(-self._coefficients(max(float(lam), self.floor)))

    def _coefficients(self, lam: float) -> Float[np.ndarray, " k"]:
        d = self.s * self.s + lam
        return np.divide(self.h, d, out=np.zeros_like(self.h), where=d > 0)
