"""Corners of a rectangle in which a viscous fluid flows: a lid that stretches along itself from a wall that does not.

A steady flow (U, V) with a pressure p,

    F_U: a lap(U) + g p_X + .. = 0,     F_V: a lap(V) + g p_Y + .. = 0,     U_X + V_Y = 0,

has velocities given on both walls of a corner, wall A along X (Y = 0) and wall B along Y (X = 0), X and Y inward. If they
agree at the corner, they tell U_X there (along A) and V_Y (along B), whose sum need not vanish,

    m = U_X on A + V_Y on B.

Then the velocity gradient has no limit, and the pressure tends to infinity as log r. Near the corner the flow is the Stokes
flow of the stream function psi,

    psi = m/2 r^2 (theta - pi/4),     U = psi_Y,  V = -psi_X,     p = -2 (a / g) m log(r / R),

with theta = 0 along A: there U_X = m/2, and V_Y = m/2 along B. What is left of the wall velocities has no divergence. psi
and p are multiplied by exp(-(r/R)^4), which changes nothing at the corner and ends the flow. The lid of the driven cavity,
u = 4 x (1 - x), has m = 4 and -4 at its ends. With these flows added to the network, third derivatives of the rest are the
first to be infinite, because of the convection. Walls whose velocities jump at a corner are left alone.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dsgnar.calculus.streams import stream
from dsgnar.problem.corners import SAME, Point, at, condition_at, diffuses_alone, involved, order, root
from dsgnar.problem.domain import Interior
from dsgnar.problem.problem import Problem

NEAR = 1e-12  # of the reach: where a logarithm ends
REACH = 0.5  # of the shorter side: far away they are no part of the flow (docs/notes.md)
FIT = 1e-6  # of velocities around a corner, and of their gradients, by which they may differ there


@dataclass(frozen=True)
class CornerFlow:
    """The Stokes flow at one corner."""

    corner: tuple[float, float]
    inward: tuple[float, float]
    strength: float  # m
    viscosity: float  # -a / g
    reach: float  # R

    def __call__(self, k: int, x: Point) -> Array:
        """A component of the velocity, or the pressure (k = 2), at a point."""
        X, Y = (s * (x[i] - c) for i, (s, c) in enumerate(zip(self.inward, self.corner, strict=True)))
        phi, square = jnp.arctan2(Y, X) - jnp.pi / 4, (X * X + Y * Y) / self.reach**2
        fades = self.strength / 2 * jnp.exp(-square * square)
        along = 2 * phi * (1 - 2 * square * square)  # d psi / d(r^2) over r^2, but for the angle
        if k == 0:
            return self.inward[0] * fades * (X + along * Y)
        if k == 1:
            return self.inward[1] * fades * (Y - along * X)
        return 2 * self.viscosity * fades * jnp.log(square + NEAR**2)


def corner_flows(problem: Problem) -> tuple[tuple[str, str, str], list[CornerFlow]] | None:
    """Two velocities and a pressure, and the flows at corners whose walls do not fit; None where nothing flows so."""
    domain = problem.domain
    if len(domain.axes) != 2 or domain.time is not None or domain.shaped or problem.periodic:
        return None
    fluid = _fluid(problem)
    if fluid is None:
        return None
    sides = [float(np.ptp(b)) for b in domain.bounds]
    ends = [[(lower, 1.0, "lower"), (upper, -1.0, "upper")] for lower, upper in domain.bounds]
    found = []
    for x, sx, face_b in ends[0]:
        for y, sy, face_a in ends[1]:
            strength = _strength(fluid, (x, y), (face_b, face_a), min(sides))
            viscosity = fluid.viscosity(jnp.asarray([x, y])) if strength else None
            if viscosity is not None:
                found.append(CornerFlow((x, y), (sx, sy), strength, viscosity, REACH * min(sides)))
    return fluid.names, found


@dataclass(frozen=True)
class _Fluid:
    """The equations of two velocities and a pressure."""

    problem: Problem
    names: tuple[str, str, str]
    equations: tuple[str, str, str]  # of each velocity, and that there is no divergence

    @cached_property
    def slopes(self) -> Callable[[Point], Float[Array, "2 8"]]:
        """At rest and in motion at a point: a along both axes and g of each velocity, and the two of the divergence."""
        flat = lambda axis: lambda z: z[axis]
        bent = lambda axis: lambda z: z[axis] ** 2 / 2
        asked = []
        for i, equation in enumerate(self.equations[:2]):
            asked += [(equation, self.names[i], bent(j)) for j in (0, 1)] + [(equation, self.names[2], flat(i))]
        asked += [(self.equations[2], self.names[i], flat(i)) for i in (0, 1)]
        return jax.jit(lambda x: jnp.stack([_slopes(self.problem, n, u, f, x) for n, u, f in asked], axis=1))

    def viscosity(self, x: Point) -> float | None:
        """-a / g at a point; None where the equations are not of the kind above."""
        slopes = np.asarray(self.slopes(x))
        groups = slopes[:, :2], slopes[:, 2], slopes[:, 3:5], slopes[:, 5], slopes[:, 6:]
        ratios = -slopes[:, [0, 3]] / slopes[:, [2, 5]]
        return float(ratios[0, 0]) if all(map(_same, groups)) and _same(ratios) else None

    def given(self, k: int, face: tuple[str, str]) -> Callable[[Point], tuple[Array, Array]] | None:
        """A component of the velocity of a wall as a function of the place on it, and its gradient."""
        problem, name = self.problem, self.names[k]
        condition = condition_at(problem, name, face)
        if condition is None or any(map(order, problem.requests[condition][name])):
            return None
        unit = _unit(problem, name)
        axis = problem.domain.index(face[0])
        place = problem.domain.bounds[axis][face[1] == "upper"]
        value = lambda x: root(lambda v: problem.residual(condition, lambda z: v * unit, at(x, axis, place), "nested"))
        return jax.jit(jax.value_and_grad(value))


def _unit(problem: Problem, name: str) -> np.ndarray:
    return np.array([float(name == unknown) for unknown in problem.unknowns])


def _fluid(problem: Problem) -> _Fluid | None:
    """The velocities and the pressure of an incompressible fluid, if that is what the equations may be about."""
    inside = [name for name, condition in problem.conditions.items() if isinstance(condition.part, Interior)]
    for name in inside:
        requests = {u: keys for u, keys in problem.requests[name].items() if keys}
        along = {next(iter(keys)): u for u, keys in requests.items() if len(keys) == 1}
        if len(requests) == 2 and set(along) == {(1, 0), (0, 1)}:
            return _pushed(problem, (along[1, 0], along[0, 1]), name, [n for n in inside if n != name])
    return None


def _pushed(problem: Problem, velocities: tuple[str, str], divergence: str, equations: list[str]) -> _Fluid | None:
    """The same with the pressure: an unknown whose slope along X is in the equation of U, and along Y in that of V."""
    own = [[n for n in equations if all(diffuses_alone(problem, u, n, j) for j in (0, 1))] for u in velocities]
    if any(len(names) != 1 for names in own):
        return None
    momentum = own[0][0], own[1][0]
    for p in sorted(involved(problem, momentum[0]) - set(velocities)):
        slopes = [{key for key in problem.requests[n].get(p, ()) if order(key)} for n in momentum]
        if slopes == [{(1, 0)}, {(0, 1)}]:
            return _Fluid(problem, (*velocities, p), (*momentum, divergence))
    return None


def _slopes(problem: Problem, name: str, unknown: str, more: Callable[[Point], Array], x: Point) -> Float[Array, " 2"]:
    """Slopes of a residual along a function of an unknown that begins at a point, at rest there and in motion."""
    unit, rates = _unit(problem, unknown), stream(0, "flow", name).normal(size=(len(problem.unknowns), x.size))
    state = lambda a, moving, z: moving * jnp.asarray(rates) @ (z - x) + a * more(z - x) * unit
    residual = lambda a, moving: problem.residual(name, partial(state, a, moving), x, "nested")
    return jax.vmap(jax.grad(residual), (None, 0))(0.0, jnp.arange(2.0))


def _same(slopes: np.ndarray) -> bool:
    slopes = np.ravel(slopes)
    return bool(slopes[0] != 0 and np.max(np.abs(slopes - slopes[0])) <= SAME * abs(slopes[0]))


def _strength(fluid: _Fluid, corner: tuple[float, float], ends: tuple[str, str], side: float) -> float:
    """m at a corner; 0 where walls fit, or jump, or do not give the velocity."""
    axes, x = fluid.problem.domain.axes, jnp.asarray(corner)
    faces = (axes[1], ends[1]), (axes[0], ends[0])  # A and B
    A, B = ([fluid.given(k, face) for k in (0, 1)] for face in faces)
    found = [[wall(x) for wall in pair if wall is not None] for pair in (A, B)]
    if any(len(pair) < 2 for pair in found):
        return 0.0
    values = np.array([[float(value) for value, _ in pair] for pair in found])
    gradient = [float(found[i][i][1][i]) for i in (0, 1)]
    if not np.isfinite([*values.ravel(), *gradient]).all():
        return 0.0
    jumps = np.max(np.abs(values[0] - values[1])) > FIT * max(np.max(np.abs(values)), side * max(map(abs, gradient)))
    fits = abs(sum(gradient)) <= FIT * max(map(abs, gradient))  # but for rounding
    return 0.0 if jumps or fits else sum(gradient)
