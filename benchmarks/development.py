"""The development set: problems beyond the paper, solved with `ds.solve(problem)` and no setting.

    python benchmarks/development.py                      all of them, seed 0
    python benchmarks/development.py heat,pendulum --seed 1 --set precision=double
    python benchmarks/development.py --seed 0,1,2 --tol 1e-3,1e-5,1e-7,1e-9 --out runs/tol.jsonl
    python benchmarks/development.py burgers,kdv          problems of the suite, as `ds.solve` takes them

Each line shows the verdict and the estimate beside the relative l2 error, which the solver does not see. References are
closed forms, the Cole-Hopf solution of Burgers' equation, and DOP853 with tolerances of 1e-13 for ordinary differential
equations. Rows that are in the file of `--out` already are not run again, so a table that was interrupted goes on.
"""

import argparse
import ast
import itertools
import json
import time
from pathlib import Path

import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

import dsgnar as ds
from dsgnar.problem.reference import interior_grid
from dsgnar.suite import SUITE, burgers

pi = np.pi


def ref(axes, f):
    """A closed form on a grid of cell centres, (from, to, count) on each axis."""
    grid = {axis: interior_grid(*where) for axis, where in axes.items()}
    return ds.Reference.on_grid(grid, f, 1e-12, "closed form")


P = {}  # name -> a function that makes the problem and its reference


def add(name):
    """Put a problem into the set."""

    def put(make):
        P[name] = make
        return make

    return put


@add("heat")
def heat():
    p = ds.Problem(
        ds.Box(x=(0, 1), t=(0, 1)),
        ("u",),
        {
            "pde": ds.interior(lambda u: u.t - 0.1 * u.xx),
            "ic": ds.initial(lambda u, x: u - jnp.sin(jnp.pi * x)),
            "bc": ds.boundary(lambda u: u),
        },
    )
    return p, ref(dict(x=(0, 1, 60), t=(0, 1, 50)), lambda x, t: {"u": np.exp(-0.1 * pi**2 * t) * np.sin(pi * x)})


@add("heat_source")
def heat_source():
    p = ds.Problem(
        ds.Box(x=(0, 1), t=(0, 1)),
        ("u",),
        {
            "pde": ds.interior(lambda u, x: u.t - u.xx - jnp.sin(jnp.pi * x)),
            "ic": ds.initial(lambda u: u),
            "bc": ds.boundary(lambda u: u),
        },
    )
    return p, ref(
        dict(x=(0, 1, 60), t=(0, 1, 50)), lambda x, t: {"u": (1 - np.exp(-(pi**2) * t)) / pi**2 * np.sin(pi * x)}
    )


@add("rod_si")
def rod_si():
    L, T, a = 0.1, 1000.0, 1e-5
    p = ds.Problem(
        ds.Box(x=(0, L), t=(0, T)),
        ("u",),
        {
            "pde": ds.interior(lambda u: u.t - a * u.xx),
            "ic": ds.initial(lambda u, x: u - 300 - 50 * jnp.sin(jnp.pi * x / L)),
            "bc": ds.boundary(lambda u: u - 300),
        },
    )
    return p, ref(
        dict(x=(0, L, 60), t=(0, T, 50)),
        lambda x, t: {"u": 300 + 50 * np.exp(-a * (pi / L) ** 2 * t) * np.sin(pi * x / L)},
    )


@add("chip_si")
def chip_si():
    L, T = 1e-3, 1e-6
    a = 0.1 * L * L / T
    p = ds.Problem(
        ds.Box(x=(0, L), t=(0, T)),
        ("u",),
        {
            "pde": ds.interior(lambda u: u.t - a * u.xx),
            "ic": ds.initial(lambda u, x: u - 300 * jnp.sin(jnp.pi * x / L)),
            "bc": ds.boundary(lambda u: u),
        },
    )
    return p, ref(
        dict(x=(0, L, 60), t=(0, T, 50)), lambda x, t: {"u": 300 * np.exp(-a * (pi / L) ** 2 * t) * np.sin(pi * x / L)}
    )


@add("wave_cubic")
def wave_cubic():
    ex = lambda x, t, xp: xp.sin(pi * x) * xp.cos(2 * t) + 0.5 * xp.sin(2 * pi * x) * xp.sin(3 * t)

    def f(x, t):
        u = ex(x, t, jnp)
        return (
            jnp.sin(pi * x) * jnp.cos(2 * t) * (pi**2 - 4)
            + 0.5 * jnp.sin(2 * pi * x) * jnp.sin(3 * t) * (4 * pi**2 - 9)
            + u**3
        )

    p = ds.Problem(
        ds.Box(x=(0, 1), t=(0, 2)),
        ("u",),
        {
            "pde": ds.interior(lambda u, x, t: u.tt - u.xx + u**3 - f(x, t)),
            "ic": ds.initial(lambda u, x: u - jnp.sin(pi * x)),
            "rate": ds.initial(lambda u, x: u.t - 1.5 * jnp.sin(2 * pi * x)),
            "bc": ds.boundary(lambda u: u),
        },
    )
    return p, ref(dict(x=(0, 1, 60), t=(0, 2, 50)), lambda x, t: {"u": ex(x, t, np)})


@add("poisson_robin")
def poisson_robin():
    ex = lambda x, y, xp: xp.exp(x) * xp.sin(2 * y) + x * y
    p = ds.Problem(
        ds.Box(x=(0, 1), y=(0, 1)),
        ("u",),
        {
            "pde": ds.interior(lambda u, x, y: ds.laplacian(u) + 3 * jnp.exp(x) * jnp.sin(2 * y)),
            "left": ds.boundary(lambda u, x, y: u - ex(x, y, jnp), faces=[("x", "lower")]),
            "right": ds.boundary(
                lambda u, x, y: u.x + u - (2 * jnp.exp(x) * jnp.sin(2 * y) + y + x * y), faces=[("x", "upper")]
            ),
            "bottom": ds.boundary(lambda u, x, y: u.y - (2 * jnp.exp(x) * jnp.cos(2 * y) + x), faces=[("y", "lower")]),
            "top": ds.boundary(lambda u, x, y: u - ex(x, y, jnp), faces=[("y", "upper")]),
        },
    )
    return p, ref(dict(x=(0, 1, 60), y=(0, 1, 50)), lambda x, y: {"u": ex(x, y, np)})


@add("helmholtz")
def helmholtz():
    ex = lambda x, y, xp: xp.sin(3 * pi * x) * xp.sin(2 * pi * y)
    p = ds.Problem(
        ds.Box(x=(0, 1), y=(0, 1)),
        ("u",),
        {
            "pde": ds.interior(lambda u, x, y: ds.laplacian(u) + 16 * u - (16 - 13 * pi**2) * 1.5 * ex(x, y, jnp)),
            "bc": ds.boundary(lambda u: u),
        },
    )
    return p, ref(dict(x=(0, 1, 60), y=(0, 1, 50)), lambda x, y: {"u": 1.5 * ex(x, y, np)})


@add("big_source")
def big_source():
    ex = lambda x, y, xp: 1e3 * xp.sin(pi * x) * y * (1 - y)
    p = ds.Problem(
        ds.Box(x=(0, 1), y=(0, 1)),
        ("u",),
        {
            "pde": ds.interior(lambda u, x, y: -ds.laplacian(u) - 1e3 * jnp.sin(pi * x) * (pi**2 * y * (1 - y) + 2)),
            "bc": ds.boundary(lambda u: u),
        },
    )
    return p, ref(dict(x=(0, 1, 60), y=(0, 1, 50)), lambda x, y: {"u": ex(x, y, np)})


@add("anisotropic")
def anisotropic():
    ex = lambda x, y, xp: xp.sin(pi * x) * xp.cos(pi * y / 2) + x
    p = ds.Problem(
        ds.Box(x=(0, 1), y=(-1, 1)),
        ("u",),
        {
            "pde": ds.interior(
                lambda u, x, y: u.xx + 0.01 * u.yy + (pi**2 + 0.0025 * pi**2) * jnp.sin(pi * x) * jnp.cos(pi * y / 2)
            ),
            "bc": ds.boundary(lambda u, x, y: u - ex(x, y, jnp)),
        },
    )
    return p, ref(dict(x=(0, 1, 60), y=(-1, 1, 50)), lambda x, y: {"u": ex(x, y, np)})


@add("heat2d")
def heat2d():
    ex = lambda x, y, t, xp: xp.exp(-0.5 * t) * xp.sin(pi * x) * xp.sin(2 * pi * y)
    k = 0.5 / (5 * pi**2)
    p = ds.Problem(
        ds.Box(x=(0, 1), y=(0, 1), t=(0, 2)),
        ("u",),
        {
            "pde": ds.interior(lambda u: u.t - k * ds.laplacian(u)),
            "ic": ds.initial(lambda u, x, y: u - jnp.sin(pi * x) * jnp.sin(2 * pi * y)),
            "bc": ds.boundary(lambda u: u),
        },
    )
    return p, ref(dict(x=(0, 1, 25), y=(0, 1, 25), t=(0, 2, 20)), lambda x, y, t: {"u": ex(x, y, t, np)})


@add("transport5")
def transport5():
    p = ds.Problem(
        ds.Box(x=(0, 1), t=(0, 5)),
        ("u",),
        {"pde": ds.interior(lambda u: u.t + u.x), "ic": ds.initial(lambda u, x: u - jnp.exp(jnp.sin(2 * pi * x)))},
        periodic=("x",),
    )
    return p, ref(dict(x=(0, 1, 60), t=(0, 5, 100)), lambda x, t: {"u": np.exp(np.sin(2 * pi * (x - t)))})


@add("schroedinger")
def schroedinger():
    # i h_t + h_xx/2 + |h|^2 h = 0, h = sech(x) exp(i t/2), moving: v=0.5
    def ex(x, t, xp):
        s = 1 / xp.cosh(x - 0.5 * t)
        ph = 0.5 * x + 0.5 * (1 - 0.25) * t
        return s * xp.cos(ph), s * xp.sin(ph)

    p = ds.Problem(
        ds.Box(x=(-8, 8), t=(0, 3)),
        ("u", "v"),
        {
            "re": ds.interior(lambda u, v: u.t + 0.5 * v.xx + (u * u + v * v) * v),
            "im": ds.interior(lambda u, v: v.t - 0.5 * u.xx - (u * u + v * v) * u),
            "icu": ds.initial(lambda u, x, t: u - ex(x, t, jnp)[0]),
            "icv": ds.initial(lambda v, x, t: v - ex(x, t, jnp)[1]),
            "bcu": ds.boundary(lambda u, x, t: u - ex(x, t, jnp)[0]),
            "bcv": ds.boundary(lambda v, x, t: v - ex(x, t, jnp)[1]),
        },
    )
    return p, ref(dict(x=(-8, 8, 80), t=(0, 3, 60)), lambda x, t: dict(zip("uv", ex(x, t, np), strict=True)))


@add("burgers_sharp")
def burgers_sharp():
    nu = 0.01 / pi
    p = ds.Problem(
        ds.Box(x=(-1, 1), t=(0, 1)),
        ("u",),
        {
            "pde": ds.interior(lambda u: u.t + u * u.x - nu * u.xx),
            "ic": ds.initial(lambda u, x: u + jnp.sin(pi * x)),
            "bc": ds.boundary(lambda u: u),
        },
    )
    return p, burgers.reference(nu)


@add("beam")
def beam():
    w = pi**2
    p = ds.Problem(
        ds.Box(x=(0, 1), t=(0, 0.5)),
        ("u",),
        {
            "pde": ds.interior(lambda u: u.tt + u.xxxx),
            "ic": ds.initial(lambda u, x: u - jnp.sin(pi * x)),
            "rate": ds.initial(lambda u: u.t),
            "bc": ds.boundary(lambda u: u),
            "moment": ds.boundary(lambda u: u.xx),
        },
    )
    return p, ref(dict(x=(0, 1, 60), t=(0, 0.5, 50)), lambda x, t: {"u": np.sin(pi * x) * np.cos(w * t)})


@add("reaction_diffusion")
def reaction_diffusion():
    # linear-nonlinear system manufactured: u=e^{-t} cos(pi x), v=e^{-2t}(1+cos(pi x)/2)
    def ex(x, t, xp):
        return xp.exp(-t) * xp.cos(pi * x), xp.exp(-2 * t) * (1 + xp.cos(pi * x) / 2)

    def f(x, t):
        u, v = ex(x, t, jnp)
        return -u + 0.1 * pi**2 * u - u * v, -2 * v + 0.05 * pi**2 * jnp.exp(-2 * t) * jnp.cos(pi * x) / 2 + u * v

    p = ds.Problem(
        ds.Box(x=(0, 1), t=(0, 2)),
        ("u", "v"),
        {
            "u": ds.interior(lambda u, v, x, t: u.t - 0.1 * u.xx - u * v - f(x, t)[0]),
            "v": ds.interior(lambda u, v, x, t: v.t - 0.05 * v.xx + u * v - f(x, t)[1]),
            "icu": ds.initial(lambda u, x: u - jnp.cos(pi * x)),
            "icv": ds.initial(lambda v, x: v - 1 - jnp.cos(pi * x) / 2),
            "nu": ds.boundary(lambda u: u.x),
            "nv": ds.boundary(lambda v: v.x),
        },
    )
    return p, ref(dict(x=(0, 1, 60), t=(0, 2, 50)), lambda x, t: dict(zip("uv", ex(x, t, np), strict=True)))


@add("telegraph")
def telegraph():
    # u_tt+2u_t+u = u_xx ; u=e^{-t} sin(pi x) cos(pi t)
    p = ds.Problem(
        ds.Box(x=(0, 1), t=(0, 2)),
        ("u",),
        {
            "pde": ds.interior(lambda u: u.tt + 2 * u.t + u - u.xx),
            "ic": ds.initial(lambda u, x: u - jnp.sin(pi * x)),
            "rate": ds.initial(lambda u, x: u.t + jnp.sin(pi * x)),
            "bc": ds.boundary(lambda u: u),
        },
    )
    return p, ref(dict(x=(0, 1, 60), t=(0, 2, 50)), lambda x, t: {"u": np.exp(-t) * np.sin(pi * x) * np.cos(pi * t)})


@add("nonlinear_diffusion")
def nonlinear_diffusion():
    # u_t=(u u_x)_x + f, u=1+0.5 cos(pi x) e^{-t}
    def ex(x, t, xp):
        return 1 + 0.5 * xp.cos(pi * x) * xp.exp(-t)

    def f(x, t):
        e = jnp.exp(-t)
        u = ex(x, t, jnp)
        ux = -0.5 * pi * jnp.sin(pi * x) * e
        uxx = -0.5 * pi**2 * jnp.cos(pi * x) * e
        return -0.5 * jnp.cos(pi * x) * e - (ux**2 + u * uxx)

    p = ds.Problem(
        ds.Box(x=(0, 1), t=(0, 1)),
        ("u",),
        {
            "pde": ds.interior(lambda u, x, t: u.t - (u.x**2 + u * u.xx) - f(x, t)),
            "ic": ds.initial(lambda u, x, t: u - ex(x, t, jnp)),
            "bc": ds.boundary(lambda u: u.x),
        },
    )
    return p, ref(dict(x=(0, 1, 60), t=(0, 1, 50)), lambda x, t: {"u": ex(x, t, np)})


@add("elasticity")
def elasticity():
    # plane strain-like: (la+mu) grad div + mu lap = -f ; SI: E~2e11; u ~1e-4
    la, mu, A = 1.2e11, 8e10, 1e-4

    def ex(x, y, xp):
        return A * xp.sin(pi * x) * xp.sin(pi * y), A * x * (1 - x) * y * (1 - y) * 4

    def fx(x, y):
        uxx = -A * pi**2 * jnp.sin(pi * x) * jnp.sin(pi * y)
        uyy = uxx
        vxy = 4 * A * (1 - 2 * x) * (1 - 2 * y)
        return -((la + 2 * mu) * uxx + mu * uyy + (la + mu) * vxy)

    def fy(x, y):
        uxy = A * pi**2 * jnp.cos(pi * x) * jnp.cos(pi * y)
        vxx = -8 * A * y * (1 - y)
        vyy = -8 * A * x * (1 - x)
        return -((la + 2 * mu) * vyy + mu * vxx + (la + mu) * uxy)

    p = ds.Problem(
        ds.Box(x=(0, 1), y=(0, 1)),
        ("u", "v"),
        {
            "fx": ds.interior(lambda u, v, x, y: (la + 2 * mu) * u.xx + mu * u.yy + (la + mu) * v.xy + fx(x, y)),
            "fy": ds.interior(lambda u, v, x, y: (la + 2 * mu) * v.yy + mu * v.xx + (la + mu) * u.xy + fy(x, y)),
            "bu": ds.boundary(lambda u: u),
            "bv": ds.boundary(lambda v: v),
        },
    )
    return p, ref(dict(x=(0, 1, 60), y=(0, 1, 50)), lambda x, y: dict(zip("uv", ex(x, y, np), strict=True)))


@add("sine_gordon")
def sine_gordon():
    # breather-like kink: u=4 atan(exp((x-0.3t)/sqrt(1-.09)))
    g = 1 / np.sqrt(1 - 0.09)
    ex = lambda x, t, xp: 4 * xp.arctan(xp.exp(g * (x - 0.3 * t)))
    rate = lambda x: -0.3 * g * 2 / jnp.cosh(g * x)
    p = ds.Problem(
        ds.Box(x=(-6, 6), t=(0, 4)),
        ("u",),
        {
            "pde": ds.interior(lambda u: u.tt - u.xx + jnp.sin(u)),
            "ic": ds.initial(lambda u, x, t: u - ex(x, t, jnp)),
            "rate": ds.initial(lambda u, x: u.t - rate(x)),
            "bc": ds.boundary(lambda u, x, t: u - ex(x, t, jnp)),
        },
    )
    return p, ref(dict(x=(-6, 6, 60), t=(0, 4, 50)), lambda x, t: {"u": ex(x, t, np)})


def ode(names, slopes, start, end, equations):
    """An initial value problem u' = slopes(t, u), stated as residuals."""
    found = solve_ivp(slopes, (0, end), start, method="DOP853", rtol=1e-13, atol=1e-13, dense_output=True)
    conditions = {f"equation {name}": ds.interior(residual) for name, residual in zip(names, equations, strict=True)}
    given = {
        "u": lambda value: lambda u: u - value,
        "v": lambda value: lambda v: v - value,
        "w": lambda value: lambda w: w - value,
    }
    conditions |= {f"start {name}": ds.initial(given[name](value)) for name, value in zip(names, start, strict=True)}
    exact = lambda t: dict(zip(names, found.sol(t), strict=True))
    reference = ds.Reference.on_grid({"t": interior_grid(0, end, 400)}, exact, 1e-11, "DOP853")
    return ds.Problem(ds.Box(t=(0, end)), tuple(names), conditions), reference


@add("predator_prey")
def predator_prey():
    return ode(
        ("u", "v"),
        lambda t, y: [1.5 * y[0] - y[0] * y[1], -3 * y[1] + y[0] * y[1]],
        (10.0, 5.0),
        5.0,
        (lambda u, v: u.t - 1.5 * u + u * v, lambda u, v: v.t + 3 * v - u * v),
    )


@add("pendulum")
def pendulum():
    return ode(
        ("u", "v"),
        lambda t, y: [y[1], -9.81 * np.sin(y[0]) - 0.5 * y[1]],
        (2.0, 0.0),
        5.0,
        (lambda u, v: u.t - v, lambda u, v: v.t + 9.81 * jnp.sin(u) + 0.5 * v),
    )


@add("vanderpol")
def vanderpol():
    return ode(
        ("u", "v"),
        lambda t, y: [y[1], 5 * (1 - y[0] ** 2) * y[1] - y[0]],
        (2.0, 0.0),
        15.0,
        (lambda u, v: u.t - v, lambda u, v: v.t - 5 * (1 - u * u) * v + u),
    )


@add("lorenz")
def lorenz():
    return ode(
        ("u", "v", "w"),
        lambda t, y: [10 * (y[1] - y[0]), y[0] * (28 - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]],
        (1.0, 1.0, 1.0),
        5.0,
        (
            lambda u, v: u.t - 10 * (v - u),
            lambda u, v, w: v.t - u * (28 - w) + v,
            lambda u, v, w: w.t - u * v + 8 / 3 * w,
        ),
    )


@add("hours")
def hours():
    T = 6 * 3600.0
    k = 1 / 3600.0
    p = ds.Problem(
        ds.Box(x=(0, 1), t=(0, T)),
        ("u",),
        {
            "pde": ds.interior(lambda u, x, t: u.t + k * (u - 20 - 5 * jnp.sin(2 * pi * t / T)) - k / 50 * u.xx),
            "ic": ds.initial(lambda u, x: u - 20 - jnp.cos(pi * x)),
            "bc": ds.boundary(lambda u: u.x),
        },
    )
    w = 2 * pi / T

    def ex(x, t):
        d = k * k + w * w
        part = 5 * k * (k * np.sin(w * t) - w * np.cos(w * t)) / d + 5 * k * w / d * np.exp(-k * t)
        return {"u": 20 + part + np.exp(-k * (1 + pi**2 / 50) * t) * np.cos(pi * x)}

    return p, ref(dict(x=(0, 1, 40), t=(0, T, 60)), ex)


@add("fin")
def fin():
    # a cooling fin in millimetres and kelvin
    m = np.sqrt(1e-3)
    p = ds.Problem(
        ds.Box(x=(0, 80)),
        ("T",),
        {
            "balance": ds.interior(lambda T: T.xx - 1e-3 * (T - 293)),
            "base": ds.boundary(lambda T: T - 450, faces=[("x", "lower")]),
            "tip": ds.boundary(lambda T: T.x, faces=[("x", "upper")]),
        },
    )
    return p, ref(dict(x=(0, 80, 200)), lambda x: {"T": 293 + 157 * np.cosh(m * (80 - x)) / np.cosh(m * 80)})


@add("layer")
def layer():
    # convection against diffusion, a boundary layer of width 0.02
    e = 0.02
    p = ds.Problem(
        ds.Box(x=(0, 1)),
        ("u",),
        {"pde": ds.interior(lambda u: -e * u.xx + u.x - 1), "ends": ds.boundary(lambda u: u)},
    )
    return p, ref(
        dict(x=(0, 1, 400)), lambda x: {"u": x - (np.exp((x - 1) / e) - np.exp(-1 / e)) / (1 - np.exp(-1 / e))}
    )


@add("bratu")
def bratu():
    # u'' + lambda e^u = 0, the lower branch
    theta = brentq(lambda v: v - np.sqrt(2.0) * np.cosh(v / 4), 0.1, 4.0, xtol=1e-15, rtol=1e-15)
    p = ds.Problem(
        ds.Box(x=(0, 1)),
        ("u",),
        {"pde": ds.interior(lambda u: u.xx + jnp.exp(u)), "ends": ds.boundary(lambda u: u)},
    )
    return p, ref(
        dict(x=(0, 1, 200)), lambda x: {"u": -2 * np.log(np.cosh((x - 0.5) * theta / 2) / np.cosh(theta / 4))}
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Solve the development set.")
    parser.add_argument("names", nargs="?", default=",".join(P))
    parser.add_argument("--seed", default="0", help="one, or several with commas")
    parser.add_argument("--tol", help="one tolerance, or several with commas")
    parser.add_argument("--max-seconds", type=float, default=300.0)
    parser.add_argument("--width", type=int, help="three layers of this width instead of the default network")
    parser.add_argument("--out", type=Path, help="append a row for each problem, for accuracy.py")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    asked = parser.parse_args()
    options = {"max_seconds": asked.max_seconds}
    for assignment in asked.set:
        name, _, text = assignment.partition("=")
        try:
            options[name] = ast.literal_eval(text)
        except (SyntaxError, ValueError):
            options[name] = text
    if asked.width:
        options["network"] = ds.MLP(widths=(asked.width,) * 3)
    tolerances = [{"tol": float(tol)} for tol in asked.tol.split(",")] if asked.tol else [{}]
    done = asked.out.read_text().splitlines() if asked.out and asked.out.exists() else []
    done = [[row[key] for key in ("name", "seed", "options")] for row in map(json.loads, done)]
    for seed, name, tol in itertools.product(map(int, asked.seed.split(",")), asked.names.split(","), tolerances):
        chosen = options | tol
        if [name, seed, plain(chosen)] in done:
            continue
        row = solved(name, seed, chosen)
        guess = f"{max(row['estimates'].values()):.1e}" if row["known"] else "unknown"
        goal = "".join(f"tol {value:g}  " for value in tol.values())
        print(
            f"{name:20} seed {seed}  {goal}{row['verdict']:6}  error {row['error']:.1e}  estimate {guess:7}  "
            f"residual/terms {row['residual']:.1e}  {row['iterations']:4} iterations  {row['intervals']:2} intervals  "
            f"{row['seconds']:5.0f} s  {row['stop']}",
            flush=True,
        )
        if asked.out:
            with open(asked.out, "a") as file:
                file.write(json.dumps(row) + "\n")


def plain(options: dict) -> dict:
    """Options as a row has them."""
    return {key: value if isinstance(value, int | float) else str(value) for key, value in options.items()}


def solved(name: str, seed: int, options: dict) -> dict:
    """Solve a problem of the set; what was reached as one row for accuracy.py."""
    problem, reference = P[name]() if name in P else (SUITE[name].problem(), SUITE[name].reference())
    start = time.perf_counter()
    solution = ds.solve(problem, reference=reference, seed=seed, **options)
    outcome, found = solution.outcome, solution.outcome.estimate
    return {
        "name": name,
        "seed": seed,
        "options": plain(options),
        "seconds": time.perf_counter() - start,
        "parts": outcome.seconds,
        "verdict": solution.verdict,
        "error": max(outcome.relative_l2.values()),
        "errors": outcome.relative_l2,
        "estimates": {} if found is None else found.errors,
        "known": solution.error_estimate is not None,
        "met": outcome.tolerance_met,
        "residual": max(outcome.relative_residuals.values()),
        "iterations": len(solution.history),
        "intervals": solution.march.count,
        "parameters": solution.parameters,
        "stop": solution.stop.code,
    }


if __name__ == "__main__":
    main()
