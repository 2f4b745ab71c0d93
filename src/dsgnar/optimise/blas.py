"""Matrix products on sub-blocks in place, and how many threads they get.

    gemm     out <- alpha X Y + beta out,  where `out` may be a block of a larger column-major matrix

SciPy's own wrappers copy any sub-block: 20 to 45 % more time for the reduction to a band at n = 2000 and widths 16 to 32
(one thread, a shared machine), no difference at 48 and 64. Its Cython interface exports the same routines as capsules
(scipy.linalg.cython_blas, a documented use); they are called here through ctypes.

A capsule is only an address, but its name is the C signature. From version 1.18 on SciPy can be built with 64-bit
integers (ILP64), which a 32-bit call would hand half-filled numbers. So the name is read first, and where it does not
say `int *` for every size the wrappers do the work, correctly and with their copies.
"""

import ctypes
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache

import numpy as np
from jaxtyping import Float
from scipy.linalg import cython_blas  # pyright: ignore[reportAttributeAccessIssue]
from scipy.linalg.blas import get_blas_funcs

from dsgnar.calculus import cores

# Below this size one thread: a guess between 700, where one is better, and 1,300, where two are (1300 x 2945 in 0.4 s
# instead of 0.6, and 30 iterations of Kuramoto-Sivashinsky in 25 s instead of 31). Two make 700 x 1447 a quarter faster,
# but OpenBLAS's threads go on spinning for tens of milliseconds after each call and take that from what comes next:
# 0.147 s for an iteration with one thread, 0.157 s with two.
ONE_THREAD_BELOW = 1000

# transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc
_ARGUMENTS = 13
_INTEGERS = (2, 3, 4, 7, 9, 12)
_NAMES = {"f": "sgemm", "d": "dgemm"}
_SCALARS = {"f": ctypes.c_float, "d": ctypes.c_double}


def threads_for(size: int) -> AbstractContextManager:
    """A context in which BLAS has as many threads as serve a matrix of this size."""
    return cores.pools().limit(limits=1) if size < ONE_THREAD_BELOW else nullcontext()


def takes_32_bit_integers(signature: str) -> bool:
    """Whether a gemm with this C signature takes its sizes as 32-bit `int`."""
    arguments = signature.partition("(")[2].rpartition(")")[0].split(",")
    plain = all(arguments[k].strip() == "int *" for k in _INTEGERS if k < len(arguments))
    return len(arguments) == _ARGUMENTS and plain and ctypes.sizeof(ctypes.c_int) == 4


def _signature(capsule: object) -> bytes:
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetName.argtypes = [ctypes.py_object]
    return api.PyCapsule_GetName(capsule) or b""


@cache
def in_place(kind: str) -> Callable | None:
    """BLAS's gemm for a type ("f" or "d") as a C function, or None if it cannot be called with 32-bit integers."""
    capsule = getattr(cython_blas, "__pyx_capi__", {}).get(_NAMES[kind])
    if capsule is None or not takes_32_bit_integers(_signature(capsule).decode()):
        return None
    api = ctypes.pythonapi
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    address = api.PyCapsule_GetPointer(capsule, _signature(capsule))
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * _ARGUMENTS)(address)


def _operand(X: np.ndarray):
    """(transposed?, address, leading dimension) of a matrix with one unit stride."""
    flip = X.strides[0] != X.itemsize
    rows, stride = (X.shape[1], X.strides[0]) if flip else (X.shape[0], X.strides[1])
    return b"T" if flip else b"N", X.ctypes.data, ctypes.byref(ctypes.c_int(max(rows, stride // X.itemsize, 1)))


def gemm(
    alpha: float,
    X: Float[np.ndarray, "m k"],
    Y: Float[np.ndarray, "k n"],
    beta: float,
    out: Float[np.ndarray, "m n"],
) -> Float[np.ndarray, "m n"]:
    """out <- alpha X Y + beta out, for column-major `out` or a sub-block of it."""
    if out.size == 0:
        return out
    kind = out.dtype.char
    routine = in_place(kind)
    if routine is None:
        return copying_gemm(alpha, X, Y, beta, out)
    (tx, x, ldx), (ty, y, ldy), (_, o, ldo) = _operand(X), _operand(Y), _operand(out)
    m, n, k = (ctypes.byref(ctypes.c_int(size)) for size in (*out.shape, X.shape[1]))
    a, b = ctypes.byref(_SCALARS[kind](alpha)), ctypes.byref(_SCALARS[kind](beta))
    routine(tx, ty, m, n, k, a, x, ldx, y, ldy, b, o, ldo)
    return out


def copying_gemm(alpha: float, X: np.ndarray, Y: np.ndarray, beta: float, out: np.ndarray) -> np.ndarray:
    """The same by SciPy's wrapper, which fits whatever integers its BLAS has."""
    (wrapper,) = get_blas_funcs(("gemm",), dtype=out.dtype)
    out[...] = wrapper(alpha, X, Y, beta=beta, c=out)
    return out


def product(X: Float[np.ndarray, "m k"], Y: Float[np.ndarray, "k n"]) -> Float[np.ndarray, "m n"]:
    """X Y, column-major."""
    return gemm(1.0, X, Y, 0.0, np.empty((X.shape[0], Y.shape[1]), X.dtype, order="F"))
