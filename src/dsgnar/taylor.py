"""Derivatives of a function in one Taylor-mode pass.

For `f: R^d -> R^L` and a set of multi-indices, the pass carries, beside every intermediate value `v` of `f`, its Taylor
coefficients `v_a = (d^a v) / a!` for each multi-index `a` in the downward closure of the set. Then

    linear operations       act on each coefficient,
    products                are truncated Cauchy products, `(v w)_a = sum_{b+c=a} v_b w_c`,
    smooth functions        are composed, `phi(v) = sum_k phi^(k)(v_0)/k! (v - v_0)^k`, cut off at the highest order.

A Laplacian that is asked for as a whole travels in one slot of its own instead of d second derivatives:

    L(v w) = v_0 L(w) + L(v) w_0 + 2 sum_i v_i w_i.

The rules are applied to the jaxpr of `f`, so any network written in JAX works. Coefficients that are zero are absent and
cost nothing (a branch of a separable network that sees one coordinate only has derivatives along that coordinate
only), and coefficients that are the same at every point stay one vector under `vmap`. A primitive without a rule raises
`UnsupportedPrimitive`; the caller then differentiates in the ordinary nested way.
"""

import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jax.extend.core import ClosedJaxpr, Literal

from dsgnar.elementary import sincos

MultiIndex = tuple[int, ...]
LAPLACIAN = "laplacian"
Key = MultiIndex | str
Jet = dict[Key, Any]


class UnsupportedPrimitive(NotImplementedError):
    """The function uses an operation for which there is no Taylor rule."""


@dataclass(frozen=True)
class Truncation:
    """Which coefficients are carried: a downward-closed set of multi-indices, and perhaps the Laplacian's slot."""

    dimension: int
    wanted: frozenset[MultiIndex]
    laplacian: tuple[int, ...] = ()  # axes of the collapsed Laplacian; empty: none

    @classmethod
    def closure(cls, dimension: int, wanted: Iterable[MultiIndex], laplacian: tuple[int, ...] = ()) -> "Truncation":
        corners = set(wanted) | {cls.unit(dimension, i) for i in laplacian}
        closed = {below for a in corners for below in itertools.product(*(range(n + 1) for n in a))}
        return cls(dimension, frozenset(closed) | {(0,) * dimension}, laplacian)

    @staticmethod
    def unit(dimension: int, axis: int, order: int = 1) -> MultiIndex:
        return tuple(order if i == axis else 0 for i in range(dimension))

    @property
    def zero(self) -> MultiIndex:
        return (0,) * self.dimension

    @cached_property
    def indices(self) -> tuple[MultiIndex, ...]:
        """All non-zero multi-indices, lower orders first."""
        return tuple(sorted((a for a in self.wanted if any(a)), key=lambda a: (sum(a), a)))

    @cached_property
    def order(self) -> int:
        return max([sum(a) for a in self.indices] + [2 if self.laplacian else 0])

    @cached_property
    def splits(self) -> dict[MultiIndex, tuple[tuple[MultiIndex, MultiIndex], ...]]:
        """For each multi-index, the pairs of smaller ones that add up to it."""
        every = (self.zero, *self.indices)
        table: dict[MultiIndex, list] = {a: [] for a in every}
        for b, c in itertools.product(every, every):
            a = tuple(map(sum, zip(b, c, strict=True)))
            if a in table:
                table[a].append((b, c))
        return {a: tuple(pairs) for a, pairs in table.items()}

    @cached_property
    def gradient(self) -> tuple[MultiIndex, ...]:
        return tuple(self.unit(self.dimension, i) for i in self.laplacian)


def taylor(f: Callable, x: jax.Array, truncation: Truncation) -> dict[Key, jax.Array]:
    """The derivatives of `f` at the one point `x` (shape `(d,)`), by multi-index; absent ones are zero."""
    closed = jax.make_jaxpr(f)(x)
    seed: Jet = {truncation.zero: x}
    for i in range(truncation.dimension):
        unit = truncation.unit(truncation.dimension, i)
        if unit in truncation.wanted:
            seed[unit] = np.eye(truncation.dimension, dtype=x.dtype)[i]
    (out,) = _interpret(closed.jaxpr, closed.consts, [seed], truncation)
    return {a: v * (1 if isinstance(a, str) else math.prod(map(math.factorial, a))) for a, v in out.items()}


def _interpret(jaxpr, consts, jets: list[Jet], tr: Truncation) -> list[Jet]:
    env: dict[Any, Jet] = {}

    def read(atom) -> Jet:
        return {tr.zero: atom.val} if isinstance(atom, Literal) else env[atom]

    env.update(zip(jaxpr.constvars, [{tr.zero: c} for c in consts], strict=True))
    env.update(zip(jaxpr.invars, jets, strict=True))
    for eqn in jaxpr.eqns:
        inputs = [read(v) for v in eqn.invars]
        env.update(zip(eqn.outvars, _apply(eqn, inputs, tr), strict=True))
    return [read(v) for v in jaxpr.outvars]


def _apply(eqn, inputs: list[Jet], tr: Truncation) -> list[Jet]:
    name = eqn.primitive.name
    flat = all(len(jet) == 1 for jet in inputs)
    bind = partial(_call, eqn)
    if name in _CALLS and not flat:
        inner = next(eqn.params[k] for k in ("jaxpr", "call_jaxpr", "fun_jaxpr") if k in eqn.params)
        jaxpr, consts = (inner.jaxpr, inner.consts) if isinstance(inner, ClosedJaxpr) else (inner, [])
        return _interpret(jaxpr, consts, inputs, tr)
    if name == "custom_jvp_call" and not flat:
        return _along_polynomials(bind, inputs, tr)
    if flat and name in ("sin", "cos"):
        return [{tr.zero: sincos(jnp.asarray(inputs[0][tr.zero]))[name == "cos"]}]
    if flat or name in _FLAT or not any(jnp.issubdtype(v.aval.dtype, jnp.inexact) for v in eqn.outvars):
        out = bind(*(jet[tr.zero] for jet in inputs))
        return [{tr.zero: v} for v in (out if eqn.primitive.multiple_results else [out])]
    if name in _LINEAR:  # in the first operand; the others are indices or constants
        return [_each(inputs[0], bind, *(jet[tr.zero] for jet in inputs[1:]))]
    if name == "split":
        pieces = {a: bind(c) for a, c in inputs[0].items()}
        return [{a: piece[k] for a, piece in pieces.items()} for k in range(len(eqn.outvars))]
    if name in _ELEMENTWISE:
        return [_compose(inputs[0], _ELEMENTWISE[name](inputs[0][tr.zero], tr.order, eqn.params), tr)]
    if name in _RULES:
        return [_RULES[name](bind, inputs, eqn, tr)]
    if len(inputs) == 1 and name in _SMOOTH:
        return [_compose(inputs[0], _nested(bind, inputs[0][tr.zero], tr.order), tr)]
    raise UnsupportedPrimitive(f"no Taylor rule for the operation '{name}'")


def _call(eqn, *values):
    """The operation itself, on values."""
    found = eqn.primitive.get_bind_params(eqn.params)  # before JAX 0.10 with inner functions apart
    functions, params = found if isinstance(found, tuple) else ((), found)
    return eqn.primitive.bind(*functions, *values, **params)


def _each(jet: Jet, linear: Callable, *others) -> Jet:
    """`linear(coefficient, *others)` for each coefficient. What is constant is worked out now, so that zeros can be dropped;
    not so if one of the others is only known when the compiled program runs (a parameter of the network)."""
    known = not any(isinstance(other, Tracer) for other in others)
    out: Jet = {}
    for key, v in jet.items():
        if known and isinstance(v, np.ndarray):
            with jax.ensure_compile_time_eval():
                folded = np.asarray(linear(v, *others))
            if folded.any():
                out[key] = folded
        else:
            out[key] = linear(v, *others)
    return out


def _bilinear(op: Callable, v: Jet, w: Jet, tr: Truncation) -> Jet:
    out: Jet = {}
    for a, pairs in tr.splits.items():
        terms = [op(v[b], w[c]) for b, c in pairs if b in v and c in w]
        if terms:
            out[a] = sum(terms[1:], terms[0])
    if tr.laplacian:
        terms = [op(v[b], w[c]) for b, c in ((tr.zero, LAPLACIAN), (LAPLACIAN, tr.zero)) if b in v and c in w]
        terms += [2 * op(v[i], w[i]) for i in tr.gradient if i in v and i in w]
        if terms:
            out[LAPLACIAN] = sum(terms[1:], terms[0])
    return out


def _compose(v: Jet, derivatives: list, tr: Truncation) -> Jet:
    """`phi(v)` from `phi^(k)(v_0)`, k = 0, 1, ..: a power series in the increment `v - v_0`."""
    increment = {a: c for a, c in v.items() if a != tr.zero}
    out: Jet = {tr.zero: derivatives[0]}
    power = increment
    for k in range(1, tr.order + 1):
        for a, c in power.items():
            term = (derivatives[k] / math.factorial(k)) * c
            out[a] = out[a] + term if a in out else term
        if k < tr.order:
            power = _bilinear(lambda p, q: p * q, power, increment, tr)
    return out


def _along_polynomials(function: Callable, inputs: list[Jet], tr: Truncation) -> list[Jet]:
    """Any function, by nested differentiation of `e -> function(sum_a v_a e^a)` at 0.

    For functions with their own rule of differentiation (softplus, sinc), whose body can be put together from pieces that
    only the rule joins smoothly.
    """
    present = {i for jet in inputs for a in jet if a != LAPLACIAN for i, n in enumerate(a) if n}
    origin = jnp.zeros(tr.dimension, next(jet[tr.zero].dtype for jet in inputs if len(jet) > 1))

    def path(e):
        monomials: dict[Key, Any] = {
            a: math.prod([e[i] ** n for i, n in enumerate(a) if n]) for a in (tr.zero, *tr.indices)
        }
        return function(*(sum(c * monomials[a] for a, c in jet.items() if a != LAPLACIAN) for jet in inputs))

    def bowl(e):  # the sum of its second derivatives is the Laplacian: all of L(v) is given to one axis
        keys = {unit: e[i] for unit, i in zip(tr.gradient, tr.laplacian, strict=True)}
        keys |= {tr.zero: 1, LAPLACIAN: e[tr.laplacian[0]] ** 2 / 2}
        return function(*(sum(c * keys[a] for a, c in jet.items() if a in keys) for jet in inputs))

    def derivative(f, a):
        for i, n in enumerate(a):
            for _ in range(n):
                f = _slope(f, np.eye(tr.dimension, dtype=origin.dtype)[i])
        return f(origin)

    outs: list[Jet] = [{tr.zero: v} for v in function(*(jet[tr.zero] for jet in inputs))]
    for a in tr.indices:
        if {i for i, n in enumerate(a) if n} <= present:
            for out, v in zip(outs, derivative(path, a), strict=True):
                out[a] = v / math.prod(map(math.factorial, a))
    if tr.laplacian:
        seconds = [derivative(bowl, Truncation.unit(tr.dimension, i, 2)) for i in tr.laplacian]
        for k, out in enumerate(outs):
            out[LAPLACIAN] = sum(second[k] for second in seconds)
    return outs


# --- derivatives of elementwise functions at a value: [phi, phi', phi'', ..] -------------------------------------------


def _nested(phi: Callable, v, order: int) -> list:
    """For any elementwise function, by nested forward differentiation."""
    out, g = [phi(v)], phi
    for _ in range(order):
        g = _slope(g, jnp.ones_like(v))
        out.append(g(v))
    return out


def _slope(g: Callable, direction) -> Callable:
    return lambda v: jax.jvp(g, (v,), (direction,))[1]


def _cycle(start: int) -> Callable:
    def derivatives(v, order, _params):
        s, c = sincos(v)
        return [(s, c, -s, -c)[(start + k) % 4] for k in range(order + 1)]

    return derivatives


def _riccati(y, order: int, quadratic: float, linear: float, constant: float) -> list:
    """Derivatives of a solution of `y' = quadratic y^2 + linear y + constant` (tanh, logistic), by Leibniz' rule."""
    out = [y]
    for k in range(order):
        square = sum(math.comb(k, i) * out[i] * out[k - i] for i in range(k + 1))
        out.append(quadratic * square + linear * out[k] + (constant if k == 0 else 0.0))
    return out


def _power(v, halves: int, order: int) -> list:
    """For `v^(halves/2)`: integer powers of `v` or of its root, sooner and more accurate than the general power."""
    base, step = (v, 2) if halves % 2 == 0 else (jnp.sqrt(v), 1)
    out, factor = [], 1.0
    for k in range(order + 1):
        out.append(factor * lax.integer_pow(base, (halves - 2 * k) // step))
        factor *= halves / 2 - k
    return out


def _integer_power(v, order: int, params) -> list:
    n, out, factor = params["y"], [], 1
    for k in range(order + 1):
        out.append(factor * lax.integer_pow(v, n - k) if factor else jnp.zeros_like(v))
        factor *= n - k
    return out


_ELEMENTWISE: dict[str, Callable] = {
    "sin": _cycle(0),
    "cos": _cycle(1),
    "exp": lambda v, order, _: [jnp.exp(v)] * (order + 1),
    "tanh": lambda v, order, _: _riccati(jnp.tanh(v), order, -1.0, 0.0, 1.0),
    "logistic": lambda v, order, _: _riccati(jax.nn.sigmoid(v), order, -1.0, 1.0, 0.0),
    "log": lambda v, order, _: [jnp.log(v)] + (_power(v, -2, order - 1) if order else []),
    "sqrt": lambda v, order, _: _power(v, 1, order),
    "rsqrt": lambda v, order, _: _power(v, -1, order),
    "integer_pow": _integer_power,
    "square": lambda v, order, _: _integer_power(v, order, {"y": 2}),
}
_SMOOTH = frozenset(
    "sinh cosh tan asin acos atan asinh acosh atanh erf erfc exp2 expm1 log1p cbrt lgamma digamma".split()
)
_FLAT = frozenset(
    "sign floor ceil round gt ge lt le eq ne and or not is_finite argmax argmin iota stop_gradient".split()
)
_CALLS = frozenset("pjit jit closed_call core_call remat checkpoint remat2 custom_vjp_call".split())
_LINEAR = frozenset(
    "neg reshape broadcast_in_dim squeeze transpose slice dynamic_slice gather reduce_sum convert_element_type copy"
    " rev cumsum tile expand_dims real imag copy_p reduce_precision".split()
)


# --- rules for operations of several operands --------------------------------------------------------------------------


def _like(v, eqn):
    aval = eqn.outvars[0].aval
    return v if jnp.shape(v) == aval.shape else jnp.broadcast_to(v, aval.shape)


def _add(bind, inputs: list[Jet], eqn, tr: Truncation) -> Jet:
    v, w = inputs
    out: Jet = {}
    for a in (*v, *(key for key in w if key not in v)):
        if a in v and a in w:
            out[a] = bind(v[a], w[a])
        elif a in v:
            out[a] = _like(v[a], eqn)
        else:
            out[a] = _like(-w[a] if eqn.primitive.name == "sub" else w[a], eqn)
    return out


def _multiply(bind, inputs: list[Jet], eqn, tr: Truncation) -> Jet:
    v, w = inputs
    if len(w) == 1:
        return _each(v, bind, w[tr.zero])
    if len(v) == 1:
        return _each(w, lambda c, factor: bind(factor, c), v[tr.zero])
    return _bilinear(bind, v, w, tr)


def _contract(bind, inputs: list[Jet], eqn, tr: Truncation) -> Jet:
    """Contractions. The product of a matrix and a vector is written with the vector first, which under `vmap` over points
    becomes one product of matrices, (points, inputs) times (inputs, outputs), without transpositions."""
    v, w = inputs
    matvec = v[tr.zero].ndim == 2 and w[tr.zero].ndim == 1 and eqn.params["dimension_numbers"][1] == ((), ())
    if len(v) == 1 and matvec:
        ((axis,), _), _ = eqn.params["dimension_numbers"]
        options = {key: eqn.params[key] for key in ("precision", "preferred_element_type")}
        return {a: lax.dot_general(c, v[tr.zero], (((0,), (axis,)), ((), ())), **options) for a, c in w.items()}
    if len(v) == 1:
        return {a: bind(v[tr.zero], c) for a, c in w.items()}
    return _bilinear(bind, v, w, tr)


def _divide(bind, inputs: list[Jet], eqn, tr: Truncation) -> Jet:
    v, w = inputs
    if len(w) == 1:
        return _each(v, bind, w[tr.zero])
    reciprocal = _compose(w, _power(w[tr.zero], -2, tr.order), tr)
    return _bilinear(lambda a, b: a * b, v, reciprocal, tr)


def _pow(bind, inputs: list[Jet], eqn, tr: Truncation) -> Jet:
    v, w = inputs
    if len(w) > 1:
        return _several(bind, inputs, eqn, tr)
    exponent = jnp.asarray(w[tr.zero], v[tr.zero].dtype)
    factor, derivatives = jnp.ones_like(exponent), []
    for k in range(tr.order + 1):  # once the factor is 0, so is the derivative, also where v = 0
        derivatives.append(factor * v[tr.zero] ** jnp.where(factor == 0, 1, exponent - k))
        factor = factor * (exponent - k)
    return _compose(v, derivatives, tr)


def _several(bind, inputs: list[Jet], eqn, tr: Truncation) -> Jet:
    """Smooth functions of several operands that are too rare for a rule of their own."""
    return _along_polynomials(lambda *values: [bind(*values)], inputs, tr)[0]


def _concatenate(bind, inputs: list[Jet], eqn, tr: Truncation) -> Jet:
    keys = dict.fromkeys(itertools.chain.from_iterable(inputs))
    out: Jet = {}
    for a in keys:
        parts = [jet.get(a, np.zeros(v.aval.shape, v.aval.dtype)) for jet, v in zip(inputs, eqn.invars, strict=True)]
        if all(isinstance(p, np.ndarray) for p in parts):
            with jax.ensure_compile_time_eval():
                out[a] = np.asarray(bind(*parts))
        else:
            out[a] = bind(*parts)
    return out


def _select(bind, inputs: list[Jet], eqn, tr: Truncation) -> Jet:
    which, *cases = inputs
    keys = dict.fromkeys(itertools.chain.from_iterable(cases))
    zeros = jnp.zeros(eqn.outvars[0].aval.shape, eqn.outvars[0].aval.dtype)
    return {a: bind(which[tr.zero], *(jnp.asarray(case.get(a, zeros)) for case in cases)) for a in keys}


def _extremum(bind, inputs: list[Jet], eqn, tr: Truncation) -> Jet:
    v, w = inputs
    value = bind(v[tr.zero], w[tr.zero])
    first, tie = value == v[tr.zero], v[tr.zero] == w[tr.zero]  # at a tie the mean of both, as JAX has it

    def choose(a, b):
        return jnp.where(tie, (a + b) / 2, jnp.where(first, a, b))

    keys = [a for a in dict.fromkeys((*v, *w)) if a != tr.zero]
    return {tr.zero: value} | {a: choose(v.get(a, 0.0), w.get(a, 0.0)) for a in keys}


def _absolute(bind, inputs: list[Jet], eqn, tr: Truncation) -> Jet:
    return {a: jnp.where(inputs[0][tr.zero] >= 0, c, -c) for a, c in inputs[0].items()}


_RULES: dict[str, Callable] = {
    "add": _add,
    "add_any": _add,
    "sub": _add,
    "mul": _multiply,
    "dot_general": _contract,
    "div": _divide,
    "pow": _pow,
    "atan2": _several,
    "concatenate": _concatenate,
    "stack": _concatenate,
    "select_n": _select,
    "max": _extremum,
    "min": _extremum,
    "abs": _absolute,
}
