"""How large do the unknowns become? An initial value problem in one variable, integrated roughly beforehand.

Data say how large a solution is at first. An epidemic that begins with a hundred people ends with millions; a network that
was scaled for a hundred finds it in seventy time intervals, and in seven if it knows. So the equations, solved for their
highest derivatives h,

    F(t, y, h) = 0,     y = (u, u', ..) below them,     I(y(t0)) = 0,

are integrated by a method that adapts its steps (LSODA). Only the root mean squares of the unknowns are kept. Nothing is
known where there is no such problem: other conditions than initial ones, fewer equations than unknowns, equations that do
not determine the highest derivatives, or a solution that ends before its time.
"""

import warnings
from collections.abc import Callable

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


@x64
def forecast(problem: Problem, scales: Scales) -> tuple[float, ...] | None:
    """The root mean square of every unknown; None where it cannot be foreseen."""
    plain = not (problem.inverse or problem.hard or problem.known)
    parts = [condition.part for condition in problem.conditions.values()]
    if not plain or problem.domain.axes != (problem.domain.time,):
        return None
    if not all(isinstance(part, Interior | Initial) for part in parts):
        return None
    equations, starts = (
        [name for name, c in problem.conditions.items() if isinstance(c.part, kind)] for kind in (Interior, Initial)
    )
    orders = [_order(problem, unknown) for unknown in problem.unknowns]
    if not all(orders) or len(equations) != len(orders) or len(starts) != sum(orders):
        return None
    system = _System(problem, orders, equations, starts)
    values = system.integrate(np.repeat(scales.unknowns, orders))
    if values is None:
        return None
    sizes = np.sqrt(np.mean(values**2, axis=1))
    return tuple(map(float, sizes)) if np.isfinite(sizes).all() else None


def _order(problem: Problem, unknown: str) -> int:
    """The highest derivative of an unknown."""
    return max((int(key[0]) for asked in problem.requests.values() for key in asked.get(unknown, ())), default=0)


class _System:
    """y' as a function of t and y."""

    def __init__(self, problem: Problem, orders: list[int], equations: list[str], starts: list[str]):
        self.times = problem.domain.bounds[0]
        below = [(u, (j,)) for u, order in zip(problem.unknowns, orders, strict=True) for j in range(order)]
        highest = [(u, (order,)) for u, order in zip(problem.unknowns, orders, strict=True)]
        keys = below + highest
        self.first = np.cumsum([0, *orders[:-1]])  # where each unknown stands in y
        last = self.first + np.array(orders) - 1

        def residuals(names: list[str], t, y, h) -> Array:
            values, x = jnp.concatenate([y, h]), jnp.asarray([t])
            return jnp.stack([of_derivatives(problem, name, keys, x, values) for name in names])

        def rate(t, y) -> Float[Array, " y"]:
            h = _root(lambda h: residuals(equations, t, y, h), jnp.zeros(len(highest)))
            return jnp.concatenate([y[1:], jnp.zeros(1)]).at[last].set(h)  # each derivative is the rate of the one below

        self._rate = jax.jit(rate)
        nothing = jnp.zeros(len(highest))
        self._start = lambda: _root(lambda y: residuals(starts, self.times[0], y, nothing), jnp.zeros(len(below)))

    def integrate(self, sizes: np.ndarray) -> Float[np.ndarray, "unknowns times"] | None:
        """The unknowns at even times; None where they could not be followed to the end."""
        count = 0

        def rate(t, y):
            nonlocal count
            count += 1
            if count > EVALUATIONS:
                raise _TooLong
            return np.asarray(self._rate(t, y))

        begin = np.asarray(self._start())
        if not np.isfinite(begin).all() or not np.isfinite(rate(self.times[0], begin)).all():
            return None
        size = np.maximum(np.abs(begin), sizes)
        times = np.linspace(*self.times, SAMPLE)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found = solve_ivp(
                    rate, self.times, begin, "LSODA", times, rtol=ACCURACY, atol=ACCURACY**2 * size
                )
            except _TooLong:
                return None
        return found.y[self.first] if found.success and found.y.shape[1] == SAMPLE else None


def _root(function: Callable, first: Array) -> Array:
    """Where a function vanishes, by a few steps of Newton's method."""
    value = first
    for _ in range(NEWTON):
        value = value - jnp.linalg.solve(jax.jacfwd(function)(value), function(value))
    return value
