"""How wrong is it? An estimate of the error from the residuals, without a reference.

With the residuals r = F(u) of a solution, its error e satisfies F(u + e) = 0, and to first order

    F'(u) e = -r.

The equation is solved by least squares for e in a linear space that is not the network's: at the end of a run the network's
own directions see nothing of the residual that is left. Everything is evaluated in float64 at new points, denser towards
the ends of each axis and weighted accordingly; on a shape the space is that of its bounding box, at points of it. Much
of a residual is rough and carries little error, so that the space need not hold all of it: what counts is that the estimate
stays the same in another space. It is unknown where

    spread        half of the space, or a space of another kind, gives another error
    nonlinear     F(u + e) is not what F(u) + F'(u) e predicts, against the terms of F'(u) e

In a time march the error at the end of an interval is the error with which the next begins. Rounding counts too: for a
solution in single precision the difference to its own evaluation in float64, in double the error that belongs to the
rounding of the residuals.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from jaxtyping import Float

from dsgnar.calculus.precision import x64
from dsgnar.calculus.spaces import Polynomials, Space, Waves
from dsgnar.calculus.streams import stream
from dsgnar.networks.parameters import neighbour
from dsgnar.problem.domain import Boundary, Box, Initial, Interior, Points
from dsgnar.problem.sampling import sample
from dsgnar.solving.correction import FULL, HALF, ROUNDING, Correction, Piece, derivative, inward, least_squares
from dsgnar.solving.evaluation import by_interval, located
from dsgnar.solving.model import Model
from dsgnar.solving.verdict import Judge, Verdict

COLUMNS = 700  # functions in all
COLUMNS_1D = 240  # and for each unknown of one variable
ROWS = 3  # points of an interior condition for each function
SAMPLE = 2000  # points at which errors are compared with values
SPREAD = 5.0  # by which estimates in other spaces may differ
WRONG = 1e-2  # an estimated error above which nothing is called solved
SAFE = 2.0  # an estimate must be so much below a tolerance; sharp fronts were underestimated by 1.9
NONLINEAR = 0.1  # share of its terms that the linearisation may miss
NO_ESTIMATE = "errors are not estimated where coefficients, functions of fewer axes or data are fitted"


@dataclass(frozen=True, eq=False)
class Estimate:
    """The relative l2 error of every unknown, with the checks that it rests on."""

    errors: dict[str, float]
    spread: float  # largest ratio between estimates in different spaces
    nonlinear: float  # what the linearisation misses, over the size of its terms
    rounding: dict[str, float]  # share of rounding in the errors
    correction: Correction | None = field(default=None, repr=False)

    def meets(self, tol: float) -> bool:
        """Whether the errors are below a tolerance, for all that is known."""
        return self.known and SAFE * self.largest <= tol

    @property
    def largest(self) -> float:
        """The error of the worst unknown."""
        return max(self.errors.values())

    @property
    def known(self) -> bool:
        """Whether the checks hold."""
        return self.spread <= SPREAD and self.nonlinear <= NONLINEAR and all(map(math.isfinite, self.errors.values()))


def with_error(verdict: Verdict, found: Estimate, tol: float) -> Verdict:
    """The verdict in the light of an estimate: small residuals do not make a wrong answer right.

    A tolerance that is met makes an answer right, whatever its residuals are.
    """
    if tol <= WRONG and found.meets(tol):
        return Verdict.SOLVED
    wrong = found.known and found.largest > WRONG
    return Verdict.PARTLY if verdict is Verdict.SOLVED and wrong else verdict


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
def estimate(model: Model, thetas: Float[np.ndarray, "intervals parameters"], judge: Judge) -> Estimate:
    """The error of a solution: in polynomials, checked in half of them and in waves."""
    return _Estimator(model, thetas, judge).estimate()


@dataclass(frozen=True, eq=False)
class _Estimator:
    model: Model
    thetas: Float[np.ndarray, "intervals parameters"]
    judge: Judge

    def estimate(self) -> Estimate:
        unknowns = self.model.problem.unknowns
        polynomials = Polynomials.of(self.size, self.periodic)
        waves = Waves.of(self.size, self.periodic, stream(0, "waves"))
        pieces, others = self._through(polynomials), self._through(waves)
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

    def _through(self, space: Space) -> list[tuple[Piece, ...]]:
        """Errors by interval: in half of a space, in all of it, and that of rounding."""
        out: list[tuple[Piece, ...]] = []
        for k, rows in enumerate(self._rows):
            box = self.model.march.domain(self.model.problem.domain, k)
            out.append(self._solve(box, space, rows, out[-1] if out else None))
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
        part, count = problem.conditions[name].part, ROWS * self.size * min(2, len(problem.unknowns))
        count = count if isinstance(part, Interior) else count // 2
        points = sample(part, box, count, stream(0, "error", name), "clustered", periodic=problem.periodic)
        if isinstance(part, Points):
            return points, np.ones(len(points))
        xi = inward(box, points)
        free = (np.abs(xi) < 1) & ~np.array(self.periodic)
        if isinstance(part, Boundary) and box.shaped:  # uniform in space
            free[:, [box.index(axis) for axis in box.space]] = False
        return points, np.prod(np.where(free, np.maximum(1 - xi**2, 1e-16) ** 0.25 * math.sqrt(np.pi / 2), 1.0), axis=1)

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
