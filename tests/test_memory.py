"""Memory of one iteration grows neither with the number of points nor with points times parameters."""

import subprocess
import sys

import pytest

SCRIPT = """
import sys
from pathlib import Path
import dsgnar as ds
from dsgnar.suite import SUITE
burgers = SUITE["burgers"]
ds.solve(burgers.problem(), network=burgers.presets["default"].network, sketch=700, points=int(sys.argv[1]),
         max_iterations=1)
status = Path("/proc/self/status").read_text()  # getrusage would count the process that started this one
print(int(status.split("VmHWM:")[1].split()[0]) / 2**20)
"""


def gibibytes(points: int) -> float:
    done = subprocess.run([sys.executable, "-c", SCRIPT, str(points)], capture_output=True, text=True, check=True)
    return float(done.stdout)


@pytest.mark.slow
def test_an_iteration_with_a_million_points_stays_below_four_gibibytes():
    assert gibibytes(700_000) < 4.0  # and half as many for the initial condition: 2^20 in all


LARGE = """
import sys
from pathlib import Path
import dsgnar as ds
from dsgnar.suite import SUITE
solution = ds.solve(
    SUITE["burgers"].problem(), network=ds.MLP(widths=(288,) * 4), precision="single", sketch=int(sys.argv[1]),
    points=1024, max_points=1024, held_out=1024, max_iterations=1, enough=0.0, intervals=1,
)
status = Path("/proc/self/status").read_text()
print(int(status.split("VmHWM:")[1].split()[0]) / 2**20, solution.parameters)
"""


@pytest.mark.slow
def test_memory_of_a_large_network_is_a_few_sketches():
    """docs/devices.md: 1.5 s d B, and up to 1.6 GiB for JAX and chunks. d x d numbers would have 235 GiB."""
    rows = 500
    done = subprocess.run([sys.executable, "-c", LARGE, str(rows)], capture_output=True, text=True, check=True)
    peak, parameters = map(float, done.stdout.split())
    assert parameters > 250_000 and peak < 1.6 + 1.5 * rows * parameters * 4 / 2**30
