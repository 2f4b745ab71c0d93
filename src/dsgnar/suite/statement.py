"""Where a problem comes from, and all that belongs to it: network, reference, settings.

    suite    a problem of `dsgnar list`, by its name
    file     your own Python file, which defines `problem` (`dsgnar init` writes one)
    python   a `Problem` made in your own program: only that program can state it again

A run directory remembers the first two: to load or resume such a run, its directory is enough.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from dsgnar.networks import Architecture
from dsgnar.problem import Problem
from dsgnar.problem.reference import Reference
from dsgnar.solving.settings import Settings, did_you_mean, with_options
from dsgnar.suite import SUITE
from dsgnar.suite.base import TUNED

Source = Literal["suite", "file", "python"]


class StatementError(ValueError):
    """A problem could not be found, or its file is wrong; the message says what to change."""


@dataclass(frozen=True, eq=False)
class Statement:
    """A problem and what is needed to solve it, show it, and find it again."""

    problem: Problem
    name: str = "custom"
    network: Architecture | Callable | None = None
    reference: Callable[[], Reference | None] = lambda: None
    settings: Settings = field(default_factory=Settings)
    title: str = ""
    equations: tuple[str, ...] = ()  # as LaTeX, where there are any
    preset: str = ""
    source: Source = "python"
    path: Path | None = None  # of a person's file
    text: str | None = None  # its content
    helpers: Mapping[str, str] = field(default_factory=dict)  # modules beside it that it imports: path and content

    def digests(self) -> dict[str, str]:
        """SHA-256 of the person's file and of the modules beside it that it imports."""
        texts = {} if self.text is None else {"problem.py": self.text, **self.helpers}
        return {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()}

    def changed(self, options: Mapping[str, Any]) -> Settings:
        """Its settings, changed by options. For a problem of the suite `fast` is what its other presets run."""
        other = self.source == "suite" and self.settings.chosen_method().name != TUNED.name
        if other and options.get("method") == TUNED.name:
            options = {**options, "method": TUNED}
        return with_options(self.settings, options)


def from_suite(name: str, preset: str) -> Statement:
    """A problem of the suite with one of its presets; `preset` may be an alias, and stays what was asked for."""
    if name not in SUITE:
        raise StatementError(f"there is no problem {name!r}{did_you_mean(name, SUITE)}; `dsgnar list` shows them all")
    benchmark = SUITE[name]
    chosen = benchmark.find(preset)
    if chosen is None:
        known = (*benchmark.presets, *benchmark.aliases)
        raise StatementError(f"{name} has no preset {preset!r}{did_you_mean(preset, known)}; it has {', '.join(known)}")
    options: Any = {"precision": chosen.precision, "method": TUNED, "intervals": 1, **chosen.settings}
    return Statement(
        problem=benchmark.problem(**chosen.statement),
        name=name,
        network=chosen.network,
        reference=benchmark.reference,
        settings=with_options(Settings(), options),
        title=f"{benchmark.title}, {preset}",
        equations=benchmark.equations,
        preset=preset,
        source="suite",
    )
