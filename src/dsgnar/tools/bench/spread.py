"""Repeats of one measurement: their median and extent, and the ratio of two that were made in turn."""

import math
import statistics
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Spread:
    """Values of repeats, in the order in which they were measured; inf where the end was not reached."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def low(self) -> float:
        return min(self.values)

    @property
    def high(self) -> float:
        return max(self.values)

    def __truediv__(self, other: "Spread") -> "Spread":
        """Ratios pair by pair: neighbours in time met the same machine."""
        return Spread(tuple(_over(a, b) for a, b in zip(self.values, other.values, strict=False)))

    def __str__(self) -> str:
        if len(self.values) == 1:
            return short(self.median)
        return f"{short(self.median)} ({short(self.low)} to {short(self.high)})"


def _over(a: float, b: float) -> float:
    return math.nan if math.isinf(a) and math.isinf(b) else a / b


def short(value: float) -> str:
    """Three digits."""
    if not math.isfinite(value):
        return "not reached" if math.isinf(value) else "-"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


@dataclass(frozen=True)
class Row:
    """One measured quantity, for both methods where both were measured."""

    case: str
    part: str
    fast: Spread | None = None
    paper: Spread | None = None
    unit: str = "s"
    facts: dict[str, Any] = field(default_factory=dict)  # what else is known, by name

    @property
    def ratio(self) -> Spread | None:
        """How many times faster `fast` is."""
        return None if self.fast is None or self.paper is None else self.paper / self.fast

    def to_json(self) -> dict[str, Any]:
        out: dict[str, Any] = {"case": self.case, "part": self.part, "unit": self.unit}
        for name in ("fast", "paper", "ratio"):
            spread = getattr(self, name)
            if spread is not None:
                out[name] = [v if math.isfinite(v) else None for v in spread.values]
        return out | ({"facts": self.facts} if self.facts else {})

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Row":
        def read(name: str) -> Spread | None:
            values = data.get(name)
            return Spread(tuple(math.inf if v is None else float(v) for v in values)) if values else None

        return cls(data["case"], data["part"], read("fast"), read("paper"), data["unit"], data.get("facts", {}))
