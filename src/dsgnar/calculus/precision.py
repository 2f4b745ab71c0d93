"""Single and double precision side by side in one process.

JAX truncates to 32 bits unless its x64 mode is on. The mode is a context, not a property of an array, so dsgnar runs
*everything* inside x64 mode and lets the dtype of the arrays decide: float32 arrays stay float32 there. No global
flag is changed, neither at import nor in the middle of work, and the caller's own JAX code is left alone.
"""

import functools
from collections.abc import Callable
from typing import Literal, ParamSpec, TypeVar

import jax
import numpy as np

Precision = Literal["single", "double"]

DTYPES: dict[str, type[np.floating]] = {"single": np.float32, "double": np.float64}

P = ParamSpec("P")
R = TypeVar("R")


def dtype_of(precision: str) -> type[np.floating]:
    """The floating-point type of a precision name, or an error that lists the names."""
    if precision not in DTYPES:
        raise ValueError(f"precision must be one of {', '.join(map(repr, DTYPES))}, not {precision!r}")
    return DTYPES[precision]


def x64(function: Callable[P, R]) -> Callable[P, R]:
    """Run `function` in x64 mode, whatever the caller's setting is."""

    @functools.wraps(function)
    def inside(*args: P.args, **kwargs: P.kwargs) -> R:
        with jax.enable_x64(True):
            return function(*args, **kwargs)

    return inside
