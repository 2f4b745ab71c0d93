"""Is it solved? Each condition's residual against the size of its own terms.

For condition m, with the residual F_m, the derivatives v_i of the unknowns that it asks for, and V_i the root mean square of
v_i over the domain,

    T_m = rms F_m(0) + sum_i rms(dF_m/dv_i) V_i,        q_m = rms F_m / T_m,

at points that took no part in training. T_m is the size of the condition's terms: V_i and not v_i, since u = 0 on a boundary
has no other. A residual of the size of its terms (q near 1) means that the equation does not hold at all, whatever the loss
says.

    solved   all q_m <= SOLVED
    failed   some q_m > FAILED
    partly   between: a solution to look at with care

That a run has stopped (`StopReason`) says nothing about this. Nor is q an error: an equation that amplifies its residuals
has a larger one.
"""

import enum
from collections.abc import Iterable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from dsgnar.optimise.residuals import PointSets, Residuals
from dsgnar.problem.fields import evaluate
from dsgnar.problem.scales import of_derivatives

SOLVED, FAILED = 1e-4, 1e-2
SAMPLE = 256  # points of each condition


class Verdict(enum.Enum):
    """Whether a problem is solved: a word for programs, a sentence for people."""

    SOLVED = ("solved", "all conditions hold")
    PARTLY = ("partly", "some conditions hold only roughly")
    FAILED = ("failed", "some conditions do not hold")

    def __init__(self, code: str, sentence: str):
        self.code, self.sentence = code, sentence

    @classmethod
    def of(cls, code: str) -> "Verdict":
        """The verdict with a code."""
        return next(verdict for verdict in cls if verdict.code == code)


def judge(relative: Iterable[float]) -> Verdict:
    """The verdict on residuals over their terms."""
    worst = max(relative)
    if not worst <= FAILED:
        return Verdict.FAILED
    return Verdict.SOLVED if worst <= SOLVED else Verdict.PARTLY


class Judge:
    """Residuals over the size of their terms, for the problem and network of a run."""

    def __init__(self, residuals: Residuals):
        self.residuals, problem = residuals, residuals.problem
        asked: dict[str, set] = {name: set() for name in problem.unknowns}
        for requests in problem.requests.values():
            for name, keys in requests.items():
                asked[name] |= keys
        self.requests = {name: frozenset(keys) for name, keys in asked.items()}
        self.keys = [(name, key) for name, keys in self.requests.items() for key in sorted(keys, key=str)]
        self._typical = jax.jit(jax.vmap(self._derivatives, (None, 0)))
        self._kernels = {name: jax.jit(jax.vmap(partial(self._one, name), (None, 0))) for name in problem.conditions}

    def __call__(self, theta: np.ndarray, points: PointSets, inside: np.ndarray) -> tuple[float, ...]:
        """q_m of every condition at points as residuals want them; `inside` are points all over the domain."""
        at = jnp.asarray(theta)
        typical = _rms(self._typical(at, jnp.asarray(inside, theta.dtype)))
        out = []
        for name, x in points.items():
            value, nothing, slopes = self._kernels[name](at, jnp.asarray(x[:SAMPLE], theta.dtype))
            size = _rms(nothing) + float(_rms(slopes) @ typical)
            out.append(float(_rms(value) / size) if size > 0 else float(_rms(value) > 0))
        return tuple(out)

    def _derivatives(self, theta: jax.Array, x: jax.Array) -> jax.Array:
        residuals, problem = self.residuals, self.residuals.problem
        ansatz = residuals.ansatz
        network, point = ansatz.network(theta, ansatz.place(x)), ansatz.coordinates(x)
        fields = evaluate(network, point, problem.unknowns, self.requests, problem.domain, residuals.mode)
        return jnp.stack([jnp.asarray(fields[name]._lookup(key)) for name, key in self.keys])

    def _one(self, name: str, theta: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        residuals, problem = self.residuals, self.residuals.problem
        value = residuals.ansatz.size(name) * residuals.at_point(name, theta, x).astype(jnp.float64)
        values = self._derivatives(theta, x).astype(jnp.float64)
        point = residuals.ansatz.coordinates(x).astype(jnp.float64)
        residual = partial(of_derivatives, problem, name, self.keys, point)
        return value, residual(jnp.zeros_like(values)), jax.grad(residual)(values)


def _rms(values) -> np.ndarray:
    """Over points; what is not finite counts as nothing."""
    clean = np.nan_to_num(np.asarray(values, np.float64), posinf=0.0, neginf=0.0)
    return np.sqrt(np.mean(clean**2, axis=0))
