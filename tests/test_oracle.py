"""`--method paper` against Algorithms 1 to 5 of the paper, transcribed line by line in NumPy.

The transcription forms every matrix in full. It shares with the library only the points, the network and the random numbers.
Where `--method paper` is not the letter of Algorithm 1 a comment says so; docs/method.md has the list.
"""

import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.fft import dct
from scipy.interpolate import PchipInterpolator

import dsgnar as ds
from dsgnar.calculus.precision import x64
from dsgnar.calculus.streams import stream
from dsgnar.solving.context import Context
from dsgnar.solving.loop import advance
from dsgnar.solving.settings import CONSTANTS, NAMES, with_options
from small import problem

# --- the paper --------------------------------------------------------------------------------------------------------


def algorithm_1(F, X, theta, w, D, rho, *, s, K, q, W, wait, iterations, seed):
    """DSGNAR. `F(theta, m, X_m)` has the residuals of condition m; `rho` the targets of both stages."""
    lams, target, course = [], rho[0], []
    for k in range(iterations):
        C, OmegaS = get_sketch_operators(stream(seed, "sketch", k), [len(x) for x in X], theta.size, s, K)
        L = lambda t: 0.5 * sum(w[m] * np.mean(np.asarray(F(t, m, x)) ** 2) for m, x in enumerate(X))  # noqa: B023
        J, r = algorithm_2(F, X, C, OmegaS, theta, w)
        U, sigma, Vt = np.linalg.svd(J)
        step = lambda lam: -Vt.T @ (sigma / (sigma**2 + lam) * (U.T @ r))  # noqa: B023
        ratio = lambda p: (L(theta) - L(theta + OmegaS @ p)) / (0.5 * r @ r - 0.5 * np.sum((r + J @ p) ** 2))  # noqa: B023
        D_star, lam = algorithm_3(sigma, sigma * (U.T @ r), lambda lam: ratio(step(lam)), D, target, q)  # noqa: B023
        p = OmegaS @ step(lam)
        D_star = min(D_star, np.linalg.norm(p))  # Algorithm 1: D_star, also where an undamped step is shorter
        accepted = L(theta + p) < L(theta)
        course.append((L(theta), target, lam, D_star if accepted else min(D, D_star), accepted))
        theta = theta + p if accepted else theta
        D = D_star if accepted else min(D, D_star) / 3  # as section 3.4 has it; Algorithm 1: D / 3
        # Algorithm 1: at the theta before the step
        w = algorithm_4(np.array([np.mean(np.asarray(F(theta, m, x)) ** 2) for m, x in enumerate(X)]), w)
        target = algorithm_5(lams := [*lams, lam], target, rho, W, wait)
    return theta, w, D, course


def get_sketch_operators(rng, counts, d, s, K):
    """CountSketch, and SRCT: signs, permutation, cosine transform, restriction (sections 3.2.1 and 3.2.2)."""
    C = np.zeros((s, sum(counts)))
    for start, n in zip(np.cumsum([0, *counts]), counts, strict=False):
        h, sign = rng.integers(0, s, (K, n), np.int32), 2 * rng.integers(0, 2, (K, n), np.int8) - 1
        for k in range(K):
            for j in range(n):
                C[h[k, j], start + j] += sign[k, j] / np.sqrt(K)
    D, Pi = np.diag(2.0 * rng.integers(0, 2, d, np.int8) - 1), np.eye(d)[:, rng.permutation(d)]
    S = np.eye(d)[:, np.sort(rng.choice(d, s, replace=False))]
    return C, D @ Pi @ dct(np.eye(d), norm="ortho") @ S


def algorithm_2(F, X, C, OmegaS, theta, w):
    """Sketch: the whole Jacobian first, then both sides."""
    alpha = [np.sqrt(w[m] / len(x)) for m, x in enumerate(X)]
    J = np.concatenate(
        [a * np.asarray(jax.jacfwd(F)(theta, m, x)) for m, (a, x) in enumerate(zip(alpha, X, strict=True))]
    )
    r = np.concatenate([a * np.asarray(F(theta, m, x)) for m, (a, x) in enumerate(zip(alpha, X, strict=True))])
    return C @ (J @ OmegaS), C @ r


def algorithm_3(sigma, g, ratio, D, target, q):
    """LambdaSolve, with Newton's method as printed: from lambda = 0, on ||p|| - delta."""

    def damping(delta, lam=0.0):
        for _ in range(300):
            phi = np.sqrt(np.sum((g / (sigma**2 + lam)) ** 2)) - delta
            slope = -np.sum(g**2 / (sigma**2 + lam) ** 3) / (phi + delta)
            lam = max(0.0, lam - phi / slope)
        return lam

    delta = [(D / 3) ** (1 - i / (q - 1)) * (3 * D) ** (i / (q - 1)) for i in range(q)]
    lams = [damping(d) for d in delta]
    rho = np.minimum.accumulate([max(0.0, ratio(lam)) for lam in lams])
    if rho[-1] >= target:
        return 3 * D, lams[-1]
    if rho[0] <= target:
        return D / 3, lams[0]
    values, first = np.unique(rho, return_index=True)
    D_star = np.exp(PchipInterpolator(values, np.log(delta)[first])(target))
    return D_star, damping(D_star)


def algorithm_4(mean_squares, w, alpha=0.05, eps=1e-8):
    """UpdateWeights."""
    losses = w * mean_squares
    w = w * (np.mean(losses) / (losses + eps)) ** alpha
    return w / np.mean(w)


def algorithm_5(lams, target, rho, W, wait, slope=1e-4, correlation=0.1):
    """UpdateTargetRatio; the wait is the authors'."""
    if len(lams) < max(W, wait) or target == rho[1]:
        return target
    j, log = np.arange(W), np.log(lams[-W:])
    rises = np.polyfit(j, log, 1)[0] > slope and np.corrcoef(j, log)[0, 1] > correlation
    return rho[1] if rises else rho[0]


# --- the library ------------------------------------------------------------------------------------------------------

SIZES = dict(sketch=30, points=64, max_points=64, held_out=64, hashes=3, probes=24, window=4, wait=6, intervals=1)
ITERATIONS = 12


def heat(network):
    """The residuals of the small problem, with derivatives by plain nested differentiation."""

    def one(theta, m, x):
        u = lambda x: network(theta)(x)[0]
        u_x = lambda x: jax.grad(u)(x)[0]
        if m:
            return u(x) - jnp.sin(2 * jnp.pi * x[0])
        return jax.grad(u)(x)[1] - 0.1 * jax.grad(u_x)(x)[0]

    return jax.jit(lambda theta, m, x: jax.vmap(lambda p: one(theta, m, p))(x), static_argnums=1)


@pytest.mark.parametrize(("radius", "seed"), [(1.0, 0), (200.0, 1)], ids=["usual", "too far at first"])
@x64
def test_the_papers_method_is_the_papers_algorithm(radius, seed):
    options = dict(method="paper", precision="double", warm_up=0, radius=radius, seed=seed, **SIZES)
    context = Context.of(problem(), ds.MLP(widths=(6, 6)), with_options(ds.Settings(), options))
    state = context.start()
    X = context.collocation.active(state).flat
    theta, w, D, course = algorithm_1(
        heat(context.residuals.network), X, np.asarray(state.iterate.theta), state.iterate.weights, radius,
        context.settings.method.targets, s=30, K=3, q=24, W=4, wait=6, iterations=ITERATIONS, seed=seed,
    )  # fmt: skip
    records = []
    for _ in range(ITERATIONS):
        state, record = advance(context, state)
        records.append(record)
    assert {r.target for r in records} == set(context.settings.method.targets)  # both stages
    assert {r.accepted for r in records} == {True, False}
    ours = [(r.loss, r.target, r.lam, r.radius, r.accepted) for r in records]
    np.testing.assert_allclose(ours, course, rtol=1e-8, atol=1e-300)  # rounding grows a hundredfold in a few iterations
    np.testing.assert_allclose(state.iterate.theta, theta, rtol=0, atol=1e-9 * np.abs(theta).max())
    np.testing.assert_allclose(state.iterate.weights, w, rtol=1e-9)
    assert state.iterate.radius == pytest.approx(D, rel=1e-9)


def test_the_settings_that_the_docs_name_exist():
    page = (Path(__file__).parent.parent / "docs" / "method.md").read_text()
    table = page.split("What the paper calls by a letter")[1].split("\n\n")[1]
    named = [name for line in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", line.split("|")[2])]
    assert len(named) > 20 and set(named) <= {*NAMES, *CONSTANTS}
