"""The devices that share the work of a run: which pieces of it are whose, and how results come together.

Pieces are batches of points, or rows of a sketch (whole buckets). Device k of D takes the k-th run of consecutive ones, of
which a CPU's threads (`threads.py`) have equal shares. Results come together on the first device of a process; rows of all
processes in the first of them, and losses in all (`team.py`). With one device all of this is what it was without: JAX's
default device takes all.

    with over(4): ...          runs that begin within use four devices of this process
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int

from dsgnar.calculus import cores, threads
from dsgnar.calculus.cores import Cores
from dsgnar.calculus.team import Alone, Team

Home = jax.Device | None  # None: JAX's default device
Numbers = Int[np.ndarray, " n"]


@dataclass(frozen=True, eq=False)
class Devices:
    """Devices of this process, as many in every other, and the team of processes."""

    homes: tuple[Home, ...] = (None,)
    team: Alone = field(default_factory=Alone)

    @property
    def total(self) -> int:
        """How many there are in all processes."""
        return len(self.homes) * self.team.size

    @cached_property
    def lent(self) -> Cores:
        """The cores of all processes on this machine. An exchange, the first time that all of them ask."""
        return cores.together(self.team)

    @property
    def threads(self) -> int:
        """Shares of each device that are worked through side by side."""
        return max(1, threads.count() // len(self.homes))

    def dealt(self, count: int) -> list[tuple[Home, Numbers]]:
        """Which of `count` pieces belong to the shares of this process, as even as can be."""
        return self._shares(np.array_split(np.arange(count), self.total))

    def blocks(self, count: int) -> list[tuple[Home, Numbers]]:
        """The same in runs of equal length, but for the last ones, as `joined` needs them; without empty shares."""
        length = -(-count // self.total)
        cuts = [np.arange(min(k * length, count), min((k + 1) * length, count)) for k in range(self.total)]
        return [(home, share) for home, share in self._shares(cuts, shares_of=length) if len(share)]

    def _shares(self, cuts: Sequence[Numbers], shares_of: int | None = None) -> list[tuple[Home, Numbers]]:
        first = self.team.rank * len(self.homes)
        number = self.threads if shares_of is None else max(1, min(self.threads, shares_of))
        mine = zip(self.homes, cuts[first : first + len(self.homes)], strict=True)
        return [(home, share) for home, cut in mine for share in np.array_split(cut, number)]

    def joined(self, parts: Sequence[Any], count: int, like: tuple[tuple[int, ...], Any]) -> Any:
        """Rows of all devices, from those of the blocks of this process; `like`: shape and type of one.

        The first process has them, the others none.
        """
        if self.total == 1:
            return jnp.concatenate(parts)
        here = self.homes[0] or jax.local_devices()[0]
        mine = [jax.device_put(part, here) for part in parts]
        if self.team.size > 1:
            missing = -(-count // self.total) * len(self.homes) - sum(len(part) for part in mine)
            if missing:
                mine.append(jax.device_put(np.zeros((missing, *like[0]), like[1]), here))
        return self.team.collect(jnp.concatenate(mine))[:count]

    def room(self, count: int, row: tuple[int, ...], dtype: Any) -> np.ndarray:
        """An array of this host for `count` rows in the first process, and for those of its own blocks in the others."""
        length = -(-count // self.total) * len(self.homes)
        return np.zeros((length * (self.team.size if self.team.leads else 1), *row), dtype)

    def parted(self, room: np.ndarray, blocks: Sequence[tuple[Home, Numbers]]) -> list[np.ndarray]:
        """Where the rows of each block of this process go."""
        ends = np.cumsum([len(cut) for _, cut in blocks])
        return [room[end - len(cut) : end] for end, (_, cut) in zip(ends, blocks, strict=True)]

    def filled(self, room: np.ndarray, count: int) -> np.ndarray:
        """The same as `joined`, where the blocks of this process are in their place already."""
        own = len(room) // self.team.size if self.team.leads else len(room)
        for number, rows in enumerate(self.team.received(room[:own]), 1):
            if self.team.leads:
                room[number * own : (number + 1) * own] = rows
        return room[:count] if self.team.leads else room[:0]

    def describe(self) -> str:
        """`4 devices`, `2 processes with 4 devices`; nothing for one device."""
        if self.total == 1:
            return ""
        return f"{self.total} devices" if self.team.size == 1 else f"{self.team.size} processes, {self.total} devices"


def at(home: Home, array: Any) -> Any:
    """An array on a device."""
    return array if home is None else jax.device_put(array, home)


_chosen: ContextVar[Devices | None] = ContextVar("devices", default=None)


def current() -> Devices:
    """The devices of runs that begin here: one, unless more were asked for or JAX knows of other processes."""
    return _chosen.get() or ONE


ONE = Devices()


@contextmanager
def over(count: int | None = None, patience: float | None = None) -> Iterator[Devices]:
    """Within, runs use so many devices of each process; by default one, and all where there are several processes.

    Several processes (`jax.distributed`) work together. `patience` is how many seconds one of them waits for another.
    """
    if count is not None and (not isinstance(count, int) or isinstance(count, bool) or count < 1):
        raise ValueError(f"devices must be a positive integer, not {count!r}")
    several = jax.process_count() > 1
    available = jax.local_devices()
    if count is not None and count > len(available):
        raise ValueError(_too_few(count, available))
    team = Alone() if not several else Team() if patience is None else Team(patience)
    number = count or (len(available) if several else 1)
    homes: tuple[Home, ...] = tuple(available[:number]) if number > 1 else (None,)
    token = _chosen.set(Devices(homes, team))
    try:
        yield current()
    finally:
        _chosen.reset(token)


def _too_few(count: int, available: Sequence[Any]) -> str:
    kind = available[0].platform
    have = f"devices={count}: JAX has only {len(available)} {kind} device{'s' if len(available) > 1 else ''} here"
    if kind != "cpu":
        return f"{have}; ask for at most as many (CUDA_VISIBLE_DEVICES says which JAX may use)"
    return (
        f"{have}. One uses all cores already; to try several, set "
        f"XLA_FLAGS=--xla_force_host_platform_device_count={count} before Python starts"
    )
