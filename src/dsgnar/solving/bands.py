"""Error bars of unknown functions of fewer axes, at every place, from the Gauss-Newton matrix at the end of a run.

Such a function k(x) has parameters of its own. They come last, before the coefficients; together they are f. The network
follows a change of theirs as it follows one of coefficients (`gauss_newton.py`), D = df -> dtheta, and

    information = (J D)^T (J D) + E^T E + 1 / rho^2,        covariance = information^-1 = S S^T.

J are the rows of data. E are those of conditions that k and coefficients meet alone, such as k given at an end; what other
equations seem to know is how badly the network can follow. The prior, f ~ N(found, rho^2), says that k is a function such as
its network draws, and rho that it may differ from what was found by PRIOR sizes of k (of log k by PRIOR, if k is positive)
where nothing is known: without it no finite number of values would determine a function anywhere. Then

    standard error of k(x) = |S^T grad_f k(x)|,     and of log k(x), if k is positive.

Where it exceeds WIDE sizes data do not determine k(x).
"""

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jaxtyping import Float

from dsgnar.calculus.precision import x64
from dsgnar.calculus.streams import stream
from dsgnar.networks.composed import own
from dsgnar.optimise.residuals import Residuals
from dsgnar.problem import Problem
from dsgnar.problem.domain import Interior
from dsgnar.problem.inverse import axes_of, is_positive
from dsgnar.problem.sampling import sample
from dsgnar.solving.coefficients import Account, Band
from dsgnar.solving.evaluation import in_rows
from dsgnar.solving.gauss_newton import FLAT, Rows, Triangle

PRIOR, WIDE = 10.0, 1.0
SMALLEST = 1e-300
PLACES = 401  # at which a function is looked at


def functions(problem: Problem) -> tuple[str, ...]:
    """The unknowns of fewer axes."""
    return tuple(name for name in problem.unknowns if axes_of(problem, name) != problem.domain.axes)


def spread(
    residuals: Residuals, theta: np.ndarray, triangle: Triangle, data: dict[str, np.ndarray], equations: dict[str, Rows]
) -> Float[np.ndarray, "last last"] | None:
    """S; None where no function of fewer axes is sought. `data` are Jacobians over deviations."""
    problem = residuals.problem
    if not functions(problem):
        return None
    sizes = own(residuals.parameters.network(jnp.asarray(theta)))
    count, deviations = sum(sizes), []
    for name, parameters in zip(functions(problem), sizes, strict=False):
        values, slopes = _slopes(residuals, theta, count, name, _places(problem, name))
        steep = np.median(np.linalg.norm(slopes, axis=1) / _size(residuals, name, values))
        deviations.append(np.full(parameters, PRIOR / max(float(steep), SMALLEST)))
    deviations.append(np.full(sizes[-1], FLAT))
    follow = triangle.profile(count)
    blocks = [np.diag(1 / np.concatenate(deviations)), *(jacobian @ follow for jacobian in data.values())]
    alone = {*functions(problem), *problem.coefficients}
    for name, rows in equations.items():
        if {unknown for unknown, keys in problem.requests[name].items() if keys} <= alone:
            blocks.append(rows.jacobian[:, -count:])
    root = np.asarray(scipy.linalg.qr(np.concatenate(blocks), mode="r", check_finite=False)[0])[:count]
    return scipy.linalg.solve_triangular(root, np.eye(count))


def band(
    residuals: Residuals, theta: np.ndarray, spread: np.ndarray, name: str, points: np.ndarray, freedom: float
) -> Band:
    """A function at points of the domain."""
    values, slopes = _slopes(residuals, theta, len(spread), name, points)
    errors, positive = np.linalg.norm(slopes @ spread, axis=1), is_positive(residuals.problem, name)
    if positive:
        size = values
    else:  # of the whole function
        size = _size(residuals, name, _slopes(residuals, theta, 1, name, _places(residuals.problem, name))[0])[0]
    return Band(values, np.where(errors > WIDE * size, np.inf, errors), positive, freedom)


@x64
def _slopes(
    residuals: Residuals, theta: np.ndarray, count: int, name: str, points: np.ndarray
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, "n last"]]:
    """A function at points, and its gradients by the last parameters."""
    index, wide = residuals.problem.outputs.index(name), jnp.asarray(theta, jnp.float64)

    def one(last, x):
        return residuals.ansatz.network(jnp.concatenate([wide[:-count], last]))(x)[index]

    def both(x):
        value, slope = jax.value_and_grad(one)(wide[-count:], x)
        return jnp.append(slope, value)

    rows = in_rows(jax.jit(jax.vmap(both)), points)
    return rows[:, -1], rows[:, :-1]


def _size(residuals: Residuals, name: str, values: np.ndarray) -> Float[np.ndarray, " n"]:
    """The size of a function: its values where it is positive, else their root mean square, or its scale if that is more."""
    if is_positive(residuals.problem, name):
        return values
    scales, index = residuals.ansatz.scales, residuals.problem.outputs.index(name)
    least = SMALLEST if scales is None else scales.unknowns[index]
    return np.full(values.shape, max(float(np.sqrt(np.mean(values**2))), least))


def accounts(residuals: Residuals, theta: np.ndarray, spread: np.ndarray) -> dict[str, Account]:
    """How well every function is determined."""
    return {name: _account(residuals, theta, spread, name) for name in functions(residuals.problem)}


def _account(residuals: Residuals, theta: np.ndarray, spread: np.ndarray, name: str) -> Account:
    problem, points = residuals.problem, _places(residuals.problem, name)
    found = band(residuals, theta, spread, name, points, np.inf)
    known = found.determined
    if not known.any():
        return Account(None, None, 1.0)
    errors = (found.standard_error / _size(residuals, name, found.found))[known]
    axes, share = axes_of(problem, name), 1 - float(np.mean(known))
    where = "" if len(axes) != 1 else _stretches(axes[0], points[:, problem.domain.index(axes[0])], ~known)
    return Account(float(np.median(errors)), float(np.max(errors)), share, where)


def _places(problem: Problem, name: str) -> Float[np.ndarray, "n d"]:
    """Points all over the axes of a function: evenly along one axis, at random in more."""
    domain, axes = problem.domain, axes_of(problem, name)
    if len(axes) != 1:
        return sample(Interior(), domain, PLACES, stream(0, "bands"))
    points = np.tile([(a + b) / 2 for a, b in domain.bounds], (PLACES, 1))
    points[:, domain.index(axes[0])] = np.linspace(*domain.interval(axes[0]), PLACES)
    return points


def _stretches(axis: str, x: np.ndarray, lost: np.ndarray) -> str:
    """Where something is lost: "x from 0.8 to 1"."""
    steps = np.diff(np.concatenate([[0], lost.astype(int), [0]]))
    pairs = zip(np.flatnonzero(steps == 1), np.flatnonzero(steps == -1) - 1, strict=True)
    parts = [f"{x[a]:.3g} to {x[b]:.3g}" for a, b in pairs]
    return f"{axis} from {', '.join(parts)}" if parts else ""
