"""Laplace's and the screened Poisson equation in a square with round holes, by expansions around the holes.

    -lap(v) + k^2 v = 0 in the square [-a, a]^2 without discs (c_j, r_j),    v given on the circles and on the sides:

    v = sum_jm K_m(k |x - c_j|) (A_jm cos m theta_j + B_jm sin m theta_j)
      + sum_m  I_m(k |x|) (C_m cos m theta + D_m sin m theta)

with powers and a logarithm in the place of Bessel functions where k = 0. Each term satisfies the equation; the coefficients
follow from the boundary values by least squares at many points. By the maximum principle the largest error on the boundary,
looked for at other points, bounds the error inside. Values that are constant along the sides of the square make v smooth at
its corners, where it continues as an odd function, so that the expansions converge exponentially.

Poisson2d-CG has a source f(x, y) too. With g = f - 0.2 k^2 the part w of u = 0.2 + w + v solves -lap(w) + k^2 w = g with
w = 0 on the sides, without holes: Chebyshev collocation for f, and a series for the constant, which is rough at corners.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy import linalg, special

from dsgnar.calculus.streams import stream

Discs = tuple[tuple[float, float, float], ...]
Function = Callable[[np.ndarray], np.ndarray]  # points (n, 2) -> values (n,)


@dataclass(frozen=True, eq=False)
class Expansion:
    """A solution of -lap(v) + k^2 v = 0 around holes."""

    half: float  # a
    discs: Discs
    k: float
    orders: int
    coefficients: np.ndarray

    def __call__(self, points: np.ndarray) -> np.ndarray:
        return terms(points, self.half, self.discs, self.k, self.orders) @ self.coefficients


def terms(points: np.ndarray, half: float, discs: Discs, k: float, orders: int) -> np.ndarray:
    """Every term at points: around each hole, then around the centre, each near one on the boundary that it belongs to."""
    columns = []
    for x, y, r in discs:
        columns += _waves(points - np.array([x, y]), lambda m, rho, r=r: _outer(m, rho, r, k), orders)
    columns += _waves(points, lambda m, rho: _inner(m, rho, half * np.sqrt(2), k), 2 * orders)
    return np.stack(columns, axis=1)


def _waves(away: np.ndarray, radial: Callable, orders: int) -> list[np.ndarray]:
    rho, theta = np.hypot(*away.T), np.arctan2(away[:, 1], away[:, 0])
    out = []
    for m in range(orders + 1):
        values = radial(m, rho)
        out.append(values * np.cos(m * theta))
        if m:
            out.append(values * np.sin(m * theta))
    return out


def _outer(m: int, rho: np.ndarray, r: float, k: float) -> np.ndarray:
    if k:
        return special.kve(m, k * rho) / special.kve(m, k * r) * np.exp(-k * (rho - r))
    return (r / rho) ** m if m else np.log(rho)


def _inner(m: int, rho: np.ndarray, r: float, k: float) -> np.ndarray:
    return special.ive(m, k * rho) / special.ive(m, k * r) * np.exp(k * (rho - r)) if k else (rho / r) ** m


def boundary(half: float, discs: Discs, count: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Points of the sides, then of each circle; random ones with twice as many near corners."""
    s = half * np.concatenate([np.cos(np.pi * rng.random(count)), 2 * rng.random(count) - 1])
    sides = [np.stack(p, 1) for e in (-half, half) for p in ((s, np.full_like(s, e)), (np.full_like(s, e), s))]
    angle = 2 * np.pi * rng.random(2 * count)
    return [np.concatenate(sides), *(np.stack([x + r * np.cos(angle), y + r * np.sin(angle)], 1) for x, y, r in discs)]


def around(half: float, discs: Discs, k: float, orders: int, values: list[Function]) -> tuple[Expansion, float]:
    """The expansion with given values on the sides and on each circle, and the largest error on the boundary."""

    def system(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        pieces = boundary(half, discs, 8 * orders, rng)
        b = np.concatenate([f(p) for f, p in zip(values, pieces, strict=True)])
        return terms(np.concatenate(pieces), half, discs, k, orders), b

    A, b = system(stream(0, "holes"))
    scale = np.abs(A).max(axis=0)
    c = linalg.lstsq(A / scale, b, cond=1e-14)[0] / scale  # type: ignore[index]
    A, b = system(stream(1, "holes"))
    return Expansion(half, discs, k, orders, c), float(np.abs(A @ c - b).max())


def _constant(value: float) -> Function:
    return lambda points: np.full(len(points), value)


# --- Poisson2d-C ------------------------------------------------------------------------------------------------------


@cache
def classic(discs: Discs, orders: int = 24) -> tuple[Function, float]:
    """lap(u) = 0 in [-1/2, 1/2]^2, u = 1 on the sides and 0 on the circles; and a bound of its error."""
    return around(0.5, discs, 0.0, orders, [_constant(1.0), *[_constant(0.0)] * len(discs)])


# --- Poisson2d-CG -----------------------------------------------------------------------------------------------------

SCREEN = 8.0  # k


def source(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return 10 * (17 + x**2 + y**2) * np.sin(np.pi * x) * np.sin(4 * np.pi * y)


@cache
def uneven(discs: Discs, orders: int = 28, degree: int = 64, terms_: int = 3000) -> tuple[Function, float]:
    """-lap(u) + 64 u = f in [-1, 1]^2, u = 0.2 on the sides and 1 on the circles; and its error on the boundary."""
    table = _collocated(degree)

    def whole(points: np.ndarray) -> np.ndarray:
        vander = [np.polynomial.chebyshev.chebvander(points[:, i], degree) for i in range(2)]
        return 0.2 + np.einsum("ni,ij,nj->n", vander[0], table, vander[1]) + _even(-0.2 * SCREEN**2, points, terms_)

    holes, error = around(1.0, discs, SCREEN, orders, [_constant(0.0), *[lambda p: 1 - whole(p)] * len(discs)])
    return lambda points: whole(points) + holes(points), error


def _collocated(degree: int) -> np.ndarray:
    """Chebyshev coefficients of the solution of -lap(w) + k^2 w = f with w = 0 on the sides."""
    nodes = np.cos(np.pi * np.arange(degree + 1) / degree)
    basis = np.polynomial.chebyshev.chebvander(nodes, degree)
    twice = np.polynomial.chebyshev.chebder(np.eye(degree + 1), 2)
    D = np.polynomial.chebyshev.chebvander(nodes, degree - 2) @ twice @ np.linalg.inv(basis)
    inner = D[1:-1, 1:-1]
    found, vectors = np.linalg.eig(inner)
    back = np.linalg.inv(vectors)
    f = source(nodes[1:-1, None], nodes[None, 1:-1])
    spectral = (back @ f @ back.T) / (SCREEN**2 - found[:, None] - found[None, :])
    values = np.zeros((degree + 1, degree + 1))
    values[1:-1, 1:-1] = np.real(vectors @ spectral @ vectors.T)
    inverse = np.linalg.inv(basis)
    return inverse @ values @ inverse.T


def _even(g: float, points: np.ndarray, count: int) -> np.ndarray:
    """The solution of -lap(w) + k^2 w = g with w = 0 on the sides of [-1, 1]^2, g a number.

    That of one variable x, minus what makes it vanish at y = +-1: a series in cos(mu x), mu = pi/2, 3 pi/2, ..
    """
    order = np.argsort(1 - np.abs(points[:, 1]))  # terms reach less and less far from y = +-1
    x, y = points[order].T
    gap = 1 - np.abs(y)
    out = g / SCREEN**2 * (1 - np.cosh(SCREEN * x) / np.cosh(SCREEN))
    for i in range(count):
        mu = (2 * i + 1) * np.pi / 2
        rate = np.hypot(SCREEN, mu)
        n = np.searchsorted(gap, 40 / rate)
        fall = (np.exp(rate * (y[:n] - 1)) + np.exp(-rate * (y[:n] + 1))) / (1 + np.exp(-2 * rate))
        out[:n] -= g * 2 * (-1) ** i / mu / rate**2 * np.cos(mu * x[:n]) * fall
    return out[np.argsort(order)]
