"""Sketch, factorisation and search, timed inside the real loop.

The optimiser is a composition of parts (`optimiser.py`). Each is replaced by one that does the same and takes the time, so
what is timed is what a run does. Both methods start from the same parameters, weights and radius: those after a few
iterations of `fast` in single precision, since the first steps from a random network are not typical. `rest` is what an
iteration does beside its parts: new points, the loss at them, weights, bookkeeping.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import Any

import jax
import numpy as np

from dsgnar.calculus.precision import DTYPES, x64
from dsgnar.calculus.streams import stream
from dsgnar.optimise.jacobian import Sketched
from dsgnar.optimise.optimiser import Optimiser, State
from dsgnar.optimise.residuals import Residuals
from dsgnar.optimise.sketch import Table
from dsgnar.solving.context import Context
from dsgnar.solving.loop import advance
from dsgnar.solving.state import RunState
from dsgnar.tools.bench.cases import METHODS, Case
from dsgnar.tools.bench.spread import Row, Spread

WARM = 10  # iterations in single precision before; the paper's hybrid precision has as many (section 4.2)
REVERSE = 3  # flops of a gradient over those of its function: two products for each one of the forward pass
PARTS = {"sketch": "jacobian", "factorisation": "factorisation", "search": "search"}  # of the optimiser


@dataclass(eq=False)
class Watched:
    """A part of the optimiser that counts its seconds."""

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


# A run that stays as it is: in the precision of the case, with the points it begins with (a smaller maximum is raised to
# them), in one time interval.
STEADY: dict[str, Any] = dict(warm_up=0, max_points=1, intervals=1)


class Timed(Context):
    """A run's surroundings, in which the parts of the optimiser of stage 1 are watched."""

    @classmethod
    def around(cls, context: Context) -> "Timed":
        return cls(**{f.name: getattr(context, f.name) for f in fields(context)})

    @cached_property
    def optimisers(self) -> tuple[Optimiser, Optimiser]:
        early, _ = Context.optimisers.func(self)
        parts: Any = {name: Watched(getattr(early, name)) for name in PARTS.values()}
        timed = replace(early, **parts)
        return timed, timed

    @property
    def watched(self) -> dict[str, Any]:
        return {name: getattr(self.optimisers[0], part) for name, part in PARTS.items()}


class Stepper:
    """A run that is taken forward iteration by iteration."""

    def __init__(self, context: Context, state: RunState | None = None):
        self.context, self.state = Timed.around(context), state or context.start()

    @classmethod
    def at(cls, case: Case, method: str, start: State) -> "Stepper":
        """A run of the case that begins at `start`."""
        context = case.context(method, **STEADY)
        first = context.start()
        theta = start.theta.astype(first.iterate.theta.dtype)
        there = replace(first.iterate, theta=theta, weights=start.weights, radius=start.radius, lam=start.lam)
        return cls(context, replace(first, iterate=there))

    def step(self) -> dict[str, float]:
        """Seconds of every part of one more iteration, and its loss evaluations."""
        for part in self.context.watched.values():
            part.seconds = 0.0
        before = self.state.seconds.solve
        self.context.watch.lap()
        self.state, record = advance(self.context, self.state)
        parts = {name: part.seconds for name, part in self.context.watched.items()}
        iteration = self.state.seconds.solve - before
        rest = iteration - sum(parts.values())
        return parts | {"rest": rest, "iteration": iteration, "evaluations": record.evaluations}

    @property
    def counts(self) -> tuple[int, ...]:
        """Points of each condition."""
        return self.context.collocation.active(self.state).counts

    @property
    def sizes(self) -> str:
        settings, parameters = self.context.settings, self.context.residuals.parameters.count
        return f"d={parameters}, s={settings.sketch}, N={sum(self.counts)}, {settings.precision}"


def typical(case: Case) -> State:
    """Where both methods start."""
    context = case.context("fast", **{**STEADY, "precision": "single"})
    state = context.start()
    for _ in range(WARM):
        state, _ = advance(context, state)
    return state.iterate


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
                used = sketched_residuals(stepper)
                rate = sketch_flops(stepper.context, used) / spread(method, part).median / 1e9
                facts |= {f"{method} residuals": sum(used), f"{method} GFLOP/s": round(rate, 2)}
                facts |= {f"{method} of GEMM": f"{rate / gemm:.1%}"}
            elif part == "search":
                facts[f"{method} evaluations"] = spread(method, "evaluations").median
            elif part == "iteration":
                facts[method] = stepper.sizes
        yield Row(case.name, part, spread("fast", part), spread("paper", part), facts=facts)


def sketched_residuals(stepper: Stepper) -> list[int]:
    """The number of residuals of each condition in a sketch."""
    counts = stepper.counts
    drawn = stepper.context.watched["sketch"].rows.draw(stream(0), counts)
    return [int(np.count_nonzero(t.sign)) if isinstance(t, Table) else n for t, n in zip(drawn, counts, strict=True)]


def sketch_flops(context: Context, used: list[int]) -> float:
    """Flops of the gradients of `used` residuals of each condition, in whatever order a sketch sums them."""
    each = residual_flops(context.residuals, DTYPES[context.settings.precision])
    return REVERSE * float(np.dot(each, used))


@x64
def residual_flops(residuals: Residuals, dtype: type) -> list[float]:
    """Flops of one residual of each condition, as XLA counts them."""
    theta = jax.ShapeDtypeStruct((residuals.parameters.count,), dtype)
    x = jax.ShapeDtypeStruct((residuals.problem.domain.dimension,), dtype)
    lowered = [jax.jit(partial(residuals.at_point, name)).lower(theta, x) for name in residuals.problem.conditions]
    return [float((one.cost_analysis() or {}).get("flops", np.nan)) for one in lowered]
