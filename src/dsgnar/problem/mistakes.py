"""What a person's function did that JAX cannot trace, in words that say what to write instead.

JAX traces a residual: it runs the function once on stand-ins for numbers and notes what happens to them. Functions of NumPy
and `math` need the numbers themselves, and so does `if`. JAX reports that in its own terms. The sentences here name the
expression, its file and line, and the function of `jax.numpy` to use.
"""

import ast
import builtins
import functools
import linecache
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy

# Frames of these are not the person's own: libraries, Python itself, and the rooms that call the function.
_LIBRARIES = tuple(str(Path(str(module.__file__)).parent) for module in (jax, np, scipy, eqx, functools))
_ROOMS = tuple(str(Path(__file__).parents[1] / room) for room in ("problem", "calculus"))
_BUILTINS = {"max": "jnp.maximum", "min": "jnp.minimum", "float": "the argument itself", "int": "jnp.floor"}
_WHERE = "jnp.where(condition, a, b)"


class Untraceable(TypeError):
    """A person's function does what JAX cannot trace, or differentiates what is no unknown."""


@contextmanager
def plainly() -> Iterator[None]:
    """Raise an `Untraceable` of the work within anew, without the remarks that JAX adds to it on its way."""
    try:
        yield
    except Untraceable as error:
        raise Untraceable(str(error)) from None


def explain(error: Exception, what: str, function: Callable) -> str | None:
    """What went wrong in `function`, which is called `what` in messages; None if the error speaks for itself."""
    spot = Spot.of(error)
    code, place = (spot.code if spot else ""), place_of(error, function)
    numbers = "needs a number, but JAX traces the function without numbers"
    if isinstance(error, jax.errors.TracerBoolConversionError):
        said = f"`{code}`" if code else "an `if`, `and`, `or`, `max` or `min`"
        return f"{what}: {said} {numbers}; use {_instead(code) or _WHERE} instead{place}"
    if _wants_numbers(error) and not (spot and spot.calls_jax):
        instead, said = _instead(code) or "a function of jax.numpy", f"`{code}`" if code else "it"
        kind = numbers if _called(code) in _BUILTINS else "calls a NumPy or math function, which JAX cannot trace"
        imported = " (import jax.numpy as jnp)" if instead.startswith("jnp.") else ""
        return f"{what}: {said} {kind}; use {instead} instead{imported}{place}"
    if isinstance(error, AttributeError) and isinstance(error.obj, jax.Array):
        said = f"`{code}`: a" if code else "a"
        return (
            f"{what}: {said} result of arithmetic has no {error.name!r}; derivatives are taken of unknowns: "
            f"write 2 * u * u.x instead of (u * u).x{place}"
        )
    return None


def place_of(error: Exception, function: Callable | None = None) -> str:
    """Where an error arose in the person's own code, as a line to append to a message; else where the function begins."""
    spot, code = Spot.of(error), getattr(function, "__code__", None)
    if spot is not None:
        return f'\n  File "{spot.file}", line {spot.number}' + (f": {spot.line}" if spot.line else "")
    return f'\n  File "{code.co_filename}", line {code.co_firstlineno}' if code is not None else ""


@dataclass(frozen=True)
class Spot:
    """Where an error arose in the person's own code."""

    file: str
    number: int
    line: str
    code: str  # the expression, where it fits on a line
    frame: FrameType

    @classmethod
    def of(cls, error: Exception) -> "Spot | None":
        """The innermost of the person's own frames."""
        frames = zip(traceback.walk_tb(error.__traceback__), traceback.extract_tb(error.__traceback__), strict=True)
        own = [pair for pair in frames if not pair[1].filename.startswith((*_LIBRARIES, *_ROOMS))]
        if not own:
            return None
        (frame, number), summary = own[-1]
        line, code = linecache.getline(summary.filename, number), ""
        if summary.lineno == summary.end_lineno and summary.colno is not None:  # columns are counted in bytes
            code = line.encode()[summary.colno : summary.end_colno].decode(errors="replace").strip()
        return cls(summary.filename, number, line.strip(), code, frame)

    @property
    def calls_jax(self) -> bool:
        """Whether the expression calls a function of JAX, whose own message is the better one."""
        names = _path(self.code)
        scope = {**vars(builtins), **self.frame.f_globals, **self.frame.f_locals}
        found: Any = scope.get(names[0]) if names else None
        for name in names[1:]:
            found = getattr(found, name, None)
        return str(getattr(found, "__module__", "")).split(".")[0] == "jax"


def _wants_numbers(error: Exception) -> bool:
    """Whether a function needed the number behind a stand-in: NumPy an array, `math` a float."""
    if isinstance(error, jax.errors.TracerArrayConversionError | jax.errors.ConcretizationTypeError):
        return True
    return isinstance(error, TypeError) and "__array_ufunc__" in str(error)  # NumPy's own words for `np.exp(u)`


def _path(code: str) -> list[str]:
    """The names `np`, `sin` of a call `np.sin(x)`; nothing for an expression that is no such call."""
    try:
        called = ast.parse(code, mode="eval").body
    except SyntaxError:
        return []
    names, node = [], called.func if isinstance(called, ast.Call) else None
    while isinstance(node, ast.Attribute):
        names, node = [node.attr, *names], node.value
    return [node.id, *names] if isinstance(node, ast.Name) else []


def _called(code: str) -> str:
    """The name of the function that is called, without its module."""
    return (_path(code) or [""])[-1]


def _instead(code: str) -> str:
    """The function of JAX to use in place of the one that is called."""
    name = _called(code)
    for module, short in ((jnp, "jnp"), (jax.scipy.special, "jax.scipy.special")):
        if name and name not in _BUILTINS and callable(getattr(module, name, None)):
            return f"{short}.{name}"
    return _BUILTINS.get(name, "")
