"""A method: which parts the optimiser has, and every constant that shapes a run, as one value.

    part             PAPER                              FAST
    row sketch       CountSketch, K = 4 hashes          balanced buckets, gradients of bucket sums
    column sketch    SRCT on rows of the Jacobian       stage 1 in double with a large sketch: groups of parameters;
                                                        else none: the step lies in the row space of the sketch
    factorisation    full SVD                           the fastest for size, type and device (factorise.py)
    radius search    24 probes and PCHIP                bracketing in log radius; after stage 1 the smallest loss
    reweighting      Algorithm 4                        Algorithm 4
    stage rules      Algorithm 5                        Algorithm 5 and those of stages.py

An ablation changes one field: `solve(problem, method=replace(PAPER, hashes=1))`, or `--set hashes=1`. No other room asks
which method it is; each reads the field that concerns it. Where a default depends on the precision it is a `By`.
"""

import dataclasses
import math
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from dsgnar.calculus.precision import Precision
from dsgnar.optimise.annealing import weighing
from dsgnar.optimise.factorise import SVD, Auto, Factorisation
from dsgnar.optimise.jacobian import Jacobian
from dsgnar.optimise.optimiser import Optimiser
from dsgnar.optimise.radius import Bracket, Probes, Search
from dsgnar.optimise.residuals import Residuals
from dsgnar.optimise.sketch import SRCT, AllColumns, Buckets, ColumnSketch, CountSketch, Groups, RowSketch
from dsgnar.problem.conditions import INTERIOR_WEIGHT

Rows = Literal["buckets", "hashes"]
Columns = Literal["all", "groups", "srct"]


class By(NamedTuple):
    """A default for each precision."""

    single: Any
    double: Any


@dataclass(frozen=True)
class Method:
    """The parts of the optimiser and their constants; section numbers are the paper's.

    A value of 0 or infinity switches a rule off where its comment says so.
    """

    name: str
    scaled: bool = True  # whether the network works in nondimensional variables (problem/scales.py)

    # --- sketch (section 3.2, Algorithm 2)
    row_sketch: Rows = "buckets"
    hashes: int = 4  # K of the CountSketch
    depth: int = 8  # residuals to a bucket; 0: all. Burgers ends as with all 18; with 4 one of five seeds did not
    chunk: int = 768  # points of a bucket sketch that are worked through at a time; they stay in a CPU's cache
    batch: int = 4096  # b: rows of the Jacobian that are formed at a time
    sub_batch: int = 0  # b': gradients at a time within a batch; 0: all of the batch
    sketch_share: float = 0.45  # s over the number of parameters: between a third and a half
    large_share: Any = By(0.45, 0.3)  # the same beyond 2,000 parameters: iterations cost half, and are no more
    column_sketch: Columns = "groups"  # of stage 1
    late_column_sketch: Columns = "all"
    # From this s on there are s columns, else all. 1,500 is a guess: groups cost 163 parameters accuracy, and 5,125 none.
    columns_from: Any = By(math.inf, 1500)

    # --- subproblem and radius (sections 3.3 to 3.5, Algorithms 1 and 3)
    factorisation: Literal["auto", "svd"] = "auto"
    search: Literal["bracket", "probes"] = "bracket"
    probes: int = 24  # q
    probe_range: float = 3.0  # probes lie between radius / probe_range and radius * probe_range
    search_tolerance: float = 0.25  # of a bracketing search, relative to the target
    search_growth: float = 1.5  # its first stride; doubles in the logarithm until the root is bracketed
    search_evaluations: int = 9
    search_patience: float = 9.0  # by which a radius falls in an iteration at most: one bad sketch must not end a run
    search_reach: float = 3.0  # beyond the initial radius a radius grows by at most this factor in an iteration
    greedy: bool = True  # after stage 1 a bracketing search takes the probe of smallest loss
    slack: float = 0.03  # by which the length of a step may miss, relatively, the radius that was asked for
    radius: float = 1.0  # the first (section 4.2)
    minimum_radius: Any = By(1e-4, 1e-8)  # a stage ends below it (section 4.2)
    shrink: float = 1 / 3  # of the radius on rejection (Algorithm 1)
    overshoot: float = math.inf  # reject a ratio above target + this, and widen (section 3.5); infinity: never
    redraws: int = 1  # how many other sketches a rejected step is given before the radius shrinks
    rejections: int = 10  # in a row, after which a stage ends

    # --- weights (Algorithm 4)
    exponent: float = 0.0  # alpha of UpdateWeights (section 4.2); 0: weights stay, scales make conditions comparable
    weight_floor: float = 1e-8  # eps of UpdateWeights
    interior_weight: float = INTERIOR_WEIGHT  # of equations that have no weight of their own
    data_weight: float = 1e-4  # of data in the end, over the smallest weight of an equation (optimise/annealing.py)

    # --- stages (sections 3.1 and 4.2, Algorithm 5)
    targets: Any = (0.2, 0.8)  # ratio of stage 1, and of stage 2 at its end
    ramp: int = 6  # iterations in which the target of stage 2 rises; 0 was too few for the wave equation
    ramp_from: float = 0.5  # where it begins; the paper's target
    wait: Any = By(40, 60)  # iterations before the stage switch is considered
    fallen: float = math.inf  # lambda that stage 1 is to reach before; infinity: any
    long_wait: int = 200  # iterations after which the switch is considered whatever lambda is
    far: float = 30.0  # or after lambda, having come near, has risen so much
    window: Any = By(15, 30)  # W: iterations over which lambda must rise
    slope: float = 1e-4  # of a line through log lambda, at least
    correlation: float = 0.1
    undamped: int = 3  # so many iterations in a row with lambda at rounding end stage 1 at once; 0: never
    no_damping: Any = By(1e-14, 1e-28)  # lambda that is no more than rounding
    fallen_loss: float = 1.0  # share of its first loss that stage 1 is to get down to before
    exact_stage: bool = True  # stage 3: the gradient of all points, where stage 2 finds no further decrease
    retreats: int = 2  # how often stage 1 is taken up again after a switch that came too early
    gain: float = 1e-3  # a stage 2 that collapses before the loss has fallen by this came too early; others gain 1e5
    tries: int = 4  # how often a radius that collapses in stage 3 is widened: another sketch may do better
    wider: float = 100.0  # times the minimum radius: where a collapsed radius starts again
    stall: int = 12  # stages 2 and 3 end when the loss has not halved in so many iterations; 0: never
    at_floor: float = 3.0  # a loss within this factor of rounding's share ends the run; Burgers: 1.2 to 1.9
    warm_up: int = 10  # first iterations of a double-precision run in single precision (section 4.2, hybrid precision)
    single_above: float = 1e-8  # and all further ones while lambda is above this; infinity: none

    # --- points (section 4.2)
    points: int = 2**13  # interior points of each condition; other conditions get half
    max_points: Any = By(2**15, 2**16)  # up to which points are added when held-out residuals ask for it
    fresh: bool = True  # new points in every iteration
    gap: float = 1.3  # loss at new points over loss at those just trained on, above which points are added
    gaps: int = 3  # how many gaps are averaged (geometrically): single ones are noisy
    wide_gap: float = 3.0  # a gap that is believed at once where the loss falls fast; 8 and 9 were noticed too late
    stalled_gap: float = 1.05  # a gap above which points are added where stage 3 comes to a stop; 0: always
    growth: int = 4  # by which points are multiplied: few sizes, since every size is compiled once
    adaptive: float = 0.0  # share of the interior points that is drawn where residuals are large
    focus: float = 0.5  # the same in another attempt, after one whose residuals ended large in few places
    candidates: int = 8  # points of which one is chosen by its residual
    held_out: int = 4096  # held-out points of each condition: one batch, and so no kernel of their own
    look_every: int = 5  # iterations between looks at the error and at held-out residuals

    # --- time marching (section 4.4)
    interval_goal: Any = By(1e-4, 1e-6)  # residuals over their terms with which an automatic interval is solved
    cuts: int = 10  # of one automatic interval, at most
    hopeless: int = 150  # iterations after which an automatic interval that fails is cut; 0: when nothing helps
    restarts: int = 2  # where there is nothing to cut and residuals are not below `interval_goal`
    perturbation: float = 0.01  # of the parameters handed over, times a fresh initialisation; the authors' value

    def __post_init__(self):
        for name, kind in _CHOICES.items():
            if getattr(self, name) not in kind:
                known = ", ".join(map(repr, kind))
                raise ValueError(f"{name} must be one of {known}, not {getattr(self, name)!r}")
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            for one in value if isinstance(value, By) else (value,):
                check_constant(field.name, one)
        if self.adaptive and not self.fresh:
            raise ValueError(f"method {self.name!r} keeps its points, so it has no adaptive ones: leave `adaptive` out")

    def at(self, precision: Precision) -> "Method":
        """The same method with the defaults of one precision."""
        chosen = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        plain = {name: getattr(value, precision) if isinstance(value, By) else value for name, value in chosen.items()}
        return replace(self, **plain)


_CHOICES = {
    "row_sketch": ("buckets", "hashes"),
    "column_sketch": ("all", "groups", "srct"),
    "late_column_sketch": ("all", "groups", "srct"),
    "factorisation": ("auto", "svd"),
    "search": ("bracket", "probes"),
}

_POSITIVE = (
    "hashes chunk batch probes search_evaluations window rejections points max_points growth gaps candidates held_out "
    "look_every"
).split()
_COUNTS = "hopeless undamped redraws cuts restarts depth sub_batch ramp wait retreats tries stall warm_up long_wait".split()
_ABOVE_ONE = "search_patience probe_range search_growth search_reach".split()
_NUMBERS = (
    "sketch_share large_share search_tolerance slack radius minimum_radius overshoot columns_from weight_floor gain wider "
    "at_floor no_damping fallen fallen_loss far single_above gap wide_gap interval_goal data_weight interior_weight"
).split()
_SHARES = "shrink ramp_from".split()
_SIGNED = "exponent slope correlation perturbation".split()
_SWITCHES = "scaled greedy exact_stage fresh".split()


def check_constant(name: str, value: Any) -> None:
    """Raise unless a constant of a method has a value that makes sense."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    real = isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value)
    if name in _POSITIVE and not (whole and value > 0):
        raise ValueError(f"{name} must be a positive integer: {value!r}")
    if name in _COUNTS and not (whole and value >= 0):
        raise ValueError(f"{name} must be an integer, 0 or more: {value!r}")
    if name in _NUMBERS and not (real and value > 0):
        raise ValueError(f"{name} must be positive, not {value!r}")
    if name in _ABOVE_ONE and not (real and value > 1):
        raise ValueError(f"{name} must be a factor above 1, not {value!r}")
    if name in _SIGNED and not (real and math.isfinite(value)):
        raise ValueError(f"{name} must be a number, not {value!r}")
    if name in ("adaptive", "focus") and not (real and 0 <= value < 1):
        raise ValueError(f"{name} must be a share from 0 up to (not including) 1, not {value!r}")
    if name == "stalled_gap" and not (real and value >= 0):
        raise ValueError(f"{name} must be 0 or more, not {value!r}")
    if name in _SHARES and not (real and 0 < value < 1):
        raise ValueError(f"{name} must be a number between 0 and 1, not {value!r}")
    if name in _SWITCHES and not isinstance(value, bool):
        raise ValueError(f"{name} must be True or False, not {value!r}")
    if name == "targets" and not (
        isinstance(value, tuple) and len(value) == 2 and all(isinstance(t, int | float) and 0 < t < 1 for t in value)
    ):
        raise ValueError(f"targets must be two ratios between 0 and 1, not {value!r}")


FAST = Method("fast")  # measured on Burgers, see docs/notes.md

# Algorithms 1 to 5, sections 3.1, 4.2, Appendix A. The wait of 80 and a stop at ten times the printed radius: the authors'.
PAPER = Method(
    "paper",
    scaled=False,
    redraws=0,
    exponent=0.05,
    row_sketch="hashes",
    column_sketch="srct",
    late_column_sketch="srct",
    columns_from=0.5,  # always
    factorisation="svd",
    search="probes",
    greedy=False,
    slack=1e-11,
    minimum_radius=By(1e-3, 1e-7),
    targets=By((0.1, 0.5), (0.075, 0.5)),
    ramp=0,
    undamped=0,
    restarts=0,
    hopeless=0,
    large_share=0.45,
    wait=80,
    window=30,
    exact_stage=False,
    retreats=0,
    tries=0,
    stall=0,
    single_above=math.inf,
    points=2**15,
    max_points=2**15,
    fresh=False,
    gap=math.inf,
)

METHODS = {method.name: method for method in (FAST, PAPER)}


# --- the parts that a method names ------------------------------------------------------------------------------------


def compose(method: Method, sketch: tuple[int, int], columns: int, seed: int, residuals: Residuals):
    """The optimisers of stage 1 and of the later ones; `sketch` has the rows of each. `method` is that of one precision."""
    jacobian = Jacobian(
        residuals, _rows(method, sketch[0]), _columns(method.column_sketch, columns, residuals),
        chunk=method.chunk, batch=method.batch, sub_batch=method.sub_batch,
    )  # fmt: skip
    early = Optimiser(
        residuals,
        jacobian,
        _factorisation(method),
        _search(method, greedy=False),
        weighing(method.exponent, method.weight_floor, method.data_weight, residuals),
        seed,
        shrink=method.shrink,
        slack=method.slack,
        redraws=method.redraws,
        overshoot=method.overshoot,
    )
    rows, column = _rows(method, sketch[1]), _columns(method.late_column_sketch, columns, residuals)
    search = _search(method, greedy=method.greedy)
    if (rows, column, search) == (jacobian.rows, jacobian.columns, early.search):
        return early, early  # compiled once
    return early, replace(early, jacobian=jacobian.resized(rows, column), search=search)


def _rows(method: Method, size: int) -> RowSketch:
    return CountSketch(size, method.hashes) if method.row_sketch == "hashes" else Buckets(size, method.depth or None)


def _columns(kind: Columns, size: int, residuals: Residuals) -> ColumnSketch:
    if kind == "srct":
        return SRCT(size)
    return Groups(size) if kind == "groups" and size < residuals.parameters.count else AllColumns()


def _factorisation(method: Method) -> Factorisation:
    return SVD() if method.factorisation == "svd" else Auto()


def _search(method: Method, greedy: bool) -> Search:
    if method.search == "probes":
        return Probes(method.probes, method.probe_range)
    return Bracket(
        method.search_tolerance,
        method.search_growth,
        method.search_evaluations,
        smallest=method.minimum_radius / 10,
        patience=method.search_patience,
        free=method.radius,
        reach=method.search_reach,
        greedy=greedy,
    )
