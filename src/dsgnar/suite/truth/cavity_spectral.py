"""The lid-driven cavity by a spectral method with its corner singularities taken out.

Steady Navier-Stokes flow in the unit square with the stream function psi, u = psi_y, v = -psi_x, viscosity nu = 1/Re:

    nu int lap(psi) lap(phi) + int lap(psi) (u phi_x + v phi_y) = 0      for all phi with phi = phi_n = 0 on the walls,

which is the vorticity equation, integrated by parts, for the vorticity omega = -lap(psi). The lid moves at 4 x (1 - x).

At the two upper corners the lid says u_x = +-4 and the wall says v_y = 0: the flow is not smooth there. With r and theta the
polar coordinates about the left one (theta = 0 along the lid, eta = 1 - y) it begins with the Stokes flow

    psi_s = pi eta^2 - 2 x eta - 2 theta r^2,      omega_s = 8 theta - 2 pi,      p_s = 8 nu log r:

a vorticity that depends on the direction and a logarithm in the pressure. The right corner is its mirror image, with the
pressure's sign changed. What is left over has r^3.74 as its strongest singularity (Moffatt 1964), so that polynomials
converge fast (Botella and Peyret 1998 did the same for a constant lid):

    psi = c psi_s (both corners) + lift + sum_ij a_ij b_i(x) b_j(y),

with the cut-off c = h(x) h(eta), h(s) = (1-s)^2 (1+2s), a polynomial `lift` for the rest of the lid's speed, and Shen's
Legendre basis (1994), b = b' = 0 at both ends and (b_i'', b_j'') = delta_ij. psi_s is biharmonic, so
`int lap(psi_s) lap(phi)` vanishes exactly and is left out: what remains is smooth enough for Gauss quadrature. Newton's
method solves for a; the Jacobian is assembled as products of one-dimensional arrays.

The head P = p - p_s + |u|^2 / 2 follows from the momentum equation, tested with gradients:

    int grad P . grad q = nu loop (omega - omega_s) q_tau + int omega (v q_x - u q_y).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.polynomial import Polynomial, legendre
from scipy import linalg

H = Polynomial([1, 0, -3, 2])  # h(s) = (1-s)^2 (1+2s): the cut-off is 1 at its corner and flat at all walls
LID = Polynomial([0, 4, -4])  # 4 x (1 - x)
# The singular parts move the lid at 4 x h(x) and, mirrored, at 4 (1-x) h(1-x); the rest vanishes twice at both ends.
LIFT_X = LID - 4 * Polynomial([0, 1]) * H - 4 * Polynomial([1, -1]) * H(Polynomial([1, -1]))
LIFT_Y = Polynomial([0, 0, -1, 1])  # y^2 (y - 1): slope 1 at the lid, flat at the floor


def quadrature(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre points and weights on [0, 1]."""
    x, w = legendre.leggauss(count)
    return (x + 1) / 2, w / 2


def clamped_basis(size: int, x: np.ndarray) -> list[np.ndarray]:
    """Values, first and second derivatives (points, size) of Shen's basis on [0, 1]."""
    k = np.arange(size)
    c = np.zeros((size + 4, size))
    c[k, k], c[k + 2, k], c[k + 4, k] = 1.0, -2 * (2 * k + 5) / (2 * k + 7), (2 * k + 3) / (2 * k + 7)
    c /= np.sqrt(2 * (2 * k + 3) ** 2 * (2 * k + 5))
    out = []
    for order in range(3):
        d = legendre.legder(c, order) if order else c
        out.append(2.0**order * legendre.legvander(2 * x - 1, len(d) - 1) @ d)
    return out


@dataclass(frozen=True, eq=False)
class Singular:
    """Both corner flows on the grid x * y: with the cut-off (psi, psi_x, psi_y, lap), and without it (`bare_lap`, `log`)."""

    psi: np.ndarray
    psi_x: np.ndarray
    psi_y: np.ndarray
    lap: np.ndarray
    bare_lap: np.ndarray
    log: np.ndarray  # p_s / nu

    @classmethod
    def on(cls, x: np.ndarray, y: np.ndarray) -> "Singular":
        left, right = _corner(x[:, None], 1 - y[None]), _corner(1 - x[:, None], 1 - y[None])
        signs = np.array([1, -1, 1, 1, 1, -1])[:, None, None]
        return cls(*(left + signs * right))


def _corner(x: np.ndarray, eta: np.ndarray) -> np.ndarray:
    """The fields of `Singular` for the corner at x = eta = 0."""
    theta, r2 = np.arctan2(eta, x), x**2 + eta**2
    psi = np.pi * eta**2 - 2 * x * eta - 2 * theta * r2
    psi_x, psi_eta = -4 * x * theta, 2 * np.pi * eta - 4 * x - 4 * eta * theta
    lap = 2 * np.pi - 8 * theta
    c, c_x, c_eta = H(x) * H(eta), H.deriv()(x) * H(eta), H(x) * H.deriv()(eta)
    c_lap = H.deriv(2)(x) * H(eta) + H(x) * H.deriv(2)(eta)
    with np.errstate(divide="ignore"):  # at the corner itself
        log = 4 * np.log(r2)
    return np.stack([
        c * psi, c * psi_x + c_x * psi, -(c * psi_eta + c_eta * psi),
        c * lap + 2 * (c_x * psi_x + c_eta * psi_eta) + c_lap * psi, lap, log,
    ])  # fmt: skip


@dataclass(frozen=True, eq=False)
class Flow:
    """A solution: the coefficients a_ij, and with them velocity and pressure on any grid."""

    reynolds: float
    coefficients: np.ndarray

    @property
    def size(self) -> int:
        return len(self.coefficients)

    def stream(self, x: np.ndarray, y: np.ndarray) -> dict[str, np.ndarray]:
        """psi, its first derivatives and its Laplacian on the grid x * y, and the singular part's Laplacian in it."""
        s = Singular.on(x, y)
        bx, by = clamped_basis(self.size, x), clamped_basis(self.size, y)
        lx, ly = ([p(z), p.deriv()(z), p.deriv(2)(z)] for p, z in ((LIFT_X, x), (LIFT_Y, y)))

        def part(i: int, j: int) -> np.ndarray:
            return bx[i] @ self.coefficients @ by[j].T + np.outer(lx[i], ly[j])

        return {
            "psi": part(0, 0) + s.psi,
            "x": part(1, 0) + s.psi_x,
            "y": part(0, 1) + s.psi_y,
            "lap": part(2, 0) + part(0, 2) + s.lap,
            "bare": s.bare_lap,
        }

    def velocity(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        psi = self.stream(x, y)
        return psi["y"], -psi["x"]

    def pressure(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The pressure on the grid x * y, which must leave out the upper corners; its mean over the square is arbitrary."""
        u, v = self.velocity(x, y)
        basis = [legendre.legvander(2 * z - 1, len(self.head) - 1) for z in (x, y)]
        return basis[0] @ self.head @ basis[1].T - (u**2 + v**2) / 2 + Singular.on(x, y).log / self.reynolds

    @cached_property
    def head(self) -> np.ndarray:
        """The Legendre coefficients of P, by diagonalising the one-dimensional stiffness and mass matrices."""
        degree = self.size + 3
        x, w = quadrature(2 * degree)
        d = 2 * legendre.legder(np.eye(degree + 1))
        q, qx = legendre.legvander(2 * x - 1, degree), legendre.legvander(2 * x - 1, degree - 1) @ d
        field = self.stream(x, x)
        force = -field["lap"] * np.outer(w, w)
        right = qx.T @ (force * -field["x"]) @ q - q.T @ (force * field["y"]) @ qx
        right += self._walls(x, w, qx) / self.reynolds
        eigenvalues, vectors = linalg.eigh(qx.T @ (w[:, None] * qx), q.T @ (w[:, None] * q))
        total = eigenvalues[:, None] + eigenvalues
        total[0, 0] = np.inf  # the constant
        return vectors @ ((vectors.T @ right @ vectors) / total) @ vectors.T

    def _walls(self, x: np.ndarray, w: np.ndarray, qx: np.ndarray) -> np.ndarray:
        """The loop integral of (omega - omega_s) q_tau, counter-clockwise outward normals: omega (q_y n_x - q_x n_y)."""
        ends = np.array([0.0, 1.0])
        q_ends = legendre.legvander(2 * ends - 1, qx.shape[1] - 1)
        vertical, horizontal = self.stream(ends, x), self.stream(x, ends)
        omega_v, omega_h = vertical["bare"] - vertical["lap"], horizontal["bare"] - horizontal["lap"]
        sign = np.array([-1.0, 1.0])
        along_y = (q_ends.T * sign) @ (omega_v * w) @ qx
        along_x = qx.T @ (w[:, None] * omega_h) @ (q_ends * -sign[:, None])
        return along_y + along_x


def solve(reynolds: float, size: int, start: np.ndarray | None = None, tolerance: float = 1e-10) -> Flow:
    """The flow with `size` basis functions per direction, by Newton's method from `start` (default: no interior part)."""
    newton = _Newton(reynolds, size)
    a = np.zeros((size, size))
    if start is not None:
        m = min(size, len(start))
        a[:m, :m] = start[:m, :m]
    for _ in range(30):
        residual, jacobian = newton.system(a)
        step = linalg.solve(jacobian, -residual.ravel(), overwrite_a=True).reshape(size, size)
        a = a + step
        if np.linalg.norm(step) <= tolerance * np.linalg.norm(a):
            return Flow(reynolds, a)
    raise RuntimeError(f"Newton's method did not converge at Re = {reynolds}; approach it through smaller numbers")


class _Newton:
    """Residual and Jacobian of the discrete equation for the coefficients a."""

    def __init__(self, reynolds: float, size: int):
        self.reynolds, self.size = reynolds, size
        self.x, w = quadrature(2 * (size + 4))
        self.b = clamped_basis(size, self.x)
        self.w = np.outer(w, w)
        self.bare = Singular.on(self.x, self.x).bare_lap

    def system(self, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        psi = Flow(self.reynolds, a).stream(self.x, self.x)
        u, v, lap, nu = self.w * psi["y"], -self.w * psi["x"], self.w * psi["lap"], 1 / self.reynolds
        smooth = nu * self.w * (psi["lap"] - self.bare)
        b, b1, b2 = self.b
        residual = b2.T @ smooth @ b + b.T @ smooth @ b2 + b1.T @ (u * psi["lap"]) @ b + b.T @ (v * psi["lap"]) @ b1
        # (weight, test function in x and y, trial function in x and y) of every term of the linearised equation
        terms = [(nu * self.w, i, j, k, l) for i, j in ((2, 0), (0, 2)) for k, l in ((2, 0), (0, 2))]
        terms += [(field, i, j, k, l) for field, i, j in ((u, 1, 0), (v, 0, 1)) for k, l in ((2, 0), (0, 2))]
        terms += [(lap, 1, 0, 0, 1), (-lap, 0, 1, 1, 0)]
        return residual, self._assemble(terms)

    def _assemble(self, terms) -> np.ndarray:
        """sum_q weight(x,y) b_i(x) b_j(y) b_k(x) b_l(y) as a matrix [(i, j), (k, l)]."""
        n, total = self.size, 0
        for weight, i, j, k, l in terms:
            in_x = np.einsum("qi,qk->ikq", self.b[i], self.b[k]).reshape(n * n, -1)
            in_y = np.einsum("qj,ql->qjl", self.b[j], self.b[l]).reshape(-1, n * n)
            total = total + (in_x @ weight) @ in_y
        return np.asarray(total).reshape(n, n, n, n).transpose(0, 2, 1, 3).reshape(n * n, n * n)
