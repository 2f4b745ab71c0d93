"""What processes send each other in an iteration: a model, and a count of what their sockets have sent.

With P processes, s rows of c columns (c = d, or the columns of the sketch), d parameters, numbers of B bytes, b batches of
points, E loss evaluations of which T are for steps that are tried, all of them together send

    rows      (P - 1) ceil(s / P) (c + 1) B      permutes: rows and residuals of each but the first, to the first
    losses    E ring(8 b)                        all-reduce: a number for each batch
    steps     T ring(8 (d + 4))                  all-reduce: the step of the first process
    meeting   ring(32) + ring(8)                 all-reduce: the time, whether all are at the same point, signals

where ring(n) = 2 n (P - 1) is what a ring all-reduce of n bytes sends; each process has an equal part in it.
"""

import os
import socket
import struct
from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    """What an iteration exchanges depends on."""

    processes: int
    rows: int
    columns: int
    parameters: int
    itemsize: int
    batches: int
    evaluations: int
    tried: int
    looks: int = 0  # batches of held-out points, in iterations that look at them

    def sent(self) -> int:
        """Bytes that all processes send in an iteration."""
        return self.collected + self.reduced

    @property
    def collected(self) -> int:
        """Of rows."""
        return (self.processes - 1) * -(-self.rows // self.processes) * (self.columns + 1) * self.itemsize

    @property
    def reduced(self) -> int:
        """Of all that is summed."""
        numbers = self.evaluations * self.batches + self.tried * (self.parameters + 4) + 5 + self.looks
        return 2 * 8 * numbers * (self.processes - 1)

    @property
    def exchanges(self) -> int:
        """How many there are, each with its latency."""
        return 2 * (self.processes - 1) + self.evaluations + self.tried + 2 + bool(self.looks)


def sent() -> int:
    """Bytes that the TCP sockets of this process have sent and that have arrived (Linux: tcpi_bytes_acked)."""
    total = 0
    for name in os.listdir("/proc/self/fd"):
        try:
            if not os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):
                continue
            with socket.socket(fileno=os.dup(int(name))) as copy:
                if copy.family in (socket.AF_INET, socket.AF_INET6) and copy.type == socket.SOCK_STREAM:
                    info = copy.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 192)
                    total += struct.unpack_from("<Q", info, 120)[0]
        except OSError:  # closed meanwhile
            continue
    return total
