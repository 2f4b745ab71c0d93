"""Fourier series and time integrators for periodic equations of the form (Appendix C of the paper)

    u_t + a u u_x = L u,        u(x, t) = sum_k u_k(t) exp(i k x),      u_k' = l_k u_k - (a/2) i k (u^2)_k.

Burgers, Korteweg-de Vries and Kuramoto-Sivashinsky differ only in `a` and the symbol `l_k`. The product is formed on a grid
that is 3/2 times finer, so that no alias of it falls on a kept mode (Orszag 1971). A real function has `u_{-k} = conj u_k`:
the arrays hold k >= 0 only.

Three integrators, which have nothing in common but the equation:

  `etdrk4`               exponential Runge-Kutta of order four (Cox and Matthews 2002), whose coefficients are means over a circle
                         around `h l_k`, free of cancellation (Kassam and Trefethen 2005). Any real type of NumPy serves; in
                         extended precision the rounding errors stay below what a double can show, also in chaos.
  `dop853`               the explicit pair of order eight (Hairer, Norsett and Wanner 1993), adaptive, on u itself.
  `dop853_integrating`   the same on `v_k = exp(-l_k t) u_k`, for symbols that are imaginary.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import fft
from scipy.integrate import solve_ivp

# SciPy raises smaller relative tolerances to this value.
RELATIVE_TOLERANCE = 100 * np.finfo(float).eps
ABSOLUTE_TOLERANCE = 1e-15
CONTOUR_POINTS = 64  # as in the paper; the means converge geometrically


def pi(dtype: Any = np.float64) -> Any:
    """pi in the given precision."""
    return 4 * np.arctan(np.ones((), dtype))


@dataclass(frozen=True, eq=False)
class Equation:
    """u_k' = linear_k u_k + nonlinear(u)_k for the modes k >= 0."""

    wavenumbers: np.ndarray
    linear: np.ndarray
    strength: float  # a, the factor of u u_x

    @classmethod
    def of(
        cls, points: int, length: Any, strength: float, symbol: Callable[[np.ndarray], np.ndarray], dtype: Any = np.float64
    ) -> "Equation":
        """The equation with the modes that a grid of `points` resolves; `symbol` maps k to l_k."""
        k = 2 * pi(dtype) / np.asarray(length, dtype) * np.arange(points // 2, dtype=dtype)
        return cls(k, symbol(k), strength)

    def nonlinear(self, u: np.ndarray) -> np.ndarray:
        """-(a/2) i k (u^2)_k, without aliasing."""
        values = fft.irfft(u, 3 * len(u), norm="forward")
        square = fft.rfft(values * values, norm="forward")[: len(u)]
        return self.wavenumbers * square * (-0.5j * self.strength)

    def state(self, modes: dict[int, complex]) -> np.ndarray:
        """Coefficients that vanish but for the given ones, in the precision of the equation."""
        u = np.zeros(len(self.wavenumbers), np.result_type(self.wavenumbers, np.complex64))
        for k, value in modes.items():
            u[k] = value
        return u


def evaluate(u: np.ndarray, wavenumbers: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The real function with coefficients `u` (..., modes) at the points x: an array (..., points) in double precision."""
    waves = np.exp(1j * wavenumbers[:, None] * np.asarray(x, wavenumbers.dtype))
    waves[1:] *= 2
    return np.asarray((u @ waves).real, np.float64)


@dataclass(frozen=True, eq=False)
class Etdrk4:
    """The coefficients of one step of size h."""

    whole: np.ndarray  # exp(h l)
    half: np.ndarray  # exp(h l / 2)
    inner: np.ndarray  # h (exp(z/2) - 1) / z at z = h l
    first: np.ndarray
    middle: np.ndarray
    last: np.ndarray

    @classmethod
    def of(cls, linear: np.ndarray, h: Any) -> "Etdrk4":
        real = linear.real.dtype.type
        angle = 2 * pi(real) * (np.arange(CONTOUR_POINTS) + real(0.5)) / CONTOUR_POINTS
        z = h * linear[:, None] + np.exp(1j * angle)

        def mean(values: np.ndarray) -> np.ndarray:
            average = values.mean(axis=1)
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


def etdrk4(equation: Equation, start: np.ndarray, times: Sequence[float] | np.ndarray, largest: float) -> np.ndarray:
    """The coefficients at increasing `times` (from time 0), with equal steps of at most `largest` between two of them."""
    real = equation.linear.real.dtype.type
    u, t, out, schemes = start, real(0), [], {}
    for time in np.asarray(times, real):
        count = max(1, int(np.ceil(float((time - t) / largest) - 1e-9)))
        h = (time - t) / count
        # Times that are not binary fractions differ in the last bit: a key of 12 digits finds the equal steps, and the
        # scheme is then that of the first of them.
        scheme = schemes.setdefault(f"{float(h):.12e}", None) or Etdrk4.of(equation.linear, h)
        schemes[f"{float(h):.12e}"] = scheme
        for _ in range(count):
            u = scheme.step(u, equation.nonlinear)
        t = time
        out.append(u)
    return np.stack(out)


def dop853(equation: Equation, start: np.ndarray, times: Sequence[float] | np.ndarray) -> np.ndarray:
    """The coefficients at `times` by DOP853 at the tightest tolerances."""
    return _dop853(lambda t, u: equation.linear * u + equation.nonlinear(u), start, times)


def dop853_integrating(equation: Equation, start: np.ndarray, times: Sequence[float] | np.ndarray) -> np.ndarray:
    """The same for a purely imaginary symbol, whose fast oscillations the factor exp(l_k t) takes out."""

    def rhs(t: float, v: np.ndarray) -> np.ndarray:
        factor = np.exp(equation.linear * t)
        return equation.nonlinear(v * factor) / factor

    return _dop853(rhs, start, times) * np.exp(equation.linear * np.asarray(times)[:, None])


def _dop853(rhs: Callable, start: np.ndarray, times: Sequence[float] | np.ndarray) -> np.ndarray:
    """One output after the other: the integrator's own interpolant is of order seven only."""
    u, t, out = start, 0.0, []
    step = None
    for time in times:
        solution = solve_ivp(
            rhs, (t, time), u, "DOP853", t_eval=[time], rtol=RELATIVE_TOLERANCE, atol=ABSOLUTE_TOLERANCE, first_step=step
        )
        if not solution.success:
            raise RuntimeError(f"DOP853 stopped at t = {solution.t}: {solution.message}; use fewer modes")
        u, t = solution.y[:, -1], float(time)
        out.append(u)
    return np.stack(out)
