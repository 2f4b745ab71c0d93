"""Initial layers on shapes: a plate whose holes are suddenly hot, or whose sides begin to cool it.

With d = r - R the distance from a round hole of radius R in n dimensions, m = (n - 1)/2 and u = (R/r)^m w, diffusion is

    w_tau = D (w_dd + m (1 - m) / r^2 w),

that of a flat wall up to a term without derivatives; in three dimensions there is none. Of a flat wall, with
s = (4 D tau)^(1/2), eta = d/s and kappa = k s/2, known are (Carslaw and Jaeger 1959)

    values, a jump c_0         w = c_0 erfc(eta)
    w_d = k w - c_1 there      w = (c_1/k) (erfc(eta) - exp(-eta^2) erfcx(eta + kappa)),      erfcx(z) = exp(z^2) erfc(z).

A condition u_d = k u - c_1 on a hole is w_d = (k + m/R) w - c_1. The layers of all holes and sides are added; what one of
them does at another comes later and is smooth. Where sides with the same jump c meet, they make c (1 - (1 - N)(1 - N')),
which is exact. The layers serve longer than a series in the root of tau does: of Heat2d-CG (`suite/pinnacle/`), with 17
holes, they leave 5.5 %, which the network learns.

As for walls of boxes (`layers.py`) the numbers come from the residuals alone. They must be the same all over a hole or side.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erfc
from jaxtyping import Array, Float

from dsgnar.calculus.streams import stream
from dsgnar.problem.corners import SAME, Point, Start, Stated, involved
from dsgnar.problem.domain import Boundary
from dsgnar.problem.layers import BEGIN, LARGEST, SMALLEST
from dsgnar.problem.region import Region
from dsgnar.problem.responses import FAR, erfcx
from dsgnar.problem.shapes.cuboid import Cuboid
from dsgnar.problem.shapes.round import Ball

ALONG = 4  # points of a surface
FLAT = 1e-3  # k times the width of a layer, below which it makes no difference


@dataclass(frozen=True)
class Surface:
    """A round hole, |x - vector| = number, or a side, vector x = number, with the normal `vector` inwards."""

    curved: bool
    vector: tuple[float, ...]
    number: float

    @property
    def bend(self) -> float:
        """m/R."""
        return (len(self.vector) - 1) / 2 / self.number if self.curved else 0.0

    def points(self, lower: np.ndarray, upper: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Some of its points."""
        n, vector = len(self.vector), np.array(self.vector)
        if not self.curved:
            points = lower + (upper - lower) * rng.random((ALONG, n))
            return points + (self.number - points @ vector)[:, None] * vector
        away = rng.normal(size=(ALONG, n))
        return vector + self.number * away / np.linalg.norm(away, axis=1, keepdims=True)


@dataclass(frozen=True)
class Layer:
    """A surface and the numbers of its layer."""

    surface: Surface
    diffusivity: float
    jump: float  # c_0
    flux: float  # c_1
    k: float  # of w


def distance(curved: bool, vector: Array, number: Array, x: Point) -> Array:
    """From one or many surfaces of a kind."""
    y = x[: vector.shape[-1]]
    return (jnp.sqrt(jnp.sum((y - vector) ** 2, axis=-1)) if curved else vector @ y) - number


def shape_layers(start: Start, size: float) -> Callable[[Point], Array] | None:
    """The singular part of an unknown of a given size on a shape; None where there is none."""
    layers, compiled = [], {}
    for stated, surface in surfaces(start):
        key = stated, surface.curved
        if key not in compiled:
            numbers = partial(_numbers, start, stated, surface.curved)
            compiled[key] = jax.jit(jax.vmap(numbers, (0, None, None)))
        layer = _layer(start, stated, surface, size, compiled[key])
        layers += [] if layer is None else [layer]
    jumps = {layer.jump for layer in layers if layer.jump and not layer.surface.curved}
    if len(jumps) > 1:  # sides that do not fit each other either
        layers = [layer for layer in layers if layer.surface.curved or not layer.jump]
    return partial(_sum, start, layers) if layers else None


def surfaces(start: Start) -> Iterator[tuple[Stated, Surface]]:
    """Round holes, and sides of boxes, with one condition that is about the unknown alone."""
    region = start.domain
    assert isinstance(region, Region)
    count = len(region.shape.axes)
    for leaf, sign in region.shape.leaves:
        if isinstance(leaf, Ball) and sign < 0:
            stated = start.stated(_condition(start, leaf.name), range(count))
            if stated is not None:
                yield stated, Surface(True, leaf.centre, leaf.radius)
        if isinstance(leaf, Cuboid) and sign > 0:
            for i, axis in enumerate(leaf.axes):
                for side, inward, place in zip(("lower", "upper"), (1.0, -1.0), leaf.bounds[i], strict=True):
                    stated = start.stated(_condition(start, leaf.name, (axis, side)), (i,))
                    if stated is not None and place in region.bounds[i]:
                        vector = tuple(inward * (i == j) for j in range(count))
                        yield stated, Surface(False, vector, inward * place)


def _condition(start: Start, name: str, face: tuple[str, str] | None = None) -> str | None:
    """The condition on all of a primitive or its face, if there is just one and it is about the unknown alone."""
    found = []
    for condition, made in start.problem.conditions.items():
        part = made.part
        if isinstance(part, Boundary) and start.unknown in involved(start.problem, condition):
            if (part.on is None or name in part.on) and (part.faces is None or face in part.faces):
                found.append((condition, part.where))
    alone = len(found) == 1 and involved(start.problem, found[0][0]) == {start.unknown}
    return found[0][0] if alone and found[0][1] is None else None


def _layer(start: Start, stated: Stated, surface: Surface, size: float, numbers: Callable) -> Layer | None:
    """The layer at a surface, if it can be seen."""
    domain, rng, n = start.domain, stream(0, "shape layers"), len(surface.vector)
    begin, end = domain.bounds[start.time]
    lower, upper = np.array(domain.bounds).T
    points = lower + (upper - lower) * rng.random((ALONG, domain.dimension))
    points[:, :n] = surface.points(lower[:n], upper[:n], rng)
    points[:, start.time] = begin
    found = np.asarray(numbers(jnp.asarray(points), jnp.asarray(surface.vector), surface.number))
    c_0, D, after, c_1, k = np.mean(found, axis=0)
    if not (np.isfinite(found).all() and D > 0):
        return None
    width = math.sqrt(4 * D * (end - begin))
    allowed = SAME * np.array([size, D, D, size / width, math.inf])
    if not np.all(np.ptp(found, axis=0) <= allowed) or abs(after - D) > SAME * D:
        return None
    k = k + surface.bend
    k = k if abs(k) * width > FLAT else FLAT / width
    layer = Layer(surface, float(D), float(c_0), float(c_1), float(k))
    if -k * width > 2 * FAR:
        return None  # it would grow beyond all bounds
    largest = abs(c_0) + abs(layer.flux / k) * abs(1 - float(erfcx(jnp.asarray(k * width / 2))))
    return layer if SMALLEST * size < largest <= LARGEST * size else None


def _numbers(start: Start, stated: Stated, curved: bool, x: Point, vector: Array, number: Array) -> Float[Array, " 5"]:
    """c_0, the diffusivity, that after a jump, c_1 and k at a point of a surface."""
    jump = start.jump(stated.condition, x) if stated.values else jnp.zeros(())
    D, _, _, after, _, _, c_1, k, _ = start.numbers(stated, x, partial(distance, curved, vector, number))
    return jnp.stack([jump, D, after, c_1, k])


def _sum(start: Start, layers: list[Layer], x: Point) -> Array:
    begin, end = start.domain.bounds[start.time]
    tau = x[start.time] - begin + BEGIN * (end - begin)
    total, untouched = jnp.zeros(()), jnp.ones(())
    for curved in (True, False):
        mine = [layer for layer in layers if layer.surface.curved == curved]
        if not mine:
            continue
        column = lambda name, of=mine: jnp.asarray([getattr(layer, name) for layer in of])
        vector, number = (jnp.asarray([getattr(layer.surface, name) for layer in mine]) for name in ("vector", "number"))
        d, s = distance(curved, vector, number, x), jnp.sqrt(4 * column("diffusivity") * tau)
        eta, k, jump = d / s, column("k"), column("jump")
        flat = erfc(eta)
        w = jump * flat if curved else jnp.zeros_like(flat)
        if any(layer.flux for layer in mine):
            w = w + column("flux") / k * (flat - jnp.exp(-eta * eta) * erfcx(eta + k * s / 2))
        total = total + jnp.sum((number / (number + d)) ** ((vector.shape[1] - 1) / 2) * w if curved else w)
        for axis in range(0 if curved else vector.shape[1]):  # opposite sides add up, others meet at corners
            ours = [abs(layer.surface.vector[axis]) * bool(layer.jump) for layer in mine]
            untouched = untouched * (1 - jnp.sum(jnp.asarray(ours) * flat)) if any(ours) else untouched
    sides = [layer.jump for layer in layers if layer.jump and not layer.surface.curved]
    return total + sides[0] * (1 - untouched) if sides else total
