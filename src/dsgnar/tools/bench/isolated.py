"""A measurement in its own process: peak memory is its own, and limits of time and memory end nothing else.

    call(function, argument, ..., seconds=60, gibibytes=4)

runs a generator function of a module in a new interpreter. Each value that it yields is written to a file at once, so a
process that is stopped keeps what it has found. Memory is watched from outside, through /proc (Linux only; elsewhere there
is no limit, and the peak is what the process reports).
"""

import importlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

POLL = 0.05  # seconds between looks at the memory: at most a few hundred MB are written in between


class EndedEarly(RuntimeError):
    """A process ended before its work was done."""


@dataclass(frozen=True)
class Outcome:
    """What the function yielded, the peak memory of its process, and why it ended."""

    values: list[Any]
    peak: float  # GiB resident
    ended: str  # "done", "time", "memory" or "failed"
    message: str = ""

    @property
    def value(self) -> Any:
        """The only value of a function that ran to its end."""
        if self.ended != "done":
            raise EndedEarly(f"a measurement in its own process ended early ({self.ended}): {self.message}")
        (value,) = self.values
        return value


def call(
    function: Callable[..., Iterator[Any]],
    *arguments: Any,
    seconds: float | None = None,
    gibibytes: float | None = None,
    environment: dict[str, str] | None = None,
) -> Outcome:
    """Run `function(*arguments)` in another process; arguments and yielded values must be JSON."""
    with tempfile.TemporaryDirectory() as folder:
        results, errors = Path(folder, "results"), Path(folder, "errors")
        results.touch()
        name = f"{function.__module__}:{function.__qualname__}"
        # This file alone, not as a part of dsgnar, which would be imported as a whole; -P: no neighbours of it either
        command = [sys.executable, "-P", __file__, str(results), name, json.dumps(arguments)]
        with open(errors, "wb") as stream:
            process = subprocess.Popen(
                command, stdout=stream, stderr=stream, env=os.environ | (environment or {}), stdin=subprocess.DEVNULL
            )
            try:
                peak, ended = _watch(process, seconds, gibibytes)
            finally:
                process.kill()  # nothing happens if it has ended
                process.wait()
        lines = [json.loads(line) for line in results.read_text().splitlines() if line.endswith("}")]
        message = errors.read_text(errors="replace").strip()
    peak = max([peak] + [line["peak"] for line in lines])
    last = message.splitlines()[-1] if message and ended == "failed" else ""
    return Outcome([line["value"] for line in lines], peak, ended, last)


def _watch(process: subprocess.Popen, seconds: float | None, gibibytes: float | None) -> tuple[float, str]:
    """Wait for the end of a process; its peak memory, and why it ended."""
    start, peak = time.monotonic(), 0.0
    while process.poll() is None:
        peak = max(peak, peak_memory(process.pid))
        if gibibytes is not None and peak > gibibytes:
            return peak, "memory"
        if seconds is not None and time.monotonic() - start > seconds:
            return peak, "time"
        time.sleep(POLL)
    return peak, "done" if process.returncode == 0 else "failed"


def peak_memory(pid: int | str = "self") -> float:
    """The peak resident memory of a process in GiB; 0 where it is not known."""
    try:  # getrusage would count the process that started this one
        status = Path(f"/proc/{pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) / 2**20
    except (OSError, IndexError):
        return 0.0


def main() -> None:
    """Entry point of the other process."""
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    results, name, arguments = sys.argv[1:]
    module, _, function = name.partition(":")
    with open(results, "a", buffering=1) as file:
        for value in getattr(importlib.import_module(module), function)(*json.loads(arguments)):
            file.write(json.dumps({"value": value, "peak": peak_memory()}) + "\n")


def _end_with(parent: int) -> None:
    """End this process when the one that started it is gone."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


if __name__ == "__main__":
    main()
