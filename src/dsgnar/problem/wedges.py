"""Corners of a rectangle: where conditions of two walls do not fit each other, a steady solution is singular.

A plate with one hot edge and three cold ones jumps at two corners; a plate whose hot edge meets one that is cooled by air
has an infinite slope there; a membrane under even pressure has second derivatives without a limit. Where the equation begins
with a u_xx + b u_yy, the leading singular part is harmonic in the stretched distances from the walls (Kondratiev 1967),

    X = |x - x_corner| / a^(1/2),   Y = |y - y_corner| / b^(1/2),   z = X + i Y:

    values on both walls, g_A (Y = 0) and g_B (X = 0)     (2 / pi) (g_B - g_A) Im log z,   and  -(rho / pi) Im z^2 log z,
                                                          rho what the equation makes of g_A(x) + g_B(y) - g_B(corner)
    values on A, a condition B(u_X, u) = 0 on B           (2 / pi) s Im z log z,   s the slope u_X that is missing on B,
                                                          and (k s / pi) Im z^2 log z,   k = -B_u / B_(u_X)

Im log z is the angle: 0 on A and pi/2 on B. The other two vanish on A; on B the slope of the second is that of the angle,
and the third is -Y^2 pi/2, with a slope of 2 Y log Y + Y. They are added to the network, which learns the smoother rest.
Conditions on slopes on both walls fit to first order. Other terms of the equation show at higher orders only, unless they
are far larger than the second derivatives; a part that is far larger than its unknown is left out.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from dsgnar.problem.corners import SAME, Point, along, at, condition_at, diffuses_alone, involved, order, root
from dsgnar.problem.domain import Interior
from dsgnar.problem.problem import Problem

NEAR = 1e-12  # of the sides: where a logarithm ends


@dataclass(frozen=True)
class Side:
    """A wall at a corner: its axis, the condition there, and whether that gives values."""

    axis: int
    place: float
    inward: float
    condition: str
    values: bool


@dataclass(frozen=True)
class Wedge:
    """The singular part at one corner. A is the wall across `axes[1]`, B that across `axes[0]`."""

    axes: tuple[int, int]
    corner: tuple[float, float]  # along these axes
    inward: tuple[float, float]
    stretch: tuple[float, ...]  # a^(1/2), b^(1/2)
    terms: tuple[float, ...]  # of Im log z, Im z log z, Im z^2 log z
    near: float

    def __call__(self, x: Point) -> Array:
        """Its value at a point."""
        parts = zip(self.axes, self.corner, self.inward, self.stretch, strict=True)
        X, Y = (inward * (x[i] - corner) / stretch for i, corner, inward, stretch in parts)
        angle, log = jnp.arctan2(Y, X), jnp.log(X * X + Y * Y + self.near**2) / 2
        first, second, third = self.terms
        return first * angle + second * (X * angle + Y * log) + third * (2 * X * Y * log + (X * X - Y * Y) * angle)


def wedges(problem: Problem, unknown: str) -> Iterator[tuple[Wedge, tuple[float, ...]]]:
    """The singular parts of an unknown at all corners, each with how large its terms become."""
    domain, equation = problem.domain, equation_of(problem, unknown)
    if equation is None or len(domain.axes) != 2 or problem.periodic:
        return
    sides = {face: _side(problem, unknown, face) for face in domain.faces}
    for first in ("lower", "upper"):
        for second in ("lower", "upper"):
            B, A = sides[domain.space[0], first], sides[domain.space[1], second]
            if A is None or B is None or not (A.values or B.values):
                continue
            if not A.values:  # values on A, by name
                A, B = B, A
            found = _wedge(_Corner(problem, unknown, equation, A, B))
            if found is not None:
                yield found


def equation_of(problem: Problem, unknown: str) -> str | None:
    """The equation of an unknown, if it is one of diffusion along both axes that other unknowns enter by value only."""
    domain = problem.domain
    names = [
        name
        for name, condition in problem.conditions.items()
        if isinstance(condition.part, Interior) and unknown in involved(problem, name)
    ]
    for name in names:
        if all(diffuses_alone(problem, unknown, name, domain.index(axis)) for axis in domain.space):
            others = {u: keys for u, keys in problem.requests[name].items() if u != unknown}
            low = not any(order(key) for keys in others.values() for key in keys)
            plain = all(_plain(key, domain.dimension) for key in problem.requests[name][unknown])
            return name if low and plain else None
    return None


def _plain(key, dimension: int) -> bool:
    """Whether a derivative is at most of second order, and not a mixed one."""
    return order(key) <= 1 or (order(key) == 2 and any(along(key, i, None) == 2 for i in range(dimension)))


def _side(problem: Problem, unknown: str, face: tuple[str, str]) -> Side | None:
    condition, i = condition_at(problem, unknown, face), problem.domain.index(face[0])
    if condition is None:
        return None
    keys = problem.requests[condition][unknown]
    lower, upper = problem.domain.bounds[i]
    place, inward = (lower, 1.0) if face[1] == "lower" else (upper, -1.0)
    return Side(i, place, inward, condition, not any(map(order, keys))) if max(map(order, keys)) <= 1 else None


@dataclass(frozen=True)
class _Corner:
    """Two walls that meet; A has values."""

    problem: Problem
    unknown: str
    equation: str
    A: Side
    B: Side

    @property
    def unit(self) -> np.ndarray:
        return np.array([float(name == self.unknown) for name in self.problem.unknowns])

    def given(self, side: Side, x: Point) -> Array:
        """The value that a wall gives, continued into the domain."""
        x = at(x, side.axis, side.place)
        return root(lambda v: self.problem.residual(side.condition, lambda z: v * self.unit, x, "nested"))

    def along(self, name: str, start, more, x: Point) -> Array:
        """The slope of a residual along a function."""
        residual = lambda a: self.problem.residual(name, lambda z: (start(z) + a * more(z)) * self.unit, x, "nested")
        return jax.grad(residual)(0.0)

    def numbers(self, x: Point) -> Array:
        """a, b (across B and A), a after a jump of values, that jump, the slope that is missing, rho, and -B_u / B_(u_d)."""
        A, B = self.A, self.B
        x, start = at(at(x, A.axis, A.place), B.axis, B.place), partial(self.given, A)
        curved = lambda begin, s: self.along(self.equation, begin, lambda z: (z[s.axis] - s.place) ** 2 / 2, x)
        a, b = curved(start, B), curved(start, A)
        zero = jnp.zeros(())
        if not B.values:
            missing = self.problem.residual(B.condition, lambda z: start(z) * self.unit, x, "nested")
            slope = self.along(B.condition, start, lambda z: B.inward * (z[B.axis] - B.place), x)
            value = self.along(B.condition, start, lambda z: jnp.ones(()), x)
            return jnp.stack([a, b, a, zero, -missing / slope, zero, -value / slope])
        jump = self.given(B, x) - start(x)
        both = lambda z: (start(z) + self.given(B, z) - self.given(B, x)) * self.unit
        alone = involved(self.problem, self.equation) == {self.unknown}  # else other values count
        rho = self.problem.residual(self.equation, both, x, "nested") if alone else zero
        after = curved(lambda z: start(z) + jump, B)
        return jnp.stack([a, b, after, jump, zero, rho, zero])


def _wedge(corner: _Corner) -> tuple[Wedge, tuple[float, ...]] | None:
    A, B = corner.A, corner.B
    a, b, after, jump, slope, rho, k = np.asarray(jax.jit(corner.numbers)(jnp.zeros(corner.problem.domain.dimension)))
    if not a * b > 0 or not abs(after - a) <= SAME * abs(a):
        return None  # no diffusion, or a jump changes it
    sign, sides = np.sign(a), [float(np.ptp(corner.problem.domain.bounds[s.axis])) for s in (B, A)]
    stretch = tuple(math.sqrt(abs(c)) for c in (a, b))
    far = max(side / s for side, s in zip(sides, stretch, strict=True))
    slope, k = slope * stretch[0], k * stretch[0]  # per unit of X
    terms = 2 / math.pi * jump, 2 / math.pi * slope, (k * slope - sign * rho) / math.pi
    wedge = Wedge((B.axis, A.axis), (B.place, A.place), (B.inward, A.inward), stretch, tuple(map(float, terms)), NEAR * far)
    return wedge, tuple(float(abs(term)) * far**n for n, term in enumerate(terms))
