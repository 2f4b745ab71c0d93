"""Solutions to compare with, and the error against them (eq. 18 and section 5.1 of the paper).

A `Reference` is a table: evaluation points that are no training points, the values of the unknowns there, how accurate those
are, and how that is known. The error of unknown u is `||u - u_ref||_2 / ||u_ref||_2` over the table.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from dsgnar.problem.problem import Problem


@dataclass(frozen=True, eq=False)
class Reference:
    """Reference values of unknowns at points (n, d)."""

    points: Float[np.ndarray, "n d"]
    values: Mapping[str, Float[np.ndarray, " n"]]
    accuracy: float  # relative l2, from the comparison that `source` describes
    source: str
    shape: tuple[int, ...] | None = None  # of the grid, where the points form one (axis order of the domain)
    gauge: tuple[str, ...] = ()  # unknowns that are determined up to a constant, such as a pressure
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # "velocity": ("u", "v")
    # of coordinate arrays, where there is a closed form
    function: Callable[..., Mapping[str, np.ndarray]] | None = None

    def __post_init__(self):
        object.__setattr__(self, "points", np.asarray(self.points))  # lists will do
        if isinstance(self.values, Mapping):
            object.__setattr__(self, "values", {name: np.asarray(v) for name, v in self.values.items()})

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

    def where(self, chosen: Bool[np.ndarray, " n"]) -> "Reference":
        """The rows of the table that `chosen` marks."""
        values = {name: v[chosen] for name, v in self.values.items()}
        return replace(self, points=self.points[chosen], values=values, shape=None)

    def errors(self, values: Mapping[str, Float[np.ndarray, " n"]]) -> dict[str, float]:
        """The relative l2 error of every unknown, and of every group of them, for values at the table's points."""
        difference = self.differences(values)
        norms = {name: np.linalg.norm(self.centred(name)) for name in self.values}
        out = {name: float(np.linalg.norm(difference[name]) / norms[name]) for name in self.values}
        for group, members in self.groups.items():
            above = np.sqrt(sum(np.linalg.norm(difference[name]) ** 2 for name in members))
            out[group] = float(above / np.sqrt(sum(norms[name] ** 2 for name in members)))
        return out

    def max_errors(self, values: Mapping[str, Float[np.ndarray, " n"]]) -> dict[str, float]:
        """The largest absolute error of every unknown, and the longest error vector of every group of them."""
        difference = self.differences(values)
        out = {name: float(np.abs(d).max()) for name, d in difference.items()}
        for group, members in self.groups.items():
            out[group] = float(np.sqrt(sum(difference[name] ** 2 for name in members)).max())
        return out

    def differences(self, values: Mapping[str, Float[np.ndarray, " n"]]) -> dict[str, np.ndarray]:
        """Values at the table's points minus the reference's, up to the constant that a gauge leaves open."""
        return {
            name: self._centred(name, np.asarray(values[name], np.float64)) - self.centred(name) for name in self.values
        }

    def centred(self, name: str) -> Float[np.ndarray, " n"]:
        """The reference's values of an unknown, without the constant that a gauge leaves open."""
        return self._centred(name, self.values[name])

    def _centred(self, name: str, values: np.ndarray) -> np.ndarray:
        return values - values.mean() if name in self.gauge else values


def interior_grid(lower: float, upper: float, count: int) -> Float[np.ndarray, " count"]:
    """Evenly spaced cell centres: a grid without end points, which evenly spaced training points contain."""
    return lower + (upper - lower) * (np.arange(count) + 0.5) / count


def check_reference(reference: Any, problem: Problem) -> None:
    """Raise an error that says what to do if `reference` cannot be compared with solutions of `problem`."""
    if not isinstance(reference, Reference):
        raise TypeError(
            f"reference: expected a Reference(points, values, accuracy, source), got {type(reference).__name__}; "
            "Reference.on_grid makes one from a function"
        )
    axes, unknowns = problem.domain.axes, problem.unknowns
    points = _numbers("its points", reference.points)
    if points.ndim != 2 or points.shape[1] != len(axes) or not len(points):
        raise ValueError(
            f"reference: its points have shape {points.shape}; expected one row per point and one column for each of "
            f"the axes {', '.join(axes)}, shape (n, {len(axes)})"
        )
    if not isinstance(reference.values, Mapping) or not reference.values:
        raise TypeError(f"reference: its values must be a dict of arrays such as {{{unknowns[0]!r}: ...}}")
    for name, given in reference.values.items():
        _check_member(name, unknowns, "its values are for", "the problem has the unknowns")
        values = _numbers(f"its values of {name!r}", given)
        if values.shape != (len(points),):
            raise ValueError(
                f"reference: its values of {name!r} have shape {values.shape}, but there are {len(points)} points; "
                f"give one number per point, shape ({len(points)},), in the order of the points"
            )
    _check_names_of(reference)


def _check_names_of(reference: Reference) -> None:
    """Groups and gauges are about unknowns that have values; a grid's shape is about all points."""
    for group, members in reference.groups.items():
        for name in members:
            _check_member(name, reference.values, f"its group {group!r} contains", "it has values of")
    for name in reference.gauge:
        _check_member(name, reference.values, "its gauge names", "it has values of")
    if reference.shape is not None and math.prod(reference.shape) != len(reference.points):
        raise ValueError(
            f"reference: a grid of shape {reference.shape} has {math.prod(reference.shape)} points, but there are "
            f"{len(reference.points)}; correct `shape`, or leave it out if the points form no grid"
        )


def _check_member(name: str, known: Iterable[str], claim: str, fact: str) -> None:
    if name not in known:
        raise ValueError(f"reference: {claim} {name!r}, but {fact} {', '.join(known)}; rename it or leave it out")


def _numbers(what: str, given: Any) -> np.ndarray:
    """An array of finite real numbers."""
    array = np.asarray(given)
    if np.iscomplexobj(array):
        raise TypeError(f"reference: {what} are complex; give their real part, or one unknown for each part")
    if not (np.issubdtype(array.dtype, np.floating) or np.issubdtype(array.dtype, np.integer)):
        raise TypeError(f"reference: {what} must be an array of numbers, not of {array.dtype}")
    bad = np.count_nonzero(~np.isfinite(array))
    if bad:
        raise ValueError(
            f"reference: {bad} of {array.size} numbers in {what} are NaN or infinite; leave those points out"
        )
    return array
