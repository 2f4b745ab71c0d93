"""What this machine is, and what it can do at most: the rate of a large matrix product."""

import os
import subprocess
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import dsgnar
from dsgnar.doctor import environment
from dsgnar.precision import x64


def describe() -> dict[str, str]:
    """Processor, cores, BLAS threads, device, versions."""
    return {"processor": _processor(), "threads": os.environ.get("OPENBLAS_NUM_THREADS", "all"), **environment()}


def version() -> str:
    """The version of dsgnar; where it is worked on, with the last commit that changed it."""
    folder = Path(dsgnar.__file__).parent
    try:
        command = ["git", "-C", str(folder), "log", "-1", "--format=%h", "--", "."]
        commit = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        commit = ""
    return f"{dsgnar.__version__}+{commit}" if commit else dsgnar.__version__


def key(machine: dict[str, str]) -> str:
    """Equal for measurements that may be compared with each other."""
    return "{processor}, {cores} cores, BLAS threads: {threads}, {device_kind}".format(**machine)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return environment()["system"]


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
    """GiB that can be had without swapping; None where that cannot be seen."""
    try:
        return int(Path("/proc/meminfo").read_text().split("MemAvailable:")[1].split()[0]) / 2**20
    except (OSError, IndexError):
        return None
