"""A sixth set: twenty problems of an outsider, stated before any was run, many in units of their own.

    python benchmarks/third.py                        all of them, seed 0
    python benchmarks/third.py car,bar --seed 61 --max-seconds 120
    FINE=1.4 python benchmarks/third.py --references  how far each reference moves when it is made finer

References are closed forms, or come from Chebyshev or Fourier collocation, DOP853, Radau, or a Laplace transform inverted
by FFT; `--references` measures their accuracy.
"""

import os
import sys

import development
import jax.numpy as jnp
import numpy as np
from development import P, add, main, ref
from scipy.integrate import solve_ivp
from scipy.linalg import expm
from textbook import bary, cheb, table

import dsgnar as ds
from dsgnar.problem.reference import interior_grid

P.clear()
pi = np.pi
FINE = float(os.environ.get("FINE", 1))


def size(n):
    """A resolution, greater if FINE says so."""
    return round(n * FINE)


def grid(**axes):
    """Cell centres of each axis from (from, to, count)."""
    return {axis: interior_grid(*where) for axis, where in axes.items()}


def both(x, y, values, where):
    """Values on a tensor grid of Chebyshev points, at the cell centres of another."""
    along = bary(x, np.asarray(values).reshape(len(x), len(y)), where["x"])
    return bary(y, along.T, where["y"]).T


def inverted(response, times, period, count):
    """The function of time (count, ...) whose Laplace transform is `response(s)`, at some of the FFT's instants."""
    shift = 28 / period
    s = shift + 2j * pi * np.arange(count // 2 + 1) / period
    transform = np.array([response(k) for k in s])
    f = np.fft.irfft(transform, count, axis=0) * count / period
    return f[times] * np.exp(shift * period / count * times).reshape(-1, *([1] * (f.ndim - 1)))


@add("tablet")
def tablet():
    """A tablet of 100 mg: gut, blood and tissue, in milligrams and hours."""
    ka, ke, k12, k21 = 1.2, 0.15, 0.3, 0.2
    p = ds.Problem(
        ds.Box(t=(0, 48)),
        ("gut", "blood", "tissue"),
        {
            "absorbed": ds.interior(lambda gut: gut.t + ka * gut),
            "plasma": ds.interior(lambda gut, blood, tissue: blood.t - ka * gut + (ke + k12) * blood - k21 * tissue),
            "peripheral": ds.interior(lambda blood, tissue: tissue.t - k12 * blood + k21 * tissue),
            "dose": ds.initial(lambda gut: gut - 100.0),
            "blood0": ds.initial(lambda blood: blood),
            "tissue0": ds.initial(lambda tissue: tissue),
        },
    )
    A = np.array([[-ka, 0, 0], [ka, -ke - k12, k21], [0, k12, -k21]])
    where = grid(t=(0, 48, 300))
    y = np.array([expm(A * t) @ [100.0, 0, 0] for t in where["t"]]).T
    return p, table(where, dict(zip(("gut", "blood", "tissue"), y, strict=True)), 1e-12, "matrix exponential")


@add("rlc")
def rlc():
    """A series circuit of 10 mH, 1 uF and 20 ohm, on a supply of 10 V at 1.5 kHz that is switched on."""
    L, C, R, w = 10e-3, 1e-6, 20.0, 2 * pi * 1500
    p = ds.Problem(
        ds.Box(t=(0, 5e-3)),
        ("i", "v"),
        {
            "loop": ds.interior(lambda i, v, t: L * i.t + R * i + v - 10 * jnp.sin(w * t)),
            "capacitor": ds.interior(lambda i, v: C * v.t - i),
            "i0": ds.initial(lambda i: i),
            "v0": ds.initial(lambda v: v),
        },
    )
    where = grid(t=(0, 5e-3, 400))
    s = solve_ivp(
        lambda t, y: [(10 * np.sin(w * t) - R * y[0] - y[1]) / L, y[0] / C],
        (0, 5e-3),
        [0, 0],
        method="DOP853",
        rtol=1e-13,
        atol=1e-15,
        t_eval=where["t"],
    )
    return p, table(where, {"i": s.y[0], "v": s.y[1]}, 1e-11, "DOP853")


@add("foundation")
def foundation():
    """A beam of 10 m on elastic ground, clamped at one end and free at the other, under a heap of load."""
    EI, k, length = 2e6, 1e6, 10.0

    def load(x, np=np):
        return 5000.0 * np.exp(-(((x - 6.0) / 2.0) ** 2))

    p = ds.Problem(
        ds.Box(x=(0, length)),
        ("w",),
        {
            "bending": ds.interior(lambda w, x: EI * w.xxxx + k * w - load(x, jnp)),
            "clamped": ds.boundary(lambda w: w, faces=[("x", "lower")]),
            "level": ds.boundary(lambda w: w.x, faces=[("x", "lower")]),
            "moment": ds.boundary(lambda w: EI * w.xx, faces=[("x", "upper")]),
            "shear": ds.boundary(lambda w: EI * w.xxx, faces=[("x", "upper")]),
        },
    )
    n = size(40)
    basis = [np.polynomial.Chebyshev.basis(j, [0, length]) for j in range(n)]
    x = cheb(n - 5, 0, length)[0]
    rows = np.array([EI * b.deriv(4)(x) + k * b(x) for b in basis]).T
    ends = np.array([[b(0), b.deriv(1)(0), b.deriv(2)(length), b.deriv(3)(length)] for b in basis]).T
    c = np.linalg.solve(np.r_[rows, ends], np.r_[load(x), np.zeros(4)])
    where = grid(x=(0, length, 300))
    w = np.polynomial.Chebyshev(c, [0, length])(where["x"])
    return p, table(where, {"w": w}, 1e-9, "Chebyshev collocation")


@add("aquifer")
def aquifer():
    """The head of groundwater in metres: sand of varied conductivity, rain, a lake, a river with a clogged bed."""
    a, b, rain, bed = 1000.0, 500.0, 3e-9, 1e-4

    def T(x, y, np=np):
        return 2e-3 * np.exp(np.sin(2 * pi * x / a) * np.cos(pi * y / b))

    p = ds.Problem(
        ds.Box(x=(0, a), y=(0, b)),
        ("h",),
        {
            "flow": ds.interior(
                lambda h, x, y: (
                    T(x, y, jnp)
                    * (
                        h.xx
                        + h.yy
                        + 2 * pi / a * jnp.cos(2 * pi * x / a) * jnp.cos(pi * y / b) * h.x
                        - pi / b * jnp.sin(2 * pi * x / a) * jnp.sin(pi * y / b) * h.y
                    )
                    + rain
                )
            ),
            "lake": ds.boundary(lambda h: h - 12.0, faces=[("x", "lower")]),
            "river": ds.boundary(lambda h, x, y: T(x, y, jnp) * h.n + bed * (h - 10.0), faces=[("x", "upper")]),
            "tight": ds.boundary(lambda h: h.n, faces=[("y", "lower"), ("y", "upper")]),
        },
    )
    n = size(32)
    x, D = cheb(n, 0, a)
    y, E = cheb(n, 0, b)
    X, Y = np.meshgrid(x, y, indexing="ij")
    Dx, Dy = np.kron(D, np.eye(n + 1)), np.kron(np.eye(n + 1), E)
    t = T(X, Y).ravel()
    A, f = Dx @ (t[:, None] * Dx) + Dy @ (t[:, None] * Dy), np.full(t.size, -rain)
    i, j = np.divmod(np.arange(t.size), n + 1)
    for rows, matrix, right in (
        ((j == 0) | (j == n), Dy, 0.0),
        (i == n, t[:, None] * Dx + bed * np.eye(t.size), bed * 10.0),
        (i == 0, np.eye(t.size), 12.0),
    ):
        A[rows], f[rows] = matrix[rows], right
    where = grid(x=(0, a, 60), y=(0, b, 40))
    return p, table(where, {"h": both(x, y, np.linalg.solve(A, f), where)}, 1e-9, "Chebyshev collocation")


@add("block")
def block():
    """A block that is warmed from below and cooled by air above: Laplace in three dimensions."""
    H, bi = 0.5, 3.0
    parts = [(1, 1, 1.0), (2, 1, 0.5), (1, 3, -0.3)]

    def below(x, y, np=np):
        return sum(c * np.sin(i * pi * x) * np.sin(j * pi * y) for i, j, c in parts)

    p = ds.Problem(
        ds.Box(x=(0, 1), y=(0, 1), z=(0, H)),
        ("u",),
        {
            "pde": ds.interior(lambda u: ds.laplacian(u)),
            "sides": ds.boundary(lambda u: u, faces=[(a, s) for a in "xy" for s in ("lower", "upper")]),
            "below": ds.boundary(lambda u, x, y: u - below(x, y, jnp), faces=[("z", "lower")]),
            "air": ds.boundary(lambda u: u.n + bi * u, faces=[("z", "upper")]),
        },
    )

    def exact(x, y, z):
        def high(k):
            return k * np.cosh(k * (H - z)) + bi * np.sinh(k * (H - z))

        def whole(k):
            return k * np.cosh(k * H) + bi * np.sinh(k * H)

        return {
            "u": sum(
                c * np.sin(i * pi * x) * np.sin(j * pi * y) * high(k) / whole(k)
                for i, j, c in parts
                for k in [pi * np.hypot(i, j)]
            )
        }

    return p, ref(dict(x=(0, 1, 24), y=(0, 1, 24), z=(0, H, 16)), exact)


@add("lens")
def lens():
    """A plane wave through a soft lens, with the first-order radiation condition around."""
    k = 12.0

    def slow(x, y, np=np):
        return 1 + 0.5 * np.exp(-((x - 0.5) ** 2 + (y - 0.5) ** 2) / 0.04)

    p = ds.Problem(
        ds.Box(x=(0, 1), y=(0, 1)),
        ("a", "b"),
        {
            "real": ds.interior(lambda a, x, y: ds.laplacian(a) + k**2 * slow(x, y, jnp) * a),
            "imaginary": ds.interior(lambda b, x, y: ds.laplacian(b) + k**2 * slow(x, y, jnp) * b),
            # u.n - i k u = i k (n.x - 1) exp(i k x)
            "out real": ds.boundary(lambda a, b, x, n: a.n + k * b + k * (n.x - 1) * jnp.sin(k * x)),
            "out imaginary": ds.boundary(lambda a, b, x, n: b.n - k * a - k * (n.x - 1) * jnp.cos(k * x)),
        },
    )
    n = size(36)
    x, D = cheb(n, 0, 1)
    one = np.eye(n + 1)
    X, Y = (g.ravel() for g in np.meshgrid(x, x, indexing="ij"))
    Dx, Dy = np.kron(D, one), np.kron(one, D)
    A = (np.kron(D @ D, one) + np.kron(one, D @ D) + k**2 * np.diag(slow(X, Y))).astype(complex)
    f = np.zeros(X.size, complex)
    i, j = np.divmod(np.arange(X.size), n + 1)
    for rows, normal, part in ((j == 0, -Dy, 0), (j == n, Dy, 0), (i == 0, -Dx, -1), (i == n, Dx, 1)):
        A[rows] = (normal - 1j * k * np.eye(X.size))[rows]
        f[rows] = (1j * k * (part - 1) * np.exp(1j * k * X))[rows]
    u = np.linalg.solve(A, f)
    where = grid(x=(0, 1, 50), y=(0, 1, 50))
    values = {"a": both(x, x, u.real, where), "b": both(x, x, u.imag, where)}
    return p, table(where, values, 1e-6, "Chebyshev collocation")


@add("debye")
def debye():
    """The potential beside a charged wall in salt water, in units of kT/e and nanometres: Poisson and Boltzmann."""
    kappa, H = 0.5, 10.0
    p = ds.Problem(
        ds.Box(x=(0, H), y=(0, H)),
        ("psi",),
        {
            "pde": ds.interior(lambda psi: ds.laplacian(psi) - kappa**2 * jnp.sinh(psi)),
            "wall": ds.boundary(lambda psi, y: psi - 3 - jnp.cos(jnp.pi * y / H), faces=[("x", "lower")]),
            "others": ds.boundary(lambda psi: psi.n, faces=[("x", "upper"), ("y", "lower"), ("y", "upper")]),
        },
    )
    n = size(36)
    x, D = cheb(n, 0, H)
    one = np.eye(n + 1)
    Y = np.tile(x, n + 1)
    Dx, Dy = np.kron(D, one), np.kron(one, D)
    A = np.kron(D @ D, one) + np.kron(one, D @ D)
    i, j = np.divmod(np.arange(Y.size), n + 1)
    sides = [((j == 0) | (j == n), Dy, 0 * Y), (i == n, Dx, 0 * Y), (i == 0, np.eye(Y.size), 3 + np.cos(pi * Y / H))]
    u = (3 + np.cos(pi * Y / H)) * np.exp(-0.8 * np.repeat(x, n + 1))
    for _ in range(30):
        J, F = A - np.diag(kappa**2 * np.cosh(u)), A @ u - kappa**2 * np.sinh(u)
        for rows, matrix, right in sides:
            J[rows], F[rows] = matrix[rows], (matrix @ u - right)[rows]
        step = np.linalg.solve(J, F)
        u -= step
        if abs(step).max() < 1e-11:
            break
    where = grid(x=(0, H, 50), y=(0, H, 50))
    return p, table(where, {"psi": both(x, x, u, where)}, 1e-8, "Chebyshev collocation and Newton")


@add("duct")
def duct():
    """A polymer melt that thins where it is sheared, in a duct of 20 mm x 10 mm, in metres and pascals."""
    a, b, G, thick, thin, lag, power = 0.02, 0.01, 1e4, 5.0, 0.05, 1.0, 0.4

    def eta(s):
        return thin + (thick - thin) * (1 + lag**2 * s) ** ((power - 1) / 2)

    def slope(s):
        return (thick - thin) * (power - 1) / 2 * lag**2 * (1 + lag**2 * s) ** ((power - 3) / 2)

    def law(w):
        s = w.x**2 + w.y**2
        along = w.x**2 * w.xx + 2 * w.x * w.y * w.xy + w.y**2 * w.yy
        return eta(s) * (w.xx + w.yy) + 2 * slope(s) * along + G

    p = ds.Problem(ds.Box(x=(0, a), y=(0, b)), ("w",), {"law": ds.interior(law), "wall": ds.boundary(lambda w: w)})
    n = size(36)
    x, D = cheb(n, 0, a)
    y, E = cheb(n, 0, b)
    one = np.eye(n + 1)
    Dx, Dy = np.kron(D, one), np.kron(one, E)
    i, j = np.divmod(np.arange((n + 1) ** 2), n + 1)
    inside = (i > 0) & (i < n) & (j > 0) & (j < n)
    w = np.zeros(inside.size)
    for step in range(60):
        drive = G * min(1.0, (step + 1) / 20)
        wx, wy = Dx @ w, Dy @ w
        s = wx**2 + wy**2
        F = Dx @ (eta(s) * wx) + Dy @ (eta(s) * wy) + drive
        e, d = eta(s)[:, None], 2 * slope(s)[:, None]
        tilt = wx[:, None] * Dx + wy[:, None] * Dy
        J = Dx @ (e * Dx + d * wx[:, None] * tilt) + Dy @ (e * Dy + d * wy[:, None] * tilt)
        change = np.linalg.solve(J[np.ix_(inside, inside)], F[inside])
        w[inside] -= change
        if step > 20 and abs(change).max() < 1e-11 * abs(w).max():
            break
    where = grid(x=(0, a, 60), y=(0, b, 40))
    return p, table(where, {"w": both(x, y, w, where)}, 3e-6, "Chebyshev collocation and Newton")


@add("laser")
def laser():
    """A steel plate of 10 cm with a laser on it, its edges insulated: kelvin, metres and seconds."""
    a, T, heat, k, q, w = 0.1, 10.0, 3.6e6, 50.0, 2e7, 0.01

    def beam(x, y, np=np):
        return q * np.exp(-2 * ((x - 0.04) ** 2 + (y - 0.05) ** 2) / w**2)

    p = ds.Problem(
        ds.Box(x=(0, a), y=(0, a), t=(0, T)),
        ("T",),
        {
            "heat": ds.interior(lambda T, x, y: heat * T.t - k * (T.xx + T.yy) - beam(x, y, jnp)),
            "room": ds.initial(lambda T: T - 293.0),
            "edges": ds.boundary(lambda T: T.n),
        },
    )
    n = size(160)
    x = (np.arange(n) + 0.5) * a / n
    where = grid(x=(0, a, 50), y=(0, a, 50), t=(0, T, 20))
    m = np.arange(n)

    def modes(x):
        return np.cos(pi / a * np.multiply.outer(x, m))

    project = modes(x).T * 2 / n
    project[0] /= 2
    source = project @ beam(x[:, None], x[None, :]) @ project.T / heat
    rate = k / heat * (pi / a) ** 2 * (m[:, None] ** 2 + m[None, :] ** 2)
    t = where["t"]
    grown = np.where(rate > 0, -np.expm1(-rate * t[:, None, None]) / np.where(rate > 0, rate, 1), t[:, None, None])
    u = 293 + np.einsum("xi,tij,yj->xyt", modes(where["x"]), grown * source, modes(where["y"]))
    return p, table(where, {"T": u}, 1e-10, "cosine series")


@add("rod")
def rod():
    """A rod of 5 cm whose conductivity grows with the temperature: heated at one end, in air at the other."""
    length, T, heat, h = 0.05, 200.0, 3.8e6, 200.0

    def k(u):
        return 15.0 * (1 + 0.003 * (u - 300.0))

    p = ds.Problem(
        ds.Box(x=(0, length), t=(0, T)),
        ("T",),
        {
            "heat": ds.interior(lambda T: heat * T.t - k(T) * T.xx - 15.0 * 0.003 * T.x**2),
            "cold": ds.initial(lambda T: T - 300.0),
            "flux": ds.boundary(lambda T, t: k(T) * T.n - 1e5 * (1 - jnp.exp(-t / 10.0)), faces=[("x", "lower")]),
            "air": ds.boundary(lambda T: k(T) * T.n + h * (T - 300.0), faces=[("x", "upper")]),
        },
    )
    n = size(32)
    x, D = cheb(n, 0, length)
    where = grid(x=(0, length, 60), t=(0, T, 60))

    def rhs(t, u):
        flow = k(u) * (D @ u)
        flow[0], flow[-1] = -1e5 * (1 - np.exp(-t / 10.0)), -h * (u[-1] - 300.0)
        return D @ flow / heat

    s = solve_ivp(rhs, (0, T), np.full(n + 1, 300.0), method="Radau", rtol=1e-10, atol=1e-8, t_eval=where["t"])
    return p, table(where, {"T": bary(x, s.y, where["x"])}, 1e-8, "Chebyshev lines, Radau")


@add("stirred")
def stirred():
    """What a steady roll carries between a wall at 0 and a wall at 1, at a Peclet number of 60."""
    pe = 60.0
    p = ds.Problem(
        ds.Box(x=(0, 1), y=(0, 1)),
        ("c",),
        {
            "pde": ds.interior(
                lambda c, x, y: (
                    jnp.sin(pi * x) * jnp.cos(pi * y) * c.x
                    - jnp.cos(pi * x) * jnp.sin(pi * y) * c.y
                    - ds.laplacian(c) / pe
                )
            ),
            "left": ds.boundary(lambda c: c, faces=[("x", "lower")]),
            "right": ds.boundary(lambda c: c - 1, faces=[("x", "upper")]),
            "tight": ds.boundary(lambda c: c.n, faces=[("y", "lower"), ("y", "upper")]),
        },
    )
    n = size(40)
    x, D = cheb(n, 0, 1)
    one = np.eye(n + 1)
    X, Y = (g.ravel() for g in np.meshgrid(x, x, indexing="ij"))
    Dx, Dy = np.kron(D, one), np.kron(one, D)
    A = (np.sin(pi * X) * np.cos(pi * Y))[:, None] * Dx - (np.cos(pi * X) * np.sin(pi * Y))[:, None] * Dy
    A -= (np.kron(D @ D, one) + np.kron(one, D @ D)) / pe
    f = np.zeros(X.size)
    i, j = np.divmod(np.arange(X.size), n + 1)
    for rows, matrix, right in (
        ((j == 0) | (j == n), Dy, 0.0),
        (i == 0, np.eye(X.size), 0.0),
        (i == n, np.eye(X.size), 1.0),
    ):
        A[rows], f[rows] = matrix[rows], right
    where = grid(x=(0, 1, 60), y=(0, 1, 60))
    return p, table(where, {"c": both(x, x, np.linalg.solve(A, f), where)}, 1e-9, "Chebyshev collocation")


@add("epidemic")
def epidemic():
    """An epidemic that travels along a valley of 100 km, in people per kilometre and days."""
    L, T, N, beta, gamma, D0 = 100.0, 25.0, 2000.0, 0.5, 0.15, 4.0
    p = ds.Problem(
        ds.Box(x=(0, L), t=(0, T)),
        ("S", "I", "R"),
        {
            "S": ds.interior(lambda S, I: S.t - D0 * S.xx + beta * S * I / N),
            "I": ds.interior(lambda S, I: I.t - D0 * I.xx - beta * S * I / N + gamma * I),
            "R": ds.interior(lambda I, R: R.t - D0 * R.xx - gamma * I),
            "S0": ds.initial(lambda S: S - N),
            "I0": ds.initial(lambda I, x: I - 50 * jnp.exp(-(((x - 20) / 6) ** 2))),
            "R0": ds.initial(lambda R: R),
            "S ends": ds.boundary(lambda S: S.n),
            "I ends": ds.boundary(lambda I: I.n),
            "R ends": ds.boundary(lambda R: R.n),
        },
    )
    n = size(160)
    x = (np.arange(n) + 0.5) * L / n
    C = np.cos(pi / L * np.outer(x, np.arange(n)))
    second = C @ np.diag(-((pi / L * np.arange(n)) ** 2)) @ np.linalg.inv(C)
    where = grid(x=(0, L, 80), t=(0, T, 40))

    def rhs(t, y):
        S, I, R = y.reshape(3, n)
        new = beta * S * I / N
        return D0 * (second @ y.reshape(3, n).T).T.ravel() + np.r_[-new, new - gamma * I, gamma * I]

    start = np.r_[np.full(n, N), 50 * np.exp(-(((x - 20) / 6) ** 2)), np.zeros(n)]
    s = solve_ivp(rhs, (0, T), start, method="DOP853", rtol=1e-11, atol=1e-9, t_eval=where["t"])
    at = np.cos(pi / L * np.outer(where["x"], np.arange(n))) @ np.linalg.inv(C)
    y = s.y.reshape(3, n, -1)
    return p, table(where, {u: at @ y[i] for i, u in enumerate("SIR")}, 1e-8, "cosine series, DOP853")


@add("river")
def river():
    """A cloud of dye that drifts down a river, in metres, seconds and mg/l."""
    L, T, v, D, w = 12000.0, 6000.0, 1.0, 20.0, 300.0
    p = ds.Problem(
        ds.Box(x=(0, L), t=(0, T)),
        ("c",),
        {
            "pde": ds.interior(lambda c: c.t + v * c.x - D * c.xx),
            "spill": ds.initial(lambda c, x: c - 5 * jnp.exp(-((x - 2500.0) ** 2) / (2 * w**2))),
            "clean": ds.boundary(lambda c: c),
        },
    )

    def exact(x, t):
        s = w**2 + 2 * D * t
        return {"c": 5 * w / np.sqrt(s) * np.exp(-((x - 2500.0 - v * t) ** 2) / (2 * s))}

    return p, ref(dict(x=(0, L, 120), t=(0, T, 50)), exact)


@add("seiche")
def seiche():
    """A long lake that sways after a storm, on the turning Earth: metres and seconds, walls at both ends."""
    L, T, H, g, f = 1e5, 21600.0, 50.0, 9.81, 1e-4
    parts = [(1, 0.5), (2, 0.2)]

    p = ds.Problem(
        ds.Box(x=(0, L), t=(0, T)),
        ("eta", "u", "v"),
        {
            "mass": ds.interior(lambda eta, u: eta.t + H * u.x),
            "along": ds.interior(lambda eta, u, v: u.t - f * v + g * eta.x),
            "across": ds.interior(lambda u, v: v.t + f * u),
            "level": ds.initial(lambda eta, x: eta - sum(c * jnp.cos(m * pi * x / L) for m, c in parts)),
            "u0": ds.initial(lambda u: u),
            "v0": ds.initial(lambda v: v),
            "ends": ds.boundary(lambda u: u),
        },
    )
    where = grid(x=(0, L, 60), t=(0, T, 60))
    out = {name: 0.0 for name in ("eta", "u", "v")}
    for m, c in parts:
        k = m * pi / L
        A = np.array([[0, -H * k, 0], [g * k, 0, f], [0, -f, 0]])
        y = np.array([expm(A * t) @ [c, 0, 0] for t in where["t"]])
        for i, (name, shape) in enumerate(zip(out, (np.cos, np.sin, np.sin), strict=True)):
            out[name] = out[name] + np.multiply.outer(shape(k * where["x"]), y[:, i])
    return p, table(where, out, 1e-11, "modes and matrix exponentials")


@add("line")
def line():
    """A pulse of 5 V into 20 m of cable of 50 ohm that ends in 75 ohm, in volts, amperes, metres and seconds."""
    L, C, R, G, length, T, load = 250e-9, 100e-12, 0.5, 1e-5, 20.0, 300e-9, 75.0

    def pulse(t, np=np):
        return 5 * np.exp(-(((t - 75e-9) / 15e-9) ** 2))

    p = ds.Problem(
        ds.Box(x=(0, length), t=(0, T)),
        ("v", "i"),
        {
            "coil": ds.interior(lambda v, i: v.x + L * i.t + R * i),
            "shunt": ds.interior(lambda v, i: i.x + C * v.t + G * v),
            "v0": ds.initial(lambda v: v),
            "i0": ds.initial(lambda i: i),
            "source": ds.boundary(lambda v, t: v - pulse(t, jnp), faces=[("x", "lower")]),
            "load": ds.boundary(lambda v, i: v - load * i, faces=[("x", "upper")]),
        },
    )
    count, period = 2048, 4 * T
    instants = np.arange(count) * period / count
    where = {"x": interior_grid(0, length, 100), "t": instants[count // 320 : count // 4 : count // 160]}
    put = np.fft.rfft(pulse(instants) * np.exp(-28 / period * instants)) * period / count

    def response(s):
        gamma, z = np.sqrt((R + s * L) * (G + s * C)), np.sqrt((R + s * L) / (G + s * C))
        back = (load - z) / (load + z)
        x = where["x"]
        there, echo = np.exp(-gamma * x), back * np.exp(-gamma * (2 * length - x))
        n = round(s.imag * period / (2 * pi))
        return put[n] / (1 + back * np.exp(-2 * gamma * length)) * np.array([there + echo, (there - echo) / z])

    f = inverted(response, np.arange(count // 320, count // 4, count // 160), period, count)
    return p, table(where, {"v": f[:, 0].T, "i": f[:, 1].T}, 1e-8, "Laplace transform, FFT")


@add("bar")
def bar():
    """A blow on a bar of steel that turns into copper over some centimetres; its far end is fixed."""
    length, T = 1.0, 4e-4

    def mix(x, np=np):
        return 0.5 * (1 + np.tanh((x - 0.5) / 0.06))

    def E(x, np=np):
        return 200e9 - 90e9 * mix(x, np)

    def rho(x, np=np):
        return 7800.0 + 1160.0 * mix(x, np)

    def blow(t, np=np):
        return 1e6 * np.exp(-(((t - 1e-4) / 2e-5) ** 2))

    def law(u, x):
        slope = -90e9 * 0.5 / 0.06 / jnp.cosh((x - 0.5) / 0.06) ** 2
        return rho(x, jnp) * u.tt - E(x, jnp) * u.xx - slope * u.x

    p = ds.Problem(
        ds.Box(x=(0, length), t=(0, T)),
        ("u",),
        {
            "motion": ds.interior(law),
            "rest": ds.initial(lambda u: u),
            "still": ds.initial(lambda u: u.t),
            "blow": ds.boundary(lambda u, x, t: E(x, jnp) * u.x + blow(t, jnp), faces=[("x", "lower")]),
            "fixed": ds.boundary(lambda u: u, faces=[("x", "upper")]),
        },
    )
    n = size(100)
    x, D = cheb(n, 0, length)
    K, mass, count, period = D @ (E(x)[:, None] * D), rho(x), 640, 4 * T
    instants = np.arange(count) * period / count
    put = np.fft.rfft(blow(instants) * np.exp(-28 / period * instants)) * period / count

    def response(s):
        A, f = np.diag(mass * s**2) - K, np.zeros(n + 1, complex)
        A[0], A[-1] = E(x)[0] * D[0], np.eye(n + 1)[-1]
        f[0] = -put[round(s.imag * period / (2 * pi))]
        return np.linalg.solve(A, f)

    times = np.arange(1, count // 4, 2)
    where = {"x": interior_grid(0, length, 80), "t": instants[times]}
    u = bary(x, inverted(response, times, period, count).T, where["x"])
    return p, table(where, {"u": u}, 1e-7, "Laplace transform, FFT; Chebyshev collocation")


@add("swift")
def swift():
    """Swift and Hohenberg: a pattern that grows out of a bump, five wavelengths on a ring."""
    L, T, r = 10 * pi, 10.0, 0.3

    def bump(x, np=np):
        return 0.2 * np.exp(2 * (np.cos(0.2 * x) - 1)) * np.cos(x)

    p = ds.Problem(
        ds.Box(x=(0, L), t=(0, T)),
        ("u",),
        {
            "pde": ds.interior(lambda u: u.t - r * u + u + 2 * u.xx + u.xxxx + u**3),
            "start": ds.initial(lambda u, x: u - bump(x, jnp)),
        },
        periodic=("x",),
    )
    n = size(48) * 2
    x = np.arange(n) * L / n
    k2 = (2 * pi / L * np.arange(n // 2 + 1)) ** 2
    linear = r - (1 - k2) ** 2
    where = grid(x=(0, L, 120), t=(0, T, 40))

    def rhs(t, u):
        return np.fft.irfft(linear * np.fft.rfft(u), n) - u**3

    s = solve_ivp(rhs, (0, T), bump(x), method="Radau", rtol=1e-10, atol=1e-12, t_eval=where["t"])
    waves = np.fft.rfft(s.y, axis=0) / n
    waves[1:-1] *= 2
    at = np.exp(2j * pi / L * np.outer(where["x"], np.arange(n // 2 + 1)))
    return p, table(where, {"u": (at @ waves).real}, 1e-9, "Fourier series, Radau")


@add("stokes")
def stokes():
    """Creeping flow in a closed box that a body force stirs; the pressure is fixed nowhere."""

    def push(x, y, np=np):
        return 100 * np.sin(pi * x) * np.exp(x) * y

    p = ds.Problem(
        ds.Box(x=(0, 1), y=(0, 1)),
        ("u", "v", "p"),
        {
            "x": ds.interior(lambda u, p: p.x - ds.laplacian(u)),
            "y": ds.interior(lambda v, p, x, y: p.y - ds.laplacian(v) - push(x, y, jnp)),
            "mass": ds.interior(lambda u, v: u.x + v.y),
            "u": ds.boundary(lambda u: u),
            "v": ds.boundary(lambda v: v),
        },
    )
    n = size(40)
    x, D = cheb(n, -1, 1)
    bubble = np.r_[0, 1 / (1 - x[1:-1] ** 2), 0]
    D2 = D @ D
    D4 = ((1 - x**2)[:, None] * (D2 @ D2) - 8 * x[:, None] * (D2 @ D) - 12 * D2) * bubble
    inner = slice(1, -1)
    D2i, D4i, one = D2[inner, inner], D4[inner, inner], np.eye(n - 1)
    L = 16 * (np.kron(D4i, one) + np.kron(one, D4i) + 2 * np.kron(D2i, D2i))
    X, Y = np.meshgrid((x[inner] + 1) / 2, (x[inner] + 1) / 2, indexing="ij")
    curl = 100 * Y * np.exp(X) * (pi * np.cos(pi * X) + np.sin(pi * X))
    psi = np.zeros((n + 1, n + 1))
    psi[inner, inner] = np.linalg.solve(L, curl.ravel()).reshape(n - 1, n - 1)
    where = grid(x=(0, 1, 40), y=(0, 1, 40))
    s = (x + 1) / 2
    values = {"u": both(s, s, 2 * psi @ D.T, where), "v": both(s, s, -2 * D @ psi, where)}
    return p, table(where, values, 5e-8, "Chebyshev collocation of the stream function")


@add("prey2d")
def prey2d():
    """Prey and predators on a square plain, none of whom crosses its edges."""
    T, d, e, m, half = 6.0, 0.01, 0.9, 0.4, 0.3

    def start(x, y, np=np):
        return 0.5 + 0.3 * np.cos(pi * x) * np.cos(2 * pi * y), 0.4 + 0.2 * np.cos(pi * y)

    p = ds.Problem(
        ds.Box(x=(0, 1), y=(0, 1), t=(0, T)),
        ("a", "b"),
        {
            "prey": ds.interior(lambda a, b: a.t - d * (a.xx + a.yy) - a * (1 - a) + a * b / (a + half)),
            "hunters": ds.interior(lambda a, b: b.t - d * (b.xx + b.yy) - e * a * b / (a + half) + m * b),
            "a0": ds.initial(lambda a, x, y: a - start(x, y, jnp)[0]),
            "b0": ds.initial(lambda b, x, y: b - start(x, y, jnp)[1]),
            "a edges": ds.boundary(lambda a: a.n),
            "b edges": ds.boundary(lambda b: b.n),
        },
    )
    n = size(32)
    x = (np.arange(n) + 0.5) / n
    C = np.cos(pi * np.outer(x, np.arange(n)))
    back = np.linalg.inv(C)
    second = C @ np.diag(-((pi * np.arange(n)) ** 2)) @ back
    where = grid(x=(0, 1, 30), y=(0, 1, 30), t=(0, T, 20))

    def rhs(t, z):
        a, b = z.reshape(2, n, n)
        eaten = a * b / (a + half)
        f = a * (1 - a) - eaten + d * (second @ a + a @ second.T)
        return np.stack([f, e * eaten - m * b + d * (second @ b + b @ second.T)]).ravel()

    X, Y = np.meshgrid(x, x, indexing="ij")
    first = np.stack(np.broadcast_arrays(*start(X, Y))).ravel()
    s = solve_ivp(rhs, (0, T), first, method="DOP853", rtol=1e-11, atol=1e-12, t_eval=where["t"])
    at = np.cos(pi * np.outer(where["x"], np.arange(n))) @ back
    a, b = np.einsum("xi,yj,cijt->cxyt", at, at, s.y.reshape(2, n, n, -1))
    return p, table(where, {"a": a, "b": b}, 1e-9, "cosine series, DOP853")


@add("soliton")
def soliton():
    """A soliton of the nonlinear Schroedinger equation on its way."""
    L, T, eta, v = 20.0, 3.0, 1.2, 1.0

    def exact(x, t, np=np):
        phase = v * x + (eta**2 - v**2) / 2 * t
        envelope = eta / np.cosh(eta * (x + 2 - v * t))
        return envelope * np.cos(phase), envelope * np.sin(phase)

    p = ds.Problem(
        ds.Box(x=(-L, L), t=(0, T)),
        ("a", "b"),
        {
            "real": ds.interior(lambda a, b: -b.t + 0.5 * a.xx + (a**2 + b**2) * a),
            "imaginary": ds.interior(lambda a, b: a.t + 0.5 * b.xx + (a**2 + b**2) * b),
            "a0": ds.initial(lambda a, x: a - exact(x, 0.0, jnp)[0]),
            "b0": ds.initial(lambda b, x: b - exact(x, 0.0, jnp)[1]),
            "a far": ds.boundary(lambda a: a),
            "b far": ds.boundary(lambda b: b),
        },
    )
    return p, ref(dict(x=(-L, L, 160), t=(0, T, 40)), lambda x, t: dict(zip("ab", exact(x, t), strict=True)))


def references() -> None:
    """How far each reference moves when FINE makes it finer, beside what it promises."""
    global FINE
    for name, make in P.items():
        FINE, fine = 1.0, float(os.environ.get("FINE", 1.4))
        coarse = make()[1]
        FINE = fine
        finer = make()[1]
        if coarse.values[next(iter(coarse.values))].shape != finer.values[next(iter(finer.values))].shape:
            print(name, "another grid")
            continue
        moved = {u: np.linalg.norm(finer.values[u] - v) / np.linalg.norm(v) for u, v in coarse.values.items()}
        print(f"{name:12} {max(moved.values()):.1e}  promised {coarse.accuracy:.0e}  {coarse.source}")


if __name__ == "__main__":
    assert P is development.P
    references() if "--references" in sys.argv else main()
