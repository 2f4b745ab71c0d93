"""What a history shows, however it is drawn: accepted and rejected steps, and where something switches."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from dsgnar.showing.colours import BLACK, GREY, VERMILION
from dsgnar.solving.record import Record

RATIO_RANGE = (-0.15, 1.15)  # of an axis for decrease ratios
LOWEST, HIGHEST = -0.1, 1.1  # ratios beyond are drawn there; so are those that are not finite, on the lowest


@dataclass(frozen=True)
class Event:
    """Something that is marked by a vertical line, and how the line looks in print and on a web page."""

    happens: Callable[[Record, Record], bool]  # between two records
    label: Callable[[Record], str]  # by the record after it
    colour: str
    variable: str  # of the style sheet
    dash: Literal["dashed", "dotted", "solid"]


EVENTS = {
    "stage switch": Event(
        lambda a, b: a.interval == b.interval and a.stage != b.stage,
        lambda after: f"stage {after.stage}",
        VERMILION, "--accent", "dashed",
    ),
    "precision switch": Event(
        lambda a, b: a.interval == b.interval and a.precision != b.precision,
        lambda after: f"{after.precision} precision",
        BLACK, "--text", "dotted",
    ),
    "end of a time interval": Event(
        lambda a, b: a.interval != b.interval,
        lambda after: f"interval {after.interval + 1}",
        GREY, "--muted", "solid",
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Mark:
    """Where an event happened: between two iterations."""

    kind: str  # a name of `EVENTS`
    label: str
    iteration: int  # the first one after it
    seconds: float

    def at(self, over: str) -> float:
        """The position over iterations or seconds."""
        return self.iteration - 0.5 if over == "iteration" else self.seconds


def marks(history: Sequence[Record]) -> tuple[Mark, ...]:
    """Switches of stage and precision, and ends of time intervals."""
    return tuple(
        Mark(kind, event.label(after), after.iteration, (before.seconds + after.seconds) / 2)
        for before, after in pairwise(history)
        for kind, event in EVENTS.items()
        if event.happens(before, after)
    )


def split(history: Sequence[Record]) -> tuple[list[Record], list[Record]]:
    """Accepted and rejected steps."""
    return [r for r in history if r.accepted], [r for r in history if not r.accepted]


def drawn_ratio(record: Record) -> float:
    """The decrease ratio, where it can be seen."""
    return min(max(record.ratio, LOWEST), HIGHEST) if math.isfinite(record.ratio) else LOWEST


def worst_error(record: Record) -> float | None:
    """The largest relative error of all unknowns, where it was measured."""
    return max(record.error.values()) if record.error else None
