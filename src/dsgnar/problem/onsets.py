"""What sets in within a rod at an instant: sources on a part of it, and boundary values that jump later.

**Sources** (heaters, wells). Where an unknown diffuses along the one axis of space and its rate of change jumps by q at a
place z = 0 when it begins, it begins there like

    v = q/D (M_2 - z_+^2 / 2),     v_t = D v_zz + q (z > 0),     v = 0 at tau = 0,

with the functions M_n of `breaks.py`. Later v bends at z = 0 as any solution beside a source does (`jumps.py`), but within a
width of (4 D tau)^(1/2) it does so gradually, and no network follows that from the first instant on. Where v would grow
far beyond the unknown it is tapered, as layers are.

**Boundary values** that jump at a time t_k (`jumps.py`) send a layer into the rod as those do that do not fit the initial
values (`layers.py`): with the difference of what is given after and before t_k, from tau = t - t_k = 0 on. A time interval
ends there, and the next begins without it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erfc
from jaxtyping import Array

from dsgnar.problem.breaks import coefficients
from dsgnar.problem.corners import SAME, Point, Start, Wall, at, diffuses_alone, root, walls
from dsgnar.problem.jumps import Plane
from dsgnar.problem.layers import Layer, constant, layer_of, medium_of, taper, tapered

BESIDE = 1e-7  # of an axis: where the two sides are looked at
MOST = 16  # jumps of boundary values
SMALLEST = 1e-6  # what a source adds until the end over the size of its unknown


@dataclass(frozen=True)
class Onset:
    """A place at which the rate of change jumps."""

    place: float
    strength: float  # q
    diffusivity: float
    within: float  # the time in which it is tapered; infinity: not at all

    def __call__(self, x: Array, tau: Array) -> Array:
        D = self.diffusivity
        z, s = x - self.place, jnp.sqrt(4 * D * tau)
        step = erfc(-z / s) / 2
        kink = z * step + 2 * D * tau * jnp.exp(-((z / s) ** 2)) / (s * np.sqrt(np.pi))
        bend = (z * kink + 2 * D * tau * step) / 2 - jnp.maximum(z, 0.0) ** 2 / 2
        return tapered(self.strength / D * bend, tau, self.within)


def switched_layers(start: Start, size: float, begin: float, times: Sequence[float]) -> Callable[[Point], Array] | None:
    """The layers of boundary values that jump at some times; None where there are none."""
    domain, time, found = start.domain, start.time, []
    if len(domain.space) != 1 or not 0 < len(times) <= MOST:
        return None
    first, last = domain.bounds[time]
    for wall in walls(start):
        point = at(jnp.asarray([bounds[0] for bounds in domain.bounds]), wall.axis, wall.place)
        for when in times:
            layer = _switched(start, wall, point, when, size)
            if layer is not None:
                found.append((when, layer))
    if not found:
        return None

    def value(x: Point) -> Array:
        total = jnp.zeros(())
        for when, layer in found:
            on = x[time] >= when
            tau = jnp.where(on, x[time] - when, 0.0) + begin * (last - first)
            total = total + jnp.where(on, layer.smoother(x, tau) + layer.jump(x) * layer.step(x, tau), 0.0)
        return total

    return value


def _switched(start: Start, wall: Wall, point: Point, when: float, size: float) -> Layer | None:
    """The layer of one jump at one wall; None where there is none, or the medium is not the same for other values."""
    domain, time = start.domain, start.time
    beside = BESIDE * float(np.ptp(domain.bounds[time]))
    sides = jnp.asarray([when - beside, when + beside])
    distance = lambda z: wall.inward * (z[wall.axis] - wall.place)
    end, q, k, jump = domain.bounds[time][1] - when, 0.0, 0.0, 0.0
    if wall.values:
        given = lambda t: start.given(wall.condition, at(point, time, t))
        (before, after), slopes = jax.vmap(given)(sides), jax.vmap(jax.grad(given))(sides)
        jump, change = float(after - before - beside * slopes.sum()), float(slopes[1] - slopes[0])
    else:
        slope = jax.grad(start.having(wall.condition, point, distance))(0.0)
        flux = lambda t: start.problem.residual(wall.condition, start.initial, at(point, time, t), "nested") / slope
        q, change = float(np.diff(jax.vmap(flux)(sides))[0]), 0.0
        k = -float(jax.grad(start.having(wall.condition, point, lambda z: jnp.ones(())))(0.0) / slope)
    states = zip(sides, (jnp.zeros(()), jnp.asarray(jump or size)), strict=True)
    found = np.stack([start.coefficients(wall, at(point, time, t), distance, more) for t, more in states])
    medium = medium_of(found.reshape(1, 6), end)
    if medium is None or end <= 0:
        return None
    layer, worth = layer_of(wall, medium, partial(constant, jump), q, k, change / medium.diffusivity, size, end)
    return layer if max(abs(jump), worth) > SMALLEST * size else None


def onsets(start: Start, size: float, begin: float, planes: Sequence[Plane]) -> Callable[[Point], Array] | None:
    """What sources begin like that set in beside planes across the axis of space; None where there are none.

    `begin` is the share of the time that is kept from the first instant.
    """
    domain, time = start.domain, start.time
    name, *others = domain.space
    if others or start.equation is None or None in start.starts.values() or not planes:
        return None
    axis, (first, last) = domain.index(name), domain.bounds[start.time]
    if not diffuses_alone(start.problem, start.unknown, start.equation, axis):
        return None
    point, found = jnp.asarray([bounds[0] for bounds in domain.bounds]), []
    rate = lambda place: root(start.having(str(start.equation), at(point, axis, place), start.since))
    for plane in planes:
        beside = BESIDE * float(np.ptp(domain.bounds[axis]))
        sides = jnp.asarray([plane.place - beside, plane.place + beside])
        q = float(np.diff(jax.vmap(rate)(sides))[0])
        D = np.asarray(jax.vmap(partial(coefficients, start, axis, point))(sides))[:, 0]
        end = last - first
        alike = 0 < D.mean() < np.inf and np.ptp(D) <= SAME * D.mean()
        if alike and np.isfinite(q) and abs(q) * end > SMALLEST * size:
            found.append(Onset(plane.place, q, float(D.mean()), taper(abs(q) * end / size, 2, end)))
    if not found:
        return None

    def value(x: Point) -> Array:
        tau = x[time] - first + begin * (last - first)
        return sum((one(x[axis], tau) for one in found), start=jnp.zeros(()))

    return value
