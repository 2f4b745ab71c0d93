"""Derivatives of a function in one Taylor-mode pass.

For `f: R^d -> R^L` and a set of multi-indices, the pass carries, beside every intermediate value `v` of `f`, its Taylor
coefficients `v_a = (d^a v) / a!` for each multi-index `a` in the downward closure of the set. A Laplacian that is asked for
as a whole travels in one slot of its own instead of d second derivatives. `jets.py` has the arithmetic of coefficients,
`taylor_rules.py` the rule of each operation.

The rules are applied to the jaxpr of `f`, so any network written in JAX works. Coefficients that are zero are absent and
cost nothing (a branch of a separable network that sees one coordinate only has derivatives along that coordinate
only), and coefficients that are the same at every point stay one vector under `vmap`. A primitive without a rule raises
`UnsupportedPrimitive`; the caller then differentiates in the ordinary nested way.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Literal
from jaxtyping import Array, Float

from dsgnar.calculus.elementary import sincos
from dsgnar.calculus.jets import Jet, Key, Truncation, along_polynomials, compose, each_coefficient
from dsgnar.calculus.taylor_rules import CALLS, ELEMENTWISE, FLAT, LINEAR, RULES, SMOOTH, nested


class UnsupportedPrimitive(NotImplementedError):
    """The function uses an operation for which there is no Taylor rule."""


def taylor(f: Callable, x: Float[Array, " d"], truncation: Truncation) -> dict[Key, Float[Array, "..."]]:
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
    if name in CALLS and not flat:
        inner = next(eqn.params[k] for k in ("jaxpr", "call_jaxpr", "fun_jaxpr") if k in eqn.params)
        jaxpr, consts = (inner.jaxpr, inner.consts) if isinstance(inner, ClosedJaxpr) else (inner, [])
        return _interpret(jaxpr, consts, inputs, tr)
    if name == "custom_jvp_call" and not flat:
        return along_polynomials(bind, inputs, tr)
    if flat and name in ("sin", "cos"):
        return [{tr.zero: sincos(jnp.asarray(inputs[0][tr.zero]))[name == "cos"]}]
    if flat or name in FLAT or not any(jnp.issubdtype(v.aval.dtype, jnp.inexact) for v in eqn.outvars):
        out = bind(*(jet[tr.zero] for jet in inputs))
        return [{tr.zero: v} for v in (out if eqn.primitive.multiple_results else [out])]
    if name in LINEAR:  # in the first operand; the others are indices or constants
        return [each_coefficient(inputs[0], bind, *(jet[tr.zero] for jet in inputs[1:]))]
    if name == "split":
        pieces = {a: bind(c) for a, c in inputs[0].items()}
        return [{a: piece[k] for a, piece in pieces.items()} for k in range(len(eqn.outvars))]
    if name in ELEMENTWISE:
        return [compose(inputs[0], ELEMENTWISE[name](inputs[0][tr.zero], tr.order, eqn.params), tr)]
    if name in RULES:
        return [RULES[name](bind, inputs, eqn, tr)]
    if len(inputs) == 1 and name in SMOOTH:
        return [compose(inputs[0], nested(bind, inputs[0][tr.zero], tr.order), tr)]
    raise UnsupportedPrimitive(f"no Taylor rule for the operation '{name}'")


def _call(eqn, *values):
    """The operation itself, on values."""
    found = eqn.primitive.get_bind_params(eqn.params)  # before JAX 0.10 with inner functions apart
    functions, params = found if isinstance(found, tuple) else ((), found)
    return eqn.primitive.bind(*functions, *values, **params)
