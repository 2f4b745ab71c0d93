"""Sketch, factorisation and search, timed inside the real loop.

The optimiser is a composition of parts (`optimiser.py`); each is replaced by one that does the same and looks at the clock,
so what is timed is what a run does. Both methods start from the same parameters, weights and radius, those that a few
iterations of `fast` in single precision lead to: the first steps from a random network are not typical.
`rest` is what an iteration does beside its parts: new points, the loss at them, weights, bookkeeping.
"""

import dataclasses
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import numpy as np

from dsgnar.bench.cases import METHODS, Case
from dsgnar.bench.spread import Row, Spread
from dsgnar.jacobian import Sketched
from dsgnar.optimiser import State
from dsgnar.precision import DTYPES, x64
from dsgnar.residuals import Residuals
from dsgnar.sampling import generator
from dsgnar.sketch import Table
from dsgnar.solve import Run

WARM = 10  # iterations in single precision before; the paper's hybrid precision has as many (section 4.2)
REVERSE = 3  # flops of a gradient over those of its function: two products for each one of the forward pass


@dataclass(eq=False)
class Watched:
    """A part of the optimiser that notes how long it works."""

    part: Any
    seconds: float = 0.0

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self._timed(self.part, *args, **named)

    def factorise(self, *args: Any, **named: Any) -> Any:
        return self._timed(self.part.factorise, *args, **named)

    def _timed(self, function, *args: Any, **named: Any) -> Any:
        start = time.perf_counter()
        out = function(*args, **named)
        if isinstance(out, Sketched):
            jax.block_until_ready((out.jacobian, out.residual))
        self.seconds += time.perf_counter() - start
        return out

    def __getattr__(self, name: str) -> Any:
        return getattr(self.part, name)


# A run that stays as it is: one iteration at a time, in the precision of the case, with as many points as it begins with
# (a maximum below them is raised to them), without cutting time.
STEADY: dict[str, Any] = dict(max_iterations=1, warm_up=0, max_points=1, intervals=1)


def advance(run: Run) -> None:
    """Go on until the run's limit of iterations, as it is for one iteration with `STEADY`."""
    run.stop = None
    run.run()
    if run.interruption.asked:
        raise KeyboardInterrupt


class Stepper:
    """A run that is taken forward iteration by iteration."""

    def __init__(self, run: Run):
        self.run, whole = run, run.optimiser
        self.watched = {
            "sketch": Watched(whole.jacobian),
            "factorisation": Watched(whole.factorisation),
            "search": Watched(whole.search),
        }
        jacobian, factorisation, search = self.watched.values()
        run.optimiser = dataclasses.replace(whole, jacobian=jacobian, factorisation=factorisation, search=search)

    @classmethod
    def at(cls, case: Case, method: str, start: State) -> "Stepper":
        """A run of the case that begins at `start`."""
        run = case.run(method, **STEADY)
        theta = start.theta.astype(run.state.theta.dtype)
        run.state = dataclasses.replace(
            run.state, theta=theta, weights=start.weights, radius=start.radius, lam=start.lam
        )
        return cls(run)

    def step(self) -> dict[str, float]:
        """Seconds of every part of one more iteration, and its loss evaluations."""
        for part in self.watched.values():
            part.seconds = 0.0
        before = self.run.clock.solve
        advance(self.run)
        parts = {name: part.seconds for name, part in self.watched.items()}
        iteration = self.run.clock.solve - before
        rest = iteration - sum(parts.values())
        return parts | {"rest": rest, "iteration": iteration, "evaluations": self.run.history[-1].evaluations}

    @property
    def sizes(self) -> str:
        settings, counts = self.run.settings, self.run.active().counts
        return f"d={self.run.residuals.parameters.count}, s={settings.sketch}, N={sum(counts)}, {settings.precision}"


def typical(case: Case) -> State:
    """Where both methods start."""
    run = case.run("fast", **{**STEADY, "precision": "single", "max_iterations": WARM})
    advance(run)
    return run.state


def iterations(case: Case, repeats: int, gemm: float) -> Iterator[Row]:
    """Every part of an iteration, and the iteration as a whole."""
    start = typical(case)
    steppers = {method: Stepper.at(case, method, start) for method in METHODS}
    # The first lap compiles and touches memory for the first time.
    laps = [{method: stepper.step() for method, stepper in steppers.items()} for _ in range(repeats + 1)][1:]

    def spread(method: str, part: str) -> Spread:
        return Spread(tuple(lap[method][part] for lap in laps))

    for part in ("sketch", "factorisation", "search", "rest", "iteration"):
        facts: dict[str, Any] = {}
        for method, stepper in steppers.items():
            if part == "sketch":
                used = sketched_residuals(stepper.run)
                rate = sketch_flops(stepper.run, used) / spread(method, part).median / 1e9
                facts |= {f"{method} residuals": sum(used), f"{method} GFLOP/s": round(rate, 2)}
                facts |= {f"{method} of GEMM": f"{rate / gemm:.1%}"}
            elif part == "search":
                facts[f"{method} evaluations"] = spread(method, "evaluations").median
            elif part == "iteration":
                facts[method] = stepper.sizes
        yield Row(case.name, part, spread("fast", part), spread("paper", part), facts=facts)


def sketched_residuals(run: Run) -> list[int]:
    """How many residuals of each condition go into a sketch."""
    counts = run.active().counts
    drawn = run.optimiser.jacobian.rows.draw(generator(0), counts)
    return [int(np.count_nonzero(t.sign)) if isinstance(t, Table) else n for t, n in zip(drawn, counts, strict=True)]


def sketch_flops(run: Run, used: list[int]) -> float:
    """What the gradients of so many residuals of each condition need, in whatever order a sketch is made of them."""
    each = residual_flops(run.residuals, DTYPES[run.settings.precision])
    return REVERSE * float(np.dot(each, used))


@x64
def residual_flops(residuals: Residuals, dtype: type) -> list[float]:
    """Flops of one residual of each condition, as XLA counts them."""
    theta = jax.ShapeDtypeStruct((residuals.parameters.count,), dtype)
    x = jax.ShapeDtypeStruct((residuals.problem.domain.dimension,), dtype)
    lowered = [jax.jit(partial(residuals.at_point, name)).lower(theta, x) for name in residuals.problem.conditions]
    return [float((one.cost_analysis() or {}).get("flops", np.nan)) for one in lowered]
