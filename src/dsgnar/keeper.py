"""A run that is kept in a directory while it goes on, and resumed from there.

A `RunDirectory` observes a run: it holds the directory (no other process may use it), writes the configuration at the start,
checkpoints on the way, and the result at the end. A checkpoint that cannot be written (a full disk) does not end the run: it
goes on, and tries again. A failure leaves the last complete iteration.
"""

import dataclasses
import os
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # not on Windows: directories are not held there
    fcntl = None

from dsgnar import checkpoints, runs
from dsgnar.configuration import LIMITS, describe, fingerprint, settings_of
from dsgnar.problem import Problem
from dsgnar.runs import RunError, WrongDirectory
from dsgnar.solution import Record, Solution
from dsgnar.solve import Observer, Run
from dsgnar.statement import Statement

EVERY = 30.0  # seconds between checkpoints: little is lost, and writing one takes milliseconds


class RunDirectory:
    """Keeps a run in the directory `path`; give it to `solve` as an observer.

    `every` is the number of seconds between checkpoints. `force` starts anew where an unfinished run lies. `warn` is told
    what goes wrong on the way; after the end `failure` is what kept the result from being written.
    """

    def __init__(
        self,
        path: Path | str,
        statement: Statement | None = None,
        *,
        every: float = EVERY,
        force: bool = False,
        warn: runs.Warn = warnings.warn,
    ):
        self.path, self.statement, self.every, self.force, self.warn = Path(path), statement, every, force, warn
        self.failure: OSError | None = None
        self._lock: Any = None
        self._resuming = False
        self._run_id = ""
        self._last: checkpoints.Checkpoint | None = None  # the last complete iteration
        self._written = self._complained = False
        self._time = 0.0

    # --- as an observer -----------------------------------------------------------------------------------------------

    def started(self, run: Run) -> None:
        if self._lock is None:
            self.hold()
        self.statement = self.statement or Statement(run.problem)
        if not self._resuming:
            runs.make_room(self.path, self.force, self.warn)
            runs.begin(self.path, self.statement, run.architecture, run.settings)
            self._run_id = fingerprint(runs.read_config(self.path))
        elif run.stop is None:
            runs.go_on(self.path, run.settings)
        self._time = time.monotonic()

    def iterated(self, run: Run, record: Record) -> None:
        self._last, self._written = run.checkpoint(), False
        if run.stop is not None or time.monotonic() - self._time >= self.every:
            self._save()

    def finished(self, run: Run, solution: Solution | None) -> None:
        try:
            if self._last is not None and not self._written:
                self._save()
            if solution is not None and self.statement is not None:
                runs.end(self.path, solution, self.statement)
        except OSError as error:
            self.failure = error
            self.warn(f"the result could not be written to {self.path}: {error.strerror or error}")
        finally:
            self.release()

    def _save(self) -> None:
        assert self._last is not None
        self._time = time.monotonic()
        try:
            checkpoints.save(self.path, self._last, self._run_id)
            self._written, self._complained = True, False
        except OSError as error:
            if not self._complained:
                reason = error.strerror or error
                self.warn(f"no checkpoint could be written to {self.path} ({reason}); the run goes on and tries again")
            self._complained = True

    # --- holding the directory ----------------------------------------------------------------------------------------

    def hold(self) -> None:
        """Keep other processes out, as long as this one lives."""
        self.path.mkdir(parents=True, exist_ok=True)
        if fcntl is None:
            return
        lock = open(self.path / ".lock", "a+")  # noqa: SIM115 - closing it would release the directory
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            holder = lock.read().strip()
            lock.close()
            raise RunError(
                f"{self.path} is in use by another run (process {holder}); choose another directory"
            ) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        self._lock = lock

    def release(self) -> None:
        """Let others use the directory."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    # --- going on -----------------------------------------------------------------------------------------------------

    def restore(self, run: Run) -> None:
        """Bring a run to where the last whole checkpoint was; without one it starts from the beginning."""
        self._resuming = True
        self._run_id = fingerprint(runs.read_config(self.path))
        checkpoint, complaints = checkpoints.latest(self.path, self._run_id)
        for complaint in complaints:
            self.warn(complaint)
        if complaints:
            checkpoints.set_aside(self.path)
        if checkpoint is not None:
            run.restore(checkpoint)
        elif (self.path / "result.json").exists():
            raise WrongDirectory(f"the run in {self.path} has ended and left no checkpoint from which it could go on")


def resume(
    directory: Path | str,
    problem: Problem | None = None,
    *,
    network: Any = None,
    observers: Sequence[Observer] = (),
    **limits: Any,
) -> Solution:
    """Go on with a run from its last checkpoint, to the same result as if it had never been interrupted.

    `problem` and `network` are needed where `load` needs them. A run that has ended is returned as it is, unless a larger
    `max_iterations` or `max_seconds` lets it go on.
    """
    return restored(RunDirectory(directory), problem, network, observers, **limits).run()


def restored(
    kept: RunDirectory,
    problem: Problem | None = None,
    network: Any = None,
    observers: Sequence[Observer] = (),
    **limits,
) -> Run:
    """The run of a directory, brought to where its last whole checkpoint was; the directory is held from now on."""
    for name in limits:
        if name not in LIMITS:
            raise TypeError(f"going on can change {' and '.join(LIMITS)}, not {name!r}")
    kept.statement = statement = runs.recall(kept.path, problem, network)
    described = runs.read_config(kept.path)
    settings = dataclasses.replace(settings_of(described), **limits)
    if statement.source == "file" and describe(statement, None, settings)["file_sha256"] != described["file_sha256"]:
        raise WrongDirectory(f"{kept.path / 'problem.py'} has been changed since the run began: it cannot go on")
    kept.hold()
    try:
        run = Run(statement.problem, statement.network, settings, statement.reference(), (kept, *observers))
        kept.restore(run)
    except BaseException:
        kept.release()
        raise
    return run
