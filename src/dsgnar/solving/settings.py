"""Settings: what a person may leave open (`Settings`), and what is in force (`Resolved`).

None means "as the method has it", or "chosen from the network and the precision when the run starts"; `resolve` chooses.
Defaults are those of the method (`method.py`). What was chosen is what `config.json` records.
"""

import dataclasses
import difflib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dsgnar.calculus.precision import Precision, dtype_of
from dsgnar.problem import Problem
from dsgnar.problem.quantities import Quantity
from dsgnar.problem.scales import Scales
from dsgnar.solving.forecast import System
from dsgnar.solving.march import Intervals
from dsgnar.solving.method import FAST, METHODS, Method, check_constant

POINTS_1D = 2048  # interior points of a problem in one variable
LARGE = 2000  # parameters of a large network
ENOUGH = 1e-8  # the error with which a problem in several variables is solved where nothing was asked for
FALLEN = 1e-10  # lambda that stage 1 is to reach in double precision before log lambda may end it by rising
FALLEN_LOSS = 1e-3  # share of its first loss that stage 1 is to reach before a small lambda may end it
SMALL = 1e-16  # lambda that stage 1 is to reach in any case; Burgers' equation with tol=1e-3 was not solved from 2.5e-9
SETTLED = 1e-24  # lambda in initial value problems at which steps need no damping; from 1e-18 a pendulum ended at 2e-7
BRIEF, LONG_WAIT = (40, 15), 120  # wait and window there, and the wait for a lambda that has not fallen
MARGIN = 0.05  # share of the error that is asked for whose square lambda is to reach in stage 1
CAREFUL = (0.1, 0.8)  # targets in several variables: with 0.2 sharp fronts were not found


@dataclass(frozen=True)
class Settings:
    """How a problem is solved. Every field of the method can be set too: `solve(problem, hashes=1)`."""

    precision: Precision | None = None  # None: double, and single for methods that have no scales
    method: str | Method = "fast"  # "fast", "paper", or a `Method`
    seed: int = 0
    sketch: int | None = None  # s; None: the method's share of the number of parameters
    columns: int | None = None  # of the sketch, in stage 1. None: as the method says
    late_sketch: int | None = None  # rows from stage 2 on; None: the same. Beyond the paper
    intervals: Intervals = "auto"  # of time: found on the way, how many, or the times between them (section 4.4)
    scales: Mapping[str, float] | None = None  # sizes of unknowns; those left out are estimated
    tol: float | Mapping[str, float] | None = None  # the relative l2 error to reach, of all unknowns or of each
    quantity: Quantity | None = None  # what `tol` and `enough` are about, in the place of the unknowns
    enough: float | None = None  # the estimated error at which a run ends; 0: it goes on as long as it gains
    max_iterations: int = 2000  # of each time interval
    max_seconds: float | None = None
    # Constants of the method that are changed most often. None: as the method has them.
    points: int | None = None
    max_points: int | None = None
    adaptive: float | None = None
    targets: tuple[float, float] | None = None
    wait: int | None = None
    window: int | None = None
    radius: float | None = None
    minimum_radius: float | None = None
    exponent: float | None = None
    warm_up: int | None = None
    single_above: float | None = None

    def __post_init__(self):
        if self.precision is not None:
            dtype_of(self.precision)
        _check(
            isinstance(self.method, Method) or self.method in METHODS,
            f"method must be {' or '.join(map(repr, METHODS))}, or a dsgnar.Method, not {self.method!r}",
        )
        _check(_whole(self.seed) and self.seed >= 0, f"seed must be an integer, 0 or more: {self.seed!r}")
        for name in ("sketch", "columns", "late_sketch", "max_iterations"):
            value = getattr(self, name)
            _check(value is None or (_whole(value) and value > 0), f"{name} must be a positive integer: {value!r}")
        seconds = self.max_seconds
        _check(seconds is None or _positive(seconds), f"max_seconds must be positive, not {seconds!r}")
        for tol in _each(self.tol):
            _check(_positive(tol) and tol < 1, f"tol must be a number between 0 and 1, not {tol!r}")
        _check_quantity(self.quantity, self.tol)
        enough = self.enough
        _check(enough is None or enough == 0 or _positive(enough), f"enough must be 0 or positive, not {enough!r}")
        object.__setattr__(self, "intervals", _intervals(self.intervals))
        for name, size in (self.scales or {}).items():
            _check(_positive(size) and size < math.inf, f"scales: the size of {name!r} must be positive, not {size!r}")
        if isinstance(self.targets, list):
            object.__setattr__(self, "targets", tuple(self.targets))
        for name in CHANGES:
            if getattr(self, name) is not None:
                check_constant(name, getattr(self, name))
        self.chosen_method()

    @property
    def strictest(self) -> float | None:
        """The smallest tolerance; None where none was asked for."""
        return min(_each(self.tol), default=None)

    def chosen_method(self) -> Method:
        """The method of the precision, with the changes that were asked for."""
        base = self.method if isinstance(self.method, Method) else METHODS[self.method]
        changed = {name: getattr(self, name) for name in CHANGES if getattr(self, name) is not None}
        return replace(base.at(self.precision or "single"), **changed)

    def for_problem(self, problem: Problem) -> "Settings":
        """With precision and points that suit a problem.

        Double costs little more than single at the sizes of default networks, and finds solutions that single cannot. A run
        that nobody asked to be exact ends where its error is small enough for most purposes. In one variable a run to the
        end takes seconds, errors grow along time, and few points are as good as many.
        """
        left_open, scaled, many = self.precision is None, self.chosen_method().scaled, problem.domain.dimension > 1
        precision = self.precision or ("double" if scaled else "single")
        enough = self.enough if self.enough is not None else ENOUGH if left_open and scaled and many else 0.0
        chosen = replace(self, precision=precision, enough=enough)
        if many:
            return replace(chosen, method=chosen._in_several(problem)) if scaled else chosen
        chosen = replace(chosen, method=chosen._in_one(problem)) if scaled else chosen
        points = self.points or min(chosen.chosen_method().points, POINTS_1D)
        most = self.max_points or max(points, min(chosen.chosen_method().max_points, 4 * POINTS_1D))
        return replace(chosen, points=points, max_points=most)

    def _in_several(self, problem: Problem) -> Method:
        """The method for several variables, where nothing else was asked for.

        Stage 1 goes slowly, and only as far as the error asks: stage 2 ends with an error that depends on the lambda
        that stage 1 has found, a few times its square root.
        """
        method = self.method if isinstance(self.method, Method) else METHODS[self.method]
        if problem.inverse:
            return method
        if self.targets is None and method.targets == FAST.targets:
            method = replace(method, targets=CAREFUL)
        if self.precision == "double" and method.fallen == FAST.fallen:
            method = replace(method, fallen=FALLEN)
        if method.fallen_loss == FAST.fallen_loss:
            method = replace(method, fallen_loss=FALLEN_LOSS)
        sought = self.strictest or self.enough
        if sought and method.no_damping == FAST.no_damping:
            least = method.at(self.precision or "single").no_damping
            method = replace(method, no_damping=max(least, min(SMALL, (MARGIN * sought) ** 2)))
        return method

    def _in_one(self, problem: Problem) -> Method:
        """The method for one variable, where nothing else was asked for.

        Compiling takes longer than iterating, so that first iterations in single precision are not worth kernels of their
        own. The networks of initial value problems are small: a sketch with a row for each parameter costs little more than
        one of half of that, lambda falls in half of the iterations, and beyond `SETTLED` stage 1 has nothing left to seek.
        Boundary value problems ended less accurate with that (bratu, seed 1: 4.9e-10 instead of 2e-15).
        """
        method = self.method if isinstance(self.method, Method) else METHODS[self.method]
        if self.warm_up is None and method.warm_up == FAST.warm_up:
            method = replace(method, warm_up=0)
        if System.of(problem) is None:
            return method
        if method.sketch_share == FAST.sketch_share:
            method = replace(method, sketch_share=1.0)
        if self.precision == "double" and method.no_damping == FAST.no_damping:
            method = replace(method, no_damping=SETTLED)
        if self.precision == "double" and (method.fallen, method.long_wait) == (FAST.fallen, FAST.long_wait):
            method = replace(method, fallen=FALLEN, long_wait=LONG_WAIT)
        if self.wait is None and self.window is None and (method.wait, method.window) == (FAST.wait, FAST.window):
            method = replace(method, wait=BRIEF[0], window=BRIEF[1])
        return method

    def resolve(self, parameters: int, scales: Scales | None = None, intervals: Intervals | None = None) -> "Resolved":
        """What is in force for a network with so many parameters, and a problem with these scales and intervals."""
        method = self.chosen_method()
        if method.max_points < method.points:
            method = replace(method, max_points=method.points)
        share = method.large_share if parameters > LARGE else method.sketch_share
        sketch = self.sketch or min(parameters, max(1, round(share * parameters)))
        columns = self.columns or (sketch if sketch >= method.columns_from else parameters)
        late = self.late_sketch or sketch
        for size in (sketch, columns, late):
            if size > parameters:
                raise ValueError(f"the sketch ({size}) must not exceed the number of parameters ({parameters})")
        seconds = math.inf if self.max_seconds is None else float(self.max_seconds)
        cut = self.intervals if intervals is None else intervals
        sizes = sketch, columns, late
        return Resolved(
            self.precision or "single", method, self.seed, *sizes, cut, scales, self.max_iterations, seconds,
            self.strictest or math.inf, self.enough or 0.0, looser(self.tol), self.quantity,
        )  # fmt: skip


@dataclass(frozen=True)
class Resolved:
    """The settings in force: nothing is left open."""

    precision: Precision
    method: Method  # that of the precision
    seed: int
    sketch: int
    columns: int
    late_sketch: int
    intervals: Intervals
    scales: Scales | None  # None: the network works in the problem's own units
    max_iterations: int
    max_seconds: float  # infinity: no limit
    tol: float = math.inf  # infinity: none was asked for
    enough: float = 0.0  # the estimated error at which a run ends; 0: none
    looser: dict[str, float] = field(default_factory=dict)  # by which the tolerances of some unknowns exceed `tol`
    quantity: Quantity | None = None  # what errors are of; None: of the unknowns

    @property
    def sought(self) -> float:
        """The error at which a run ends: the tolerance, or what is small enough; 0: as small as it gets."""
        return self.tol if self.tol < math.inf else self.enough

    @property
    def tolerance(self) -> str:
        """The tolerance in words; nothing where none was asked for."""
        if self.tol == math.inf:
            return ""
        return ", ".join(f"{name} {self.tol * k:g}" for name, k in self.looser.items()) or f"{self.tol:g}"


LIMITS = ("max_iterations", "max_seconds", "tol", "quantity", "enough")  # they say when to stop
NAMES = tuple(f.name for f in dataclasses.fields(Settings))
CONSTANTS = tuple(f.name for f in dataclasses.fields(Method) if f.name != "name")
CHANGES = tuple(name for name in NAMES if name in CONSTANTS)  # constants of the method that are settings too


def with_options(settings: Settings, options: Mapping[str, Any]) -> Settings:
    """Settings changed by options, which are fields of `Settings` or of `Method`.

    Asking by name for the method that is there already changes nothing: a preset may have its own variant of it.
    """
    chosen = {name: value for name, value in options.items() if name in NAMES}
    if isinstance(settings.method, Method) and chosen.get("method") == settings.method.name:
        del chosen["method"]
    changed = replace(settings, **chosen)
    constants = {name: value for name, value in options.items() if name not in NAMES}
    if not constants:
        return changed
    base = changed.method if isinstance(changed.method, Method) else METHODS[changed.method]
    return replace(changed, method=replace(base, **constants))


def unknown_option(names: Iterable[str]) -> str | None:
    """What is wrong with the first name that is no setting: its name, the closest known ones, and all there are."""
    known = (*NAMES, *(name for name in CONSTANTS if name not in NAMES))
    for name in names:
        if name not in known:
            return f"{name!r}{did_you_mean(name, known)}; there are {', '.join(known)}"
    return None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint at close names, or nothing."""
    close = difflib.get_close_matches(word, list(known), n=2)
    return f" (did you mean {' or '.join(close)}?)" if close else ""


def looser(tol: float | Mapping[str, float] | None) -> dict[str, float]:
    """By how much each tolerance exceeds the smallest one; nothing where there is one for all."""
    return {name: value / min(tol.values()) for name, value in tol.items()} if isinstance(tol, Mapping) else {}


def _each(tol: Any) -> tuple:
    if isinstance(tol, Mapping):
        _check(bool(tol), "tol: an empty mapping names no unknown; give a number, or one for each unknown")
        return tuple(tol.values())
    return () if tol is None else (tol,)


def _check_quantity(quantity: Any, tol: Any) -> None:
    known = quantity is None or isinstance(quantity, Quantity)
    _check(known, f"quantity must be integral(...), mean(...) or value(...), as in ds.mean(lambda u: u), not {quantity!r}")
    both = quantity is not None and isinstance(tol, Mapping)
    _check(not both, "tol is about the quantity and must be one number; leave quantity out for one of each unknown")


def _intervals(given: Any) -> Intervals:
    if given == "auto":
        return given
    if _whole(given):
        _check(given > 0, f"intervals must be a positive integer or a list of times: {given!r}")
        return given
    try:
        return tuple(float(t) for t in given)
    except (TypeError, ValueError):
        raise ValueError(f"intervals must be a positive integer or a list of times: {given!r}") from None


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _positive(value: Any) -> bool:
    return isinstance(value, int | float) and value > 0


def _check(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)
