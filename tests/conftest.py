"""Every test runs in x64 mode, repeats exactly, and opens no window."""

import dataclasses
import os
import sys

import jax
import matplotlib
import pytest
from hypothesis import settings

from dsgnar.residuals import Residuals

matplotlib.use("Agg")

# No deadline: the first example of a property compiles. Derandomised: a failure repeats on every machine.
settings.register_profile("ci", deadline=None, derandomize=True, max_examples=25)
settings.register_profile("thorough", deadline=None, max_examples=500)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture
def shared_kernels(monkeypatch):
    """Runs of the same problem and network share compiled kernels, which each of them would otherwise compile anew."""
    module = sys.modules["dsgnar.solve"]
    make, compose = Residuals.of, module.compose

    def residuals(problem, network, mode=None):
        made, theta = make(problem, network, mode)
        named = problem.domain, problem.unknowns, tuple(problem.conditions), tuple(problem.hard)
        key = str((*named, made.parameters.treedef, made.parameters.shapes, made.mode))
        return KERNELS.setdefault(key, made), theta

    def optimiser(settings, residuals):
        key = id(residuals), dataclasses.replace(settings, max_iterations=1, max_seconds=None)
        return KERNELS.setdefault(key, compose(settings, residuals))

    monkeypatch.setattr(Residuals, "of", residuals)
    monkeypatch.setattr(module, "compose", optimiser)


KERNELS: dict = {}


@pytest.fixture(autouse=True)
def x64():
    """The mode in which the library computes (see `dsgnar.precision`); dtypes are explicit in it."""
    with jax.enable_x64(True):
        yield
