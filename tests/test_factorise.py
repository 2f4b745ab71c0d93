"""Every factorisation solves the same damped problem, as accurately as the SVD does."""

import ctypes
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsgnar.optimise import blas
from dsgnar.optimise.band import Band, reduce_to_band
from dsgnar.optimise.factorise import SVD, Auto, best
from dsgnar.optimise.subproblem import FactorisationError

SHAPES = [(48, 48), (37, 70), (70, 37), (33, 33), (5, 9), (1, 1), (1, 4)]
DOUBLE = [SVD("lapack"), SVD("jax"), Band(16), Band(2), Band(64), Auto()]
extended = pytest.mark.skipif(bool(np.finfo(np.longdouble).eps > 1e-18), reason="needs extended precision")


def matrix(rng, m, n, singular, dtype: type = np.float64):
    k = len(singular)
    U, V = (np.linalg.qr(rng.normal(size=(size, k)))[0] for size in (m, n))
    return ((U * singular) @ V.T).astype(dtype)


def exact_step(A, r, lam):
    """p(lam) from the augmented system by Gaussian elimination in extended precision (eps 1e-19)."""
    m, n = A.shape
    size, real = m + n, np.longdouble
    K = np.zeros((size, size + 1), real)
    delta = np.sqrt(real(lam))
    K[:m, :m], K[m:, m:size] = delta * np.eye(m), -delta * np.eye(n)
    K[:m, m:size], K[m:, :m], K[:m, size] = A, A.T, -r.astype(real)
    for k in range(size):
        pivot = k + np.argmax(np.abs(K[k:, k]))
        K[[k, pivot]] = K[[pivot, k]]
        K[k + 1 :, k:] -= np.outer(K[k + 1 :, k] / K[k, k], K[k, k:])
    x = np.zeros(size, real)
    for k in reversed(range(size)):
        x[k] = (K[k, size] - K[k, k + 1 : size] @ x[k + 1 :]) / K[k, k]
    return x[m:]


def distance(p, q):
    return float(np.linalg.norm((p - q).astype(float)) / np.linalg.norm(q.astype(float)))


@pytest.mark.parametrize("factorisation", DOUBLE, ids=repr)
@pytest.mark.parametrize("m, n", [(48, 48), (37, 70), (70, 37)])
def test_a_gradient_of_its_own(factorisation, m, n):
    rng = np.random.default_rng(m)
    A, r, g = matrix(rng, m, n, np.logspace(1, -3, min(m, n))), rng.normal(size=m), rng.normal(size=n)
    plain, same, other = (factorisation.factorise(A, r, gradient) for gradient in (None, A.T @ r, g))
    inside = np.linalg.pinv(A) @ (A @ g)  # the part of g in the row space of A
    for lam in (1.0, 1e-4):
        np.testing.assert_allclose(same.step(lam), plain.step(lam), rtol=1e-8, atol=1e-10)
        assert same.at(lam).decrease == pytest.approx(plain.at(lam).decrease, rel=1e-8)
        p = -np.linalg.solve(A.T @ A + lam * np.eye(n), inside)
        np.testing.assert_allclose(other.step(lam), p, rtol=1e-7, atol=1e-7 * np.abs(p).max())
        assert other.at(lam).decrease == pytest.approx(-g @ p - 0.5 * np.sum((A @ p) ** 2), rel=1e-7)
        h = 1e-4 * lam
        slope = (other.at(lam + h).norm - other.at(lam - h).norm) / (2 * h)
        assert other.at(lam).slope == pytest.approx(slope, rel=1e-4)
    assert other.solve_radius(0.5).norm == pytest.approx(0.5, rel=1e-9)
    with pytest.raises(ValueError, match="g must be a vector"):
        factorisation.factorise(A, r, g[:-1])


@extended
@pytest.mark.parametrize("m, n", [(60, 60), (40, 70), (70, 40)])
def test_band_is_as_accurate_as_the_svd_over_sixteen_orders(m, n):
    rng = np.random.default_rng(m)
    A, r = matrix(rng, m, n, np.logspace(2, -14, min(m, n))), rng.normal(size=m)
    svd, band = SVD().factorise(A, r), Band(16).factorise(A, r)
    for lam in (1e2, 1e-2, 1e-8, 1e-16, 1e-24):
        p = exact_step(A, r, lam)
        tolerance = 10 * distance(svd.step(lam), p)
        assert distance(band.step(lam), p) <= tolerance
        norm = float(np.linalg.norm(p.astype(float)))
        assert band.at(lam).norm == pytest.approx(norm, rel=tolerance)


@pytest.mark.parametrize("method", DOUBLE, ids=str)
@pytest.mark.parametrize("m, n", SHAPES)
def test_normal_equations_norm_decrease_and_radius(method, m, n):
    rng = np.random.default_rng(m + n)
    A, r = rng.normal(size=(m, n)), rng.normal(size=m)
    problem = method.factorise(A, r)
    assert problem.residual_norm == pytest.approx(np.linalg.norm(r), rel=1e-12)
    assert problem.gradient_norm == pytest.approx(np.linalg.norm(A.T @ r), rel=1e-12)
    for lam in (1e-3, 1.0, 1e5):
        p, trial = np.asarray(problem.step(lam)), problem.at(lam)
        assert p.shape == (n,) and p.dtype == A.dtype
        np.testing.assert_allclose(A.T @ (A @ p + r) + lam * p, 0, atol=1e-11 * float(np.linalg.norm(A.T @ r)))
        assert trial.norm == pytest.approx(np.linalg.norm(p), rel=1e-10)
        model = -r @ (A @ p) - 0.5 * np.sum((A @ p) ** 2)
        assert trial.decrease == pytest.approx(model, rel=1e-9)
        again = problem.solve_radius(1.3 * trial.norm)
        if again.lam > problem.floor:
            assert again.norm == pytest.approx(1.3 * trial.norm, rel=1e-10)
            assert np.linalg.norm(problem.step(again.lam)) == pytest.approx(again.norm, rel=1e-9)


@pytest.mark.parametrize("method", [SVD("lapack"), SVD("jax"), Band(8), Auto()], ids=str)
@pytest.mark.parametrize("m, n", [(40, 40), (33, 70)])
def test_single_precision(method, m, n):
    rng = np.random.default_rng(3)
    A, r = rng.normal(size=(m, n)).astype(np.float32), rng.normal(size=m).astype(np.float32)
    problem, reference = method.factorise(A, r), SVD().factorise(A.astype(float), r.astype(float))
    for lam in (1e-2, 1.0, 1e4):
        p = np.asarray(problem.step(lam))
        assert p.dtype == np.float32
        assert distance(p, reference.step(lam)) < 2e-4
        assert problem.at(lam).decrease == pytest.approx(reference.at(lam).decrease, rel=1e-4)
        radius = reference.at(lam).norm
        assert problem.solve_radius(radius).norm == pytest.approx(radius, rel=1e-10)


@pytest.mark.parametrize("method", [SVD("lapack"), Band(8)], ids=str)
def test_rank_deficient_matrices_have_steps_in_the_row_space(method):
    rng = np.random.default_rng(4)
    A, r = matrix(rng, 40, 60, np.ones(25)), rng.normal(size=40)
    problem = method.factorise(A, r)
    row_space = np.linalg.qr(A[:25].T)[0]
    for lam in (1e-6, 1e-2, 10.0):
        p = problem.step(lam)
        assert distance(row_space @ (row_space.T @ p), p) < 1e-6
        radius = problem.at(lam).norm
        assert problem.solve_radius(radius).norm == pytest.approx(radius, rel=1e-10)


@pytest.mark.parametrize("method", [SVD("lapack"), SVD("jax"), Band(4)], ids=str)
def test_lambda_zero_is_the_minimum_norm_step(method):
    rng = np.random.default_rng(5)
    A, r = rng.normal(size=(20, 45)), rng.normal(size=20)
    A[:, 30:] = 0.0  # parameters without influence
    problem = method.factorise(A, r)
    np.testing.assert_allclose(problem.step(0.0), -np.linalg.pinv(A) @ r, atol=1e-11)
    assert problem.solve_radius(1e6).lam == problem.floor < 1e-50
    assert problem.at(0.0).decrease == pytest.approx(0.5 * r @ r, rel=1e-12)


@pytest.mark.parametrize("method", [SVD("lapack"), Band(4)], ids=str)
@pytest.mark.parametrize("zero", ["A", "r", "part"])
def test_zeros(method, zero):
    rng = np.random.default_rng(6)
    A, r = rng.normal(size=(12, 20)).astype(np.float32), rng.normal(size=12).astype(np.float32)
    if zero == "part":
        A[5:] = 0.0  # exactly singular
    (r if zero == "r" else A)[...] *= zero == "part"
    problem = method.factorise(A, r)
    for radius in (1e-3, 1e-4, 2e-3):
        trial = problem.solve_radius(radius)
        assert trial.norm == pytest.approx(radius if zero == "part" else 0.0, rel=1e-10)
        assert np.all(np.isfinite(problem.step(trial.lam)))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31), st.floats(-28, 3), st.floats(0, 3))
def test_norm_falls_with_lambda(seed, exponent, gap):
    rng = np.random.default_rng(seed)
    A, r = matrix(rng, 24, 30, np.logspace(2, -14, 24)), rng.normal(size=24)
    problem = Band(4).factorise(A, r)
    lam = 10.0**exponent
    assert problem.at(lam).norm >= problem.at(lam * 10.0**gap).norm * (1 - 1e-6)
    assert problem.at(lam).decrease >= 0.0


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 40), st.sampled_from([2, 4, 8, 16]), st.integers(0, 2**31), st.sampled_from([np.float32, np.float64])
)
def test_the_band_form_has_the_singular_values_of_the_matrix(n, width, seed, dtype):
    A = np.asfortranarray(np.random.default_rng(seed).normal(size=(n, n)).astype(dtype))
    B, c = A.copy(order="F"), A[:, :1].copy(order="F")
    reduce_to_band(B, c, width)
    assert np.all(np.tril(B, -1) == 0) and np.all(np.triu(B, width + 1) == 0)
    tolerance = float(100 * np.finfo(dtype).eps * np.linalg.norm(A))
    np.testing.assert_allclose(np.linalg.svd(B)[1], np.linalg.svd(A)[1], atol=tolerance)
    assert np.linalg.norm(c) == pytest.approx(np.linalg.norm(A[:, 0]), rel=1e-5)


# --- BLAS -------------------------------------------------------------------------------------------------------------


def gemm_signature(integer, scalar="__pyx_t_5scipy_6linalg_11cython_blas_d *"):
    """The name of the capsule of dgemm in SciPy 1.17, with `integer` for the type of sizes."""
    i, s = integer, scalar
    return f"void (char *, char *, {i}, {i}, {i}, {s}, {s}, {i}, {s}, {i}, {s}, {s}, {i})"


@pytest.mark.parametrize("scalar", ["double *", "__pyx_t_5scipy_6linalg_11cython_blas_s *"])
def test_only_sizes_of_32_bits_are_called_in_place(scalar):
    assert blas.takes_32_bit_integers(gemm_signature("int *", scalar))
    for integer in ("int64_t *", "long *", "npy_int64 *", "__pyx_t_5scipy_6linalg_11cython_blas_blas_int *", "int"):
        assert not blas.takes_32_bit_integers(gemm_signature(integer, scalar))


@pytest.mark.parametrize("signature", ["", "void (int *)", gemm_signature("int *").replace(", int *)", ")")])
def test_another_number_of_arguments_is_not_called(signature):
    assert not blas.takes_32_bit_integers(signature)


def capsule(name: bytes):
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return make(1, name, None)  # an address that nobody may call


def test_the_name_of_the_capsule_decides(monkeypatch):
    names = [gemm_signature(integer).encode() for integer in ("int *", "int64_t *")]
    for exported, callable_in_place in [
        ({"dgemm": capsule(names[0])}, True),
        ({"dgemm": capsule(names[1])}, False),
        ({}, False),
    ]:
        monkeypatch.setattr(blas, "cython_blas", SimpleNamespace(__pyx_capi__=exported))
        assert (blas.in_place.__wrapped__("d") is not None) == callable_in_place


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("in_place", [True, False])
def test_products_on_blocks(dtype, in_place, monkeypatch):
    if not in_place:
        monkeypatch.setattr(blas, "in_place", lambda kind: None)
    rng = np.random.default_rng(8)
    whole = np.asfortranarray(rng.normal(size=(9, 8)).astype(dtype))
    X, Y = np.asfortranarray(rng.normal(size=(4, 3)).astype(dtype)), rng.normal(size=(3, 5)).astype(dtype)
    expected = whole.copy()
    expected[2:6, 1:6] = -2.0 * X @ Y + 0.5 * whole[2:6, 1:6]
    block = whole[2:6, 1:6]
    assert blas.gemm(-2.0, X, Y, 0.5, block) is block
    np.testing.assert_allclose(whole, expected, rtol=0, atol=20 * np.finfo(dtype).eps)
    np.testing.assert_allclose(blas.product(Y.T, X.T), (X @ Y).T, rtol=0, atol=20 * np.finfo(dtype).eps)


@pytest.mark.parametrize("m, n", [(48, 48), (37, 70), (70, 37)])
def test_the_band_form_without_products_in_place(m, n, monkeypatch):
    rng = np.random.default_rng(9)
    A, r = rng.normal(size=(m, n)), rng.normal(size=m)
    fast = Band(8).factorise(A, r)
    monkeypatch.setattr(blas, "in_place", lambda kind: None)
    copying = Band(8).factorise(A, r)
    for lam in (1e-3, 1.0):
        assert distance(copying.step(lam), fast.step(lam)) < 1e-12


# --- inputs -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [SVD("lapack"), SVD("jax"), Band(), Auto()], ids=str)
def test_inputs_are_left_alone_and_may_be_jax_arrays(method):
    rng = np.random.default_rng(7)
    A, r = rng.normal(size=(30, 50)).astype(np.float32), rng.normal(size=30).astype(np.float32)
    before = A.copy(), r.copy()
    with jax.enable_x64(True):
        step = method.factorise(jnp.asarray(A), jnp.asarray(r)).step(0.1)
    other = method.factorise(A, r)
    other.step(0.1)
    np.testing.assert_array_equal(A, before[0])
    np.testing.assert_array_equal(r, before[1])
    np.testing.assert_allclose(step, other.step(0.1), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("method", [SVD("lapack"), SVD("jax"), Band(), Auto()], ids=str)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_not_finite_raise(method, bad):
    A, r = np.ones((3, 4), np.float32), np.ones(3, np.float32)
    A[1, 2] = bad
    with pytest.raises(FactorisationError, match="inf or nan"):
        method.factorise(A, r)


def test_refusals_say_what_to_use():
    with pytest.raises(ValueError, match="even"):
        Band(3)


def test_the_choice():
    assert best(700, 1447, np.float32, "cpu") == Band()
    assert best(2000, 5125, np.float64, "cpu") == Band()
    assert best(2000, 2000, np.float64, "gpu") == SVD("jax")
    assert best(20, 20, np.float64, "cpu") == SVD("lapack")


def test_the_memory_of_a_wide_matrix_is_used_only_if_that_is_asked_for():
    rng = np.random.default_rng(0)
    A, r = rng.standard_normal((40, 90)), rng.standard_normal(40)
    before, given_up = A.copy(), A.copy()
    plain = Band(8).factorise(A, r)
    np.testing.assert_array_equal(A, before)
    in_place = Band(8).factorise(given_up, r, overwrite=True)
    assert in_place.outer is not None and np.shares_memory(in_place.outer[0], given_up)
    np.testing.assert_array_equal(in_place.step(0.1), plain.step(0.1))
    np.testing.assert_array_equal(Band(8).factorise(jnp.asarray(A), r, overwrite=True).step(0.1), plain.step(0.1))
    np.testing.assert_array_equal(A, before)
