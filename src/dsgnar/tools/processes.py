"""`dsgnar` commands in processes of their own: how they are started and kept to some cores.

A process that is started here ends soon after its parent is gone, even if that was killed. It has a session of its own, so
that Ctrl-C in the terminal reaches the parent alone, which passes it on.
"""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO, Any

POLL = 0.2  # seconds between looks at the parent
# OpenBLAS's threads spin for 2^26 ticks after their work, on cores that other processes have lent (calculus/cores.py). With
# 2^18 the search of two processes takes 0.11 instead of 0.16 s (Burgers, double). What a person has set stays.
SHORT_SPIN = {"OPENBLAS_THREAD_TIMEOUT": os.environ.get("OPENBLAS_THREAD_TIMEOUT", "18")}
ONE_THREAD: dict[str, str] = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
_CODE = "from dsgnar.tools.processes import end_with; end_with({parent}); from dsgnar.cli import main; main()"


def end_with(parent: int) -> None:
    """End this process when its parent, the process with this number, is gone."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(POLL)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def command(arguments: Sequence[str]) -> list[str]:
    """What starts `dsgnar` with these arguments from this process."""
    return [sys.executable, "-c", _CODE.format(parent=os.getpid()), *arguments]


def start(
    arguments: Sequence[str],
    cores: Sequence[int] = (),
    environment: Mapping[str, str] | None = None,
    output: IO[Any] | int | None = None,
) -> subprocess.Popen:
    """Start `dsgnar`; on these cores where the system allows it, with both outputs to one place unless it is None."""
    process = subprocess.Popen(
        command(arguments),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=None if output is None else subprocess.STDOUT,
        env=os.environ | dict(environment or {}),
        start_new_session=True,
    )
    if cores and hasattr(os, "sched_setaffinity"):
        with suppress(OSError):  # it has ended already, or the system does not allow it: it runs anywhere
            os.sched_setaffinity(process.pid, cores)
    return process


def cores() -> list[int]:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def shared_out(slots: int) -> list[list[int]]:
    """The cores of each of so many processes side by side: disjoint where there are enough of them."""
    available = cores()
    if slots >= len(available):
        return [[available[k % len(available)]] for k in range(slots)]
    return [available[k * len(available) // slots : (k + 1) * len(available) // slots] for k in range(slots)]


def ended_by(code: int) -> str:
    """How a process ended, in words."""
    return f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
