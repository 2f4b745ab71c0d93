"""Truncated Taylor series in several variables, and the arithmetic that they allow.

The jet of a value `v` holds its Taylor coefficients `v_a = (d^a v) / a!`, one for each multi-index `a` that a `Truncation`
keeps and that is not zero. The arithmetic is the one of power series, cut off:

    linear maps       act on each coefficient                                                            `each_coefficient`
    products          are Cauchy products, `(v w)_a = sum_{b+c=a} v_b w_c`                               `bilinear`
    phi(v)            is `sum_k phi^(k)(v_0)/k! (v - v_0)^k`                                             `compose`
    f(v, w, ..)       for any smooth `f`, by differentiating along the polynomials that the jets are     `along_polynomials`

A Laplacian that is asked for as a whole has one slot of its own, `L(v w) = v_0 L(w) + L(v) w_0 + 2 sum_i v_i w_i`.
"""

import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

MultiIndex = tuple[int, ...]
LAPLACIAN = "laplacian"
Key = MultiIndex | str
Jet = dict[Key, Any]


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


def each_coefficient(jet: Jet, linear: Callable, *others) -> Jet:
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


def bilinear(op: Callable, v: Jet, w: Jet, tr: Truncation) -> Jet:
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


def compose(v: Jet, derivatives: list, tr: Truncation) -> Jet:
    """`phi(v)` from `phi^(k)(v_0)`, k = 0, 1, ..: a power series in the increment `v - v_0`."""
    increment = {a: c for a, c in v.items() if a != tr.zero}
    out: Jet = {tr.zero: derivatives[0]}
    power = increment
    for k in range(1, tr.order + 1):
        for a, c in power.items():
            term = (derivatives[k] / math.factorial(k)) * c
            out[a] = out[a] + term if a in out else term
        if k < tr.order:
            power = bilinear(lambda p, q: p * q, power, increment, tr)
    return out


def along_polynomials(function: Callable, inputs: list[Jet], tr: Truncation) -> list[Jet]:
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
                f = slope(f, np.eye(tr.dimension, dtype=origin.dtype)[i])
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


def slope(g: Callable, direction) -> Callable:
    return lambda v: jax.jvp(g, (v,), (direction,))[1]
