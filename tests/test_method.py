"""A method is a value: its defaults are the measured ones, every field reaches the part it is about, and is recorded."""

import dataclasses
import math
from dataclasses import replace

import pytest

import dsgnar as ds
from dsgnar.optimise.factorise import SVD, Auto
from dsgnar.optimise.radius import Bracket, Probes
from dsgnar.optimise.sketch import SRCT, AllColumns, Buckets, CountSketch, Groups
from dsgnar.optimise.subproblem import RADIUS_TOLERANCE
from dsgnar.optimise.weights import Reweighting
from dsgnar.solving import entry
from dsgnar.solving.context import Context
from dsgnar.solving.method import By
from dsgnar.solving.settings import CONSTANTS, NAMES, Resolved, unknown_option
from dsgnar.storing.configuration import describe, settings_of
from dsgnar.suite.statement import Statement
from small import NETWORK, problem

pytestmark = pytest.mark.usefixtures("shared_kernels")

FIELDS = tuple(f.name for f in dataclasses.fields(ds.Method))
PRECISIONS = ("single", "double")


@pytest.fixture
def composed(monkeypatch):
    """What `ds.solve` would run with these options: its context. Nothing is solved."""
    monkeypatch.setattr(entry, "run", lambda context, state, observers: context)
    monkeypatch.setattr(entry, "reach", lambda problem, network, settings, attempt: attempt(network, settings))
    return lambda **options: ds.solve(problem(), network=NETWORK, **options)


# --- defaults ---------------------------------------------------------------------------------------------------------

# What the first version had, where the defaults of a method depend on the precision or differ between the methods.
DEFAULTS = {
    ("paper", "single"): dict(
        points=2**15, max_points=2**15, targets=(0.1, 0.5), wait=80, window=30, minimum_radius=1e-3, single_above=math.inf
    ),
    ("paper", "double"): dict(
        points=2**15, max_points=2**15, targets=(0.075, 0.5), wait=80, window=30, minimum_radius=1e-7, single_above=math.inf
    ),
    ("fast", "single"): dict(
        points=2**13, max_points=2**15, targets=(0.2, 0.8), wait=40, window=15, minimum_radius=1e-4
    ),
    ("fast", "double"): dict(
        points=2**13, max_points=2**16, targets=(0.2, 0.8), wait=60, window=30, minimum_radius=1e-8, single_above=1e-8
    ),
}  # fmt: skip

RULES = {  # of the schedule, by method
    "fast": dict(scaled=True, exponent=0.0, redraws=1, search_patience=9.0, fresh=True, gap=1.3, retreats=2, tries=4,
                 stall=12, ramp=6, ramp_from=0.5, exact_stage=True),
    "paper": dict(scaled=False, exponent=0.05, redraws=0, fresh=False, gap=math.inf, retreats=0, tries=0, stall=0,
                  ramp=0, exact_stage=False),
}  # fmt: skip

SAME = dict(  # in both
    wide_gap=3.0, gaps=3, wider=100, growth=4, gain=1e-3, at_floor=3.0, held_out=4096, candidates=8, look_every=5,
    perturbation=0.01, sketch_share=0.45, adaptive=0.0, radius=1.0, warm_up=10, rejections=10, slope=1e-4,
    correlation=0.1, shrink=1 / 3, overshoot=math.inf,
)  # fmt: skip


@pytest.mark.parametrize(("name", "precision"), DEFAULTS)
def test_the_defaults_are_the_measured_ones(name, precision):
    method = ds.Settings(method=name, precision=precision).resolve(1000).method
    for field, value in (DEFAULTS[name, precision] | RULES[name] | SAME).items():
        assert getattr(method, field) == value, field


@pytest.mark.parametrize("precision", PRECISIONS)
def test_the_parts_of_the_paper(composed, precision):
    context = composed(method="paper", precision=precision, sketch=40)
    early, late = context.optimisers
    assert early is late
    assert early.jacobian.rows == CountSketch(40, 4) and early.jacobian.columns == SRCT(40)
    assert early.factorisation == SVD() and early.search == Probes(24, 3.0)
    assert early.reweighting == Reweighting(0.05, 1e-8)
    assert early.slack == RADIUS_TOLERANCE and early.overshoot == math.inf and early.shrink == 1 / 3


@pytest.mark.parametrize("precision", PRECISIONS)
def test_the_parts_of_the_fast_method(composed, precision):
    context = composed(precision=precision, sketch=40, late_sketch=50)
    early, late = context.optimisers
    assert early.jacobian.rows == Buckets(40, 8) and late.jacobian.rows == Buckets(50, 8)
    assert early.jacobian.columns == late.jacobian.columns == AllColumns()
    smallest = {"single": 1e-5, "double": 1e-9}[precision]
    assert early.search == Bracket(0.25, 1.5, 9, smallest=pytest.approx(smallest), free=1.0, reach=3.0, patience=9.0)
    assert late.search == replace(early.search, greedy=True)
    assert early.factorisation == Auto() and early.reweighting == Reweighting(0.0, 1e-8) and early.slack == 0.03


# --- a value for each precision ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("method", [ds.FAST, ds.PAPER], ids=["fast", "paper"])
def test_a_resolved_method_leaves_nothing_open(method, precision):
    open_fields = [name for name in FIELDS if isinstance(getattr(method, name), By)]
    assert {"interval_goal", "minimum_radius"} <= set(open_fields)
    resolved = method.at(precision)
    assert not any(isinstance(getattr(resolved, name), By) for name in FIELDS)
    assert all(getattr(resolved, name) == getattr(getattr(method, name), precision) for name in open_fields)
    assert resolved.at("single") == resolved.at("double") == resolved


def test_a_default_for_each_precision_can_be_ones_own():
    method = replace(ds.FAST, points=By(100, 200))
    assert [ds.Settings(method=method, precision=p).resolve(99).method.points for p in PRECISIONS] == [100, 200]
    with pytest.raises(ValueError, match="points must be a positive integer: -2"):
        replace(ds.FAST, points=By(100, -2))


def test_settings_have_the_last_word_and_leave_the_rest_to_the_method():
    mine = replace(ds.PAPER, points=100, wait=7)
    settings = ds.Settings(method=mine, points=200).resolve(1000)
    assert settings.method == replace(mine.at("single"), points=200, max_points=2**15)
    assert ds.Settings(method=ds.PAPER).resolve(1000) == ds.Settings(method="paper").resolve(1000)
    assert ds.Settings(points=2**17).resolve(1000).method.max_points == 2**17  # never fewer than there are


def test_resolved_settings_leave_nothing_open():
    resolved = ds.Settings().resolve(1000)
    assert isinstance(resolved, Resolved) and resolved.max_seconds == math.inf
    assert [name for name, value in vars(resolved).items() if value is None] == ["scales", "quantity"]  # they need a problem
    assert (resolved.sketch, resolved.columns, resolved.late_sketch) == (450, 1000, 450)


# --- an ablation reaches its part -------------------------------------------------------------------------------------


def part(context: Context, path: str):
    """`early.search.count` of a context's optimisers, or a field of its schedule's method."""
    early, late = context.optimisers
    found = {"early": early, "late": late, "rules": context.rules.method}[path.split(".")[0]]
    for name in path.split(".")[1:]:
        found = getattr(found, name)
    return found


@pytest.mark.parametrize(
    ("method", "option", "value", "paths"),
    [
        ("paper", "hashes", 1, ["early.jacobian.rows.hashes"]),
        ("paper", "probes", 5, ["early.search.count"]),
        ("paper", "probe_range", 2.0, ["early.search.span"]),
        ("paper", "batch", 100, ["early.jacobian.batch", "late.jacobian.batch"]),
        ("paper", "sub_batch", 50, ["early.jacobian.sub_batch"]),
        ("fast", "sub_batch", 50, ["early.jacobian.sub_batch", "late.jacobian.sub_batch"]),
        ("paper", "overshoot", 0.3, ["early.overshoot"]),
        ("fast", "overshoot", 0.3, ["early.overshoot", "late.overshoot"]),
        ("fast", "depth", 3, ["early.jacobian.rows.depth", "late.jacobian.rows.depth"]),
        ("fast", "slack", 0.1, ["early.slack", "late.slack"]),
        ("fast", "shrink", 0.5, ["early.shrink", "late.shrink"]),
        ("fast", "search_tolerance", 0.1, ["early.search.tolerance", "late.search.tolerance"]),
        ("fast", "search_growth", 2.0, ["early.search.growth"]),
        ("fast", "search_evaluations", 5, ["early.search.evaluations"]),
        ("fast", "search_reach", 2.0, ["early.search.reach"]),
        ("fast", "radius", 0.5, ["early.search.free", "rules.radius"]),
        ("fast", "exponent", 0.1, ["early.reweighting.exponent"]),
        ("fast", "weight_floor", 1e-3, ["early.reweighting.floor"]),
        ("paper", "targets", (0.2, 0.8), ["rules.targets"]),
        ("fast", "targets", (0.2, 0.7), ["rules.targets"]),
        ("fast", "ramp", 0, ["rules.ramp"]),
        ("fast", "stall", 3, ["rules.stall"]),
    ],
)
def test_an_option_reaches_the_part_that_it_is_about(composed, method, option, value, paths):
    changed = composed(method=method, **{option: value})
    object_of_its_own = composed(method=replace({"fast": ds.FAST, "paper": ds.PAPER}[method], **{option: value}))
    for path in paths:
        assert part(composed(method=method), path) != value
        assert part(changed, path) == part(object_of_its_own, path) == value
    assert changed.settings == object_of_its_own.settings


def test_parts_can_be_exchanged_between_the_methods(composed):
    mixed = composed(method="paper", row_sketch="buckets", depth=0, search="bracket", factorisation="auto").optimisers[
        0
    ]
    assert isinstance(mixed.jacobian.rows, Buckets) and mixed.jacobian.rows.depth is None
    assert isinstance(mixed.search, Bracket) and mixed.factorisation == Auto()
    grouped, late = composed(columns=30, late_column_sketch="srct").optimisers
    assert grouped.jacobian.columns == Groups(30) and late.jacobian.columns == SRCT(30)
    assert not composed(greedy=False).optimisers[1].search.greedy
    early, late = composed(method="paper", late_sketch=40, sketch=20).optimisers
    assert (early.jacobian.rows, late.jacobian.rows) == (CountSketch(20, 4), CountSketch(40, 4))


def test_no_ramp_is_the_target_at_once(composed):
    for options in (dict(ramp=0), dict(method=replace(ds.FAST, ramp=0))):
        rules = composed(**options).rules
        assert rules.target(replace(rules.start(), stage=2)) == 0.8


# --- on the record ----------------------------------------------------------------------------------------------------


def test_every_field_is_in_the_configuration_and_comes_back():
    mine = replace(ds.PAPER, hashes=1)
    settings = ds.Settings(method=mine, precision="double", targets=(0.2, 0.8)).resolve(1000)
    config = describe(Statement(problem(), "heat"), NETWORK, settings)
    assert set(config["method"]) == set(FIELDS)
    assert set(config["settings"]) == {f.name for f in dataclasses.fields(Resolved)} - {"method", "quantity"}
    assert config["method"]["hashes"] == 1 and config["method"]["gap"] is None  # JSON has no infinity
    assert settings_of(config) == settings


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("field", CONSTANTS)
def test_a_wrong_value_of_any_field_is_refused_with_its_name(field):
    signed = field in ("exponent", "slope", "correlation", "perturbation")
    for value in ("nonsense", None, math.nan, -math.inf if signed else -1.5):
        with pytest.raises(ValueError, match=f"^{field} must be "):
            replace(ds.FAST, **{field: value})


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (dict(hashes=0), "hashes must be a positive integer: 0"),
        (dict(hashes=2.0), "hashes must be a positive integer: 2.0"),
        (dict(points=1e3), "points must be a positive integer: 1000.0"),
        (dict(points=True), "points must be a positive integer: True"),
        (dict(depth=-1), "depth must be an integer, 0 or more: -1"),
        (dict(probe_range=1.0), "probe_range must be a factor above 1, not 1.0"),
        (dict(shrink=1.0), "shrink must be a number between 0 and 1, not 1.0"),
        (dict(targets=(0.5,)), "targets must be two ratios between 0 and 1"),
        (dict(targets=0.5), "targets must be two ratios between 0 and 1"),
        (dict(adaptive=1.0), "adaptive must be a share from 0 up to"),
        (dict(row_sketch="rows"), "row_sketch must be one of 'buckets', 'hashes', not 'rows'"),
        (dict(search="newton"), "search must be one of 'bracket', 'probes', not 'newton'"),
        (dict(method="paper", adaptive=0.5), "method 'paper' keeps its points, so it has no adaptive ones"),
        (dict(method="slow"), "method must be 'fast' or 'paper', or a dsgnar.Method, not 'slow'"),
        (dict(seed=-1), "seed must be an integer, 0 or more: -1"),
        (dict(seed=0.5), "seed must be an integer, 0 or more: 0.5"),
        (dict(sketch=2.5), "sketch must be a positive integer: 2.5"),
        (dict(max_iterations=0), "max_iterations must be a positive integer: 0"),
        (dict(max_seconds=0), "max_seconds must be positive, not 0"),
        (dict(intervals="two"), "intervals must be a positive integer or a list of times: 'two'"),
        (dict(precision="half"), "precision must be one of 'single', 'double', not 'half'"),
    ],
)
def test_wrong_options_of_solve_are_refused_with_their_name(composed, wrong, message):
    with pytest.raises(ValueError) as raised:
        composed(**wrong)
    assert str(raised.value).startswith(message)


@pytest.mark.parametrize(
    ("misspelt", "meant"),
    [
        ("max_iteration", "max_iterations"),
        ("hashs", "hashes"),
        ("probe_rang", "probe_range"),
        ("precison", "precision"),
    ],
)
def test_a_misspelt_option_is_told_what_was_meant(composed, misspelt, meant):
    with pytest.raises(TypeError, match=rf"solve\(\) has no option '{misspelt}' \(did you mean {meant}"):
        composed(**{misspelt: 3})


def test_an_unknown_option_is_told_all_there_are():
    text = unknown_option(["learning_rate"])
    assert text is not None and all(name in text for name in (*NAMES, *CONSTANTS))
    assert unknown_option(["name"]) is not None  # of a method: it belongs to `replace`
    assert unknown_option(["hashes", "seed"]) is None
