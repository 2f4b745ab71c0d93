"""Random numbers: a stream of its own for each purpose, all of them from the seed of a run.

Nothing is drawn from a generator that lives on, so equal states go on equally, in whatever order things are asked for.
"""

import zlib

import numpy as np


def stream(seed: int, *purpose: str | int) -> np.random.Generator:
    """The random stream of a purpose, such as `stream(seed, "points", "pde", 3)`."""
    words = [zlib.crc32(p.encode()) if isinstance(p, str) else p for p in purpose]
    return np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, *words])))
