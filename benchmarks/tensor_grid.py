"""A separable network on a tensor grid against the same network point by point (Appendix B.6 of the paper).

The residual -laplacian(u) - f of a SPINN of rank 40, three layers of 20, in three variables and double precision, on grids
of N^3 points: by `on_grid`, and by Taylor mode at every point, in batches as in training. Each runs in a process of its own.
Seconds are the least of several, without compiling; memory is the largest of the process, less what it had before.

    python benchmarks/tensor_grid.py [--sizes 16,32,64,128] [--repeats 3]
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from dsgnar.calculus.precision import x64
from dsgnar.networks import SPINN, Inputs
from dsgnar.problem.domain import Box
from dsgnar.problem.fields import evaluate

BATCH = 4096
BOX = Box(x=(0, 1), y=(0, 1), z=(0, 1))
SECONDS = ((2, 0, 0), (0, 2, 0), (0, 0, 2))


def source(x, y, z):
    return 3 * np.pi**2 * jnp.sin(np.pi * x) * jnp.sin(np.pi * y) * jnp.sin(np.pi * z)


@jax.jit
def on_grid(network, axes):
    """The residual on the whole grid."""
    x, y, z = axes
    laplacian = sum(network.on_grid(axes, orders)[..., 0] for orders in SECONDS)
    return -laplacian - source(x[:, None, None], y[None, :, None], z[None, None])


@jax.jit
def at_points(network, points):
    """The residual at a batch of points."""

    def one(x):
        u = evaluate(network, x, ("u",), {"u": frozenset(SECONDS)}, BOX, "taylor")["u"]
        return -(u.xx + u.yy + u.zz) - source(*x)

    return jax.vmap(one)(points)


def pointwise(network, axes):
    points = np.stack(np.meshgrid(*map(np.asarray, axes), indexing="ij"), -1).reshape(-1, 3)
    done = [at_points(network, jnp.asarray(points[k : k + BATCH])) for k in range(0, len(points), BATCH)]
    return np.concatenate(done).reshape([len(a) for a in axes])


@x64
def measure(way: str, size: int, repeats: int) -> dict[str, float]:
    """Seconds, megabytes and the mean square of the residual."""
    network = SPINN(40, (20,) * 3).build(Inputs(((0, 1),) * 3), 1, key=jax.random.key(0), dtype=np.float64)
    run = on_grid if way == "grid" else pointwise
    line = lambda n: tuple(jnp.asarray((np.arange(n) + 0.5) / n) for _ in range(3))
    run(network, line(16))  # what JAX itself needs
    before, axes = _peak(), line(size)
    mean = float(np.mean(np.asarray(run(network, axes)) ** 2))
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        np.asarray(run(network, axes))
        seconds.append(time.perf_counter() - start)
    return {"seconds": min(seconds), "megabytes": _peak() - before, "mean": mean}


def _peak() -> float:
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="16,32,64,128")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one[0], int(options.one[1]), options.repeats)))
        return
    print("| points | grid: seconds | MB | pointwise: seconds | MB | ratio of seconds |\n|---|---|---|---|---|---|")
    for size in map(int, options.sizes.split(",")):
        found = {}
        for way in ("grid", "points"):
            command = [sys.executable, __file__, "--one", way, str(size), "--repeats", str(options.repeats)]
            found[way] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        grid, points = found["grid"], found["points"]
        assert np.isclose(grid["mean"], points["mean"], rtol=1e-9)
        print(
            f"| {size}^3 = {size**3:,} | {grid['seconds']:.3g} | {grid['megabytes']:.0f} | {points['seconds']:.3g} "
            f"| {points['megabytes']:.0f} | {points['seconds'] / grid['seconds']:.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
