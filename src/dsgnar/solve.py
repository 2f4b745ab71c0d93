"""The front door: `solve(problem)`.

A run is a plain loop over a few compiled kernels. After every iteration it hands a `Record` to its observers (progress
displays, run directories); it prints nothing itself. Kernels are compiled by a call whose result is thrown away, so that
compiling neither trains the network nor is counted as solving.
"""

import dataclasses
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from dsgnar import streams
from dsgnar.cache import enable_compilation_cache
from dsgnar.checkpoints import Checkpoint
from dsgnar.config import Settings
from dsgnar.domain import Box, Initial, Interior
from dsgnar.interruption import Interruption
from dsgnar.march import March, hand_over, warm_start
from dsgnar.method import compose
from dsgnar.networks import MLP, Architecture, Inputs, Siren, cast, check_network
from dsgnar.optimiser import Active, Optimiser, State, Step
from dsgnar.parameters import Parameters, neighbour
from dsgnar.precision import DTYPES, x64
from dsgnar.problem import Problem
from dsgnar.reference import Reference
from dsgnar.residuals import Batched, PointSets, Residuals, weighted_loss
from dsgnar.sampling import generator, held_out, prefer, sample
from dsgnar.solution import Outcome, Record, Solution
from dsgnar.stages import Plan, StopReason, schedule

AT_FLOOR = 3.0  # a loss within this factor of rounding's share: Burgers in single precision ends at 1.2 to 1.9
HELD_OUT = 4096  # held-out points of each condition: one batch, and so no kernel of their own
CANDIDATES = 8  # points of which one is chosen by its residual
LOOK_EVERY = 5  # iterations between looks at the error, and at held-out residuals where points stay the same


class Observer(Protocol):
    """Somebody who is told about the course of a run."""

    def started(self, run: "Run") -> None: ...

    def iterated(self, run: "Run", record: Record) -> None: ...

    def finished(self, run: "Run", solution: Solution | None) -> None:
        """The run has ended; there is no solution if it failed."""
        ...


def default_network(precision: str) -> Architecture:
    """Small enough for a laptop; the paper's for single precision, and its smaller one for double."""
    return MLP() if precision == "single" else Siren()


def solve(
    problem: Problem,
    *,
    network: Architecture | Callable | None = None,
    reference: Reference | None = None,
    observers: Sequence[Observer] = (),
    settings: Settings | None = None,
    **options: Any,
) -> Solution:
    """Solve a problem.

    `network` is an architecture (`MLP(...)`, `Siren(...)`, ...) or any callable Equinox module from a point to the
    unknowns. All other options are fields of `Settings`: `precision`, `seed`, `method`, `sketch`, `points` and others.
    With a `reference` the error is followed along the way. `observers` are told about the course of the run: `Progress()`
    shows it, `RunDirectory("runs/mine")` keeps it on disk. Ctrl-C ends the run after the current iteration.
    """
    settings = dataclasses.replace(settings or Settings(), **_known(options))
    return Run(problem, network, settings, reference, tuple(observers)).run()


def _known(options: dict[str, Any]) -> dict[str, Any]:
    names = {field.name for field in dataclasses.fields(Settings)}
    for name in options:
        if name not in names:
            raise TypeError(f"solve() has no option {name!r}; there are {', '.join(sorted(names))}")
    return options


@dataclass(eq=False)
class Clock:
    """Seconds of solving and of compiling; looking at the error counts as neither."""

    solve: float = 0.0
    compile: float = 0.0
    _since: float = field(default_factory=time.perf_counter)

    def lap(self, account: str | None) -> None:
        """Book the time since the last lap."""
        now = time.perf_counter()
        if account is not None:
            setattr(self, account, getattr(self, account) + now - self._since)
        self._since = now


class Run:
    """One run of the optimiser on one problem, over one time interval or several in turn.

    What the next iteration depends on, beside problem, network and settings, is in `finished`, `plan` and `state`; `stop` is
    why there is no next one in this time interval. All of it, with the history, is in a `checkpoint`.
    """

    @x64
    def __init__(
        self,
        problem: Problem,
        network: Architecture | Callable | None,
        settings: Settings,
        reference: Reference | None = None,
        observers: tuple[Observer, ...] = (),
    ):
        enable_compilation_cache()
        self.problem, self.reference, self.observers = problem, reference, observers
        self.architecture = default_network(settings.precision) if network is None else network
        self.march = March.of(problem, settings.intervals)
        module = self._build(self.architecture, settings)
        self.residuals, theta = Residuals.of(problem, module)
        self.settings = settings.resolve(self.residuals.parameters.count)
        self.schedule = schedule(self.settings)
        self.finished: tuple[np.ndarray, ...] = ()  # parameters of the time intervals that are solved
        self.worst: tuple[float, ...] | None = None  # their largest held-out residuals, by condition
        self.unfinished: StopReason | None = None  # why one of them was left before it had converged
        self.optimiser, self.late = compose(self.settings, self.residuals)
        self.plan: Plan = self.schedule.start()
        self.state = self._first_state(np.asarray(theta))
        self.stop: StopReason | None = None
        self.interruption = Interruption()
        self.history: list[Record] = []
        self.clock = Clock()
        self._active: tuple[Any, Active] | None = None
        self._held_out: tuple[Any, Batched] | None = None
        self._compiled: set = set()

    def _first_state(self, theta: np.ndarray) -> State:
        weights = np.array([c.initial_weight for c in self.problem.conditions.values()])
        first = theta.astype(DTYPES[self.plan.precision])
        return State(first, weights / weights.mean(), self.settings.radius, iteration=self.plan.begun)

    def _build(self, network: Architecture | Callable, settings: Settings, interval: int = 0) -> Any:
        domain, problem = self.problem.domain, self.problem
        dtype = DTYPES[settings.precision]
        if isinstance(network, Architecture):
            time_axis = None if domain.time is None else domain.index(domain.time)
            inputs = Inputs(domain.bounds, time_axis, tuple(domain.index(a) for a in problem.periodic))
            key = jax.random.key(settings.seed)
            key = jax.random.fold_in(key, interval) if interval else key
            return network.build(inputs, len(problem.unknowns), key=key, dtype=dtype)
        module = cast(network, dtype)
        check_network(module, domain.dimension, len(problem.unknowns), dtype)
        return module

    # --- time intervals -----------------------------------------------------------------------------------------------

    @property
    def interval(self) -> int:
        """The time interval that is being solved, from 0."""
        return len(self.finished)

    @property
    def domain(self) -> Box:
        """The part of the problem's domain that is being solved."""
        return self.march.domain(self.problem.domain, self.interval)

    def _next_interval(self, stop: StopReason) -> None:
        """Hand over to the next time interval."""
        self._close_interval()
        self.stop = None
        if not stop.converged:
            self.unfinished = stop
        theta = self.state.theta.astype(DTYPES[self.settings.precision])
        fresh = None
        if isinstance(self.architecture, Architecture):
            module = self._build(self.architecture, self.settings, self.interval + 1)
            fresh = np.asarray(Parameters.of(module)[1])
        self.finished = (*self.finished, theta)
        self.plan = self.schedule.start(self.state.iteration)
        self.state = self._first_state(warm_start(theta, fresh))

    def _with_values(self, name: str, points: np.ndarray) -> np.ndarray:
        """Points with the values that an earlier interval hands over, where there are several intervals."""
        if self.march.count == 1 or not isinstance(self.problem.conditions[name].part, Initial):
            return points
        before = self.finished[-1] if self.finished else None
        return hand_over(self.residuals, name, before, points, DTYPES[self.plan.precision])

    # --- points -------------------------------------------------------------------------------------------------------

    def points(self) -> PointSets:
        """The plan's training points: so many for interior conditions, half for others, unless a condition has its own."""
        count, out = self.plan.points, {}
        for name, condition in self.problem.conditions.items():
            inside = isinstance(condition.part, Interior)
            number = condition.points or (count if inside else max(1, count // 2))
            rng = generator(self.settings.seed, "points", name, count, self.plan.draw)
            draw = partial(
                sample, condition.part, self.domain, rng=rng, method=condition.sampling or "uniform",
                near=condition.near, periodic=self.problem.periodic,
            )  # fmt: skip
            large = round(self.settings.adaptive * number) if inside and self.schedule.fresh else 0
            out[name] = draw(count=number - large)
            if large:
                candidates = draw(count=CANDIDATES * large)
                residual = self.residuals.vector(name, jnp.asarray(self.state.theta), candidates)
                chosen = prefer(np.abs(residual.astype(np.float64)), large, rng)
                out[name] = np.concatenate([out[name], candidates[chosen]])
        return out

    def _key(self) -> tuple:
        """What the points in force depend on."""
        return self.plan.points, self.plan.draw, self.plan.precision, self.interval

    def active(self) -> Active:
        """The points in force, on the device."""
        key = self._key()
        if self._active is None or self._active[0] != key:
            points = {name: self._with_values(name, p) for name, p in self.points().items()}
            self._active = key, Active.of(self.residuals, points, DTYPES[self.plan.precision])
            self.state = dataclasses.replace(self.state, mean_squares=None)
        return self._active[1]

    def held_out(self) -> Batched:
        """Held-out points on the device, none of which is a training point in force."""
        key = self._key()
        if self._held_out is None or self._held_out[0] != key:
            dtype, training, out = DTYPES[self.plan.precision], self.points(), {}
            for name, condition in self.problem.conditions.items():
                rng = generator(self.settings.seed, "held-out", name)
                points = held_out(condition.part, self.domain, HELD_OUT, rng, training[name], dtype, condition.near)
                out[name] = self._with_values(name, points)
            self._held_out = key, self.residuals.device_points(out, dtype)
        return self._held_out[1]

    # --- the loop -----------------------------------------------------------------------------------------------------

    @x64
    def run(self) -> Solution:
        """Iterate until a stop, interval after interval."""
        solution = None
        try:
            for observer in self.observers:
                observer.started(self)
            solution = self.solution(self._iterate())
            return solution
        finally:
            for observer in self.observers:
                observer.finished(self, solution)

    def _iterate(self) -> StopReason:
        """Iterate, interval after interval; why that ended."""
        self.clock.lap(None)
        with self.interruption, suppress(KeyboardInterrupt):
            while True:
                stop = self.stop or self._iteration()
                if stop is not None and stop.hands_over and self.interval + 1 < self.march.count:
                    self._next_interval(stop)
                elif stop is not None:
                    return self.unfinished if self.unfinished is not None and stop.converged else stop
        return StopReason.INTERRUPTED

    def _iteration(self) -> StopReason | None:
        plan, before = self.plan, self.state.loss
        active = self.active()
        self._compile(active)
        extra, gap = self._new_points(active, before)
        target, exact = self.schedule.target(plan), self.schedule.exact(plan)
        state, step = self._optimiser().iterate(self.state, active, target, exact)
        step = dataclasses.replace(step, evaluations=step.evaluations + extra)
        self.clock.lap("solve")
        self.plan, self.state, stop = self.schedule.after(plan, state, step, gap, self._at_floor)
        if self.plan.precision != plan.precision:
            self.state = dataclasses.replace(
                self.state, theta=self.state.theta.astype(DTYPES[self.plan.precision]), mean_squares=None
            )
        self.stop = stop or self._limits() or (StopReason.INTERRUPTED if self.interruption.asked else None)
        self._record(plan, active, state, step)
        self.clock.lap(None)
        return self.stop

    def _new_points(self, active: Active, before: float) -> tuple[int, float | None]:
        """Evaluate the loss at newly drawn points; how many evaluations that took, and its ratio to the loss before."""
        if self.state.mean_squares is not None:
            return 0, None
        mean_squares = self.residuals.kernel(jnp.asarray(self.state.theta), active.batched)
        self.state = dataclasses.replace(self.state, mean_squares=mean_squares)
        return 1, self.state.loss / before if before > 0 else None

    def _optimiser(self) -> Optimiser:
        """The parts of the stage in force."""
        return self.optimiser if self.plan.stage == 1 else self.late

    def _at_floor(self) -> bool:
        """Whether the loss is down to what rounding makes of it, judged at some of the points in force."""
        theta, rng = self.state.theta, generator(self.settings.seed, "floor")
        moved, mean_squares = jnp.asarray(neighbour(theta, rng)), []
        for name, points in zip(self.problem.conditions, self.active().flat, strict=True):
            some = points[:: max(1, len(points) // 512)]
            here, there = (self.residuals.vector(name, t, some) for t in (jnp.asarray(theta), moved))
            mean_squares.append(np.mean((there.astype(np.float64) - here) ** 2))
        self.clock.lap("compile")  # nearly all of it, the first time
        return self.state.loss < AT_FLOOR * weighted_loss(np.array(mean_squares), self.state.weights)

    def _limits(self) -> StopReason | None:
        if self.state.iteration - self.plan.begun >= self.settings.max_iterations:
            return StopReason.ITERATIONS
        if self.settings.max_seconds is not None and self.clock.solve >= self.settings.max_seconds:
            return StopReason.SECONDS
        return None

    def _compile(self, active: Active) -> None:
        """Call every kernel once for a new shape or precision, and throw the results away."""
        exact = self.schedule.exact(self.plan)
        key = (active.counts, self.plan.precision, exact, id(self._optimiser()))
        if key in self._compiled:
            return
        self._compiled.add(key)
        self.clock.lap("solve")
        theta = jnp.asarray(self.state.theta)
        with streams.in_turn():
            if exact:
                self.residuals.gradient(theta, self.state.weights, active.batched)
            self.residuals.kernel(theta, self.held_out())
            self.residuals.kernel(theta, active.batched)
            sketched = self._optimiser().jacobian(theta, active.flat, self.state.weights, generator(0))
            jax.block_until_ready(sketched.lift(sketched.jacobian[0]))
        self.clock.lap("compile")

    def _record(self, plan: Plan, active: Active, state: State, step: Step) -> None:
        assert state.mean_squares is not None
        look = state.iteration % LOOK_EVERY == 0
        held = None
        if look:
            mean_squares = self.residuals.kernel(jnp.asarray(state.theta), self.held_out())
            held = weighted_loss(mean_squares, state.weights)
        record = Record(
            iteration=state.iteration,
            interval=self.interval,
            stage=plan.stage,
            precision=plan.precision,
            points=sum(active.counts),
            loss=step.loss,
            mean_squares=tuple(map(float, state.mean_squares)),
            weights=tuple(map(float, state.weights)),
            ratio=step.ratio,
            target=step.target,
            lam=step.lam,
            radius=step.radius,
            accepted=step.accepted,
            evaluations=step.evaluations,
            seconds=self.clock.solve,
            held_out=held,
            error=self._error() if look else None,
        )
        self.history.append(record)
        for observer in self.observers:
            observer.iterated(self, record)

    # --- interruption and return --------------------------------------------------------------------------------------

    def checkpoint(self) -> Checkpoint:
        """All that is needed to go on from here, after a complete iteration."""
        return Checkpoint(
            state=self.state,
            plan=self.plan,
            history=tuple(self.history),
            seconds={"solve": self.clock.solve, "compile": self.clock.compile},
            finished=self.finished,
            worst=self.worst,
            unfinished=self.unfinished,
            stop=self.stop,
            evaluated=self._active is not None and self._active[0] == self._key(),
        )

    @x64
    def restore(self, checkpoint: Checkpoint) -> None:
        """Be where the checkpoint was taken. An interruption is over, and limits are those of the settings now."""
        self.finished, self.worst, self.unfinished = checkpoint.finished, checkpoint.worst, checkpoint.unfinished
        self.plan, self.history = checkpoint.plan, list(checkpoint.history)
        self.clock = Clock(**checkpoint.seconds)
        self._active = self._held_out = None
        if checkpoint.evaluated:
            self.active()  # the state's mean squares belong to these points: there are no new ones to evaluate
        self.state, self.stop = checkpoint.state, checkpoint.stop
        if self.stop in (StopReason.ITERATIONS, StopReason.SECONDS, StopReason.INTERRUPTED):
            self.stop = self._limits()

    # --- what there is ------------------------------------------------------------------------------------------------

    def _error(self) -> dict[str, float] | None:
        if self.reference is None:
            return None
        return self._solution().relative_l2(self._reference_so_far())

    def _reference_so_far(self) -> Reference:
        """The part of the reference that belongs to the interval being solved."""
        assert self.reference is not None
        if self.march.count == 1:
            return self.reference
        time = self.problem.domain.axes.index(self.problem.domain.time)
        return self.reference.where(self.march.piece(self.reference.points[:, time]) == self.interval)

    def _close_interval(self) -> None:
        """Note how well the interval fits held-out points; the worst one counts."""
        held = np.sqrt(self.residuals.kernel(jnp.asarray(self.state.theta), self.held_out()))
        self.worst = tuple(map(float, held if self.worst is None else np.maximum(held, self.worst)))

    def _solution(self, outcome: Outcome | None = None) -> Solution:
        """The solution as it stands; intervals not reached yet continue the last network."""
        thetas = [*self.finished, *[self.state.theta] * (self.march.count - self.interval)]
        dtype = DTYPES[self.settings.precision] if self.finished else self.state.theta.dtype
        stacked = np.stack(thetas).astype(dtype)
        return Solution(self.problem, self.architecture, self.residuals, stacked, self.march, outcome)

    def solution(self, stop: StopReason) -> Solution:
        """The solution as it stands, with what is known about it."""
        self._close_interval()
        assert self.worst is not None
        outcome = Outcome(
            settings=self.settings,
            history=tuple(self.history),
            stop=stop,
            seconds={"solve": self.clock.solve, "compile": self.clock.compile},
            held_out=dict(zip(self.problem.conditions, self.worst, strict=True)),
            points={name: len(p) for name, p in self.points().items()},
            relative_l2=None if self.reference is None else self._solution().relative_l2(self.reference),
        )
        return self._solution(outcome)
