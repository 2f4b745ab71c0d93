"""What is measured: a problem of the suite, one of its presets, and sizes where they differ from the preset's."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dsgnar.config import Settings
from dsgnar.networks import MLP, Architecture
from dsgnar.problems import SUITE, Benchmark, Preset
from dsgnar.reference import Reference
from dsgnar.solve import Observer, Run

METHODS = ("fast", "paper")


@dataclass(frozen=True)
class Case:
    """A named case. Settings that neither it nor its preset names are each method's own defaults."""

    name: str
    problem: str
    preset: str
    changes: Mapping[str, Any] = field(default_factory=dict)  # to the preset's settings
    smaller: Architecture | None = None  # instead of the preset's network

    @property
    def benchmark(self) -> Benchmark:
        return SUITE[self.problem]

    @property
    def _preset(self) -> Preset:
        return self.benchmark.presets[self.preset]

    @property
    def precision(self) -> str:
        return self._preset.precision

    def run(
        self,
        method: str,
        reference: Reference | None = None,
        observers: tuple[Observer, ...] = (),
        **changes: Any,
    ) -> Run:
        """A run of this case, ready to start."""
        preset = self._preset
        options = {"precision": preset.precision, "method": method, **preset.settings, **self.changes, **changes}
        network = self.smaller or preset.network
        return Run(self.benchmark.problem(), network, Settings(**options), reference, observers)


# Sizes of the paper's Burgers runs: parameters / sketch / points. The double ones have equal points for both methods.
_NAMED = (
    Case("burgers-single", "burgers", "default"),  # 1,447 / 700 / each method's own: 2^15 + 2^14 for `paper`
    Case("burgers-double", "burgers", "double", {"points": 2**15}),  # 5,125 / 2,000 / 2^15 + 2^14
    Case("burgers-large", "burgers", "paper-double", {"points": 2**15}),  # 11,285 / 4,000 / 2^15 + 2^14
    Case("tiny", "burgers", "default", {"sketch": 30, "points": 256}, MLP((8, 8))),  # to try the command
)
CASES = {case.name: case for case in _NAMED}


def find(name: str) -> Case:
    """A case by name, or `problem:preset`."""
    if name in CASES:
        return CASES[name]
    problem, _, preset = name.partition(":")
    if problem not in SUITE:
        raise ValueError(
            f"there is no case {name!r}; there are {', '.join(CASES)}, and problem:preset of `dsgnar list`"
        )
    preset = preset or "default"
    if preset not in SUITE[problem].presets:
        raise ValueError(f"{problem} has no preset {preset!r}; it has {', '.join(SUITE[problem].presets)}")
    return Case(f"{problem}:{preset}", problem, preset)
