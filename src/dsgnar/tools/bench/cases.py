"""What is measured: a problem, one of its presets, and sizes where they differ from the preset's."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from dsgnar.networks import MLP, Architecture
from dsgnar.problem.reference import Reference
from dsgnar.solving.context import Context
from dsgnar.suite import own_file
from dsgnar.suite.statement import Statement

METHODS = ("fast", "paper")


@dataclass(frozen=True)
class Case:
    """A named case. Settings that neither it nor its preset names are the defaults of each method."""

    name: str
    problem: str
    preset: str = "default"
    changes: Mapping[str, Any] = field(default_factory=dict)  # to the preset's settings
    network: Architecture | None = None  # instead of the preset's

    @cached_property
    def statement(self) -> Statement:
        return own_file.find(self.problem, self.preset)

    @property
    def precision(self) -> str:
        return self.statement.settings.precision or "single"

    def context(self, method: str, reference: Reference | None = None, **changes: Any) -> Context:
        """A run of this case, ready to start."""
        stated = self.statement
        settings = stated.changed({"method": method, **self.changes, **changes})
        return Context.of(stated.problem, self.network or stated.network, settings, reference)


# Sizes of the paper's Burgers runs: parameters / sketch / points. In double precision both methods have equal points.
_NAMED = (
    Case("burgers-single", "burgers"),  # 1,447 / 700 / each method's own: 2^15 + 2^14 for `paper`
    Case("burgers-double", "burgers", "double", {"points": 2**15}),  # 5,125 / 2,000 / 2^15 + 2^14
    Case("burgers-large", "burgers", "paper-double", {"points": 2**15}),  # 11,285 / 4,000 / 2^15 + 2^14
    Case("tiny", "burgers", "default", {"sketch": 30, "points": 256}, MLP((8, 8))),  # to try the command
)
CASES = {case.name: case for case in _NAMED}


def find(name: str) -> Case:
    """A case by name, a `problem:preset`, or a file."""
    if name in CASES:
        return CASES[name]
    problem, _, preset = name.partition(":")
    case = Case(name, problem, preset or "default")
    case.statement  # noqa: B018 - a wrong name raises here
    return case
