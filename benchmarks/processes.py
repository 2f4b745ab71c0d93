"""Iterations in one, two or four processes: seconds by part, and bytes sent against the model (docs/devices.md).

    python benchmarks/processes.py burgers-single --processes 1,2,4 --iterations 10
    python benchmarks/processes.py burgers-double --processes 1,2 --iterations 5
    python benchmarks/processes.py burgers-single --processes 1,2 --weak       points grow with the processes

Each process has cores of its own (one core for each where there are enough) and as many BLAS threads. Seconds mean something
only on an idle machine; bytes, those of all processes together, always do. CPU time is that of all processes, too: it
would show something that spins instead of waiting. Linux only.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

import numpy as np

from dsgnar.calculus.devices import current, over
from dsgnar.optimise.residuals import Residuals
from dsgnar.tools import joining, processes
from dsgnar.tools.bench.cases import find
from dsgnar.tools.bench.exchange import Sizes, sent
from dsgnar.tools.bench.parts import STEADY, Stepper


def work(case: str, iterations: int, points: int, place: list[str]) -> None:
    """One process."""
    number, count, address = int(place[0]), int(place[1]), place[2]
    if count > 1:
        joining.join(address, count, number, 300.0)
    found = find(case)
    changes = dict(STEADY) | ({"points": points} if points else {})
    with over(None, 300.0):
        context = found.context("fast", **changes)
        stepper = Stepper(context)
        stepper.step()  # compiles
        laps = []
        for _ in range(iterations):
            before, busy = sent(), time.process_time()
            lap = stepper.step()
            lap["sent"], lap["cpu"] = sent() - before, time.process_time() - busy
            lap["model"] = model(stepper, lap)
            laps.append(lap)
        team = current().team
        for name in ("sent", "cpu"):
            for lap, value in zip(laps, team.total(np.array([lap[name] for lap in laps])), strict=True):
                lap[name] = float(value)
        if team.leads:
            print(json.dumps(laps), flush=True)
        team.anyone(False)
    os._exit(0)


def model(stepper: Stepper, lap: dict) -> int:
    """Bytes that the iteration just made should have sent."""
    context, state = stepper.context, stepper.state
    residuals: Residuals = context.residuals
    fresh = context.settings.method.fresh
    evaluations = int(lap["evaluations"])
    look = state.iterate.iteration % context.settings.method.look_every == 0
    active, held = context.collocation.active(state), context.collocation.held_out(state)
    return Sizes(
        processes=residuals.devices.team.size,
        rows=context.settings.sketch,
        columns=min(context.settings.columns, residuals.parameters.count),
        parameters=residuals.parameters.count,
        itemsize=state.iterate.theta.itemsize,
        batches=len(active.batched.conditions),
        evaluations=evaluations,
        tried=evaluations - (1 if fresh else 0),
        looks=len(held.conditions) if look else 0,
    ).sent()


def start(case: str, iterations: int, points: int, count: int) -> list[dict]:
    """All processes; what the first one measured."""
    address, cores = f"127.0.0.1:{joining.free_port()}", processes.shared_out(max(count, 2))
    started = []
    for k in range(count):
        threads = dict.fromkeys(processes.ONE_THREAD, str(len(cores[k]))) | processes.SHORT_SPIN
        command = [sys.executable, __file__, case, "--iterations", str(iterations), "--points", str(points)]
        command += ["--worker", str(k), str(count), address]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, env=os.environ | threads, text=True))
        os.sched_setaffinity(started[-1].pid, cores[k])
    try:
        said = [process.communicate(timeout=3600)[0] for process in started]
    finally:
        for process in started:
            process.kill()
    return json.loads(said[0].splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case")
    parser.add_argument("--processes", default="1,2")
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("--points", type=int, default=0, help="interior points; those of the case by default")
    parser.add_argument("--weak", action="store_true", help="points in proportion to the processes")
    parser.add_argument("--worker", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        work(given.case, given.iterations, given.points, given.worker)
    base = given.points or find(given.case).context("fast", **STEADY).settings.method.points
    print(
        "| processes | points | sketch | factorisation | search | rest | iteration | CPU time, all | evaluations "
        "| sent, bytes | model | sent / model |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for count in map(int, given.processes.split(",")):
        points = base * count if given.weak else base
        laps = start(given.case, given.iterations, points, count)
        parts = [
            statistics.median(lap[name] for lap in laps)
            for name in "sketch factorisation search rest iteration cpu".split()
        ]
        real, expected = (sum(lap[name] for lap in laps) / len(laps) for name in ("sent", "model"))
        share = f"{real / expected:.4f}" if expected else "-"
        seconds = " | ".join(f"{part:.3f} s" for part in parts)
        seconds += f" | {statistics.mean(lap['evaluations'] for lap in laps):.1f}"
        print(f"| {count} | {points:,} | {seconds} | {real:,.0f} | {expected:,.0f} | {share} |", flush=True)


if __name__ == "__main__":
    main()
