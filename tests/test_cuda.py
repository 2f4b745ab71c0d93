"""The GPU path without a GPU: the kernels of a run are lowered for CUDA. This finds what CUDA lacks, not wrong numbers."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import dsgnar as ds
from dsgnar.calculus import choices
from dsgnar.calculus.streams import stream
from dsgnar.optimise.factorise import SVD, best
from dsgnar.optimise.jacobian import Jacobian
from dsgnar.optimise.optimiser import Active
from dsgnar.optimise.sketch import SRCT, AllColumns, Buckets, CountSketch, Groups
from dsgnar.tools import doctor
from small import WEIGHTS, points, problem, residuals


def lowered(function, *arguments) -> str:
    """The program for CUDA."""
    shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(np.shape(x), np.asarray(x).dtype), arguments)
    made = export.export(jax.jit(function), platforms=["cuda"])(*shapes)
    assert made.platforms == ("cuda",)
    return made.mlir_module()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_losses_gradients_and_sketches_are_lowered_for_cuda(dtype):
    res, theta = residuals(dtype)
    sets = points(64, 32)
    active = Active.of(res, sets, dtype)
    for number, batch, real in active.batched.shares[0]:
        for kernel in (res._squares[number], res._slopes[number]):
            text = lowered(kernel, theta, batch, real)
            assert "xf64" in text or "f64" in text  # squares are summed in float64
    for name in problem().conditions:
        lowered(res._values[name], theta, batch)
    columns = AllColumns(), Groups(20), SRCT(20)
    drawn = Buckets(20).draw(stream(0), active.counts)
    tables = tuple((x[t.index], t.sign) for x, t in zip(active.flat, drawn, strict=True))
    alpha = tuple(WEIGHTS.astype(dtype))
    lowered(Jacobian(res, Buckets(20), AllColumns())._buckets, theta, tables, alpha)
    for column in columns:
        operator = column.draw(stream(0), theta.size)
        lowered(column.apply, operator, jnp.zeros((20, theta.size), dtype))
        lowered(
            partial(column.lift, parameters=theta.size),
            operator,
            jnp.zeros(20 if column != columns[0] else theta.size, dtype),
        )
    hashes = tuple((part.bucket, part.sign) for part in CountSketch(20, 2).draw(stream(0), active.counts))
    paper = Jacobian(res, CountSketch(20, 2), SRCT(20))
    lowered(paper._hashes, theta, active.flat, hashes, alpha, SRCT(20).draw(stream(0), theta.size))
    lowered(partial(jnp.linalg.svd, full_matrices=False), jnp.zeros((20, 30), dtype))


@pytest.mark.parametrize("network", [ds.Siren(widths=(8, 8)), ds.GaborNet(features=8), ds.SPINN(rank=3, widths=(4,))])
def test_networks_are_lowered_for_cuda(network):
    from dsgnar.networks import Inputs
    from dsgnar.optimise.residuals import Residuals

    inputs = Inputs(((0.0, 1.0), (0.0, 1.0)), 1, ())
    plain = ds.Problem(
        domain=problem().domain, unknowns=("u",), conditions={"heat": ds.interior(lambda u: u.t - 0.1 * u.xx)}
    )
    res, theta = Residuals.of(plain, network.build(inputs, 1, key=jax.random.key(0), dtype=np.float32))
    lowered(res._squares[0], theta, jnp.zeros((16, 2), np.float32), jnp.asarray(16))


def test_choices_for_other_devices():
    assert best(2000, 5000, np.float32, "gpu") == SVD("jax") and not choices.of("gpu").threads
    assert choices.of("cpu").tested and not choices.of("gpu").tested and choices.here() is choices.CPU


def test_doctor_says_what_is_untested(monkeypatch):
    assert any("GPUs" in line for line in doctor.untested())
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert "no run was made on one" in doctor.untested()[0]
