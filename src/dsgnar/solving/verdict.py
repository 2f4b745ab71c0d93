"""Is it solved? Each condition's residual against the size of its own terms.

For condition m, with the residual F_m, the derivatives v_i of the unknowns that it asks for, and V_i the root mean square of
v_i over the domain,

    T_m = rms F_m(0) + sum_i rms(dF_m/dv_i) V_i,        q_m = rms F_m / T_m,

at points that took no part in training. T_m is the size of the condition's terms: V_i and not v_i, since u = 0 on a boundary
has no other. A residual of the size of its terms (q near 1) means that the equation does not hold at all, whatever the loss
says. In a time march T_m is the largest so far: what has decayed need not be exact to its last digits. Where a condition is
the Laplacian alone, lap(u) = 0, its terms are the second derivatives.

    solved   all q_m <= SOLVED
    failed   some q_m > FAILED
    partly   between: a solution to look at with care

Of data it is the misfit beyond their noise that counts (`fit.py`).

That a run has stopped (`StopReason`) says nothing about this. Nor is q an error: an equation that amplifies its residuals
has a larger one.
"""

import enum
from collections.abc import Iterable
from functools import cached_property, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dsgnar.calculus.jets import LAPLACIAN, MultiIndex, Truncation
from dsgnar.optimise.residuals import PointSets, Residuals
from dsgnar.problem.fields import Requests, evaluate
from dsgnar.problem.scales import of_derivatives
from dsgnar.solving.evaluation import in_rows
from dsgnar.solving.fit import excess
from dsgnar.solving.tangents import Tangents

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


class Judged(NamedTuple):
    """A condition at a solution: its residual and the size of its terms, root mean squares."""

    residual: float
    terms: float

    def relative(self, before: float = 0.0) -> float:
        """q, with terms at least as large as they were before."""
        size = max(self.terms, before)
        return self.residual / size if size > 0 else float(self.residual > 0)


class Judge:
    """Residuals over the size of their terms, for the problem and network of a run."""

    def __init__(self, residuals: Residuals):
        self.residuals, problem = residuals, residuals.problem
        asked: dict[str, set] = {name: {(0,) * problem.domain.dimension} for name in problem.outputs}
        for requests in problem.requests.values():
            for name, keys in requests.items():
                asked[name] |= keys
        self.bare = {name for name, requests in problem.requests.items() if _bare(requests)}
        for unknown in {u for name in self.bare for u, keys in problem.requests[name].items() if keys}:
            asked[unknown] |= set(self._seconds)
        self.requests = {name: frozenset(keys) for name, keys in asked.items()}
        self.keys = [(name, key) for name, keys in self.requests.items() for key in sorted(keys, key=str)]
        self._network = jax.jit(jax.vmap(self._derivatives, (None, 0)))
        self._values = {name: jax.jit(jax.vmap(partial(self._value, name))) for name in problem.conditions}
        self._slopes = {name: jax.jit(jax.vmap(jax.grad(partial(self._value, name)))) for name in problem.conditions}

    def __call__(self, theta: np.ndarray, points: PointSets, inside: np.ndarray) -> tuple["Judged", ...]:
        """Every condition at points as residuals want them; `inside` are points all over the domain."""
        typical, out = self.typical(theta, inside), []
        for name, x in points.items():
            measured = self.residuals.problem.conditions[name].measured
            weights = self.residuals.ansatz.precision(jnp.asarray(x.T))  # of given points
            value, nothing, slopes = self.linearised(name, theta, x[:SAMPLE] if weights is None else x)
            value = value if weights is None else weights * value
            if measured is not None:
                misfit = excess(measured, float(_rms(value)), int(np.count_nonzero(np.asarray(weights))))
                out.append(Judged(misfit, measured.size + float(_rms(slopes) @ typical)))
                continue
            out.append(Judged(float(_rms(value)), self.terms(name, nothing, slopes, typical)))
        return tuple(out)

    def terms(self, name: str, nothing: np.ndarray, slopes: np.ndarray, typical: np.ndarray) -> float:
        """T_m, from F_m(0), dF_m/dv_i and V_i."""
        size = _rms(nothing)
        if name in self.bare and not size > 0:
            typical = typical.copy()
            for u in (u for u, keys in self.residuals.problem.requests[name].items() if keys):
                parts = [typical[self.keys.index((u, key))] for key in self._seconds]
                typical[self.keys.index((u, LAPLACIAN))] = sum(parts)
        return float(size + _rms(slopes) @ typical)

    @cached_property
    def tangents(self) -> Tangents:
        """How the derivatives change with the parameters."""
        return Tangents(self.residuals, self.keys)

    @property
    def _seconds(self) -> list[MultiIndex]:
        """The second derivatives that make up a Laplacian."""
        domain = self.residuals.problem.domain
        return [Truncation.unit(domain.dimension, domain.index(axis), 2) for axis in domain.space]

    def typical(self, theta: np.ndarray, inside: np.ndarray) -> np.ndarray:
        """V_i, in the order of `keys`."""
        return _rms(self.derivatives(theta, inside))

    def derivatives(self, theta: np.ndarray, points: np.ndarray) -> np.ndarray:
        """v at points.

        In float64: parameters found in single precision are judged without the rounding of single.
        """
        wide = jnp.asarray(theta, jnp.float64)
        return in_rows(partial(self._network, wide), points)

    def linearised(self, name: str, theta: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """F_m, F_m(0) and dF_m/dv_i at points."""
        values = self.derivatives(theta, points)
        value, nothing = (self.at(name, points, v) for v in (values, np.zeros_like(values)))
        x = points[:, : self.residuals.problem.domain.dimension]
        slopes = in_rows(self._slopes[name], values, x)
        target = self.residuals.ansatz.target(jnp.asarray(points.T))
        if target is not None:
            value = value - self.residuals.ansatz.size(name) * np.asarray(target)
        return value, nothing, slopes

    def at(self, name: str, points: np.ndarray, values: np.ndarray) -> np.ndarray:
        """F_m at points where the derivatives have the given values."""
        return in_rows(self._values[name], values, points[:, : self.residuals.problem.domain.dimension])

    def _derivatives(self, theta: jax.Array, x: jax.Array) -> jax.Array:
        residuals, problem = self.residuals, self.residuals.problem
        ansatz = residuals.ansatz
        network, point = ansatz.network(theta, ansatz.place(x)), ansatz.coordinates(x)
        fields = evaluate(network, point, problem.outputs, self.requests, problem.domain, residuals.mode)
        return jnp.stack([jnp.asarray(fields[name]._lookup(key)) for name, key in self.keys])

    def _value(self, name: str, values: jax.Array, x: jax.Array) -> jax.Array:
        return of_derivatives(self.residuals.problem, name, self.keys, x, values)


def _bare(requests: Requests) -> bool:
    """Whether a condition asks for Laplacians alone."""
    return set().union(*requests.values()) == {LAPLACIAN}


def _rms(values) -> np.ndarray:
    """Over points; what is not finite counts as nothing."""
    clean = np.nan_to_num(np.asarray(values, np.float64), posinf=0.0, neginf=0.0)
    return np.sqrt(np.mean(clean**2, axis=0))
