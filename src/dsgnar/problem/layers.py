"""Initial layers: where initial and boundary values do not fit each other, a diffusing unknown begins with a singularity.

A rod at 293 K whose end is suddenly at 400 K, a plate that is set into motion, a slab that begins to radiate, a dye that
enters a column: at the wall and the first instant the solution jumps, or one of its derivatives does, and no network follows
that. What it looks like is known (Carslaw and Jaeger 1959; Flyer and Fornberg 2003). With d the distance from the wall and
tau the time since the start, u_tau = D u_dd - v u_d + c u has solutions N_0, R and N_n (`responses.py`) that vanish at
tau = 0; at the wall N_0 = 1, dR/dd = k R - 1, and N_2 = D tau to leading order. So the solution begins like a sum of them,
and the network learns the smoother rest. With u0 the initial values, continued to the wall, and h their rate of change by
the equation,

    values g(tau) given       (g - u0) N_0 + (g' - h) / D N_2
    B(u_d, u) = 0 given       q R + p (N_3 - k' N_4 + k'^2 N_5),   p = q' / D + (2 / pi) q^2 B_uu / B_(u_d)

where q = B(u0) / B_(u_d), q' is its rate of change, k = -B_u / B_(u_d) and k' = k - v / (2 D); at the wall R^2 begins as
4 D tau / pi, which is where B_uu comes in. Where several walls of a box with jumps of their values meet, the layers are put
together as 1 - (1 - N_0)(1 - N_0'), which is exact for a box of one temperature that is brought into another.

What is imposed within a small part of the time, such as a flux that saturates, gives terms that go on to grow until the end,
far beyond the solution. Only their beginning is singular, so they are tapered by exp(-tau / T): with T = (2 e / n) times the
time at which a term of order n would reach the size of the unknown, that is the largest that it becomes.

A drift v or growth c that varies along the wall, or with a jump, is left to the network.
None of this applies where an unknown does not diffuse along the axis, other unknowns diffuse in its equation, its wall has
conditions with other unknowns, or a jump changes the diffusivity. In more than one dimension of space only c_0 counts.
Shapes have layers of their own (`shape_layers.py`).
"""

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from dsgnar.calculus.streams import stream
from dsgnar.problem.corners import SAME, Point, Start, Wall, at, walls
from dsgnar.problem.domain import Box, Initial
from dsgnar.problem.responses import Medium
from dsgnar.problem.sampling import sample

SMALLEST = 1e-6  # a layer over the size of its unknown, that is worth it
LARGEST = 8.0  # a term over it with which a network would have to cope elsewhere: it is tapered
BEGIN = 1e-18  # of the time: the distance that is kept from the first instant; points come as near to a corner as 1e-8
ALONG = 4  # points of a wall
GROWS = 1.0  # c times the time, at most
TERMS = 5  # the last n


@dataclass(frozen=True, eq=False)
class Layer:
    """The singular part of one unknown at one wall: `jump` times N_0, `flux` times R, and numbers times N_1, N_2, ..

    All but the first are tapered within given times.
    """

    wall: Wall
    medium: Medium
    jump: Callable[[Point], Any]  # of values, along the wall
    terms: tuple[float, ...]
    flux: float
    k: float
    end: float  # tau
    tapers: tuple[float, ...]  # of R, and of N_1, N_2, ..; infinity: none

    def step(self, x: Point, tau: Array) -> Array:
        """N_0."""
        return self.medium.step(self._distance(x), tau)

    def smoother(self, x: Point, tau: Array) -> Array:
        """All but the jump."""
        d = self._distance(x)
        total = jnp.zeros(())
        for within in dict.fromkeys(self.tapers[1:]):
            alike = tuple(c if own == within else 0.0 for c, own in zip(self.terms, self.tapers[1:], strict=True))
            total = total + tapered(self.medium.series(alike, d, tau), tau, within)
        if not self.flux:
            return total
        return total + self.flux * tapered(self.medium.flux(self.k, d, tau, self.end), tau, self.tapers[0])

    def _distance(self, x: Point) -> Array:
        return self.wall.inward * (x[self.wall.axis] - self.wall.place)


def initial_layers(start: Start, size: float) -> Callable[[Point], Array] | None:
    """The singular part of an unknown of a given size; None where there is none."""
    found = list(_at_walls(start, size))
    return _sum(start.domain, found) if found else None


def _sum(domain: Box, layers: list[Layer]) -> Callable[[Point], Array]:
    """All layers of an unknown together, with products where jumps of walls along different axes meet."""
    time = domain.index(str(domain.time))
    begin, end = domain.bounds[time]
    by_axis = [list(group) for _, group in itertools.groupby(layers, key=lambda layer: layer.wall.axis)]
    meetings = [
        met
        for count in range(1, len(by_axis) + 1)
        for axes in itertools.combinations(by_axis, count)
        for met in itertools.product(*axes)
    ]

    def value(x: Point) -> Array:
        tau = x[time] - begin + BEGIN * (end - begin)
        step = {layer: layer.step(x, tau) for layer in layers}
        total = sum((layer.smoother(x, tau) for layer in layers), start=jnp.zeros(()))
        for met in meetings:
            corner = x
            for layer in met:
                corner = at(corner, layer.wall.axis, layer.wall.place)
            total = total - (-1) ** len(met) * met[0].jump(corner) * math.prod(step[layer] for layer in met)
        return total

    return value


def _at_walls(start: Start, size: float) -> Iterator[Layer]:
    """The layers of an unknown of a given size, where they can be seen."""
    domain, compiled = start.domain, {}
    end = float(np.ptp(domain.bounds[start.time]))
    point = len(domain.space) == 1  # a wall is one
    for wall in walls(start):
        points = sample(Initial(), domain, ALONG, stream(0, "layers"))
        points[:, wall.axis] = wall.place
        points = jnp.asarray(np.unique(points, axis=0))
        jump = partial(start.jump, wall.condition) if wall.values else lambda x: jnp.zeros(())
        jumps = np.asarray(jax.vmap(jump)(points))
        largest = float(np.max(np.abs(jumps)))
        if not point and not largest > SMALLEST * size:
            continue
        key = wall.condition, wall.axis
        if key not in compiled:  # both ends of an axis may share a condition
            compiled[key] = jax.jit(jax.vmap(partial(_numbers, start, wall), (0, None, None)))
        found = np.asarray(compiled[key](points, wall.place, wall.inward))
        medium = medium_of(found[:, :6], end)
        if medium is None:
            continue
        even = bool(np.ptp(jumps) <= SMALLEST * size)
        made = partial(constant, float(jumps[0])) if even else jump
        q, k, ramp = (float(c) if point else 0.0 for c in found[0, 6:])
        layer, worth = layer_of(wall, medium, made, q, k, ramp, size, end)
        if layer is not None and max(largest, worth) > SMALLEST * size:
            yield layer


def layer_of(
    wall: Wall, medium: Medium, jump: Callable[[Point], Any], q: float, k: float, ramp: float, size: float, end: float
) -> tuple[Layer | None, float]:
    """A layer of an unknown of a given size, and how large all but its jump becomes; None if that is not finite."""
    away, spread = k - medium.beta, math.sqrt(4 * medium.diffusivity * end)
    terms = [0.0, ramp] if wall.values else [0.0, 0.0, *(ramp * (-away) ** n for n in range(TERMS - 2))]
    sizes = [abs(c) * spread**n / math.gamma(n / 2 + 1) / 2**n for n, c in enumerate(terms, 1)]
    flows = abs(q * float(medium.flux(k, jnp.zeros(()), jnp.asarray(end), end))) if q else 0.0
    tapers = tuple(taper(one / size, n, end) for one, n in zip((flows, *sizes), (1, *range(1, TERMS + 1)), strict=False))
    if not np.isfinite([flows, *sizes]).all():
        return None, 0.0
    return Layer(wall, medium, jump, tuple(terms), q, k, end, tapers), max(flows, *sizes)


def taper(large: float, n: int, end: float) -> float:
    """The time within which a term of order n is tapered that would be so many times as large as its unknown at the end."""
    return end * 2 * math.e / n / large ** (2 / n) if large > LARGEST else math.inf


def tapered(value: Array, tau: Array, within: float) -> Array:
    return value if within == math.inf else value * jnp.exp(-tau / within)


def medium_of(found: np.ndarray, end: float) -> Medium | None:
    """D, v and c along a wall, from D, -v and c before and after a jump; None where the diffusivity varies."""
    D, drift, growth = (found[:, [i, i + 3]] for i in range(3))
    mean = float(np.mean(D))
    if not (0 < mean < math.inf and np.all(np.abs(D - mean) <= SAME * mean)):
        return None
    same = lambda a: bool(np.all(np.abs(a - np.mean(a)) <= SAME * abs(np.mean(a))))
    v, c = (float(np.mean(a)) if same(a) else 0.0 for a in (-drift, growth))
    return Medium(mean, v, c if c * end <= GROWS and v * v >= 4 * c * mean else 0.0)


def _numbers(start: Start, wall: Wall, x: Point, place: Array, inward: Array) -> Array:
    return start.numbers(wall, x, lambda z: inward * (z[wall.axis] - place))


def constant(value: float, x: Point) -> float:
    return value
