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

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.linalg.blas import get_blas_funcs
from scipy.linalg.lapack import get_lapack_funcs

from dsgnar.optimise.blas import gemm, product, threads_for
from dsgnar.optimise.subproblem import FactorisationError, Matrix, OfColumns, OfRows, Subproblem, Trial, checked

_OUTER_BLOCK = 64  # block of the first QR/LQ; 32 to 128 differ by less than the noise of the measurement
_gbtrf, _gbtrs = get_lapack_funcs(("gbtrf", "gbtrs"), dtype=np.float64)
(_tbmv,) = get_blas_funcs(("tbmv",), dtype=np.float64)

Panel = tuple[int, Float[np.ndarray, "rest b"], Float[np.ndarray, "b b"]]  # offset, V2, T2
Outer = tuple[Float[np.ndarray, "n m"], Float[np.ndarray, "block m"]]  # Q of the first LQ as geqrt gives it: (v, t)


@dataclass(frozen=True)
class Band:
    """Reduction to a band matrix of the given width (even), then one banded LU per lambda."""

    width: int = 32

    def __post_init__(self) -> None:
        if self.width < 2 or self.width % 2:
            raise ValueError(f"width must be an even number >= 2, not {self.width}")

    def factorise(self, A: Matrix, r: OfRows, g: OfColumns | None = None, overwrite: bool = False) -> "BandSubproblem":
        checked(A, r, g)
        A, r = np.asarray(A), np.asarray(r).astype(A.dtype)
        with threads_for(min(A.shape)):
            M, c, outer = _square(A, r[:, None], overwrite)
            panels = reduce_to_band(M, c, self.width)
            h = None if g is None else _into_band(np.asarray(g).astype(A.dtype), panels, outer, M.shape[0])
        bands = np.zeros((self.width + 1, M.shape[0]), order="F")
        for d in range(min(self.width + 1, M.shape[0])):
            bands[self.width - d, d:] = M.diagonal(d)
        return BandSubproblem.build(bands, c[:, 0], h, r, A.shape[1], panels, outer)


def _square(
    A: Float[np.ndarray, "m n"], r: Float[np.ndarray, "m 1"], overwrite: bool
) -> tuple[Float[np.ndarray, "k k"], Float[np.ndarray, "k 1"], Outer | None]:
    """A square matrix and rhs with the same damped problem, and the factors (v, t) of Q in p = Q p_square, if any.

    A wide A whose rows follow one another in memory is its transpose in LAPACK's order: v may take its place.
    """
    m, n = A.shape
    geqrt, gemqrt = get_lapack_funcs(("geqrt", "gemqrt"), (A,))
    block = min(_OUTER_BLOCK, m, n)
    if m < n:
        in_place = overwrite and A.flags.c_contiguous and A.flags.writeable
        v, t, _ = geqrt(block, A.T if in_place else np.array(A.T, order="F"), overwrite_a=1)
        return np.asfortranarray(np.triu(v[:m]).T), r.copy(), (v, t)
    if m > n:
        v, t, _ = geqrt(block, np.array(A, order="F"), overwrite_a=1)
        c, _ = gemqrt(v, t, r, trans="T")
        return np.asfortranarray(np.triu(v[:n])), np.asfortranarray(c[:n]), None
    return np.array(A, order="F"), r.copy(), None


def _into_band(
    g: Float[np.ndarray, " n"], panels: list[Panel], outer: Outer | None, size: int
) -> Float[np.ndarray, " k"]:
    """V^T g: the way to the coordinates of B."""
    if outer is not None:
        v, t = outer
        (gemqrt,) = get_lapack_funcs(("gemqrt",), (v,))
        g = gemqrt(v, t, np.asfortranarray(g[:, None]), trans="T")[0][:size, 0]
    h = g.copy()
    for offset, V2, T2 in panels:
        h[offset:] -= V2 @ (T2.T @ (h[offset:] @ V2))
    return h


def reduce_to_band(M: Float[np.ndarray, "k k"], c: Float[np.ndarray, "k 1"], width: int) -> list[Panel]:
    """Overwrite square M (column-major) with its band form and c with U^T c.

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
        gemm(-1.0, V1, product(T1.T, product(V1.T, c[k:])), 1.0, c[k:])
        if k + b == n:
            break
        C = M[k:, k + b :]
        X = product(product(V1.T, C).T, T1)  # C <- C - V1 X^T
        h = min(b, C.shape[1])
        row = np.array(C[:b].T, order="F")
        a, T2, _ = geqrt(h, gemm(-1.0, X, V1[:b].T, 1.0, row), overwrite_a=1)
        C[:b] = 0.0
        C[:b, :h] = np.triu(a[:h]).T
        V2 = _unit_lower(a[:, :h], h)
        panels.append((k + b, V2, T2))
        D = C[b:]
        Y = product(D, V2)
        gemm(-1.0, V1[b:], product(X.T, V2), 1.0, Y)
        left, right = _beside(V1[b:], product(Y, T2)), _beside(X, V2)
        gemm(-1.0, left, right.T, 1.0, D)
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

    bands: Float[np.ndarray, "width+1 k"]  # B in LAPACK's band storage, float64
    augmented: Float[np.ndarray, "3*width+4 2*k+width"]  # the interleaved system without diagonal, in gbtrf's storage
    c: Float[np.ndarray, " k"]  # U^T r, float64
    h: Float[np.ndarray, " k"] | None  # V^T g where a gradient is given, float64
    columns: int  # n
    dtype: np.dtype  # of A
    panels: list[Panel]  # V
    outer: Outer | None
    _solved: tuple[float, Float[np.ndarray, " k"]] = (-1.0, np.empty(0))  # the last lambda and its p_B

    @classmethod
    def build(
        cls,
        bands: Float[np.ndarray, "width+1 k"],
        c: Float[np.ndarray, " k"],
        h: Float[np.ndarray, " k"] | None,
        r: Float[np.ndarray, " m"],
        columns: int,
        panels: list[Panel],
        outer: Outer | None,
    ) -> "BandSubproblem":
        """The problem of a band matrix with c = U^T r and h = V^T g; r itself only gives its norm and the type."""
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
        with threads_for(self.c.size):
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

    def _solve(self, delta: float) -> tuple[Float[np.ndarray, " k"], Callable]:
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

    def step(self, lam: float) -> Float[np.ndarray, " n"]:
        lam = max(float(lam), self.floor)
        known, p = self._solved
        if known != lam:
            p, _ = self._solve(lam**0.5)
        p = p.astype(self.dtype)
        with threads_for(p.size):
            return self._out_of_band(p)

    def _out_of_band(self, p: Float[np.ndarray, " k"]) -> Float[np.ndarray, " n"]:
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
