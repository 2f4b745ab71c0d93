"""A third set: what an engineer or a chemist would state, in units of their own. Three of the five were not solved at first.

    python benchmarks/engineer.py                         all of them, seed 0
    python benchmarks/engineer.py robertson --seed 1
"""

import development
import jax.numpy as jnp
import numpy as np
from development import P, add, main, pi, ref
from scipy.integrate import solve_ivp

import dsgnar as ds
from dsgnar.problem.reference import interior_grid

P.clear()


@add("robertson")
def robertson():
    """Stiff kinetics over 40 s; B stays near 2e-5 and rises to it within milliseconds."""
    slow, square, fast = 0.04, 3e7, 1e4
    p = ds.Problem(
        ds.Box(t=(0, 40)),
        ("A", "B", "C"),
        {
            "a": ds.interior(lambda A, B, C: A.t + slow * A - fast * B * C),
            "b": ds.interior(lambda A, B, C: B.t - slow * A + fast * B * C + square * B**2),
            "c": ds.interior(lambda B, C: C.t - square * B**2),
            "A0": ds.initial(lambda A: A - 1),
            "B0": ds.initial(lambda B: B),
            "C0": ds.initial(lambda C: C),
        },
    )

    def rates(t, y):
        a, b = slow * y[0] - fast * y[1] * y[2], square * y[1] ** 2
        return [-a, a - b, b]

    limits = dict(rtol=1e-11, atol=[1e-14, 1e-18, 1e-14])
    s = solve_ivp(rates, (0, 40), [1.0, 0.0, 0.0], method="Radau", dense_output=True, **limits)
    exact = lambda t: dict(zip("ABC", s.sol(t), strict=True))
    return p, ds.Reference.on_grid({"t": interior_grid(0, 40, 400)}, exact, 1e-9, "Radau with tolerances of 1e-11")


@add("reactor")
def reactor():
    """Temperature in kelvin and a concentration of 1e-6 mol/m3 with Arrhenius' law, in 2 cm and 10 minutes."""
    L, tau, k, D, rate, E, c0 = 0.02, 300.0, 2e-7, 3e-7, 40.0, 3000.0, 1e-6
    heat, w = 0.05 / (rate * np.exp(-E / 300) * c0), pi / L
    temperature = lambda x, t, xp: 300 + 25 * xp.sin(w * x) * xp.exp(-t / tau)
    amount = lambda x, t, xp: c0 * (1 + 0.5 * xp.cos(w * x) * xp.exp(-2 * t / tau))
    reaction = lambda T, c: rate * jnp.exp(-E / T) * c

    def sources(x, t):
        T, c = temperature(x, t, jnp), amount(x, t, jnp)
        return (k * w * w - 1 / tau) * (T - 300) - heat * reaction(T, c), (D * w * w - 2 / tau) * (c - c0) + reaction(T, c)

    p = ds.Problem(
        ds.Box(x=(0, L), t=(0, 600)),
        ("T", "c"),
        {
            "heat": ds.interior(lambda T, c, x, t: T.t - k * T.xx - heat * reaction(T, c) - sources(x, t)[0]),
            "mass": ds.interior(lambda T, c, x, t: c.t - D * c.xx + reaction(T, c) - sources(x, t)[1]),
            "T0": ds.initial(lambda T, x: T - temperature(x, 0.0, jnp)),
            "c0": ds.initial(lambda c, x: c - amount(x, 0.0, jnp)),
            "warm walls": ds.boundary(lambda T: T - 300),
            "tight walls": ds.boundary(lambda c: c.x),
        },
    )
    exact = lambda x, t: {"T": temperature(x, t, np), "c": amount(x, t, np)}
    return p, ref(dict(x=(0, L, 60), t=(0, 600, 50)), exact)


@add("cavity_modes")
def cavity_modes():
    """Maxwell's equations in SI units between two walls: two standing waves, the faster one over 4.5 periods."""
    c, L, E0 = 299792458.0, 0.3, 150.0
    slow, fast = pi / L, 3 * pi / L
    T = 3 * pi / (c * slow)
    p = ds.Problem(
        ds.Box(x=(0, L), t=(0, T)),
        ("E", "B"),
        {
            "faraday": ds.interior(lambda E, B: B.t + E.x),
            "ampere": ds.interior(lambda E, B: E.t + c**2 * B.x),
            "E0": ds.initial(lambda E, x: E - E0 * (jnp.sin(slow * x) + 0.5 * jnp.sin(fast * x))),
            "B0": ds.initial(lambda B: B),
            "walls": ds.boundary(lambda E: E),
        },
    )

    def exact(x, t):
        both = lambda f, g: sum(a * f(k * x) * g(c * k * t) for a, k in ((1.0, slow), (0.5, fast)))
        return {"E": E0 * both(np.sin, np.cos), "B": -E0 / c * both(np.cos, np.sin)}

    return p, ref(dict(x=(0, L, 80), t=(0, T, 80)), exact)


@add("wave_packet")
def wave_packet():
    """Schroedinger's equation in a harmonic trap: a packet that swings once; real and imaginary parts."""
    a = 1.5

    def exact(x, t, xp):
        r = pi**-0.25 * xp.exp(-((x - a * xp.cos(t)) ** 2) / 2)
        phase = t / 2 + a * x * xp.sin(t) - a * a * xp.sin(2 * t) / 4
        return r * xp.cos(phase), -r * xp.sin(phase)

    p = ds.Problem(
        ds.Box(x=(-8, 8), t=(0, 2 * pi)),
        ("u", "v"),
        {
            "re": ds.interior(lambda u, v, x: u.t + v.xx / 2 - x**2 * v / 2),
            "im": ds.interior(lambda u, v, x: v.t - u.xx / 2 + x**2 * u / 2),
            "u0": ds.initial(lambda u, x: u - exact(x, 0.0, jnp)[0]),
            "v0": ds.initial(lambda v: v),
            "ends u": ds.boundary(lambda u: u),
            "ends v": ds.boundary(lambda v: v),
        },
    )
    grid = dict(x=(-8, 8, 120), t=(0, 2 * pi, 60))
    return p, ref(grid, lambda x, t: dict(zip("uv", exact(x, t, np), strict=True)))


@add("membrane")
def membrane():
    """A square membrane in centimetres and milliseconds: two of its modes."""
    L, c, T, w0 = 20.0, 12.0, 3.0, 0.4
    modes = ((1.0, 1, 1), (0.5, 2, 1))
    speed = lambda m, n: c * pi / L * np.hypot(m, n)
    shape = lambda m, n, x, y, xp: xp.sin(m * pi * x / L) * xp.sin(n * pi * y / L)
    start = lambda x, y: w0 * sum(a * shape(m, n, x, y, jnp) for a, m, n in modes)
    p = ds.Problem(
        ds.Box(x=(0, L), y=(0, L), t=(0, T)),
        ("w",),
        {
            "wave": ds.interior(lambda w: w.tt - c**2 * (w.xx + w.yy)),
            "w0": ds.initial(lambda w, x, y: w - start(x, y)),
            "rest": ds.initial(lambda w: w.t),
            "rim": ds.boundary(lambda w: w),
        },
    )
    exact = lambda x, y, t: {"w": w0 * sum(a * shape(m, n, x, y, np) * np.cos(speed(m, n) * t) for a, m, n in modes)}
    return p, ref(dict(x=(0, L, 24), y=(0, L, 24), t=(0, T, 24)), exact)


if __name__ == "__main__":
    assert P is development.P
    main()
