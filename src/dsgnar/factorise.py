r"""Factorisations of the sketched Jacobian: interchangeable parts behind `Subproblem` (paper, section 3.3).

`SVD`   the paper's: singular values and both sets of vectors, on the host or on the device of A.
`Band`  float64 on the host: reduction to a band matrix, one banded LU per lambda (`band.py`).
`Gram`  float32 on the host. With the Gram matrix in float64, A A^T = Q T Q^T (T tridiagonal), b = Q^T r:

            y(lam) = (T + lam I)^-1 b,   p = -A^T Q y,   ||p||^2 = y^T T y,   T y = b - lam y,
            decrease = 1/2 b^T T y + 1/2 lam ||p||^2,    q = y^T T z  with  z = (T + lam I)^-1 y

        so that a trial costs O(m). Squaring the condition number is harmless here: singular values are resolved down to
        6e-8 of the largest, the unit roundoff of float32 and thus the accuracy of A itself. In double
        precision it would lose everything below 1e-8 and is refused.
`Auto`  the fastest of them for the shape, type and platform, by the times in its docstring.
"""

from dataclasses import dataclass
from typing import Literal, Protocol

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from scipy.linalg.blas import get_blas_funcs
from scipy.linalg.lapack import get_lapack_funcs

from dsgnar.band import Band
from dsgnar.subproblem import FactorisationError, Spectral, Subproblem, Trial, checked

_RESOLUTION = 2.0**-24  # unit roundoff of float32; its square is 16 eps of float64, above the rounding of T
_SMALL = 300  # below, the SVD (15 ms at 300) is as fast as Band with 20 lambdas (7 + 20 x 0.5 ms)
_gemv, _syrk = get_blas_funcs(("gemv", "syrk"), dtype=np.float64)
_sytrd, _sytrd_lwork, _ormqr, _pttrf, _pttrs = get_lapack_funcs(
    ("sytrd", "sytrd_lwork", "ormqr", "pttrf", "pttrs"), dtype=np.float64
)


class Factorisation(Protocol):
    """Anything that turns the sketched Jacobian and residual into a `Subproblem`."""

    def factorise(self, A, r) -> Subproblem: ...


@dataclass(frozen=True)
class SVD:
    """The paper's factorisation: a thin singular value decomposition.

    backend "lapack" is gesdd on the host, "jax" stays on the device of A; "auto" takes LAPACK for
    arrays that live on a CPU and JAX otherwise.
    """

    backend: Literal["auto", "jax", "lapack"] = "auto"

    def factorise(self, A, r) -> Subproblem:
        checked(A, r)
        lapack = self.backend == "lapack" or (self.backend == "auto" and platform_of(A) == "cpu")
        return _lapack_svd(np.asarray(A), np.asarray(r)) if lapack else _jax_svd(A, r)


def _lapack_svd(A: np.ndarray, r: np.ndarray) -> Spectral:
    try:  # a row-major A is its transpose in LAPACK's order: no copy but the one that gesdd overwrites
        V, s, Ut = scipy.linalg.svd(A.T, full_matrices=False, check_finite=False, lapack_driver="gesdd")
    except scipy.linalg.LinAlgError as error:
        raise FactorisationError(f"the SVD of the {A.shape} sketched Jacobian did not converge: {error}") from error
    return _spectral(s, Ut @ r, r, lambda t: V @ t.astype(A.dtype))


def _jax_svd(A, r) -> Spectral:
    with jax.enable_x64(True):
        U, s, Vt = jnp.linalg.svd(jnp.asarray(A), full_matrices=False)
        c = jnp.asarray(r) @ U

    def lift(t: np.ndarray):
        with jax.enable_x64(True):
            return jnp.asarray(t.astype(Vt.dtype)) @ Vt

    if not bool(jnp.all(jnp.isfinite(s))):
        raise FactorisationError(f"JAX's SVD of the {A.shape} sketched Jacobian did not converge")
    return _spectral(s, c, r, lift)


def _spectral(s, c, r, lift) -> Spectral:
    s, c = np.asarray(s, np.float64), np.asarray(c, np.float64)
    norm = float(np.linalg.norm(np.asarray(r, np.float64)))
    return Spectral(norm, float(np.linalg.norm(s * c)), 0.0, s, c, lift)


@dataclass(frozen=True)
class Gram:
    """Float32 only: the Gram matrix in float64, tridiagonalised once."""

    def factorise(self, A, r) -> Subproblem:
        checked(A, r)
        if A.dtype != np.float32 or A.shape[0] > A.shape[1]:
            raise ValueError(f"Gram needs a float32 matrix with m <= n, not {A.dtype} {A.shape}; use Band or SVD")
        A64, r64 = np.asarray(A).astype(np.float64), np.asarray(r, np.float64)
        m = A64.shape[0]
        gram = _syrk(1.0, A64.T, trans=1, lower=1)
        work = int(_sytrd_lwork(m, lower=1)[0])
        q, d, e, tau, _ = _sytrd(gram, lower=1, lwork=work, overwrite_a=1)
        reflectors = q, tau
        b = _rotate(reflectors, r64, "T")
        off = np.concatenate(([0.0], np.abs(e), [0.0]))
        largest = float(np.max(np.abs(d) + off[1:] + off[:-1])) if m else 0.0  # >= s_max^2, at most twice
        floor = max(_RESOLUTION**2 * largest, 1e-100)  # positive for A = 0 too
        Tb = d * b
        Tb[:-1] += e * b[1:]
        Tb[1:] += e * b[:-1]
        gradient = float(max(b @ Tb, 0.0)) ** 0.5  # ||A^T r||^2 = b^T T b
        return GramSubproblem(float(np.linalg.norm(r64)), gradient, floor, A64, reflectors, d, e, b)


def _rotate(reflectors: tuple[np.ndarray, np.ndarray], x: np.ndarray, trans: str) -> np.ndarray:
    """Q x or Q^T x for the Q of dsytrd (lower): the identity and then m - 1 reflectors on the rest."""
    q, tau = reflectors
    if tau.size == 0:
        return x.copy()
    rest, _, _ = _ormqr("L", trans, q[1:, :-1], tau, x[1:, None], 64 * tau.size)
    return np.concatenate((x[:1], rest[:, 0]))


@dataclass
class GramSubproblem(Subproblem):
    """T + lam I, solved in O(m)."""

    A: np.ndarray  # float64
    reflectors: tuple[np.ndarray, np.ndarray]  # Q, as dsytrd leaves it
    d: np.ndarray  # diagonal of T
    e: np.ndarray  # its off-diagonal
    b: np.ndarray  # Q^T r

    def evaluate(self, lam: float) -> Trial:
        y, solve = self._solve(lam)
        Ty = self.b - lam * y
        norm = float(max(y @ Ty, 0.0)) ** 0.5
        decrease = 0.5 * float(self.b @ Ty) + 0.5 * lam * norm * norm
        q = float(Ty @ solve(y))
        return Trial(lam, norm, decrease, min(-q / norm, 0.0) if norm > 0.0 else 0.0)

    def _solve(self, lam: float):
        d, e, info = _pttrf(self.d + lam, self.e)
        if info != 0:
            raise FactorisationError(f"the Gram matrix is not positive definite at lambda = {lam:.3e}; use SVD")

        def solve(x: np.ndarray) -> np.ndarray:
            return _pttrs(d, e, x)[0].ravel()

        return solve(self.b), solve

    def step(self, lam: float) -> np.ndarray:
        y, _ = self._solve(max(float(lam), self.floor))
        return _gemv(-1.0, self.A.T, _rotate(self.reflectors, y, "N")).astype(np.float32)


@dataclass(frozen=True)
class Auto:
    """The fastest factorisation for the shape, type and platform of A."""

    def factorise(self, A, r) -> Subproblem:
        checked(A, r)
        m, n = A.shape
        return best(m, n, A.dtype, platform_of(A)).factorise(A, r)


def platform_of(A) -> str:
    """Where A lives: "cpu" for NumPy arrays, and JAX's name of the device otherwise."""
    return next(iter(A.devices())).platform if isinstance(A, jax.Array) else "cpu"


def best(m: int, n: int, dtype, platform: str) -> "Factorisation":
    """The factorisation that took least time. Milliseconds of CPU time, one thread, shared machine:

    | A              | gesdd  | factorise              | per lambda | step |
    |----------------|--------|------------------------|------------|------|
    | 700x1447 f32   | 180    | Gram 43, Band 53       | 0.03, 0.9  | 2.2  |
    | 700x1447 f64   | 344    | Band 95                | 0.8        | 2.4  |
    | 2000x2000 f64  | 3,736  | Band 789 (width 64 770)| 3.1 (9.6)  | 4.3  |
    | 2000x5125 f64  | 8,372  | Band 1,899             | 3.5        | 17   |
    | 4000x4000 f64  | 31,513 | Band 5,828             | 6.1        | 11   |

    With two threads on two idle cores 2000x2000 took 2,059 (gesdd) and 562 (Band; width 24 627, 48 582, 64 500, but
    8 and 17 per lambda for the last two). An iteration tries 10 to 30 lambdas, hence width 32.
    """
    if platform != "cpu":
        return SVD("jax")
    if np.dtype(dtype) == np.float32 and m <= n:
        return Gram()
    return Band() if min(m, n) >= _SMALL else SVD("lapack")
