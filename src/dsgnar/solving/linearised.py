"""The equation of the error of a solution, F'(u) e = -r, at points of every time interval, solved by least squares."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from dsgnar.calculus.spaces import Kink, Space
from dsgnar.calculus.streams import stream
from dsgnar.networks.parameters import neighbour
from dsgnar.problem.domain import Boundary, Box, Initial, Interior, Points
from dsgnar.problem.jumps import kinks
from dsgnar.problem.sampling import prefer, sample
from dsgnar.solving.correction import FULL, HALF, ROUNDING, LeastSquares, Piece, derivative, inward
from dsgnar.solving.evaluation import by_interval, located
from dsgnar.solving.model import Model
from dsgnar.solving.verdict import Judge

COLUMNS = 700  # functions in all
COLUMNS_1D = 240  # and for each unknown of one variable
MANY = 4  # time intervals, beyond which an error in one of them needs half of that
EACH = 3  # points of an interior condition for each function
EACH_AT_FRONTS = 8  # in a space that follows the solution: its functions vary fast in few places
CANDIDATES = 4  # points there of which one is chosen by its residual
SAMPLE = 2000  # points at which errors are compared with values
EPS = float(np.finfo(np.float64).eps)


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


@dataclass(frozen=True, eq=False)
class Equation:
    """The equation of the error; `fronts`: with more points, most of them where residuals are large."""

    model: Model
    thetas: Float[np.ndarray, "intervals parameters"]
    judge: Judge
    fronts: bool = False
    richer: int = 1  # by which a space has more functions than usual

    @cached_property
    def size(self) -> int:
        """Functions of a space."""
        problem = self.model.problem
        each = COLUMNS_1D if self.model.march.count <= MANY else COLUMNS_1D // 2  # short intervals have simpler errors
        return self.richer * (each if problem.domain.dimension == 1 else COLUMNS // len(problem.unknowns))

    @cached_property
    def periodic(self) -> tuple[bool, ...]:
        problem = self.model.problem
        return tuple(axis in problem.periodic for axis in problem.domain.axes)

    @cached_property
    def kinks(self) -> tuple[Kink, ...]:
        """Planes at which the error bends, as the solution does."""
        return kinks(self.model.problem, self.model.residuals.ansatz.scales)

    @cached_property
    def wide(self) -> Float[np.ndarray, "intervals parameters"]:
        return self.thetas.astype(np.float64)

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
        return rms(by_interval(self.model, self.wide, self.model.residuals.ansatz.values, np.concatenate(self.inside)))

    @cached_property
    def rows(self) -> list[list[Rows]]:
        return [[*self._stated(k), *self._hard(k)] for k in range(self.model.march.count)]

    def _stated(self, k: int) -> Iterator[Rows]:
        """The conditions of a problem in interval k."""
        model, judge, theta = self.model, self.judge, self.wide[k]
        typical = judge.typical(theta, located(model, self.inside[k], k))
        moved = neighbour(theta, stream(0, "error", "rounding", k)) if self.thetas.dtype == np.float64 else theta
        for name, condition in model.problem.conditions.items():
            points, weight = self._points(name, model.march.domain(model.problem.domain, k))
            if self.fronts and isinstance(condition.part, Interior):
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
        each = EACH_AT_FRONTS // self.richer if self.fronts else EACH
        part, count = problem.conditions[name].part, each * self.size * min(2, len(problem.unknowns))
        count = count * (CANDIDATES if self.fronts else 1) if isinstance(part, Interior) else count // 2
        points = sample(part, box, count, stream(0, "error", name), "clustered", periodic=problem.periodic)
        if isinstance(part, Points):
            return points, np.ones(len(points))
        xi = inward(box, points)
        free = (np.abs(xi) < 1) & ~np.array(self.periodic)
        if isinstance(part, Boundary) and box.shaped:  # uniform in space
            free[:, [box.index(axis) for axis in box.space]] = False
        return points, np.prod(np.where(free, np.maximum(1 - xi**2, 1e-16) ** 0.25 * math.sqrt(np.pi / 2), 1.0), axis=1)

    def _where_large(self, name: str, k: int, points: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A quarter of the points, more of them where residuals are large, and weights as if there were not."""
        theta, placed = jnp.asarray(self.wide[k]), located(self.model, points, k)
        size = np.abs(self.model.residuals.vector(name, theta, placed))
        density = 0.5 + 0.5 * size / max(float(np.mean(size)), 1e-300)
        chosen = prefer(density, len(points) // CANDIDATES, stream(0, "error", "large", name))
        return points[chosen], weight[chosen] / np.sqrt(density[chosen])

    def solve(self, box: Box, space: Space, rows: list[Rows], before: tuple[Piece, ...] | None) -> tuple[Piece, ...]:
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
        fit = LeastSquares.of(np.concatenate(blocks), np.concatenate(right), space.size // 2 * len(unknowns))
        most = self._most(box, space, fit.rough) if self.model.march.count == 1 else ()
        found = [fit.solution(side) for side in (HALF, FULL, ROUNDING)]
        return tuple(Piece(box, space, c.reshape(space.size, len(unknowns)), left, most) for c, left in found)

    def _most(self, box: Box, space: Space, rough: Float[np.ndarray, "c rough"]) -> tuple[float, ...]:
        """The largest root mean square of every unknown over errors that are sums of given ones, by their norm."""
        at, out = derivative(space, box, self.inside[0], (0,) * box.dimension), []
        for each in np.moveaxis(rough.reshape(space.size, len(self.model.problem.unknowns), -1), 1, 0):
            values = at @ each
            largest = np.linalg.eigvalsh(values.T @ values)[-1] if np.isfinite(values).all() else math.nan
            out.append(math.sqrt(max(largest, 0.0) / len(at)))
        return tuple(out)

    @np.errstate(over="ignore", invalid="ignore")  # an error that is far too large may not have a finite residual
    def nonlinear(self, k: int, piece: Piece) -> float:
        """What the linearisation misses over the size of its terms, in the worst condition."""
        unknowns, keys, worst = self.model.problem.unknowns, self.judge.keys, 0.0
        for row in self.rows[k]:
            if row.name is None or row.handed_over:
                continue
            change = np.stack([piece.derivative(row.points, key)[:, unknowns.index(n)] for n, key in keys], axis=1)
            parts = row.slopes * change
            values = self.judge.derivatives(self.wide[k], located(self.model, row.points, k))
            there = self.judge.at(row.name, row.points, values + change)
            missed = there - (row.residual + parts.sum(axis=1))
            sums = EPS * np.linalg.norm(np.abs(row.slopes * values).sum(axis=1))  # adding a small error rounds, too
            size = np.linalg.norm(np.abs(parts).sum(axis=1)) + 10 * (np.linalg.norm(row.rounding) + sums)
            share = float(np.linalg.norm(missed) / size) if size > 0 else 0.0
            worst = max(worst, share if math.isfinite(share) else math.inf)
        return worst


def rms(values: np.ndarray) -> np.ndarray:
    """Over points."""
    return np.sqrt(np.mean(np.asarray(values, np.float64) ** 2, axis=0))
