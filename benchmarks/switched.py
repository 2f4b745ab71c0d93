"""An eighth set: sources and coefficients that jump, at a place (heaters, loads, layers) or at a time (switches).

    python benchmarks/switched.py                        all of them, seed 0
    python benchmarks/switched.py heater --seed 81 --max-seconds 120

Solutions are closed forms, or eigenfunction series whose terms fall fast.
"""

import jax.numpy as jnp
import numpy as np
from development import P, add, main, ref
from scipy.special import erfc

import dsgnar as ds

P.clear()
pi = np.pi


@add("circuit")
def circuit():
    """A capacitor that is charged and discharged: a square wave of 5 V through 10 kOhm and 100 microfarad, in seconds."""
    tau, switches, T = 1.0, (0.7, 1.9, 3.1), 5.0
    drive = lambda t, np: 5.0 * np.where((t < switches[0]) | ((t > switches[1]) & (t < switches[2])), 1.0, 0.0)
    p = ds.Problem(
        ds.Box(t=(0, T)),
        ("v",),
        {"law": ds.interior(lambda v, t: tau * v.t + v - drive(t, jnp)), "start": ds.initial(lambda v: v)},
    )

    def exact(t):
        after = lambda s: np.where(t > s, 1 - np.exp(-np.maximum(t - s, 0) / tau), 0.0)
        return {"v": 5 * (after(0.0) - after(switches[0]) + after(switches[1]) - after(switches[2]))}

    return p, ref(dict(t=(0, T, 400)), exact)


@add("wall")
def wall():
    """A wall of 20 cm with a heating foil of 3 W per litre between 5 and 8 cm, 20 degrees inside and 0 outside; steady."""
    k, L, a, b, q = 0.8, 0.2, 0.05, 0.08, 3000.0
    p = ds.Problem(
        ds.Box(x=(0, L)),
        ("T",),
        {
            "balance": ds.interior(lambda T, x: k * T.xx + q * jnp.where((x > a) & (x < b), 1.0, 0.0)),
            "inside": ds.boundary(lambda T: T - 20, faces=[("x", "lower")]),
            "outside": ds.boundary(lambda T: T, faces=[("x", "upper")]),
        },
    )

    def exact(x):
        ramp = lambda s: np.maximum(x - s, 0) ** 2 / 2
        bent = -q / k * (ramp(a) - ramp(b))
        end = -q / k * ((L - a) ** 2 - (L - b) ** 2) / 2
        return {"T": 20 + bent - x / L * (20 + end)}

    return p, ref(dict(x=(0, L, 400)), exact)


@add("load")
def load():
    """A beam with an even load on its outer half, clamped at one end."""
    p = ds.Problem(
        ds.Box(x=(0, 2)),
        ("w",),
        {
            "beam": ds.interior(lambda w, x: w.d("x", 4) - jnp.where(x > 1, 3.0, 0.0)),
            "clamped": ds.boundary(lambda w: w, faces=[("x", "lower")]),
            "level": ds.boundary(lambda w: w.x, faces=[("x", "lower")]),
            "moment": ds.boundary(lambda w: w.xx, faces=[("x", "upper")]),
            "shear": ds.boundary(lambda w: w.xxx, faces=[("x", "upper")]),
        },
    )
    exact = lambda x: {"w": 3 * (np.maximum(x - 1, 0) ** 4 / 24 - x**3 / 6 + 1.5 * x**2 / 2)}
    return p, ref(dict(x=(0, 2, 300)), exact)


@add("heater")
def heater():
    """A rod that is heated between 0.4 and 0.6 from t = 0 on, its ends kept cold."""
    a, b, q, n = 0.4, 0.6, 20.0, np.arange(1, 3001)
    p = ds.Problem(
        ds.Box(x=(0, 1), t=(0, 0.2)),
        ("u",),
        {
            "heat": ds.interior(lambda u, x: u.t - u.xx - q * jnp.where((x > a) & (x < b), 1.0, 0.0)),
            "start": ds.initial(lambda u: u),
            "ends": ds.boundary(lambda u: u),
        },
    )
    strength = 2 * q * (np.cos(n * pi * a) - np.cos(n * pi * b)) / (n * pi)

    def exact(x, t):
        ramp = lambda s: np.maximum(x - s, 0) ** 2 / 2
        steady = -q * (ramp(a) - ramp(b)) + q * x * ((1 - a) ** 2 - (1 - b) ** 2) / 2
        places, place = np.unique(x, return_inverse=True)
        times, time = np.unique(t, return_inverse=True)
        fading = np.sin(pi * np.outer(places, n)) * (strength / (n * pi) ** 2) @ np.exp(-np.outer((n * pi) ** 2, times))
        return {"u": steady - fading[place, time]}

    return p, ref(dict(x=(0, 1, 100), t=(0, 0.2, 60)), exact)


@add("switch")
def switch():
    """A rod whose even heating is switched off at half time."""
    off, q = 0.5, 10.0
    p = ds.Problem(
        ds.Box(x=(0, 1), t=(0, 1)),
        ("u",),
        {
            "heat": ds.interior(lambda u, x, t: u.t - 0.2 * u.xx - q * jnp.where(t < off, 1.0, 0.0) * jnp.sin(pi * x)),
            "start": ds.initial(lambda u: u),
            "ends": ds.boundary(lambda u: u),
        },
    )
    k = 0.2 * pi**2
    since = lambda t, s: np.where(t > s, 1 - np.exp(-k * np.maximum(t - s, 0)), 0.0)
    exact = lambda x, t: {"u": q / k * (since(t, 0.0) - since(t, off)) * np.sin(pi * x)}
    return p, ref(dict(x=(0, 1, 60), t=(0, 1, 100)), exact)


@add("pulse")
def pulse():
    """A bar of copper, 10 cm long: one end is held 80 K hotter for 12 of 40 seconds."""
    D, L, off, T = 1.1e-4, 0.1, 12.0, 40.0
    p = ds.Problem(
        ds.Box(x=(0, L), t=(0, T)),
        ("T",),
        {
            "heat": ds.interior(lambda T: T.t - D * T.xx),
            "start": ds.initial(lambda T: T - 20),
            "hot": ds.boundary(lambda T, t: T - 20 - 80 * jnp.where(t < off, 1.0, 0.0), faces=[("x", "lower")]),
            "cold": ds.boundary(lambda T: T - 20, faces=[("x", "upper")]),
        },
    )

    def step(x, t):
        """The answer to a step of 1: erfc and its mirror images, which converge at all times."""
        s = np.sqrt(4 * D * np.maximum(t, 1e-300))
        k = np.arange(12)[:, None]
        images = erfc((2 * k * L + x) / s) - erfc((2 * (k + 1) * L - x) / s)
        return np.where(t > 0, images.sum(axis=0), 0.0)

    return p, ref(dict(x=(0, L, 80), t=(0, T, 120)), lambda x, t: {"T": 20 + 80 * (step(x, t) - step(x, t - off))})


@add("layers")
def layers():
    """Screened diffusion in two layers: -lap u + k(y)^2 u = sin(pi x), k = 4 below and 12 above y = 0.5."""
    c, k1, k2 = 0.5, 4.0, 12.0
    p = ds.Problem(
        ds.Box(x=(0, 1), y=(0, 1)),
        ("u",),
        {
            "law": ds.interior(lambda u, x, y: -ds.laplacian(u) + jnp.where(y < c, k1**2, k2**2) * u - jnp.sin(pi * x)),
            "sides": ds.boundary(lambda u: u),
        },
    )
    m1, m2 = np.sqrt(pi**2 + k1**2), np.sqrt(pi**2 + k2**2)
    # below (1 - cosh m1 y)/m1^2 + A sinh m1 y, above (1 - cosh m2 (1 - y))/m2^2 + B sinh m2 (1 - y)
    left = [[np.sinh(m1 * c), -np.sinh(m2 * (1 - c))], [m1 * np.cosh(m1 * c), m2 * np.cosh(m2 * (1 - c))]]
    right = [
        (1 - np.cosh(m2 * (1 - c))) / m2**2 - (1 - np.cosh(m1 * c)) / m1**2,
        np.sinh(m2 * (1 - c)) / m2 + np.sinh(m1 * c) / m1,
    ]
    A, B = np.linalg.solve(left, right)

    def exact(x, y):
        below = (1 - np.cosh(m1 * y)) / m1**2 + A * np.sinh(m1 * y)
        above = (1 - np.cosh(m2 * (1 - y))) / m2**2 + B * np.sinh(m2 * (1 - y))
        return {"u": np.sin(pi * x) * np.where(y < c, below, above)}

    return p, ref(dict(x=(0, 1, 60), y=(0, 1, 101)), exact)


@add("media")
def media():
    """A pulse that meets a medium in which waves are twice as fast: part of it comes back."""
    hump = lambda s, np: np.exp(-((s / 0.25) ** 2))
    p = ds.Problem(
        ds.Box(x=(-3, 3), t=(0, 1.6)),
        ("u",),
        {
            "wave": ds.interior(lambda u, x: u.tt - jnp.where(x < 0, 1.0, 4.0) * u.xx),
            "start": ds.initial(lambda u, x: u - hump(x + 1, jnp)),
            "rate": ds.initial(lambda u, x: u.t - 2 * (x + 1) / 0.25**2 * hump(x + 1, jnp)),
            "ends": ds.boundary(lambda u: u),
        },
    )

    def exact(x, t):
        arriving = hump(x + 1 - t, np) + hump(-x + 1 - t, np) / 3
        return {"u": np.where(x < 0, arriving, 4 / 3 * hump(x / 2 + 1 - t, np))}

    return p, ref(dict(x=(-3, 3, 150), t=(0, 1.6, 80)), exact)


if __name__ == "__main__":
    main()
