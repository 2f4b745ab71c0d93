"""A fourth set: textbook problems of seven kinds that were not solved, or not well, when they were first stated.

python benchmarks/textbook.py                         all of them, seed 0
python benchmarks/textbook.py rod_shock --seed 1
"""

import development
import jax.numpy as jnp
import numpy as np
from development import P, add, main, pi, ref
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

import dsgnar as ds
from dsgnar.problem.reference import interior_grid

P.clear()


def table(axes, values, accuracy, source):
    """Values on a grid."""
    flat = {name: np.asarray(value).ravel() for name, value in values.items()}
    return ds.Reference.on_grid(axes, lambda **_: flat, accuracy, source)


def cheb(n, lo, hi):
    """Chebyshev nodes from lo to hi and the differentiation matrix."""
    k = np.arange(n + 1)
    x = np.cos(pi * k / n)
    c = np.r_[2, np.ones(n - 1), 2] * (-1.0) ** k
    X = np.tile(x[:, None], n + 1)
    D = np.outer(c, 1 / c) / (X - X.T + np.eye(n + 1))
    D -= np.diag(D.sum(1))
    return (lo + hi) / 2 - (hi - lo) / 2 * x, -D * 2 / (hi - lo)


def bary(nodes, values, x):
    """Barycentric interpolation from Chebyshev points; values (nodes, ...)."""
    n = len(nodes) - 1
    w = (-1.0) ** np.arange(n + 1)
    w[[0, -1]] /= 2
    q = w / (x[:, None] - nodes)
    return (q @ values) / q.sum(1)[:, None]


@add("sir")
def sir():
    """An epidemic in a city of eight million, in days."""
    N, b, g, T = 8e6, 0.35, 0.1, 120.0
    p = ds.Problem(
        ds.Box(t=(0, T)),
        ("S", "I", "R"),
        {
            "susceptible": ds.interior(lambda S, I: S.t + b * S * I / N),
            "infected": ds.interior(lambda S, I: I.t - b * S * I / N + g * I),
            "recovered": ds.interior(lambda I, R: R.t - g * I),
            "S0": ds.initial(lambda S: S - (N - 100)),
            "I0": ds.initial(lambda I: I - 100),
            "R0": ds.initial(lambda R: R),
        },
    )
    f = lambda t, y: [-b * y[0] * y[1] / N, b * y[0] * y[1] / N - g * y[1], g * y[1]]
    s = solve_ivp(f, (0, T), [N - 100, 100.0, 0.0], method="DOP853", rtol=1e-13, atol=1e-6, dense_output=True)
    t = interior_grid(0, T, 400)
    return p, table({"t": t}, dict(zip("SIR", s.sol(t), strict=True)), 1e-11, "DOP853")


@add("rod_shock")
def rod_shock():
    """A copper rod at 293 K, one end suddenly at 400 K: initial and boundary values differ at a corner."""
    L, a, T = 0.5, 1.1e-4, 600.0
    p = ds.Problem(
        ds.Box(x=(0, L), t=(0, T)),
        ("T",),
        {
            "heat": ds.interior(lambda T: T.t - a * T.xx),
            "start": ds.initial(lambda T: T - 293),
            "hot end": ds.boundary(lambda T: T - 400, faces=[("x", "lower")]),
            "cold end": ds.boundary(lambda T: T - 293, faces=[("x", "upper")]),
        },
    )

    def exact(x, t):
        n = np.arange(1, 200)[:, None]
        s = (2 / (n * pi) * np.sin(n * pi * x / L) * np.exp(-a * (n * pi / L) ** 2 * t)).sum(0)
        return {"T": 293 + 107 * (1 - x / L - s)}

    return p, ref(dict(x=(0, L, 60), t=(0, T, 50)), exact)


@add("slab_radiation")
def slab_radiation():
    """A steel slab at 1200 K; one face insulated, the other radiates to 300 K. SI units."""
    L, k, rc, eps, sig, T, Ta = 0.05, 15.0, 4e6, 0.8, 5.670374e-8, 600.0, 300.0
    p = ds.Problem(
        ds.Box(x=(0, L), t=(0, T)),
        ("T",),
        {
            "heat": ds.interior(lambda T: rc * T.t - k * T.xx),
            "start": ds.initial(lambda T: T - 1200),
            "insulated": ds.boundary(lambda T: T.x, faces=[("x", "lower")]),
            "radiating": ds.boundary(lambda T: k * T.x + eps * sig * (T**4 - Ta**4), faces=[("x", "upper")]),
        },
    )
    grid = {"x": interior_grid(0, L, 60), "t": interior_grid(0, T, 50)}

    def lines(n):
        x, D = cheb(n, 0, L)

        def f(t, u):
            g = D @ u
            g[0], g[-1] = 0, -eps * sig / k * (u[-1] ** 4 - Ta**4)
            return k / rc * (D @ g)

        s = solve_ivp(f, (0, T), np.full(n + 1, 1200.0), method="Radau", rtol=1e-9, atol=1e-7, t_eval=grid["t"])
        return bary(x, s.y, grid["x"])

    u = lines(48)
    return p, table(grid, {"T": u}, 1e-8, "Chebyshev lines, Radau")


@add("acoustics")
def acoustics():
    """Sound in an organ pipe of one metre, closed at x = 0 and open at x = L: pressure and velocity in SI units."""
    L, rho, c, T = 1.0, 1.2, 343.0, 0.01
    modes = ((20.0, pi / 2), (8.0, 5 * pi / 2))
    p = ds.Problem(
        ds.Box(x=(0, L), t=(0, T)),
        ("p", "u"),
        {
            "mass": ds.interior(lambda p, u: p.t + rho * c**2 * u.x),
            "momentum": ds.interior(lambda p, u: rho * u.t + p.x),
            "p0": ds.initial(lambda p, x: p - sum(a * jnp.cos(k * x) for a, k in modes)),
            "u0": ds.initial(lambda u: u),
            "closed": ds.boundary(lambda u: u, faces=[("x", "lower")]),
            "open": ds.boundary(lambda p: p, faces=[("x", "upper")]),
        },
    )
    ex = lambda x, t: {
        "p": sum(a * np.cos(k * x) * np.cos(c * k * t) for a, k in modes),
        "u": sum(a / (rho * c) * np.sin(k * x) * np.sin(c * k * t) for a, k in modes),
    }
    return p, ref(dict(x=(0, L, 60), t=(0, T, 80)), ex)


@add("plate_robin")
def plate_robin():
    """A steel plate (25 cm x 10 cm): one edge at 400 K, the top cooled by air at 293 K, the others insulated. The
    conditions disagree at one corner, as they do in textbooks (r log r)."""
    k, h, L, H, Ta, Tb = 50.0, 500.0, 0.25, 0.1, 293.0, 400.0
    p = ds.Problem(
        ds.Box(x=(0, L), y=(0, H)),
        ("T",),
        {
            "conduction": ds.interior(lambda T: T.xx + T.yy),
            "hot": ds.boundary(lambda T: T - Tb, faces=[("x", "lower")]),
            "insulated right": ds.boundary(lambda T: T.x, faces=[("x", "upper")]),
            "insulated bottom": ds.boundary(lambda T: T.y, faces=[("y", "lower")]),
            "cooled": ds.boundary(lambda T: k * T.y + h * (T - Ta), faces=[("y", "upper")]),
        },
    )
    z = np.array(
        [
            brentq(lambda z: z * np.sin(z) - h * H / k * np.cos(z), n * pi + 1e-12, n * pi + pi / 2 + 1e-9, xtol=1e-14)
            for n in range(2000)
        ]
    )
    mu = z / H
    a = (np.sin(z) / mu) / (H / 2 + np.sin(2 * z) / (4 * mu))
    lx, ly = interior_grid(0, L, 80), interior_grid(0, H, 40)
    fx = (np.exp(-np.outer(lx, mu)) + np.exp(-np.outer(2 * L - lx, mu))) / (1 + np.exp(-2 * L * mu))
    T = Ta + (Tb - Ta) * np.einsum("xn,n,yn->xy", fx, a, np.cos(np.outer(ly, mu)))
    return p, table({"x": lx, "y": ly}, {"T": T}, 1e-11, "series")


@add("klein_gordon")
def klein_gordon():
    """A packet under u_tt = u_xx - u - u^3 on a periodic line."""
    L, T = 20.0, 6.0
    u0 = lambda x, xp: xp.exp(-(x**2)) * xp.cos(3 * x)
    p = ds.Problem(
        ds.Box(x=(-10, 10), t=(0, T)),
        ("u",),
        {
            "pde": ds.interior(lambda u: u.tt - u.xx + u + u**3),
            "shape": ds.initial(lambda u, x: u - u0(x, jnp)),
            "rest": ds.initial(lambda u: u.t),
        },
        periodic=("x",),
    )
    n = 512
    g = -10 + L * np.arange(n) / n
    k = 2 * pi * np.fft.rfftfreq(n, 1 / n) / L
    f = lambda t, y: np.r_[y[n:], np.fft.irfft(-(k**2) * np.fft.rfft(y[:n]), n) - y[:n] - y[:n] ** 3]
    x, t = interior_grid(-10, 10, 120), interior_grid(0, T, 60)
    s = solve_ivp(f, (0, T), np.r_[u0(g, np), np.zeros(n)], method="DOP853", rtol=1e-12, atol=1e-12, t_eval=t)
    phase = np.exp(2j * pi * np.outer(x + 10, np.fft.fftfreq(n, 1 / n)) / L) / n
    return p, table({"x": x, "t": t}, {"u": (phase @ np.fft.fft(s.y[:n], axis=0)).real}, 1e-10, "Fourier")


@add("brusselator1d")
def brusselator1d():
    """The Brusselator with diffusion (Hairer and Wanner), to t = 6."""
    a, T = 1 / 50, 6.0
    p = ds.Problem(
        ds.Box(x=(0, 1), t=(0, T)),
        ("u", "v"),
        {
            "u": ds.interior(lambda u, v: u.t - 1 - u**2 * v + 4 * u - a * u.xx),
            "v": ds.interior(lambda u, v: v.t - 3 * u + u**2 * v - a * v.xx),
            "u0": ds.initial(lambda u, x: u - 1 - jnp.sin(2 * pi * x)),
            "v0": ds.initial(lambda v: v - 3),
            "u ends": ds.boundary(lambda u: u - 1),
            "v ends": ds.boundary(lambda v: v - 3),
        },
    )
    grid = {"x": interior_grid(0, 1, 60), "t": interior_grid(0, T, 60)}
    n = 48
    x, D = cheb(n, 0, 1)
    D2 = (D @ D)[1:-1]

    def f(t, y):
        u, v = np.r_[1, y[: n - 1], 1], np.r_[3, y[n - 1 :], 3]
        q = (u * u * v)[1:-1]
        return np.r_[1 + q - 4 * u[1:-1] + a * D2 @ u, 3 * u[1:-1] - q + a * D2 @ v]

    s = solve_ivp(
        f,
        (0, T),
        np.r_[1 + np.sin(2 * pi * x[1:-1]), np.full(n - 1, 3.0)],
        method="Radau",
        rtol=1e-10,
        atol=1e-10,
        t_eval=grid["t"],
    )
    one = np.ones(len(s.t))
    u, v = np.vstack([one, s.y[: n - 1], one]), np.vstack([3 * one, s.y[n - 1 :], 3 * one])
    return p, table(grid, {"u": bary(x, u, grid["x"]), "v": bary(x, v, grid["x"])}, 1e-8, "Chebyshev lines, Radau")


if __name__ == "__main__":
    assert P is development.P
    main()
