"""The error measure of the PINNacle benchmark, and the points at which it is taken.

    e = ( sum over points and outputs |y - r|^2 / sum |r|^2 )^(1/2):

one figure, all outputs stacked as they are, without quadrature weights. With a file the points are its nodes and times, and
r is in single precision; with a formula they are an even grid without the boundary, whose times run backwards from the end.

Files are tables of text with comments (%), as a finite element program writes them: either a row for each point, or, for
evolutions, a row for each node with the outputs at all times beside each other, the times in the last comment.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

Values = Callable[[np.ndarray], np.ndarray]  # points (n, d) -> values (n, outputs)


@dataclass(frozen=True, eq=False)
class Yardstick:
    """Points (n, d) and the values (n, outputs) that the benchmark takes for the truth there."""

    points: np.ndarray
    values: np.ndarray

    @classmethod
    def of(cls, axes: Mapping[str, np.ndarray], formula: Values) -> "Yardstick":
        """A formula on a grid."""
        points = np.stack([m.ravel() for m in np.meshgrid(*axes.values(), indexing="ij")], 1)
        return cls(points, formula(points))

    def error(self, values: np.ndarray) -> float:
        """The benchmark's figure for values at the points."""
        return stacked(values, self.values)


def stacked(values: np.ndarray, reference: np.ndarray) -> float:
    """The relative l2 difference of all outputs together."""
    reference = np.asarray(reference, np.float64)
    return float(np.linalg.norm(np.asarray(values, np.float64) - reference) / np.linalg.norm(reference))


def inner(count: int, length: float = 1.0) -> np.ndarray:
    """An even grid of [0, length] without its ends."""
    return length * np.arange(1, count + 1) / (count + 1)


def backwards(count: int, end: float) -> np.ndarray:
    """Even times from the end down to the one before t = 0."""
    return np.linspace(end, 0, count, endpoint=False)


@dataclass(frozen=True)
class File:
    """A reference file of the benchmark, within a copy of its repository."""

    path: str
    dimension: int  # coordinates of a point, time included
    outputs: int
    wide: bool = False  # a row for each node, all times beside each other
    left_out: tuple[tuple[float, ...], ...] = ()  # points that do not count

    def read(self, clone: Path) -> Yardstick:
        """The file's points and values; raises OSError or ValueError if it cannot be read."""
        text = (clone / self.path).read_text(encoding="utf-8", errors="replace")
        data = np.loadtxt(text.splitlines(), comments="%", ndmin=2)
        rows = _unfolded(data, _times(text), self) if self.wide else data
        if rows.shape[1] != self.dimension + self.outputs or not len(rows):
            expected = f"{self.dimension} coordinates and {self.outputs} values"
            raise ValueError(f"expected rows of {expected}, found an array of shape {rows.shape}")
        rows = rows[~np.isnan(rows).any(axis=1)]
        points, values = rows[:, : self.dimension], rows[:, self.dimension :]
        counts = np.ones(len(points), bool)
        for corner in self.left_out:
            counts &= np.abs(points - np.array(corner)).max(axis=1) > 1e-6
        return Yardstick(points[counts], values[counts].astype(np.float32).astype(np.float64))


def _times(text: str) -> np.ndarray:
    """The times of the columns, from the last comment that names some: `u @ t=0.1`."""
    found: list[float] = []
    for line in text.splitlines():
        if line.startswith("%") and "@" in line:
            try:
                found = [float(part.split("t=")[1].split()[0]) for part in line.split("@")[1:]]
            except (IndexError, ValueError):
                continue
    if not found:
        raise ValueError("no comment says at which times its columns are")
    return np.array(found)


def _unfolded(data: np.ndarray, times: np.ndarray, file: File) -> np.ndarray:
    """A row for each node and time. The outputs at one time lie beside each other."""
    space, outputs = file.dimension - 1, file.outputs
    if data.shape[1] != space + len(times) or len(times) % outputs:
        raise ValueError(f"{data.shape[1]} columns for {space} coordinates and {len(times)} values")
    nodes, t = data[:, :space], times[::outputs]
    values = data[:, space:].reshape(len(nodes) * len(t), outputs)
    return np.hstack([np.repeat(nodes, len(t), axis=0), np.tile(t, len(nodes))[:, None], values])
