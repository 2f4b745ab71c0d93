"""Several processes on this machine that solve one problem together.

Each has cores of its own. The first one writes to the terminal; what the others say goes to files, and is shown if something
goes wrong. If one ends early, the others find out at their next exchange (`calculus/team.py`); whoever is still there after
`GRACE` seconds is ended.
"""

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from dsgnar.tools import processes
from dsgnar.tools.joining import free_port

GRACE = 10.0  # seconds
POLL = 0.1
GOOD = (0, 3)  # exit codes of a run that was taken to its end
WRONG = 2  # and of a command that was used wrongly


class Launched:
    """Processes that were started together."""

    def __init__(self, arguments: Sequence[str], count: int, patience: float):
        self.folder = tempfile.TemporaryDirectory(prefix="dsgnar-")
        self.said = [Path(self.folder.name, f"{k}.txt") for k in range(count)]
        self.processes: list[subprocess.Popen] = []
        self._asked = False
        coordinator, cores = f"127.0.0.1:{free_port()}", processes.shared_out(count)
        # As many threads of BLAS in each, also where cores do not come out even: these round differently.
        threads = dict.fromkeys(processes.ONE_THREAD, str(min(map(len, cores))))
        try:
            for k in range(count):
                place = ["--coordinator", coordinator, "--processes", str(count), "--process-id", str(k)]
                more = threads | processes.SHORT_SPIN | _visible(k, count)
                self._start([*arguments, *place, "--patience", f"{patience:g}"], k, cores[k], more)
        except BaseException:
            self.end()
            raise

    def _start(self, arguments: Sequence[str], k: int, cores: Sequence[int], environment: Mapping[str, str]) -> None:
        if k == 0:
            self.processes.append(processes.start(arguments, cores, environment))
            return
        with open(self.said[k], "wb") as output:
            self.processes.append(processes.start(arguments, cores, environment, output))

    def wait(self, tell: Callable[[str], None]) -> int:
        """Wait for all; the exit code of the first, or of the first that failed. Ctrl-C goes on to the run."""
        try:
            while True:
                try:
                    return self._watch(tell)
                except KeyboardInterrupt:
                    self._interrupt()
        finally:
            self.end()

    def _watch(self, tell: Callable[[str], None]) -> int:
        first_bad: tuple[int, int] | None = None  # which, and its exit code
        since = 0.0
        while any(process.poll() is None for process in self.processes):
            codes = [process.poll() for process in self.processes]
            if first_bad is None:
                first_bad, since = _worst(codes), time.monotonic()
            if first_bad is not None and time.monotonic() - since > GRACE:
                tell(f"ending the other processes, which have not noticed within {GRACE:g} s")
                self._kill()
            time.sleep(POLL)
        codes = [process.wait() for process in self.processes]
        worst = first_bad or _worst(codes)
        if worst is None:
            return codes[0]
        self._explain(*worst, tell)
        return worst[1] if worst[1] > 0 else 128 - worst[1]

    def _explain(self, k: int, code: int, tell: Callable[[str], None]) -> None:
        if code == WRONG and self.processes[0].poll() == WRONG:
            return  # the first has said what is wrong, and nothing was begun
        said = "" if k == 0 else _tail(self.said[k])
        how = processes.ended_by(code) + (f": {said}" if said else "")
        more = "" if code == WRONG else "; `dsgnar resume` continues from the last checkpoint"
        tell(f"process {k} of {len(self.processes)} {how}{more}")

    def _interrupt(self) -> None:
        """The first Ctrl-C asks the run to end after its iteration, a second one ends all."""
        if self._asked:
            self._kill()
            return
        self._asked = True
        self.processes[0].send_signal(signal.SIGTERM)  # SIGINT is ignored in the background of a shell

    def end(self) -> None:
        """End whatever is still there, and leave nothing behind."""
        self._kill()
        self.folder.cleanup()

    def _kill(self) -> None:
        for process in self.processes:
            with suppress(ProcessLookupError):
                process.kill()
        for process in self.processes:
            process.wait()


def _worst(codes: Sequence[int | None]) -> tuple[int, int] | None:
    """Which process failed, and its exit code: one that was killed, rather than those that ended because of it.

    JAX aborts processes that it finds without a coordinator; that is never the cause.
    """
    bad = [(k, code) for k, code in enumerate(codes) if code is not None and code not in GOOD]
    return min(bad, key=lambda pair: 2 if pair[1] == -signal.SIGABRT else int(pair[1] > 0), default=None)


def _visible(k: int, count: int) -> dict[str, str]:
    """The GPUs of process k, where CUDA_VISIBLE_DEVICES names enough for all."""
    names = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
    if len(names) < count:
        return {}
    return {"CUDA_VISIBLE_DEVICES": ",".join(names[k * len(names) // count : (k + 1) * len(names) // count])}


def _tail(path: Path) -> str:
    try:
        lines = [line for line in path.read_text(errors="replace").splitlines() if line.strip()]
    except OSError:
        return ""
    ours = [line.removeprefix("dsgnar: ") for line in lines if line.startswith("dsgnar: ")]
    return ours[-1] if ours else lines[-1] if lines else ""
