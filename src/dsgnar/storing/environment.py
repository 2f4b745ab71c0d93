"""Where a run took place: versions and device, as they are written into its result."""

import os

import jax
import numpy as np

from dsgnar.calculus.version import VERSION


def environment() -> dict[str, str]:
    """Versions and device."""
    return {
        "dsgnar": VERSION,
        "jax": jax.__version__,
        "numpy": np.__version__,
        "device": jax.default_backend(),
        "cores": str(os.cpu_count()),
    }
