"""Reference values on a grid, with how they were computed and how well independent computations agree.

A stored table is one compressed .npz file: an array per axis, an array per unknown, and `metadata` as JSON text.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dsgnar.problem.reference import Reference


class Comparison(NamedTuple):
    """A check on a reference: what was compared, the measured difference (relative l2 unless said otherwise), its limit."""

    what: str
    measured: float
    allowed: float

    @property
    def holds(self) -> bool:
        return self.measured <= self.allowed


@dataclass(frozen=True, eq=False)
class Table:
    """Values (one array over the tensor grid of the axes per unknown) and what is known about them.

    Every table's metadata has `equation`, `parameters`, `method` and `accuracy`; a stored one's also `agreement`,
    `versions` and `command`.
    """

    axes: Mapping[str, np.ndarray]
    values: Mapping[str, np.ndarray]
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def reference(self) -> Reference:
        mesh = np.meshgrid(*self.axes.values(), indexing="ij")
        agreement = [f"{what}: {measured:.1e}" for what, measured, _ in self.metadata.get("agreement", ())]
        source = "; ".join([str(self.metadata["method"]), *agreement])
        return Reference(
            points=np.stack([m.ravel() for m in mesh], 1),
            values={name: v.ravel() for name, v in self.values.items()},
            accuracy=float(self.metadata["accuracy"]),
            source=source,
            shape=mesh[0].shape,
        )

    def save(self, path: Path) -> None:
        arrays: dict[str, Any] = {**self.axes, **self.values}
        arrays["axes"] = np.array(list(self.axes))
        arrays["metadata"] = np.array(json.dumps(dict(self.metadata), indent=1))
        np.savez_compressed(path, **arrays)

    @classmethod
    def load(cls, path: Path) -> "Table":
        with np.load(path, allow_pickle=False) as file:
            axes = [str(axis) for axis in file["axes"]]
            unknowns = [name for name in file.files if name not in ("axes", "metadata", *axes)]
            return cls(
                {axis: file[axis] for axis in axes},
                {name: file[name] for name in unknowns},
                json.loads(str(file["metadata"])),
            )
