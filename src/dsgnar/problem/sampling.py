"""Points on the parts of a domain (section 4.2 of the paper).

Four ways to place them: `uniform` (independent random points), `even` (evenly spaced; a lattice in several dimensions),
`sobol` (scrambled low-discrepancy points) and `clustered` (independent random points, denser towards the ends of every axis
that is not periodic, like the zeros of Chebyshev polynomials: the density with which least squares fit polynomials stably
up to the ends). `Near` moves a share of them next to a face or a corner. All points
are drawn in float64 from one seed and rounded afterwards, so both precisions see the same points.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float, Int
from scipy.stats import qmc

from dsgnar.problem.domain import Boundary, Box, Face, Part, Points
from dsgnar.problem.placing import placed
from dsgnar.problem.region import Region

Sampling = Literal["uniform", "even", "sobol", "clustered"]


@dataclass(frozen=True)
class Near:
    """A `share` of the points lies within `width` (a fraction of the box) of one face, or of a corner of several.

    The lid of the cavity in the paper is `Near((("y", "upper"),), width=0.1, share=0.5)`.
    """

    faces: tuple[Face, ...]
    width: float = 0.1
    share: float = 0.5

    def __post_init__(self):
        if not self.faces or any(len(face) != 2 or face[1] not in ("lower", "upper") for face in self.faces):
            raise ValueError(f"Near: faces are ((axis, 'lower' or 'upper'), ..), not {self.faces!r}")
        if not 0 < self.width < 1:
            raise ValueError(f"Near: the width {self.width} must lie between 0 and 1 (a fraction of the domain)")
        if not 0 < self.share < 1:
            raise ValueError(f"Near: the share {self.share} must lie between 0 and 1")

    def shrink(self, domain: Box) -> dict[int, tuple[float, float]]:
        """The intervals that replace the domain's on the axes of these faces."""
        intervals = {}
        for axis, side in self.faces:
            lower, upper = domain.interval(axis)
            depth = self.width * (upper - lower)
            intervals[domain.index(axis)] = (lower, lower + depth) if side == "lower" else (upper - depth, upper)
        return intervals


def sample(
    part: Part,
    domain: Box,
    count: int,
    rng: np.random.Generator,
    method: Sampling = "uniform",
    near: Sequence[Near] = (),
    periodic: Sequence[str] = (),
) -> Float[np.ndarray, "count d"]:
    """`count` points of a part as rows (count, d) in float64; given points are returned as they are."""
    if isinstance(part, Points):
        return part.table(domain)
    if method not in get_args(Sampling):
        raise ValueError(f"sampling must be one of {', '.join(get_args(Sampling))}, not {method!r}")
    unit = partial(_unit, rng=rng, method=method, even=frozenset(domain.index(axis) for axis in periodic))
    spread = _on_pieces
    if isinstance(domain, Region) or (isinstance(part, Boundary) and part.where is not None):
        spread = partial(placed, spread=_on_pieces, rng=rng, method=method)
    blocks = []
    left = count
    for concentration in near:
        extra = round(concentration.share * count)
        left -= extra
        blocks.append(spread(part, domain, extra, unit, concentration.shrink(domain)))
    if left < 0:
        raise ValueError("the shares of the concentrations add up to more than 1")
    blocks.append(spread(part, domain, left, unit, {}))
    return np.concatenate(blocks)


def prefer(size: Float[np.ndarray, " n"], count: int, rng: np.random.Generator) -> Int[np.ndarray, " count"]:
    """Indices of `count` different entries, drawn with a probability proportional to `size`; evenly if that is no use."""
    total = size.sum()
    usable = np.isfinite(total) and np.count_nonzero(size) >= count
    return rng.choice(size.size, count, replace=False, p=size / total if usable else None)


def held_out(
    part: Part,
    domain: Box,
    count: int,
    rng: np.random.Generator,
    training: Float[np.ndarray, "m d"],
    dtype: type[np.floating],
    near: Sequence[Near] = (),
    *,
    method: Sampling = "uniform",
    periodic: Sequence[str] = (),
) -> Float[np.ndarray, "count d"]:
    """Random points of a part none of which is a training point, also after rounding to `dtype`.

    They have the density of the training points, which `method` placed: clustered ones for "clustered", else uniform ones.
    A part that consists of single points (given ones, or the ends of a line) has no others: those are returned.
    """
    density: Sampling = "clustered" if method == "clustered" else "uniform"
    draw = partial(sample, part, domain, rng=rng, method=density, near=near, periodic=periodic)
    points = draw(count)
    if isinstance(part, Points) or all(len(fixed) == domain.dimension for fixed in part.fixed(domain)):
        return points
    taken = set(_rounded(training, dtype))
    for _ in range(100):
        clash = np.array([row in taken for row in _rounded(points, dtype)])
        if not clash.any():
            return points
        # With concentrations each point is replaced by one of the same concentration: they come in this order.
        points[clash] = draw(count)[clash] if near else draw(int(clash.sum()))
    return points  # a short time interval may have no others in this precision


def _rounded(points: Float[np.ndarray, "n d"], dtype: type[np.floating]) -> list[bytes]:
    """Points as they look in `dtype`; adding zero makes -0 and 0 the same."""
    return [row.tobytes() for row in points.astype(dtype) + dtype(0)]


def _on_pieces(part: Part, domain: Box, count: int, unit: Callable, shrunk: dict) -> np.ndarray:
    """Spread points over the pieces of a part (the faces of a boundary), equally up to one."""
    pieces = [p for p in part.fixed(domain) if all(i not in shrunk or _inside(v, shrunk[i]) for i, v in p.items())]
    if not pieces:
        raise ValueError(f"no piece of {part.describe()} lies near the faces of the concentration")
    counts = [count // len(pieces) + (k < count % len(pieces)) for k in range(len(pieces))]
    return np.concatenate([on_piece(p, domain, n, unit, shrunk) for p, n in zip(pieces, counts, strict=True)])


def _inside(value: float, interval: tuple[float, float]) -> bool:
    return interval[0] <= value <= interval[1]


def on_piece(fixed: dict[int, float], domain: Box, count: int, unit: Callable, shrunk: dict) -> np.ndarray:
    """Points with fixed coordinates; `unit(count, free axes)` places the others in the unit cube."""
    free = [i for i in range(domain.dimension) if i not in fixed]
    points = np.empty((count, domain.dimension))
    for i, value in fixed.items():
        points[:, i] = value
    if free and count:
        lower, upper = np.array([shrunk.get(i, domain.bounds[i]) for i in free]).T
        points[:, free] = lower + (upper - lower) * unit(count, free)
    return points


def _unit(count: int, axes: list[int], rng: np.random.Generator, method: Sampling, even: frozenset[int]) -> np.ndarray:
    """Points in the unit cube that has a side for each of the axes."""
    dimension = len(axes)
    if method in ("uniform", "clustered"):
        points = rng.random((count, dimension))
        for column, axis in enumerate(axes):
            if method == "clustered" and axis not in even:
                points[:, column] = (1 - np.cos(np.pi * points[:, column])) / 2
        return points
    if method == "sobol":
        exponent = max(0, math.ceil(math.log2(count)))
        return qmc.Sobol(dimension, rng=rng).random_base2(exponent)[:count]
    if dimension == 1:
        return np.linspace(0.0, 1.0, count)[:, None]
    side = max(2, math.ceil(count ** (1 / dimension) - 1e-9))
    lattice = np.stack(np.meshgrid(*[np.linspace(0.0, 1.0, side)] * dimension, indexing="ij"), -1).reshape(
        -1, dimension
    )
    return lattice if len(lattice) == count else lattice[np.linspace(0, len(lattice) - 1, count).round().astype(int)]
