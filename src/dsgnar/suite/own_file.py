"""A person's own file: what it defines. Reading it executes it, like any Python program.

Modules beside it that it imports belong to it (`neighbours.py`): a run directory keeps copies of them too, and a resumed run
uses those.
"""

import difflib
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from dsgnar.problem import Problem
from dsgnar.solving.settings import Settings, unknown_option, with_options
from dsgnar.suite.neighbours import Neighbours
from dsgnar.suite.statement import Statement, StatementError, from_suite

READ = ("problem", "network", "reference", "settings", "title", "equations")  # names that a file may define


def find(problem: str, preset: str = "default", warn: Callable[[str], Any] = warnings.warn) -> Statement:
    """The statement that a person asks for: a file by its path, or a problem of the suite by its name."""
    if not problem.endswith(".py") and "/" not in problem:
        return from_suite(problem, preset)
    if preset != "default":
        raise StatementError(f"a file has no presets; state what {preset!r} means as `settings` in {problem}")
    return from_file(Path(problem), warn=warn)


def from_file(
    path: Path, origin: Path | None = None, copies: Path | None = None, warn: Callable[[str], Any] | None = None
) -> Statement:
    """What a person's file defines. For a stored copy, `origin` is the original file, and `copies` the folder with copies
    of the modules beside it. `warn` is told about names that look misspelt."""
    home = (origin or path).resolve()
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise StatementError(f"cannot read {path}: {error}") from None
    neighbours = Neighbours([home.parent] if copies is None else [copies, home.parent], home.parent)
    names: dict[str, Any] = {"__name__": "problem", "__file__": str(home), "__builtins__": neighbours.builtins}
    with _blamed(path, text), neighbours.at_hand():
        exec(compile(text, str(path), "exec", dont_inherit=True), names)
    _check(names, path)
    if warn is not None:
        for hint in _misspelt(names):
            warn(f"{path} defines {hint}")
    return Statement(
        problem=names["problem"],
        name=home.stem,
        network=names.get("network"),
        reference=_reference(names.get("reference"), path, text),
        settings=_settings(names.get("settings", {}), path),
        title=str(names.get("title", home.stem)),
        equations=_equations(names.get("equations", ())),
        source="file",
        path=home,
        text=text,
        helpers=neighbours.texts,
    )


@contextmanager
def _blamed(path: Path, text: str) -> Iterator[None]:
    """Errors raised within name the line of the file."""
    try:
        yield
    except SyntaxError as error:
        where = error.filename or path
        raise StatementError(f"{where}, line {error.lineno}: {error.msg}\n    {(error.text or '').strip()}") from None
    except Exception as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        where = f", line {lines[-1]}" if lines else ""
        code = f"\n    {text.splitlines()[lines[-1] - 1].strip()}" if lines and lines[-1] else ""
        raise StatementError(f"{path}{where}: {type(error).__name__}: {error}{code}") from error


def _check(names: Mapping[str, Any], path: Path) -> None:
    problem = names.get("problem")
    if not isinstance(problem, Problem):
        found = "it defines no `problem`" if problem is None else f"its `problem` is a {type(problem).__name__}"
        raise StatementError(f"{path}: {found}; write `problem = dsgnar.Problem(...)` (`dsgnar init` makes an example)")


def _reference(given: Any, path: Path, text: str) -> Callable[[], Any]:
    """`reference` may be a table, or a function that makes one. `check_reference` looks at what it gives."""
    if not callable(given):
        return lambda: given

    def made() -> Any:
        with _blamed(path, text):
            return given()

    return made


def _equations(given: Any) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(map(str, given))


def _misspelt(names: Mapping[str, Any]) -> Iterator[str]:
    """A `setting = ...` would be ignored without a word."""
    missing = [name for name in READ if name not in names]
    for name, value in names.items():
        close = difflib.get_close_matches(name, missing, n=1, cutoff=0.8)
        if close and name not in READ and not isinstance(value, type | ModuleType):
            yield f"`{name}`, which is ignored; did you mean `{close[0]}`?"


def check_settings(names: Iterable[str], where: str) -> None:
    """Raise if one of the names is not that of a setting."""
    wrong = unknown_option(names)
    if wrong is not None:
        raise StatementError(f"{where}: no setting {wrong}")


def _settings(given: Any, path: Path) -> Settings:
    if isinstance(given, Settings):
        return given
    if not isinstance(given, Mapping):
        raise StatementError(f"{path}: `settings` must be a dictionary or a dsgnar.Settings, not {given!r}")
    check_settings(given, str(path))
    try:
        return with_options(Settings(), given)
    except (TypeError, ValueError) as error:
        raise StatementError(f"{path}: {error}") from None
