"""Every test runs in x64 mode, repeats exactly, and opens no window."""

import os

import jax
import matplotlib
import pytest
from hypothesis import settings

matplotlib.use("Agg")

# No deadline: the first example of a property compiles. Derandomised: a failure repeats on every machine.
settings.register_profile("ci", deadline=None, derandomize=True, max_examples=25)
settings.register_profile("thorough", deadline=None, max_examples=500)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(autouse=True)
def x64():
    """The mode in which the library computes (see `dsgnar.precision`); dtypes are explicit in it."""
    with jax.enable_x64(True):
        yield
