"""Every test runs in x64 mode, repeats exactly, and opens no window. Tests may share compiled kernels."""

import os
import signal

# Before NumPy is loaded. Matrices here are small, and OpenBLAS' threads spin while they wait for one another: on two busy
# cores an SVD of 73 x 163 took 140 ms with two threads and 3 ms with one.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import inspect
from collections.abc import Callable
from typing import Any

import jax
import matplotlib
import pytest
from hypothesis import settings

from dsgnar.optimise.jacobian import Jacobian
from dsgnar.optimise.residuals import Residuals
from dsgnar.problem import Problem, Unknown
from dsgnar.solving import method

matplotlib.use("Agg")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a shell's background; tests of Ctrl-C need it
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No deadline: the first example of a property compiles. Derandomised: a failure repeats on every machine.
settings.register_profile("ci", deadline=None, derandomize=True, max_examples=25)
settings.register_profile("thorough", deadline=None, max_examples=500)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(autouse=True)
def x64():
    """The mode in which the library computes (see `calculus/precision.py`); dtypes are explicit in it."""
    with jax.enable_x64(True):
        yield


# --- compiling once ---------------------------------------------------------------------------------------------------

KERNELS: dict = {}


@pytest.fixture(scope="module")
def shared_kernels():
    """Runs of equal problems and networks share compiled kernels, which each of them would otherwise compile anew."""
    make = Residuals.of

    def residuals(problem, network, mode=None, scales=None, local=False, orders=()):
        made, theta = make(problem, network, mode, scales, local, orders)
        parameters = made.parameters
        structure = str((parameters.treedef, parameters.shapes, parameters.static))
        key = _statement(problem), structure, made.mode, scales, local, orders
        return KERNELS.setdefault(key, made), theta

    def jacobian(residuals, rows, columns, **batches):
        made = Jacobian(residuals, rows, columns, **batches)
        first = KERNELS.setdefault((id(residuals), "buckets"), made)
        made.__dict__["_buckets"] = first._buckets  # whatever the sketch
        return KERNELS.setdefault((id(residuals), rows, columns, *batches.items()), made)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Residuals, "of", staticmethod(residuals))
        patch.setattr(method, "Jacobian", jacobian)
        yield


def _statement(problem: Problem) -> str:
    """A problem in words: equal for problems that were made by the same lines of code from the same numbers."""
    conditions = [
        (name, _code(c.residual), c.part, c.points, c.weight, c.sampling, c.near, c.measured and vars(c.measured))
        for name, c in problem.conditions.items()
    ]
    hard = [(name, vars(h) | {"value": _code(h.value), "rate": _code(h.rate)}) for name, h in problem.hard.items()]
    known = [(name, _code(part)) for name, part in problem.known.items()]
    unknowns = [(u, vars(u) if isinstance(u, Unknown) else {}) for u in problem.unknowns]
    return str((problem.domain, unknowns, problem.coefficients, problem.periodic, conditions, hard, known))


def _code(function: Callable | Any, helpers: bool = True) -> Any:
    """What a function does, as far as that can be told: its code, and what it finds around it."""
    if not inspect.isfunction(function):
        return function
    code = function.__code__
    inside = [_code(cell.cell_contents) for cell in function.__closure__ or ()]
    around = [_code(function.__globals__.get(name), helpers=False) for name in code.co_names] if helpers else []
    return code.co_code, code.co_consts, code.co_names, function.__defaults__, inside, around
