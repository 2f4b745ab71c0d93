"""A solve that is kept: each has a run directory of its own.

One that has ended is read. One that was interrupted continues from its last checkpoint, and so does one that had reached a
limit of iterations or seconds, if the limit is larger now.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dsgnar.solving.context import Context
from dsgnar.solving.loop import run
from dsgnar.solving.observers import Observer
from dsgnar.solving.settings import Settings
from dsgnar.solving.stop import StopReason
from dsgnar.storing.directory import RunDirectory, restored
from dsgnar.storing.files import read_config, read_result, unfinished
from dsgnar.suite.statement import Statement

Stated = Callable[[], tuple[Statement, Settings]]
_LIMITS = {StopReason.ITERATIONS.code: "max_iterations", StopReason.SECONDS.code: "max_seconds"}


def solved(path: Path, stated: Stated, limits: Mapping[str, Any], observers: Sequence[Observer] = ()) -> dict[str, Any]:
    """The content of result.json. `stated` says what is to be solved, and how, where nothing has been begun yet."""
    if not ended(path, limits):
        kept = RunDirectory(path)
        if (path / "config.json").exists():
            context, state = restored(kept, **limits)
        else:
            kept.statement, settings = stated()
            context = Context.of(kept.statement.problem, kept.statement.network, settings, kept.statement.reference())
            state = context.start()
        run(context, state, (kept, *observers))
    return read_result(path)


def ended(path: Path, limits: Mapping[str, Any] | None = None) -> bool:
    """Whether there is nothing left to do with these limits."""
    if not (path / "result.json").exists() or unfinished(path):
        return False
    limit = _LIMITS.get(read_result(path)["stop_reason"])
    if limit is None or limit not in (limits or {}):
        return True
    before = read_config(path)["settings"][limit]
    return (limits or {})[limit] <= (math.inf if before is None else before)
