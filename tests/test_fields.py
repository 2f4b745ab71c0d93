"""Residuals as mathematics: names of derivatives, arithmetic, and what a residual is found to need."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dsgnar.calculus.jets import LAPLACIAN
from dsgnar.problem.conditions import interior
from dsgnar.problem.domain import Box
from dsgnar.problem.fields import Field, evaluate, gradient, laplacian, requirements, truncation
from dsgnar.problem.problem import Problem
from dsgnar.problem.signature import Signature

PLANE = Box(x=(-1, 1), y=(0, 2), t=(0, 1))
CUBE = Box(**{f"x{i}": (0, 1) for i in range(1, 11)})
X = np.array([0.3, 0.7, 0.4])


def wave(x):
    """u = sin(2x) y^3 exp(-t), v = x y t."""
    return jnp.stack([jnp.sin(2 * x[0]) * x[1] ** 3 * jnp.exp(-x[2]), x[0] * x[1] * x[2]])


def value(residual, network=wave, x=X, mode="taylor", domain=PLANE, dtype=np.float64):
    """A residual of the unknowns u and v at one point."""
    signature = Signature.of(residual, ("u", "v", *domain.axes), "test")
    requests, _ = requirements(signature, ("u", "v"), domain)
    point = jnp.asarray(x, dtype)
    fields = evaluate(network, point, ("u", "v"), requests, domain, mode)
    result = signature(fields | dict(zip(domain.axes, point, strict=True)))
    return result.value if isinstance(result, Field) else result


def asked(residual, domain=PLANE):
    return requirements(Signature.of(residual, ("u", "v", *domain.axes), "test"), ("u", "v"), domain)[0]


s, c, y, e = np.sin(0.6), np.cos(0.6), 0.7, np.exp(-0.4)


CASES = [
    (lambda u: u, s * y**3 * e),
    (lambda u: u.x, 2 * c * y**3 * e),
    (lambda u: u.t, -s * y**3 * e),
    (lambda u: u.xx, -4 * s * y**3 * e),
    (lambda u: u.xt, -2 * c * y**3 * e),
    (lambda u: u.tx, -2 * c * y**3 * e),
    (lambda u: u.x.t, -2 * c * y**3 * e),
    (lambda u: u.xyt, -6 * c * y**2 * e),
    (lambda u: u.d("x", 4), 16 * s * y**3 * e),
    (lambda u: u.d("x", "x", "y"), -12 * s * y**2 * e),
    (lambda u: u.d("x", 2, "y", 2), -24 * s * y * e),
    (lambda u: u.d(x=2, t=1), 4 * s * y**3 * e),
    (lambda u: u.d("y", np.int64(3)), 6 * s * e),
    (lambda u: u.d(), s * y**3 * e),
    (lambda v: v.xyt, 1.0),
    (lambda v: v.xx, 0.0),
    (lambda u: laplacian(u), -4 * s * y**3 * e + 6 * s * y * e),
    (lambda u: laplacian(u) + u.xx, -8 * s * y**3 * e + 6 * s * y * e),
    (lambda u: laplacian(u) + u.xx + u.yy, 2 * (-4 * s * y**3 * e + 6 * s * y * e)),
    (lambda u: laplacian(u.x), -8 * c * y**3 * e + 12 * c * y * e),
    (lambda u: laplacian(u.t), 4 * s * y**3 * e - 6 * s * y * e),
    (lambda u: sum(g**2 for g in gradient(u)), (2 * c * y**3 * e) ** 2 + (3 * s * y**2 * e) ** 2),
    (lambda u, v, x, t: u.t + v * u.x - x * t * v.y, -s * y**3 * e + 0.084 * 2 * c * y**3 * e - 0.12 * 0.12),
]


@functools.cache
def values(mode):
    """The residuals of all cases, compiled together, which takes far less time than one by one."""
    return jax.jit(lambda x: [value(residual, x=x, mode=mode) for residual, _ in CASES])(X)


@pytest.mark.parametrize("mode", ["taylor", "nested"])
@pytest.mark.parametrize("case", range(len(CASES)))
def test_derivatives_by_name(case, mode):
    assert values(mode)[case] == pytest.approx(CASES[case][1], rel=1e-13, abs=1e-15)


def test_axes_with_longer_names():
    f = lambda x: jnp.stack([x[0] ** 2 * x[9] * x[1], x[9] ** 3])
    x = np.arange(1.0, 11.0) / 10
    for residual, expected in [
        (lambda u: u.x1, 2 * 0.1 * 0.2),
        (lambda u: u.x10, 0.01 * 0.2),
        (lambda u: u.x1x1, 2 * 0.2),
        (lambda u: u.x1x10, 2 * 0.1 * 0.2),
        (lambda u: u.x1x1x10x2, 2.0),
        (lambda u: u.d("x1", 2, "x10"), 2 * 0.2),
        (lambda v: v.x10x10, 6.0),
        (lambda u: laplacian(u), 2 * 0.2),
        (lambda u: gradient(u)[9], 0.01 * 0.2),
    ]:
        assert value(residual, f, x, domain=CUBE) == pytest.approx(expected, rel=1e-13)


def field(domain=PLANE):
    return Field("u", domain, lambda key: jnp.asarray(2.0))


@pytest.mark.parametrize(
    ("get", "message"),
    [
        (lambda u: u.z, "u.z: 'z' is not made of the problem's axes x, y, t; write u.x"),
        (lambda u: u.xz, "u.xz"),
        (lambda u: u.shape, "u.shape"),
        (lambda u: u.d("z", 2), "u has no derivative along 'z': the problem's axes are x, y, t"),
        (lambda u: u.d(z=2), "u has no derivative along 'z'"),
    ],
)
def test_axes_that_do_not_exist(get, message):
    with pytest.raises(AttributeError, match=message):
        get(field())


@pytest.mark.parametrize("axes", [(2, "x"), ("x", 0), ("x", -1), ("x", 2, 3)])
def test_orders_follow_an_axis(axes):
    with pytest.raises(ValueError, match="a positive order follows the name of its axis"):
        field().d(*axes)
    with pytest.raises(ValueError, match="must not be negative"):
        field().d(x=-1)


@pytest.mark.parametrize("order", [1.5, 2.0, None, True, 1j])
def test_orders_are_whole_numbers(order):
    for ask in (lambda u: u.d("x", order), lambda u: u.d(x=order), lambda u: u.d("x", "t", order)):
        with pytest.raises(ValueError, match=f"the order {order!r} must be a whole number, as in".replace("(", r"\(")):
            ask(field())
    assert repr(field().d("x", np.int32(2)).d(t=np.int64(1))) == "Field(u, {'x': 2, 't': 1})"


def test_a_field_is_no_truth_value_while_jax_traces():
    for convert in (bool, float, int):
        with pytest.raises(jax.errors.ConcretizationTypeError):
            jax.eval_shape(lambda x, f=convert: f(Field("u", PLANE, lambda key: x)), 1.0)
        assert convert(field()) == convert(2.0)


def test_a_name_that_can_be_read_in_two_ways_is_refused():
    u = field(Box(x=(0, 1), xx=(0, 1), y=(0, 1)))
    for get in (lambda: u.xx, lambda: u.xxy):
        with pytest.raises(AttributeError, match=r"can be read in 2 ways; use u.d\(...\)"):
            get()
    assert repr(u.d("xx")) == "Field(u, {'xx': 1})"
    assert repr(u.d("x", 2)) == "Field(u, {'x': 2})"
    assert repr(u.y) == "Field(u, {'y': 1})"


def test_laplacian_of_something_else():
    with pytest.raises(TypeError, match="laplacian expects an unknown such as u"):
        laplacian(jnp.ones(3))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("compute", "expected"),
    [
        (lambda u: 3 * u + u * 3 - u / 4 + 4 / u - (1 - u), 6 + 6 - 0.5 + 2 + 1),
        (lambda u: u**2 + 2**u + u**u + (-u) + (+u) + abs(-u), 4 + 4 + 4 + 2),
        (lambda u: np.float64(3) * u + u * np.float64(3) + np.float32(1) / u - u / np.float64(2), 6 + 6 + 0.5 - 1),
        (lambda u: np.sqrt(2.0) * u * np.pi, 2 * np.sqrt(2) * np.pi),
        (lambda u: np.int64(3) * u + u % 2 + 5 % u, 6 + 0 + 1),
        (lambda u: np.float64(2) ** u + u ** np.float64(3), 4 + 8),
        (lambda u: jnp.sin(u) + jnp.exp(-u) + jnp.tanh(u), np.sin(2) + np.exp(-2) + np.tanh(2)),
        (lambda u: jnp.where(u > 1, u, 0.0) + jnp.where(u < 1, u, 0.0) + (u >= 2) + (u <= 2), 4),
        (lambda u: u * jnp.where(u == 2, 5.0, 1.0) + u * jnp.where(u != 2, 5.0, 1.0), 12),
        (lambda u: jnp.maximum(u, 1.0) * jnp.sqrt(u) + jnp.square(u), 2 * np.sqrt(2) + 4),
        (lambda u: jnp.stack([u, u.x]).sum(), 4),
    ],
)
def test_arithmetic_with_numbers_and_functions(compute, expected, dtype):
    u = Field("u", PLANE, lambda key: jnp.asarray(2.0, dtype))
    result = jnp.asarray(compute(u))
    assert result.dtype == dtype
    assert float(result) == pytest.approx(expected, rel=1e-6 if dtype == np.float32 else 1e-14)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("mode", ["taylor", "nested"])
def test_precision_is_kept(dtype, mode):
    for residual in (
        lambda u: u.t + u * u.x - 0.01 * u.xx,
        lambda u, v, x: np.float64(2) * u.x * v + jnp.sin(np.pi * x),
        lambda u: laplacian(u) - u,
        lambda v: v.xx,  # known to vanish
    ):
        assert jnp.asarray(value(residual, mode=mode, dtype=dtype)).dtype == dtype


def test_any_function_of_jax_takes_a_field():
    u = field()
    functions = [jnp.sin, jnp.log1p, jax.nn.softplus, jax.nn.sigmoid, jnp.linalg.norm, jax.scipy.special.erf, jnp.cbrt]
    for f in [*functions, lambda u: jnp.power(u, 3), lambda u: jnp.clip(u, 0, 1), lambda u: jnp.dot(u, u)]:
        np.testing.assert_array_equal(f(u), f(jnp.asarray(2.0)))
    assert asked(lambda u, v: jnp.sin(u) + jnp.arctan2(v.x, u.t)) == {"u": {(0, 0, 0), (0, 0, 1)}, "v": {(1, 0, 0)}}
    assert jax.jit(lambda u: u * u)(u) == 4
    with pytest.raises(AttributeError, match="has no attribute x"):  # a number has no derivatives
        jax.jit(lambda u: u.x)(u)


def test_what_a_residual_needs():
    assert asked(lambda u: u.t + u * u.x - u.xx) == {
        "u": {(0, 0, 1), (0, 0, 0), (1, 0, 0), (2, 0, 0)},
        "v": set(),
    }
    assert asked(lambda u, v: u.xt + v) == {"u": {(1, 0, 1)}, "v": {(0, 0, 0)}}
    assert asked(lambda u, x: laplacian(u) - x)["u"] == {LAPLACIAN}
    assert asked(lambda u: u.x.x.x)["u"] == {(3, 0, 0)}  # only the last is used, so only the last is noted
    assert asked(lambda u: [u.y for _ in range(3)][0])["u"] == {(0, 1, 0)}


def test_what_a_taylor_pass_carries():
    def carried(residual, domain=PLANE):
        tr, collapsed = truncation(asked(residual, domain), domain)
        return len(tr.wanted), collapsed

    assert carried(lambda u: u) == (1, False)
    assert carried(lambda u: u.xt) == (4, False)
    assert carried(lambda u: u.d("x", 4)) == (5, False)
    assert carried(lambda u: laplacian(u)) == (3, True)  # the value and the gradient, beside the slot
    assert carried(lambda u: laplacian(u), CUBE) == (11, True)
    assert carried(lambda u: laplacian(u) + u.xx + u.yy) == (5, False)  # second derivatives are there anyway
    assert carried(lambda u: laplacian(u), Box(x=(0, 1), t=(0, 1))) == (3, False)  # along one axis


def test_all_unknowns_share_one_pass():
    calls = []

    def network(x):
        calls.append(1)
        return wave(x)

    value(lambda u, v: u.xx + v.xt * u.y + laplacian(v), network)
    assert len(calls) == 1


def test_taylor_and_nested_residuals_agree_under_vmap_and_jit():
    problem = Problem(
        PLANE, ("u", "v"), {"pde": interior(lambda u, v, y: u.t * laplacian(v) + v.xyt - u.d("y", 3) * y)}
    )
    points = np.random.default_rng(0).uniform([-1, 0, 0], [1, 2, 1], (50, 3))
    one, two = (
        jax.jit(jax.vmap(lambda x, m=m: problem.residual("pde", wave, x, m)))(points) for m in ("taylor", "nested")
    )
    np.testing.assert_allclose(one, two, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (lambda u, z: u, ValueError, "its parameter 'z' is neither an unknown nor an axis; there are u, x"),
        (lambda *fields: 0, ValueError, "name its parameters one by one"),
        (lambda **fields: 0, ValueError, "name its parameters one by one"),
        (jnp.sin, ValueError, "name its parameters one by one"),
        (3.0, TypeError, "expected a function, got float"),
    ],
)
def test_functions_that_cannot_be_called_by_name(function, error, message):
    with pytest.raises(error, match=f"^here: {message}"):
        Signature.of(function, ("u", "x"), "here")


def test_parameters_with_defaults_are_the_users_own():
    assert Signature.of(lambda u, nu=0.1: nu * u, ("u", "x"), "here")({"u": 3.0, "x": 1.0}) == pytest.approx(0.3)
