"""Rough solutions: least squares in a linear space, with Newton's method where equations are nonlinear.

    u = sum_k c_k phi_k,     F'(u) e = -F(u),  u <- u + a e,     a = 1, 1/2, ..  until the residual falls,

from zero, or from a smooth fit of the given values, on a box [-1, 1]^d (the spaces of the error estimate,
`calculus/spaces.py`). Over a long time Newton's method may not find a nonlinear solution, and no small space holds it: then
time is taken in slices, each of which begins with what the one before ended with.
"""

import math
from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.linalg import solve_triangular

from dsgnar.calculus.jets import Key
from dsgnar.calculus.spaces import Bent, Polynomials, polynomials
from dsgnar.calculus.streams import stream
from dsgnar.problem import Problem
from dsgnar.problem.domain import Box, Initial, Interior
from dsgnar.problem.jumps import kinks
from dsgnar.problem.sampling import sample
from dsgnar.problem.scales import Scales, of_derivatives
from dsgnar.solving.correction import Correction, Piece, derivative
from dsgnar.solving.march import March

ROWS = 2  # points of all interior conditions together for each function; others have half of it
STEPS = 6  # of Newton's method
SHORTEST = 0.2  # of the steps that are tried
RIDGE = 1e-12
TOLD = 1e-3  # share of all residuals from which on initial values say something of their own
NOT_FINITE = 1e30  # what counts as a residual where there is none
SMOOTH = 1e-3  # by which the first fit prefers low degrees
HELD = 0.02  # share of the residual that may be left; more, and nothing is known
NEAR = 0.1  # and in a slice of the time
STRETCH = 6  # of a space along one axis
SLICES = (16, 6, 500), (32, 18, 1000)  # of the time, the stretch of their spaces along axes of space, functions of each


class Found(NamedTuple):
    """A rough solution, sum_k c_kj phi_k for unknown j."""

    space: Polynomials | Bent
    coefficients: Float[np.ndarray, "size unknowns"]
    left: float  # share of the residual, or of some initial values: these may have more than all of theirs left
    made: bool = False  # whether the space was made for the data


@lru_cache(maxsize=4)
def _kernels(problem: Problem, keys: tuple[tuple[str, Key], ...]) -> tuple[dict[str, Callable], dict[str, Callable]]:
    """Residuals of conditions as functions of derivatives at points, and their slopes."""
    value = lambda name: lambda v, x: of_derivatives(problem, name, list(keys), x, v)
    values = {name: jax.jit(jax.vmap(value(name))) for name in problem.conditions}
    return values, {name: jax.jit(jax.vmap(jax.grad(value(name)))) for name in problem.conditions}


class Rough:
    """A problem at points of a box, for functions of a linear space; `before` is the solution with which its time begins."""

    def __init__(self, problem: Problem, scales: Scales, size: int, box: Box | None = None, before: Piece | None = None):
        domain = self.box = box or problem.domain
        self.problem, self.size = problem, size
        zero, unknowns = (0,) * domain.dimension, problem.unknowns
        asked: dict[str, set] = {name: {zero} for name in unknowns}
        for requests in problem.requests.values():
            for name, keys in requests.items():
                asked[name] |= keys
        self.keys = [(name, key) for name, keys in asked.items() for key in sorted(keys, key=str)]
        self.periodic = tuple(axis in problem.periodic for axis in domain.axes)
        self.kinks = kinks(problem, scales)
        self._values, self._slopes = _kernels(problem, tuple(self.keys))
        self.points, self.weights, self.plain = {}, {}, set()
        inside = sum(isinstance(condition.part, Interior) for condition in problem.conditions.values())
        many = ROWS * size * len(unknowns) // max(1, inside)
        few = ROWS * size * len(unknowns) // (2 * max(1, len(problem.conditions) - inside))
        for (name, condition), terms in zip(problem.conditions.items(), scales.conditions, strict=True):
            count = many if isinstance(condition.part, Interior) else few
            rng = stream(0, "survey", name)
            self.points[name] = sample(condition.part, domain, count, rng, "clustered", periodic=problem.periodic)
            self.weights[name] = 1 / (terms * math.sqrt(len(self.points[name])))
            if all(key == zero for keys in problem.requests[name].values() for key in keys):
                self.plain.add(name)
        self.begin = [name for name, condition in problem.conditions.items() if isinstance(condition.part, Initial)]
        self.handed = {} if before is None else {name: self._handed(name, before) for name in self.begin}

    def polynomials(self, size: int, stretch: tuple[int, ...] = ()) -> Polynomials | Bent:
        """A space of this size, whose functions bend where equations jump.

        Of all of the time that makes fewer of them, and a pulse that is fast in slices looked slow (docs/notes.md).
        """
        return polynomials(size, self.periodic, stretch, self.kinks)

    def solve(self, space: Polynomials | Bent) -> Found:
        """The rough solution in a space."""
        tables = self._tables(space)
        zero = np.zeros((space.size, len(self.problem.unknowns)))
        nothing = np.linalg.norm(self._residual(tables, zero))
        if not 0 < nothing < NOT_FINITE:
            return Found(space, zero, math.nan)  # no residual at all, or one that zero does not have
        c = self._newton(tables, zero)
        left = self._left(tables, c)
        if left > HELD and self.plain:
            near = self._step(tables, zero, self.plain, SMOOTH * (1.0 + space.degrees.sum(axis=1)))
            another = self._newton(tables, near)
            left, c = min((left, c), (self._left(tables, another), another), key=lambda found: found[0])
        return Found(space, c, left)

    def _left(self, tables: dict, c: np.ndarray) -> float:
        """The share of the residual that is left, or of initial values that other conditions would hide, if that is more."""
        size = lambda c, *names: float(np.linalg.norm(self._residual(tables, c, set(names) or None)))
        zero = np.zeros_like(c)
        all_, begin = size(zero), [] if self.handed else [name for name in self.begin if name in self.plain]
        nothing = {name: size(zero, name) for name in begin}
        told = (name for name in begin if nothing[name] > TOLD * all_)
        return max(size(c) / all_, *(size(c, name) / nothing[name] for name in told), 0.0)

    def affine(self, space: Polynomials | Bent) -> bool:
        """Whether the equations are linear: then it is the space that does not hold the solution, not Newton's method."""
        tables = self._tables(space)
        c = stream(0, "survey", "affine").normal(size=(space.size, len(self.problem.unknowns)))
        two, one, zero = (self._residual(tables, k * c) for k in (2, 1, 0))
        return bool(np.linalg.norm(two - 2 * one + zero) < 1e-9 * np.linalg.norm(two - zero))

    def _handed(self, name: str, before: Piece) -> np.ndarray:
        """What a condition is to be at the first instant: its residual for the solution before."""
        x, column = self.points[name], self.problem.unknowns.index
        values = np.stack([before.derivative(x, key)[:, column(unknown)] for unknown, key in self.keys], axis=1)
        return np.asarray(self._values[name](jnp.asarray(values), jnp.asarray(x)))

    def _tables(self, space: Polynomials | Bent) -> dict:
        """Derivatives of all functions at the points of all conditions, those that a condition asks for."""
        asked = {name: {key for keys in self.problem.requests[name].values() for key in keys} for name in self.points}
        make = partial(derivative, space, self.box)
        return {name: {key: make(points, key) for key in asked[name]} for name, points in self.points.items()}

    def _newton(self, tables: dict, c: np.ndarray) -> np.ndarray:
        """Coefficients of a rough solution."""
        ridge = np.full(len(c), RIDGE)
        now = first = float(np.linalg.norm(self._residual(tables, c)))
        for _ in range(STEPS):
            e, a = self._step(tables, c, set(self.points), ridge), 1.0
            after = float(np.linalg.norm(self._residual(tables, c + e)))
            while not after < (1 - 0.1 * a) * now and a > SHORTEST:
                a /= 2
                after = float(np.linalg.norm(self._residual(tables, c + a * e)))
            if not after < now:
                break
            c, before, now = c + a * e, now, after
            if now < 1e-6 * first or (a == 1 and now > 0.7 * before):
                break
        return c

    def _at(self, tables: dict, c: np.ndarray, name: str) -> np.ndarray:
        """The derivatives that conditions ask for, at the points of one of them; zero where this one does not."""
        column, table, nothing = self.problem.unknowns.index, tables[name], np.zeros(len(self.points[name]))
        values = [table[key] @ c[:, column(unknown)] if key in table else nothing for unknown, key in self.keys]
        return np.stack(values, axis=1)

    def _residual(self, tables: dict, c: np.ndarray, names: set[str] | None = None) -> np.ndarray:
        """All residuals over the size of their conditions; what is not finite is very large."""
        out = []
        for name, x in self.points.items():
            if names is None or name in names:
                value = self._values[name](jnp.asarray(self._at(tables, c, name)), jnp.asarray(x))
                out.append((np.asarray(value) - self.handed.get(name, 0.0)) * self.weights[name])
        return _finite(np.concatenate(out), NOT_FINITE)

    def _step(self, tables: dict, c: np.ndarray, names: set[str], ridge: np.ndarray) -> np.ndarray:
        """e of F'(u) e = -F(u) for some of the conditions."""
        blocks, unknowns = [], self.problem.unknowns
        for name, x in self.points.items():
            if name in names:
                slopes = _finite(self._slopes[name](jnp.asarray(self._at(tables, c, name)), jnp.asarray(x)), 0.0)
                block = np.zeros((len(x), *c.shape))
                for i, (unknown, key) in enumerate(self.keys):
                    if key in tables[name] and np.any(slopes[:, i]):
                        block[:, :, unknowns.index(unknown)] += slopes[:, i, None] * tables[name][key]
                blocks.append(self.weights[name] * block.reshape(len(x), -1))
        matrix = np.concatenate(blocks)
        scale = np.linalg.norm(matrix, axis=0)
        scale[scale == 0] = 1.0
        right = np.concatenate([-self._residual(tables, c, names), np.zeros(c.size)])
        system = np.concatenate([matrix / scale, np.diag(np.repeat(ridge, c.shape[1]))])
        R = np.asarray(np.linalg.qr(np.column_stack([system, right]), mode="r"))
        e = solve_triangular(R[:-1, :-1], R[:-1, -1], check_finite=False) / scale
        return np.nan_to_num(e.reshape(c.shape))


def _finite(values, instead: float) -> np.ndarray:
    """Values whose squares can be added up; what is no number is another one instead."""
    return np.clip(np.nan_to_num(np.asarray(values), nan=instead), -NOT_FINITE, NOT_FINITE)


def in_slices(
    problem: Problem, scales: Scales, thorough: bool = True, share: float = 1.0
) -> tuple[Correction, float] | None:
    """A rough solution by slices of time, and the most of the residual that is left in one; None where one fails.

    Unless it is sought thoroughly, in few slices only: those of a sharp front fail late, and take half a minute. With a
    `share`, only the first of them.
    """
    for count, wider, functions in SLICES if thorough else SLICES[:1]:
        found = _marched(problem, scales, count, wider, functions // len(problem.unknowns), round(share * count))
        if found is not None:
            return found
    return None


@lru_cache(maxsize=8)
def _marched(
    problem: Problem, scales: Scales, count: int, wider: int, size: int, most: int
) -> tuple[Correction, float] | None:
    """The same in so many slices, in spaces with higher degrees along the axes of space."""
    whole = problem.domain
    times = March(tuple(np.linspace(*whole.interval(str(whole.time)), count + 1).tolist()))
    stretch = tuple(1 if axis == whole.time else wider for axis in whole.axes)
    pieces, worst = [], 0.0
    for k in range(most):
        box = times.domain(whole, k)
        rough = Rough(problem, scales, size, box, pieces[-1] if pieces else None)
        found = rough.solve(rough.polynomials(size, stretch))
        worst = max(worst, found.left)
        if not found.left <= NEAR:
            return None
        pieces.append(Piece(box, found.space, found.coefficients))
    return Correction(March(times.times[: most + 1]), tuple(pieces)), worst
