"""Balls and ellipsoids in any number of dimensions.

    ball         phi = |x - c| - r,    nu = (x - c) / |x - c|
    ellipsoid    x = c + Q (radii * y), |y| <= 1;    with s = |y|:  phi = s (s - 1) / |grad(s^2 / 2)|, the distance to first
                 order, exact in sign and zero set;    nu = grad s / |grad s|

Uniform points on an ellipsoid are the images of uniform points y of the sphere, kept with a probability in proportion to the
factor |Q (y / radii)| by which the map stretches the surface there (times the volume factor, a constant).
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import special
from scipy.stats import qmc

from dsgnar.problem.shapes.tree import Leaf, named, number, several


def sphere(count: int, dimension: int, rng: np.random.Generator) -> np.ndarray:
    """Points, uniform on the unit sphere."""
    points = rng.standard_normal((count, dimension))
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def _circle(angle: np.ndarray) -> np.ndarray:
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def unit_ball(dimension: int) -> float:
    """The volume of the unit ball."""
    return math.pi ** (dimension / 2) / math.gamma(dimension / 2 + 1)


@dataclass(frozen=True, eq=False, init=False)
class Ball(Leaf):
    """A ball: `Ball(x=1, y=1, radius=0.3, name="hole")` is a disc, with three axes a ball, and so on."""

    centre: tuple[float, ...]
    radius: float

    def __init__(self, *, radius: float, name: Any = "ball", **centre: float):
        axes = several(centre, "Ball(x=0, y=0, radius=1)")
        c = tuple(number(v, f"Ball: the centre's {axis}") for axis, v in centre.items())
        r = number(radius, "Ball: the radius")
        if r <= 0:
            raise ValueError(f"Ball: the radius {r:g} must be positive, or the ball has no inside")
        super().__init__(axes, tuple((v - r, v + r) for v in c), named(name))
        object.__setattr__(self, "centre", c)
        object.__setattr__(self, "radius", r)

    @property
    def volume(self) -> float:
        return unit_ball(len(self.axes)) * self.radius ** len(self.axes)

    @property
    def surface(self) -> float:
        return len(self.axes) * self.volume / self.radius

    def depth(self, x: Any, xp: Any) -> Any:
        return xp.sqrt(xp.sum((x - xp.asarray(self.centre, x.dtype)) ** 2, axis=-1)) - self.radius

    def inside(self, points: np.ndarray) -> np.ndarray:
        return np.sum((points - np.array(self.centre)) ** 2, axis=-1) <= self.radius**2

    def normal(self, x: Any, xp: Any) -> Any:
        away = x - xp.asarray(self.centre, x.dtype)
        return away / xp.sqrt(xp.sum(away**2, axis=-1, keepdims=True))

    def on_surface(self, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        normals = sphere(count, len(self.axes), rng)
        return np.array(self.centre) + self.radius * normals, normals

    def along(self, share: np.ndarray) -> np.ndarray:
        return np.array(self.centre) + self.radius * _circle(2 * np.pi * share)

    def in_volume(self, count: int, rng: np.random.Generator) -> np.ndarray:
        d = len(self.axes)
        lengths = rng.random((count, 1)) ** (1 / d)
        return np.array(self.centre) + self.radius * lengths * sphere(count, d, rng)

    def vanishing(self, x: Any, xp: Any, sign: int) -> Any:
        squared = sum((x[..., i] - c) ** 2 for i, c in enumerate(self.centre))
        return sign * (1.0 - squared * (1 / self.radius**2))


@dataclass(frozen=True, eq=False, init=False)
class Ellipse(Leaf):
    """An ellipse, or an ellipsoid: `Ellipse(x=0, y=0, radii=(2, 1), angle=0.3)`.

    `radii` are the half-axes in the order of the axes. In two dimensions `angle` turns it, in radians, anticlockwise.
    """

    centre: tuple[float, ...]
    radii: tuple[float, ...]
    angle: float

    def __init__(self, *, radii: Any, angle: float = 0.0, name: Any = "ellipse", **centre: float):
        axes = several(centre, "Ellipse(x=0, y=0, radii=(2, 1))")
        c = tuple(number(v, f"Ellipse: the centre's {axis}") for axis, v in centre.items())
        given = tuple(np.atleast_1d(np.asarray(radii, object)).tolist())
        if len(given) != len(axes):
            raise ValueError(f"Ellipse: it needs {len(axes)} radii, one for each of {', '.join(axes)}, got {len(given)}")
        r = tuple(number(v, "Ellipse: a radius") for v in given)
        if min(r) <= 0:
            raise ValueError(f"Ellipse: the radii {r} must be positive, or the ellipse has no inside")
        turn = number(angle, "Ellipse: the angle")
        if turn and len(axes) != 2:
            raise ValueError("Ellipse: only an ellipse in two dimensions takes an angle")
        object.__setattr__(self, "centre", c)
        object.__setattr__(self, "radii", r)
        object.__setattr__(self, "angle", turn)
        reach = np.linalg.norm(self.turned * np.array(r), axis=1)
        super().__init__(axes, tuple((v - w, v + w) for v, w in zip(c, reach.tolist(), strict=True)), named(name))

    @property
    def turned(self) -> np.ndarray:
        """Q: the directions of the half-axes, in columns."""
        if not self.angle:
            return np.eye(len(self.radii))
        c, s = math.cos(self.angle), math.sin(self.angle)
        return np.array([[c, -s], [s, c]])

    @property
    def volume(self) -> float:
        return unit_ball(len(self.axes)) * math.prod(self.radii)

    @property
    def surface(self) -> float:
        return self._surface

    @cached_property
    def _surface(self) -> float:
        """By elliptic integrals in two dimensions; in more as a mean over the sphere, to a thousandth."""
        d, r = len(self.axes), np.array(self.radii)
        if d == 2:
            long, short = max(r), min(r)
            return float(4 * long * special.ellipe(1 - (short / long) ** 2))
        normal = special.ndtri(np.clip(qmc.Sobol(d, rng=0).random_base2(16), 1e-12, 1 - 1e-12))
        y = normal / np.linalg.norm(normal, axis=1, keepdims=True)
        return float(d * unit_ball(d) * np.prod(r) * np.mean(np.linalg.norm(y / r, axis=1)))

    def _unit(self, x: Any, xp: Any) -> Any:
        """y: the point in the coordinates in which the ellipsoid is the unit ball."""
        away = x - xp.asarray(self.centre, x.dtype)
        return (away @ xp.asarray(self.turned, x.dtype)) / xp.asarray(self.radii, x.dtype)

    def _slope(self, y: Any, xp: Any) -> Any:
        """The gradient of s^2 / 2 along the axes of space."""
        return (y / xp.asarray(self.radii, y.dtype)) @ xp.asarray(self.turned.T, y.dtype)

    def depth(self, x: Any, xp: Any) -> Any:
        y = self._unit(x, xp)
        s, slope = xp.sqrt(xp.sum(y**2, axis=-1)), self._slope(y, xp)
        steep = xp.sqrt(xp.sum(slope**2, axis=-1))
        return xp.where(steep > 0, s * (s - 1) / xp.where(steep > 0, steep, 1), -min(self.radii))

    def normal(self, x: Any, xp: Any) -> Any:
        slope = self._slope(self._unit(x, xp), xp)
        return slope / xp.sqrt(xp.sum(slope**2, axis=-1, keepdims=True))

    def on_surface(self, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        found, r = np.empty((0, len(self.radii))), np.array(self.radii)
        while len(found) < count:
            y = sphere(max(64, 2 * count), len(r), rng)
            stretch = np.linalg.norm(y / r, axis=1) * r.min()
            found = np.concatenate([found, y[rng.random(len(y)) < stretch]])
        points = np.array(self.centre) + (found[:count] * r) @ self.turned.T
        return points, self.normal(points, np)

    def along(self, share: np.ndarray) -> np.ndarray:
        """By Newton's method: the length to an angle is an elliptic integral."""
        long, short = self.radii
        m, angle = 1 - (short / long) ** 2, 2 * np.pi * share
        from_top = lambda a: long * special.ellipeinc(a, m)  # anticlockwise from the end of the second half-axis
        for _ in range(20):
            angle -= (from_top(angle) - share * self.surface) / (long * np.sqrt(1 - m * np.sin(angle) ** 2))
        return np.array(self.centre) + (_circle(angle + np.pi / 2) * np.array(self.radii)) @ self.turned.T

    def in_volume(self, count: int, rng: np.random.Generator) -> np.ndarray:
        d = len(self.axes)
        y = rng.random((count, 1)) ** (1 / d) * sphere(count, d, rng)
        return np.array(self.centre) + (y * np.array(self.radii)) @ self.turned.T

    def vanishing(self, x: Any, xp: Any, sign: int) -> Any:
        away = [x[..., i] - c for i, c in enumerate(self.centre)]
        turned, out = self.turned, 1.0
        for k, r in enumerate(self.radii):
            out = out - (sum(float(turned[i, k]) * a for i, a in enumerate(away)) * (1 / r)) ** 2
        return sign * out
