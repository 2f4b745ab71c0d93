"""What each operation of JAX does to the Taylor coefficients of its operands (see `jets.py` for the arithmetic).

`ELEMENTWISE` functions give their derivatives at a value, `[phi, phi', phi'', ..]`, which `compose` turns into coefficients;
those of `SMOOTH` ones come from nested differentiation. `RULES` are for operations of several operands. `LINEAR` operations
act on each coefficient, `FLAT` ones have no derivative, and `CALLS` contain a program of their own.
"""

import itertools
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from dsgnar.calculus.elementary import sincos
from dsgnar.calculus.jets import Jet, Truncation, along_polynomials, bilinear, compose, each_coefficient, slope

# --- derivatives of elementwise functions at a value: [phi, phi', phi'', ..] -------------------------------------------


def nested(phi: Callable, v, order: int) -> list:
    """For any elementwise function, by nested forward differentiation."""
    out, g = [phi(v)], phi
    for _ in range(order):
        g = slope(g, jnp.ones_like(v))
        out.append(g(v))
    return out


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


ELEMENTWISE: dict[str, Callable] = {
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
SMOOTH = frozenset(
    "sinh cosh tan asin acos atan asinh acosh atanh erf erfc exp2 expm1 log1p cbrt lgamma digamma".split()
)
FLAT = frozenset(
    "sign floor ceil round gt ge lt le eq ne and or not is_finite argmax argmin iota stop_gradient".split()
)
CALLS = frozenset("pjit jit closed_call core_call remat checkpoint remat2 custom_vjp_call".split())
LINEAR = frozenset(
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
        return each_coefficient(v, bind, w[tr.zero])
    if len(v) == 1:
        return each_coefficient(w, lambda c, factor: bind(factor, c), v[tr.zero])
    return bilinear(bind, v, w, tr)


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
    return bilinear(bind, v, w, tr)


def _divide(bind, inputs: list[Jet], eqn, tr: Truncation) -> Jet:
    v, w = inputs
    if len(w) == 1:
        return each_coefficient(v, bind, w[tr.zero])
    reciprocal = compose(w, _power(w[tr.zero], -2, tr.order), tr)
    return bilinear(lambda a, b: a * b, v, reciprocal, tr)


def _pow(bind, inputs: list[Jet], eqn, tr: Truncation) -> Jet:
    v, w = inputs
    if len(w) > 1:
        return _several(bind, inputs, eqn, tr)
    exponent = jnp.asarray(w[tr.zero], v[tr.zero].dtype)
    factor, derivatives = jnp.ones_like(exponent), []
    for k in range(tr.order + 1):  # once the factor is 0, so is the derivative, also where v = 0
        derivatives.append(factor * v[tr.zero] ** jnp.where(factor == 0, 1, exponent - k))
        factor = factor * (exponent - k)
    return compose(v, derivatives, tr)


def _several(bind, inputs: list[Jet], eqn, tr: Truncation) -> Jet:
    """Smooth functions of several operands that are too rare for a rule of their own."""
    return along_polynomials(lambda *values: [bind(*values)], inputs, tr)[0]


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


RULES: dict[str, Callable] = {
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
