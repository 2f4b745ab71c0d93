"""Statements of problems: what they mean, and that whatever is wrong with one is said at once, with its place."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import erf

from dsgnar.calculus.streams import stream
from dsgnar.networks import MLP, Inputs
from dsgnar.optimise.residuals import Residuals
from dsgnar.problem.conditions import Condition, at, boundary, initial, interior
from dsgnar.problem.constraints import Hard, constrain
from dsgnar.problem.domain import Boundary, Box, Initial, Interior, Points
from dsgnar.problem.fields import gradient, laplacian
from dsgnar.problem.problem import Problem
from dsgnar.problem.reference import Reference, check_reference
from dsgnar.problem.sampling import Near, sample

LINE = Box(x=(-1, 1), t=(0, 2))
PLANE = Box(x=(0, 1), y=(0, 2), t=(0, 1))
heat = interior(lambda u: u.t - u.xx)


def state(domain=LINE, unknowns=("u",), **options):
    """A problem with one condition called `condition` unless others are given."""
    conditions = options.pop("conditions", None) or {"condition": options.pop("condition")}
    return Problem(domain, unknowns, conditions, **options)


# Bad input: each error names the condition, axis or shape


def returns_nothing(u):
    u.x  # noqa: B018


class Pair:
    """Something that is no array."""


@pytest.mark.parametrize(
    ("condition", "error", "message"),
    [
        # wrong shape, NaN, or no array
        (interior(lambda u: jnp.stack([u.x, u.t])), ValueError, r"its residual returned shape \(2,\), expected one number"),
        (interior(lambda u: jnp.ones((1,)) * u), ValueError, r"its residual returned shape \(1,\)"),
        (interior(lambda u: u.x * math.nan), ValueError, "its residual is NaN or infinite at 64 of 64 points"),
        (interior(lambda u, x: u - jnp.sqrt(x)), ValueError, r"NaN or infinite at \d+ of 64 points, for instance x=-0"),
        (initial(lambda u, t: u / t), ValueError, r"NaN or infinite at 64 of 64 points, for instance x=.*, t=0; look"),
        (interior(lambda u: "zero"), TypeError, "its residual could not be evaluated, or did not return an array"),
        (interior(returns_nothing), TypeError, "its residual returned None, not a number; is a `return` missing"),
        (interior(lambda u: (u.x, u.t)), TypeError, "2 values; state several equations as several conditions"),
        (interior(lambda u: 1j * u.t), TypeError, "complex128, .*; state real and imaginary parts as two unknowns"),
        (interior(lambda u: u.t > u.xx), TypeError, "bool, .*; a residual is the difference of both sides"),
        (interior(lambda u: {"pde": u.x}), TypeError, "not a number"),
        (interior(lambda u: Pair()), TypeError, "did not return an array"),
        (interior(lambda u: u > 0), TypeError, "its residual returned bool, expected real floating-point numbers"),
        (interior(lambda u: 0), TypeError, "its residual returned int"),
        (interior(lambda u: 1j * u.x), TypeError, "its residual returned complex128"),
        (interior(lambda u: [u.x, u.t][u]), TypeError, "its residual could not be evaluated"),
        # what JAX cannot trace
        (interior(lambda u, x: u - np.sin(x)), TypeError, r"`np.sin\(x\)` calls a NumPy or math .*; use jnp.sin instead"),
        (interior(lambda u, x: u - math.sin(x)), TypeError, r"`math.sin\(x\)` calls a NumPy .*; use jnp.sin instead"),
        (interior(lambda u: u.t - np.exp(u)), TypeError, r"`np.exp\(u\)` calls a NumPy or math .*; use jnp.exp instead"),
        (interior(lambda u: u.t - math.exp(u.x)), TypeError, r"`math.exp\(u.x\)` calls a NumPy .*; use jnp.exp instead"),
        (interior(lambda u: np.clip(u, 0, 1)), TypeError, r"`np.clip\(u, 0, 1\)` .*; use jnp.clip instead"),
        (interior(lambda u, x: u - erf(x)), TypeError, r"`erf\(x\)` calls a NumPy .*; use jax.scipy.special.erf instead"),
        (interior(lambda u: u * float(u)), TypeError, r"`float\(u\)` needs a number, .*; use the argument itself"),
        (interior(lambda u: u.x if u > 0 else u.t), TypeError, r"`u > 0` needs a number, .*; use jnp.where\(cond"),
        (interior(lambda u: u and u.x), TypeError, r"needs a number, .*; use jnp.where\(condition, a, b\) instead"),
        (interior(lambda u: max(u, 0.0)), TypeError, r"`max\(u, 0.0\)` needs a number, .*; use jnp.maximum instead"),
        (interior(eval("lambda u: u - math.sin(u)")), TypeError, "it calls a NumPy or math .*; use a function of jax.numpy"),
        (interior(lambda u, x: u - jnp.zeros(x).sum()), TypeError, "its residual could not be evaluated"),
        # derivatives of what is no unknown, and orders that are none
        (interior(lambda u: (u * u).x), TypeError, r"`\(u \* u\).x`: a result .* has no 'x'; .* write 2 \* u \* u.x"),
        (interior(lambda u: jnp.sin(u).d("x", 2)), TypeError, "has no 'd'; derivatives are taken of unknowns"),
        (interior(lambda u: laplacian(u * u)), TypeError, "laplacian expects an unknown such as u, .* not a result of"),
        (interior(lambda u: gradient(u * u)[0]), TypeError, "gradient expects an unknown such as u"),
        (interior(lambda u: u.d("x", 1.5)), ValueError, r"u.d\('x', 1.5\): the order 1.5 must be a whole number"),
        (interior(lambda u: u.d(x=1.5)), ValueError, r"u.d\(x=1.5\): the order 1.5 must be a whole number"),
        # axes and unknowns that do not exist
        (interior(lambda u: u.y), ValueError, "u.y: 'y' is not made of the problem's axes x, t"),
        (interior(lambda u: u.d("z", 2)), ValueError, "u has no derivative along 'z': the problem's axes are x, t"),
        (interior(lambda u, y: u - y), ValueError, "its parameter 'y' is neither an unknown nor an axis; there are u, x, t"),
        (interior(lambda v: v.t), ValueError, "its parameter 'v' is neither an unknown nor an axis"),
        (interior(lambda *args: args[0]), ValueError, "name its parameters one by one"),
        (interior(3.0), TypeError, "expected a function, got float"),
        (boundary(lambda u: u, [("y", "lower")]), ValueError, "there is no axis 'y'; the domain has x, t"),
        (boundary(lambda u: u, [("t", "lower")]), ValueError, "'t' is time: use an initial condition"),
        (boundary(lambda u: u, [("x", "left")]), ValueError, r"a face is \(axis, 'lower'\) or \(axis, 'upper'\), not"),
        (boundary(lambda u: u, []), ValueError, "a boundary needs at least one face"),
        # no points
        (interior(lambda u: u, points=0), ValueError, r"it has no points \(points=0\); give it at least one"),
        (initial(lambda u: u, points=-3), ValueError, r"it has no points \(points=-3\)"),
        (at(lambda u: u, {"x": [], "t": []}), ValueError, "given points must be finite, and at least one"),
        (at(lambda u: u, {"x": [0.0, math.nan], "t": 1}), ValueError, "given points must be finite"),
        (at(lambda u: u, {"x": [0.0]}), ValueError, "points need the axes x, t, got x"),
        (at(lambda u: u, {"x": [0.0, 3.0], "t": 1}), ValueError, r"1 given points lie outside the domain, the first is \[3"),
        (at(lambda u: u, {"x": [0.0, 0.1, 0.2], "t": [1, 2]}), ValueError, "shape mismatch"),
        # options
        (interior(lambda u: u, weight=0.0), ValueError, "its weight must be positive and finite, not 0.0"),
        (interior(lambda u: u, weight=math.nan), ValueError, "its weight must be positive and finite, not nan"),
        (interior(lambda u: u, weight="a"), ValueError, "its weight must be positive and finite, not 'a'; write weight=1.0"),
        (interior(lambda u: u, weight="1.0"), ValueError, "its weight must be positive and finite, not '1.0'"),
        (interior(lambda u: u, weight=[1.0, 2.0]), ValueError, r"its weight must be positive and finite, not \[1.0"),
        (interior(lambda u: u, points=1e3), TypeError, "points must be a whole number such as points=1000, not 1000.0"),
        (interior(lambda u: u, points="9"), TypeError, "points must be a whole number such as points=1000, not '9'"),
        (interior(lambda u: u, points=True), TypeError, "points must be a whole number"),
        (interior(lambda u: u, near="x"), TypeError, r"near must be Near\(...\) or several of them, not 'x'"),
        (Condition(lambda u: u, "interior"), TypeError, r"its part must be Interior\(\), .*, not 'interior'"),
        (at(lambda u: u, [0.5, 1.0]), ValueError, r"given points are a dict such as \{'x': \[0.5\]\}, not \[0.5, 1.0\]"),
        (interior(lambda u: u, sampling="random"), ValueError, "sampling must be one of 'uniform', 'even', 'sobol', 'clus"),
        (interior(lambda u: u, near=Near((("y", "lower"),))), ValueError, "there is no axis 'y'; the domain has x, t"),
        (lambda u: u.x, TypeError, r"expected interior\(...\), initial\(...\), boundary\(...\) or at\(...\)"),
    ],
)  # fmt: skip
def test_errors_name_the_condition(condition, error, message):
    with pytest.raises(error, match=f"^condition 'the heat equation': .*{message}"):
        state(conditions={"fine": heat, "the heat equation": condition})


def sine_of(x):
    return np.sin(x)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hard": {"u": Hard(lambda x: np.sin(x), on=Initial())}}, "the value of the hard constraint on 'u': `np.sin"),
        ({"hard": {"u": Hard(0.0, on=Initial(), rate=lambda x: math.sin(x))}}, "the rate of the hard .* on 'u': `math.sin"),
        ({"known": {"u": lambda x: np.sin(x)}}, "the known part of 'u': `np.sin"),
        ({"known": {"u": lambda x: x if x > 0 else -x}}, "the known part of 'u': `x > 0` needs a number"),
    ],
)  # fmt: skip
def test_errors_name_the_hard_constraint_and_the_known_part(options, message):
    with pytest.raises(TypeError, match=f"^{message}"):
        state(condition=heat, **options)


def test_errors_show_the_line_and_nothing_of_jax():
    """The line is the one that fails, in a function that the residual calls, too."""
    with pytest.raises(TypeError) as caught:
        state(conditions={"pde": interior(lambda u, x: u - sine_of(x))})
    first, second = str(caught.value).splitlines()
    line = sine_of.__code__.co_firstlineno + 1
    assert second == f'  File "{__file__}", line {line}: return np.sin(x)'
    assert "racer" not in first and not hasattr(caught.value, "__notes__")
    with pytest.raises(ValueError) as caught:
        state(conditions={"pde": interior(lambda u: u.y)})
    assert str(caught.value).splitlines()[1].endswith('state(conditions={"pde": interior(lambda u: u.y)})')


def test_a_residual_without_source_is_located_by_its_file_and_line():
    function = eval("lambda u, x: u - np.sin(x)")
    with pytest.raises(TypeError, match='\n  File "<string>", line 1$'):
        state(conditions={"pde": interior(function)})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: interior(lambda u: u, n_points=9), r"interior\(...\) has no option 'n_points'. Did you mean 'points'\?"),
        (lambda: initial(lambda u: u, wieght=9), r"no option 'wieght'. Did you mean 'weight'\? The options are points"),
        (lambda: boundary(lambda u: u, face=[]), r"no option 'face'. Did you mean 'faces'\? .*, faces, on, where$"),
        (lambda: at(lambda u: u, {}, colour=3), r"at\(...\) has no option 'colour'. The options are points, weight, sampl"),
    ],
)  # fmt: skip
def test_options_that_do_not_exist(make, message):
    with pytest.raises(TypeError, match=message):
        make()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"conditions": [heat]}, r"conditions: expected a dict .*, such as \{'pde': interior\(...\)\}, got list"),
        ({"hard": [Hard(0.0, on=Initial())]}, "hard: expected a dict .*, got list"),
        ({"known": lambda x: x}, "known: expected a dict .*, got function"),
        ({"domain": (0, 1)}, r"domain: expected a Box or a shape, such as Box\(x=\(0, 1\), t=\(0, 1\)\), got \(0, 1\)"),
    ],
)
def test_parts_of_a_problem_of_the_wrong_type(options, message):
    with pytest.raises(TypeError, match=f"^{message}"):
        Problem(**({"domain": LINE, "unknowns": ("u",), "conditions": {"pde": heat}} | options))


def test_other_errors_in_a_residual_carry_the_condition_as_a_note():
    with pytest.raises(ZeroDivisionError) as caught:
        state(conditions={"fine": heat, "broken": interior(lambda u: u / (1 / 0))})
    assert "condition 'broken': this happened in its residual" in caught.value.__notes__


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Box(x=(1, 0)), "axis 'x': the lower bound 1.0 must be below the upper bound 0.0; swap them"),
        (lambda: Box(x=(1, 1)), "axis 'x': the lower bound 1.0 must be below"),
        (
            lambda: Box(x=(0, 1), t=(0, math.inf)),
            r"axis 't': the bounds \(0.0, inf\) must be finite; cut the domain off",
        ),
        (lambda: Box(x=(math.nan, 1)), "axis 'x': the bounds"),
        (lambda: Box(x=1), r"axis 'x': expected an interval \(lower, upper\), got 1"),
        (lambda: Box(x=(0, 1, 2)), "axis 'x': expected an interval"),
        (lambda: Box(x=("a", "b")), "axis 'x': expected an interval"),
        (lambda: Box(x="01"), r"axis 'x': expected an interval \(lower, upper\), got '01'; write Box\(x=\(0, 1\)\)"),
        (lambda: Box(x=("0", "1")), "axis 'x': expected an interval"),
        (lambda: Box(x=b"01"), "axis 'x': expected an interval"),
        (lambda: Box(d=(0, 1)), "axis 'd': the name has a meaning of its own in u.d"),
        (lambda: Box(_x=(0, 1)), "axis '_x'"),
        (lambda: Box(), "at least one axis"),
        (lambda: Box(x=(0, 1), time=(0, 1)), "`time` names the axis that is time and cannot be an axis itself"),
        (lambda: Box(x=(0, 1), time="tau"), "the time axis 'tau' is not one of the axes x"),
        (lambda: LINE.with_interval("y", (0, 1)), "there is no axis 'y'; the domain has x, t"),
        (lambda: LINE.with_interval("t", (1, 0)), "axis 't': the lower bound"),
    ],
)
def test_domains_that_are_none(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"unknowns": ()}, "at least one unknown"),
        ({"unknowns": ("u", "u")}, "distinct names"),
        ({"unknowns": ("u", "x")}, "distinct names"),
        ({"unknowns": ("u", "u 2")}, "must be names that a function can have as parameters"),
        ({"conditions": {}}, "at least one condition"),
        ({"periodic": ("y",)}, "there is no axis 'y'; the domain has x, t"),
        ({"periodic": ("t",)}, r"time \('t'\) cannot be periodic"),
        ({"hard": {"v": Hard(0.0, on=(Initial(),))}}, "hard constraint on 'v': the unknowns are u"),
        ({"hard": {"u": Hard(lambda y: y, on=(Initial(),))}}, "the value of the hard constraint on 'u': its parameter 'y'"),
        ({"hard": {"u": Hard(lambda x: jnp.ones(2) * x, on=(Initial(),))}}, r"on 'u' returned shape \(2,\), expected one"),
        ({"hard": {"u": Hard(0.0, on=(Boundary((("z", "lower"),)),))}}, "the hard constraint on 'u': there is no axis 'z'"),
        ({"hard": {"u": Hard(0.0, on=(Boundary(),))}, "periodic": ("x",)}, "hard constraint on 'u': axis 'x' is periodic"),
        ({"known": {"v": jnp.sin}}, "known part of 'v': the unknowns are u"),
        ({"known": {"u": lambda y: y}}, "the known part of 'u': its parameter 'y'"),
        ({"known": {"u": lambda x: x}, "hard": {"u": Hard(0.0, on=(Initial(),))}}, "a hard constraint and a known part"),
    ],
)  # fmt: skip
def test_problems_that_are_none(options, message):
    with pytest.raises(ValueError, match=message):
        Problem(**({"domain": LINE, "unknowns": ("u",), "conditions": {"pde": heat}} | options))


def test_a_periodic_axis_has_no_boundary():
    for condition in (boundary(lambda u: u), boundary(lambda u: u, [("x", "upper")])):
        with pytest.raises(ValueError, match="condition 'walls': axis 'x' is periodic and has no boundary; drop"):
            state(conditions={"pde": heat, "walls": condition}, periodic=("x",))
    problem = state(PLANE, conditions={"pde": heat, "walls": boundary(lambda u: u)}, periodic=("x",))
    assert problem.conditions["walls"].part.resolve(PLANE) == (("y", "lower"), ("y", "upper"))


class Own(eqx.Module):
    """A linear network of any shape."""

    weight: jax.Array

    def __call__(self, x):
        return self.weight @ x


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (Own(jnp.ones((1, 3))), r"Own does not accept one point, an array of shape \(2,\)"),
        (Own(jnp.ones((2, 2))), r"to shape \(2,\), but the problem has 1 unknown\(s\)"),
        (Own(jnp.ones(2)), r"to shape \(\), but the problem has 1 unknown"),
        (eqx.nn.Lambda(lambda x: x[:1]), "no trainable parameters"),
    ],
)
def test_networks_that_do_not_fit(network, message):
    with pytest.raises(ValueError, match=message):
        Residuals.of(state(condition=heat), network)


# Hard constraints


def network_for(problem, dtype=np.float64, seed=0):
    domain = problem.domain
    time = None if domain.time is None else domain.index(domain.time)
    inputs = Inputs(domain.bounds, time, tuple(map(domain.index, problem.periodic)))
    return MLP((8, 8)).build(inputs, len(problem.unknowns), key=jax.random.key(seed), dtype=dtype)


def each(function, points):
    return jax.jit(jax.vmap(function))(points)


def on(part, domain, dtype=np.float64, count=50):
    return jnp.asarray(sample(part, domain, count, stream(0, "check")).astype(dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(lower=st.floats(-3, 3), length=st.floats(0.1, 5))
@settings(max_examples=6)
def test_hard_values_hold_exactly(dtype, lower, length):
    """Bounds that no float32 represents included: the factor vanishes there to the last bit."""
    value = lambda x, t: jnp.sin(3 * x) * (1 + t)
    domain = Box(x=(lower, lower + length), t=(lower / 3, lower / 3 + 1))
    hard = Hard(value, on=(Initial(), Boundary((("x", "upper"),))))
    u = constrain(Own(jnp.full((1, 2), 0.7, dtype)), domain, ("u",), {"u": hard})
    for part in hard.on:
        x = on(part, domain, dtype, 8)
        found = each(u, x)[:, 0]
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, value(x[:, 0], x[:, 1]))
    free = on(Boundary((("x", "lower"),)), domain, dtype, 8)
    assert np.any(each(u, free)[:, 0] != value(free[:, 0], free[:, 1]))


@pytest.mark.parametrize("value", [lambda x: jnp.sin(jnp.pi * x), lambda x, t: jnp.sin(jnp.pi * x) * jnp.exp(3 * t)])
def test_a_hard_rate_holds_exactly_also_where_the_value_moves(value):
    rate = lambda x: x * jnp.sin(jnp.pi * x)
    hard = Hard(value, on=(Initial(), Boundary()), rate=rate)
    problem = state(condition=interior(lambda u: u.tt - u.xx), hard={"u": hard})
    u = problem.constrained(network_for(problem))
    start, walls = (on(part, problem.domain) for part in (Initial(), Boundary()))
    velocity = each(jax.jacfwd(u), start)[:, 0, 1]
    np.testing.assert_allclose(velocity, rate(start[:, 0]), rtol=0, atol=1e-14)
    np.testing.assert_allclose(each(u, start)[:, 0], jnp.sin(jnp.pi * start[:, 0]), rtol=0, atol=1e-15)
    np.testing.assert_allclose(each(u, walls)[:, 0], 0, atol=1e-13)
    inside = each(u, on(Interior(), problem.domain))
    assert np.ptp(inside) > 0.1


def test_a_hard_rate_that_moves_a_hard_boundary_is_refused():
    hard = Hard(0.0, on=(Initial(), Boundary()), rate=1.0)
    with pytest.raises(
        ValueError, match="hard constraint on 'u': its rate moves its value on the face x=lower, x=upper"
    ):
        state(condition=interior(lambda u: u.tt - u.xx), hard={"u": hard})
    agree = Hard(lambda t: t, on=(Initial(), Boundary()), rate=1.0)
    state(condition=interior(lambda u: u.tt - u.xx), hard={"u": agree})


def test_hard_constraints_of_one_unknown_leave_the_others_alone():
    problem = state(
        unknowns=("u", "v"), condition=interior(lambda u, v: u.t - v.x), hard={"v": Hard(2.0, on=Initial())}
    )
    network = network_for(problem)
    x = on(Initial(), problem.domain)
    raw, whole = each(network, x), each(problem.constrained(network), x)
    np.testing.assert_array_equal(whole[:, 0], raw[:, 0])
    np.testing.assert_array_equal(whole[:, 1], 2.0)


def test_a_known_part_is_added_and_differentiated():
    problem = state(
        unknowns=("u", "v"), condition=interior(lambda u, v: u.xx + v.x), known={"u": lambda x, t: x**2 * jnp.exp(t)}
    )
    rest = lambda x: jnp.stack([3 * x[0], x[0] * x[1]])
    x = jnp.array([0.3, 0.5])
    np.testing.assert_allclose(problem.constrained(rest)(x), [3 * 0.3 + 0.09 * np.exp(0.5), 0.15], rtol=1e-6)
    found = problem.residual("condition", problem.constrained(rest), x)
    np.testing.assert_allclose(found, 2 * np.exp(0.5) + 0.5, rtol=1e-6)


def test_a_known_part_is_a_function():
    with pytest.raises(TypeError, match="known part of 'u': expected a function of the axes, got 1.0"):
        state(condition=heat, known={"u": 1.0})


def test_a_hard_boundary_leaves_periodic_faces_alone():
    problem = state(PLANE, condition=heat, periodic=("x",), hard={"u": Hard(0.0, on=(Boundary(),))})
    u = problem.constrained(network_for(problem))
    np.testing.assert_array_equal(each(u, on(Boundary((("y", "upper"),)), problem.domain)), 0)
    assert np.all(each(u, on(Boundary((("x", "lower"),)), problem.domain)) != 0)


@pytest.mark.parametrize(
    ("condition", "verdict"),
    [
        (
            initial(lambda u, x: u - jnp.cos(x)),
            "on the initial slice is decided by a hard constraint and contradicts it",
        ),
        (
            initial(lambda u, x: u - jnp.sin(x)),
            "on the initial slice is decided by a hard constraint and holds already",
        ),
        (initial(lambda u, x: u.x - jnp.cos(x)), "holds already"),
        (at(lambda u: u - 1, {"x": [0.2, 0.3], "t": 0.0}), "on given points is decided .* contradicts it by up to 0.8"),
        (at(lambda u: u - 1, {"x": 0.2, "t": [0.0, 1.0]}), "on given points is decided .* contradicts it"),
        (boundary(lambda u: u - 2, [("x", "lower")]), "on the face x=lower is decided .* contradicts it"),
        (boundary(lambda u: u - 2), "contradicts it"),  # on one of two faces only
    ],
)
def test_a_condition_that_a_hard_constraint_decides(condition, verdict):
    hard = Hard(lambda x: jnp.sin(x), on=(Initial(), Boundary((("x", "lower"),))))
    with pytest.raises(ValueError, match=f"condition 'values' .*{verdict}.*remove the condition, or correct"):
        state(conditions={"pde": heat, "values": condition}, hard={"u": hard})


def test_conditions_that_a_hard_constraint_leaves_open():
    hard = Hard(lambda x: jnp.sin(x), on=(Initial(), Boundary((("x", "lower"),))))
    conditions = {
        "pde": heat,
        "flux": boundary(lambda u: u.x, [("x", "lower")]),
        "wall": boundary(lambda u: u, [("x", "upper")]),
        "speed": initial(lambda u: u.t),
    }
    assert list(state(conditions=conditions, hard={"u": hard}).conditions) == list(conditions)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Hard(0.0, on=()), "holds `on` at least one of"),
        (lambda: Hard(0.0, on=(Interior(),)), "holds `on` at least one of"),
        (lambda: Hard(0.0, on=(Boundary(),), rate=1.0), "a hard rate needs the initial time"),
    ],
)
def test_hard_constraints_that_are_none(make, message):
    with pytest.raises(ValueError, match=message):
        make()
    with pytest.raises(TypeError, match=r"hard constraint on 'u': expected Hard\(value, on=...\), got 0.0"):
        state(condition=heat, hard={"u": 0.0})


# What can be stated


def test_a_system_with_several_unknowns():
    problem = Problem(
        domain=Box(x=(0, 1), y=(0, 1)),
        unknowns=("u", "v", "p"),
        conditions={
            "momentum x": interior(lambda u, v, p: u * u.x + v * u.y + p.x - 0.1 * laplacian(u)),
            "momentum y": interior(lambda u, v, p: u * v.x + v * v.y + p.y - 0.1 * laplacian(v)),
            "mass": interior(lambda u, v: u.x + v.y),
            "lid": boundary(lambda u, x: u - x * (1 - x), [("y", "upper")]),
            "walls": boundary(lambda v: v),
        },
    )
    u = lambda x: jnp.stack([x[0] * x[1], -(x[1] ** 2) / 2, x[0] ** 2])
    x = jnp.array([0.3, 0.6])
    residual = {name: float(problem.residual(name, u, x)) for name in problem.conditions}
    assert residual == pytest.approx(
        {
            "momentum x": 0.18 * 0.6 - 0.18 * 0.3 + 0.6,
            "momentum y": 0.18 * 0.6 + 0.1,
            "mass": 0,
            "lid": 0.18 - 0.21,
            "walls": -0.18,
        },
        abs=1e-15,
    )


def test_names_are_the_users_own():
    domain = Box(position=(0, 1), moment=(0, 1), time="moment")
    problem = Problem(
        domain,
        ("temperature",),
        {
            "ic": interior(lambda temperature: temperature.moment - temperature.d("position", 2)),
            "interior": initial(lambda temperature, position: temperature - position),
            "": boundary(lambda temperature: temperature.positionposition),
        },
    )
    assert problem.conditions["interior"].part == Initial()
    u = lambda x: jnp.stack([x[0] ** 2 * x[1]])
    assert problem.residual("ic", u, jnp.array([0.5, 0.25])) == pytest.approx(0.25 - 0.5)
    assert Problem(domain, "temperature", problem.conditions).unknowns == ("temperature",)
    assert state(Box(x1=(0, 1), x2=(0, 1)), condition=interior(lambda u: u.x1), periodic="x1").periodic == ("x1",)


def test_steady_problems():
    domain = Box(x=(0, 1), y=(0, 1))
    problem = state(domain, conditions={"pde": interior(lambda u, x: laplacian(u) - x), "walls": boundary(lambda u: u)})
    assert domain.time is None and len(domain.faces) == 4
    assert problem.residual("pde", lambda x: x[:1] ** 2, jnp.array([0.5, 0.1])) == 1.5
    with pytest.raises(ValueError, match="condition 'start': the domain has no time axis .*; time='"):
        state(domain, conditions={"start": initial(lambda u: u)})
    rod = state(Box(x=(0, 1)), conditions={"pde": interior(lambda u: u.xx - 1), "ends": boundary(lambda u: u)})
    assert rod.residual("pde", lambda x: x**2, jnp.array([0.5])) == 1
    t_is_space = Box(t=(0, 1), x=(0, 1), time=None)
    assert t_is_space.space == ("t", "x")


def test_given_points():
    values = np.array([1.0, 2.0, 3.0])
    problem = state(conditions={"pde": heat, "data": at(lambda u, x: u - x, {"x": values / 3 - 0.5, "t": 1.0})})
    table = problem.conditions["data"].part.table(problem.domain)
    np.testing.assert_allclose(table, np.stack([values / 3 - 0.5, np.ones(3)], 1))
    assert isinstance(problem.conditions["data"].part, Points)


def test_weights_points_and_sampling_of_conditions():
    near = Near((("x", "lower"),))
    walls = boundary(lambda u: u, weight=7, points=5, sampling="sobol", near=near)
    conditions = {"a": heat, "b": initial(lambda u: u), "c": walls}
    a, b, c = state(conditions=conditions).conditions.values()
    assert (a.initial_weight, b.initial_weight, c.initial_weight) == (1e-2, 1.0, 7)
    assert (a.points, c.points, c.sampling, c.near) == (None, 5, "sobol", (near,))


def test_residuals_that_are_finite_only_for_some_values_of_the_unknown():
    for residual in (lambda u: jnp.sqrt(1 - u**2) - u.x, lambda u: jnp.log(u) - u.t, lambda u: jnp.arccosh(u) + u.x):
        assert len(state(condition=interior(residual)).conditions) == 1  # accepted, although some values give NaN


def test_what_the_caller_passes_in_is_left_alone():
    conditions, hard = {"pde": heat, "walls": boundary(lambda u: u.x)}, {"u": Hard(0.0, on=(Initial(),))}
    before = dict(conditions), dict(hard)
    state(conditions=conditions, hard=hard)
    assert (conditions, hard) == before


def test_a_problem_can_be_stated_outside_x64_mode():
    with jax.enable_x64(False):
        problem = state(conditions={"pde": heat, "start": initial(lambda u, x: u - jnp.sin(x))})
        assert not jax.config.jax_enable_x64
        assert problem.requests["pde"] == {"u": {(0, 1), (2, 0)}}


# References, checked before anything is solved

FLOW = Problem(Box(x=(0, 1), y=(0, 1)), ("u", "v", "p"), {"mass": interior(lambda u, v: u.x + v.y)})
PLACES = np.random.default_rng(0).random((6, 2))
ONES = np.ones(6)


def reference(points=PLACES, values=None, **options):
    return Reference(points, {"u": ONES} if values is None else values, 0.0, "made up", **options)


@pytest.mark.parametrize(
    "given",
    [
        reference(),
        reference(values={"u": ONES, "v": ONES.astype(np.float32)}, groups={"velocity": ("u", "v")}, shape=(2, 3)),
        reference(values={"p": np.arange(6.0)}, gauge=("p",)),
        reference(PLACES.tolist(), {"u": [1, 2, 3, 4, 5, 6]}),
        reference(jnp.asarray(PLACES), {"u": jnp.asarray(ONES)}),
        reference().where(ONES > 0),
    ],
)
def test_references_that_fit(given):
    check_reference(given, FLOW)
    assert set(given.errors({name: ONES for name in FLOW.unknowns})) == {*given.values, *given.groups}


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"u": ONES}, TypeError, r"expected a Reference\(points, values, accuracy, source\), got dict; Reference.on_grid"),
        (ONES, TypeError, "expected a Reference.*, got ndarray"),
        (None, TypeError, "expected a Reference.*, got NoneType"),
        (reference(values={"w": ONES}), ValueError, "its values are for 'w', but the problem has the unknowns u, v, p;"),
        (reference(values={}), TypeError, r"its values must be a dict of arrays such as \{'u': ...\}"),
        (reference(values=ONES), TypeError, "its values must be a dict of arrays"),
        (reference(groups={"velocity": ("u", "w")}), ValueError, "its group 'velocity' contains 'w', but it has values of"),
        (reference(groups={"velocity": ("u", "v")}), ValueError, "its group 'velocity' contains 'v', but it has values of"),
        (reference(gauge=("q",)), ValueError, "its gauge names 'q', but it has values of u; rename it or leave it out"),
        (reference(values={"u": np.where(ONES > 0, np.nan, 0)}), ValueError, "6 of 6 numbers in its values of 'u' are NaN"),
        (reference(values={"u": np.r_[np.inf, ONES[1:]]}), ValueError, "1 of 6 numbers in its values of 'u' are NaN or inf"),
        (reference(values={"u": ONES + 0j}), TypeError, "its values of 'u' are complex; give their real part"),
        (reference(values={"u": ["a"] * 6}), TypeError, "its values of 'u' must be an array of numbers, not of <U1"),
        (reference(values={"u": lambda x: x}), TypeError, "its values of 'u' must be an array of numbers, not of object"),
        (reference(values={"u": np.ones(5)}), ValueError, r"its values of 'u' have shape \(5,\), but there are 6 points"),
        (reference(values={"u": np.ones((2, 3))}), ValueError, r"have shape \(2, 3\), .* one number per point, shape \(6"),
        (reference(np.ones((6, 3))), ValueError, r"its points have shape \(6, 3\); .* the axes x, y, shape \(n, 2\)"),
        (reference(np.ones(6)), ValueError, r"its points have shape \(6,\)"),
        (reference(np.ones((0, 2)), {"u": np.ones(0)}), ValueError, r"its points have shape \(0, 2\)"),
        (reference(np.full((6, 2), np.nan)), ValueError, "12 of 12 numbers in its points are NaN or infinite"),
        (reference(shape=(3, 3)), ValueError, r"a grid of shape \(3, 3\) has 9 points, but there are 6; correct `shape`"),
    ],
)  # fmt: skip
def test_references_that_do_not_fit(given, error, message):
    with pytest.raises(error, match=f"^reference: .*{message}"):
        check_reference(given, FLOW)


def test_a_domain_of_time_alone_has_no_boundary():
    conditions = {"decay": interior(lambda u: u.t + u), "end": boundary(lambda u: u)}
    with pytest.raises(ValueError, match="condition 'end': the domain has no axis of space .* by ds.initial"):
        Problem(Box(t=(0, 1)), ("u",), conditions)
