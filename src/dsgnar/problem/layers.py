"""Initial layers: where initial and boundary values do not fit each other, a diffusing unknown begins with a singularity.

A rod at 293 K whose end is suddenly at 400 K, a plate that is set into motion, a slab that begins to radiate: at the wall
and the first instant the solution jumps, or one of its derivatives does, and no network follows that. What it looks like is
known (Carslaw and Jaeger 1959; Flyer and Fornberg 2003). With d the distance from the wall, tau the time since the start and
D the diffusivity there, the functions

    N_n(d, tau) = s^n i^n erfc(d / s),   s = (4 D tau)^(1/2),     dN_n/dd = -N_(n-1),   dN_n/dtau = D N_(n-2)

(i^n erfc is the n-fold integral of erfc) solve the diffusion equation, vanish at tau = 0, and at the wall N_0 = 1,
N_2 = D tau. So the solution begins like a sum of c_n N_n, and the network learns the smoother rest. With u0 the initial
values, continued to the wall, and h their rate of change by the equation,

    values g(tau) given       c_0 = g - u0,     c_2 = (g' - h) / D
    B(u_d, u) = 0 given       c_1 = q,  c_2 = -k q,  c_3 = -k c_2 + q' / D + (2 / pi) q^2 B_uu / B_(u_d),  c_4 = -k c_3, ..

where q = B(u0) / B_(u_d), q' is its rate of change and k = -B_u / B_(u_d); at the wall N_1^2 = 4 D tau / pi, which is where
B_uu comes in. Where several walls of a box with jumps of their values meet, the layers are put together as
1 - (1 - N_0)(1 - N_0'), which is exact for a box of one temperature that is brought into another.

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
from jax.scipy.special import erfc
from jaxtyping import Array

from dsgnar.calculus.streams import stream
from dsgnar.problem.corners import SAME, Point, Start, Wall, at, walls
from dsgnar.problem.domain import Box, Initial
from dsgnar.problem.sampling import sample

SMALLEST = 1e-6  # a layer over the size of its unknown, that is worth it
LARGEST = 8.0  # a term over it with which a network would have to cope elsewhere
BEGIN = 1e-18  # of the time: the distance that is kept from the first instant; points come as near to a corner as 1e-8
ALONG = 4  # points of a wall


@dataclass(frozen=True, eq=False)
class Layer:
    """The singular part of one unknown at one wall: `jump` times N_0, and numbers times N_1, N_2, .."""

    wall: Wall
    diffusivity: float
    jump: Callable[[Point], Any]  # of values, along the wall
    terms: tuple[float, ...]

    def functions(self, x: Point, tau: Array) -> list[Array]:
        """N_0, N_1, .., as many as there are terms; by 2 n i^n erfc = i^(n-2) erfc - 2 eta i^(n-1) erfc."""
        s = jnp.sqrt(4 * self.diffusivity * tau)
        eta = self.wall.inward * (x[self.wall.axis] - self.wall.place) / s
        before, now = 2 / math.sqrt(math.pi) * jnp.exp(-eta * eta), erfc(eta)
        out = [now]
        for n in range(1, 1 + max((n for n, c in enumerate(self.terms, 1) if c), default=0)):
            before, now = now, (before - 2 * eta * now) / (2 * n)
            out.append(s**n * now)
        return out


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
        N = {layer: layer.functions(x, tau) for layer in layers}
        terms = [c * n for layer in layers for c, n in zip(layer.terms, N[layer][1:], strict=False) if c]
        total = sum(terms, start=jnp.zeros(()))
        for met in meetings:
            corner = x
            for layer in met:
                corner = at(corner, layer.wall.axis, layer.wall.place)
            total = total - (-1) ** len(met) * met[0].jump(corner) * math.prod(N[layer][0] for layer in met)
        return total

    return value


def _at_walls(start: Start, size: float) -> Iterator[Layer]:
    """The layers of an unknown of a given size, where they can be seen."""
    domain, compiled = start.domain, {}
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
        D, after, *terms = np.asarray(compiled[key](points, wall.place, wall.inward)).T
        mean = float(np.mean(D))
        if not (0 < mean < math.inf and np.all(np.abs(np.concatenate([D, after]) - mean) <= SAME * mean)):
            continue
        spread = math.sqrt(4 * mean * float(np.ptp(domain.bounds[start.time])))
        numbers = [float(c[0]) if point else 0.0 for c in terms]
        sizes = [largest, *(abs(c) * spread**n / math.gamma(n / 2 + 1) / 2**n for n, c in enumerate(numbers, 1))]
        for n in range(1, len(sizes)):  # one that is far larger than its unknown, and all beyond
            if not sizes[n] <= LARGEST * size:
                numbers[n - 1 :], sizes[n:] = [0.0] * len(numbers[n - 1 :]), [0.0] * len(sizes[n:])
                break
        if np.isfinite(sizes).all() and max(sizes) > SMALLEST * size:
            even = bool(np.ptp(jumps) <= SMALLEST * size)
            yield Layer(wall, mean, partial(_constant, float(jumps[0])) if even else jump, tuple(numbers))


def _numbers(start: Start, wall: Wall, x: Point, place: Array, inward: Array) -> Array:
    return start.numbers(wall, x, lambda z: inward * (z[wall.axis] - place))


def _constant(value: float, x: Point) -> float:
    return value
