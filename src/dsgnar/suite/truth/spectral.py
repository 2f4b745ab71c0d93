"""Fourier series for periodic equations of the form (Appendix C of the paper)

    u_t + a u u_x = L u,        u(x, t) = sum_k u_k(t) exp(i k x),      u_k' = l_k u_k - (a/2) i k (u^2)_k.

Burgers, Korteweg-de Vries and Kuramoto-Sivashinsky differ only in `a` and the symbol `l_k`. The product is formed on a grid
that is 3/2 times finer, so that no alias of it falls on a kept mode (Orszag 1971). A real function has `u_{-k} = conj u_k`:
the arrays hold k >= 0 only. Everything works in any real type of NumPy; extended precision (`EXTENDED`) keeps the rounding
errors of 10^5 steps below what a double can show, also where chaos multiplies them.

Here is the adaptive explicit integrator, DOP853 (Hairer, Norsett and Wanner 1993); the exponential ones, which share
nothing with it but the equation, are in `exponential.py`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import fft
from scipy.integrate import solve_ivp

EXTENDED = np.longdouble  # 64 bits of mantissa on x86; the same as double on some other machines
# The paper's 1e-15 is asked for; SciPy raises smaller relative tolerances to this one.
RELATIVE_TOLERANCE = 100 * np.finfo(float).eps
ABSOLUTE_TOLERANCE = 1e-15

Times = Sequence[float] | np.ndarray


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
        cls,
        points: int,
        length: Any,
        strength: float,
        symbol: Callable[[np.ndarray], np.ndarray],
        dtype: Any = np.float64,
    ) -> "Equation":
        """The equation with the modes that a grid of `points` resolves; `symbol` maps k to l_k."""
        k = 2 * pi(dtype) / np.asarray(length, dtype) * np.arange(points // 2, dtype=dtype)
        return cls(k, symbol(k), strength)

    def nonlinear(self, u: np.ndarray) -> np.ndarray:
        """-(a/2) i k (u^2)_k, without aliasing."""
        values = np.asarray(fft.irfft(u, 3 * len(u), norm="forward"))
        square = np.asarray(fft.rfft(values * values, norm="forward"))[: len(u)]
        return self.wavenumbers * square * (-0.5j * self.strength)

    def rate(self, u: np.ndarray) -> np.ndarray:
        """u_k'."""
        return self.linear * u + self.nonlinear(u)

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
    return np.asarray(np.real(u @ waves), np.float64)


def relative(values: np.ndarray, reference: np.ndarray) -> float:
    """The relative l2 difference (eq. 18 of the paper)."""
    return float(np.linalg.norm(values - reference) / np.linalg.norm(reference))


def dop853(equation: Equation, start: np.ndarray, times: Times, largest: float = np.inf) -> np.ndarray:
    """The coefficients at `times` by DOP853, with steps of at most `largest`."""
    return _dop853(lambda t, u: equation.rate(u), start, times, largest)


def dop853_integrating(equation: Equation, start: np.ndarray, times: Times, largest: float = np.inf) -> np.ndarray:
    """The same for `v_k = exp(-l_k t) u_k`: an imaginary symbol's fast oscillations are taken out."""

    def rhs(t: float, v: np.ndarray) -> np.ndarray:
        factor = np.exp(equation.linear * t)
        return equation.nonlinear(v * factor) / factor

    return _dop853(rhs, start, times, largest) * np.exp(equation.linear * np.asarray(times)[:, None])


def _dop853(rhs: Callable, start: np.ndarray, times: Times, largest: float) -> np.ndarray:
    """From output to output: the integrator's interpolant in between would be of order seven only."""
    u, t, out = start, 0.0, []
    for time in times:
        solution = solve_ivp(
            rhs,
            (t, time),
            u,
            "DOP853",
            t_eval=[time],
            rtol=RELATIVE_TOLERANCE,
            atol=ABSOLUTE_TOLERANCE,
            max_step=largest,
        )
        if not solution.success:
            raise RuntimeError(f"DOP853 stopped between t = {t} and {time}: {solution.message}; use fewer modes")
        u, t = solution.y[:, -1], float(time)
        out.append(u)
    return np.stack(out)
