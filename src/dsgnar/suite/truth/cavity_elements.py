"""The lid-driven cavity by finite elements in velocity and pressure: the check on the spectral solution.

    nu (grad u, grad w) + (u . grad u, w) - (p, div w) = 0,     (div u, q) = 0      for all w, q,

with Taylor-Hood elements on rectangles: velocities of degree k = 5 and a continuous pressure of degree k - 1, on a mesh
that is refined towards the walls, t = (1 - cos(pi s)) / 2. Nothing is known about the corners here and nothing is shared
with the stream-function method but the statement of the problem. Newton's method with a sparse LU factorisation.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

DEGREE = 5


@dataclass(frozen=True, eq=False)
class Elements:
    """Continuous piecewise polynomials of one variable on a mesh."""

    mesh: np.ndarray
    degree: int

    @property
    def size(self) -> int:
        return self.degree * (len(self.mesh) - 1) + 1

    @property
    def nodes(self) -> np.ndarray:
        inner = self.mesh[:-1, None] + np.diff(self.mesh)[:, None] * np.arange(self.degree) / self.degree
        return np.append(inner, self.mesh[-1])

    def at(self, x: np.ndarray) -> tuple[sparse.csr_array, sparse.csr_array]:
        """Values and derivatives of the nodal basis at points: sparse matrices (points, size)."""
        element = np.clip(np.searchsorted(self.mesh, x, side="right") - 1, 0, len(self.mesh) - 2)
        width = np.diff(self.mesh)[element]
        s = (x - self.mesh[element]) / width
        local = np.linalg.inv(np.vander(np.arange(self.degree + 1) / self.degree, increasing=True))
        powers = np.vander(s, self.degree + 1, increasing=True)
        slopes = np.zeros_like(powers)
        slopes[:, 1:] = powers[:, :-1] * np.arange(1, self.degree + 1)
        rows = np.repeat(np.arange(len(x)), self.degree + 1)
        columns = (self.degree * element[:, None] + np.arange(self.degree + 1)).ravel()
        shape = (len(x), self.size)
        values, derivatives = powers @ local, (slopes @ local) / width[:, None]
        return (
            sparse.csr_array((values.ravel(), (rows, columns)), shape=shape),
            sparse.csr_array((derivatives.ravel(), (rows, columns)), shape=shape),
        )


def kron(a: sparse.csr_array, b: sparse.csr_array) -> sparse.csr_array:
    return sparse.csr_array(sparse.kron(a, b, format="csr"))


@dataclass(frozen=True, eq=False)
class ElementFlow:
    """Nodal velocities of a solution."""

    elements: Elements
    u: np.ndarray
    v: np.ndarray

    def velocity(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        at_x, at_y = (self.elements.at(z)[0] for z in (x, y))
        n = self.elements.size
        u, v = (at_x @ field.reshape(n, n) @ at_y.T for field in (self.u, self.v))
        return u, v


def solve(reynolds: float, cells: int) -> ElementFlow:
    """The flow on cells x cells elements."""
    mesh = (1 - np.cos(np.pi * np.arange(cells + 1) / cells)) / 2
    velocity, pressure = Elements(mesh, DEGREE), Elements(mesh, DEGREE - 1)
    x, w = (z[None] for z in np.polynomial.legendre.leggauss(DEGREE + 2))
    points = (mesh[:-1, None] + np.diff(mesh)[:, None] * (x + 1) / 2).ravel()
    weights = (np.diff(mesh)[:, None] * w / 2).ravel()
    W = sparse.diags_array(np.kron(weights, weights))
    b, d = velocity.at(points)
    q = pressure.at(points)[0]
    N, Nx, Ny, Q = kron(b, b), kron(d, b), kron(b, d), kron(q, q)
    diffusion = (Nx.T @ W @ Nx + Ny.T @ W @ Ny) / reynolds
    gx, gy = Nx.T @ W @ Q, Ny.T @ W @ Q

    n = velocity.size**2
    at_x, at_y = (z.ravel() for z in np.meshgrid(velocity.nodes, velocity.nodes, indexing="ij"))
    wall = (at_x == 0) | (at_x == 1) | (at_y == 0) | (at_y == 1)
    # Unknowns are the velocities off the walls and all pressures but the first, which is the free constant.
    free = np.concatenate([np.flatnonzero(~wall), n + np.flatnonzero(~wall), 2 * n + np.arange(1, pressure.size**2)])
    z = np.zeros(2 * n + pressure.size**2)
    z[:n][at_y == 1] = (4 * at_x * (1 - at_x))[at_y == 1]

    for _ in range(20):
        u, v, p = z[:n], z[n : 2 * n], z[2 * n :]
        U, V = N @ u, N @ v
        carried = sparse.diags_array(U) @ Nx + sparse.diags_array(V) @ Ny
        transport = N.T @ W @ carried + diffusion

        def coupling(field: np.ndarray) -> sparse.csr_array:
            return N.T @ W @ sparse.diags_array(field) @ N

        residual = np.concatenate([transport @ u - gx @ p, transport @ v - gy @ p, -(gx.T @ u) - gy.T @ v])
        jacobian: Any = sparse.block_array(
            [
                [transport + coupling(Nx @ u), coupling(Ny @ u), -gx],
                [coupling(Nx @ v), transport + coupling(Ny @ v), -gy],
                [-gx.T, -gy.T, None],
            ],
            format="csc",
        )
        step = splu(jacobian[free][:, free]).solve(residual[free])
        z[free] -= step
        if np.linalg.norm(step) <= 1e-8 * np.linalg.norm(z):
            return ElementFlow(velocity, z[:n], z[n : 2 * n])
    raise RuntimeError(f"Newton's method did not converge at Re = {reynolds}; use a smaller Reynolds number")
