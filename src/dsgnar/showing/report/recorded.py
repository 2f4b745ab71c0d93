"""The files of a run directory, as they were written (`storing/files.py`). Reading them does not run the problem."""

import dataclasses
import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dsgnar.showing.iterations import Mark, marks
from dsgnar.solving.advice import training
from dsgnar.solving.method import FAST, METHODS, Method
from dsgnar.solving.record import Record
from dsgnar.storing.configuration import settings_of
from dsgnar.storing.files import RunError, read_config, read_history, read_result
from dsgnar.suite import SUITE, Benchmark


@dataclass(frozen=True, eq=False)
class Recorded:
    """A run that has ended, as its directory describes it."""

    directory: Path
    result: dict[str, Any]
    config: dict[str, Any]
    history: tuple[Record, ...]
    missing: str = ""  # why there is no history

    @property
    def benchmark(self) -> Benchmark | None:
        """The problem of the suite that was solved, if it was one."""
        return SUITE.get(str(self.result.get("problem")))

    @property
    def title(self) -> str:
        return self.benchmark.title if self.benchmark else str(self.result.get("problem") or self.directory.name)

    @property
    def conditions(self) -> dict[str, str]:
        """Conditions by name, and where each is stated."""
        return _conditions(self.config)

    @functools.cached_property
    def marks(self) -> tuple[Mark, ...]:
        """Switches of stage and precision, and ends of time intervals."""
        return marks(self.history)

    @functools.cached_property
    def training(self) -> dict[str, float]:
        """Root mean square residual of each condition on the last training points; of the worst time interval."""
        if not self.history:
            return {}
        scales = self.config.get("settings", {}).get("scales") or {}
        sizes = tuple(scales.get("conditions") or (1.0,) * len(self.conditions))
        return dict(zip(self.conditions, training(self.history, sizes), strict=True))

    @functools.cached_property
    def changed(self) -> dict[str, tuple[Any, Any]]:
        """Constants of the method that differ from its defaults in this version, each with the default."""
        return {name: pair for name, pair in self.constants.items() if pair[0] != pair[1]}

    @functools.cached_property
    def constants(self) -> dict[str, tuple[Any, Any]]:
        """Every constant of the method, and its default; empty if this version cannot read them."""
        try:
            settings = settings_of(self.config)
        except (KeyError, TypeError, ValueError, AttributeError):  # another version, or a changed file
            return {}
        base = METHODS.get(settings.method.name, FAST).at(settings.precision)
        names = [f.name for f in dataclasses.fields(Method) if f.name != "name"]
        return {name: (getattr(settings.method, name), getattr(base, name)) for name in names}


def read(directory: Path) -> Recorded:
    """Read a run directory, or raise a `RunError` that says what is wrong with it."""
    directory = Path(directory)
    config, result = read_config(directory), read_result(directory)
    history, missing = (), ""
    try:
        history = read_history(directory / "history.csv", tuple(_conditions(config)))
    except RunError as error:
        missing = str(error)
    return Recorded(directory.resolve(), result, config, history, missing)


def _conditions(config: dict[str, Any]) -> dict[str, str]:
    return (config.get("statement") or {}).get("conditions") or {}
