"""Joining other processes (`jax.distributed`), with errors in the place of hangs.

JAX ends a process without an exception where it cannot listen (a port in use) or finds nobody (a wrong coordinator). So the
processes find each other beforehand (`greeting.py`), and one that waits longer than its patience says so and ends.
"""

import ipaddress
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jax

from dsgnar.calculus.patience import Patience
from dsgnar.tools import greeting
from dsgnar.tools.greeting import JoinError

MARGIN = 30  # seconds by which JAX is more patient than we are: our messages are the clearer ones


def join(coordinator: str | None, processes: int | None, number: int | None, patience: float) -> None:
    """Become process `number` of `processes`; without them what SLURM or Open MPI say. Before JAX computes anything."""
    later = round(patience) + MARGIN
    limits: dict[str, Any] = dict(
        initialization_timeout=later, heartbeat_timeout_seconds=later, shutdown_timeout_seconds=later
    )
    jax.config.update(
        "jax_enable_preemption_service", False
    )  # it would take SIGTERM, after which a run is to end safely
    if coordinator is None:
        with _waiting(patience, "the other processes of this job"):
            _detected(limits)
        return
    host, port = _address(coordinator)
    if processes is None or number is None or not 0 <= number < processes:
        raise JoinError("--coordinator needs --processes P and --process-id I, with I from 0 to P - 1")
    if number == 0:
        greeting.receive(host, port, processes, patience)
    else:
        greeting.greet(host, port, processes, number, patience)
    bind = f"{host}:{port}" if _loopback(host) else None  # JAX listens to all networks otherwise
    with _waiting(patience, f"all of the {processes} processes to come to {coordinator}"):
        jax.distributed.initialize(coordinator, processes, number, coordinator_bind_address=bind, **limits)


def _detected(limits: dict[str, Any]) -> None:
    try:
        jax.distributed.initialize(**limits)
    except (ValueError, RuntimeError) as error:
        raise JoinError(
            f"--distributed: JAX does not find the other processes ({str(error).splitlines()[0]}). Start them with srun or "
            "mpirun, or give --coordinator HOST:PORT --processes P --process-id I"
        ) from None


def _waiting(patience: float, whom: str):
    return Patience(patience)(
        f"waited {patience:g} s for {whom}, and ends: start all of them, with the same coordinator and number of processes"
    )


def _address(coordinator: str) -> tuple[str, int]:
    host, colon, port = coordinator.rpartition(":")
    if not colon or not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise JoinError(f"--coordinator {coordinator}: write HOST:PORT, such as 127.0.0.1:7777")
    return host, int(port)


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def free_port() -> int:
    """A port of this machine on which nobody listens."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tried:
        tried.bind(("127.0.0.1", 0))
        return tried.getsockname()[1]


@contextmanager
def without_remarks() -> Iterator[None]:
    """Within, what is written to stdout is dropped: gloo reports there that it has connected."""
    sys.stdout.flush()
    kept, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)
