"""A screened Poisson equation in a cube with round holes (Poisson3d-CG of the PINNacle benchmark) by finite elements.

    -lap(u) + k^2 u = f in [0, 1]^3 without balls,    du/dn = 0 on all of the boundary:

    (grad u, grad v) + (k^2 u, v) = (f, v)        for all v,

integrals over the domain. No condition has to be imposed, so that cubes with polynomials of degree p in each variable do,
although balls cut some of them: what is inside a ball does not count, up to a share `GHOST` that keeps the functions of
cells with little left apart. In a cut cell integrals run along lines, between the exact points where balls cut them. k jumps
at z = 1/2, between cells. All whole cells have one of two matrices, and conjugate gradients need no other.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import legendre

from dsgnar.calculus.streams import stream
from dsgnar.problem.domain import Interior
from dsgnar.problem.sampling import sample
from dsgnar.suite.pinnacle.shaped import BALLS, poisson3d
from dsgnar.suite.truth.spectral import relative
from dsgnar.suite.truth.table import Comparison, Table

Balls = tuple[tuple[float, float, float, float], ...]  # centre and radius
Function = Callable[[np.ndarray], np.ndarray]  # points (n, 3) -> values (n,)

GHOST = 1e-5  # of what is inside a ball; with 1e-4 errors are the same to four digits
PATCHES, GAUSS = 3, 4  # lines of a cut cell: so many pieces of each side, with so many lines
CELLS, DEGREE, PLACES = 32, 3, 4096  # of the stored table
SCREENS = 64.0, 100.0  # k^2 below z = 1/2 and above


@dataclass(frozen=True)
class Line:
    """Polynomials on [0, 1] by their values at Gauss-Lobatto nodes."""

    degree: int

    @property
    def nodes(self) -> np.ndarray:
        inner = legendre.legroots(legendre.legder(np.eye(self.degree + 1)[-1]))
        return (1 + np.concatenate([[-1.0], inner, [1.0]])) / 2

    def at(self, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Every polynomial at points, and its slope: (n, degree + 1) each."""
        back = np.linalg.inv(legendre.legvander(2 * self.nodes - 1, self.degree))
        slopes = legendre.legder(back, axis=0)
        at = lambda degree: legendre.legvander(2 * s - 1, degree)
        return at(self.degree) @ back, 2 * at(self.degree - 1) @ slopes


def products(line: Line, s: np.ndarray, h: float) -> tuple[np.ndarray, list[np.ndarray]]:
    """All functions of a cell of width h at points (n, 3) of the unit cube, and their slopes along each axis."""
    values, slopes = zip(*(line.at(s[:, i]) for i in range(3)), strict=True)
    join = lambda a, b, c: np.einsum("ni,nj,nk->nijk", a, b, c).reshape(len(s), (line.degree + 1) ** 3)
    along = [join(*(slopes[i] / h if i == axis else values[i] for i in range(3))) for axis in range(3)]
    return join(*values), along


def gauss(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights on [0, 1]."""
    x, w = legendre.leggauss(count)
    return (1 + x) / 2, w / 2


def whole(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Points (n, 3) and weights on the unit cube."""
    x, w = gauss(count)
    return np.stack(np.meshgrid(x, x, x, indexing="ij"), -1).reshape(-1, 3), np.einsum("i,j,k->ijk", w, w, w).ravel()


def outside(corner: np.ndarray, h: float, balls: np.ndarray, degree: int) -> tuple[np.ndarray, np.ndarray]:
    """Points of a cell, in units of its width, and weights for integrals over what lies outside all of the balls."""
    centres, radii = (balls[:, :3] - corner) / h, balls[:, 3] / h
    first = np.argmin(np.abs(np.linalg.norm(0.5 - centres, axis=1) - radii))
    axis = int(np.argmax(np.abs(0.5 - centres[first])))  # along it the surface is most nearly a graph
    others = [i for i in range(3) if i != axis]
    x, w = gauss(GAUSS)
    x, w = ((np.arange(PATCHES)[:, None] + x) / PATCHES).ravel(), np.tile(w / PATCHES, PATCHES)
    lines, weight = np.stack(np.meshgrid(x, x, indexing="ij"), -1).reshape(-1, 2), np.outer(w, w).ravel()
    ends = [np.zeros(len(lines)), np.ones(len(lines))]
    for c, r in zip(centres, radii, strict=True):
        half = np.sqrt(np.maximum(r**2 - np.sum((lines - c[others]) ** 2, axis=1), 0.0))
        ends += [np.clip(c[axis] - half, 0, 1), np.clip(c[axis] + half, 0, 1)]
    ends = np.sort(np.stack(ends), axis=0)
    y, v = gauss(degree + 2)
    points, weights = [], []
    for low, high in zip(ends[:-1], ends[1:], strict=True):
        at = np.empty((len(lines), len(y), 3))
        at[:, :, others] = lines[:, None]
        at[:, :, axis] = low[:, None] + (high - low)[:, None] * y
        middle = np.insert(lines, axis, (low + high) / 2, axis=1)
        free = np.all(np.linalg.norm(middle[:, None] - centres, axis=2) >= radii, axis=1) & (high > low)
        points.append(at[free].reshape(-1, 3))
        weights.append(((weight * (high - low))[:, None] * v)[free].ravel())
    return np.concatenate(points), np.concatenate(weights)


class Cells:
    """The cube in n x n x n cells, cut by balls."""

    def __init__(self, balls: Balls, f: Function, n: int, degree: int):
        self.n, self.line, self.h = n, Line(degree), 1 / n
        index = np.stack(np.meshgrid(*[np.arange(n)] * 3, indexing="ij"), -1).reshape(-1, 3)
        corners, solid = index * self.h, np.array(balls).reshape(-1, 4)
        away = np.abs(corners[:, None] + self.h / 2 - solid[:, :3])
        near = np.linalg.norm(np.maximum(away - self.h / 2, 0), axis=2) < solid[:, 3]
        buried = (np.linalg.norm(away + self.h / 2, axis=2) <= solid[:, 3]).any(axis=1)
        self.dofs = self._numbers(index)
        self.screen = np.where(corners[:, 2] + self.h / 2 < 0.5, *SCREENS)
        self.cut, plain = np.flatnonzero(near.any(axis=1) & ~buried), ~near.any(axis=1)
        self.groups = [np.flatnonzero(plain & (self.screen == k)) for k in SCREENS]
        points, weights = whole(degree + 3)
        stiff, mass, values = self._matrices(points, weights)
        self.plain = [stiff + k * mass for k in SCREENS]
        self.own = np.empty((len(self.cut), *mass.shape))
        right = np.zeros(self.dofs.shape)
        every = np.flatnonzero(plain)
        at = corners[every][:, None] + self.h * points
        right[every] = (self.h**3 * weights * f(at.reshape(-1, 3)).reshape(at.shape[:2])) @ values
        for number, cell in enumerate(self.cut):
            where, share = outside(corners[cell], self.h, solid[near[cell]], degree)
            K, M, V = self._matrices(where, share)
            k = self.screen[cell]
            self.own[number] = K + k * M + GHOST * (stiff + k * mass)
            right[cell] = self.h**3 * (share * f(corners[cell] + self.h * where)) @ V
        used = np.concatenate([self.cut, *self.groups])
        self.known = np.zeros((n * degree + 1) ** 3, bool)
        self.known[self.dofs[used]] = True
        self.right = np.bincount(self.dofs.ravel(), right.ravel(), len(self.known))

    def _numbers(self, index: np.ndarray) -> np.ndarray:
        p = self.line.degree
        along = p * index[:, :, None] + np.arange(p + 1)  # of each cell and axis
        side = self.n * p + 1
        numbers = (along[:, 0, :, None, None] * side + along[:, 1, None, :, None]) * side + along[:, 2, None, None, :]
        return numbers.reshape(len(index), -1)

    def _matrices(self, points: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of the slopes and of the values, and the values themselves."""
        values, slopes = products(self.line, points, self.h)
        w = self.h**3 * weights[:, None]
        return sum(d.T @ (w * d) for d in slopes), values.T @ (w * values), values  # type: ignore[return-value]

    def _summed(self, by_cell: Callable) -> np.ndarray:
        """Contributions of all cells: `by_cell` makes them from the matrices of some and their numbers."""
        out = np.zeros(len(self.known))
        for matrix, cells in (*zip(self.plain, self.groups, strict=True), (self.own, self.cut)):
            if len(cells):
                out += np.bincount(self.dofs[cells].ravel(), by_cell(matrix, cells).ravel(), len(out))
        return out

    def solve(self, tolerance: float = 1e-9, most: int = 20_000) -> np.ndarray:
        """By conjugate gradients, each equation over its diagonal."""
        product = lambda A, x: np.einsum("cij,cj->ci", A, x) if A.ndim == 3 else x @ A
        apply = lambda x: self._summed(lambda A, cells: product(A, x[self.dofs[cells]]))
        ones = lambda A, cells: np.broadcast_to(np.einsum("...ii->...i", A), self.dofs[cells].shape)
        diagonal = np.where(self.known, self._summed(ones), 1.0)
        x, r = np.zeros(len(self.known)), self.right.copy()
        z = r / diagonal
        p, rz = z, r @ z
        first = rz
        for _ in range(most):
            q = apply(p)
            a = rz / (p @ q)
            x, r = x + a * p, r - a * q
            z = r / diagonal
            before, rz = rz, r @ z
            if rz <= tolerance**2 * first:
                return x
            p = z + rz / before * p
        raise RuntimeError(f"conjugate gradients did not converge in {most} steps")

    def at(self, x: np.ndarray, points: np.ndarray) -> np.ndarray:
        """Values of a solution at points (m, 3)."""
        index = np.clip((points * self.n).astype(int), 0, self.n - 1)
        values, _ = products(self.line, points * self.n - index, self.h)
        return np.sum(values * x[self._numbers(index)], axis=1)


def source(points: np.ndarray) -> np.ndarray:
    """f of the benchmark."""
    s = np.sum(points**2, axis=1)
    a, b, c = (np.sin(k * np.pi * x) for k, x in zip((1, 10, 5), points.T, strict=True))
    return 20 * np.exp(a + b + c) * (s - 1) / (s + 1) + 100 * a * b * c


def solve(cells: int, degree: int, points: np.ndarray) -> np.ndarray:
    """u of the benchmark's case at points (m, 3)."""
    made = Cells(BALLS, source, cells, degree)
    return made.at(made.solve(), points)


def compute() -> Table:
    """u at random places, which are stored as values."""
    places = sample(Interior(), poisson3d().domain, PLACES, stream(0, "balls"))
    metadata = {
        "equation": "-lap(u) + k^2 u = f around four balls, du/dn = 0",
        "parameters": {"balls": len(BALLS), "k^2": SCREENS},
        "method": f"elements of degree {DEGREE} on {CELLS} x {CELLS} x {CELLS} cells that balls cut",
        "accuracy": np.nan,  # `check` measures it
    }
    values = dict(zip("xyz", places.T, strict=True)) | {"u": solve(CELLS, DEGREE, places)}
    return Table({"place": np.arange(PLACES)}, values, metadata)


def check(stored: Table) -> list[Comparison]:
    """Compare a table with coarser cells, and with a higher degree on still coarser ones."""
    places = np.stack([stored.values[name] for name in "xyz"], axis=1)
    compare = lambda n, p, allowed: Comparison(
        f"degree {p} on {n} x {n} x {n} cells", relative(solve(n, p, places), stored.values["u"]), allowed
    )
    return [compare(24, 3, 5e-4), compare(20, 4, 5e-4), compare(16, 4, 2e-3)]
