"""What a problem of the suite consists of: its statement, its reference, and presets that solve it."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dsgnar.calculus.precision import Precision
from dsgnar.networks import Architecture
from dsgnar.problem import Problem
from dsgnar.problem.reference import Reference
from dsgnar.solving.method import FAST, By

# The presets were measured in the problem's own units, with weights that change and a search without patience.
TUNED = replace(
    FAST,
    scaled=False,
    exponent=0.05,
    redraws=0,
    search_patience=math.inf,
    undamped=0,
    restarts=0,
    hopeless=0,
    large_share=0.45,
    stalled_gap=0.0,
    targets=By((0.2, 0.8), (0.1, 0.8)),
)

# For marches in nondimensional variables: local time runs from -1 to 1 in each interval, weights stay, and one bad
# sketch is followed by another. Stage 1 ends once lambda has been small for twelve iterations and the loss has fallen
# far; intervals with an earlier end had larger losses (docs/notes.md, Kuramoto-Sivashinsky).
MARCHING = replace(
    FAST,
    undamped=12,
    no_damping=3e-14,
    fallen_loss=2e-5,
    far=math.inf,
    stall=7,
    restarts=0,
    hopeless=0,
    large_share=0.45,
    targets=(0.1, 0.8),
)


HOLDS_IT = "holds the exact solution"  # a network with parameters for which it is the solution: Preset.given


@dataclass(frozen=True)
class Measured:
    """What a preset reached on two CPU cores: relative l2 error and seconds."""

    error: float
    seconds: float


@dataclass(frozen=True)
class Preset:
    """A way to solve a problem: network, precision, and settings that differ from the defaults."""

    network: Architecture
    parameters: int  # of the network; written down because stating a problem to count them takes a while
    precision: Precision
    about: str
    settings: Mapping[str, Any] = field(default_factory=dict)  # fields of `Settings`
    measured: Measured | None = None
    statement: Mapping[str, Any] = field(default_factory=dict)  # keyword-only arguments of `problem`
    given: str = ""  # what the network has of this solution from the start, where that is more than a general form
    note: str = ""  # what else was measured with it; a line of `dsgnar list`


@dataclass(frozen=True)
class Benchmark:
    """A problem of the suite. `problem` and `reference` take the same parameters. Keyword-only arguments of `problem` say
    how it is stated and sampled; they do not change its solution."""

    name: str
    title: str
    about: str  # what it is, in a few words
    equations: tuple[str, ...]  # as LaTeX
    problem: Callable[..., Problem]
    reference: Callable[..., Reference]
    presets: Mapping[str, Preset]
    paper: Mapping[str, float] = field(default_factory=dict)  # precision -> the paper's relative l2 error

    def find(self, name: str) -> Preset | None:
        """A preset by its name or alias."""
        return self.presets.get(self.aliases.get(name, name))

    @property
    def aliases(self) -> dict[str, str]:
        """Other names of presets. A precision stands for the first preset in it, unless a preset has that name."""
        out: dict[str, str] = {}
        for name, preset in self.presets.items():
            if preset.precision not in self.presets and not name.startswith("paper"):
                out.setdefault(preset.precision, name)
        return out
