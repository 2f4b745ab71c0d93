"""The installed JAX computes what it should.

JAX 0.10.2 returned wrong numbers without any error; these tests fail there, and on the next such version.
"""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dsgnar.calculus import precision
from dsgnar.tools import doctor


def test_every_check_of_the_doctor_passes_and_has_its_own_name():
    checks = doctor.check_numerics() + doctor.check_versions()
    failed = [check for check in checks if not check.ok]
    assert not failed, "\n".join(f"{check.name}: {check.detail}" for check in failed)
    assert len({check.name for check in checks}) == len(checks)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [16385, 32769])
def test_jitted_product_and_reduction_as_reported(n, dtype):
    """jax issue 39103 as it was reported: the last row of |I x|^2 with x_i = (i, 0, 0)."""
    x = np.zeros((n, 3), dtype)
    x[:, 0] = np.arange(n)
    result = jax.jit(doctor.squared_norms)(np.eye(3, dtype=dtype), x)
    np.testing.assert_array_equal(np.asarray(result), x[:, 0] ** 2)


def test_a_single_wrong_row_is_found(monkeypatch):
    monkeypatch.setattr(doctor, "WIDTHS", (3,))
    monkeypatch.setattr(doctor, "LENGTHS", (20, 16385))

    def wrong_in_the_last_row(M, x):
        return doctor.squared_norms(M, x).at[-1].add(1)

    check = doctor.check_products(np.float64, wrong_in_the_last_row)
    assert not check.ok
    assert "1 of 16385 rows (width 3)" in check.detail
    assert "pip install" in check.detail


def test_reduced_precision_products_are_found(monkeypatch):
    def through_bfloat16(A, B):
        return (A.astype(jnp.bfloat16) @ B.astype(jnp.bfloat16)).astype(jnp.float32)

    monkeypatch.setattr(jnp, "matmul", through_bfloat16)
    check = doctor.check_float32_matmul()
    assert not check.ok
    assert "default_matmul_precision" in check.detail


def test_faulty_versions_are_named(monkeypatch):
    monkeypatch.setattr(doctor, "_version", lambda package: "0.10.2")
    for check in doctor.check_versions():
        assert not check.ok
        assert "39103" in check.detail and "pip install" in check.detail


def test_x64_decorator_leaves_the_caller_alone():
    inside = precision.x64(lambda: jnp.ones(1).dtype)
    with jax.enable_x64(False):
        assert inside() == np.float64
        assert jnp.ones(1).dtype == np.float32


def test_x64_decorator_works_in_a_new_thread():
    """A new thread starts with the process's setting, not with that of the thread that made it."""
    seen = []
    worker = precision.x64(lambda: seen.append(jnp.ones(1).dtype))
    thread = threading.Thread(target=worker)
    thread.start()
    thread.join()
    assert seen == [np.float64]


def test_environment_names_versions_and_device():
    facts = doctor.facts()
    assert facts["jax"] == jax.__version__
    assert facts["device"] == jax.devices()[0].platform
    assert all(isinstance(value, str) and value for value in facts.values())
