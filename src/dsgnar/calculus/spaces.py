"""Linear spaces of functions on the box [-1, 1]^d, with exact derivatives.

    Polynomials   products of Chebyshev polynomials, of sines and cosines along periodic axes, by total degree
    Waves         sines of random frequencies and phases; along periodic axes frequencies are multiples of pi
    Bent          functions phi of such a space, and phi s for every plane at which derivatives of order m jump,
                  s = z |z|^(m-1), z the distance to the plane

Functions are ordered from smooth to rough, so the first half of a space is a space too.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Protocol

import numpy as np
from jaxtyping import Float, Int
from numpy.polynomial import chebyshev

from dsgnar.calculus.jets import MultiIndex

Points = Float[np.ndarray, "n d"]


class Space(Protocol):
    """Functions phi_1, .., phi_K."""

    @property
    def size(self) -> int: ...

    def derivative(self, xi: Points, order: MultiIndex) -> Float[np.ndarray, "n size"]:
        """A derivative of every function at points."""
        ...


@dataclass(frozen=True, eq=False)
class Polynomials:
    """Products of functions of one variable; `degrees[k, i]` is the degree of function k along axis i."""

    degrees: Int[np.ndarray, "size d"]
    periodic: tuple[bool, ...]

    @classmethod
    def of(cls, size: int, periodic: tuple[bool, ...], stretch: tuple[int, ...] = ()) -> "Polynomials":
        """The first `size` products, by total degree; along an axis that is stretched, degrees count so much less."""
        stretch, top, every = stretch or (1,) * len(periodic), 0, []
        while len(every) < size:
            top, every = top + 1, list(_up_to(float(top), stretch))
        order = lambda degrees: (sum(k / s for k, s in zip(degrees, stretch, strict=True)), max(degrees), degrees)
        return cls(np.array(sorted(every, key=order)[:size]), periodic)

    @classmethod
    def box(cls, limits: tuple[int, ...], periodic: tuple[bool, ...]) -> "Polynomials":
        """All products up to a degree along each axis, those first that are smoothest for such limits."""
        order = lambda degrees: (sum(k / max(1, most) for k, most in zip(degrees, limits, strict=True)), degrees)
        every = product(*(range(most + 1) for most in limits))
        return cls(np.array(sorted(every, key=order)), periodic)

    @property
    def size(self) -> int:
        return len(self.degrees)

    def derivative(self, xi: Points, order: MultiIndex) -> Float[np.ndarray, "n size"]:
        out = np.ones((len(xi), self.size))
        for i, wraps in enumerate(self.periodic):
            degree = int(self.degrees[:, i].max())
            values = _harmonics(xi[:, i], degree, order[i]) if wraps else _chebyshev(xi[:, i], degree, order[i])
            out *= values[:, self.degrees[:, i]]
        return out


def _up_to(top: float, stretch: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """All degrees whose total, over the stretch of each axis, is at most so large."""
    first, *others = stretch
    for k in range(math.floor(first * top + 1e-9) + 1):
        if not others:
            yield (k,)
        else:
            yield from ((k, *rest) for rest in _up_to(top - k / first, tuple(others)))


def _chebyshev(xi: Float[np.ndarray, " n"], degree: int, order: int) -> Float[np.ndarray, "n functions"]:
    """A derivative of T_0, .., T_degree."""
    if order > degree:
        return np.zeros((len(xi), degree + 1))
    coefficients = chebyshev.chebder(np.eye(degree + 1), order)
    return chebyshev.chebvander(xi, degree - order) @ coefficients


def _harmonics(xi: Float[np.ndarray, " n"], degree: int, order: int) -> Float[np.ndarray, "n functions"]:
    """A derivative of 1, cos(pi xi), sin(pi xi), cos(2 pi xi), .."""
    number = np.arange(degree + 1)
    frequency = np.pi * ((number + 1) // 2)
    phase = np.pi / 2 * (number % 2 + (number == 0) + order)  # cos is a sine that starts a quarter later
    return frequency**order * np.sin(xi[:, None] * frequency + phase)


@dataclass(frozen=True, eq=False)
class Waves:
    """sin(frequency . xi + phase)."""

    frequencies: Float[np.ndarray, "size d"]
    phases: Float[np.ndarray, " size"]

    @classmethod
    def of(cls, size: int, periodic: tuple[bool, ...], rng: np.random.Generator) -> "Waves":
        """Random waves, up to as many of them to an axis as so many functions can resolve."""
        dimension = len(periodic)
        most = max(np.pi, np.pi / 2 * 0.7 * size ** (1 / dimension))
        frequencies = rng.uniform(-most, most, (size, dimension))
        frequencies = np.where(periodic, np.pi * np.round(frequencies / np.pi), frequencies)
        frequencies = frequencies[np.argsort(np.linalg.norm(frequencies, axis=1))]
        return cls(frequencies, rng.uniform(0, 2 * np.pi, size))

    @property
    def size(self) -> int:
        return len(self.phases)

    def derivative(self, xi: Points, order: MultiIndex) -> Float[np.ndarray, "n size"]:
        factor = np.prod(self.frequencies ** np.array(order), axis=1)
        return factor * np.sin(xi @ self.frequencies.T + self.phases + np.pi / 2 * sum(order))


Kink = tuple[int, float, int]  # axis, place in [-1, 1], order m


@dataclass(frozen=True, eq=False)
class Bent:
    """phi_1, phi_1 s_1, .., phi_1 s_K, phi_2, .. for K planes."""

    smooth: Polynomials | Waves
    kinks: tuple[Kink, ...]

    @property
    def size(self) -> int:
        return self.smooth.size * (1 + len(self.kinks))

    @property
    def degrees(self) -> Int[np.ndarray, "size d"]:
        """Those of the smooth factors."""
        assert isinstance(self.smooth, Polynomials)
        return np.repeat(self.smooth.degrees, 1 + len(self.kinks), axis=0)

    @property
    def periodic(self) -> tuple[bool, ...]:
        assert isinstance(self.smooth, Polynomials)
        return self.smooth.periodic

    def derivative(self, xi: Points, order: MultiIndex) -> Float[np.ndarray, "n size"]:
        parts = [self.smooth.derivative(xi, order), *(self._product(xi, order, kink) for kink in self.kinks)]
        return np.stack(parts, axis=2).reshape(len(xi), self.size)

    def _product(self, xi: Points, order: MultiIndex, kink: Kink) -> Float[np.ndarray, "n smooth"]:
        """A derivative of all phi s, by Leibniz' rule."""
        axis, place, m = kink
        z, total = (xi[:, axis] - place) / (1 + abs(place)), np.zeros((len(xi), self.smooth.size))
        for k in range(min(order[axis], m) + 1):
            s = np.sign(z) * math.perm(m, k) * z ** (m - k) / (1 + abs(place)) ** k
            rest = tuple(n - k * (i == axis) for i, n in enumerate(order))
            total += math.comb(order[axis], k) * s[:, None] * self.smooth.derivative(xi, rest)
        return total


def polynomials(
    size: int, periodic: tuple[bool, ...], stretch: tuple[int, ...] = (), kinks: tuple[Kink, ...] = ()
) -> Polynomials | Bent:
    """About `size` polynomials by total degree, or so many that bend at planes."""
    smooth = Polynomials.of(-(-size // (1 + len(kinks))), periodic, stretch)
    return Bent(smooth, kinks) if kinks else smooth


def waves(
    size: int, periodic: tuple[bool, ...], rng: np.random.Generator, kinks: tuple[Kink, ...] = ()
) -> Waves | Bent:
    """About `size` random waves, or so many that bend at planes."""
    smooth = Waves.of(-(-size // (1 + len(kinks))), periodic, rng)
    return Bent(smooth, kinks) if kinks else smooth
