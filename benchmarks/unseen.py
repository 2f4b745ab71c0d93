"""A second set of problems, written after the defaults were chosen on the first one (`development.py`).

    python benchmarks/unseen.py                           all of them, seed 0
    python benchmarks/unseen.py allen_cahn,orbit --seed 1

Textbook equations and those that papers about physics-informed networks use most. References are closed forms, Fourier
series with small steps in time, and DOP853.
"""

import development
import jax.numpy as jnp
import numpy as np
from development import P, add, main, ode, pi, ref
from scipy.integrate import solve_ivp

import dsgnar as ds
from dsgnar.problem.reference import interior_grid

P.clear()


def fourier(length, start, count, times, linear, nonlinear, x, lower=0.0):
    """A periodic evolution equation u_t = L u + N(u): Fourier series with an integrating factor, DOP853."""
    grid = lower + length * np.arange(count) / count
    k = 2 * pi * np.fft.fftfreq(count, 1 / count) / length
    u0 = start(grid)
    symbol = linear(k)
    mask = np.abs(np.fft.fftfreq(count, 1 / count)) < count / 3

    def slope(t, y):
        v = y.view(complex)
        factor = np.exp(symbol * t)
        return (nonlinear(np.fft.ifft(v * factor), k) * mask / factor).view(float)

    hats, v, now = [], np.fft.fft(u0.astype(complex)), 0.0
    phase = np.exp(1j * np.outer(x - lower, k)) / count
    for t in times:
        span = t - now
        found = solve_ivp(slope, (0, span), v.view(float), method="DOP853", rtol=1e-12, atol=1e-12 * count)
        v = (found.y[:, -1].copy().view(complex)) * np.exp(symbol * span)
        now = t
        hats.append(phase @ v)
    return np.array(hats).T


def table(axes, values, accuracy=1e-10):
    flat = {name: v.ravel() for name, v in values.items()}
    return ds.Reference.on_grid(axes, lambda **_: flat, accuracy, "Fourier series")


@add("allen_cahn")
def allen_cahn():
    p = ds.Problem(
        ds.Box(x=(-1, 1), t=(0, 1)),
        ("u",),
        {
            "pde": ds.interior(lambda u: u.t - 1e-4 * u.xx + 5 * u**3 - 5 * u),
            "ic": ds.initial(lambda u, x: u - x**2 * jnp.cos(pi * x)),
        },
        periodic=("x",),
    )
    x, t = interior_grid(-1, 1, 120), interior_grid(0, 1, 40)
    u = fourier(
        2, lambda x: x**2 * np.cos(pi * x), 1024, t, lambda k: -1e-4 * k**2 + 5,
        lambda u, k: -5 * np.fft.fft(u.real**3), x, -1,
    ).real  # fmt: skip
    return p, table({"x": x, "t": t}, {"u": u})


@add("convection30")
def convection30():
    p = ds.Problem(
        ds.Box(x=(0, 2 * pi), t=(0, 1)),
        ("u",),
        {"pde": ds.interior(lambda u: u.t + 30 * u.x), "ic": ds.initial(lambda u, x: u - jnp.sin(x))},
        periodic=("x",),
    )
    return p, ref(dict(x=(0, 2 * pi, 60), t=(0, 1, 100)), lambda x, t: {"u": np.sin(x - 30 * t)})


@add("reaction")
def reaction():
    h = lambda x, xp: xp.exp(-((x - pi) ** 2) / (2 * (pi / 4) ** 2))
    p = ds.Problem(
        ds.Box(x=(0, 2 * pi), t=(0, 1)),
        ("u",),
        {
            "pde": ds.interior(lambda u: u.t - 5 * u * (1 - u)),
            "ic": ds.initial(lambda u, x: u - h(x, jnp)),
        },
        periodic=("x",),
    )
    ex = lambda x, t: {"u": h(x, np) * np.exp(5 * t) / (h(x, np) * np.exp(5 * t) + 1 - h(x, np))}
    return p, ref(dict(x=(0, 2 * pi, 60), t=(0, 1, 60)), ex)


@add("soliton2")
def soliton2():
    # the cubic Schroedinger equation of Raissi et al., h(x, 0) = 2 sech x
    p = ds.Problem(
        ds.Box(x=(-5, 5), t=(0, pi / 2)),
        ("u", "v"),
        {
            "re": ds.interior(lambda u, v: u.t + 0.5 * v.xx + (u * u + v * v) * v),
            "im": ds.interior(lambda u, v: v.t - 0.5 * u.xx - (u * u + v * v) * u),
            "icu": ds.initial(lambda u, x: u - 2 / jnp.cosh(x)),
            "icv": ds.initial(lambda v: v),
        },
        periodic=("x",),
    )
    x, t = interior_grid(-5, 5, 100), interior_grid(0, pi / 2, 40)
    h = fourier(
        10, lambda x: 2 / np.cosh(x), 512, t, lambda k: -0.5j * k**2,
        lambda h, k: np.fft.fft(1j * np.abs(h) ** 2 * h), x, -5,
    )  # fmt: skip
    return p, table({"x": x, "t": t}, {"u": h.real, "v": h.imag})


@add("poisson3d")
def poisson3d():
    ex = lambda x, y, z, xp: xp.sin(pi * x) * xp.sin(pi * y) * xp.sin(2 * pi * z)
    p = ds.Problem(
        ds.Box(x=(0, 1), y=(0, 1), z=(0, 1)),
        ("u",),
        {
            "pde": ds.interior(lambda u, x, y, z: u.xx + u.yy + u.zz + 6 * pi**2 * ex(x, y, z, jnp)),
            "bc": ds.boundary(lambda u: u),
        },
    )
    g = (0, 1, 20)
    return p, ref(dict(x=g, y=g, z=g), lambda x, y, z: {"u": ex(x, y, z, np)})


@add("helmholtz14")
def helmholtz14():
    ex = lambda x, y, xp: xp.sin(pi * x) * xp.sin(4 * pi * y)
    p = ds.Problem(
        ds.Box(x=(-1, 1), y=(-1, 1)),
        ("u",),
        {
            "pde": ds.interior(lambda u, x, y: u.xx + u.yy + u - (1 - 17 * pi**2) * ex(x, y, jnp)),
            "bc": ds.boundary(lambda u: u),
        },
    )
    return p, ref(dict(x=(-1, 1, 60), y=(-1, 1, 60)), lambda x, y: {"u": ex(x, y, np)})


@add("poisson1d_two_scales")
def poisson1d_two_scales():
    ex = lambda x, xp: xp.sin(2 * pi * x) + 0.1 * xp.sin(50 * pi * x)
    p = ds.Problem(
        ds.Box(x=(0, 1)),
        ("u",),
        {
            "pde": ds.interior(
                lambda u, x: u.xx + (2 * pi) ** 2 * jnp.sin(2 * pi * x) + 0.1 * (50 * pi) ** 2 * jnp.sin(50 * pi * x)
            ),
            "bc": ds.boundary(lambda u: u),
        },
    )
    return p, ref(dict(x=(0, 1, 500)), lambda x: {"u": ex(x, np)})


@add("kovasznay")
def kovasznay():
    re = 20.0
    lam = re / 2 - np.sqrt(re**2 / 4 + 4 * pi**2)
    e = lambda x, y, xp: (
        1 - xp.exp(lam * x) * xp.cos(2 * pi * y),
        lam / (2 * pi) * xp.exp(lam * x) * xp.sin(2 * pi * y),
        0.5 * (1 - xp.exp(2 * lam * x)),
    )
    p = ds.Problem(
        ds.Box(x=(-0.5, 1), y=(-0.5, 1.5)),
        ("u", "v", "p"),
        {
            "x momentum": ds.interior(lambda u, v, p: u * u.x + v * u.y + p.x - (u.xx + u.yy) / re),
            "y momentum": ds.interior(lambda u, v, p: u * v.x + v * v.y + p.y - (v.xx + v.yy) / re),
            "mass": ds.interior(lambda u, v: u.x + v.y),
            "u": ds.boundary(lambda u, x, y: u - e(x, y, jnp)[0]),
            "v": ds.boundary(lambda v, x, y: v - e(x, y, jnp)[1]),
            "p": ds.boundary(lambda p, x, y: p - e(x, y, jnp)[2], faces=[("x", "upper")]),
        },
    )
    return p, ref(dict(x=(-0.5, 1, 40), y=(-0.5, 1.5, 40)), lambda x, y: dict(zip("uvp", e(x, y, np), strict=True)))


@add("taylor_green")
def taylor_green():
    nu = 0.05
    e = lambda x, y, t, xp: (
        -xp.cos(x) * xp.sin(y) * xp.exp(-2 * nu * t),
        xp.sin(x) * xp.cos(y) * xp.exp(-2 * nu * t),
        -0.25 * (xp.cos(2 * x) + xp.cos(2 * y)) * xp.exp(-4 * nu * t),
    )
    p = ds.Problem(
        ds.Box(x=(0, 2 * pi), y=(0, 2 * pi), t=(0, 2)),
        ("u", "v", "p"),
        {
            "x momentum": ds.interior(lambda u, v, p: u.t + u * u.x + v * u.y + p.x - nu * (u.xx + u.yy)),
            "y momentum": ds.interior(lambda u, v, p: v.t + u * v.x + v * v.y + p.y - nu * (v.xx + v.yy)),
            "mass": ds.interior(lambda u, v: u.x + v.y),
            "u": ds.initial(lambda u, x, y, t: u - e(x, y, t, jnp)[0]),
            "v": ds.initial(lambda v, x, y, t: v - e(x, y, t, jnp)[1]),
            "p": ds.at(lambda p, x, y, t: p - e(x, y, t, jnp)[2], {"x": 0.0, "y": 0.0, "t": np.linspace(0, 2, 64)}),
        },
        periodic=("x", "y"),
    )
    g = (0, 2 * pi, 20)
    return p, ref(dict(x=g, y=g, t=(0, 2, 10)), lambda x, y, t: dict(zip("uvp", e(x, y, t, np), strict=True)))


@add("biharmonic")
def biharmonic():
    # a simply supported plate in metres, load in pascal
    a, D, q = 2.0, 1.8e4, 5e3
    p = ds.Problem(
        ds.Box(x=(0, a), y=(0, a)),
        ("w",),
        {
            "plate": ds.interior(
                lambda w, x, y: D * (w.xxxx + 2 * w.xxyy + w.yyyy) - q * jnp.sin(pi * x / a) * jnp.sin(pi * y / a)
            ),
            "deflection": ds.boundary(lambda w: w),
            "moment x": ds.boundary(lambda w: w.xx, faces=[("x", "lower"), ("x", "upper")]),
            "moment y": ds.boundary(lambda w: w.yy, faces=[("y", "lower"), ("y", "upper")]),
        },
    )
    ex = lambda x, y: {"w": q * a**4 / (4 * D * pi**4) * np.sin(pi * x / a) * np.sin(pi * y / a)}
    return p, ref(dict(x=(0, a, 50), y=(0, a, 50)), ex)


@add("oscillator20")
def oscillator20():
    # twenty periods of a damped oscillator
    return ode(
        ("u", "v"),
        lambda t, y: [y[1], -4 * pi**2 * y[0] - 0.1 * y[1]],
        (1.0, 0.0),
        20.0,
        (lambda u, v: u.t - v, lambda u, v: v.t + 4 * pi**2 * u + 0.1 * v),
    )


@add("orbit")
def orbit():
    # a planet on an ellipse of eccentricity 0.5, second order, kilometres and days
    a, mu, ecc = 1.5e8, (2 * pi / 365.25) ** 2 * 1.5e8**3, 0.5
    r0, v0, T = a * (1 - ecc), np.sqrt(mu / a * (1 + ecc) / (1 - ecc)), 365.25
    found = solve_ivp(
        lambda t, y: [y[2], y[3], *(-mu * y[:2] / (y[0] ** 2 + y[1] ** 2) ** 1.5)],
        (0, T), [r0, 0, 0, v0], method="DOP853", rtol=1e-13, atol=1e-4, dense_output=True,
    )  # fmt: skip
    p = ds.Problem(
        ds.Box(t=(0, T)),
        ("x", "y"),
        {
            "fx": ds.interior(lambda x, y: x.tt + mu * x / (x * x + y * y) ** 1.5),
            "fy": ds.interior(lambda x, y: y.tt + mu * y / (x * x + y * y) ** 1.5),
            "x0": ds.initial(lambda x: x - r0),
            "y0": ds.initial(lambda y: y),
            "vx0": ds.initial(lambda x: x.t),
            "vy0": ds.initial(lambda y: y.t - v0),
        },
    )
    exact = lambda t: dict(zip("xy", found.sol(t)[:2], strict=True))
    return p, ds.Reference.on_grid({"t": interior_grid(0, T, 400)}, exact, 1e-10, "DOP853")


@add("fitzhugh")
def fitzhugh():
    return ode(
        ("u", "v"),
        lambda t, y: [y[0] - y[0] ** 3 / 3 - y[1] + 0.5, 0.08 * (y[0] + 0.7 - 0.8 * y[1])],
        (-1.0, 1.0),
        50.0,
        (lambda u, v: u.t - u + u**3 / 3 + v - 0.5, lambda u, v: v.t - 0.08 * (u + 0.7 - 0.8 * v)),
    )


@add("kinetics")
def kinetics():
    # a stiff reaction chain A -> B -> C, rates of 1e3 and 1 per second
    k1, k2 = 1e3, 1.0
    p = ds.Problem(
        ds.Box(t=(0, 2)),
        ("A", "B"),
        {
            "a": ds.interior(lambda A: A.t + k1 * A),
            "b": ds.interior(lambda A, B: B.t - k1 * A + k2 * B),
            "A0": ds.initial(lambda A: A - 1),
            "B0": ds.initial(lambda B: B),
        },
    )
    ex = lambda t: {"A": np.exp(-k1 * t), "B": k1 / (k1 - k2) * (np.exp(-k2 * t) - np.exp(-k1 * t))}
    return p, ref(dict(t=(0, 2, 4000)), ex)


@add("layer2d")
def layer2d():
    e = 0.05
    b = lambda s, xp: s - (xp.exp((s - 1) / e) - np.exp(-1 / e)) / (1 - np.exp(-1 / e))
    p = ds.Problem(
        ds.Box(x=(0, 1), y=(0, 1)),
        ("u",),
        {
            "pde": ds.interior(lambda u, x, y: -e * (u.xx + u.yy) + u.x + u.y - b(x, jnp) - b(y, jnp)),
            "bc": ds.boundary(lambda u: u),
        },
    )
    return p, ref(dict(x=(0, 1, 80), y=(0, 1, 80)), lambda x, y: {"u": b(x, np) * b(y, np)})


@add("string_si")
def string_si():
    # a string of 65 cm tuned to 440 Hz, five periods, millimetres of deflection
    L, f = 0.65, 440.0
    c = 2 * L * f
    p = ds.Problem(
        ds.Box(x=(0, L), t=(0, 5 / f)),
        ("u",),
        {
            "wave": ds.interior(lambda u: u.tt - c**2 * u.xx),
            "shape": ds.initial(lambda u, x: u - 1e-3 * jnp.sin(pi * x / L) - 3e-4 * jnp.sin(2 * pi * x / L)),
            "rest": ds.initial(lambda u: u.t),
            "ends": ds.boundary(lambda u: u),
        },
    )
    ex = lambda x, t: {
        "u": 1e-3 * np.sin(pi * x / L) * np.cos(pi * c * t / L)
        + 3e-4 * np.sin(2 * pi * x / L) * np.cos(2 * pi * c * t / L)
    }
    return p, ref(dict(x=(0, L, 60), t=(0, 5 / f, 200)), ex)


@add("heat_fast_wave")
def heat_fast_wave():
    p = ds.Problem(
        ds.Box(x=(0, 1), t=(0, 1)),
        ("u",),
        {
            "pde": ds.interior(lambda u: u.t - u.xx / (10 * pi) ** 2),
            "ic": ds.initial(lambda u, x: u - jnp.sin(10 * pi * x)),
            "bc": ds.boundary(lambda u: u),
        },
    )
    return p, ref(dict(x=(0, 1, 120), t=(0, 1, 40)), lambda x, t: {"u": np.exp(-t) * np.sin(10 * pi * x)})


@add("wave_bvp")
def wave_bvp():
    # u'' + k^2 u = 0 over ten wavelengths
    k = 20 * pi + 1.0
    p = ds.Problem(
        ds.Box(x=(0, 1)),
        ("u",),
        {
            "pde": ds.interior(lambda u: u.xx + k**2 * u),
            "left": ds.boundary(lambda u: u - 1, faces=[("x", "lower")]),
            "right": ds.boundary(lambda u: u, faces=[("x", "upper")]),
        },
    )
    return p, ref(dict(x=(0, 1, 400)), lambda x: {"u": np.sin(k * (1 - x)) / np.sin(k)})


@add("kdv_user")
def kdv_user():
    # two solitons of different speed, on a line cut off where they are small, not zero
    def ex(x, t, xp):
        a, b = 1.0, 0.6
        ea, eb = xp.exp(a * (x + 6) - a**3 * t), xp.exp(b * (x + 1) - b**3 * t)
        A = ((a - b) / (a + b)) ** 2
        F = 1 + ea + eb + A * ea * eb
        Fx = a * ea + b * eb + A * (a + b) * ea * eb
        Fxx = a * a * ea + b * b * eb + A * (a + b) ** 2 * ea * eb
        return 2 * (Fxx / F - (Fx / F) ** 2)

    def slope(x, t, h=1e-3):  # of fourth order; the slope is 3e-5 at most
        at = lambda k: ex(x + k * h, t, jnp)
        return (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * h)

    p = ds.Problem(
        ds.Box(x=(-20, 20), t=(0, 10)),
        ("u",),
        {
            "pde": ds.interior(lambda u: u.t + 6 * u * u.x + u.xxx),
            "ic": ds.initial(lambda u, x, t: u - ex(x, t, jnp)),
            "ends": ds.boundary(lambda u, x, t: u - ex(x, t, jnp)),
            "slope": ds.boundary(lambda u, x, t: u.x - slope(x, t), faces=[("x", "upper")]),
        },
    )
    return p, ref(dict(x=(-20, 20, 160), t=(0, 10, 60)), lambda x, t: {"u": ex(x, t, np)})


@add("heat4d")
def heat4d():
    ex = lambda x, y, z, t, xp: xp.exp(-t) * xp.cos(x) * xp.cos(y) * xp.cos(z)
    p = ds.Problem(
        ds.Box(x=(0, 1), y=(0, 1), z=(0, 1), t=(0, 1)),
        ("u",),
        {
            "pde": ds.interior(lambda u: u.t - (u.xx + u.yy + u.zz) / 3),
            "ic": ds.initial(lambda u, x, y, z, t: u - ex(x, y, z, t, jnp)),
            "bc": ds.boundary(lambda u, x, y, z, t: u - ex(x, y, z, t, jnp)),
        },
    )
    g = (0, 1, 10)
    return p, ref(dict(x=g, y=g, z=g, t=g), lambda x, y, z, t: {"u": ex(x, y, z, t, np)})


@add("black_scholes")
def black_scholes():
    # a call in the time that is left, smoothed over the first tenth of a year; currency and years
    from scipy.stats import norm

    K, r, s, d = 100.0, 0.05, 0.2, 0.1

    def value(S, tau, cdf, log, exp, sqrt):
        d1 = (log(S / K) + (r + s * s / 2) * tau) / (s * sqrt(tau))
        return S * cdf(d1) - K * exp(-r * tau) * cdf(d1 - s * sqrt(tau))

    import jax

    call = lambda S, tau: value(S, tau, jax.scipy.stats.norm.cdf, jnp.log, jnp.exp, jnp.sqrt)
    p = ds.Problem(
        ds.Box(S=(20, 200), t=(0, 1)),
        ("V",),
        {
            "pde": ds.interior(lambda V, S: V.t - 0.5 * s**2 * S**2 * V.SS - r * S * V.S + r * V),
            "payoff": ds.initial(lambda V, S: V - call(S, d)),
            "ends": ds.boundary(lambda V, S, t: V - call(S, t + d)),
        },
    )
    ex = lambda S, t: {"V": value(S, t + d, norm.cdf, np.log, np.exp, np.sqrt)}
    return p, ref(dict(S=(20, 200, 100), t=(0, 1, 40)), ex)


@add("fisher_wave")
def fisher_wave():
    k = 1 / np.sqrt(6)
    ex = lambda x, t, xp: 1 / (1 + xp.exp(k * x - 5 / 6 * t)) ** 2
    p = ds.Problem(
        ds.Box(x=(-20, 40), t=(0, 12)),
        ("u",),
        {
            "pde": ds.interior(lambda u: u.t - u.xx - u * (1 - u)),
            "ic": ds.initial(lambda u, x, t: u - ex(x, t, jnp)),
            "ends": ds.boundary(lambda u, x, t: u - ex(x, t, jnp)),
        },
    )
    return p, ref(dict(x=(-20, 40, 120), t=(0, 12, 40)), lambda x, t: {"u": ex(x, t, np)})


if __name__ == "__main__":
    assert P is development.P
    main()
