"""How wrong is it? An estimate of the error from the residuals, without a reference.

With the residuals r = F(u) of a solution, its error e satisfies F(u + e) = 0, and to first order

    F'(u) e = -r.

The equation is solved by least squares for e in a linear space that is not the network's: at the end of a run the network's
own directions see nothing of the residual that is left. Everything is evaluated in float64 at new points, denser towards
the ends of each axis and weighted accordingly; on a shape the space is that of its bounding box, at points of it. Much
of a residual is rough and carries little error, so that the space need not hold all of it: what counts is that the estimate
stays the same in another space. It is unknown where

    spread        half of the space, or another one, gives another error
    nonlinear     F(u + e) is not what F(u) + F'(u) e predicts, against the terms of F'(u) e

Polynomials come first, with waves as the other space. Where they do not even resolve the solution (a sharp front), an
error at the front escapes them, and a space that follows the solution takes their place (`tangents.py`).

In a time march the error at the end of an interval is the error with which the next begins. Rounding counts too: for a
solution in single precision the difference to its own evaluation in float64, in double the error that belongs to the
rounding of the residuals.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from dsgnar.calculus.precision import x64
from dsgnar.calculus.spaces import Polynomials, Space, Waves
from dsgnar.calculus.streams import stream
from dsgnar.networks.parameters import neighbour
from dsgnar.problem.domain import Boundary, Box, Initial, Interior, Points
from dsgnar.problem.sampling import prefer, sample
from dsgnar.solving.correction import FULL, HALF, ROUNDING, Correction, Piece, derivative, inward, least_squares
from dsgnar.solving.estimate import Estimate
from dsgnar.solving.evaluation import by_interval, located
from dsgnar.solving.model import Model
from dsgnar.solving.tangents import Own
from dsgnar.solving.verdict import Judge

COLUMNS = 700  # functions in all
COLUMNS_1D = 240  # and for each unknown of one variable
ROWS = 3  # points of an interior condition for each function
OWN_ROWS = 8  # in a space that follows the solution: its functions vary fast in few places
CANDIDATES = 4  # points there of which one is chosen by its residual
RESOLVED = 1e-2  # the relative error with which polynomials are to follow a solution
SAMPLE = 2000  # points at which errors are compared with values


@dataclass(frozen=True, eq=False)
class Rows:
    """One condition, linearised at points of an interval."""

    name: str | None  # None: hard values, which hold exactly
    points: Float[np.ndarray, "n d"]
    weight: Float[np.ndarray, " n"]
    residual: Float[np.ndarray, " n"]
    rounding: Float[np.ndarray, " n"]  # of the residual
    slopes: Float[np.ndarray, "n keys"]
    handed_over: bool  # whether the initial error is that of the interval before


@x64
def estimate(
    model: Model, thetas: Float[np.ndarray, "intervals parameters"], judge: Judge, tol: float = math.inf
) -> Estimate:
    """The error of a solution; a rough estimate does where that is above a tolerance already."""
    estimator = _Estimator(model, thetas, judge)
    found = estimator.smooth()
    if (tol < math.inf and not found.meets(tol)) or estimator.resolved:
        return found
    return replace(estimator, rows=OWN_ROWS).own()


@dataclass(frozen=True, eq=False)
class _Estimator:
    model: Model
    thetas: Float[np.ndarray, "intervals parameters"]
    judge: Judge
    rows: int = ROWS

    def smooth(self) -> Estimate:
        """In polynomials, checked in half of them and in waves."""
        waves = Waves.of(self.size, self.periodic, stream(0, "waves"))
        return self._compared(lambda k: self.polynomials, lambda k: waves)

    def own(self) -> Estimate:
        """In a space that follows the solution, checked in half of it and in another one."""
        size, wraps, tangents = self.size, self.periodic, self.judge.tangents
        spaces = [lambda k, seed=seed: Own.of(size, wraps, tangents, self.model, k, self.wide[k], seed) for seed in (0, 1)]
        return self._compared(*spaces)

    def _compared(self, space: Callable[[int], Space], other: Callable[[int], Space]) -> Estimate:
        """The error in one space, checked in half of it and in another; spaces belong to time intervals."""
        unknowns = self.model.problem.unknowns
        pieces, others = self._through(space), self._through(other)
        rounding = np.maximum(self._norms([p[ROUNDING] for p in pieces]), self._evaluation)
        kinds = [[p[HALF] for p in pieces], [p[FULL] for p in pieces], [p[FULL] for p in others]]
        found = [np.hypot(self._norms(kind), rounding) for kind in kinds]
        with np.errstate(invalid="ignore", divide="ignore"):
            ratios = np.nan_to_num(np.max(found, axis=0) / np.min(found, axis=0), nan=1.0, posinf=math.inf)
        full = tuple(p[FULL] for p in pieces)
        return Estimate(
            dict(zip(unknowns, map(float, found[FULL]), strict=True)),
            float(np.max(ratios)),
            max(self._nonlinear(k, piece) for k, piece in enumerate(full)),
            dict(zip(unknowns, map(float, rounding), strict=True)),
            Correction(self.model.march, full),
        )

    @cached_property
    def size(self) -> int:
        """Functions of a space."""
        problem = self.model.problem
        return COLUMNS_1D if problem.domain.dimension == 1 else COLUMNS // len(problem.unknowns)

    @cached_property
    def polynomials(self) -> Polynomials:
        return Polynomials.of(self.size, self.periodic)

    @cached_property
    def resolved(self) -> bool:
        """Whether polynomials follow the solution itself."""
        zero, values = (0,) * self.model.problem.domain.dimension, self.model.residuals.ansatz.values
        for k in range(self.model.march.count):
            box = self.model.march.domain(self.model.problem.domain, k)
            points = sample(Interior(), box, ROWS * self.size, stream(0, "resolved", k), "clustered")
            u = np.asarray(values(jnp.asarray(self.wide[k]), jnp.asarray(located(self.model, points, k)))) / self.sizes
            table = derivative(self.polynomials, box, points, zero)
            fit = np.linalg.lstsq(table[::2], u[::2])[0]
            if not np.all(_rms(table[1::2] @ fit - u[1::2]) <= RESOLVED):
                return False
        return True

    @cached_property
    def periodic(self) -> tuple[bool, ...]:
        problem = self.model.problem
        return tuple(axis in problem.periodic for axis in problem.domain.axes)

    @cached_property
    def wide(self) -> Float[np.ndarray, "intervals parameters"]:
        return self.thetas.astype(np.float64)

    # --- how large ----------------------------------------------------------------------------------------------------

    @cached_property
    def inside(self) -> list[Float[np.ndarray, "n d"]]:
        """Points of every interval, the more the longer it is."""
        whole = self.model.problem.domain
        boxes = [self.model.march.domain(whole, k) for k in range(self.model.march.count)]
        share = [1.0] if whole.time is None else np.array([np.ptp(box.interval(whole.time)) for box in boxes])
        counts = np.ceil(SAMPLE * np.array(share) / np.sum(share)).astype(int)
        return [
            sample(Interior(), box, n, stream(0, "error", k))
            for k, (box, n) in enumerate(zip(boxes, counts, strict=True))
        ]

    @cached_property
    def sizes(self) -> Float[np.ndarray, " unknowns"]:
        """Root mean squares of the solution."""
        return _rms(by_interval(self.model, self.wide, self.model.residuals.ansatz.values, np.concatenate(self.inside)))

    @cached_property
    def _evaluation(self) -> Float[np.ndarray, " unknowns"]:
        """What evaluation in the solution's own precision adds."""
        points, values = np.concatenate(self.inside), self.model.residuals.ansatz.values
        here, there = (by_interval(self.model, thetas, values, points) for thetas in (self.thetas, self.wide))
        return _rms(here - there) / self.sizes

    def _norms(self, pieces: list[Piece]) -> Float[np.ndarray, " unknowns"]:
        zero = (0,) * self.model.problem.domain.dimension
        return (
            _rms(np.concatenate([p.derivative(x, zero) for p, x in zip(pieces, self.inside, strict=True)])) / self.sizes
        )

    # --- the equation of the error ------------------------------------------------------------------------------------

    def _through(self, space: Callable[[int], Space]) -> list[tuple[Piece, ...]]:
        """Errors by interval: in half of a space, in all of it, and that of rounding."""
        out: list[tuple[Piece, ...]] = []
        for k, rows in enumerate(self._rows):
            box = self.model.march.domain(self.model.problem.domain, k)
            out.append(self._solve(box, space(k), rows, out[-1] if out else None))
        return out

    @cached_property
    def _rows(self) -> list[list[Rows]]:
        return [[*self._stated(k), *self._hard(k)] for k in range(self.model.march.count)]

    def _stated(self, k: int) -> Iterator[Rows]:
        """The conditions of a problem in interval k."""
        model, judge, theta = self.model, self.judge, self.wide[k]
        typical = judge.typical(theta, located(model, self.inside[k], k))
        moved = neighbour(theta, stream(0, "error", "rounding", k)) if self.thetas.dtype == np.float64 else theta
        for name, condition in model.problem.conditions.items():
            points, weight = self._points(name, model.march.domain(model.problem.domain, k))
            if self.rows == OWN_ROWS and isinstance(condition.part, Interior):
                points, weight = self._where_large(name, k, points, weight)
            placed = located(model, points, k)
            value, nothing, slopes = judge.linearised(name, theta, placed)
            rounding = judge.linearised(name, moved, placed)[0] - value if moved is not theta else 0.0 * value
            later = isinstance(condition.part, Initial) and k > 0
            if later:
                value = value - judge.linearised(name, self.wide[k - 1], located(model, points, k - 1))[0]
            terms = judge.terms(name, nothing, slopes, typical)
            weight = weight / ((terms or 1.0) * math.sqrt(len(points)))
            yield Rows(name, points, weight, value, rounding, slopes, later)

    def _hard(self, k: int) -> Iterator[Rows]:
        """Hard values have no error."""
        box, keys = self.model.march.domain(self.model.problem.domain, k), self.judge.keys
        for name, hard in self.model.problem.hard.items():
            unknown, size = (
                keys.index((name, (0,) * box.dimension)),
                self.sizes[self.model.problem.unknowns.index(name)],
            )
            for part in hard.on:
                points = sample(part, box, self.size, stream(0, "error", "hard", name), "clustered")
                slopes, nothing = np.zeros((len(points), len(keys))), np.zeros(len(points))
                slopes[:, unknown] = 1
                weight = np.full(len(points), 1 / ((size or 1.0) * math.sqrt(len(points))))
                yield Rows(None, points, weight, nothing, nothing, slopes, False)

    def _points(self, name: str, box: Box) -> tuple[np.ndarray, np.ndarray]:
        """Points of a condition, denser towards the ends of each axis, and weights as if they were not."""
        problem = self.model.problem
        part, count = problem.conditions[name].part, self.rows * self.size * min(2, len(problem.unknowns))
        count = count * (CANDIDATES if self.rows == OWN_ROWS else 1) if isinstance(part, Interior) else count // 2
        points = sample(part, box, count, stream(0, "error", name), "clustered", periodic=problem.periodic)
        if isinstance(part, Points):
            return points, np.ones(len(points))
        xi = inward(box, points)
        free = (np.abs(xi) < 1) & ~np.array(self.periodic)
        if isinstance(part, Boundary) and box.shaped:  # uniform in space
            free[:, [box.index(axis) for axis in box.space]] = False
        return points, np.prod(np.where(free, np.maximum(1 - xi**2, 1e-16) ** 0.25 * math.sqrt(np.pi / 2), 1.0), axis=1)

    def _where_large(self, name: str, k: int, points: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A quarter of the points, most of them where residuals are large, and weights as if they were anywhere."""
        theta, placed = jnp.asarray(self.wide[k]), located(self.model, points, k)
        size = np.abs(self.model.residuals.vector(name, theta, placed))
        density = 0.5 + 0.5 * size / max(float(np.mean(size)), 1e-300)
        chosen = prefer(density, len(points) // CANDIDATES, stream(0, "error", "large", name))
        return points[chosen], weight[chosen] / np.sqrt(density[chosen])

    def _solve(self, box: Box, space: Space, rows: list[Rows], before: tuple[Piece, ...] | None) -> tuple[Piece, ...]:
        """The errors in an interval, from one factorisation."""
        unknowns, keys = self.model.problem.unknowns, self.judge.keys
        blocks, right = [], []
        for row in rows:
            asked = [i for i in range(len(keys)) if np.any(row.slopes[:, i])]
            tables = {key: derivative(space, box, row.points, key) for key in {keys[i][1] for i in asked}}
            block = np.zeros((len(row.points), space.size, len(unknowns)))
            b = np.stack([-row.residual, -row.residual, -row.rounding], axis=1)
            for i in asked:
                (name, key), slope = keys[i], row.slopes[:, i, None]
                j = unknowns.index(name)
                block[:, :, j] += slope * tables[key]
                if row.handed_over and before is not None:
                    b += slope * np.stack([piece.derivative(row.points, key)[:, j] for piece in before], axis=1)
            blocks.append(row.weight[:, None] * block.reshape(len(row.points), -1))
            right.append(row.weight[:, None] * b)
        coefficients = least_squares(np.concatenate(blocks), np.concatenate(right), space.size // 2 * len(unknowns))
        return tuple(Piece(box, space, c.reshape(space.size, len(unknowns))) for c in coefficients)

    def _nonlinear(self, k: int, piece: Piece) -> float:
        """What the linearisation misses over the size of its terms, in the worst condition."""
        unknowns, keys, worst = self.model.problem.unknowns, self.judge.keys, 0.0
        for row in self._rows[k]:
            if row.name is None or row.handed_over:
                continue
            change = np.stack([piece.derivative(row.points, key)[:, unknowns.index(n)] for n, key in keys], axis=1)
            parts = row.slopes * change
            values = self.judge.derivatives(self.wide[k], located(self.model, row.points, k))
            there = self.judge.at(row.name, row.points, values + change)
            missed = there - (row.residual + parts.sum(axis=1))
            size = np.linalg.norm(np.abs(parts).sum(axis=1)) + 10 * np.linalg.norm(row.rounding)
            worst = max(worst, float(np.linalg.norm(missed) / size)) if size > 0 else worst
        return worst


def _rms(values: np.ndarray) -> np.ndarray:
    return np.sqrt(np.mean(np.asarray(values, np.float64) ** 2, axis=0))
