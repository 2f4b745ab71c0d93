"""The networks of Appendix B: parameter counts of the paper, periodicity, initial values, errors."""

import functools
import math
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import ClosedJaxpr

from dsgnar import networks
from dsgnar.networks import MLP, SPINN, GaborNet, Inputs, Siren, cast, check_network, count_parameters, embed
from dsgnar.networks.embeddings import feature_box

PERIODIC = Inputs(bounds=((-1.0, 1.0), (0.0, 1.0)), time=1, periodic=(0,))
WAVE = Inputs(bounds=((0.0, 1.0), (0.0, 1.0)), time=1)
SQUARE = Inputs(bounds=((0.0, 1.0),) * 2)
ARCHITECTURES = [MLP((7, 5)), Siren((7, 5)), GaborNet(20), SPINN(4, (5, 3))]
ids = [type(a).__name__ for a in ARCHITECTURES]
every_architecture = pytest.mark.parametrize("architecture", ARCHITECTURES, ids=ids)


@functools.cache
def build(architecture, inputs=PERIODIC, outputs=1, dtype=np.float64, seed=0):
    return architecture.build(inputs, outputs, key=jax.random.key(seed), dtype=dtype)


value = eqx.filter_jit(lambda network, x: network(x))


@pytest.mark.parametrize(
    ("architecture", "inputs", "outputs", "count"),
    [
        (MLP((16,) * 6), PERIODIC, 1, 1_447),
        (Siren((60,) * 4), PERIODIC, 1, 11_285),
        (Siren((70,) * 4), PERIODIC, 1, 15_265),
        (Siren((40,) * 4), WAVE, 1, 5_085),
        (Siren((60,) * 4), WAVE, 1, 11_225),
        (Siren((40,) * 4), PERIODIC, 1, 5_125),
        (Siren((40,) * 4, train_frequency=False), PERIODIC, 1, 5_121),
        (MLP((30,) * 4, modes=3), SQUARE, 1, 3_215),
        (Siren((60,) * 4, modes=3), SQUARE, 1, 11_825),
        (Siren((60,) * 4, modes=4), SQUARE, 1, 12_065),
        (Siren((60,) * 4), SQUARE, 3, 11_347),  # the cavity; the paper's 9,219 is a slip
        (GaborNet(1024), Inputs(((0, 1),) * 5), 1, 13_313),
        (SPINN(40, (20,) * 3), Inputs(((0, 1),) * 10), 1, 17_241),
    ],
)
def test_parameter_counts_of_the_paper(architecture, inputs, outputs, count):
    assert count_parameters(build(architecture, inputs, outputs)) == count


def test_defaults_are_the_papers():
    assert (MLP(), Siren(), GaborNet(), SPINN()) == (
        MLP((16,) * 6), Siren((40,) * 4, 1.0, True), GaborNet(1024), SPINN(40, (20, 20, 20))
    )  # fmt: skip


# Embeddings


def test_features_of_each_kind_of_axis():
    x = jnp.array([0.3, -0.4])
    assert embed(WAVE)(x) is x
    np.testing.assert_allclose(embed(PERIODIC)(x), [-np.cos(0.3 * np.pi), -np.sin(0.3 * np.pi), -0.4], atol=1e-15)
    angles = 2 * np.pi * np.outer(x, [1, 2, 4])
    np.testing.assert_allclose(
        embed(SQUARE, modes=3)(x), np.hstack([np.cos(angles), np.sin(angles)]).ravel(), atol=1e-14
    )


def test_features_of_high_modes_are_as_accurate_as_those_of_low_ones():
    x = np.random.default_rng(0).random((1000, 2)).astype(np.float32)
    angles = 2 * np.pi * x[:, :, None].astype(np.float64) * 2.0 ** np.arange(7)
    features = jax.jit(jax.vmap(embed(SQUARE, modes=7)))(x)
    exact = np.concatenate([np.cos(angles), np.sin(angles)], -1).reshape(1000, -1)
    assert np.abs(features - exact).max() < 4e-7  # 2e-5 where the angle is rounded


def test_spacing_of_modes():
    def modes(*args, **options):
        return list(embed(*args, **options).parts[0].frequencies)

    assert modes(SQUARE, 4) == [1, 2, 4, 8]
    assert modes(WAVE, 4) == [1, 2, 3, 4]
    assert modes(SQUARE, 4, "linear") == [1, 2, 3, 4]
    assert modes(WAVE, 4, "dyadic") == [1, 2, 4, 8]
    assert modes(PERIODIC, 3) == [0.5, 1, 1.5]  # on an interval of length 2


@pytest.mark.parametrize("time", [0, 1, 2])
@pytest.mark.parametrize("modes", [None, 1, 3])
def test_time_is_passed_on_unchanged_and_last(time, modes):
    periodic = (2,) if time == 1 else (1,) if time == 2 else ()
    inputs = Inputs(((-2, 3), (1, 4), (0, 2)), time=time, periodic=periodic)
    embedding = embed(inputs, modes)
    x = jnp.array([0.123456789, 1.7, 0.9])
    features, parts, slopes = jax.jit(lambda x: (embedding(x), embedding.split(x), jax.jacobian(embedding)(x)))(x)
    assert features.shape == (embedding.size,)
    assert features[-1] == x[time]
    np.testing.assert_array_equal(np.asarray(slopes)[:, time], np.eye(embedding.size)[-1])
    np.testing.assert_array_equal(np.concatenate(parts), features)


def test_feature_box_contains_the_features():
    inputs = Inputs(((-2, 3), (1, 4), (0, 2)), time=0, periodic=(2,))
    embedding = embed(inputs)
    box = np.array(feature_box(embedding, inputs))
    np.testing.assert_array_equal(box, [[1, 4], [-1, 1], [-1, 1], [-2, 3]])
    low, high = np.array(inputs.bounds).T
    features = np.asarray(jax.jit(jax.vmap(embedding))(np.random.default_rng(0).uniform(low, high, (100, 3))))
    assert np.all((box[:, 0] <= features) & (features <= box[:, 1]))


@every_architecture
@pytest.mark.parametrize("modes", [None, 2])
def test_values_and_derivatives_are_periodic(architecture, modes):
    inputs = Inputs(((-3.0, 2.0), (0.0, 1.0)), time=1, periodic=(0,))
    network = build(replace(architecture, modes=modes), inputs)

    def u(x):
        return network(jnp.stack([x, jnp.asarray(0.3)]))[0]

    derivatives = [u]
    for _ in range(3):
        derivatives.append(jax.grad(derivatives[-1]))
    values = jax.jit(jax.vmap(lambda x: jnp.stack([d(x) for d in derivatives])))
    x = np.linspace(-3.0, 2.0, 7)
    assert np.ptp(values(x)) > 1e-3
    np.testing.assert_allclose(values(x), values(x + 5.0), rtol=1e-11, atol=1e-11)


# Initial values


def test_mlp_starts_orthogonal_with_gain_five_thirds():
    network = build(MLP((16, 16, 9, 30)))
    for layer in network.layers:
        W = np.asarray(layer.affine.weight) / (5 / 3)
        gram = W @ W.T if W.shape[0] <= W.shape[1] else W.T @ W
        np.testing.assert_allclose(gram, np.eye(len(gram)), atol=1e-14)
        assert not layer.affine.bias.any() and layer.scale == 1 and layer.scale.shape == ()
    assert not network.output.bias.any()
    wide = build(MLP((400,)), outputs=50).output.weight
    assert np.std(wide) == pytest.approx(1 / 20, rel=0.05)


@pytest.mark.parametrize("omega", [1.0, 5.0])
def test_siren_starts_uniform_in_its_ranges(omega):
    network = build(Siren((300,) * 3, omega=omega))
    first, *rest = network.layers
    for values, bound in [
        (first.affine.weight, 1 / 3),
        (first.affine.bias, 1.0),
        *[(layer.affine.weight, math.sqrt(6 / 300) / omega) for layer in rest],
    ]:
        assert np.abs(values).max() <= bound
        assert np.abs(values).max() > 0.98 * bound
        assert np.std(values) == pytest.approx(bound / math.sqrt(3), rel=0.1)
    assert all(np.exp(layer.log_frequency) == pytest.approx(omega) for layer in network.layers)
    assert not any(layer.affine.bias.any() for layer in [*rest])
    assert not network.output.bias.any()


def test_fixed_and_trained_frequencies_are_the_same_function_at_the_start():
    x = jnp.array([0.2, 0.6])
    trained, fixed = (value(build(Siren((9, 8), omega=3.0, train_frequency=t)), x) for t in (True, False))
    np.testing.assert_allclose(trained, fixed, rtol=1e-12)


def test_networks_are_their_formulas():
    x = jnp.array([0.2, 0.6])
    e = np.array([-np.cos(0.2 * np.pi), -np.sin(0.2 * np.pi), 0.6])

    mlp = perturbed(build(MLP((7, 5))))
    h = e
    for layer in mlp.layers:
        h = np.tanh(layer.scale * (layer.affine.weight.T @ h + layer.affine.bias))
    np.testing.assert_allclose(value(mlp, x), mlp.output.weight.T @ h + mlp.output.bias, rtol=1e-13)

    siren = perturbed(build(Siren((7, 5), omega=2.0)))
    h = e
    for layer in siren.layers:
        h = np.sin(np.exp(layer.log_frequency) * (layer.affine.weight.T @ h + layer.affine.bias))
    np.testing.assert_allclose(value(siren, x), siren.output.weight.T @ h + siren.output.bias, rtol=1e-13)

    gabor = perturbed(build(GaborNet(50)))
    distance = np.sum((e[:, None] - gabor.centres) ** 2, axis=0)
    envelopes = np.exp(-distance / (2 * np.exp(gabor.log_bandwidths) ** 2))
    psi = envelopes * np.cos(gabor.frequencies.T @ e + gabor.phases)
    np.testing.assert_allclose(value(gabor, x), gabor.output.weight.T @ psi + gabor.output.bias, rtol=1e-13)

    spinn = perturbed(build(SPINN(4, (5, 3))))
    product = 1.0
    for branch, h in zip(spinn.branches, (e[:2], e[2:]), strict=True):
        for layer in branch.layers:
            h = np.tanh(layer.weight.T @ h + layer.bias)
        product = product * (branch.factor.weight.T @ h + branch.factor.bias)
    np.testing.assert_allclose(value(spinn, x), spinn.output.weight.T @ product + spinn.output.bias, rtol=1e-13)


def perturbed(network):
    """The network with every parameter moved, so that no zero bias or unit scale hides a mistake; arrays of NumPy."""
    rng = np.random.default_rng(0)
    return jax.tree.map(lambda leaf: np.asarray(leaf) + 0.1 * rng.normal(size=leaf.shape), network)


envelopes_of = eqx.filter_jit(lambda network, x: jax.vmap(network.envelopes)(x))


def test_gabor_filters_start_of_unit_size_far_from_the_origin_and_in_high_dimensions():
    for inputs in (Inputs(((0, 1),) * 2), Inputs(((100, 103),) * 10)):
        network = jax.tree.map(np.asarray, build(GaborNet(500), inputs))
        low, high = np.array(inputs.bounds).T
        x = np.random.default_rng(0).uniform(low, high, (200, inputs.size))
        assert np.all((low <= network.centres.T) & (high >= network.centres.T))
        envelopes = np.asarray(envelopes_of(network, x))
        assert 0.5 < np.mean(envelopes) < 0.7
        distance = np.sum((x[:, :, None] - network.centres) ** 2, axis=1)
        direct = np.exp(-distance / (2 * np.exp(network.log_bandwidths) ** 2))
        np.testing.assert_allclose(envelopes, direct, rtol=1e-13)
        turn = 2 * np.pi / ((high - low)[0] * math.sqrt(inputs.size))
        assert np.std(network.frequencies) == pytest.approx(turn, rel=0.1)


factors_of = eqx.filter_jit(lambda branch, x: jax.vmap(branch)(x))  # compiled once for all branches


@pytest.mark.parametrize("dimensions", [1, 3, 10, 30])
def test_spinn_products_start_of_unit_size(dimensions):
    network = build(SPINN(200), Inputs(((0, 1),) * dimensions))
    x = np.random.default_rng(0).uniform(size=(100, dimensions))
    factors = [factors_of(branch, x[:, [i]]) for i, branch in enumerate(network.branches)]
    product = functools.reduce(np.multiply, factors)
    assert np.mean(product) == pytest.approx(1, abs=0.2)
    assert 0.8 < np.mean(product**2) < 4


def test_a_separable_network_on_a_tensor_grid_is_the_network_at_its_points():
    inputs = Inputs(((-1, 2), (0, 1), (0, 3)), time=1, periodic=(0,))  # branches come in another order than axes
    network = build(SPINN(4, (5, 3)), inputs, outputs=2)
    rng = np.random.default_rng(0)
    axes = [rng.uniform(low, high, n) for (low, high), n in zip(inputs.bounds, (5, 4, 3), strict=True)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), -1)
    at_points = lambda f: np.asarray(jax.jit(jax.vmap(jax.vmap(jax.vmap(f))))(points))
    with jax.enable_x64(True):
        np.testing.assert_allclose(network.on_grid(axes), at_points(network), rtol=1e-12, atol=1e-13)
        second = lambda x: jax.jacfwd(jax.jacfwd(jax.jacfwd(network)))(x)[:, 0, 0, 1]
        np.testing.assert_allclose(network.on_grid(axes, (2, 1, 0)), at_points(second), rtol=1e-10, atol=1e-12)
    with pytest.raises(ValueError, match="for each of 3 axes"):
        network.on_grid(axes[:2])


@pytest.mark.parametrize("widths", [(80,), (40, 40)])
def test_wide_sums_leave_less_rounding_in_single_precision(widths):
    architecture = Siren(widths, omega=30.0)
    x = np.random.default_rng(0).random((500, 2)).astype(np.float32)

    def rounding(architecture):
        single = build(architecture, WAVE, dtype=np.float32)
        exact = jax.vmap(cast(single, np.float64))(x.astype(np.float64))
        return float(np.abs(np.asarray(jax.jit(jax.vmap(single))(x)) - exact).max())

    with jax.enable_x64(True):
        plain, wide = rounding(architecture), rounding(replace(architecture, wide=True))
        assert wide < 0.5 * plain
        double = [build(a, WAVE)(jnp.array([0.3, 0.7])) for a in (architecture, replace(architecture, wide=True))]
        assert double[0] == double[1]  # nothing changes in double precision


@every_architecture
def test_one_key_is_one_network_in_both_precisions(architecture):
    single, double = (build(architecture, dtype=dtype) for dtype in (np.float32, np.float64))
    for a, b in zip(jax.tree.leaves(single), jax.tree.leaves(double), strict=True):
        assert a.dtype == np.float32 and b.dtype == np.float64
        np.testing.assert_array_equal(a, np.asarray(b).astype(np.float32))
    with jax.enable_x64(False):  # the caller's mode does not matter
        elsewhere = build.__wrapped__(architecture)
    for a, b in zip(jax.tree.leaves(elsewhere), jax.tree.leaves(double), strict=True):
        np.testing.assert_array_equal(a, b)
    assert np.any(jax.tree.leaves(build(architecture, seed=1))[0] != jax.tree.leaves(double)[0])


@every_architecture
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("modes", [None, 2])
def test_precision_is_kept(architecture, dtype, modes):
    network = build(replace(architecture, modes=modes), outputs=2, dtype=dtype)
    x = jnp.asarray([0.3, 0.7], dtype)
    for function in (network, jax.jacobian(network)):
        result = jax.eval_shape(function, x)
        assert result.dtype == dtype and not result.weak_type
    check_network(network, 2, 2, dtype)
    intermediate = {str(v.aval.dtype) for eqn in equations(network, x) for v in eqn.outvars}
    assert intermediate == {np.dtype(dtype).name}


@every_architecture
def test_networks_of_different_time_intervals_can_be_added(architecture):
    first, second = (build(architecture, Inputs(((-1, 1), t), 1, (0,))) for t in [(0.0, 0.25), (0.25, 0.5)])
    warm = jax.tree.map(lambda a, b: np.asarray(a) + 0.01 * np.asarray(b), first, second)
    assert jax.tree.structure(warm) == jax.tree.structure(first)


# Primitives

ELEMENTWISE = {"add", "sub", "mul", "round", "sin", "cos", "tanh", "exp"}
STRUCTURE = {"broadcast_in_dim", "concatenate", "slice"}
LINEAR = {"dot_general", "reduce_sum"}
# On parameters alone (the mean centre of a GaborNet): constants to any derivative with respect to the point.
OF_PARAMETERS = {"div"}
SIMPLE = ELEMENTWISE | STRUCTURE | LINEAR | OF_PARAMETERS


def equations(function, *args):
    """All equations of `function`, those of inner calls included."""

    def inner(jaxpr):
        for eqn in jaxpr.eqns:
            bodies = [p.jaxpr for p in eqn.params.values() if isinstance(p, ClosedJaxpr)]
            for body in bodies:
                yield from inner(body)
            if not bodies:
                yield eqn

    return list(inner(jax.make_jaxpr(function)(*args).jaxpr))


@every_architecture
@pytest.mark.parametrize("modes", [None, 1, 3])
@pytest.mark.parametrize("inputs", [PERIODIC, WAVE, SQUARE, Inputs(((0, 1),) * 3, time=0)], ids=range(4))
def test_only_simple_primitives(architecture, modes, inputs):
    network = build(replace(architecture, modes=modes), inputs)
    batch = jnp.ones((8, inputs.size))
    for function, x in [(network, batch[0]), (jax.vmap(network), batch)]:
        assert {e.primitive.name for e in equations(function, x)} <= SIMPLE


# Errors


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MLP(()), "MLP: widths must list the hidden layers"),
        (lambda: MLP(16), "MLP: widths must list"),
        (lambda: MLP((16, 0)), r"MLP: widths\[1\] must be a positive integer, not 0"),
        (lambda: Siren((16, 2.5)), r"Siren: widths\[1\] must be a positive integer, not 2.5"),
        (lambda: Siren(omega=0.0), "Siren: omega must be a positive number"),
        (lambda: Siren(omega=math.nan), "Siren: omega must be a positive number"),
        (lambda: GaborNet(-3), "GaborNet: features must be a positive integer, not -3"),
        (lambda: SPINN(rank=True), "SPINN: rank must be a positive integer"),
        (lambda: SPINN(modes=0), "SPINN: modes must be a positive integer"),
        (lambda: MLP(modes=3, spacing="cubic"), "MLP: spacing must be 'linear'"),
        (lambda: MLP(spacing="dyadic"), "MLP: spacing='dyadic' needs the number of modes"),
        (lambda: build(MLP(), outputs=0), "MLP: outputs must be a positive integer"),
        (lambda: Inputs(()), "at least one axis"),
        (lambda: Inputs(((0, 1), (1, 1))), r"bounds\[1\] = \(1.0, 1.0\) must be finite, lower < upper"),
        (lambda: Inputs(((0, math.inf),)), r"bounds\[0\]"),
        (lambda: Inputs(((0, 1),), time=1), "time names axis 1, but the axes are 0 to 0"),
        (lambda: Inputs(((0, 1),), periodic=(-1,)), "periodic names axis -1"),
        (lambda: Inputs(((0, 1),), periodic=(0, 0)), "names an axis twice"),
        (lambda: Inputs(((0, 1),) * 2, time=1, periodic=(0, 1)), "axis 1 is the time axis"),
    ],
)
def test_errors_say_what_and_where(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_widths_may_be_any_sequence_of_integers():
    assert MLP([8, 4]) == MLP((8, 4)) == MLP(np.array([8, 4]))
    assert hash(MLP([8, 4])) == hash(MLP((8, 4)))


class Own(eqx.Module):
    """A user's own network."""

    weight: jax.Array
    shape: tuple[int, ...] = eqx.field(static=True, default=(1,))

    def __call__(self, x):
        return jnp.broadcast_to(jnp.tanh(self.weight @ x), self.shape)


def test_a_users_own_network_is_checked():
    weight = jnp.ones(2)
    check_network(Own(weight), 2, 1, np.float64)
    check_network(eqx.nn.MLP(2, 3, 8, 2, key=jax.random.key(0)), 2, 3, np.float64)
    check_network(cast(Own(weight), np.float32), 2, 1, np.float32)
    for network, message in [
        (Own(jnp.ones(3)), r"Own does not accept one point, an array of shape \(2,\)"),
        (Own(weight, ()), r"shape \(2,\) to shape \(\), but .* return an array of shape \(1,\)"),
        (Own(weight, (3,)), r"to shape \(3,\), but the problem has 1 unknown"),
        (weight, "cannot be called"),
        (Own(jnp.ones(2, jnp.int32)), "Own has nothing to train"),
        (lambda x: x[:1], "has nothing to train"),
        (eqx.nn.Lambda(lambda x: x), "has nothing to train"),
        (Pair(weight), "Pair returns a tuple: let it return one array"),
    ]:
        with pytest.raises(ValueError, match=message):
            check_network(network, 2, 1, np.float64)
    with pytest.raises(ValueError, match="returns float64 for float32 points"):
        check_network(Own(weight), 2, 1, np.float32)


class Pair(eqx.Module):
    """A network that returns two arrays."""

    weight: jax.Array

    def __call__(self, x):
        return self.weight @ x, x


def test_public_names():
    assert all(hasattr(networks, name) for name in networks.__all__)
