"""What this machine is, and the rate at which it multiplies large matrices."""

import os
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from dsgnar.calculus.precision import x64
from dsgnar.calculus.version import VERSION
from dsgnar.tools.doctor import facts


def describe() -> dict[str, str]:
    """Processor, cores, BLAS threads, device, versions."""
    return {"processor": _processor(), "threads": os.environ.get("OPENBLAS_NUM_THREADS", "all"), **facts()}


def version() -> str:
    """The version of dsgnar; in a git repository with the last commit that changed it."""
    folder = Path(__file__).parents[2]
    try:
        command = ["git", "-C", str(folder), "log", "-1", "--format=%h", "--", "."]
        commit = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        commit = ""
    return f"{VERSION}+{commit}" if commit else VERSION


def key(machine: dict[str, str]) -> str:
    """A name for this machine: measurements with the same name may be compared."""
    return "{processor}, {cores} cores, BLAS threads: {threads}, {device_kind}".format(**machine)


def stamp(versions: str | None = None) -> str:
    """Where, with which version and on which day a table was measured.

    Without the number of BLAS threads: rows may have been solved with other numbers than this call has.
    """
    here, date = describe(), datetime.now(UTC).date().isoformat()
    return f"{here['processor']}, {here['cores']} cores, {here['device_kind']}, dsgnar {versions or version()}, {date}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return facts()["system"]


@x64
def gemm(dtype: type, size: int = 2048, repeats: int = 5) -> float:
    """GFLOP/s of a square product: the best repeat of the better of BLAS and XLA."""
    A, B = np.random.default_rng(0).standard_normal((2, size, size)).astype(dtype)
    device = jnp.asarray(A), jnp.asarray(B)
    product = jax.jit(jnp.matmul)
    product(*device).block_until_ready()
    ways = (lambda: A @ B, lambda: product(*device).block_until_ready())
    best = min(_seconds(way) for _ in range(repeats) for way in ways)
    return 2 * size**3 / best / 1e9


def _seconds(function) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def available_memory() -> float | None:
    """Available memory in GiB, without swapping; None where it is not known."""
    try:
        return int(Path("/proc/meminfo").read_text().split("MemAvailable:")[1].split()[0]) / 2**20
    except (OSError, IndexError):
        return None
