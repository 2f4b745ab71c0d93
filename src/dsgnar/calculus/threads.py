"""Work in equal shares, one thread for each core of a CPU.

A compiled loop over small products occupies one core, however many there are. Shares of it in threads of their own occupy
all; other devices are kept busy by one.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

import jax

from dsgnar.calculus import choices

MOST = 8  # threads; not measured beyond two cores
DEVICES = 64  # that one process drives, a thread each at most; threads begin when they are needed


@cache
def count() -> int:
    """How many shares keep the device busy."""
    if not choices.here().threads:
        return 1
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(usable, MOST)


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(DEVICES, thread_name_prefix="dsgnar")


_alone = ContextVar("alone", default=False)


@contextmanager
def in_turn() -> Iterator[None]:
    """Within, shares follow one another. For first calls: two threads would trace and compile the same function twice."""
    token = _alone.set(True)
    try:
        yield
    finally:
        _alone.reset(token)


def each(function: Callable[[Any], Any], shares: Sequence) -> list:
    """`function` of every share, in their order, side by side."""
    if len(shares) == 1 or _alone.get():
        return [function(share) for share in shares]

    def work(share):
        with jax.enable_x64(True):  # the flag belongs to a thread
            return jax.block_until_ready(function(share))

    return list(_pool().map(work, shares))
