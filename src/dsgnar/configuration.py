"""config.json: everything needed to repeat a run, as plain data, and back."""

import dataclasses
import hashlib
import json
import os
from typing import Any

import jax
import numpy as np

from dsgnar import networks
from dsgnar.config import Settings
from dsgnar.networks import Architecture
from dsgnar.statement import Statement

LIMITS = ("max_iterations", "max_seconds")  # settings that say when to give up, and change nothing else
ARCHITECTURES = {c.__name__: c for c in (networks.MLP, networks.Siren, networks.GaborNet, networks.SPINN)}


def describe(statement: Statement, architecture: Any, settings: Settings) -> dict[str, Any]:
    """Problem, network and all settings as they are in force."""
    network: dict[str, Any] = {"kind": "custom", "type": type(architecture).__name__}
    if isinstance(architecture, Architecture):
        network = {"kind": type(architecture).__name__, **dataclasses.asdict(architecture)}
    return {
        "problem": statement.name,
        "preset": statement.preset,
        "source": statement.source,
        "file": None if statement.path is None else str(statement.path),
        "file_sha256": None if statement.text is None else hashlib.sha256(statement.text.encode()).hexdigest(),
        "statement": outline(statement),
        "network": network,
        "settings": dataclasses.asdict(settings),
        "environment": environment(),
    }


def outline(statement: Statement) -> dict[str, Any]:
    """What of a problem can be told apart without its equations."""
    problem = statement.problem
    known = {"known": list(problem.known)} if problem.known else {}
    return known | {
        "domain": {axis: list(problem.domain.interval(axis)) for axis in problem.domain.axes},
        "time": problem.domain.time,
        "unknowns": list(problem.unknowns),
        "periodic": list(problem.periodic),
        "conditions": {name: c.part.describe() for name, c in problem.conditions.items()},
    }


def fingerprint(config: dict[str, Any]) -> str:
    """What makes a run the run that it is: checkpoints carry it. When to give up and where it ran do not count."""
    settings = {name: value for name, value in config["settings"].items() if name not in LIMITS}
    kept = {name: config[name] for name in ("problem", "file_sha256", "statement", "network")} | {"settings": settings}
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()[:16]


def settings_of(config: dict[str, Any]) -> Settings:
    """The settings that a configuration records."""
    return Settings(**config["settings"])


def architecture_of(config: dict[str, Any]) -> Architecture | None:
    """The network that a configuration records; None if it was somebody's own."""
    options = dict(config["network"])
    kind = options.pop("kind")
    return ARCHITECTURES[kind](**options) if kind in ARCHITECTURES else None


def environment() -> dict[str, str]:
    """Versions and device."""
    from dsgnar import __version__

    return {
        "dsgnar": __version__,
        "jax": jax.__version__,
        "numpy": np.__version__,
        "device": jax.default_backend(),
        "cores": str(os.cpu_count()),
    }
