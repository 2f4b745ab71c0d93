"""Sweeps: many runs of `dsgnar solve`, side by side.

grid.py    which runs: problems x settings x seeds, each with a directory of its own
status.py  where a run is, from what it has left in its directory
pools.py   where runs take place: processes here, or jobs of a cluster
loop.py    one after the other until all have ended
table.py   the table that shows them
"""

from dsgnar.tools.sweep.grid import GridError, Run, grid, seeds, values
from dsgnar.tools.sweep.loop import Sweep
from dsgnar.tools.sweep.pools import Local, PoolError, Slurm
from dsgnar.tools.sweep.table import line, table

__all__ = [
    "GridError",
    "Local",
    "PoolError",
    "Run",
    "Slurm",
    "Sweep",
    "grid",
    "line",
    "seeds",
    "table",
    "values",
]
