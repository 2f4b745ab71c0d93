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
    left: float = 0.0  # of the residuals, weighted, that it does not account for

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


def least_squares(
    matrix: Float[np.ndarray, "n c"], b: Float[np.ndarray, "n 3"], half: int
) -> list[tuple[np.ndarray, float]]:
    """Solutions for the right-hand sides: HALF in the first `half` columns only, the others in all of them.

    Each with the norm of what it leaves of its right-hand side. Where an equation is not finite there is none.
    """
    if not (np.isfinite(matrix).all() and np.isfinite(b).all()):
        return [(np.full(matrix.shape[1], math.nan), math.nan) for _ in (HALF, FULL, ROUNDING)]
    scale = np.linalg.norm(matrix, axis=0)
    scale[scale == 0] = 1.0
    columns = matrix.shape[1]
    ridge = RIDGE * np.eye(columns, columns + b.shape[1])
    R = np.asarray(np.linalg.qr(np.concatenate([np.concatenate([matrix / scale, b], axis=1), ridge]), mode="r"))
    out = []
    for side in (HALF, FULL, ROUNDING):
        count, c = half if side == HALF else columns, np.zeros(columns)
        c[:count] = solve_triangular(R[:count, :count], R[:count, columns + side]) / scale[:count]
        out.append((c, float(np.linalg.norm(R[count:, columns + side]))))
    return out
