"""Taylor mode is nested differentiation, only sooner: the two agree for every network, order and mixture."""

import functools
import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsgnar.calculus.jets import LAPLACIAN, Truncation
from dsgnar.calculus.taylor import UnsupportedPrimitive, taylor
from dsgnar.networks import MLP, SPINN, GaborNet, Inputs, Siren
from dsgnar.optimise.residuals import Residuals
from dsgnar.problem.conditions import interior
from dsgnar.problem.domain import Box
from dsgnar.problem.fields import supports_taylor
from dsgnar.problem.problem import Problem

ARCHITECTURES = {"MLP": MLP((6, 5), modes=2), "Siren": Siren((6, 5)), "GaborNet": GaborNet(9), "SPINN": SPINN(4, (5,))}
every_architecture = pytest.mark.parametrize("name", ARCHITECTURES)
INPUTS = Inputs(((-1.0, 1.0), (0.5, 2.0), (0.0, 1.0)), time=2, periodic=(0,))
# Most of the time goes into compiling programs that run for microseconds: let them run a little slower.
quick = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
ORDERS = [a for a in itertools.product(range(5), repeat=3) if 1 <= sum(a) <= 4]
points = st.tuples(st.floats(-1.0, 1.0), st.floats(0.5, 2.0), st.floats(0.0, 1.0)).map(np.array)


@functools.cache
def build(name: str, inputs: Inputs = INPUTS, outputs: int = 2):
    """A network with all parameters moved, so that no zero bias hides a mistake."""
    network = ARCHITECTURES[name].build(inputs, outputs, key=jax.random.key(3), dtype=np.float64)
    rng = np.random.default_rng(0)
    return jax.tree.map(lambda leaf: leaf + 0.1 * rng.normal(size=leaf.shape), network)


def tower(f, order: int):
    """All derivatives up to an order as tensors, by differentiation nested as many times."""
    stages = [f]
    for _ in range(order):
        stages.append(jax.jacfwd(stages[-1]))
    return lambda x: [stage(x) for stage in stages]


def entry(tensors, index):
    """The derivative of a multi-index from a tower."""
    axes = [axis for axis, n in enumerate(index) for _ in range(n)]
    return tensors[len(axes)][(slice(None), *axes)]


def assert_close(actual: dict, expected: dict, rtol=1e-10):
    """Equal to `rtol`, relative to the largest derivative of the same order: some vanish by cancellation."""
    for index, value in expected.items():
        scale = max(np.abs(v).max() for other, v in expected.items() if sum(other) == sum(index))
        difference = np.abs(actual.get(index, 0.0) - value).max()
        assert difference <= rtol * scale, f"{index}: {difference:.1e} of {scale:.1e}"


@functools.cache
def every_derivative(name: str):
    """Functions of a point: all derivatives up to order 4 from one pass, and the tower of nested ones."""
    network, tr = build(name), Truncation.closure(3, ORDERS)
    return quick(lambda x: taylor(network, x, tr)), quick(tower(network, 4))


@every_architecture
@given(x=points)
def test_all_derivatives_up_to_fourth_order(name, x):
    one_pass, nested = every_derivative(name)
    tensors = nested(x)
    assert_close(one_pass(x), {a: entry(tensors, a) for a in ORDERS})


@every_architecture
@given(x=points, wanted=st.sets(st.sampled_from(ORDERS), min_size=1, max_size=3))
@settings(max_examples=8)
def test_any_choice_of_derivatives(name, x, wanted):
    tensors = every_derivative(name)[1](x)
    found = taylor(build(name), jnp.asarray(x), Truncation.closure(3, wanted))
    assert_close(found, {a: entry(tensors, a) for a in wanted} | {(0, 0, 0): tensors[0]})


@every_architecture
@given(x=points, wanted=st.sets(st.sampled_from(ORDERS), max_size=2), axes=st.sampled_from([(0, 1), (1, 2), (0, 1, 2)]))
@settings(max_examples=8)
def test_the_laplacian_in_a_slot_of_its_own_beside_other_derivatives(name, x, wanted, axes):
    tensors = every_derivative(name)[1](x)
    found = taylor(build(name), jnp.asarray(x), Truncation.closure(3, wanted, axes))
    laplacian = sum(entry(tensors, Truncation.unit(3, i, 2)) for i in axes)
    assert np.abs(found[LAPLACIAN] - laplacian).max() <= 1e-10 * np.abs(tensors[2]).max()
    assert_close(found, {a: entry(tensors, a) for a in wanted})


@every_architecture
@pytest.mark.parametrize("dimension", [2, 5, 10])
def test_laplacians_in_many_dimensions(name, dimension):
    inputs = Inputs(((0.0, 1.0),) * dimension)
    network = build(name, inputs, 1)
    collapsed = Truncation.closure(dimension, [], tuple(range(dimension)))
    one_by_one = Truncation.closure(dimension, [Truncation.unit(dimension, i, 2) for i in range(dimension)])

    @quick
    @jax.vmap
    def three_ways(x):
        separate = taylor(network, x, one_by_one)
        second = sum(separate[Truncation.unit(dimension, i, 2)] for i in range(dimension))
        trace = jnp.trace(jax.hessian(network)(x), axis1=1, axis2=2)
        return taylor(network, x, collapsed)[LAPLACIAN], second, trace

    first, second, expected = three_ways(np.random.default_rng(0).random((20, dimension)))
    tolerance = 1e-10 * np.abs(expected).max()
    np.testing.assert_allclose(first, expected, rtol=0, atol=tolerance)
    np.testing.assert_allclose(second, expected, rtol=0, atol=tolerance)


def test_a_branch_of_a_separable_network_has_derivatives_along_its_own_coordinate_only():
    branch = build("SPINN").branches[1]
    found = taylor(lambda x: branch(x[1:2]), jnp.ones(3), Truncation.closure(3, [(2, 2, 2)]))
    assert set(found) == {(0, 0, 0), (0, 1, 0), (0, 2, 0)}


def test_derivatives_can_be_differentiated_by_parameters():
    network, tr = build("MLP"), Truncation.closure(3, [(1, 0, 1)])
    x = jnp.array([0.3, 0.9, 0.4])
    found = quick(jax.grad(lambda n: taylor(n, x, tr)[1, 0, 1].sum()))(network)
    expected = quick(jax.grad(lambda n: entry(tower(n, 2)(x), (1, 0, 1)).sum()))(network)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10)


# A user's own network

FUNCTIONS = {
    "parameter times input": lambda x, s: s * x,
    "input over parameter": lambda x, s: x / s,
    "exp": lambda x, s: jnp.exp(s * x),
    "log": lambda x, s: jnp.log(s + x),
    "sqrt and rsqrt": lambda x, s: jnp.sqrt(s + x) * jax.lax.rsqrt(x),
    "norm": lambda x, s: jnp.linalg.norm(x + s)[None],
    "division": lambda x, s: x[0] / (x - 2.0) + s / x,
    "integer powers": lambda x, s: x**3 + s * (x - 2) ** -3,
    "real powers": lambda x, s: x**2.5 + x**s,
    "powers that vary": lambda x, s: jnp.exp2(s * x) + 1.7**x + x ** x[0] + jnp.arctan2(x, s + x[::-1]),
    "where": lambda x, s: jnp.where(x > 0.5, x**3, s * jnp.sin(x)),
    "abs": lambda x, s: jnp.abs(x - 0.5) ** 3 * s,
    "maximum and minimum": lambda x, s: jnp.maximum(x * x, s) * jnp.minimum(x[::-1] ** 2, 0.3),
    "clip": lambda x, s: jnp.clip(s * x, 0.1, 0.6) * x,
    "logistic": lambda x, s: jax.nn.sigmoid(s * x) + jax.nn.silu(x),
    "softplus": lambda x, s: jax.nn.softplus(s * x - 0.3),
    "relu, elu, gelu": lambda x, s: jax.nn.relu(x - s) * x + jax.nn.elu(s - x) + jax.nn.gelu(x),
    "erf": lambda x, s: jax.scipy.special.erf(s * x),
    "hyperbolic": lambda x, s: jnp.sinh(x) + jnp.cosh(s * x) + jnp.tanh(x),
    "inverse functions": lambda x, s: jnp.arctan(s * x) + jnp.arcsinh(x) + jnp.log1p(x) + jnp.expm1(x) + jnp.cbrt(x),
    "sums": lambda x, s: s * jnp.sum(x**2)[None] + jnp.mean(x) * jnp.cumsum(x),
    "matrix products": lambda x, s: (jnp.outer(x, x) @ x) * s,
    "einsum": lambda x, s: jnp.einsum("i,j,jk->ik", x, s * x, jnp.outer(x, x)).ravel(),
    "indices": lambda x, s: x[jnp.array([1, 0, 1])] * s * x[-1] + jnp.roll(x, 1)[0],
    "the larger entry": lambda x, s: s * x[jnp.argmax(x)][None] ** 2,
    "stack, tile, split": lambda x, s: jnp.tile(jnp.stack([x[0] * x[1], s]), 2) * jnp.split(x, 2)[0],
    "no gradient": lambda x, s: jax.lax.stop_gradient(x) * x * s + jnp.floor(3 * x) * x,
    "whole numbers": lambda x, s: (5 * x).astype(jnp.int64).astype(x.dtype) * x * s,
    "checkpoint": lambda x, s: jax.checkpoint(lambda y: jnp.sin(s * y))(x),
    "constants": lambda x, s: s * jnp.ones_like(x),
}


OWN = Truncation.closure(2, [(3, 0), (1, 2)])


class Own(eqx.Module):
    """A network that uses all of these functions, and a parameter in each."""

    scale: jax.Array

    def __call__(self, x):
        return jnp.concatenate([f(x, self.scale) for f in FUNCTIONS.values()])


@functools.cache
def own():
    one_pass = quick(lambda scale, x: taylor(Own(scale), x, OWN))
    collapsed = quick(lambda scale, x: taylor(Own(scale), x, Truncation.closure(2, [], (0, 1)))[LAPLACIAN])
    nested = quick(lambda scale, x: tower(Own(scale), 3)(x))
    sizes = [len(f(np.array([0.3, 0.4]), 0.6)) for f in FUNCTIONS.values()]
    rows = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
    return one_pass, collapsed, nested, dict(zip(FUNCTIONS, rows, strict=True))


@given(x=st.tuples(st.floats(0.21, 0.94), st.floats(0.21, 0.94)).map(np.array), scale=st.floats(0.35, 0.9))
@settings(max_examples=15)
def test_functions_of_a_users_own_network(x, scale):
    one_pass, collapsed, nested, rows = own()
    scale = jnp.asarray(scale)
    found, tensors, laplacian = jax.tree.map(np.asarray, (one_pass(scale, x), nested(scale, x), collapsed(scale, x)))
    for name, row in rows.items():
        for index in OWN.wanted:
            expected = entry(tensors, index)[row]
            actual = found[index][row] if index in found else 0 * expected
            np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-10, err_msg=f"{name}, {index}")
        trace = entry(tensors, (2, 0))[row] + entry(tensors, (0, 2))[row]
        np.testing.assert_allclose(laplacian[row], trace, rtol=1e-10, atol=1e-10, err_msg=f"{name}, laplacian")


@given(exponent=st.sampled_from([-3, -2, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3, 7, 0.3]), x=st.floats(0.1, 10.0))
def test_powers_to_fourth_order(exponent, x):
    roots = {-1: lambda x: 1 / x, 0.5: jnp.sqrt, -0.5: jax.lax.rsqrt}
    factor = 1.0
    found = taylor(roots.get(exponent, lambda x: x**exponent), jnp.array([x]), Truncation.closure(1, [(4,)]))
    for n in range(5):
        assert found.get((n,), np.zeros(1))[0] == pytest.approx(factor * x ** (exponent - n), rel=1e-12)
        factor *= exponent - n


@pytest.mark.parametrize("f", [jax.nn.softplus, jnp.sinc, jnp.abs, lambda x: jnp.maximum(x, 0.0)])
def test_where_the_pieces_of_a_function_meet(f):
    """Softplus and sinc are computed in pieces that meet at 0, and are smooth there."""
    found = taylor(lambda x: f(3 * x), jnp.zeros(1), Truncation.closure(1, [(4,)]))
    tensors = quick(tower(lambda x: f(3 * x), 4))(jnp.zeros(1))
    assert_close(found, {(n,): entry(tensors, (n,)) for n in range(5)})


def test_the_square_at_zero_has_no_third_derivative():
    found = taylor(lambda x: x**2.0, jnp.zeros(1), Truncation.closure(1, [(4,)]))
    assert [float(found[n,][0]) for n in range(5)] == [0, 0, 2, 0, 0]  # nested differentiation finds nan here


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precision_is_kept(dtype):
    inputs = (jax.ShapeDtypeStruct(shape, dtype) for shape in ((), (2,)))
    tr = Truncation.closure(2, [(2, 1)], (0, 1))
    found = jax.eval_shape(lambda scale, x: {str(key): v for key, v in taylor(Own(scale), x, tr).items()}, *inputs)
    assert {v.dtype for v in found.values()} == {np.dtype(dtype)}


class Loop(eqx.Module):
    """A network with a loop, for which there is no Taylor rule."""

    weight: jax.Array

    def __call__(self, x):
        return jax.lax.fori_loop(0, 3, lambda _, h: jnp.tanh(self.weight @ h), x)[:1]


def scanned(x):
    return jax.lax.scan(lambda h, a: (jnp.sin(h * a), None), x, jnp.arange(1.0, 4.0))[0]


@pytest.mark.parametrize("network", [Loop(jnp.eye(2)), scanned], ids=["fori_loop", "scan"])
def test_an_operation_without_a_rule_is_named(network):
    with pytest.raises(UnsupportedPrimitive, match="no Taylor rule for the operation '(scan|while)'"):
        taylor(network, jnp.ones(2), Truncation.closure(2, [(2, 0)]))
    assert not supports_taylor(network, 2, np.float64)


def test_such_networks_are_differentiated_in_the_nested_way():
    problem = Problem(Box(x=(0, 1), t=(0, 1)), ("u",), {"pde": interior(lambda u: u.t + u * u.x - u.xx)})
    residuals, theta = Residuals.of(problem, Loop(jnp.array([[0.3, 0.8], [-0.5, 0.9]])))
    assert residuals.mode == "nested"
    x = np.array([[0.2, 0.7], [0.9, 0.1]])

    def unrolled(x):
        for _ in range(3):
            x = jnp.tanh(theta.reshape(2, 2) @ x)
        return x[:1]

    expected = jax.vmap(lambda p: problem.residual("pde", unrolled, p, "taylor"))(x)
    np.testing.assert_allclose(residuals.vector("pde", theta, x), expected, rtol=1e-12)
    assert Residuals.of(problem, build("MLP", Inputs(((0, 1), (0, 1)), time=1), 1))[0].mode == "taylor"
