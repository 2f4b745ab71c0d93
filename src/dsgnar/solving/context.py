"""What does not change during a run: problem, network, settings, and the parts that its iterations are made of."""

from dataclasses import dataclass, field, replace
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np

from dsgnar.calculus import threads
from dsgnar.calculus.compiled import enable_compilation_cache
from dsgnar.calculus.precision import DTYPES, x64
from dsgnar.calculus.streams import stream
from dsgnar.networks.parameters import neighbour
from dsgnar.optimise.optimiser import Active, Optimiser, State
from dsgnar.optimise.residuals import Residuals, weighted_loss
from dsgnar.problem import Problem
from dsgnar.problem.reference import Reference, check_reference
from dsgnar.solving import headstart, judging
from dsgnar.solving import intervals as marching
from dsgnar.solving.beginning import placed, simple
from dsgnar.solving.clock import Stopwatch
from dsgnar.solving.collocation import Collocation
from dsgnar.solving.error import estimate
from dsgnar.solving.estimate import with_error
from dsgnar.solving.forecast import orders
from dsgnar.solving.march import March, possible, restated
from dsgnar.solving.method import compose
from dsgnar.solving.model import Model, Network
from dsgnar.solving.quantity import Gauge
from dsgnar.solving.record import Outcome
from dsgnar.solving.settings import Resolved, Settings
from dsgnar.solving.sizing import foreseen
from dsgnar.solving.solution import Solution
from dsgnar.solving.stages import Plan, Schedule
from dsgnar.solving.state import RunState
from dsgnar.solving.stop import StopReason
from dsgnar.solving.verdict import Judge, Verdict, judge

FLOOR_POINTS = 512  # of each condition, at which the floor of the precision is judged


@dataclass(frozen=True, eq=False)
class Context:
    """A run's surroundings. `advance` (loop.py) takes it and a state to the next state."""

    model: Model
    settings: Resolved
    reference: Reference | None
    rules: Schedule
    collocation: Collocation
    first: np.ndarray  # parameters to begin with
    watch: Stopwatch = field(default_factory=Stopwatch)
    gauge: Gauge | None = None  # of the quantity that is wanted
    compiled: set = field(default_factory=set)  # for which sizes and precisions the kernels are compiled

    @classmethod
    @x64
    def of(
        cls,
        problem: Problem,
        network: Network | None = None,
        settings: Settings | Resolved | None = None,
        reference: Reference | None = None,
    ) -> "Context":
        """The surroundings of a run that is about to start, or to go on with settings that are resolved."""
        enable_compilation_cache()
        if reference is not None:
            check_reference(reference, problem)
        settings = Settings() if settings is None else settings
        if settings.quantity is not None:
            settings.quantity.within(problem)  # raises what is wrong with it
        if isinstance(settings, Settings):
            scaled = settings.chosen_method().scaled
            intervals = possible(problem, settings.intervals, scaled)
            problem = restated(problem, intervals)
            settings = settings.for_problem(problem)
            scales = foreseen(problem, settings.scales, surveyed=network is None) if scaled else None
        else:
            intervals, scales = settings.intervals, settings.scales
            problem = restated(problem, intervals)
        model, theta = Model.of(problem, network, settings.precision or "single", settings.seed, intervals, scales)
        if isinstance(settings, Settings):
            settings = settings.resolve(model.residuals.parameters.count, scales, intervals)
        rules = Schedule(marching.without_retreat(problem, settings), settings.precision)
        gauge = None if settings.quantity is None else Gauge(settings.quantity, model.residuals)
        context = cls(model, settings, reference, rules, Collocation(model, settings), theta, gauge=gauge)
        begun = None if network is not None else headstart.at_once(context)
        return context if begun is None else replace(context, first=begun)

    @property
    def problem(self) -> Problem:
        return self.model.problem

    @property
    def residuals(self) -> Residuals:
        return self.model.residuals

    @property
    def march(self) -> March:
        return self.model.march

    @cached_property
    def optimisers(self) -> tuple[Optimiser, Optimiser]:
        """Those of stage 1 and of the later ones."""
        settings = self.settings
        sizes = settings.sketch, settings.late_sketch
        return compose(settings.method, sizes, settings.columns, settings.seed, self.residuals)

    def optimiser(self, plan: Plan) -> Optimiser:
        """The parts of the stage in force."""
        return self.optimisers[plan.stage > 1]

    # --- states -------------------------------------------------------------------------------------------------------

    def start(self) -> RunState:
        """The state with which a run begins."""
        plan = self.rules.start()
        times = self.march.times[:2]
        if marching.automatic(self):
            times = (times[0], simple(self, times[0]))
        return placed(self, RunState(_first(self.problem, self.settings, self.first, plan), plan, times=times))

    def begin(self, state: RunState, theta: np.ndarray, end: float) -> RunState:
        """The first state of a time interval that begins where the last of `state.finished` ended."""
        plan = self.rules.start(state.iterate.iteration)
        iterate = _first(self.problem, self.settings, theta, plan)
        times = (*state.times[: state.interval + 1], end) if state.times else ()
        return placed(self, replace(state, iterate=iterate, plan=plan, evaluated=False, times=times, stop=None))

    # --- judging ------------------------------------------------------------------------------------------------------

    def limit(self, state: RunState) -> StopReason | None:
        """Whether a limit ends the run here."""
        if state.iterate.iteration - state.plan.begun >= self.settings.max_iterations:
            return StopReason.ITERATIONS
        return StopReason.SECONDS if state.seconds.solve >= self.settings.max_seconds else None

    def at_floor(self, iterate: State, active: Active) -> bool:
        """Whether the loss is down to what rounding makes of it, judged at some of the points in force."""
        moved = jnp.asarray(neighbour(iterate.theta, stream(self.settings.seed, "floor")))
        mean_squares = []
        for name, points in zip(self.problem.conditions, active.flat, strict=True):
            some = points[:: max(1, len(points) // FLOOR_POINTS)]
            here, there = (self.residuals.vector(name, t, some) for t in (jnp.asarray(iterate.theta), moved))
            mean_squares.append(np.mean((there.astype(np.float64) - here) ** 2))
        floor = weighted_loss(np.array(mean_squares), iterate.weights)
        return iterate.loss < self.settings.method.at_floor * floor

    @cached_property
    def judge(self) -> Judge:
        """Compares residuals with the size of their terms."""
        return Judge(self.residuals)

    def error(self, state: RunState) -> dict[str, float] | None:
        """The error in the time interval that is being solved."""
        if self.reference is None:
            return None
        reference, time = self.reference, self.problem.domain.time
        if self.collocation.marching and time is not None:
            times = reference.points[:, self.problem.domain.index(time)]
            here = (March(state.times).piece(times) == state.interval) & (times <= state.times[-1])
            if not here.any():
                return None
            reference = reference.where(here)
        return self.so_far(state).relative_l2(reference)

    # --- compiling ----------------------------------------------------------------------------------------------------

    def compile(self, state: RunState, active: Active) -> bool:
        """Call every kernel once for a new size or precision, and throw the results away. Says whether that was needed."""
        plan, optimiser = state.plan, self.optimiser(state.plan)
        exact = self.rules.exact(plan)
        key = (active.counts, plan.precision, exact, optimiser is self.optimisers[0])
        if key in self.compiled:
            return False
        self.compiled.add(key)
        theta = jnp.asarray(state.iterate.theta)
        with threads.in_turn():
            if exact:
                self.residuals.gradient(theta, state.iterate.weights, active.batched)
            self.residuals.kernel(theta, self.collocation.held_out(state))
            self.residuals.kernel(theta, active.batched)
            sketched = optimiser.jacobian(theta, active.flat, state.iterate.weights, stream(0))
            jax.block_until_ready(sketched.lift(jnp.zeros_like(sketched.jacobian, shape=sketched.jacobian.shape[1:])))
        return True

    # --- what there is ------------------------------------------------------------------------------------------------

    def so_far(self, state: RunState, outcome: Outcome | None = None) -> Solution:
        """The solution as it stands; times not reached yet continue the last network."""
        thetas = [*state.finished, state.iterate.theta]
        dtype = DTYPES[self.settings.precision] if state.finished else state.iterate.theta.dtype
        return Solution(self.collocation.at(state), np.stack(thetas).astype(dtype), outcome)

    @x64
    def solution(self, state: RunState, stop: StopReason) -> Solution:
        """The solution as it stands, with what is known about it."""
        names, relative, size = self.problem.conditions, judging.relative(self, state), self.residuals.ansatz.size
        verdict = Verdict.FAILED if marching.has_next(self, state) else judge(relative)
        so_far = self.so_far(state)
        estimated = None
        self.watch.lap()
        if verdict is not Verdict.FAILED and not self.problem.inverse:
            estimated = estimate(so_far.model, so_far.thetas, self.judge, gauge=self.gauge)
            verdict = with_error(verdict, estimated, self.settings.tol, self.settings.looser)
        taken = 0.0 if estimated is None else self.watch.lap()
        inference = judging.inferred(self, state, stop)
        outcome = Outcome(
            settings=self.settings,
            history=state.history,
            stop=stop,
            seconds={
                "solve": state.seconds.solve,
                "compile": state.seconds.compile,
                "estimate": taken,
            }
            | ({} if inference is None else {"inference": self.watch.lap()}),
            held_out={name: size(name) * v for name, v in zip(names, judging.worst(self, state), strict=True)},
            points={name: len(p) for name, p in self.collocation.training(state).items()},
            relative_residuals=dict(zip(names, relative, strict=True)),
            verdict=verdict,
            relative_l2=None if self.reference is None else so_far.relative_l2(self.reference),
            estimate=estimated,
            inference=inference,
        )
        return self.so_far(state, outcome)


def _first(problem: Problem, settings: Resolved, theta: np.ndarray, plan: Plan) -> State:
    """Where the optimiser begins in a time interval."""
    inside = settings.method.interior_weight if orders(problem, settings.scales) == () else 1.0  # nothing else is left
    weights = np.array([c.initial_weight if c.weight or not c.inside else inside for c in problem.conditions.values()])
    first = theta.astype(DTYPES[plan.precision])
    return State(first, weights / weights.mean(), settings.method.radius, iteration=plan.begun)
