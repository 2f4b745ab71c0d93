"""What a problem of the suite consists of: its statement, its reference, and presets that solve it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dsgnar.networks import Architecture
from dsgnar.problem import Problem
from dsgnar.reference import Reference


@dataclass(frozen=True)
class Measured:
    """What a preset was seen to do on two CPU cores: relative l2 error and seconds."""

    error: float
    seconds: float


@dataclass(frozen=True)
class Preset:
    """A way to solve a problem: network, precision, and settings that differ from the defaults."""

    network: Architecture
    precision: str
    about: str
    settings: Mapping[str, Any] = field(default_factory=dict)  # fields of `Settings`
    measured: Measured | None = None
    statement: Mapping[str, Any] = field(default_factory=dict)  # keyword-only arguments of `problem`


@dataclass(frozen=True)
class Benchmark:
    """A problem of the suite. `problem` and `reference` take the same parameters. Keyword-only arguments of `problem` are
    about how it is stated: they do not change the solution."""

    name: str
    title: str
    equations: tuple[str, ...]  # as LaTeX
    problem: Callable[..., Problem]
    reference: Callable[..., Reference]
    presets: Mapping[str, Preset]
    paper: Mapping[str, float] = field(default_factory=dict)  # precision -> the paper's relative l2 error
