"""All measurements, row by row.

sketch, factorisation, search, iteration   parts.py
svd        the factorisation alone against the full SVD, float64, singular values that fall over 16 orders
solve      whole solves: seconds without compiling, the final error, and when a given error was reached
compile    seconds to compile the kernels of one size: the first time, and from the cache on disk
growth     seconds of an iteration and peak memory while N doubles
"""

import dataclasses
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import scipy.fft

from dsgnar.calculus.precision import DTYPES
from dsgnar.optimise.factorise import SVD, Auto
from dsgnar.problem.domain import Interior
from dsgnar.solving.context import Context
from dsgnar.solving.loop import run
from dsgnar.solving.observers import View
from dsgnar.solving.record import Outcome, Record
from dsgnar.solving.solution import Solution
from dsgnar.tools.bench import isolated, machine
from dsgnar.tools.bench.cases import METHODS, Case, find
from dsgnar.tools.bench.parts import STEADY, Stepper, iterations
from dsgnar.tools.bench.spread import Row, Spread

ITERATION = ("sketch", "factorisation", "search", "iteration")
PARTS = (*ITERATION, "svd", "solve", "compile", "growth")


@dataclass(frozen=True)
class Options:
    """What is measured, and how many times."""

    parts: Sequence[str] = ITERATION
    repeats: int = 3
    seeds: int = 3  # whole solves with `fast`
    paper_seeds: int = 1  # the same with `paper`, which is slow
    error: float | None = None  # also measure when a whole solve reaches it
    svd_sizes: Sequence[int] = (2000, 4000)
    growth: Sequence[int] = field(default_factory=lambda: tuple(2**k for k in range(14, 21)))
    gemm_size: int = 2048

    def __post_init__(self):
        unknown = [part for part in self.parts if part not in PARTS]
        if unknown:
            raise ValueError(f"there is no part {unknown[0]!r}; there are {', '.join(PARTS)}")

    def quick(self) -> "Options":
        """The same with tiny sizes, to see that everything works."""
        return dataclasses.replace(self, svd_sizes=(320,), growth=(512, 1024), gemm_size=256)


def measure(cases: Sequence[Case], options: Options) -> Iterator[Row]:
    """All rows, as they are measured."""
    rates = {}
    for precision, dtype in DTYPES.items():
        rates[precision] = machine.gemm(dtype, options.gemm_size)
        yield Row("machine", f"GEMM {precision}", Spread((rates[precision],)), unit="GFLOP/s")
    if "svd" in options.parts:
        for size in options.svd_sizes:
            yield from svd(size, options.repeats)
    for case in cases:
        if any(part in ITERATION for part in options.parts):
            rows = iterations(case, options.repeats, rates[case.precision])
            wanted = (*options.parts, *(("rest",) if "iteration" in options.parts else ()))
            yield from (row for row in rows if row.part in wanted)
        if "compile" in options.parts:
            yield from compiling(case, options.repeats)
        if "growth" in options.parts:
            yield from growth(case, options.growth, options.repeats)
        if "solve" in options.parts:
            yield from solves(case, options)


# --- the factorisation alone ------------------------------------------------------------------------------------------

LAMBDAS, STEPS = 20, 5  # about as many as an iteration needs


def svd(size: int, repeats: int) -> Iterator[Row]:
    """`Auto` against the full SVD: factorising alone, and with the lambdas and steps of one iteration."""
    A, r = falling(size)
    ways = {"fast": Auto(), "paper": SVD()}
    laps = [{method: _factorise(way, A, r) for method, way in ways.items()} for _ in range(repeats)]
    for k, part in enumerate(("factorisation", f"with {LAMBDAS} lambdas, {STEPS} steps")):
        fast, paper = (Spread(tuple(lap[method][k] for lap in laps)) for method in METHODS)
        yield Row(f"svd {size}x{size} float64", part, fast, paper)


def _factorise(way: Auto | SVD, A: np.ndarray, r: np.ndarray) -> tuple[float, float]:
    start = time.perf_counter()
    subproblem = way.factorise(A, r)
    factorised = time.perf_counter()
    lambdas = np.geomspace(1e-24, 1.0, LAMBDAS)
    for lam in lambdas:
        subproblem.at(float(lam))
    for lam in lambdas[:: LAMBDAS // STEPS]:
        np.asarray(subproblem.step(float(lam)))
    return factorised - start, time.perf_counter() - start


def falling(size: int, orders: float = 16.0) -> tuple[np.ndarray, np.ndarray]:
    """A matrix whose singular values fall over `orders` orders of magnitude, and a vector.

    Its singular vectors are cosine transforms with random signs and order, which cost less than cubic work.
    """
    rng = np.random.default_rng(0)
    A = np.diag(np.geomspace(1.0, 10.0**-orders, size))
    for axis in (0, 1):
        signs = np.expand_dims(rng.choice((-1.0, 1.0), size), 1 - axis)
        A = np.asarray(scipy.fft.dct(A * signs, norm="ortho", axis=axis)).take(rng.permutation(size), axis=axis)
    return A, rng.standard_normal(size)


# --- whole solves -----------------------------------------------------------------------------------------------------


class Reached:
    """Records when an error was first reached."""

    def __init__(self, error: float | None):
        self.error = error
        self.seconds = float("inf")

    def started(self, run: View) -> None: ...

    def iterated(self, run: View, record: Record) -> None:
        self._look(record.error, record.seconds)

    def finished(self, run: View, solution: Solution | None) -> None:
        if solution is not None and solution.outcome is not None:
            self._look(solution.outcome.relative_l2, solution.outcome.seconds["solve"])

    def _look(self, error: dict[str, float] | None, seconds: float) -> None:
        if self.error is not None and error is not None and max(error.values()) <= self.error:
            self.seconds = min(self.seconds, seconds)


def solves(case: Case, options: Options) -> Iterator[Row]:
    """Whole solves, seed by seed, with both methods in turn."""
    whole: dict[str, list[float]] = {method: [] for method in METHODS}
    reached: dict[str, list[float]] = {method: [] for method in METHODS}
    facts: dict[str, list] = {}
    for seed in range(options.seeds):
        for method in METHODS if seed < options.paper_seeds else ("fast",):
            watch = Reached(options.error)
            outcome = _solve(case.context(method, case.statement.reference(), seed=seed), watch)
            whole[method].append(outcome.seconds["solve"])
            reached[method].append(watch.seconds)
            if outcome.relative_l2:
                facts.setdefault(f"{method} errors", []).append(max(outcome.relative_l2.values()))
            facts.setdefault(f"{method} iterations", []).append(len(outcome.history))
            facts.setdefault(f"{method} compile", []).append(round(outcome.seconds["compile"], 2))
    if "fast errors" in facts:
        facts["fast median error"] = [statistics.median(facts["fast errors"])]
    for part, seconds in (("solve", whole), (f"solve to {options.error:.2e}" if options.error else "", reached)):
        if part:
            fast, paper = (Spread(tuple(seconds[m])) if seconds[m] else None for m in METHODS)
            yield Row(case.name, part, fast, paper, facts=facts if part == "solve" else {})


def _solve(context: Context, watch: Reached) -> Outcome:
    outcome = run(context, context.start(), (watch,)).outcome
    assert outcome is not None
    return outcome


# --- in their own processes -------------------------------------------------------------------------------------------


def compiling(case: Case, repeats: int) -> Iterator[Row]:
    """Compiling into an empty cache, and from a full one."""
    laps: dict[tuple[str, str], list[float]] = {}
    for _ in range(repeats):
        for method in METHODS:
            with tempfile.TemporaryDirectory() as folder:
                for part in ("compile", "compile, cached"):
                    outcome = isolated.call(_compile, case.name, method, environment={"DSGNAR_CACHE": folder})
                    laps.setdefault((part, method), []).append(outcome.value)
    for part in ("compile", "compile, cached"):
        fast, paper = (Spread(tuple(laps[part, method])) for method in METHODS)
        yield Row(case.name, part, fast, paper)


def _compile(case: str, method: str) -> Iterator[float]:
    stepper = Stepper(find(case).context(method, **STEADY))
    stepper.step()
    yield stepper.state.seconds.compile


def growth(case: Case, sizes: Sequence[int], repeats: int) -> Iterator[Row]:
    """An iteration of `fast`, and the memory of its process, for each total number of points."""
    for total in sizes:
        outcome = isolated.call(_grow, case.name, total, repeats)
        name, facts = f"N={total}", {"N": total}
        yield Row(case.name, f"iteration, {name}", Spread(tuple(outcome.value)), facts=facts)
        yield Row(case.name, f"memory, {name}", Spread((round(outcome.peak, 3),)), unit="GiB", facts=facts)


def _grow(case: str, total: int, repeats: int) -> Iterator[list[float]]:
    """Seconds of iterations with about `total` points, from a random network."""
    found = find(case)
    parts = [condition.part for condition in found.statement.problem.conditions.values()]
    share = sum(1.0 if isinstance(part, Interior) else 0.5 for part in parts)  # as in `Collocation.training`
    stepper = Stepper(found.context("fast", **{**STEADY, "points": round(total / share)}))
    yield [stepper.step()["iteration"] for _ in range(repeats + 1)][1:]
