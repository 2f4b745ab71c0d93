"""config.json: everything needed to repeat a run, as plain data, and back."""

import dataclasses
import hashlib
import json
import math
from typing import Any

from dsgnar import networks
from dsgnar.networks import Architecture
from dsgnar.problem.region import Region
from dsgnar.problem.scales import Scales
from dsgnar.solving.march import restated
from dsgnar.solving.method import METHODS, Method
from dsgnar.solving.settings import LIMITS, Resolved
from dsgnar.storing.environment import environment
from dsgnar.storing.inferred import sought
from dsgnar.suite.statement import Statement

ARCHITECTURES = {c.__name__: c for c in (networks.MLP, networks.Siren, networks.GaborNet, networks.SPINN)}


def describe(statement: Statement, network: Any, settings: Resolved) -> dict[str, Any]:
    """Problem, network, method and all settings in force."""
    described: dict[str, Any] = {"kind": "custom", "type": type(network).__name__}
    if isinstance(network, Architecture):
        described = {"kind": type(network).__name__, **dataclasses.asdict(network)}
    return {
        "problem": statement.name,
        "preset": statement.preset,
        "source": statement.source,
        "file": None if statement.path is None else str(statement.path),
        "files_sha256": statement.digests(),
        "statement": outline(dataclasses.replace(statement, problem=restated(statement.problem, settings.intervals))),
        "network": described,
        "method": _finite(dataclasses.asdict(settings.method)),
        "method_changes": sorted(_differences(settings.method, settings)),
        "settings": settings_in(settings),
        "environment": environment(),
    }


def settings_in(settings: Resolved) -> dict[str, Any]:
    """The settings in force, beside the method."""
    apart = ("method", "scales", "quantity")
    values = {f.name: getattr(settings, f.name) for f in dataclasses.fields(settings) if f.name not in apart}
    if settings.quantity is not None:
        values["quantity"] = settings.quantity.describe()
    scales = {} if settings.scales is None else dataclasses.asdict(settings.scales)
    return _finite(values) | {"scales": scales}


def _finite(values: dict[str, Any]) -> dict[str, Any]:
    """JSON has no infinity: null stands for it, and no setting is None once it is resolved."""
    return {name: None if value == math.inf else value for name, value in values.items()}


def outline(statement: Statement) -> dict[str, Any]:
    """What of a problem can be told apart without its equations."""
    problem = statement.problem
    known: dict[str, Any] = {"known": list(problem.known)} if problem.known else {}
    if isinstance(problem.domain, Region):
        known["shape"] = problem.domain.shape.describe()
    stated = {
        "domain": {axis: list(problem.domain.interval(axis)) for axis in problem.domain.axes},
        "time": problem.domain.time,
        "unknowns": list(problem.unknowns),
        "periodic": list(problem.periodic),
        "conditions": {name: c.part.describe() for name, c in problem.conditions.items()},
    }
    return known | stated | sought(problem)


def fingerprint(config: dict[str, Any]) -> str:
    """What identifies a run; its checkpoints carry it. When to stop and where it ran do not count."""
    settings = {name: value for name, value in config["settings"].items() if name not in LIMITS}
    names = ("problem", "files_sha256", "statement", "network", "method")
    kept = {name: config[name] for name in names} | {"settings": settings}
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()[:16]


def settings_of(config: dict[str, Any]) -> Resolved:
    """The settings that a configuration records, with the method and all its constants; a quantity it only describes."""
    settings = {name: value for name, value in config["settings"].items() if name != "quantity"}
    found = settings.pop("scales")
    scales = Scales(**{name: _tuple(values) for name, values in found.items()}) if found else None
    return Resolved(method=Method(**_restored(config["method"])), scales=scales, **_restored(settings))


def _tuple(values: Any) -> Any:
    """JSON's lists, also within each other, as tuples."""
    return tuple(map(_tuple, values)) if isinstance(values, list) else values


def _restored(values: dict[str, Any]) -> dict[str, Any]:
    kinds = {list: tuple, type(None): lambda _: math.inf}
    return {name: kinds.get(type(value), lambda v: v)(value) for name, value in values.items()}


def changed_constants(config: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Constants of the method whose defaults have changed since a run began: the run's own, and today's.

    Those that the person chose for the run do not count.
    """
    settings = settings_of(config)
    found = _differences(settings.method, settings)
    return {name: pair for name, pair in found.items() if name not in config["method_changes"]}


def _differences(method: Method, settings: Resolved) -> dict[str, tuple[Any, Any]]:
    """Where a method differs from the one of that name in this version; nowhere if there is none."""
    default = METHODS[method.name].at(settings.precision) if method.name in METHODS else method
    pairs = {f.name: (getattr(method, f.name), getattr(default, f.name)) for f in dataclasses.fields(Method)}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def architecture_of(config: dict[str, Any]) -> Architecture | None:
    """The network that a configuration records; None if it was the person's own."""
    options = dict(config["network"])
    kind = options.pop("kind")
    return ARCHITECTURES[kind](**options) if kind in ARCHITECTURES else None
