"""Where the runs of a sweep take place: in processes on this machine, or as jobs of a SLURM cluster.

Here each of the runs side by side has cores of its own and one BLAS thread: the matrices are small, and threads of several
processes would only wait for each other. Where `CUDA_VISIBLE_DEVICES` names several GPUs, runs take turns with them.
On a cluster `submitit` submits each run as a job (an optional package).
"""

import importlib
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Protocol

from dsgnar.tools import processes
from dsgnar.tools.sweep.status import LOG

_TAKEN = {"partition": "slurm_partition", "time": "slurm_time", "cpus": "cpus_per_task", "memory": "slurm_mem"}


class PoolError(RuntimeError):
    """Runs cannot be started there; the message says what to do."""


class Handle(Protocol):
    """A run that was started."""

    def poll(self) -> int | None:
        """Its exit code, once it has ended."""
        ...

    def stop(self) -> None:
        """Ask it to end after its iteration."""
        ...

    def kill(self) -> None:
        """End it now."""
        ...


class Pool(Protocol):
    """A place for runs."""

    slots: int

    def start(self, arguments: Sequence[str], directory: Path, slot: int) -> Handle: ...


class Local:
    """Processes on this machine, so many side by side; by default one for each core."""

    def __init__(self, slots: int | None = None):
        self.slots = slots or len(processes.cores())
        self._cores = processes.shared_out(self.slots)

    def start(self, arguments: Sequence[str], directory: Path, slot: int) -> Handle:
        environment = dict(processes.ONE_THREAD)
        visible = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
        if len(visible) > 1:
            environment["CUDA_VISIBLE_DEVICES"] = visible[slot % len(visible)]
        with log(directory) as output:
            return Process(processes.start(arguments, self._cores[slot], environment, output))


class Process:
    """A run in a process here."""

    def __init__(self, process: subprocess.Popen):
        self.process = process
        self.pid = process.pid

    def poll(self) -> int | None:
        return self.process.poll()

    def stop(self) -> None:
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


class Slurm:
    """Jobs of a SLURM cluster, submitted by submitit; `options` are such as partition=NAME and time=60 (minutes)."""

    def __init__(self, folder: Path, options: Mapping[str, str], slots: int | None = None):
        try:
            submitit: Any = importlib.import_module("submitit")
        except ImportError:
            raise PoolError("--slurm needs the package submitit: pip install 'dsgnar[slurm]'") from None
        if shutil.which("sbatch") is None:
            raise PoolError("--slurm: there is no sbatch here; use a machine of the cluster, or leave --slurm out")
        self.slots = slots or 1000  # the queue has its own rules
        self._executor = submitit.AutoExecutor(folder / "jobs", cluster="slurm")
        given = {_TAKEN[name]: _number(value) for name, value in options.items() if name in _TAKEN}
        others = {name: _number(value) for name, value in options.items() if name not in _TAKEN}
        given.setdefault("slurm_time", 24 * 60)  # minutes; submitit's own default is five
        self._executor.update_parameters(**given, slurm_additional_parameters=others, name="dsgnar")

    def start(self, arguments: Sequence[str], directory: Path, slot: int) -> Handle:
        try:
            return Job(self._executor.submit(work, list(arguments), str(directory)))
        except Exception as error:  # whatever sbatch and submitit raise
            raise PoolError(f"--slurm: sbatch did not take the job: {error}") from error


def _number(text: str) -> int | str:
    return int(text) if text.isdigit() else text


class Job:
    """A run that is a job of a cluster."""

    def __init__(self, job: Any):
        self._job = job

    def poll(self) -> int | None:
        if not self._job.done():
            return None
        return 1 if self._job.exception() is not None else int(self._job.result())

    def stop(self) -> None:
        self._job.cancel(check=False)  # SLURM sends SIGTERM first: the run ends after its iteration

    kill = stop


def work(arguments: Sequence[str], directory: str) -> int:
    """What a job does: one command, whose output goes to the log of its run."""
    with log(Path(directory)) as output:
        return processes.start(arguments, environment=processes.ONE_THREAD, output=output).wait()


def log(directory: Path) -> IO[bytes]:
    """The log of a run, to be written on."""
    directory.mkdir(parents=True, exist_ok=True)
    return open(directory / LOG, "ab")
