"""Standard errors of coefficients and of predictions, from the Gauss-Newton matrix at the end of a run.

With D the change of all parameters per change of a coefficient that keeps the equations and absorbs what the network may
(the network profiled out, `gauss_newton.py`), the data change by J D, and with residuals over their deviations

    information = (J D)^T (J D),        covariance = information^-1.

For equations that determine u this is the classical sigma^2 / |du/dc|^2. Only rows of data count: what the equations alone
seem to know about a coefficient is how badly the network can follow it. Where that is more than the data know (`held`), the
value may be biased. A coefficient is not determined where its standard error exceeds three times its size, a positive one
where its logarithm's exceeds one.

Noise that is not given is estimated: sigma^2 = sum of squares / (n - q), with q = |J R^-1|^2 the number of parameters, of
coefficients and functions alike, that the data have determined.
"""

import math
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jaxtyping import Float

from dsgnar.calculus.precision import x64
from dsgnar.optimise.residuals import Residuals
from dsgnar.problem import Problem
from dsgnar.problem.data import Measurements
from dsgnar.problem.domain import Points
from dsgnar.solving import bands
from dsgnar.solving.coefficients import Estimated, Fit, Inference
from dsgnar.solving.gauss_newton import Rows, Triangle, equation_points, rows

WIDE = 1.0  # standard error of a logarithm beyond which a positive coefficient is not determined
WIDE_PLAIN = 3.0  # the same over the size of other coefficients
LEAST = 1e-8  # of singular values of the information: flatter directions count as this flat
SMALLEST = 1e-300


@x64
def infer(residuals: Residuals, theta: np.ndarray, data_weight: float, points: dict[str, np.ndarray]) -> Inference:
    """Error bars at the end of a run.

    `data_weight` is that of data over the smallest weight of an equation, and `points` are those of the data, as residuals
    want them.
    """
    measured = _measured(residuals)
    if not measured:
        return unfinished(residuals, theta, points, "there are no data, so nothing is uncertain")
    triangle, observed, equations = _matrix(residuals, theta, data_weight, points, measured)
    hats = {name: _hat(triangle, part.jacobian) for name, part in observed.items()}
    fits = {name: _fit(measured[name], observed[name], hats[name], residuals.ansatz.size(name)) for name in measured}
    covariance, sizes = _covariance(residuals, theta, triangle, observed, fits)
    free = sum(fit.freedom for fit in fits.values()) if any(not fit.given for fit in fits.values()) else math.inf
    names = list(residuals.problem.coefficients)
    errors = np.sqrt(np.diag(covariance)) if names else np.zeros(0)
    found = dict(zip(names, map(float, _values(residuals, theta)), strict=True))
    estimated = {
        name: _estimated(residuals, name, found[name], float(error), float(size), free)
        for name, error, size in zip(names, errors, sizes, strict=True)
    }
    scaled = {name: _inflation(fits[name]) * part.jacobian for name, part in observed.items()}
    spread = bands.spread(residuals, theta, triangle, scaled, equations)
    functions = {} if spread is None else bands.accounts(residuals, theta, spread)
    checks = (triangle.decrement(), _held(triangle, observed)) if names else (None, None)
    return Inference(estimated, covariance if names else None, fits, *checks, functions, spread, free)


@x64
def unfinished(residuals: Residuals, theta: np.ndarray, points: dict[str, np.ndarray], why: str) -> Inference:
    """What is known without error bars."""
    names, fits = residuals.problem.coefficients, {}
    values = zip(names.items(), map(float, _values(residuals, theta)), strict=True)
    estimated = {name: Estimated(value, None, positive=c.positive, why=why) for (name, c), value in values}
    for name, measured in _measured(residuals).items():
        misfit = _misfit(residuals, name, theta, points[name])
        given = measured.noise is not None
        fits[name] = Fit(
            measured.values.size, misfit, measured.typical if given else misfit, given, measured.values.size
        )
    return Inference(estimated, None, fits)


def marched(problem: Problem, predicted: Callable[[str], Callable]) -> Inference:
    """How data are fitted by several time intervals, each of which has met its own; `predicted` are observables."""
    fits = {}
    for name, condition in problem.conditions.items():
        if condition.measured is None or not isinstance(condition.part, Points):
            continue
        measured, at = condition.measured, condition.part.table(problem.domain)
        off = measured.precision * (predicted(name)(**dict(zip(problem.domain.axes, at.T, strict=True))) - measured.values)
        reached, given = off[np.isfinite(off)], measured.noise is not None
        misfit = float(np.sqrt(np.mean(reached**2))) if reached.size else 0.0
        fits[name] = Fit(reached.size, misfit, measured.typical if given else misfit, given, reached.size)
    return Inference({}, None, fits)


def _measured(residuals: Residuals) -> dict[str, Measurements]:
    return {name: c.measured for name, c in residuals.problem.conditions.items() if c.measured is not None}


def _misfit(residuals: Residuals, name: str, theta: np.ndarray, points: np.ndarray) -> float:
    values = residuals.vector(name, jnp.asarray(theta, jnp.float64), points)
    return float(residuals.ansatz.size(name) * np.sqrt(np.mean(np.asarray(values, np.float64) ** 2)))


def _values(residuals: Residuals, theta: np.ndarray) -> Float[np.ndarray, " c"]:
    """The coefficients themselves, from the last parameters."""
    raw = np.asarray(theta, np.float64)[theta.size - len(residuals.problem.coefficients) :]
    positive = np.array([c.positive for c in residuals.problem.coefficients.values()], bool)
    return _sizes(residuals) * np.where(positive, np.exp(np.where(positive, raw, 0.0)), raw)


def _sizes(residuals: Residuals) -> Float[np.ndarray, " c"]:
    problem, scales = residuals.problem, residuals.ansatz.scales
    return np.array([1.0] * len(problem.coefficients) if scales is None else scales.unknowns[len(problem.unknowns) :])


def _matrix(
    residuals: Residuals,
    theta: np.ndarray,
    data_weight: float,
    points: dict[str, np.ndarray],
    measured: dict[str, Measurements],
) -> tuple[Triangle, dict[str, Rows], dict[str, Rows]]:
    """All rows over their deviations, factorised; those of the data, and those of the equations."""
    observed, strength, parameters = {}, [], theta.size
    weights = {name: c.initial_weight for name, c in residuals.problem.conditions.items() if name not in measured}
    lightest = data_weight * min(weights.values(), default=1.0)
    for name, m in measured.items():
        part, size = rows(residuals, theta, name, points[name]), residuals.ansatz.size(name)
        misfit = size * float(np.sqrt(np.mean(part.residual**2)))
        deviation = max(m.typical if m.noise is not None else misfit, SMALLEST)
        observed[name] = part.scaled(size / deviation)
        strength.append(m.values.size * (size / deviation) ** 2 / lightest)
    equations = {}
    for name, weight in weights.items():
        x = equation_points(residuals, name, parameters)
        factor = math.sqrt(weight * max(strength) / len(x))
        equations[name] = rows(residuals, theta, name, x).scaled(factor)
    parts = [*equations.values(), *observed.values()]
    return Triangle.of(parts, len(residuals.problem.coefficients)), observed, equations


def _hat(triangle: Triangle, jacobian: np.ndarray) -> Float[np.ndarray, "d n"]:
    """R^-T J^T: columns whose squares are the variances of predictions, and whose sum is what was adapted to the data."""
    return scipy.linalg.solve_triangular(triangle.matrix, jacobian.T, trans=1, check_finite=False)


def _fit(measured: Measurements, observed: Rows, hat: np.ndarray, size: float) -> Fit:
    count, given = measured.values.size, measured.noise is not None
    freedom = max(count - float(np.sum(hat**2)), 1e-3)
    squares = float(np.sum(observed.residual**2))
    deviation = measured.typical if given else size * observed.unit  # their own root mean square
    misfit = math.sqrt(squares / count) * deviation
    noise = deviation if given else misfit * math.sqrt(count / freedom)
    band = np.linalg.norm(hat, axis=0) * noise / measured.precision
    return Fit(count, misfit, noise, given, freedom, band)


def _inflation(fit: Fit) -> float:
    """By what rows of data are multiplied where noise is estimated, since it is larger than the misfit."""
    return 1.0 if fit.given else math.sqrt(fit.freedom / fit.count)


def _covariance(
    residuals: Residuals,
    theta: np.ndarray,
    triangle: Triangle,
    observed: dict[str, Rows],
    fits: dict[str, Fit],
) -> tuple[np.ndarray, np.ndarray]:
    """The covariance of the coefficients in their own units, and their sizes."""
    positive = np.array([c.positive for c in residuals.problem.coefficients.values()], bool)
    if not positive.size:
        return np.zeros((0, 0)), np.zeros(0)
    follow = triangle.profile()
    blocks = []
    for name, part in observed.items():
        blocks.append(_inflation(fits[name]) * part.jacobian @ follow)
    _, s, V = np.linalg.svd(np.concatenate(blocks), full_matrices=False)
    inverse = V.T / np.maximum(s, LEAST)
    slope = np.where(positive, _values(residuals, theta), _sizes(residuals))  # of the coefficient by what is trained
    covariance = slope[:, None] * (inverse @ inverse.T) * slope
    return covariance, np.maximum(np.abs(_values(residuals, theta)), np.where(positive, 0.0, _sizes(residuals)))


def _held(triangle: Triangle, observed: dict[str, Rows]) -> float:
    """How much more firmly equations and data together hold some combination of coefficients than the data alone."""
    follow = triangle.profile()
    data = np.concatenate([part.jacobian @ follow for part in observed.values()])
    together = triangle.matrix[-triangle.coefficients :, -triangle.coefficients :]
    ratios = np.linalg.svd(data @ np.linalg.inv(together), compute_uv=False)
    return float(1 / max(ratios.min(), LEAST))


def _estimated(residuals: Residuals, name: str, value: float, error: float, size: float, freedom: float) -> Estimated:
    positive = residuals.problem.coefficients[name].positive
    if error <= (WIDE if positive else WIDE_PLAIN) * size:
        return Estimated(value, error, True, positive, freedom)
    why = "the data fit about as well with very different values; fix it, or measure something that depends on it"
    return Estimated(value, math.inf, False, positive, freedom, why)
