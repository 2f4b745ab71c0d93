"""Scales: the sizes of a problem's axes, unknowns and conditions, so that the network works with numbers near one.

With the centre c_i and half-width h_i of axis i, the size U_j of unknown j and the size S_m of condition m, the network maps

    xi_i = (x_i - c_i) / h_i  in [-1, 1]      to      u_j / U_j,

and what is minimised is F_m / S_m. People see their own units only. U and S are powers of two: a change of units by powers
of two changes no bit of a run.

Sizes of unknowns. With smooth functions phi of size one in xi (`stand_ins`), a condition that is linear in u_j alone and
has a part b_m without it is balanced by U_j = |b_m| / |F_m' phi|, or by less where its terms grow faster than linearly:

    values      conditions on values themselves (initial, Dirichlet): U_j is the largest |b_m|
    sources     equations against their sources, where values are zero or far smaller
    others      an unknown that no data determine (a pressure) has the size that balances the other terms, in the
                geometric mean over conditions

Sizes of conditions. With v the derivatives of u that F_m asks for, the size of its terms is

    T_m = |F_m(0)| + sum_i |v_i dF_m/dv_i|,

a root mean square over points; S_m is T_m for the stand-ins, of the sizes U. Of data it is the size of their values.

Levels. Some terms have no sensible values for functions about zero: exp(-E/T), log(h). There an unknown whose given values
vary little about their mean (a temperature in kelvin) begins near that mean, and so do its stand-ins.

Coefficients stand at the values with which they start, whose sizes are theirs; one that starts at zero has the size that
balances its equation.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dsgnar.calculus.precision import x64
from dsgnar.calculus.streams import stream
from dsgnar.problem.domain import Box
from dsgnar.problem.fields import Field, arguments, evaluate
from dsgnar.problem.inverse import axes_of, is_positive
from dsgnar.problem.problem import Problem
from dsgnar.problem.sampling import sample

SAMPLE = 64  # points of each condition
STAND_INS = 4
STEEP = 4.0  # terms that are so much larger than the rest where they should balance it grow faster than linearly
LITTLE = 0.25  # a standard deviation over the mean
WILD = 1e9  # times the median of a residual: beyond what stand-ins should make of it
POLE = 4.0  # by which the root mean square over all stand-ins exceeds that of the median of them, where some are near a pole
HUGE = 1e150  # whose square is not finite
HALVINGS = 60  # of a size, at most
FAR = 32.0  # sources that ask for more than this times the given values set the size


@dataclass(frozen=True)
class Scales:
    """Sizes in the order of the problem's axes, unknowns and conditions."""

    axes: tuple[tuple[float, float], ...]  # centre and half-width
    unknowns: tuple[float, ...]  # and coefficients
    conditions: tuple[float, ...]
    levels: tuple[float, ...] = ()  # where unknowns begin, over their sizes; nothing: all at zero

    def inward(self, x: Float[Array, " d"], place: Float[Array, " 2"] | None, time: int | None) -> Float[Array, " d"]:
        """xi of a point; in a time march `place` is the centre and the inverse half-width of its interval."""
        centre = jnp.asarray([c for c, _ in self.axes], x.dtype)
        inverse = jnp.asarray([1 / h for _, h in self.axes], x.dtype)
        if place is not None and time is not None:
            centre, inverse = centre.at[time].set(place[0]), inverse.at[time].set(place[1])
        return (x - centre) * inverse


def intervals(domain: Box) -> tuple[tuple[float, float], ...]:
    """Centre and half-width of every axis."""
    return tuple(((a + b) / 2, (b - a) / 2) for a, b in domain.bounds)


def power_of_two(size: float) -> float:
    """The power of two nearest to a size, by ratio; 1 where there is none."""
    if not 0 < size < math.inf:
        return 1.0
    mantissa, exponent = math.frexp(size)  # size = mantissa 2^exponent, mantissa in [1/2, 1)
    return math.ldexp(1.0, exponent - (mantissa < math.sqrt(0.5)))


@x64
def estimate(problem: Problem, given: Mapping[str, float] | None = None) -> Scales:
    """The scales of a problem; sizes of unknowns that are given are taken as they are, up to a power of two."""
    for name in given or {}:
        if name not in problem.outputs:
            raise ValueError(f"scales: there is no unknown {name!r}; the problem has {', '.join(problem.outputs)}")
    axes = intervals(problem.domain)
    given = {name: power_of_two(size) for name, size in (given or {}).items()}
    measure = {name: _Measured(problem, name, axes) for name in problem.conditions}
    sizes, filled = _sizes(problem, measure, dict(given))
    levels = dict.fromkeys(problem.unknowns, 0.0)
    if not problem.inverse and any(m.wild(filled) for m in measure.values()):
        levels = {name: _level(name, measure) for name in problem.unknowns}
    if any(levels.values()):
        signs = tuple(float(np.sign(levels[name])) for name in problem.unknowns)
        measure = {name: _Measured(problem, name, axes, signs) for name in problem.conditions}
        sizes, filled = _sizes(problem, measure, dict(given))
    conditions = tuple(power_of_two(measure[name].terms(filled)) for name in problem.conditions)
    unknowns = tuple(float(sizes.get(name, 1.0)) for name in problem.outputs)
    begin = tuple(levels[name] / sizes.get(name, 1.0) for name in problem.unknowns)
    return Scales(axes, unknowns, conditions, begin if any(begin) else ())


def _level(name: str, measure: dict[str, "_Measured"]) -> float:
    """The mean of the values that conditions give an unknown, if they vary little about it; else 0."""
    given = [m.given(name) for m in measure.values() if m.plain and m.unknowns == {name} and not m.measured]
    values = np.concatenate(given) if given else np.zeros(1)
    mean = float(np.mean(values))
    return mean if float(np.std(values)) < LITTLE * abs(mean) < math.inf else 0.0


def _sizes(problem: Problem, measure: dict[str, "_Measured"], known: dict[str, float]) -> tuple[dict[str, float], Array]:
    """The sizes that can be told, and those of all outputs, coefficients at their starts."""
    for name in (name for name in problem.unknowns if name not in known):
        alone = [m for m in measure.values() if m.unknowns == {name}]
        values = max((m.balance(name, {}) for m in alone if m.plain), default=0.0)
        sources = max((m.balance(name, {}) for m in alone if not m.plain), default=0.0)
        size = values if values > 0 and sources <= FAR * values else max(values, sources)
        if size > 0:
            known[name] = power_of_two(size)
    for _ in problem.unknowns:  # those that only others determine, one after the other
        for name in problem.unknowns:
            if name not in known:
                sizes = [m.balance(name, known) for m in measure.values() if name in m.unknowns]
                sizes = [size for size in sizes if size > 0]
                if sizes:
                    known[name] = power_of_two(math.exp(sum(map(math.log, sizes)) / len(sizes)))
    for name, coefficient in problem.coefficients.items():
        if name not in known:
            size = abs(coefficient.start) or max((m.balance(name, known) for m in measure.values()), default=0.0)
            known[name] = power_of_two(size)
    starts = {name: c.start or known[name] for name, c in problem.coefficients.items()}
    return known, jnp.asarray([(known | starts).get(name, 1.0) for name in problem.outputs])


class _Measured:
    """One condition, evaluated on stand-ins at some points."""

    def __init__(self, problem: Problem, name: str, axes, signs: tuple[float, ...] = ()):
        self.problem, self.name = problem, name
        requests = problem.requests[name]
        self.unknowns = {u for u, keys in requests.items() if keys and u not in problem.coefficients}
        zero = (0,) * problem.domain.dimension
        self.plain = all(key == zero for keys in requests.values() for key in keys)  # on values, not on derivatives
        condition = problem.conditions[name]
        self.points = jnp.asarray(sample(condition.part, problem.domain, SAMPLE, stream(0, "scales", name)))
        self.measured = 0.0 if condition.measured is None else condition.measured.size
        self.functions = stand_ins(problem, axes, signs)

        def residual(sizes, x, k):
            network = problem.constrained(lambda z: sizes * self.functions(z, k))
            return problem.residual(name, network, x, "nested")

        def slope(sizes, direction, x, k):
            return jax.jvp(lambda s: residual(s, x, k), (sizes,), (direction,))[1]

        def size(sizes, x, k):
            return term_size(problem, name, problem.constrained(lambda z: sizes * self.functions(z, k)), x)

        over = lambda f, fixed: jax.jit(jax.vmap(jax.vmap(f, (*[None] * fixed, 0, None)), (*[None] * fixed, None, 0)))
        self._residual, self._slope, self._size = over(residual, 1), over(slope, 2), over(size, 1)
        self.which = jnp.arange(STAND_INS)

    def balance(self, name: str, known: dict[str, float]) -> float:
        """The size of an unknown at which its terms are as large as the rest of the condition.

        To first order, and by as many factors of two less as its terms are too large there.
        """
        starts = {name: c.start for name, c in self.problem.coefficients.items()}
        sizes = jnp.asarray([starts.get(u, known.get(u, 0.0)) for u in self.problem.outputs])
        direction = jnp.asarray([float(u == name) for u in self.problem.outputs])
        nothing = self._residual(sizes, self.points, self.which)
        rest = math.hypot(_typical(nothing), self.measured)
        slope = _typical(self._slope(sizes, direction, self.points, self.which))
        size = rest / slope if slope > 0 else 0.0
        terms = lambda: _typical(self._residual(sizes + size * direction, self.points, self.which) - nothing)
        if 0 < size < math.inf and terms() > STEEP * rest > 0:
            for _ in range(HALVINGS):
                if terms() <= rest:
                    break
                size /= 2
        return size

    def given(self, name: str) -> np.ndarray:
        """The values of an unknown at which a condition on values vanishes, to first order."""
        key = (name, (0,) * self.problem.domain.dimension)
        residual = lambda v, x: of_derivatives(self.problem, self.name, [key], x, v[None])
        at_zero = jax.vmap(jax.value_and_grad(residual), (None, 0))(jnp.asarray(0.0), self.points)
        value, slope = map(np.asarray, at_zero)
        usable = np.isfinite(value) & np.isfinite(slope) & (slope != 0)
        return -value[usable] / slope[usable]

    def wild(self, sizes) -> bool:
        """Whether it has no sensible values for functions about zero: none at all, or some far beyond the others."""
        values = np.abs(np.asarray(self._residual(sizes, self.points, self.which)))
        return not np.max(values) <= WILD * np.median(values)

    def terms(self, sizes) -> float:
        return math.hypot(_typical(self._size(sizes, self.points, self.which)), self.measured)


def _typical(values: Float[Array, "stand_ins n"]) -> float:
    """A root mean square; where single stand-ins are near a pole of the residual, of what others make of the same points.

    Laws such as u / (u + 1) have poles that no solution comes near.
    """
    known = np.where(np.abs(values) < HUGE, np.abs(values), np.nan)
    usual = _rms(np.nanmedian(known[:, np.isfinite(known).any(axis=0)], axis=0))
    return usual if _rms(values) > POLE * usual > 0 else _rms(values)


def _rms(values) -> float:
    values = np.asarray(values)
    values = values[np.abs(values) < HUGE]  # neither infinite nor nan
    return float(np.sqrt(np.mean(values**2))) if values.size else 0.0


def stand_ins(problem: Problem, axes, signs: tuple[float, ...] = ()) -> Callable:
    """Smooth functions of size one, k = 0, 1, ..: waves of about one period over the domain, for each unknown another.

    About a level (`signs` is not zero), and where an unknown is positive, they are small waves about one.
    """
    rng = stream(0, "stand-ins")
    shape = (STAND_INS, len(problem.outputs), problem.domain.dimension)
    periodic = np.array([axis in problem.periodic for axis in problem.domain.axes])
    wave = jnp.asarray(np.where(periodic, np.pi, rng.uniform(1.0, 3.0, shape)))
    phase = jnp.asarray(rng.uniform(0.0, 2 * np.pi, shape[:2]))
    centre, half = (jnp.asarray(v) for v in np.asarray(axes).T)
    depends = [[axis in axes_of(problem, name) for axis in problem.domain.axes] for name in problem.outputs]
    wave = wave if all(map(all, depends)) else wave * jnp.asarray(depends)  # functions of fewer axes
    positive = np.array([is_positive(problem, name) or name in problem.coefficients for name in problem.outputs])

    def function(x, k):
        xi = (x - centre) / half
        values = jnp.sqrt(2.0) * jnp.sin(wave[k] @ xi + phase[k])
        if any(signs):
            values = jnp.where(jnp.asarray(signs) == 0, values, jnp.asarray(signs) + LITTLE * values)
        if positive.any():
            constant = ~np.any(depends, axis=1)
            values = jnp.where(constant, 1.0, jnp.where(positive, 1.0 + 0.3 * values, values))
        return values

    return function


def of_derivatives(problem: Problem, name: str, keys: list, x: Float[Array, " d"], values: Array) -> Float[Array, ""]:
    """The residual of a condition as a function of the derivatives that it asks for, listed by `keys`."""
    place = {pair: k for k, pair in enumerate(keys)}
    made = {u: Field(u, problem.domain, lambda key, u=u: values[place[u, key]]) for u in problem.outputs}
    result = problem._signature(name)(arguments(made, problem.domain, problem.conditions[name].part, x))
    return jnp.asarray(result.value if isinstance(result, Field) else result, x.dtype)


def term_size(problem: Problem, name: str, network: Callable, x: Float[Array, " d"]) -> Float[Array, ""]:
    """T_m at one point: the size of the terms of a condition."""
    requests = problem.requests[name]
    fields = evaluate(network, x, problem.outputs, requests, problem.domain, "nested")
    keys = [(u, key) for u, asked in requests.items() for key in sorted(asked, key=str)]
    if not keys:
        return jnp.abs(of_derivatives(problem, name, keys, x, jnp.zeros(0)))
    values = jnp.stack([jnp.asarray(fields[u]._lookup(key)) for u, key in keys])
    residual = partial(of_derivatives, problem, name, keys, x)
    nothing = jnp.abs(residual(jnp.zeros_like(values)))
    return jnp.nan_to_num(nothing) + jnp.sum(jnp.abs(values * jax.grad(residual)(values)))
