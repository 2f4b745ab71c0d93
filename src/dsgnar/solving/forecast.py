"""An initial value problem in one variable, integrated roughly beforehand.

Data say how large a solution is at first. An epidemic that begins with a hundred people ends with millions; a network that
was scaled for a hundred finds it in seventy time intervals, and in seven if it knows. So the equations, solved for their
highest derivatives h,

    F(t, y, h) = 0,     y = (u, u', ..) below them,     I(y(t0)) = 0,

are integrated by a method that adapts its steps (LSODA). What is taken from that are sizes and how fast the solution varies
(`beginning.py`), never its values. Nothing is known where there is no such problem: other conditions than initial ones,
fewer equations than unknowns, equations that do not determine the highest derivatives, or a solution that ends before its
time.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.integrate import solve_ivp

from dsgnar.calculus.precision import x64
from dsgnar.problem import Problem
from dsgnar.problem.domain import Initial, Interior
from dsgnar.problem.scales import Scales, of_derivatives

NEWTON = 4  # steps; one does where equations are linear in their highest derivatives
ACCURACY = 1e-5  # relative, and of the sizes that data give
EVALUATIONS = 20_000  # of the right-hand side, at most: a second or two
SAMPLE = 400  # times


class _TooLong(Exception):
    pass


def forecast(problem: Problem, scales: Scales) -> tuple[float, ...] | None:
    """The root mean square of every unknown; None where it cannot be foreseen."""
    rough = roughly(problem, scales)
    if rough is None:
        return None
    sizes = np.sqrt(np.mean(rough(np.linspace(*problem.domain.bounds[0], SAMPLE))[rough.system.first] ** 2, axis=1))
    return tuple(map(float, sizes)) if np.isfinite(sizes).all() else None


def orders(problem: Problem, scales: Scales | None) -> tuple[int, ...]:
    """The order of every unknown where a known beginning is built into the solution (`beginning.py`); nothing elsewhere."""
    system = None if scales is None else System.of(problem)
    return () if system is None or system.start is None else system.orders


@lru_cache(maxsize=8)
def roughly(problem: Problem, scales: Scales) -> "Rough | None":
    """A problem integrated roughly; None where that is not possible."""
    system = System.of(problem)
    return None if system is None else system.integrate(np.repeat(scales.unknowns, system.orders))


@dataclass(frozen=True, eq=False)
class Rough:
    """y as a function of time, good to a few digits."""

    system: "System"
    dense: Callable
    steps: Float[np.ndarray, " steps"]  # the times between which it varies little

    def __call__(self, times: Float[np.ndarray, " n"]) -> Float[np.ndarray, "y n"]:
        return self.dense(times)


def _order(problem: Problem, unknown: str) -> int:
    """The highest derivative of an unknown."""
    return max((int(key[0]) for asked in problem.requests.values() for key in asked.get(unknown, ())), default=0)


class System:
    """y' as a function of t and y."""

    @classmethod
    def of(cls, problem: Problem) -> "System | None":
        """That of an initial value problem in one variable; None for others."""
        plain = not (problem.inverse or problem.hard or problem.known)
        parts = [condition.part for condition in problem.conditions.values()]
        if not plain or problem.domain.axes != (problem.domain.time,):
            return None
        if not all(isinstance(part, Interior | Initial) for part in parts):
            return None
        if any(condition.measured is not None for condition in problem.conditions.values()):
            return None
        equations, starts = (
            [name for name, c in problem.conditions.items() if isinstance(c.part, kind)] for kind in (Interior, Initial)
        )
        orders = tuple(_order(problem, unknown) for unknown in problem.unknowns)
        if not all(orders) or len(equations) != len(orders) or len(starts) != sum(orders):
            return None
        return _system(problem, orders, tuple(equations), tuple(starts))

    def __init__(self, problem: Problem, orders: tuple[int, ...], equations: tuple[str, ...], starts: tuple[str, ...]):
        self.times, self.orders = problem.domain.bounds[0], orders
        below = [(u, (j,)) for u, order in zip(problem.unknowns, orders, strict=True) for j in range(order)]
        highest = [(u, (order,)) for u, order in zip(problem.unknowns, orders, strict=True)]
        keys = below + highest
        self.first = np.cumsum([0, *orders[:-1]])  # where each unknown stands in y
        last = self.first + np.array(orders) - 1

        def residuals(names: tuple[str, ...], t, y, h) -> Array:
            values, x = jnp.concatenate([y, h]), jnp.asarray([t])
            return jnp.stack([of_derivatives(problem, name, keys, x, values) for name in names])

        def highest_at(t, y) -> Float[Array, " unknowns"]:
            return _root(lambda h: residuals(equations, t, y, h), jnp.zeros(len(highest)))

        def rate(t, y) -> Float[Array, " y"]:
            h = highest_at(t, y)
            return jnp.concatenate([y[1:], jnp.zeros(1)]).at[last].set(h)  # each derivative is the rate of the one below

        def terms(t, y) -> Float[Array, " equations"]:
            """Sizes of the terms of every equation."""
            values, x = jnp.concatenate([y, highest_at(t, y)]), jnp.asarray([t])
            out = []
            for one in (partial(of_derivatives, problem, name, keys, x) for name in equations):
                out.append(jnp.abs(one(0 * values)) + jnp.sum(jnp.abs(values * jax.grad(one)(values))))
            return jnp.stack(out)

        self._rate, self._highest, self._terms = jax.jit(rate), jax.jit(highest_at), jax.jit(jax.vmap(terms))
        nothing = jnp.zeros(len(highest))
        self._start = lambda: _root(lambda y: residuals(starts, self.times[0], y, nothing), jnp.zeros(len(below)))

    @cached_property
    @x64
    def start(self) -> Float[np.ndarray, " y"] | None:
        """y at the first time; None where initial conditions do not determine it."""
        found = np.asarray(self._start())
        return found if np.isfinite(found).all() else None

    @x64
    def terms(self, times: Float[np.ndarray, " n"], y: Float[np.ndarray, "y n"]) -> Float[np.ndarray, "n equations"]:
        """Sizes of the terms of every equation at some times."""
        return np.asarray(self._terms(jnp.asarray(times), jnp.asarray(y.T)))

    @x64
    def integrate(self, sizes: np.ndarray) -> "Rough | None":
        """y at all times; None where it could not be followed to the end."""
        count = 0

        def rate(t, y):
            nonlocal count
            count += 1
            if count > EVALUATIONS:
                raise _TooLong
            return np.asarray(self._rate(t, y))

        begin = self.start
        if begin is None or not np.isfinite(rate(self.times[0], begin)).all():
            return None
        atol = ACCURACY**2 * np.maximum(np.abs(begin), sizes)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found = solve_ivp(rate, self.times, begin, "LSODA", rtol=ACCURACY, atol=atol, dense_output=True)
            except _TooLong:
                return None
        return Rough(self, found.sol, found.t) if found.success else None


@lru_cache(maxsize=8)
def _system(problem: Problem, orders: tuple[int, ...], equations: tuple[str, ...], starts: tuple[str, ...]) -> System:
    return System(problem, orders, equations, starts)


def _root(function: Callable, first: Array) -> Array:
    """Where a function vanishes, by a few steps of Newton's method."""
    value = first
    for _ in range(NEWTON):
        value = value - jnp.linalg.solve(jax.jacfwd(function)(value), function(value))
    return value
