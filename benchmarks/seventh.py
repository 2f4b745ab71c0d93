"""A seventh set: laws of other kinds (rational, exponential, with removable singularities), beams, waves that leave.

    python benchmarks/seventh.py                         all of them, seed 0
    python benchmarks/seventh.py nerve --seed 71 --max-seconds 120
"""

import jax.numpy as jnp
import numpy as np
from development import P, add, main, ref
from scipy.integrate import solve_ivp
from scipy.special import lambertw
from textbook import cheb, table

import dsgnar as ds
from dsgnar.problem.reference import interior_grid

P.clear()
pi = np.pi


@add("enzyme")
def enzyme():
    """Michaelis and Menten: a substrate in micromoles per litre that an enzyme uses up within an hour, in seconds."""
    most, half, start, T = 0.05, 20.0, 80.0, 3600.0
    p = ds.Problem(
        ds.Box(t=(0, T)),
        ("S",),
        {"law": ds.interior(lambda S: S.t + most * S / (half + S)), "start": ds.initial(lambda S: S - start)},
    )

    def exact(t):
        return {"S": half * lambertw(start / half * np.exp((start - most * t) / half)).real}

    return p, ref(dict(t=(0, T, 300)), exact)


@add("nerve")
def nerve():
    """Hodgkin and Huxley: one impulse of a squid's axon, in millivolts and milliseconds; its rates are 0/0 at a voltage."""
    T, current = 15.0, 10.0

    def rates(V, np):
        ratio = lambda z: np.where(np.abs(z) < 1e-6, 1 - z / 2, z / np.where(np.abs(z) < 1e-6, 1, np.expm1(z)))
        alpha = 0.1 * ratio((10 - V) / 10), ratio((25 - V) / 10), 0.07 * np.exp(-V / 20)
        beta = 0.125 * np.exp(-V / 80), 4 * np.exp(-V / 18), 1 / (1 + np.exp((30 - V) / 10))
        return alpha, beta

    def membrane(V, n, m, h):
        return current - 36 * n**4 * (V - -12) - 120 * m**3 * h * (V - 115) - 0.3 * (V - 10.6)

    def gate(k):
        def law(V, x):
            alpha, beta = rates(V.value, jnp)
            return alpha[k] * (1 - x) - beta[k] * x

        return law

    n_, m_, h_ = (gate(k) for k in range(3))
    at_rest = [(a / (a + b)).item() for a, b in zip(*rates(np.array(0.0), np), strict=True)]
    p = ds.Problem(
        ds.Box(t=(0, T)),
        ("V", "n", "m", "h"),
        {
            "membrane": ds.interior(lambda V, n, m, h: V.t - membrane(V, n, m, h)),
            "n gates": ds.interior(lambda V, n: n.t - n_(V, n)),
            "m gates": ds.interior(lambda V, m: m.t - m_(V, m)),
            "h gates": ds.interior(lambda V, h: h.t - h_(V, h)),
            "V0": ds.initial(lambda V: V),
            "n0": ds.initial(lambda n: n - at_rest[0]),
            "m0": ds.initial(lambda m: m - at_rest[1]),
            "h0": ds.initial(lambda h: h - at_rest[2]),
        },
    )

    def rhs(t, y):
        alpha, beta = rates(np.array(y[0]), np)
        return [membrane(*y), *(a * (1 - x) - b * x for a, b, x in zip(alpha, beta, y[1:], strict=True))]

    where = {"t": interior_grid(0, T, 400)}
    s = solve_ivp(rhs, (0, T), [0.0, *at_rest], method="DOP853", rtol=1e-13, atol=1e-13, t_eval=where["t"])
    return p, table(where, dict(zip("Vnmh", s.y, strict=True)), 1e-10, "DOP853")


@add("footbridge")
def footbridge():
    """A beam on two supports that swings in two modes: u_tt + c^2 u_xxxx = 0, in metres and seconds."""
    L, T, c2 = 20.0, 6.0, 2000.0
    mode = lambda k: (k * pi / L) ** 2 * c2**0.5
    p = ds.Problem(
        ds.Box(x=(0, L), t=(0, T)),
        ("u",),
        {
            "beam": ds.interior(lambda u: u.tt + c2 * u.xxxx),
            "bent": ds.initial(lambda u, x: u - 0.02 * jnp.sin(pi * x / L) - 0.005 * jnp.sin(2 * pi * x / L)),
            "at rest": ds.initial(lambda u: u.t),
            "supports": ds.boundary(lambda u: u),
            "no moment": ds.boundary(lambda u: u.xx),
        },
    )

    def exact(x, t):
        modes = (a * np.sin(k * pi * x / L) * np.cos(mode(k) * t) for k, a in ((1, 0.02), (2, 0.005)))
        return {"u": sum(modes)}

    return p, ref(dict(x=(0, L, 80), t=(0, T, 60)), exact)


@add("flame")
def flame():
    """Zeldovich's flame u_t = u_xx + u^2 (1 - u), which travels at a speed of 1/sqrt(2)."""
    front = lambda x, t, np=np: 1 / (1 + np.exp((x - t / 2**0.5) / 2**0.5))
    p = ds.Problem(
        ds.Box(x=(-10, 20), t=(0, 12)),
        ("u",),
        {
            "flame": ds.interior(lambda u: u.t - u.xx - u**2 * (1 - u)),
            "start": ds.initial(lambda u, x: u - front(x, 0.0, jnp)),
            "ends": ds.boundary(lambda u, x, t: u - front(x, t, jnp)),
        },
    )
    return p, ref(dict(x=(-10, 20, 120), t=(0, 12, 40)), lambda x, t: {"u": front(x, t)})


@add("biofilter")
def biofilter():
    """A column with bacteria (Monod's law) through which dirty water flows: steady state in metres and g/m^3."""
    L, v, D, most, half, inlet = 2.0, 1e-4, 2e-6, 8e-4, 1.5, 20.0
    p = ds.Problem(
        ds.Box(x=(0, L)),
        ("c",),
        {
            "balance": ds.interior(lambda c: v * c.x - D * c.xx + most * c / (half + c)),
            "inlet": ds.boundary(lambda c: v * c - D * c.x - v * inlet, faces=[("x", "lower")]),
            "outlet": ds.boundary(lambda c: c.x, faces=[("x", "upper")]),
        },
    )
    x, X = cheb(120, 0, L)
    first, last = np.argmin(x), np.argmax(x)
    c = inlet * np.exp(-3 * x / L)
    for _ in range(60):
        F = v * (X @ c) - D * (X @ X @ c) + most * c / (half + c)
        J = v * X - D * X @ X + np.diag(most * half / (half + c) ** 2)
        F[first], J[first] = v * c[first] - D * (X[first] @ c) - v * inlet, v * np.eye(len(x))[first] - D * X[first]
        F[last], J[last] = X[last] @ c, X[last]
        step = np.linalg.solve(J, -F)
        c = c + min(1.0, 5 / np.max(np.abs(step))) * step
    where = {"x": interior_grid(0, L, 200)}
    fit = np.polynomial.chebyshev.Chebyshev.fit(x, c, 120, domain=[0, L])
    return p, table(where, {"c": fit(where["x"])}, 1e-9, "Chebyshev collocation and Newton")


@add("harbour")
def harbour():
    """A plane wave that enters a square and leaves it without echo, as two real unknowns."""
    k, angle = 12.0, 0.4
    a, b = k * np.cos(angle), k * np.sin(angle)
    wave = lambda x, y, np=np: (np.cos(a * x + b * y), np.sin(a * x + b * y))

    def given(x, y, n):  # u_n - i k u of the exact wave
        re, im = wave(x, y, jnp)
        along = a * n.x + b * n.y
        return -along * im + k * im, along * re - k * re

    p = ds.Problem(
        ds.Box(x=(0, 1), y=(0, 1)),
        ("re", "im"),
        {
            "re": ds.interior(lambda re: ds.laplacian(re) + k**2 * re),
            "im": ds.interior(lambda im: ds.laplacian(im) + k**2 * im),
            "re leaves": ds.boundary(lambda re, im, x, y, n: re.n + k * im - given(x, y, n)[0]),
            "im leaves": ds.boundary(lambda re, im, x, y, n: im.n - k * re - given(x, y, n)[1]),
        },
    )
    return p, ref(dict(x=(0, 1, 60), y=(0, 1, 60)), lambda x, y: dict(zip(("re", "im"), wave(x, y), strict=True)))


@add("budworm")
def budworm():
    """Spruce budworms that birds eat (Holling's third law), from a small patch on, with diffusion."""
    T, r, K = 20.0, 0.55, 10.0
    p = ds.Problem(
        ds.Box(x=(0, 10), t=(0, T)),
        ("u",),
        {
            "law": ds.interior(lambda u: u.t - 0.5 * u.xx - r * u * (1 - u / K) + u**2 / (1 + u**2)),
            "start": ds.initial(lambda u, x: u - 4 * jnp.exp(-((x - 3) ** 2))),
            "ends": ds.boundary(lambda u: u.n),
        },
    )
    n = 160
    x = (np.arange(n) + 0.5) * 10 / n
    C = np.cos(pi / 10 * np.outer(x, np.arange(n)))
    back = np.linalg.inv(C)
    second = C @ np.diag(-((pi / 10 * np.arange(n)) ** 2)) @ back
    where = {"x": interior_grid(0, 10, 80), "t": interior_grid(0, T, 40)}
    rhs = lambda t, u: 0.5 * second @ u + r * u * (1 - u / K) - u**2 / (1 + u**2)
    s = solve_ivp(rhs, (0, T), 4 * np.exp(-((x - 3) ** 2)), method="Radau", rtol=1e-10, atol=1e-12, t_eval=where["t"])
    at = np.cos(pi / 10 * np.outer(where["x"], np.arange(n))) @ back
    return p, table(where, {"u": at @ s.y}, 1e-7, "cosine series, Radau")


@add("infiltration")
def infiltration():
    """Water that seeps into dry soil (Richards, exponential law): steady head in metres above a water table."""
    alpha, Ks, q, depth = 3.0, 1e-5, 4e-6, 2.0
    p = ds.Problem(
        ds.Box(z=(0, depth)),
        ("h",),
        {
            "flow": ds.interior(lambda h: Ks * jnp.exp(alpha * h.value) * (h.zz + alpha * h.z * (h.z + 1))),
            "table": ds.boundary(lambda h: h, faces=[("z", "lower")]),
            "rain": ds.boundary(lambda h: Ks * jnp.exp(alpha * h.value) * (h.z + 1) - q, faces=[("z", "upper")]),
        },
    )
    exact = lambda z: {"h": np.log((q + (Ks - q) * np.exp(-alpha * z)) / Ks) / alpha}
    return p, ref(dict(z=(0, depth, 200)), exact)


@add("lagoon")
def lagoon():
    """Waves over ground that rises: u_tt = (c(x)^2 u_x)_x, a manufactured swell in metres and seconds."""
    L, T, g = 300.0, 30.0, 9.81
    deep = lambda x, np=np: 3 + 2 * np.cos(pi * x / L)
    k, w = 2 * pi / 150, 2 * pi / 15

    def force(x, t, np):
        c, s = 0.3 * np.cos(k * x - w * t), 0.3 * np.sin(k * x - w * t)
        return -w * w * c + g * (deep(x, np) * k * k * c - 2 * pi / L * np.sin(pi * x / L) * k * s)

    p = ds.Problem(
        ds.Box(x=(0, L), t=(0, T)),
        ("u",),
        {
            "wave": ds.interior(
                lambda u, x, t: (
                    u.tt
                    - g * (deep(x, jnp) * u.xx - 2 * pi / L * jnp.sin(pi * x / L) * u.x)
                    - force(x, t, jnp)
                )
            ),
            "start": ds.initial(lambda u, x: u - 0.3 * jnp.cos(k * x)),
            "rate": ds.initial(lambda u, x: u.t - 0.3 * w * jnp.sin(k * x)),
            "ends": ds.boundary(lambda u, x, t: u - 0.3 * jnp.cos(k * x - w * t)),
        },
    )

    return p, ref(dict(x=(0, L, 100), t=(0, T, 60)), lambda x, t: {"u": 0.3 * np.cos(k * x - w * t)})


if __name__ == "__main__":
    main()
