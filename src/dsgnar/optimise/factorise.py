r"""Factorisations of the sketched Jacobian: interchangeable parts behind `Subproblem` (paper, section 3.3).

`SVD`   the paper's: singular values and both sets of vectors, on the host or on the device of A.
`Band`  on the host, in either precision: reduction to a band matrix, one banded LU per lambda (`band.py`).
`Auto`  the fastest of them for the shape, type and platform, by the times in its docstring.

A Gram matrix in float64 of a float32 sketch would be a little faster than `Band`, but its regularisation cannot fall below
the square of float32's roundoff: Burgers (seeds 0, 1) ended at 1.1e-6 and 5.0e-7 with it, at 6.2e-7 and 3.7e-7 with `Band`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jaxtyping import Float

from dsgnar.calculus import choices
from dsgnar.optimise.band import Band
from dsgnar.optimise.subproblem import (
    AnyArray,
    FactorisationError,
    Matrix,
    OfColumns,
    OfRows,
    Spectral,
    Subproblem,
    checked,
)

_SMALL = 300  # below, the SVD (15 ms at 300) is as fast as Band with 20 lambdas (7 + 20 x 0.5 ms)


class Factorisation(Protocol):
    """Anything that turns the sketched Jacobian and residual into a `Subproblem`."""

    def factorise(self, A: Matrix, r: OfRows, g: OfColumns | None = None, overwrite: bool = False) -> Subproblem:
        """The problem of A and r; a gradient `g`, where there is one, takes the place of A^T r.

        With `overwrite` the memory of A may be used, if it is the host's: nobody may look at A afterwards.
        """
        ...


@dataclass(frozen=True)
class SVD:
    """The paper's factorisation: a thin singular value decomposition.

    backend "lapack" is gesdd on the host, "jax" stays on the device of A; "auto" takes LAPACK for
    arrays that live on a CPU and JAX otherwise.
    """

    backend: Literal["auto", "jax", "lapack"] = "auto"

    def factorise(self, A: Matrix, r: OfRows, g: OfColumns | None = None, overwrite: bool = False) -> Subproblem:
        checked(A, r, g)
        lapack = self.backend == "lapack" or (self.backend == "auto" and choices.of(platform_of(A)).host_factorisation)
        if lapack:
            return _lapack_svd(np.asarray(A), np.asarray(r), None if g is None else np.asarray(g))
        return _jax_svd(A, r, g)


def _lapack_svd(A: Float[np.ndarray, "m n"], r: Float[np.ndarray, " m"], g: Float[np.ndarray, " n"] | None) -> Spectral:
    try:  # a row-major A is its transpose in LAPACK's order: no copy but the one that gesdd overwrites
        V, s, Ut = scipy.linalg.svd(A.T, full_matrices=False, check_finite=False, lapack_driver="gesdd")
    except scipy.linalg.LinAlgError as error:
        raise FactorisationError(f"the SVD of the {A.shape} sketched Jacobian did not converge: {error}") from error
    return _spectral(s, s * (Ut @ r) if g is None else g @ V, r, lambda t: V @ t.astype(A.dtype))


def _jax_svd(A: Matrix, r: OfRows, g: OfColumns | None) -> Spectral:
    with jax.enable_x64(True):
        U, s, Vt = jnp.linalg.svd(jnp.asarray(A), full_matrices=False)
        h = s * (jnp.asarray(r) @ U) if g is None else Vt @ jnp.asarray(g)

    def lift(t: Float[np.ndarray, " k"]) -> OfColumns:
        with jax.enable_x64(True):
            return jnp.asarray(t.astype(Vt.dtype)) @ Vt

    if not bool(jnp.all(jnp.isfinite(s))):
        raise FactorisationError(f"JAX's SVD of the {A.shape} sketched Jacobian did not converge")
    return _spectral(s, h, r, lift)


def _spectral(s: Float[AnyArray, " k"], h: Float[AnyArray, " k"], r: OfRows, lift: Callable) -> Spectral:
    s, h = np.asarray(s, np.float64), np.asarray(h, np.float64)
    norm = float(np.linalg.norm(np.asarray(r, np.float64)))
    return Spectral(norm, float(np.linalg.norm(h)), 0.0, s, h, lift)


@dataclass(frozen=True)
class Auto:
    """The fastest factorisation for the shape, type and platform of A."""

    def factorise(self, A: Matrix, r: OfRows, g: OfColumns | None = None, overwrite: bool = False) -> Subproblem:
        m, n = A.shape
        return best(m, n, A.dtype, platform_of(A)).factorise(A, r, g, overwrite)


def platform_of(A: AnyArray) -> str:
    """Where A lives: "cpu" for NumPy arrays, and JAX's name of the device otherwise."""
    return next(iter(A.devices())).platform if isinstance(A, jax.Array) else "cpu"


def best(m: int, n: int, dtype, platform: str) -> "Factorisation":
    """The factorisation that took least time. Milliseconds of CPU time, one thread, shared machine:

    | A              | gesdd  | factorise              | per lambda | step |
    |----------------|--------|------------------------|------------|------|
    | 700x1447 f32   | 180    | Band 53                | 0.9        | 2.3  |
    | 700x1447 f64   | 344    | Band 95                | 0.8        | 2.4  |
    | 2000x2000 f64  | 3,736  | Band 789 (width 64 770)| 3.1 (9.6)  | 4.3  |
    | 2000x5125 f64  | 8,372  | Band 1,899             | 3.5        | 17   |
    | 4000x4000 f64  | 31,513 | Band 5,828             | 6.1        | 11   |

    With two threads on two idle cores 2000x2000 took 2,059 (gesdd) and 562 (Band; width 24 627, 48 582, 64 500, but
    8 and 17 per lambda for the last two). An iteration tries 10 to 30 lambdas, hence width 32.
    """
    if not choices.of(platform).host_factorisation:
        return SVD("jax")
    return Band() if min(m, n) >= _SMALL else SVD("lapack")
