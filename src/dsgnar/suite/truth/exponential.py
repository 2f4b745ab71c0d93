"""Exponential integrators for u_k' = l_k u_k + N(u)_k: the linear part is solved exactly, so that stiffness costs nothing.

`etdrk4`, order four (Cox and Matthews 2002), the paper's method for Kuramoto-Sivashinsky. Its coefficients, such as
`(-4 - z + e^z (4 - 3z + z^2)) / z^3` at z = h l_k, cancel for small z and are taken as means over a circle around z
(Kassam and Trefethen 2005).

`adams`, of any order p (exponential Adams-Bashforth, Hochbruck and Ostermann 2010, section 2.7), one evaluation of N a step:

    u(t+h) = e^z u(t) + h sum_{j<p} w_j(z) N(t - j h),      w_j(z) = int_0^1 e^{(1-s) z} L_j(s) ds,

L_j being the Lagrange polynomials of the nodes 0, -1, .., 1-p. The first p values come from ETDRK4 with much smaller
steps. For Kuramoto-Sivashinsky at h = 2^-14 order 6 leaves 1.5e-13 in 3 s, where ETDRK4 leaves 2e-8 in 8 s. It is not
made for many undamped waves: Korteweg-de Vries with 384 points needs h = 2^-16, and with 768 blows up even at 2^-17.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.polynomial import legendre

from dsgnar.suite.truth.spectral import Times, pi

CONTOUR_POINTS = 64  # as in the paper; the means converge geometrically
ORDER = 6  # order 8 blows up for Kuramoto-Sivashinsky, also at h = 2^-15
START_REFINEMENT = 32  # ETDRK4 steps per step of `adams` at the start: their error is then of a higher order, too


class Semilinear(Protocol):
    """An equation u_k' = linear_k u_k + nonlinear(u)_k, such as `spectral.Equation`."""

    @property
    def linear(self) -> np.ndarray: ...

    def nonlinear(self, state: np.ndarray, /) -> np.ndarray: ...


@dataclass(frozen=True, eq=False)
class Etdrk4:
    """One step of size h."""

    whole: np.ndarray  # exp(z)
    half: np.ndarray  # exp(z/2)
    inner: np.ndarray  # h (exp(z/2) - 1) / z
    first: np.ndarray
    middle: np.ndarray
    last: np.ndarray

    @classmethod
    def of(cls, linear: np.ndarray, h: Any) -> "Etdrk4":
        real = np.real(linear).dtype.type
        angle = 2 * pi(real) * (np.arange(CONTOUR_POINTS) + real(0.5)) / CONTOUR_POINTS
        distinct, place = np.unique(linear, return_inverse=True)  # in two dimensions many modes share a symbol
        z = h * distinct[:, None] + np.exp(1j * angle)

        def mean(values: np.ndarray) -> np.ndarray:
            average = values.mean(axis=1)[place]
            return h * (average if np.iscomplexobj(linear) else average.real)

        e = np.exp(z)
        return cls(
            np.exp(h * linear),
            np.exp(h * linear / 2),
            mean((np.exp(z / 2) - 1) / z),
            mean((-4 - z + e * (4 - 3 * z + z**2)) / z**3),
            mean(2 * (2 + z + e * (z - 2)) / z**3),
            mean((-4 - 3 * z - z**2 + e * (4 - z)) / z**3),
        )

    def step(self, u: np.ndarray, nonlinear: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        n_u = nonlinear(u)
        a = self.half * u + self.inner * n_u
        n_a = nonlinear(a)
        n_b = nonlinear(self.half * u + self.inner * n_a)
        n_c = nonlinear(self.half * a + self.inner * (2 * n_b - n_u))
        return self.whole * u + self.first * n_u + self.middle * (n_a + n_b) + self.last * n_c


def etdrk4(equation: Semilinear, start: np.ndarray, times: Times, step: float) -> np.ndarray:
    """The coefficients at increasing `times`, all multiples of the step."""
    scheme = Etdrk4.of(equation.linear, _in_precision(equation, step))
    u, done, out = start, 0, []
    for count in _counts(times, step):
        for _ in range(count - done):
            u = scheme.step(u, equation.nonlinear)
        done = count
        out.append(u)
    return _finite(np.stack(out), step)


def adams(equation: Semilinear, start: np.ndarray, times: Times, step: float, order: int = ORDER) -> np.ndarray:
    """The coefficients at increasing `times`, all multiples of the step."""
    h = _in_precision(equation, step)
    weights = h * adams_weights(h * equation.linear, order)
    whole = np.exp(h * equation.linear)
    fine = Etdrk4.of(equation.linear, h / START_REFINEMENT)
    u, done, out = start, 0, []
    past = [equation.nonlinear(u)]  # the latest first
    for count in _counts(times, step):
        for _ in range(count - done):
            if len(past) < order:
                for _ in range(START_REFINEMENT):
                    u = fine.step(u, equation.nonlinear)
            else:
                u = whole * u + sum(w * n for w, n in zip(weights, past, strict=True))
            past = [equation.nonlinear(u), *past[: order - 1]]
        done = count
        out.append(u)
    return _finite(np.stack(out), step)


def adams_weights(z: np.ndarray, order: int) -> np.ndarray:
    """w_j(z) as rows, from the moments `int_0^1 e^{(1-s) z} s^m ds` and the power series of L_j."""
    real = np.real(z).dtype.type
    moments = np.empty((order, len(z)), z.dtype)
    # Quadrature where the exponential is tame; elsewhere the recurrence by partial integration, stable for |z| > m.
    tame = np.abs(z) < 30
    s, g = _gauss(48, real)
    moments[:, tame] = (g * s ** np.arange(order)[:, None]) @ np.exp(np.outer(1 - s, z[tame]))
    phi = np.exp(z[~tame])
    for m in range(order):
        phi = (phi - real(1) / math.factorial(m)) / z[~tame]
        moments[m, ~tame] = math.factorial(m) * phi
    return np.stack([_lagrange(j, order, real) for j in range(order)]) @ moments


def _lagrange(j: int, order: int, real: Any) -> np.ndarray:
    """The power coefficients of L_j."""
    c = np.ones(1, real)
    for m in range(order):
        if m != j:
            c = np.convolve(c, np.array([m, 1], real)) / real(m - j)
    return c


def _gauss(count: int, real: Any) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre points and weights on [0, 1], NumPy's doubles sharpened by Newton's method."""
    p = np.zeros(count + 1, real)
    p[count] = 1
    slope = legendre.legder(p)
    x = np.asarray(legendre.leggauss(count)[0], real)
    for _ in range(2):
        x = x - legendre.legval(x, p) / legendre.legval(x, slope)
    return (1 + x) / 2, 1 / ((1 - x**2) * legendre.legval(x, slope) ** 2)


def _in_precision(equation: Semilinear, step: float) -> Any:
    return np.real(equation.linear).dtype.type(step)


def _counts(times: Times, step: float) -> list[int]:
    counts = [round(float(t) / step) for t in times]
    off = [float(t) for t, n in zip(times, counts, strict=True) if abs(float(t) / step - n) > 1e-6]
    if off:
        raise ValueError(
            f"the time {off[0]} is not a multiple of the step {step}; choose a step that divides all times"
        )
    return counts


def _finite(u: np.ndarray, step: float) -> np.ndarray:
    if not np.isfinite(u).all():
        raise RuntimeError(f"the integration blew up with the step {step}; try half of it")
    return u
