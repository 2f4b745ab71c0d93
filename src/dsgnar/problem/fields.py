"""Residuals written as mathematics: `u.t + u * u.x - nu * u.xx`.

A residual is a function of unknowns and coordinates, matched by the names of its parameters. It is called at one point
with a `Field` for every unknown and a number for every coordinate. Asking a field for `u.xx`, `u.d("x", 4)` or
`laplacian(u)` names a derivative:

  1. at construction the residual runs once on fields that only note what is asked for (`requirements`);
  2. at evaluation all noted derivatives come from one Taylor-mode pass (`taylor.py`), or from plain nested
     differentiation, which stays available as the check and as the way out for networks without Taylor rules.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dsgnar.calculus.jets import LAPLACIAN, Key, MultiIndex, Truncation
from dsgnar.calculus.taylor import UnsupportedPrimitive, taylor
from dsgnar.problem.domain import Box, Interior, Part
from dsgnar.problem.normals import NAME as NORMAL
from dsgnar.problem.normals import Normal, normal_of
from dsgnar.problem.signature import Signature

Mode = Literal["taylor", "nested"]
Lookup = Callable[[Key], Any]


class Field:
    """An unknown at one point: a number in arithmetic, and the door to its derivatives.

    `u.x`, `u.xx`, `u.xt` name derivatives by axis; `u.d("x", 4)`, `u.d("x", "x", "t")` and `u.d(x=2, t=1)` do the
    same in a longer form, for high orders and for axes with longer names.
    """

    __slots__ = ("_domain", "_index", "_lookup", "_name", "_normal")
    __array_ufunc__ = None  # so that NumPy numbers leave arithmetic with a field to the field
    __hash__ = None  # type: ignore[assignment]  # comparisons are arithmetic

    def __init__(
        self, name: str, domain: Box, lookup: Lookup, index: MultiIndex | None = None, normal: Normal | None = None
    ):
        self._name, self._domain, self._lookup, self._normal = name, domain, lookup, normal
        self._index = (0,) * domain.dimension if index is None else index

    def d(self, *axes: str | int, **orders: int) -> "Field":
        """A derivative: `u.d("x", 4)` is the fourth in x, `u.d("x", "t")` and `u.d(x=1, t=1)` are mixed ones."""
        index = list(self._index)
        for position, axis in enumerate(axes):
            if isinstance(axis, str):
                index[self._axis(axis)] += 1
                continue
            before = axes[position - 1] if position else None
            order = _whole(axis, f"{self._name}.d{axes}")
            if not isinstance(before, str) or order < 1:
                raise ValueError(f"{self._name}.d{axes}: a positive order follows the name of its axis")
            index[self._axis(before)] += order - 1
        for axis, given in orders.items():
            order = _whole(given, f"{self._name}.d({axis}={given!r})")
            if order < 0:
                raise ValueError(f"{self._name}.d({axis}={order}): the order must not be negative")
            index[self._axis(axis)] += order
        return Field(self._name, self._domain, self._lookup, tuple(index), self._normal)

    def _axis(self, axis: str) -> int:
        if axis not in self._domain.axes:
            raise AttributeError(
                f"{self._name} has no derivative along {axis!r}: the problem's axes are {', '.join(self._domain.axes)}"
            )
        return self._domain.index(axis)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        readings = _readings(name, self._domain.axes)
        if not readings and name == NORMAL:
            return self._along_normal()
        if not readings:
            raise AttributeError(
                f"{self._name}.{name}: {name!r} is not made of the problem's axes {', '.join(self._domain.axes)}; "
                f"write {self._name}.{self._domain.axes[0]} or {self._name}.d({self._domain.axes[0]!r}, 2)"
            )
        if len(readings) > 1:
            raise AttributeError(f"{self._name}.{name} can be read in {len(readings)} ways; use {self._name}.d(...)")
        return self.d(*readings[0])

    def _along_normal(self) -> Any:
        """The derivative along the outward normal; an axis called n has the name first."""
        if self._normal is None:
            raise AttributeError(
                f"{self._name}.n is the derivative along the outward normal, which only conditions on the boundary have"
            )
        return sum(self._normal[axis] * self.d(axis).value for axis in self._domain.space)

    @property
    def value(self) -> Float[Array, ""]:
        return self._lookup(self._index)

    def laplacian(self) -> Any:
        """The sum of the second derivatives over the spatial axes; collapsed into one where that is possible."""
        if not any(self._index):
            return self._lookup(LAPLACIAN)
        return sum(self.d(axis, 2).value for axis in self._domain.space)

    def widened(self) -> "Field":
        """The same with its value and derivatives in float64."""
        lookup = self._lookup
        wide = lambda key: jnp.asarray(lookup(key), jnp.float64)
        return Field(self._name, self._domain, wide, self._index, self._normal)

    def beside(self, normal: Normal | None) -> "Field":
        """The same at a point of the boundary with a normal."""
        return Field(self._name, self._domain, self._lookup, self._index, normal)

    def __jax_array__(self):
        return self.value

    def __repr__(self) -> str:
        orders = {axis: n for axis, n in zip(self._domain.axes, self._index, strict=True) if n}
        return f"Field({self._name}{', ' + str(orders) if orders else ''})"


def _whole(order: Any, written: str) -> int:
    """The order of a derivative, which is a whole number."""
    if isinstance(order, bool) or not isinstance(order, int | np.integer):
        raise ValueError(f"{written}: the order {order!r} must be a whole number, as in u.d('x', 2) or u.d(x=2)")
    return int(order)


def _readings(name: str, axes: Sequence[str]) -> list[tuple[str, ...]]:
    """All ways to cut `name` into names of axes."""
    if not name:
        return [()]
    return [(a, *rest) for a in axes if name.startswith(a) for rest in _readings(name[len(a) :], axes)]


def _operator(name: str) -> Callable:
    def method(self: Field, *others):
        return getattr(jnp.asarray(self.value), name)(*map(_operand, others))

    method.__name__ = name
    return method


def _operand(other: Any) -> Any:
    """A field's value; a NumPy number as a Python one, which leaves the precision of the field as it is."""
    if isinstance(other, Field):
        return other.value
    return other.item() if isinstance(other, np.number) else other


_ARITHMETIC = "add sub mul truediv pow mod radd rsub rmul rtruediv rpow rmod neg pos abs lt le gt ge eq ne"
_CONVERSIONS = "bool float int"  # of `if u:` and `math.sin(u)`: while JAX traces, its arrays refuse them
for _name in f"{_ARITHMETIC} {_CONVERSIONS}".split():
    setattr(Field, f"__{_name}__", _operator(f"__{_name}__"))


# The functions of jax.numpy are compiled and take their arguments apart: inside them a field is just its value.
def _plain(_: None, values: Any) -> Any:
    return values[0]


jax.tree_util.register_pytree_node(Field, lambda field: ((field.value,), None), _plain)


def laplacian(u: Field) -> Any:
    """The sum of second derivatives of an unknown over all spatial axes."""
    return _unknown(u, "laplacian").laplacian()


def gradient(u: Field) -> tuple[Field, ...]:
    """The first derivatives of an unknown along the spatial axes."""
    return tuple(u.d(axis) for axis in _unknown(u, "gradient")._domain.space)


def _unknown(u: Any, asking: str) -> Field:
    if not isinstance(u, Field):
        kind = "a result of arithmetic" if isinstance(u, jax.Array) else type(u).__name__
        raise TypeError(f"{asking} expects an unknown such as u, or a derivative of it, not {kind}")
    return u


Requests = dict[str, frozenset[Key]]


def arguments(fields: dict[str, Field], domain: Box, part: Part, x: jax.Array) -> dict[str, Any]:
    """What a residual on a part can ask for at a point: unknowns, coordinates and, on a boundary, the normal."""
    normal = normal_of(domain, part, x)
    beside = {} if normal is None else {NORMAL: normal}
    placed = fields if normal is None else {name: field.beside(normal) for name, field in fields.items()}
    return beside | placed | {axis: x[i] for i, axis in enumerate(domain.axes)}


def requirements(
    signature: Signature, unknowns: Sequence[str], domain: Box, part: Part | None = None
) -> tuple[Requests, Any]:
    """Which derivatives of which unknowns a residual asks for, and the abstract value that it returns."""
    asked: dict[str, set] = {name: set() for name in unknowns}

    def note(name: str, x: jax.Array) -> Lookup:
        def lookup(key: Key):
            asked[name].add(key)
            return x[0]  # any number will do

        return lookup

    def run(x):
        fields = {name: Field(name, domain, note(name, x)) for name in unknowns}
        result = signature(arguments(fields, domain, part or Interior(), x))
        return result.value if isinstance(result, Field) else result

    shape = jax.eval_shape(run, jax.ShapeDtypeStruct((domain.dimension,), jnp.float64))
    return {name: frozenset(keys) for name, keys in asked.items()}, shape


def _keys(requests: Requests) -> frozenset[Key]:
    """All that is asked of any unknown: they share one pass."""
    return frozenset[Key]().union(*requests.values())


def truncation(requests: Requests, domain: Box) -> tuple[Truncation, bool]:
    """The coefficients that a Taylor pass must carry, and whether the Laplacian has a slot of its own.

    The Laplacian is collapsed unless its second derivatives are needed one by one anyway, or there is one axis only.
    """
    keys = _keys(requests)
    indices = {key for key in keys if not isinstance(key, str)}
    space = tuple(domain.index(axis) for axis in domain.space)
    seconds = {Truncation.unit(domain.dimension, i, 2) for i in space}
    plain = Truncation.closure(domain.dimension, indices)
    collapse = LAPLACIAN in keys and len(space) > 1 and not seconds <= plain.wanted
    if LAPLACIAN in keys and not collapse:
        indices |= seconds
    return Truncation.closure(domain.dimension, indices, space if collapse else ()), collapse


def evaluate(
    network: Callable, x: Float[Array, " d"], unknowns: Sequence[str], requests: Requests, domain: Box, mode: Mode
) -> dict[str, Field]:
    """A field for every unknown at the point `x`, with all requested derivatives of `network` there."""
    tr, collapsed = truncation(requests, domain)
    table = taylor(network, x, tr) if mode == "taylor" else _nested(network, x, requests, domain)
    summed = mode == "nested" or not collapsed  # the Laplacian is the sum of second derivatives
    space = [domain.index(axis) for axis in domain.space]

    def lookup_for(k: int) -> Lookup:
        def lookup(key: Key):
            if key == LAPLACIAN and summed:
                return sum(lookup(Truncation.unit(domain.dimension, i, 2)) for i in space)
            return table[key][k] if key in table else jnp.zeros((), x.dtype)

        return lookup

    return {name: Field(name, domain, lookup_for(k)) for k, name in enumerate(unknowns)}


def _nested(network: Callable, x: jax.Array, requests: Requests, domain: Box) -> dict[Key, Any]:
    """Every derivative by itself, by forward differentiation nested once per order."""
    keys = _keys(requests)
    seconds = {Truncation.unit(domain.dimension, domain.index(axis), 2) for axis in domain.space}
    indices = {key for key in keys if not isinstance(key, str)} | (seconds if LAPLACIAN in keys else set())
    table: dict[Key, Any] = {}
    for index in indices:
        f = network
        for axis, order in enumerate(index):
            for _ in range(order):
                f = _along(f, jnp.zeros_like(x).at[axis].set(1.0))
        table[index] = f(x)
    return table


def _along(f: Callable, direction: jax.Array) -> Callable:
    return lambda x: jax.jvp(f, (x,), (direction,))[1]


def supports_taylor(network: Callable, dimension: int, dtype, order: int = 1) -> bool:
    """Whether every operation of the network has a Taylor rule."""
    tr = Truncation.closure(dimension, [Truncation.unit(dimension, i, order) for i in range(dimension)])
    try:
        jax.eval_shape(lambda x: taylor(network, x, tr), jax.ShapeDtypeStruct((dimension,), dtype))
    except UnsupportedPrimitive:
        return False
    return True
