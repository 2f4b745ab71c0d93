"""A run's account of itself: a row for each iteration, and what was reached in the end."""

import math
from dataclasses import dataclass, fields
from typing import Any

from dsgnar.solving.coefficients import Inference
from dsgnar.solving.estimate import Estimate
from dsgnar.solving.settings import Resolved
from dsgnar.solving.stop import StopReason
from dsgnar.solving.verdict import Verdict


@dataclass(frozen=True)
class Record:
    """One iteration: everything that the paper plots."""

    iteration: int
    interval: int  # of time, from 0
    stage: int
    precision: str
    points: int  # of all conditions together
    loss: float  # before the step
    mean_squares: tuple[float, ...]  # of each condition, after it
    weights: tuple[float, ...]
    ratio: float
    target: float
    lam: float
    radius: float
    accepted: bool
    evaluations: int  # of the loss
    seconds: float  # of solving, since the start
    held_out: float | None  # the loss on held-out points, where it was looked at
    error: dict[str, float] | None  # against a reference, where there is one and it was looked at
    estimate: float | None = None  # of the largest error, where a tolerance asks for it and the checks hold

    def row(self, conditions: tuple[str, ...]) -> dict[str, Any]:
        """The record as a row of history.csv: a column for each condition's mean square and weight."""
        out: dict[str, Any] = {}
        for f in fields(self):
            value = getattr(self, f.name)
            if f.name in ("mean_squares", "weights"):
                label = "mean_square" if f.name == "mean_squares" else "weight"
                out.update({f"{label}[{name}]": v for name, v in zip(conditions, value, strict=True)})
            elif f.name == "error":
                out["error"] = None if value is None else max(value.values())
                out.update({f"error[{name}]": v for name, v in (value or {}).items()})
            elif f.name != "estimate" or value is not None:
                out["lambda" if f.name == "lam" else f.name] = value
        return out


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a run reached."""

    settings: Resolved
    history: tuple[Record, ...]
    stop: StopReason
    seconds: dict[str, float]
    held_out: dict[str, float]  # root mean square residual of each condition on held-out points; of the worst interval
    points: dict[str, int]
    relative_residuals: dict[str, float]  # the same over the size of the condition's own terms
    verdict: Verdict
    relative_l2: dict[str, float] | None
    estimate: Estimate | None = None  # of the error; None where equations do not hold or time is not reached
    inference: Inference | None = None  # coefficients and fits of data, where there are any

    @property
    def error_estimate(self) -> dict[str, float] | None:
        """The estimated relative l2 error of every unknown; None where it is not known."""
        return self.estimate.errors if self.estimate is not None and self.estimate.known else None

    @property
    def decisive(self) -> float | None:
        """The estimated error that a tolerance is about: of a quantity, or of the worst unknown; None where not known."""
        return self.estimate.decisive if self.estimate is not None and self.estimate.known else None

    @property
    def tolerance_met(self) -> bool | None:
        """Whether the estimated error is below the tolerance; None where none was asked for."""
        if self.settings.tol == math.inf:
            return None
        if self.verdict is Verdict.FAILED or self.estimate is None:
            return False
        return self.estimate.meets(self.settings.tol, self.settings.looser)

    @property
    def hidden(self) -> bool:
        """Whether the tolerance is below what rounding makes of a solution."""
        return self.estimate is not None and self.estimate.hidden(self.settings.tol, self.settings.looser)

    @property
    def sizes(self) -> tuple[float, ...]:
        """The sizes of the conditions, by which their residuals are divided in the history."""
        scales = self.settings.scales
        return (1.0,) * len(self.held_out) if scales is None else scales.conditions

    @property
    def loss_evaluations(self) -> int:
        return sum(record.evaluations for record in self.history)
