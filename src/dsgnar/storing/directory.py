"""A run that is kept in a directory, and resumed from there.

A `RunDirectory` observes a run. It locks the directory against other processes and writes the configuration at the start,
checkpoints on the way, and the result at the end. If a checkpoint cannot be written (a full disk), the run continues and
tries again later. If the run fails, the last complete iteration is kept.
"""

import dataclasses
import math
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

from dsgnar.calculus import devices
from dsgnar.calculus.team import Alone
from dsgnar.calculus.version import VERSION
from dsgnar.problem import Problem
from dsgnar.problem.quantities import Quantity
from dsgnar.solving.context import Context
from dsgnar.solving.loop import resumed, run
from dsgnar.solving.observers import Observer, View
from dsgnar.solving.record import Record
from dsgnar.solving.settings import LIMITS, Settings, looser
from dsgnar.solving.solution import Solution
from dsgnar.solving.state import RunState
from dsgnar.storing import checkpoints, files, runs
from dsgnar.storing.configuration import changed_constants, settings_of
from dsgnar.storing.files import RunError, WrongDirectory
from dsgnar.suite.statement import Statement

EVERY = 30.0  # seconds between checkpoints: little is lost, and writing one takes milliseconds


class RunDirectory:
    """Keeps a run in the directory `path`; pass it to `solve` as an observer.

    `every` is the number of seconds between checkpoints. `force` moves an unfinished run aside and starts a new one. `warn`
    is called with a message when something goes wrong; `failure` is the error that kept the result from being written.
    """

    def __init__(
        self,
        path: Path | str,
        statement: Statement | None = None,
        *,
        every: float = EVERY,
        force: bool = False,
        warn: files.Warn = warnings.warn,
    ):
        self.path, self.statement, self.every, self.force, self.warn = Path(path), statement, every, force, warn
        self.failure: OSError | None = None
        self._lock: Any = None
        self._resuming = False
        self._run_id = ""
        self._last: RunState | None = None  # the last complete iteration
        self._ended: Solution | None = None  # the last solution that was written
        self._written = self._complained = False
        self._time = 0.0

    # --- as an observer -----------------------------------------------------------------------------------------------

    def started(self, run: View) -> None:
        if self._lock is None:
            self.hold()
        self.statement = self.statement or Statement(run.problem)
        if not self._resuming:
            files.make_room(self.path, self.force, self.warn)
            runs.begin(self.path, self.statement, run.network, run.settings)
            self._run_id = runs.identity(self.path)
        elif run.state.stop is None:
            runs.go_on(self.path, run.settings)
        self._time = time.monotonic()

    def iterated(self, run: View, record: Record) -> None:
        self._last, self._written = run.state, False
        if run.state.stop is not None or time.monotonic() - self._time >= self.every:
            self._save()

    def finished(self, run: View, solution: Solution | None) -> None:
        try:
            if self._last is not None and not self._written:
                self._save()
            if solution is not None and self.statement is not None:
                runs.end(self.path, solution, self.statement)
                self._ended = solution
        except OSError as error:
            self._not_written(error)
        finally:
            self._resuming = False
            self.release()

    def settled(self, solution: Solution) -> None:
        """Of several attempts this one counts: the directory is to hold it, and the others lie beside it."""
        if self.statement is None or self._ended is None:
            return
        try:
            self.hold()
            if solution.thetas is self._ended.thetas:
                runs.end(self.path, solution, self.statement)
            else:
                files.make_room(self.path, self.force, self.warn)
                runs.write(self.path, solution, self.statement)
        except OSError as error:
            self._not_written(error)
        finally:
            self.release()

    def _not_written(self, error: OSError) -> None:
        self.failure = error
        self.warn(f"the result could not be written to {self.path}: {error.strerror or error}")

    def _save(self) -> None:
        assert self._last is not None
        self._time = time.monotonic()
        try:
            checkpoints.save(self.path, self._last, self._run_id)
            self._written, self._complained = True, False
        except OSError as error:
            if not self._complained:
                reason = error.strerror or error
                self.warn(
                    f"no checkpoint could be written to {self.path} ({reason}); the run continues and tries again"
                )
            self._complained = True

    # --- locking the directory ----------------------------------------------------------------------------------------

    def hold(self) -> None:
        """Lock the directory, as long as this process lives."""
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
                f"{self.path} is in use by another run (process {holder}): wait for it, or choose another directory"
            ) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        self._lock = lock

    def release(self) -> None:
        """Unlock the directory."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    # --- resuming -----------------------------------------------------------------------------------------------------

    def restore(self) -> RunState | None:
        """The state in the last whole checkpoint; without one a run starts from the beginning."""
        self._resuming = True
        self._run_id = runs.identity(self.path)
        state, complaints = checkpoints.latest(self.path, self._run_id)
        if state is None and complaints:
            raise WrongDirectory(
                f"the run in {self.path} cannot be resumed: {'; '.join(complaints)} "
                "(`dsgnar solve ... --force` starts a new run and keeps these files)"
            )
        for complaint in complaints:
            self.warn(complaint)
        if complaints:
            checkpoints.set_aside(self.path)
        ended = (self.path / "result.json").exists()
        if state is None and ended and files.read_result(self.path).get("iterations") != 0:
            raise WrongDirectory(
                f"the run in {self.path} has ended and has no checkpoint that it could be resumed from"
            )
        return state


def resume(
    directory: Path | str,
    problem: Problem | None = None,
    *,
    network: Any = None,
    observers: Sequence[Observer] = (),
    **limits: Any,
) -> Solution:
    """Continue a run from its last checkpoint, to the same result as if it had never been interrupted.

    `problem` and `network` are needed where `load` needs them. A run that has ended is returned as it is, unless a larger
    `max_iterations` or `max_seconds` lets it continue.
    """
    kept = RunDirectory(directory)
    context, state = restored(kept, problem, network, **limits)
    return run(context, state, (kept, *observers))


def restored(
    kept: RunDirectory, problem: Problem | None = None, network: Any = None, **limits: Any
) -> tuple[Context, RunState]:
    """The run of a directory at its last whole checkpoint; the directory is locked from now on."""
    for name in limits:
        if name not in LIMITS:
            raise TypeError(f"resuming can change {', '.join(LIMITS[:-1])} and {LIMITS[-1]}, not {name!r}")
    Settings(**limits)  # raises what is wrong with them
    team, context, state = devices.current().team, None, None
    with team.agreeing(f"reading the run in {kept.path}"):
        described = files.read_config(kept.path)
        kept.statement = statement = runs.recall(kept.path, problem, network)
        with files.understood(kept.path / "config.json"):
            changed = files.changed_copies(kept.path, described)
            if changed and problem is None:
                names = ", ".join(map(str, changed))
                raise WrongDirectory(
                    f"{names} changed since the run began, so the run cannot be resumed; start a new one"
                )
            if "quantity" not in limits:
                limits["quantity"] = _quantity(kept, described, statement)
            settings = dataclasses.replace(settings_of(described), **_in_force(limits))
        if team.leads:
            _warn_of_changes(kept, described)
            kept.hold()
        try:
            context = Context.of(statement.problem, statement.network, settings, statement.reference())
            state = kept.restore() if team.leads else None
        except BaseException:
            kept.release()
            raise
    assert context is not None
    state = _of_the_first(kept, state, team)
    return context, context.start() if state is None else resumed(context, state)


def _quantity(kept: RunDirectory, described: dict[str, Any], statement: Statement) -> Quantity | None:
    """What the error of a run is of. It is a function: a person's file has it, and a program has to give it again."""
    about, found = described["settings"].get("quantity"), statement.settings.quantity
    if about is not None and found is None:
        raise WrongDirectory(f"the run in {kept.path} is about a quantity ({about}): give it again, as `quantity=...`")
    return found


def _in_force(limits: dict[str, Any]) -> dict[str, Any]:
    """Limits as the settings in force have them."""
    if "tol" not in limits:
        return limits
    return limits | {"tol": Settings(tol=limits["tol"]).strictest or math.inf, "looser": looser(limits["tol"])}


def _of_the_first(kept: RunDirectory, state: RunState | None, team: Alone) -> RunState | None:
    """The state that the first process has read: others may not see the directory as it does."""
    if team.size == 1:
        return state
    identity = runs.identity(kept.path)
    content = team.share(b"" if state is None else checkpoints.encode(state, identity))
    return checkpoints.decode(content, identity) if content else None


def _warn_of_changes(kept: RunDirectory, described: dict[str, Any]) -> None:
    """Warn if a run continues under another version, or if the defaults of its method have changed."""
    then = described["environment"].get("dsgnar")
    if then != VERSION:
        kept.warn(
            f"the run in {kept.path} began with dsgnar {then} and continues with {VERSION}: "
            "the result may differ from that of one version alone"
        )
    before, now = described["environment"].get("devices", "1"), str(devices.current().total)
    if before != now:
        kept.warn(
            f"the run in {kept.path} began on {before} device{'s' if before != '1' else ''} and continues on {now}: "
            "the result is equal to rounding, not bit for bit"
        )
    changed = changed_constants(described)
    if changed:
        what = ", ".join(f"{name} = {before} (now {now})" for name, (before, now) in changed.items())
        kept.warn(f"defaults have changed since the run in {kept.path} began; it keeps its own: {what}")
