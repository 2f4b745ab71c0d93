"""Where a run took place: versions and device, as they are written into its result."""

import os

import jax
import numpy as np

from dsgnar.calculus import devices
from dsgnar.calculus.version import VERSION


def environment() -> dict[str, str]:
    """Versions and device; how many devices and processes, where there are several."""
    chosen = devices.current()
    several = {"devices": str(chosen.total), "processes": str(chosen.team.size)} if chosen.total > 1 else {}
    return several | {
        "dsgnar": VERSION,
        "jax": jax.__version__,
        "numpy": np.__version__,
        "device": jax.default_backend(),
        "cores": str(os.cpu_count()),
    }
