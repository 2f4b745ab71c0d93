"""What depends on the kind of device, in one place.

Only the row of CPUs rests on measurements. That of all others is what JAX's and the vendors' documents suggest; nothing was
run on them. The kernels are lowered for CUDA in a test (`tests/test_cuda.py`), which finds operations that CUDA lacks.
"""

from dataclasses import dataclass

import jax


@dataclass(frozen=True)
class Choices:
    """Choices for one kind of device."""

    # Points per batch: bounds memory. On a CPU 1,024 made a search slower by a third, 2,048 by a tenth, since each is a
    # call; other devices need more to be busy.
    batch: int
    threads: bool  # whether shares in threads of their own keep it busier
    host_factorisation: bool  # LAPACK on the host (`optimise/band.py`), or JAX's SVD where the sketch is
    tested: bool


CPU = Choices(batch=2**12, threads=True, host_factorisation=True, tested=True)
OTHER = Choices(batch=2**15, threads=False, host_factorisation=False, tested=False)


def of(platform: str) -> Choices:
    """Choices for a platform, by JAX's name of it."""
    return CPU if platform == "cpu" else OTHER


def here() -> Choices:
    """Choices for JAX's default device."""
    return of(jax.default_backend())
