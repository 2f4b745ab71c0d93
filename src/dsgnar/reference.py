"""Solutions to compare with, and the error against them (eq. 18 and section 5.1 of the paper).

A `Reference` is a table: evaluation points that are no training points, the values of the unknowns there, how accurate those
are, and how that is known. The error of unknown u is `||u - u_ref||_2 / ||u_ref||_2` over the table.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np


@dataclass(frozen=True, eq=False)
class Reference:
    """Reference values of unknowns at points (n, d)."""

    points: np.ndarray
    values: Mapping[str, np.ndarray]
    accuracy: float  # relative l2, from the comparison that `source` describes
    source: str
    shape: tuple[int, ...] | None = None  # of the grid, where the points form one (axis order of the domain)
    gauge: tuple[str, ...] = ()  # unknowns that are determined up to a constant, such as a pressure
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # "velocity": ("u", "v")
    function: Callable[..., Mapping[str, np.ndarray]] | None = (
        None  # of coordinate arrays, where there is a closed form
    )

    @classmethod
    def on_grid(
        cls,
        axes: Mapping[str, np.ndarray],
        solution: Callable[..., Mapping[str, np.ndarray]],
        accuracy: float,
        source: str,
    ) -> "Reference":
        """A table from a function of coordinate arrays on a tensor grid."""
        mesh = np.meshgrid(*axes.values(), indexing="ij")
        flat = {axis: m.ravel() for axis, m in zip(axes, mesh, strict=True)}
        values = {name: np.asarray(v, np.float64) for name, v in solution(**flat).items()}
        return cls(np.stack(list(flat.values()), 1), values, accuracy, source, mesh[0].shape, function=solution)

    def where(self, chosen: np.ndarray) -> "Reference":
        """The rows of the table that `chosen` marks."""
        values = {name: v[chosen] for name, v in self.values.items()}
        return replace(self, points=self.points[chosen], values=values, shape=None)

    def errors(self, values: Mapping[str, np.ndarray]) -> dict[str, float]:
        """The relative l2 error of every unknown, and of every group of them, for values at the table's points."""
        difference = self.differences(values)
        norms = {name: np.linalg.norm(self.centred(name)) for name in self.values}
        out = {name: float(np.linalg.norm(difference[name]) / norms[name]) for name in self.values}
        for group, members in self.groups.items():
            above = np.sqrt(sum(np.linalg.norm(difference[name]) ** 2 for name in members))
            out[group] = float(above / np.sqrt(sum(norms[name] ** 2 for name in members)))
        return out

    def max_errors(self, values: Mapping[str, np.ndarray]) -> dict[str, float]:
        """The largest absolute error of every unknown, and the longest error vector of every group of them."""
        difference = self.differences(values)
        out = {name: float(np.abs(d).max()) for name, d in difference.items()}
        for group, members in self.groups.items():
            out[group] = float(np.sqrt(sum(difference[name] ** 2 for name in members)).max())
        return out

    def differences(self, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Values at the table's points minus the reference's, up to the constant that a gauge leaves open."""
        return {
            name: self._centred(name, np.asarray(values[name], np.float64)) - self.centred(name) for name in self.values
        }

    def centred(self, name: str) -> np.ndarray:
        """The reference's values of an unknown, without the constant that a gauge leaves open."""
        return self._centred(name, self.values[name])

    def _centred(self, name: str, values: np.ndarray) -> np.ndarray:
        return values - values.mean() if name in self.gauge else values


def interior_grid(lower: float, upper: float, count: int) -> np.ndarray:
    """Evenly spaced cell centres: a grid without end points, which evenly spaced training points contain."""
    return lower + (upper - lower) * (np.arange(count) + 0.5) / count
