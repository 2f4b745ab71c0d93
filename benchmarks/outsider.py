"""A fifth set: problems of outsiders, and some of their kind, that were not solved when they were first stated.

python benchmarks/outsider.py                         all of them, seed 0
python benchmarks/outsider.py call --seed 1
"""

import inspect

import development
import jax.numpy as jnp
import numpy as np
from development import P, add, main, ref
from scipy.integrate import solve_ivp
from scipy.special import erfc, erfcx, ndtr
from textbook import bary, cheb, table

import dsgnar as ds
from dsgnar.problem.reference import interior_grid

P.clear()


@add("call")
def call():
    """A European call by the price of the share and the time to expiry: its payoff has a kink."""
    strike, rate, sigma, far = 100.0, 0.05, 0.2, 300.0
    p = ds.Problem(
        ds.Box(S=(0, far), tau=(0, 1), time="tau"),
        ("V",),
        {
            "pde": ds.interior(lambda V, S: V.tau - 0.5 * sigma**2 * S**2 * V.SS - rate * S * V.S + rate * V),
            "payoff": ds.initial(lambda V, S: V - jnp.maximum(S - strike, 0.0)),
            "worthless": ds.boundary(lambda V: V, faces=[("S", "lower")]),
            "far": ds.boundary(lambda V, tau: V - far + strike * jnp.exp(-rate * tau), faces=[("S", "upper")]),
        },
    )

    def exact(S, tau):
        d = (np.log(S / strike) + (rate + sigma**2 / 2) * tau) / (sigma * np.sqrt(tau))
        return {"V": S * ndtr(d) - strike * np.exp(-rate * tau) * ndtr(d - sigma * np.sqrt(tau))}

    return p, ref(dict(S=(0, far, 150), tau=(0, 1, 40)), exact)


@add("pulse")
def pulse():
    """A pulse of FitzHugh and Nagumo that starts in the middle of a fibre with sealed ends."""
    L, T, a, b, e = 40.0, 15.0, 0.7, 0.8, 0.08
    roots = np.roots([-b / 3, 0, b - 1, -a])
    rest = float(roots[np.abs(roots.imag) < 1e-12].real[0])
    p = ds.Problem(
        ds.Box(x=(0, L), t=(0, T)),
        ("u", "v"),
        {
            "u": ds.interior(lambda u, v: u.t - u.xx - u + u**3 / 3 + v),
            "v": ds.interior(lambda u, v: v.t - e * (u + a - b * v)),
            "u0": ds.initial(lambda u, x: u - rest - 2.5 * jnp.exp(-((x - L / 2) ** 2) / 10)),
            "v0": ds.initial(lambda v: v - (rest + a) / b),
            "ends": ds.boundary(lambda u: u.n),
        },
    )
    n = 140
    x, D = cheb(n, 0, L)
    ends = np.linalg.inv(D[np.ix_([0, n], [0, n])])  # values at the ends that make both slopes vanish

    def complete(u):
        full = np.r_[0, u, 0]
        full[[0, n]] = -ends @ (D[[0, n]] @ full)
        return full

    def f(t, y):
        u, v = complete(y[: n - 1]), y[n - 1 :]
        rate = (D @ (D @ u))[1:-1] + u[1:-1] - u[1:-1] ** 3 / 3 - v[1:-1]
        return np.r_[rate, e * (u + a - b * v)]

    begin = np.r_[rest + 2.5 * np.exp(-((x[1:-1] - L / 2) ** 2) / 10), np.full(n + 1, (rest + a) / b)]
    grid = {"x": interior_grid(0, L, 100), "t": interior_grid(0, T, 60)}
    y = solve_ivp(f, (0, T), begin, method="LSODA", rtol=1e-11, atol=1e-11, t_eval=grid["t"]).y
    u = np.stack([complete(one) for one in y[: n - 1].T], axis=1)
    values = {"u": bary(x, u, grid["x"]), "v": bary(x, y[n - 1 :], grid["x"])}
    return p, table(grid, values, 1e-8, "Chebyshev collocation")


@add("packet")
def packet():
    """A packet of about seven oscillations that travels through half of a box."""
    g = lambda s, xp: xp.exp(-(s**2) / 0.2) * xp.cos(10 * s)
    speed = lambda s: jnp.exp(-(s**2) / 0.2) * (10 * s * jnp.cos(10 * s) + 10 * jnp.sin(10 * s))
    p = ds.Problem(
        ds.Box(x=(-4, 4), t=(0, 3)),
        ("u",),
        {
            "wave": ds.interior(lambda u: u.tt - u.xx),
            "start": ds.initial(lambda u, x: u - g(x + 1.5, jnp)),
            "speed": ds.initial(lambda u, x: u.t - speed(x + 1.5)),
            "ends": ds.boundary(lambda u: u),
        },
    )
    return p, ref(dict(x=(-4, 4, 400), t=(0, 3, 50)), lambda x, t: {"u": g(x + 1.5 - t, np)})


@add("hump")
def hump():
    """A narrow hump goes once around a ring of 10 m with 2 m/s."""
    p = ds.Problem(
        ds.Box(x=(0, 10), t=(0, 5)),
        ("u",),
        {
            "transport": ds.interior(lambda u: u.t + 2 * u.x),
            "hump": ds.initial(lambda u, x: u - jnp.exp(-((x - 5) ** 2) / (2 * 0.4**2))),
        },
        periodic=("x",),
    )
    wrapped = lambda s: np.mod(s, 10) - 5
    exact = lambda x, t: {"u": np.exp(-(wrapped(x - 2 * t) ** 2) / (2 * 0.4**2))}
    return p, ref(dict(x=(0, 10, 150), t=(0, 5, 60)), exact)


@add("two_rods")
def two_rods():
    """Copper at 20 C and at 80 C brought together; after 40 s nothing has changed at the far ends."""
    D = 1.11e-4
    p = ds.Problem(
        ds.Box(x=(-1, 1), t=(0, 40)),
        ("T",),
        {
            "heat": ds.interior(lambda T: T.t - D * T.xx),
            "start": ds.initial(lambda T, x: T - jnp.where(x < 0, 20.0, 80.0)),
            "ends": ds.boundary(lambda T: T.x),
        },
    )
    exact = lambda x, t: {"T": 20 + 60 * ndtr(x / np.sqrt(2 * D * t))}
    return p, ref(dict(x=(-1, 1, 120), t=(0, 40, 40)), exact)


@add("column")
def column():
    """A dye enters a column of soil four metres long through which water flows, for a day (Ogata and Banks 1961)."""
    v, D, L, T = 2.0e-5, 4.0e-7, 4.0, 86400.0
    p = ds.Problem(
        ds.Box(x=(0, L), t=(0, T)),
        ("c",),
        {
            "transport": ds.interior(lambda c: c.t + v * c.x - D * c.xx),
            "clean": ds.initial(lambda c: c),
            "inlet": ds.boundary(lambda c: c - 100, faces=[("x", "lower")]),
            "outlet": ds.boundary(lambda c: c.x, faces=[("x", "upper")]),
        },
    )

    def exact(x, t):
        s = np.sqrt(4 * D * t)
        near, far = (x - v * t) / s, (x + v * t) / s
        return {"c": 50 * (erfc(near) + np.exp(-(near**2)) * erfcx(far))}

    return p, ref(dict(x=(0, L, 200), t=(0, T, 50)), exact)


@add("tension")
def tension():
    """A clamped beam under strong tension: layers of a hundredth at both ends."""
    e = 0.01
    p = ds.Problem(
        ds.Box(x=(0, 1)),
        ("w",),
        {
            "beam": ds.interior(lambda w: e**2 * w.d("x", 4) - w.xx - 1),
            "ends": ds.boundary(lambda w: w),
            "clamped": ds.boundary(lambda w: w.x),
        },
    )
    a, b = e / (2 * (1 - np.exp(-1 / e))), np.exp(-1 / e)
    exact = lambda x: {"w": x * (1 - x) / 2 + a * (np.expm1(-x / e) + np.exp(-(1 - x) / e) - b)}
    return p, ref(dict(x=(0, 1, 2000)), exact)


@add("turning")
def turning():
    """A narrow hump that is carried half a turn in a square, and does not spread."""
    w, turn = 0.14, 2 * np.pi
    p = ds.Problem(
        ds.Box(x=(-1, 1), y=(-1, 1), t=(0, 0.5)),
        ("c",),
        {
            "transport": ds.interior(lambda c, x, y: c.t - turn * y * c.x + turn * x * c.y),
            "hump": ds.initial(lambda c, x, y: c - jnp.exp(-((x - 0.3) ** 2 + y**2) / w**2)),
            "rim": ds.boundary(lambda c: c),
        },
    )

    def exact(x, y, t):
        a, b = x - 0.3 * np.cos(turn * t), y - 0.3 * np.sin(turn * t)
        return {"c": np.exp(-(a**2 + b**2) / w**2)}

    return p, ref(dict(x=(-1, 1, 60), y=(-1, 1, 60), t=(0, 0.5, 20)), exact)


@add("oscillator")
def oscillator():
    """Where a damped oscillator in noise is, by place and speed: diffusion along one axis only, and a moving Gaussian."""
    warm = 0.4
    p = ds.Problem(
        ds.Box(x=(-5, 5), v=(-5, 5), t=(0, 2)),
        ("p",),
        {
            "law": ds.interior(lambda p, x, v: p.t + v * p.x - (v + x) * p.v - p - warm * p.vv),
            "start": ds.initial(lambda p, x, v: p - jnp.exp(-((x - 1.2) ** 2 + v**2) / 0.4) / (0.4 * jnp.pi)),
            "far": ds.boundary(lambda p: p),
        },
    )
    rates, modes = np.linalg.eig(np.array([[0.0, 1.0], [-1.0, -1.0]]))

    def exact(x, v, t):
        flow = np.einsum("ik,...k,kj->...ij", modes, np.exp(np.multiply.outer(t, rates)), np.linalg.inv(modes)).real
        S = warm * np.eye(2) + (0.2 - warm) * flow @ np.swapaxes(flow, -1, -2)
        mean = flow @ np.array([1.2, 0.0])
        away = np.stack([x - mean[..., 0], v - mean[..., 1]], axis=-1)
        det = np.linalg.det(S)
        square = np.einsum("...i,...ij,...j->...", away, np.linalg.inv(S), away)
        return {"p": np.exp(-square / 2) / (2 * np.pi * np.sqrt(det))}

    return p, ref(dict(x=(-5, 5, 50), v=(-5, 5, 50), t=(0, 2, 20)), exact)


@add("three_bodies")
def three_bodies():
    """Three equal masses that follow each other on a figure eight, one period; second order, six unknowns."""
    T, names = 6.32591398, ("x1", "y1", "x2", "y2", "x3", "y3")
    places = np.array([0.97000436, -0.24308753, -0.97000436, 0.24308753, 0.0, 0.0])
    speeds = np.array([0.466203685, 0.43236573, 0.466203685, 0.43236573, -0.93240737, -0.86473146])

    def pull(q, k, xp):
        """Acceleration of body k."""
        ax = ay = 0.0
        for j in range(3):
            if j != k:
                dx, dy = q[2 * j] - q[2 * k], q[2 * j + 1] - q[2 * k + 1]
                cube = xp.sqrt(dx * dx + dy * dy) ** 3
                ax, ay = ax + dx / cube, ay + dy / cube
        return ax, ay

    conditions = {}
    for i, (name, place, speed) in enumerate(zip(names, places, speeds, strict=True)):
        law = lambda x1, y1, x2, y2, x3, y3, i=i, name=name: (
            {"x1": x1, "y1": y1, "x2": x2, "y2": y2, "x3": x3, "y3": y3}[name].tt
            - pull((x1, y1, x2, y2, x3, y3), i // 2, jnp)[i % 2]
        )
        conditions |= {
            f"law {name}": ds.interior(_of(law, names)),
            f"place {name}": ds.initial(_of(lambda u, place=place: u - place, (name,))),
            f"speed {name}": ds.initial(_of(lambda u, speed=speed: u.t - speed, (name,))),
        }
    rates = lambda t, y: [*y[6:], *(a for k in range(3) for a in pull(y[:6], k, np))]
    found = solve_ivp(rates, (0, T), [*places, *speeds], method="DOP853", rtol=1e-13, atol=1e-13, dense_output=True)
    exact = lambda t: dict(zip(names, found.sol(t)[:6], strict=True))
    reference = ds.Reference.on_grid({"t": interior_grid(0, T, 400)}, exact, 1e-10, "DOP853")
    return ds.Problem(ds.Box(t=(0, T)), names, conditions), reference


def _of(function, names):
    """A function of given unknowns that says so."""

    def residual(**fields):
        return function(*(fields[name] for name in names))

    parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    residual.__signature__ = inspect.Signature(parameters)
    return residual


@add("double_pendulum")
def double_pendulum():
    """Two equal rods of a metre, from 2 and 1 rad, three seconds; second order, implicit in the accelerations."""
    g = 9.81
    p = ds.Problem(
        ds.Box(t=(0, 3)),
        ("a", "b"),
        {
            "upper": ds.interior(
                lambda a, b: 2 * a.tt + jnp.cos(a - b) * b.tt + jnp.sin(a - b) * b.t**2 + 2 * g * jnp.sin(a)
            ),
            "lower": ds.interior(lambda a, b: b.tt + jnp.cos(a - b) * a.tt - jnp.sin(a - b) * a.t**2 + g * jnp.sin(b)),
            "a0": ds.initial(lambda a: a - 2),
            "b0": ds.initial(lambda b: b - 1),
            "a rests": ds.initial(lambda a: a.t),
            "b rests": ds.initial(lambda b: b.t),
        },
    )

    def rates(t, y):
        a, b, va, vb = y
        c, s = np.cos(a - b), np.sin(a - b)
        return [va, vb, *np.linalg.solve([[2, c], [c, 1]], [-s * vb**2 - 2 * g * np.sin(a), s * va**2 - g * np.sin(b)])]

    found = solve_ivp(rates, (0, 3), [2.0, 1.0, 0, 0], method="DOP853", rtol=1e-13, atol=1e-13, dense_output=True)
    exact = lambda t: dict(zip("ab", found.sol(t)[:2], strict=True))
    return p, ds.Reference.on_grid({"t": interior_grid(0, 3, 400)}, exact, 1e-10, "DOP853")


@add("relaxation")
def relaxation():
    """Van der Pol's oscillator with mu = 1000: slow for 800 s, then a jump within milliseconds."""
    mu, T = 1000.0, 1000.0
    p = ds.Problem(
        ds.Box(t=(0, T)),
        ("u", "v"),
        {
            "place": ds.interior(lambda u, v: u.t - v),
            "speed": ds.interior(lambda u, v: v.t - mu * (1 - u * u) * v + u),
            "u0": ds.initial(lambda u: u - 2),
            "v0": ds.initial(lambda v: v),
        },
    )
    rates = lambda t, y: [y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]]
    found = solve_ivp(rates, (0, T), [2.0, 0.0], method="Radau", rtol=1e-11, atol=1e-12, dense_output=True)
    exact = lambda t: {"u": found.sol(t)[0], "v": found.sol(t)[1]}
    return p, ds.Reference.on_grid({"t": interior_grid(0, T, 2000)}, exact, 1e-7, "Radau with tolerances of 1e-11")


if __name__ == "__main__":
    assert P is development.P
    main()
