"""Where a problem comes from, and all that belongs to it: network, reference, settings.

    suite    a problem of `dsgnar list`, by its name
    file     a person's own Python file, which defines `problem` (`dsgnar init` writes one)
    python   a `Problem` made in somebody's own program: only that program can state it again

A run directory remembers the first two, so that a run can be loaded and resumed by its directory alone. Reading a person's
file executes it, like any Python program.
"""

import dataclasses
import difflib
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from dsgnar.config import Settings
from dsgnar.networks import Architecture
from dsgnar.problem import Problem
from dsgnar.problems import SUITE
from dsgnar.reference import Reference

Source = Literal["suite", "file", "python"]


class StatementError(ValueError):
    """A problem could not be found, or its file is wrong; the message is for the person who wrote it."""


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
    text: str | None = None  # what stands in it


def find(problem: str, preset: str = "default") -> Statement:
    """The statement that a person asks for: a file by its path, or a problem of the suite by its name."""
    if problem.endswith(".py") or "/" in problem:
        if preset != "default":
            raise StatementError(f"a file has no presets; state what {preset!r} means as `settings` in {problem}")
        return from_file(Path(problem))
    return from_suite(problem, preset)


def from_suite(name: str, preset: str) -> Statement:
    """A problem of the suite, to be solved as one of its presets says."""
    if name not in SUITE:
        raise StatementError(f"there is no problem {name!r}{_meant(name, SUITE)}; `dsgnar list` shows them all")
    benchmark = SUITE[name]
    if preset not in benchmark.presets:
        known = ", ".join(benchmark.presets)
        raise StatementError(f"{name} has no preset {preset!r}{_meant(preset, benchmark.presets)}; it has {known}")
    chosen = benchmark.presets[preset]
    options: Any = {"precision": chosen.precision, **chosen.settings}
    return Statement(
        problem=benchmark.problem(**chosen.statement),
        name=name,
        network=chosen.network,
        reference=benchmark.reference,
        settings=Settings(**options),
        title=f"{benchmark.title}, {preset}",
        equations=benchmark.equations,
        preset=preset,
        source="suite",
    )


def _meant(word: str, known) -> str:
    close = difflib.get_close_matches(word, known, n=2)
    return f" (did you mean {' or '.join(close)}?)" if close else ""


def from_file(path: Path, origin: Path | None = None) -> Statement:
    """What a person's file defines. The file is executed; `origin` is where a stored copy came from."""
    home = origin or path
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise StatementError(f"cannot read {path}: {error}") from None
    names = _execute(text, path, home)
    problem, network = names.get("problem"), names.get("network")
    reference: Any = names.get("reference")
    if not isinstance(problem, Problem):
        found = "it defines no `problem`" if problem is None else f"its `problem` is a {type(problem).__name__}"
        raise StatementError(f"{path}: {found}; write `problem = dsgnar.Problem(...)` (`dsgnar init` makes an example)")
    return Statement(
        problem=problem,
        name=home.stem,
        network=network,
        reference=reference if callable(reference) else lambda: reference,  # type: ignore[arg-type]
        settings=_settings(names.get("settings", {}), path),
        title=str(names.get("title", home.stem)),
        equations=tuple(names.get("equations", ())),
        source="file",
        path=home.resolve(),
        text=text,
    )


def _execute(text: str, path: Path, home: Path) -> dict[str, Any]:
    """The names that a file defines. It may import its neighbours, as a program may."""
    names: dict[str, Any] = {"__name__": "problem", "__file__": str(path)}
    neighbours = str(home.resolve().parent)
    sys.path.insert(0, neighbours)
    try:
        exec(compile(text, str(path), "exec"), names)
    except SyntaxError as error:
        where = error.filename or path
        raise StatementError(f"{where}, line {error.lineno}: {error.msg}\n    {(error.text or '').strip()}") from None
    except Exception as error:
        lines = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        where = f", line {lines[-1].lineno}" if lines else ""
        code = f"\n    {text.splitlines()[lines[-1].lineno - 1].strip()}" if lines and lines[-1].lineno else ""
        raise StatementError(f"{path}{where}: {type(error).__name__}: {error}{code}") from error
    finally:
        sys.path.remove(neighbours)
    return names


def check_settings(names: Iterable[str], where: str) -> None:
    """Raise if one of the names is not that of a setting."""
    known = [f.name for f in dataclasses.fields(Settings)]
    for name in names:
        if name not in known:
            raise StatementError(f"{where}: no setting {name!r}{_meant(name, known)}; there are {', '.join(known)}")


def _settings(given: Any, path: Path) -> Settings:
    if isinstance(given, Settings):
        return given
    if not isinstance(given, Mapping):
        raise StatementError(f"{path}: `settings` must be a dictionary or a dsgnar.Settings, not {given!r}")
    check_settings(given, str(path))
    try:
        return Settings(**given)
    except (TypeError, ValueError) as error:
        raise StatementError(f"{path}: {error}") from None
