"""Cores that the processes of one machine lend to the one that works while the others wait.

Each process of a machine is kept to cores of its own (`dsgnar launch`, SLURM), and its BLAS has as many threads. Where one
works for all, it takes the cores of those who wait on the same machine, and threads of BLAS for them: as many as they have
together. What keeps a thread to a core belongs to the thread, and a new one has it from the thread that starts it; so every
thread of the process is let out, and brought back afterwards. Where the system does not allow it nothing happens.
"""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from jaxtyping import Float
from threadpoolctl import ThreadpoolController

from dsgnar.calculus.team import Alone, digest

_WORDS, _BITS = 32, 32  # cores 0 to 1023 as so many whole numbers, which float64 has exactly
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_THREADS = "/proc/self/task"


@dataclass(frozen=True)
class Cores:
    """Cores by their numbers, none where the system does not tell, and threads of BLAS for them."""

    numbers: frozenset[int]
    threads: int


@cache
def pools() -> ThreadpoolController:
    """The BLAS libraries of this process."""
    return ThreadpoolController().select(user_api="blas")


def own() -> Cores:
    """What this process has."""
    numbers = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else ()
    return Cores(frozenset(numbers), max((pool["num_threads"] for pool in pools().info()), default=1))


def together(team: Alone) -> Cores:
    """What the processes on the machine of this one have together. All of the team must call it."""
    mine = own()
    if team.size == 1:
        return mine
    everyone = np.asarray(team.gather(_encoded(mine)[None]))
    neighbours = everyone[everyone[:, 0] == everyone[team.rank, 0]]
    numbers = frozenset().union(*map(_decoded, neighbours))
    threads = int(neighbours[:, 1].sum())
    return Cores(numbers, min(threads, len(numbers)) if numbers else threads)


def _encoded(mine: Cores) -> Float[np.ndarray, " n"]:
    machine = _BOOT.read_text() if _BOOT.exists() else socket.gethostname()
    words = [sum(1 << b for b in range(_BITS) if w * _BITS + b in mine.numbers) for w in range(_WORDS)]
    return np.array([digest(machine), mine.threads, *words], np.float64)


def _decoded(numbers: Float[np.ndarray, " n"]) -> frozenset[int]:
    words = enumerate(map(int, numbers[2:]))
    return frozenset(w * _BITS + b for w, word in words for b in range(_BITS) if word >> b & 1)


@contextmanager
def borrowed(lent: Cores) -> Iterator[None]:
    """Within, this process uses these cores, with as many threads of BLAS, if they are more than its own."""
    mine = own()
    if lent.threads <= mine.threads:
        yield
        return
    before = _kept_to(dict.fromkeys(_thread_numbers(), lent.numbers | mine.numbers))
    try:
        with pools().limit(limits=lent.threads):  # starts the threads that are missing, on all of these cores
            yield
    finally:
        _kept_to(dict.fromkeys(_thread_numbers(), mine.numbers) | before)


def _thread_numbers() -> list[int]:
    return [int(name) for name in os.listdir(_THREADS)] if os.path.isdir(_THREADS) else []


def _kept_to(cores: dict[int, frozenset[int]]) -> dict[int, frozenset[int]]:
    """Keep threads to cores; what they were kept to before."""
    before = {}
    for thread, numbers in cores.items():
        with suppress(OSError):  # it has ended, or the system does not allow it
            kept = frozenset(os.sched_getaffinity(thread))
            os.sched_setaffinity(thread, numbers)
            before[thread] = kept
    return before
