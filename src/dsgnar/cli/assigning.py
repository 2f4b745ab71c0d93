"""What `--set NAME=VALUE`, `--tol` and `--data NAME=FILE` mean."""

import ast
import math
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from dsgnar.suite.own_file import check_settings
from dsgnar.suite.statement import StatementError


def assignments(assigned: Sequence[str], given: Collection[str]) -> dict[str, Any]:
    """What `--set` gives: Python's numbers and tuples by name; anything else is text. Nothing may be `given` twice."""
    values: dict[str, Any] = {}
    for assignment in assigned:
        name, equals, text = assignment.partition("=")
        if not equals:
            raise StatementError(f"--set {assignment}: write NAME=VALUE, such as --set wait=100")
        check_settings((name,), f"--set {assignment}")
        if name in values or name in given:
            raise StatementError(f"--set {assignment}: {name} is given twice; leave one out")
        values[name] = _value(text)
    return values


def _value(text: str) -> Any:
    words = {"inf": math.inf, "infinity": math.inf, "true": True, "false": False}
    if text in words:
        return words[text]
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text


def tolerance(text: str) -> float | dict[str, float]:
    """What `--tol` gives: `1e-6`, or a number for each unknown, `u=1e-6,p=1e-3`."""
    try:
        if "=" not in text:
            return float(text)
        pairs = [part.split("=") for part in text.split(",")]
        each = {name.strip(): float(value) for name, value in pairs}
    except ValueError:
        raise ValueError(f"--tol {text}: write a number, or one for each unknown, such as u=1e-6,p=1e-3") from None
    if len(each) < len(pairs):
        raise ValueError(f"--tol {text}: an unknown is given twice; leave one out")
    return each


def data_files(assigned: Sequence[str]) -> dict[str, Path]:
    """What `--data` gives: files by the names of conditions."""
    files: dict[str, Path] = {}
    for assignment in assigned:
        name, equals, path = assignment.partition("=")
        if not equals or not name or not path:
            raise ValueError(f"--data {assignment}: write NAME=FILE, such as --data data=measured.csv")
        if name in files:
            raise ValueError(f"--data {assignment}: {name} is given twice; leave one out")
        files[name] = Path(path)
    return files
