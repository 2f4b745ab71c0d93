"""How fast does the solution vary? A look at a problem before a network is chosen.

Networks find what varies slowly by themselves. A wave of ten periods they do not find: the loss never leaves that of u = 0.
So the problem is first solved roughly, by least squares in a linear space on the box [-1, 1]^d (the space of the error
estimate, `calculus/spaces.py`),

    u = sum_k c_k phi_k,     F'(u) e = -F(u),  u <- u + a e,     a = 1, 1/2, ..  until the residual falls,

from zero, or from a smooth fit of the given values. A linear problem takes one step; a nonlinear one a few, and may fail:
then nothing is known. The energy of the coefficients by degree shows how fast the solution varies along each axis: the
Chebyshev coefficients of cos(w xi) end at a degree of about w + 2 + 1.3 w^(1/3), those along a periodic axis at w.

The rough solution is thrown away. Where it varies fast, the network begins with sines of these frequencies.
"""

import itertools
import math
from dataclasses import dataclass
from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.linalg import solve_triangular

from dsgnar.calculus.jets import Truncation
from dsgnar.calculus.precision import x64
from dsgnar.calculus.spaces import Polynomials
from dsgnar.calculus.streams import stream
from dsgnar.problem import Problem
from dsgnar.problem.domain import Interior
from dsgnar.problem.inverse import plain
from dsgnar.problem.sampling import sample
from dsgnar.problem.scales import Scales, of_derivatives
from dsgnar.solving.correction import derivative

COLUMNS = 300, 700  # functions in all: a quick look, and a closer one where that does not hold the solution
COLUMNS_1D = 80, 240  # and for each unknown of one variable
MORE = 2  # times as many for linear problems that these do not hold: a packet in a wide box
ROWS = 2  # points of all interior conditions together for each function; others have half of it
STEPS = 6  # of Newton's method
SHORTEST = 0.2  # of the steps that are tried
RIDGE = 1e-12
NOT_FINITE = 1e30  # what counts as a residual where there is none
SMOOTH = 1e-3  # by which the first fit prefers low degrees
STRETCH = 6  # of a space along one axis, where the even one does not hold the solution
ENERGY = 1e-4  # share of the energy beyond the degree at which a solution is said to end
LOST = 0.5  # a share that more functions do not help: Newton's method does not find the solution
NEARLY = 0.1  # a share with which a space that is stretched along one axis may do
HELD = 0.02  # share of the residual that may be left; more, and nothing is known
ROUGHLY = 0.15  # and of that of linear equations: no other solution is nearer
FAST, FAST_PERIODIC = 7.5, 20.0  # frequencies from which on a network needs to be told
MIXED = 0.4  # slopes over frequencies from which on several waves oscillate, and nothing is localised
STEEP = 1.5  # slopes over frequencies beyond which something is a layer
SAMPLE = 1000  # points at which slopes are compared with values
SLOWEST = 2.0  # with which a network begins along an axis
FULL = 0.9  # a spectrum that reaches so far into a space is cut off by it


@dataclass(frozen=True)
class Survey:
    """What was seen along each axis, in radians per half-width: where the spectrum ends, and |du/dxi| over |u|.

    For an oscillation the two agree. Something localised varies less as a whole than its spectrum is wide, and a layer at an
    end has slopes that no oscillation of its spectrum has: neither is found sooner from sines (docs/notes.md).
    """

    frequencies: tuple[float, ...]
    slopes: tuple[float, ...]
    periodic: tuple[bool, ...]
    left: float  # share of the residual
    sizes: tuple[float, ...]  # root mean squares of the unknowns

    @property
    def fast(self) -> bool:
        """Whether the solution oscillates so much that networks do not find it by themselves.

        Harmonics of a periodic axis come more easily.
        """
        seen = zip(self.frequencies, self.slopes, self.periodic, strict=True)
        return any(self._oscillates(f, s, FAST_PERIODIC if p else FAST) for f, s, p in seen)

    def _oscillates(self, frequency: float, slope: float, fast: float) -> bool:
        """Whether it does along an axis. A slow wave with a fast one on it has a slope between theirs."""
        mixed = len(self.frequencies) > 1 and slope >= MIXED * frequency
        return frequency >= fast and (slope >= fast or mixed) and slope <= STEEP * frequency

    def begin_with(self) -> tuple[float, ...]:
        """Frequencies for the first layer of a network."""
        return begin_with(self.frequencies)


@lru_cache(maxsize=8)
@x64
def survey(problem: Problem, scales: Scales) -> Survey | None:
    """How fast the solution varies; None where it could not be seen."""
    inverse = not plain(problem) or any(c.measured is not None for c in problem.conditions.values())
    if problem.hard or problem.known or inverse:
        return None  # what is built into the network, and what only data determine, is not part of the space
    dimension = problem.domain.dimension
    even = (1,) * dimension
    along = (
        [tuple(STRETCH if i == k else 1 for i in range(dimension)) for k in range(dimension)] if dimension > 1 else []
    )
    few, many = COLUMNS_1D if dimension == 1 else (count // len(problem.unknowns) for count in COLUMNS)
    rough, best, shape = _Rough(problem, scales, few), None, even
    for size, stretch in ((few, even), (many, even), *((many, stretch) for stretch in along)):
        rough = rough if size == rough.size else _Rough(problem, scales, size)
        space = _space(size, rough.periodic, stretch)
        coefficients, left = rough.solve(space)
        found, limit = _seen(space, coefficients, left), LOST if size == few else NEARLY if stretch == even else math.inf
        if found is not None or (not left < limit and not rough.affine(space)):
            return found
        if best is None or left < best[2]:
            best, shape = (space, coefficients, left), stretch
    if best is None or not rough.affine(best[0]):
        return None
    if not best[2] <= ROUGHLY and dimension > 1:  # of a linear problem, the best shape with more functions
        rough = _Rough(problem, scales, MORE * many)
        space = _space(MORE * many, rough.periodic, shape)
        found = space, *rough.solve(space)
        best = found if found[2] < best[2] else best
    return _seen(*best, HELD if best[2] <= HELD else ROUGHLY)


def _seen(space: Polynomials, coefficients: np.ndarray, left: float, held: float = HELD) -> Survey | None:
    """The frequencies of a rough solution, if the space holds it; what is left of the residual hides as much of them."""
    if not left <= held:
        return None
    share = coefficients**2 / np.maximum(np.sum(coefficients**2, axis=0), 1e-300)  # of each unknown, whatever its units
    energy, out = share.sum(axis=1), []
    for i, wraps in enumerate(space.periodic):
        by_degree = np.bincount(space.degrees[:, i], energy)
        beyond = np.cumsum(by_degree[::-1])[::-1] / by_degree.sum()
        end = int(np.count_nonzero(beyond > (ENERGY if held == HELD else left**2))) - 1  # the last degree that counts
        if end > FULL * (len(by_degree) - 1):
            return None
        out.append(math.pi * ((end + 1) // 2) if wraps else frequency(end))
    slopes, sizes = _slopes(space, coefficients)
    return Survey(tuple(out), slopes, space.periodic, left, sizes)


def frequency(end: int) -> float:
    """That of a cosine whose Chebyshev coefficients end at a degree."""
    return max(0.0, end - 1 - 1.3 * (end + 1) ** (1 / 3))


def begin_with(frequencies: tuple[float, ...]) -> tuple[float, ...]:
    """Frequencies for the first layer of a network: half, since further layers make them faster; rounded upwards to powers
    of two, so that no run depends on the last digits of a rough solution."""
    return tuple(max(SLOWEST, 2.0 ** math.ceil(math.log2(f / 2))) if f > 0 else SLOWEST for f in frequencies)


def _slopes(space: Polynomials, coefficients: np.ndarray) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """|du/dxi| over |u - its mean| along each axis, of the unknown in which it is largest; and the sizes of all."""
    dimension = len(space.periodic)
    xi = stream(0, "survey", "slopes").uniform(-1, 1, (SAMPLE, dimension))
    u = space.derivative(xi, (0,) * dimension) @ coefficients
    size = np.maximum(np.std(u, axis=0), 1e-9 * np.max(np.abs(u), axis=0, initial=0.0))
    along = [space.derivative(xi, Truncation.unit(dimension, i, 1)) @ coefficients for i in range(dimension)]
    steep = [np.sqrt(np.mean(d**2, axis=0))[size > 0] / size[size > 0] for d in along]
    sizes = np.sqrt(np.mean(u**2, axis=0))
    return tuple(float(np.max(s, initial=0.0)) for s in steep), tuple(map(float, sizes))


def _space(size: int, periodic: tuple[bool, ...], stretch: tuple[int, ...]) -> Polynomials:
    """Products by total degree, with degrees along some axes counting less."""
    dimension = len(periodic)
    reach = (math.factorial(dimension) * size / math.prod(stretch)) ** (1 / dimension) + 1
    every = itertools.product(*(range(math.ceil(s * reach) + 1) for s in stretch))
    order = lambda degrees: (sum(k / s for k, s in zip(degrees, stretch, strict=True)), max(degrees), degrees)
    return Polynomials(np.array(sorted(every, key=order)[:size]), periodic)


class _Rough:
    """A problem at points, for functions of a linear space."""

    def __init__(self, problem: Problem, scales: Scales, size: int):
        self.problem, self.size, domain = problem, size, problem.domain
        zero, unknowns = (0,) * domain.dimension, problem.unknowns
        asked: dict[str, set] = {name: {zero} for name in unknowns}
        for requests in problem.requests.values():
            for name, keys in requests.items():
                asked[name] |= keys
        self.keys = [(name, key) for name, keys in asked.items() for key in sorted(keys, key=str)]
        self.periodic = tuple(axis in problem.periodic for axis in domain.axes)
        value = lambda name: lambda v, x: of_derivatives(problem, name, self.keys, x, v)
        self._values = {name: jax.jit(jax.vmap(value(name))) for name in problem.conditions}
        self._slopes = {name: jax.jit(jax.vmap(jax.grad(value(name)))) for name in problem.conditions}
        self.points, self.weights, self.plain = {}, {}, set()
        inside = sum(isinstance(condition.part, Interior) for condition in problem.conditions.values())
        many = ROWS * size * len(unknowns) // max(1, inside)
        few = ROWS * size * len(unknowns) // (2 * max(1, len(problem.conditions) - inside))
        for (name, condition), terms in zip(problem.conditions.items(), scales.conditions, strict=True):
            count = many if isinstance(condition.part, Interior) else few
            rng = stream(0, "survey", name)
            self.points[name] = sample(condition.part, domain, count, rng, "clustered", periodic=problem.periodic)
            self.weights[name] = 1 / (terms * math.sqrt(len(self.points[name])))
            if all(key == zero for keys in problem.requests[name].values() for key in keys):
                self.plain.add(name)

    def solve(self, space: Polynomials) -> tuple[Float[np.ndarray, "size unknowns"], float]:
        """Coefficients, and the residual over that of zero."""
        tables = self._tables(space)
        zero = np.zeros((space.size, len(self.problem.unknowns)))
        nothing = np.linalg.norm(self._residual(tables, zero))
        if not 0 < nothing < NOT_FINITE:
            return zero, math.nan  # no residual at all, or one that zero does not have
        c, left = self._newton(tables, zero)
        if left > HELD * nothing and self.plain:
            near = self._step(tables, zero, self.plain, SMOOTH * (1.0 + space.degrees.sum(axis=1)))
            c, left = min((c, left), self._newton(tables, near), key=lambda found: found[1])
        return c, float(left / nothing)

    def affine(self, space: Polynomials) -> bool:
        """Whether the equations are linear: then it is the space that does not hold the solution, not Newton's method."""
        tables = self._tables(space)
        c = stream(0, "survey", "affine").normal(size=(space.size, len(self.problem.unknowns)))
        two, one, zero = (self._residual(tables, k * c) for k in (2, 1, 0))
        return bool(np.linalg.norm(two - 2 * one + zero) < 1e-9 * np.linalg.norm(two - zero))

    def _tables(self, space: Polynomials) -> dict:
        """Derivatives of all functions at the points of all conditions."""
        kinds = {key for _, key in self.keys}
        make = partial(derivative, space, self.problem.domain)
        return {name: {key: make(points, key) for key in kinds} for name, points in self.points.items()}

    def _newton(self, tables: dict, c: np.ndarray) -> tuple[np.ndarray, float]:
        """Coefficients of a rough solution, and the norm of its residual."""
        ridge = np.full(len(c), RIDGE)
        now = first = float(np.linalg.norm(self._residual(tables, c)))
        for _ in range(STEPS):
            e, a = self._step(tables, c, set(self.points), ridge), 1.0
            after = float(np.linalg.norm(self._residual(tables, c + e)))
            while not after < (1 - 0.1 * a) * now and a > SHORTEST:
                a /= 2
                after = float(np.linalg.norm(self._residual(tables, c + a * e)))
            if not after < now:
                break
            c, before, now = c + a * e, now, after
            if now < 1e-6 * first or (a == 1 and now > 0.7 * before):
                break
        return c, now

    def _at(self, tables: dict, c: np.ndarray, name: str) -> np.ndarray:
        """The derivatives that conditions ask for, at the points of one of them."""
        column = self.problem.unknowns.index
        return np.stack([tables[name][key] @ c[:, column(unknown)] for unknown, key in self.keys], axis=1)

    def _residual(self, tables: dict, c: np.ndarray, names: set[str] | None = None) -> np.ndarray:
        """All residuals over the size of their conditions; what is not finite is very large."""
        out = []
        for name, x in self.points.items():
            if names is None or name in names:
                value = self._values[name](jnp.asarray(self._at(tables, c, name)), jnp.asarray(x))
                out.append(np.asarray(value) * self.weights[name])
        return np.nan_to_num(np.concatenate(out), nan=NOT_FINITE, posinf=NOT_FINITE, neginf=-NOT_FINITE)

    def _step(self, tables: dict, c: np.ndarray, names: set[str], ridge: np.ndarray) -> np.ndarray:
        """e of F'(u) e = -F(u) for some of the conditions."""
        blocks, unknowns = [], self.problem.unknowns
        for name, x in self.points.items():
            if name in names:
                slopes = np.nan_to_num(self._slopes[name](jnp.asarray(self._at(tables, c, name)), jnp.asarray(x)))
                block = np.zeros((len(x), *c.shape))
                for i, (unknown, key) in enumerate(self.keys):
                    if np.any(slopes[:, i]):
                        block[:, :, unknowns.index(unknown)] += slopes[:, i, None] * tables[name][key]
                blocks.append(self.weights[name] * block.reshape(len(x), -1))
        matrix = np.concatenate(blocks)
        scale = np.linalg.norm(matrix, axis=0)
        scale[scale == 0] = 1.0
        right = np.concatenate([-self._residual(tables, c, names), np.zeros(c.size)])
        system = np.concatenate([matrix / scale, np.diag(np.repeat(ridge, c.shape[1]))])
        R = np.asarray(np.linalg.qr(np.column_stack([system, right]), mode="r"))
        e = solve_triangular(R[:-1, :-1], R[:-1, -1], check_finite=False) / scale
        return np.nan_to_num(e.reshape(c.shape))
