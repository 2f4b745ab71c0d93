"""A correction: functions of a linear space on every time interval, to be added to a solution."""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.linalg import solve_triangular

from dsgnar.calculus.jets import LAPLACIAN, Key
from dsgnar.calculus.spaces import Space
from dsgnar.problem.domain import Box
from dsgnar.problem.scales import intervals
from dsgnar.solving.march import March

RIDGE = 1e-12  # relative to normalised columns: directions that points cannot tell apart stay small
HALF, FULL, ROUNDING = range(3)  # right-hand sides: in half of a space, in all of it, and of rounding


@dataclass(frozen=True, eq=False)
class Piece:
    """An error in one time interval: sum_k c_kj phi_k for unknown j."""

    box: Box
    space: Space
    coefficients: Float[np.ndarray, "size unknowns"]
    left: float = 0.0  # norm of the residuals, weighted, that it does not account for
    most: tuple[float, ...] = ()  # root mean squares that errors by rough residuals of norm 1 could have

    def derivative(self, points: Float[np.ndarray, "n d"], key: Key) -> Float[np.ndarray, "n unknowns"]:
        """A derivative of the error of every unknown."""
        return derivative(self.space, self.box, points, key) @ self.coefficients


@dataclass(frozen=True, eq=False)
class Correction:
    """The estimated error as a function: what is to be added to the solution."""

    march: March
    pieces: tuple[Piece, ...]

    def at(self, points: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n unknowns"]:
        """Its values at points."""
        return self.derivative(points, (0,) * self.pieces[0].box.dimension)

    def derivative(self, points: Float[np.ndarray, "n d"], key: Key) -> Float[np.ndarray, "n unknowns"]:
        """A derivative at points, each in its time interval."""
        box, out = self.pieces[0].box, np.zeros((len(points), self.pieces[0].coefficients.shape[1]))
        which = np.zeros(len(points), int)
        if len(self.pieces) > 1 and box.time is not None:
            which = self.march.piece(points[:, box.index(box.time)])
        for k, piece in enumerate(self.pieces):
            here = which == k
            if here.any():
                out[here] = piece.derivative(points[here], key)
        return out


def inward(box: Box, points: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d"]:
    """Points of a box in [-1, 1]^d."""
    centre, half = np.array(intervals(box)).T
    return (points - centre) / half


def derivative(space: Space, box: Box, points: Float[np.ndarray, "n d"], key: Key) -> Float[np.ndarray, "n size"]:
    """A derivative of the functions of a space along the axes of a box."""
    if key == LAPLACIAN:
        twice = [tuple(2 * (i == box.index(axis)) for i in range(box.dimension)) for axis in box.space]
        return np.sum([derivative(space, box, points, order) for order in twice], axis=0)
    assert not isinstance(key, str)
    half = [h for _, h in intervals(box)]
    return space.derivative(inward(box, points), key) / math.prod(h**n for h, n in zip(half, key, strict=True))


@dataclass(frozen=True, eq=False)
class LeastSquares:
    """R of a QR factorisation of [matrix / scale, b]; where an equation is not finite there is no solution."""

    R: Float[np.ndarray, "c+3 c+3"]
    scale: Float[np.ndarray, " c"]  # norms of columns
    half: int

    @classmethod
    def of(cls, matrix: Float[np.ndarray, "n c"], b: Float[np.ndarray, "n 3"], half: int) -> "LeastSquares":
        """For the right-hand sides HALF, FULL and ROUNDING; the first in the first `half` columns only."""
        columns, sides = matrix.shape[1], b.shape[1]
        if not (np.isfinite(matrix).all() and np.isfinite(b).all()):
            return cls(np.full((columns + sides,) * 2, math.nan), np.ones(columns), half)
        scale = np.linalg.norm(matrix, axis=0)
        scale[scale == 0] = 1.0
        ridge = RIDGE * np.eye(columns, columns + sides)
        stacked = np.concatenate([np.concatenate([matrix / scale, b], axis=1), ridge])
        return cls(np.asarray(np.linalg.qr(stacked, mode="r")), scale, half)

    def solution(self, side: int) -> tuple[Float[np.ndarray, " c"], float]:
        """With the norm of what it leaves of its right-hand side."""
        columns = len(self.scale)
        count, c = self.half if side == HALF else columns, np.zeros(columns)
        c[:count] = self._back(count, self.R[:count, columns + side])
        return c, float(np.linalg.norm(self.R[count:, columns + side]))

    @property
    def rough(self) -> Float[np.ndarray, "c rough"]:
        """Solutions for an orthonormal basis of the right-hand sides that only the later columns account for."""
        return self._back(len(self.scale), np.eye(len(self.scale))[:, self.half :])

    def _back(self, count: int, b: np.ndarray) -> np.ndarray:
        found = solve_triangular(self.R[:count, :count], b, check_finite=False)
        return (found.T / self.scale[:count]).T
