"""Sources that set in at the first instant on a part of a rod: heaters, wells.

Where an unknown diffuses along the one axis of space and its rate of change jumps by q at a place z = 0 when it begins, it
begins there like

    v = q/D (M_2 - z_+^2 / 2),     v_t = D v_zz + q (z > 0),     v = 0 at tau = 0,

with the functions M_n of `breaks.py`. Later v bends at z = 0 as any solution beside a source does (`jumps.py`), but within a
width of (4 D tau)^(1/2) it does so gradually, and no network follows that from the first instant on. Where v would grow
far beyond the unknown it is tapered, as layers are.
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
from dsgnar.problem.corners import SAME, Point, Start, at, diffuses_alone, root
from dsgnar.problem.jumps import Plane
from dsgnar.problem.layers import taper, tapered

BESIDE = 1e-7  # of the axis: where the two sides are looked at
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
