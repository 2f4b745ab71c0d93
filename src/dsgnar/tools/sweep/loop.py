"""All runs of a sweep, until each has ended.

A run that has a result is kept, one that was interrupted is continued, and one that fails does not stop the others. A sweep
that is interrupted, or killed, is continued by starting it again.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from dsgnar.storing.files import RunError
from dsgnar.tools import processes
from dsgnar.tools.sweep import status
from dsgnar.tools.sweep.grid import Run
from dsgnar.tools.sweep.pools import Handle, Pool
from dsgnar.tools.sweep.status import WHOLE, Status

POLL = 0.25  # seconds between looks at the runs


class Sweep:
    """Runs, each in a directory of its own, and where they are."""

    def __init__(self, runs: Sequence[Run], home: Path, pool: Pool):
        self.runs, self.home, self.pool = {run.name: run for run in runs}, home, pool
        self.statuses: dict[str, Status] = {name: self._found(name) for name in self.runs}
        self.kept = [name for name, found in self.statuses.items() if found.state in WHOLE]
        self.stopping = False
        self._handles: dict[str, tuple[Handle, int, float]] = {}  # with its slot, and when it began

    def directory(self, name: str) -> Path:
        return self.home / name

    def work(self, tell: Callable[[str, Status], None] = lambda name, status: None) -> Mapping[str, Status]:
        """Start runs and wait for all of them; `tell` hears of each that ends.

        Ctrl-C asks those that are going on to end after their iteration; a second one ends them at once.
        """
        waiting = [name for name in self.runs if name not in self.kept]
        try:
            while waiting or self._handles:
                try:
                    while waiting and not self.stopping and len(self._handles) < self.pool.slots:
                        self._start(waiting.pop(0))
                    time.sleep(POLL)
                    self._look(tell)
                    if self.stopping and not self._handles:
                        break
                except KeyboardInterrupt:
                    self._interrupt()
        finally:
            for handle, _, _ in self._handles.values():
                handle.kill()
        return self.statuses

    @property
    def complete(self) -> bool:
        """Whether every run has a result."""
        return all(found.state in WHOLE for found in self.statuses.values())

    def _found(self, name: str) -> Status:
        directory = self.directory(name)
        if status.ended(directory):
            return status.reached(directory)
        return Status("interrupted") if (directory / "config.json").exists() else Status()

    def _start(self, name: str) -> None:
        directory = self.directory(name)
        begun = (directory / "config.json").exists()
        arguments = ["resume", str(directory)] if begun else self.runs[name].solve(directory)
        slot = min(set(range(self.pool.slots)) - {slot for _, slot, _ in self._handles.values()})
        (directory / status.LOG).unlink(missing_ok=True)
        self._handles[name] = self.pool.start(arguments, directory, slot), slot, time.monotonic()
        self.statuses[name] = Status("running", seconds=0.0)

    def _look(self, tell: Callable[[str, Status], None]) -> None:
        for name, (handle, _, began) in list(self._handles.items()):
            code = handle.poll()
            if code is None:
                self.statuses[name] = status.going_on(self.directory(name), time.monotonic() - began)
                continue
            del self._handles[name]
            self.statuses[name] = found = self._ended(name, code)
            tell(name, found)

    def _ended(self, name: str, code: int) -> Status:
        directory = self.directory(name)
        try:
            if status.ended(directory):
                return status.reached(directory)
            if self.stopping:
                return Status("interrupted")
        except RunError as error:
            return Status("error", why=str(error))
        return status.broken(directory, f"its process {processes.ended_by(code)}")

    def _interrupt(self) -> None:
        for handle, _, _ in self._handles.values():
            handle.kill() if self.stopping else handle.stop()
        self.stopping = True
