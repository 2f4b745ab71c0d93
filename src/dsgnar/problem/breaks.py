"""Initial values that jump, or whose slope does, inside a domain with one axis of space: an option's payoff, two rods that
are brought together.

A diffusing unknown smooths them at once, and no network follows how it begins. What it looks like is known. With the
distance z = x - x0 from the break, tau the time since the start and D the diffusivity there, the functions

    M_n = 1/2 s^n i^n erfc(-z / s),   s = (4 D tau)^(1/2),     dM_n/dz = M_(n-1),   dM_n/dtau = D M_(n-2)

solve the diffusion equation and begin as z^n / n! on the right of the break and zero on its left (`layers.py` has the same
ones at a wall). Where the equation is u_t = D u_xx + b u_x + c u, the break moves with -b and grows like exp(c tau); where D
varies, D = D_0 + D' z, the terms

    D' ((n - 1) tau M_(n-1) - D tau^2 M_(n-3))

are the next ones. So a solution begins like J_0 M_0 + J_1 M_1, with the jumps J_0 of initial values and J_1 of their slope,
and the network learns the smoother rest.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erfc
from jaxtyping import Array

from dsgnar.problem.corners import SAME, Point, Start, at, diffuses_alone
from dsgnar.problem.jumps import jumps, pieces

SMALLEST = 1e-6  # a jump over the size of its unknown, or one of its slope times the length of the axis
MOST = 6  # breaks: more of them are a table, not a formula
BESIDE = 1e-7  # of the axis: where the two sides of a break are looked at
GROWS = 1.0  # c times the time, at most


@dataclass(frozen=True)
class Break:
    """A place where the initial values of an unknown, or their slope, jump; and the equation there."""

    place: float
    jump: float
    kink: float
    diffusivity: float
    varies: float  # D'
    drift: float  # b
    growth: float  # c

    def __call__(self, x: Array, tau: Array) -> Array:
        D, varies = self.diffusivity, self.varies
        z, s = x - self.place + self.drift * tau, jnp.sqrt(4 * D * tau)
        step = erfc(-z / s) / 2  # M_0, and from it the others by z M_n = (n + 1) M_(n+1) - 2 D tau M_(n-1)
        first = jnp.exp(-((z / s) ** 2)) / (s * math.sqrt(math.pi))
        second = -z * first / (2 * D * tau)
        third = -(first + z * second) / (2 * D * tau)
        jump = step - varies * tau * (first + D * tau * third)
        kink = z * step + 2 * D * tau * first - varies * D * tau**2 * second
        return jnp.exp(self.growth * tau) * (self.jump * jump + self.kink * kink)


def initial_breaks(start: Start, size: float, begin: float) -> Callable[[Point], Array] | None:
    """The singular part of an unknown of a given size; None where there is none.

    `begin` is the share of the time that is kept from the first instant.
    """
    domain = start.domain
    name, *others = domain.space
    if others or name in start.problem.periodic or start.equation is None or None in start.starts.values():
        return None
    if not diffuses_alone(start.problem, start.unknown, start.equation, domain.index(name)):
        return None
    found, time = list(_breaks(start, domain.index(name), size)), start.time
    if not 0 < len(found) <= MOST:
        return None
    axis, (first, last) = domain.index(name), domain.bounds[time]

    def value(x: Point) -> Array:
        tau = x[time] - first + begin * (last - first)
        return sum((one(x[axis], tau) for one in found), start=jnp.zeros(()))

    return value


def _breaks(start: Start, axis: int, size: float) -> Iterator[Break]:
    """All breaks of the initial values of an unknown along an axis."""
    domain, j = start.domain, start.problem.unknowns.index(start.unknown)
    lower, upper = domain.bounds[axis]
    point = jnp.asarray([bounds[0] for bounds in domain.bounds])
    initial = lambda x: start.initial(at(point, axis, x))[j]
    values, slopes = (jax.jit(jax.vmap(f)) for f in (initial, jax.grad(initial)))
    length, ends = upper - lower, pieces(lower, upper, beside=BESIDE)
    places = [p for f, least in ((values, size), (slopes, size / length)) for p in jumps(f, ends, SMALLEST * least)]
    beside = BESIDE * length
    for k, place in enumerate(sorted(places)):
        if any(abs(place - other) < 10 * beside for other in sorted(places)[:k]):
            continue  # a jump whose slope jumps too
        sides = jnp.asarray([place - beside, place + beside])
        slope = np.asarray(slopes(sides))
        jump, kink = float(np.diff(values(sides))[0] - beside * slope.sum()), float(np.diff(slope)[0])
        D, varies, drift, growth = np.asarray(jax.jit(jax.vmap(partial(coefficients, start, axis, point)))(sides)).T
        mean = float(D.mean())
        if not (0 < mean < math.inf and np.ptp(D) <= SAME * mean):
            continue
        grows = float(growth.mean()) * float(np.ptp(domain.bounds[start.time]))
        yield Break(
            place, jump if abs(jump) > SMALLEST * size else 0.0, kink, mean, float(varies.mean()), float(drift.mean()),
            float(growth.mean()) if grows <= GROWS else 0.0,
        )  # fmt: skip


def coefficients(start: Start, axis: int, x: Point, place: Array) -> Array:
    """D, D', b and c of u_t = D u_xx + b u_x + c u at a place along the axis of space."""

    def those(place):
        here, z = at(x, axis, place), lambda y: y[axis] - place
        parts = start.since, lambda y: z(y) ** 2 / 2, z, lambda y: jnp.ones(())
        rate, *others = (jax.grad(start.having(str(start.equation), here, part))(0.0) for part in parts)
        return -jnp.stack(others) / rate

    D, b, c = those(place)
    return jnp.stack([D, jax.jacfwd(those)(place)[0], b, c])
