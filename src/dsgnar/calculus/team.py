"""Several processes that solve one problem together: what they exchange, and what ends them.

Every process runs the same program on the same numbers, except for the points, which they share out. P processes exchange

    gather   rows that each has computed, so that all have all of them         one all-gather
    collect  the same, but only the first process has them                     P - 1 permutes, from one process each
    total    numbers that each has a part of                                   one all-reduce
    first    numbers of the first process, where rounding might differ         one all-reduce, of zeros by the others

over a mesh of one device of each process: the first of its own. The operations are JAX's, compiled once and equal in all
processes. A `total` in which each entry belongs to one process, and is zero in the others, is exact.

A process that has died breaks the connection, and the exchange fails at once. One that hangs does not: whoever waits longer
than `patience` seconds says so and ends.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Float

from dsgnar.calculus.patience import Patience

PATIENCE = 120.0  # seconds; iterations of the largest problem that was run here took 60
AXIS = "processes"


class TeamError(RuntimeError):
    """The processes cannot go on together; the message says why and what to do."""


class Alone:
    """One process: there is nobody to exchange anything with."""

    size, rank, patience = 1, 0, PATIENCE
    leads = True

    def gather(self, rows: Any) -> Any:
        return rows

    def collect(self, rows: Any) -> Any:
        """The rows of all processes, in their order, in the first one; none in the others. Each has equally many."""
        others = list(self.received(rows))
        if not self.leads:
            return rows[:0]
        return jnp.concatenate([rows, *others]) if others else rows

    def received(self, rows: Any) -> Iterator[Any]:
        return iter(())

    def total(self, values: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        return values

    def first(self, values: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        return values

    def anyone(self, asked: bool) -> bool:
        return asked

    def share(self, content: bytes) -> bytes:
        return content

    def compare(self, facts: Mapping[str, str]) -> None: ...

    @contextmanager
    def agreeing(self, what: str) -> Iterator[None]:
        yield


class Team(Alone):
    """All processes that JAX knows of (`jax.distributed`)."""

    def __init__(self, patience: float = PATIENCE):
        self.size, self.rank, self.patience = jax.process_count(), jax.process_index(), patience
        self.leads = self.rank == 0
        self._patience = Patience(patience)
        self._too_long = (
            f"process {self.rank} has waited for another one for {patience:g} s, and ends: the other one hangs, or works "
            "longer (then set a larger --patience)"
        )

    # --- exchanges ----------------------------------------------------------------------------------------------------

    def gather(self, rows: Any) -> Any:
        """The rows of all processes, in their order; each has equally many. On the first device of this process."""
        return self._exchange(self._gathered, rows)

    def received(self, rows: Any) -> Iterator[Any]:
        """The rows of one process after the other, but for the first, as it receives them. All go through all of them."""
        for send in self._sent:
            yield self._exchange(send, rows)

    def total(self, values: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """The sum over all processes."""
        return np.asarray(self._exchange(self._summed, np.asarray(values, np.float64)[None]))

    def first(self, values: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """The numbers of the first process."""
        mine = np.asarray(values, np.float64)
        return self.total(mine if self.leads else np.zeros_like(mine))

    def anyone(self, asked: bool) -> bool:
        """Whether any process asks for something."""
        return bool(self.total(np.array([float(asked)]))[0])

    def share(self, content: bytes) -> bytes:
        """The content that the first process has; what others pass does not count."""
        length = int(self.first(np.array([len(content)]))[0])
        own = content if self.leads else bytes(length)
        return self.total(np.frombuffer(own, np.uint8).astype(np.float64)).astype(np.uint8).tobytes()

    # --- agreement ----------------------------------------------------------------------------------------------------

    def compare(self, facts: Mapping[str, str]) -> None:
        """Raise unless all processes have the same facts; the message names those that differ, and where."""
        mine = np.array([[digest(text) for text in facts.values()]])
        everyone = np.asarray(self.gather(mine))
        for k, (name, value) in enumerate(facts.items()):
            others = [p for p in range(self.size) if everyone[p, k] != everyone[0, k]]
            if others:
                which = ", ".join(map(str, others))
                raise TeamError(
                    f"the processes must have the same {name}, and process {which} has another than process 0 "
                    f"(here, process {self.rank}: {value})"
                )

    @contextmanager
    def agreeing(self, what: str) -> Iterator[None]:
        """Within, an error in one process is an error in all: those without one raise that another has failed."""
        try:
            yield
        except BaseException:
            self.total(np.eye(self.size)[self.rank])
            raise
        failed = np.flatnonzero(self.total(np.zeros(self.size)))
        if failed.size:
            which = ", ".join(map(str, failed))
            raise TeamError(f"process {which} failed at {what}; its own message says why")

    # --- how ----------------------------------------------------------------------------------------------------------

    @cached_property
    def _mesh(self) -> Mesh:
        leaders = {}
        for device in sorted(jax.devices(), key=lambda device: device.id):
            leaders.setdefault(device.process_index, device)
        return Mesh(np.array([leaders[p] for p in range(self.size)]), (AXIS,))

    @cached_property
    def _gathered(self) -> Callable:
        return self._compiled(partial(jax.lax.all_gather, axis_name=AXIS, tiled=True))

    @cached_property
    def _summed(self) -> Callable:
        return self._compiled(lambda x: jax.lax.psum(x[0], AXIS))

    @cached_property
    def _sent(self) -> list[Callable]:
        """From each process but the first to the first; what the others receive are zeros, which cost no exchange."""
        pairs = [[(p, 0)] for p in range(1, self.size)]
        return [self._compiled(partial(jax.lax.ppermute, axis_name=AXIS, perm=p), everywhere=False) for p in pairs]

    def _compiled(self, function: Callable, everywhere: bool = True) -> Callable:
        spec = PartitionSpec(AXIS)
        mapped = jax.shard_map(
            function, mesh=self._mesh, in_specs=spec, out_specs=PartitionSpec() if everywhere else spec, check_vma=False
        )  # whether the result is the same everywhere, JAX cannot see of a gather
        return jax.jit(mapped)

    def _exchange(self, operation: Callable, part: Any) -> Any:
        """`operation` on the parts of all processes."""
        with jax.enable_x64(True), self._patience(self._too_long):
            here = jax.device_put(part, self._mesh.local_devices[0])
            shape = (self.size * part.shape[0], *part.shape[1:])
            sharding = NamedSharding(self._mesh, PartitionSpec(AXIS))
            whole = jax.make_array_from_single_device_arrays(shape, sharding, [here])
            try:
                return jax.block_until_ready(operation(whole).addressable_data(0))
            except (RuntimeError, ValueError) as error:  # JAX raises either, depending on when it notices
                if "RESOURCE_EXHAUSTED" in str(error):
                    raise
                why = str(error).splitlines()[0].rpartition(": ")[2]  # `... Read error [...]: Connection reset by peer`
                raise TeamError(
                    f"process {self.rank}: another process has ended, or the connection to it is lost ({why})"
                ) from None


def digest(text: str) -> float:
    """48 bits of a digest: whole numbers that float64 has exactly."""
    return float(int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big"))
