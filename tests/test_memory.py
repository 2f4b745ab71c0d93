"""Memory of one iteration grows neither with the number of points nor with points times parameters."""

import subprocess
import sys

import pytest

SCRIPT = """
import resource, sys
import dsgnar as ds
from dsgnar.problems import SUITE
burgers = SUITE["burgers"]
ds.solve(burgers.problem(), network=burgers.presets["default"].network, sketch=700, points=int(sys.argv[1]), max_points=2**30,
         max_iterations=1)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
"""


def gibibytes(points: int) -> float:
    done = subprocess.run([sys.executable, "-c", SCRIPT, str(points)], capture_output=True, text=True, check=True)
    return float(done.stdout)


@pytest.mark.slow
def test_an_iteration_with_a_million_points_stays_below_four_gibibytes():
    assert gibibytes(700_000) < 4.0  # and half as many for the initial condition: 2^20 in all
