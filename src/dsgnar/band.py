r"""Damped steps from a band matrix: no singular vectors, and the condition number is never squared.

The SVD spends most of its time on singular vectors that the method does not need. It is enough to reach

    A = U B V^T,   U, V orthogonal,  B upper triangular with `width` superdiagonals,

because p(lam) = V p_B(lam), where p_B solves the damped problem of B and c = U^T r. Three stages:

1. If A is wide (m < n), an LQ factorisation first, so that the rest is m x m; if it is tall, a QR.
2. Panels of `width` columns and rows in turn: a block QR (compact WY, I - V1 T1 V1^T) clears a column panel below
   the diagonal, a block LQ (I - V2 T2 V2^T) clears the row panel right of the band. Both updates of the rest D are
   merged into one product, D <- D - [V1, Y] [X, V2]^T with X = D^T V1 T1 and Y = (D - V1 X^T) V2 T2: all work is in
   matrix products, 8/3 n^3 flops. U acts on r at once; V is kept as its panels, for single vectors.
3. For each lambda, with delta = sqrt(lam), one banded LU of

       [ delta I     B     ] [x]   [-c]
       [   B^T    -delta I ] [p] = [ 0],          x = -(c + B p)/delta,

   whose condition number is that of [B; delta I]. Interleaving x and p with x_i shifted by width/2 places
   makes the bandwidth width + 1 on either side (2 width + 1 without the shift, four times the work).
   The same LU with the right-hand side [0; p] gives -delta (B^T B + lam I)^-1 p, hence the slope of ||p||; and with
   [0; h/delta], h = V^T g, the step for a given gradient g.

Stage 3 runs in float64 for a float32 A as well: sqrt(lam) may be as small as 1e-18.
"""

import ctypes
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.linalg import cython_blas  # pyright: ignore[reportAttributeAccessIssue]
from scipy.linalg.blas import get_blas_funcs
from scipy.linalg.lapack import get_lapack_funcs
from threadpoolctl import ThreadpoolController

from dsgnar.subproblem import FactorisationError, Subproblem, Trial, checked

_OUTER_BLOCK = 64  # block of the first QR/LQ; 32 to 128 differ by less than the noise of the measurement
_gbtrf, _gbtrs = get_lapack_funcs(("gbtrf", "gbtrs"), dtype=np.float64)
(_tbmv,) = get_blas_funcs(("tbmv",), dtype=np.float64)


# Below this size one thread: a guess between 700, where one is better, and 1,300, where two are (1300 x 2945 in 0.4 s
# instead of 0.6, and 30 iterations of Kuramoto-Sivashinsky in 25 s instead of 31). Two make 700 x 1447 a quarter faster,
# but OpenBLAS's threads go on spinning for tens of milliseconds after each call and take that from what comes next:
# 0.147 s for an iteration with one thread, 0.157 s with two.
_ONE_THREAD_BELOW = 1000


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


def _threads(size: int):
    """A context in which BLAS has as many threads as serve a matrix of this size."""
    return _blas().limit(limits=1) if size < _ONE_THREAD_BELOW else nullcontext()


@dataclass(frozen=True)
class Band:
    """Reduction to a band matrix of the given width (even), then one banded LU per lambda."""

    width: int = 32

    def __post_init__(self) -> None:
        if self.width < 2 or self.width % 2:
            raise ValueError(f"width must be an even number >= 2, not {self.width}")

    def factorise(self, A, r, g=None) -> "BandSubproblem":
        checked(A, r, g)
        A, r = np.asarray(A), np.asarray(r).astype(A.dtype)
        with _threads(min(A.shape)):
            M, c, outer = _square(A, r[:, None])
            panels = reduce_to_band(M, c, self.width)
            h = None if g is None else _into_band(np.asarray(g).astype(A.dtype), panels, outer, M.shape[0])
        bands = np.zeros((self.width + 1, M.shape[0]), order="F")
        for d in range(min(self.width + 1, M.shape[0])):
            bands[self.width - d, d:] = M.diagonal(d)
        return BandSubproblem.build(bands, c[:, 0], h, r, A.shape[1], panels, outer)


def _square(A: np.ndarray, r: np.ndarray):
    """A square matrix and rhs with the same damped problem, and the factors (v, t) of Q in p = Q p_square, if any."""
    m, n = A.shape
    geqrt, gemqrt = get_lapack_funcs(("geqrt", "gemqrt"), (A,))
    block = min(_OUTER_BLOCK, m, n)
    if m < n:
        v, t, _ = geqrt(block, np.array(A.T, order="F"), overwrite_a=1)
        return np.asfortranarray(np.triu(v[:m]).T), r.copy(), (v, t)
    if m > n:
        v, t, _ = geqrt(block, np.array(A, order="F"), overwrite_a=1)
        c, _ = gemqrt(v, t, r, trans="T")
        return np.asfortranarray(np.triu(v[:n])), np.asfortranarray(c[:n]), None
    return np.array(A, order="F"), r.copy(), None


def _into_band(g: np.ndarray, panels: list, outer: tuple | None, size: int) -> np.ndarray:
    """V^T g: the way to the coordinates of B."""
    if outer is not None:
        v, t = outer
        (gemqrt,) = get_lapack_funcs(("gemqrt",), (v,))
        g = gemqrt(v, t, np.asfortranarray(g[:, None]), trans="T")[0][:size, 0]
    h = g.copy()
    for offset, V2, T2 in panels:
        h[offset:] -= V2 @ (T2.T @ (h[offset:] @ V2))
    return h


def reduce_to_band(M: np.ndarray, c: np.ndarray, width: int) -> list:
    """Overwrite square M (column-major) with its band form and c (n x 1) with U^T c.

    Returns V as a list of (offset, V2, T2): the product of the I - V2 T2 V2^T, each acting from its offset on.
    Every product goes to SciPy's BLAS: NumPy carries a second one, whose idle threads would spin against the first.
    """
    n = M.shape[0]
    (geqrt,) = get_lapack_funcs(("geqrt",), (M,))
    panels = []
    for k in range(0, n, width):
        b = min(width, n - k)  # this panel's columns
        a, T1, _ = geqrt(b, np.array(M[k:, k : k + b], order="F"), overwrite_a=1)
        M[k:, k : k + b] = 0.0
        M[k : k + b, k : k + b] = np.triu(a[:b])
        V1 = _unit_lower(a, b)
        _gemm(-1.0, V1, _product(T1.T, _product(V1.T, c[k:])), 1.0, c[k:])
        if k + b == n:
            break
        C = M[k:, k + b :]
        X = _product(_product(V1.T, C).T, T1)  # C <- C - V1 X^T
        h = min(b, C.shape[1])
        row = np.array(C[:b].T, order="F")
        a, T2, _ = geqrt(h, _gemm(-1.0, X, V1[:b].T, 1.0, row), overwrite_a=1)
        C[:b] = 0.0
        C[:b, :h] = np.triu(a[:h]).T
        V2 = _unit_lower(a[:, :h], h)
        panels.append((k + b, V2, T2))
        D = C[b:]
        Y = _product(D, V2)
        _gemm(-1.0, V1[b:], _product(X.T, V2), 1.0, Y)
        left, right = _beside(V1[b:], _product(Y, T2)), _beside(X, V2)
        _gemm(-1.0, left, right.T, 1.0, D)
    return panels


def _unit_lower(a: np.ndarray, b: int) -> np.ndarray:
    """The reflectors of geqrt as a dense unit lower trapezoidal matrix."""
    V = np.asfortranarray(a)
    V[:b] = np.tril(V[:b], -1)
    np.fill_diagonal(V, 1)
    return V


def _beside(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    return np.asfortranarray(np.vstack((X.T, Y.T)).T)


@dataclass
class BandSubproblem(Subproblem):
    """The damped problem of B, and the way back from its coordinates to those of A."""

    bands: np.ndarray  # B in LAPACK's band storage, float64, (width + 1, k)
    augmented: np.ndarray  # the interleaved system without its diagonal, in gbtrf's storage
    c: np.ndarray  # U^T r, float64, (k,)
    h: np.ndarray | None  # V^T g where a gradient is given, float64, (k,)
    columns: int  # n
    dtype: np.dtype
    panels: list  # V, as (offset, V2, T2)
    outer: tuple | None  # Q of the first LQ
    _solved: tuple[float, np.ndarray] = (-1.0, np.empty(0))

    @classmethod
    def build(cls, bands, c, h, r, columns, panels, outer) -> "BandSubproblem":
        width, k = bands.shape[0] - 1, bands.shape[1]
        c = c.astype(np.float64)
        reach = width + 1  # lower and upper bandwidth of the interleaved system
        augmented = np.zeros((3 * reach + 1, 2 * k + width), order="F")
        # B[i, i + d] couples x_i, at place 2 i + width, with p_(i+d), at place 2 (i + d) + 1.
        for d in range(min(width + 1, k)):
            offset = 2 * d + 1 - width
            diagonal = bands[width - d, d:]
            augmented[2 * reach - offset, 2 * d + 1 : 2 * k + 1 : 2] = diagonal
            augmented[2 * reach + offset, width : width + 2 * (k - d) : 2] = diagonal
        h = None if h is None else h.astype(np.float64)
        gradient = _tbmv(width, bands, c, trans=1) if h is None else h
        scale = float(np.abs(bands).max()) if k else 0.0
        # Below this the LU meets exact zeros where B is singular; 16 orders below what rounding in B amounts to.
        floor = max((1e-32 * scale) ** 2, 1e-300)
        norms = float(np.linalg.norm(r.astype(np.float64))), float(np.linalg.norm(gradient))
        return cls(*norms, floor, bands, augmented, c, h, columns, r.dtype, panels, outer)

    def evaluate(self, lam: float) -> Trial:
        with _threads(self.c.size):
            return self._evaluate(lam)

    def _evaluate(self, lam: float) -> Trial:
        width, delta = self.bands.shape[0] - 1, lam**0.5
        p, solve = self._solve(delta)
        norm = float(np.linalg.norm(p))
        along = self.c @ _tbmv(width, self.bands, p) if self.h is None else self.h @ p
        decrease = -0.5 * float(along) + 0.5 * lam * norm * norm
        q = -float(p @ solve(p, 1)) / delta
        self._solved = (lam, p)
        return Trial(lam, norm, decrease, min(-q / norm, 0.0) if norm > 0.0 else 0.0)

    def _solve(self, delta: float):
        """p_B, and the solver of the system for a right-hand side in its first (0) or second (1) block."""
        width, k = self.bands.shape[0] - 1, self.bands.shape[1]
        x, p = slice(width, None, 2), slice(1, 2 * k + 1, 2)
        ab = self.augmented.copy(order="F")
        diagonal = ab[2 * width + 2]
        diagonal[:] = 1.0  # the places that the shift leaves empty
        diagonal[x], diagonal[p] = delta, -delta
        lu, pivots, info = _gbtrf(ab, width + 1, width + 1, overwrite_ab=1)
        if info != 0:
            raise FactorisationError(f"the banded system is singular at lambda = {delta**2:.3e}; raise the damping")

        def solve(b: np.ndarray, block: int) -> np.ndarray:
            rhs = np.zeros(2 * k + width)
            rhs[(x, p)[block]] = b
            return _gbtrs(lu, width + 1, width + 1, rhs, pivots, overwrite_b=1)[0][p].copy()

        return solve(-self.c, 0) if self.h is None else solve(self.h / delta, 1), solve

    def step(self, lam: float) -> np.ndarray:
        lam = max(float(lam), self.floor)
        known, p = self._solved
        if known != lam:
            p, _ = self._solve(lam**0.5)
        p = p.astype(self.dtype)
        with _threads(p.size):
            return self._out_of_band(p)

    def _out_of_band(self, p: np.ndarray) -> np.ndarray:
        """V p: the way back to the coordinates of A."""
        for offset, V2, T2 in reversed(self.panels):
            p[offset:] -= V2 @ (T2 @ (p[offset:] @ V2))
        if self.outer is None:
            return p
        v, t = self.outer
        full = np.zeros((self.columns, 1), v.dtype, order="F")
        full[: p.size, 0] = p
        (gemqrt,) = get_lapack_funcs(("gemqrt",), (v,))
        return gemqrt(v, t, full, overwrite_c=1)[0][:, 0]


# BLAS's gemm on sub-blocks in place. SciPy's own wrappers copy any sub-block: 20 to 45 % more time for stage 2 at
# n = 2000 and widths 16 to 32 (one thread, a shared machine), no difference at 48 and 64.
# Its Cython interface exports the same routines as capsules (scipy.linalg.cython_blas, a documented use).


def _routine(name: str):
    capsule = cython_blas.__pyx_capi__[name]
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetName.argtypes = [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    address = api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule))
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 13)(address)


_GEMM = {"f": (_routine("sgemm"), ctypes.c_float), "d": (_routine("dgemm"), ctypes.c_double)}


def _operand(X: np.ndarray):
    """(transposed?, address, leading dimension) of a matrix with one unit stride."""
    flip = X.strides[0] != X.itemsize
    rows, stride = (X.shape[1], X.strides[0]) if flip else (X.shape[0], X.strides[1])
    return b"T" if flip else b"N", X.ctypes.data, ctypes.byref(ctypes.c_int(max(rows, stride // X.itemsize, 1)))


def _gemm(alpha: float, X: np.ndarray, Y: np.ndarray, beta: float, out: np.ndarray) -> np.ndarray:
    """out <- alpha X Y + beta out, for column-major `out` or a sub-block of it."""
    if out.size == 0:
        return out
    routine, scalar = _GEMM[out.dtype.char]
    (tx, x, ldx), (ty, y, ldy), (_, o, ldo) = _operand(X), _operand(Y), _operand(out)
    m, n, k = (ctypes.byref(ctypes.c_int(size)) for size in (*out.shape, X.shape[1]))
    a, b = ctypes.byref(scalar(alpha)), ctypes.byref(scalar(beta))
    routine(tx, ty, m, n, k, a, x, ldx, y, ldy, b, o, ldo)
    return out


def _product(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    return _gemm(1.0, X, Y, 0.0, np.empty((X.shape[0], Y.shape[1]), X.dtype, order="F"))
