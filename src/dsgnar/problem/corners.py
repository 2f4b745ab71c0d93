"""How an unknown begins at the walls of a box: what a statement says about the corners of space and time.

Found from the residuals alone. With u0 the initial values, F the equation and B the condition at a wall, their slopes along
functions that vanish at the corner to some order are the coefficients that matter: along d^2/2 and tau those of u_xx and u_t
in F, along d and 1 those of u_d and u in B.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dsgnar.calculus.jets import LAPLACIAN, Key
from dsgnar.problem.domain import Boundary, Box, Initial, Interior
from dsgnar.problem.problem import Problem

SAME = 1e-3  # by which a diffusivity may vary along a wall, or with a jump

Point = Float[Array, " d"]


@dataclass(frozen=True)
class Stated:
    """What is stated at a wall: the equation of an unknown, and the one condition for it there."""

    equation: str
    condition: str
    values: bool  # whether the condition gives values, not slopes


@dataclass(frozen=True)
class Wall(Stated):
    """A face of a box with what is stated there."""

    axis: int
    place: float
    inward: float  # 1 at a lower face, -1 at an upper one


@dataclass(frozen=True, eq=False)
class Start:
    """An unknown at the first instant."""

    problem: Problem
    unknown: str

    @property
    def domain(self) -> Box:
        return self.problem.domain

    @cached_property
    def time(self) -> int:
        return self.domain.index(str(self.domain.time))

    @cached_property
    def unit(self) -> Float[np.ndarray, " unknowns"]:
        return np.array([float(name == self.unknown) for name in self.problem.unknowns])

    # --- what is stated -----------------------------------------------------------------------------------------------

    def stated(self, condition: str | None, axes: Sequence[int]) -> Stated | None:
        """What is stated by a condition at a wall towards which the unknown diffuses along axes."""
        equation = self.equation
        if condition is None or equation is None or any(name is None for name in self.starts.values()):
            return None  # or nothing says how it begins
        if not all(diffuses_alone(self.problem, self.unknown, equation, i) for i in axes):
            return None
        keys = self.problem.requests[condition][self.unknown]
        if any(order(key) > 1 or along(key, self.time, self.time) for key in keys):
            return None
        return Stated(equation, condition, not any(map(order, keys)))

    @cached_property
    def starts(self) -> dict[str, str | None]:
        """The conditions with initial values of the unknowns in the equation."""
        unknowns = () if self.equation is None else involved(self.problem, self.equation)
        return {unknown: given_first(self.problem, unknown) for unknown in unknowns}

    @cached_property
    def equation(self) -> str | None:
        """The interior condition with the first derivative in time of the unknown, if there is just one."""
        found = set()
        for name, condition in self.problem.conditions.items():
            if isinstance(condition.part, Interior):
                for key in self.problem.requests[name].get(self.unknown, ()):
                    if along(key, self.time, self.time) > 1 or order(key) > 2:
                        return None
                    if along(key, self.time, self.time):
                        found.add(name)
        return found.pop() if len(found) == 1 else None

    # --- what it begins with ------------------------------------------------------------------------------------------

    def initial(self, x: Point) -> Float[Array, " unknowns"]:
        """Values at the first instant, whatever the time of x."""
        names = [self.starts.get(unknown) for unknown in self.problem.unknowns]
        return jnp.stack([jnp.zeros(()) if n is None else first_value(self.problem, n, k, x) for k, n in enumerate(names)])

    def jump(self, condition: str, x: Point) -> Array:
        """Given less initial values at a point of a wall."""
        j = self.problem.unknowns.index(self.unknown)
        return self.given(condition, x) - self.initial(x)[j]

    def given(self, condition: str, x: Point) -> Array:
        """What a condition on values says that the unknown is."""
        return root(partial(_constant, self.problem, condition, x, self.problem.unknowns.index(self.unknown)))

    def numbers(self, wall: Stated, x: Point, distance: Callable[[Point], Array]) -> Float[Array, " 9"]:
        """D, b and c of u_tau = D u_dd + b u_d + c u, the same after a jump, q, k and the next number (`layers.py`).

        At a point of a wall, by the distance to it.
        """
        before = self.coefficients(wall, x, distance, jnp.zeros(()))
        if not wall.values:
            return jnp.concatenate([before, before, self._of_slope(wall, x, distance, before[0])])
        j = self.problem.unknowns.index(self.unknown)
        given = lambda t: root(partial(_constant, self.problem, wall.condition, at(x, self.time, t), j))
        after = self.coefficients(wall, x, distance, self.jump(wall.condition, x))
        ramp = (jax.grad(given)(x[self.time]) - self._rate(wall, x)) / before[0]
        return jnp.concatenate([before, after, jnp.stack([jnp.zeros(()), jnp.zeros(()), ramp])])

    def _rate(self, wall: Stated, x: Point) -> Array:
        """The change of the initial values in time by the equation."""
        return root(self.having(wall.equation, at(x, self.time, self.domain.bounds[self.time][0]), self.since))

    def _of_slope(self, wall: Stated, x: Point, distance: Callable, D: Array) -> Float[Array, " 3"]:
        """q, k and the next number where a condition is on the slope."""
        slope = jax.grad(self.having(wall.condition, x, distance))(0.0)
        with_value = self.having(wall.condition, x, lambda z: jnp.ones(()))
        value, curvature = jax.grad(with_value)(0.0), jax.grad(jax.grad(with_value))(0.0)

        def flux(t):
            """q along the initial values as they begin to change."""
            later = lambda z: self.initial(z) + self._rate(wall, z) * self.since(z) * self.unit
            return self.problem.residual(wall.condition, later, at(x, self.time, t), "nested") / slope

        q, changes = jax.value_and_grad(flux)(x[self.time])
        return jnp.stack([q, -value / slope, changes / D + 2 / math.pi * q * q * curvature / slope])

    def having(self, name: str, x: Point, more: Callable[[Point], Array]) -> Callable[[Array], Array]:
        """The residual for the initial values and a multiple of something more of this unknown."""
        return lambda a: self.problem.residual(name, lambda z: self.initial(z) + a * more(z) * self.unit, x, "nested")

    def since(self, x: Point) -> Array:
        """The time since the first instant."""
        return x[self.time] - self.domain.bounds[self.time][0]

    def coefficients(self, wall: Stated, x: Point, distance: Callable, jump: Array) -> Float[Array, " 3"]:
        """D, b and c: the slopes of F along d^2/2, d and 1 over that along tau, with the unknown changed by a jump."""
        since = lambda z: z[self.time] - jax.lax.stop_gradient(x[self.time])

        def along(more):
            changed = lambda a: self.having(wall.equation, x, lambda z: jump + a * more(z))(jnp.ones(()))
            return jax.grad(changed)(0.0)

        parts = lambda z: distance(z) ** 2 / 2, distance, lambda z: jnp.ones(())
        return -jnp.stack([along(part) for part in parts]) / along(since)


def given_first(problem: Problem, unknown: str) -> str | None:
    """The condition with initial values of an unknown, if there is just one and it is about nothing else."""
    found = [name for name, condition in problem.conditions.items() if isinstance(condition.part, Initial)]
    found = [name for name in found if problem.requests[name].get(unknown)]
    alone = len(found) == 1 and involved(problem, found[0]) == {unknown}
    return found[0] if alone and not any(map(order, problem.requests[found[0]][unknown])) else None


def first_value(problem: Problem, condition: str, k: int, x: Point) -> Array:
    """The value of the k-th unknown at the first instant by its condition, whatever the time of x."""
    time = problem.domain.index(str(problem.domain.time))
    return root(partial(_constant, problem, condition, at(x, time, problem.domain.bounds[time][0]), k))


def _constant(problem: Problem, name: str, x: Point, k: int, value: Array) -> Array:
    """The residual of a condition on values, if the k-th unknown has this value."""
    return problem.residual(name, lambda z: jnp.where(jnp.arange(len(problem.unknowns)) == k, value, 0.0), x, "nested")


def walls(start: Start) -> Iterator[Wall]:
    """Walls towards which the unknown diffuses, with a condition about it alone."""
    domain, problem = start.domain, start.problem
    for axis, side in domain.faces:
        condition, i = condition_at(problem, start.unknown, (axis, side)), domain.index(axis)
        stated = None if axis in problem.periodic else start.stated(condition, (i,))
        if stated is not None:
            place, inward = (domain.bounds[i][0], 1.0) if side == "lower" else (domain.bounds[i][1], -1.0)
            yield Wall(stated.equation, stated.condition, stated.values, i, place, inward)


def involved(problem: Problem, name: str) -> set[str]:
    """The unknowns of a condition."""
    return {unknown for unknown, keys in problem.requests[name].items() if keys}


def order(key: Key) -> int:
    """The order of a derivative."""
    return 2 if key == LAPLACIAN else sum(map(int, key))


def along(key: Key, i: int, time: int | None) -> int:
    """The order of a derivative along an axis; a Laplacian has those of space."""
    return 2 * (i != time) if key == LAPLACIAN else int(key[i])


def condition_at(problem: Problem, unknown: str, face: tuple[str, str]) -> str | None:
    """The condition at a wall, if there is just one and it is about the unknown alone."""
    found = []
    for name, condition in problem.conditions.items():
        part = condition.part
        if isinstance(part, Boundary) and unknown in involved(problem, name) and face in part.resolve(problem.domain):
            found.append((name, part.where))
    alone = len(found) == 1 and involved(problem, found[0][0]) == {unknown}
    return found[0][0] if alone and found[0][1] is None else None


def diffuses_alone(problem: Problem, unknown: str, equation: str, i: int) -> bool:
    """Whether the unknown has a second derivative along an axis in its equation and in no other, and others have none."""
    time = None if problem.domain.time is None else problem.domain.index(problem.domain.time)
    for name, condition in problem.conditions.items():
        if isinstance(condition.part, Interior):
            seconds = {u for u, keys in problem.requests[name].items() if any(along(k, i, time) == 2 for k in keys)}
            if seconds != {unknown} if name == equation else unknown in seconds:
                return False
    return True


def at(x: Point, i: int, value) -> Point:
    """The point with another coordinate."""
    return jnp.where(jnp.arange(x.size) == i, value, x)


def root(function: Callable[[Array], Array]) -> Array:
    """Where an affine function of a number vanishes."""
    value, slope = jax.value_and_grad(function)(jnp.zeros(()))
    return -value / slope
