"""Heat in a plate with round holes (Heat2d-CG of the PINNacle benchmark) by finite elements.

    u_t = lap(u),    du/dn = g_j - u on part j of the boundary,    u(0) = 0:

    (u_t, v) + (grad u, grad v) + sum_j <u, v>_j = sum_j g_j <1, v>_j        for all v

with quadratic elements whose sides follow the circles (isoparametric), and the two-stage Radau method in time, of third
order. The boundary is heated from the first instant, so that u starts like the root of t: steps double with time, as many
between two powers of 1/2 of the last time. A coarser mesh with fewer steps says how accurate the values are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from dsgnar.calculus.streams import stream
from dsgnar.problem.domain import Interior
from dsgnar.problem.meshing import mesh
from dsgnar.problem.region import Region
from dsgnar.problem.sampling import sample
from dsgnar.problem.shapes.polygon import need
from dsgnar.problem.shapes.tree import Shape
from dsgnar.suite.pinnacle.shaped import LARGE, SMALL, heat
from dsgnar.suite.truth.spectral import relative
from dsgnar.suite.truth.table import Comparison, Table

# Radau IIA with two stages. The eigenvalues of its matrix are conjugate: one complex factorisation serves both stages.
STAGES = np.array([[5 / 12, -1 / 12], [3 / 4, 1 / 4]])
LEVELS = 9  # doublings of the step
SPACING, STEPS, PLACES = 0.15, 24, 1000  # of the stored table


@dataclass(frozen=True)
class Plate:
    """A plate with round holes, each with the value that its heat flux tends to; `outside` is that of the rim."""

    shape: Shape
    circles: Sequence[tuple[float, float, float, float]]  # centre, radius, value
    outside: float


def solve(plate: Plate, spacing: float, steps: int, times: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Values (points, times)."""
    basis, straight, rim = _elements(plate, spacing)
    M, K, b = _matrices(plate, basis, rim)
    values, vectors = np.linalg.eig(np.linalg.inv(STAGES))
    back = np.linalg.inv(vectors)
    share = np.arange(1, steps + 1) / steps
    starts = [0.0, *(0.5**k for k in range(LEVELS, 0, -1))]
    ends = times[-1] * np.concatenate([a + share * ((2 * a or 0.5**LEVELS) - a) for a in starts])
    if not all(np.isclose(ends, t).any() for t in times):
        raise ValueError(f"the times must be among the {steps} steps of each doubling of time")
    at = _values(basis, straight, points)
    u, t, out, lengths = np.zeros(basis.N), 0.0, [], {}
    for end in ends:
        h = end - t
        key = round(float(np.log(h)), 9)
        if key not in lengths:
            lengths.clear()
            lengths[key] = splu(sparse.csc_matrix(values[0] / h * M + K))
        right = b - K @ u
        # (A^-1 / h) Z M + Z K = 1 right for the increments Z of both stages, in the eigenvectors of A^-1
        first = lengths[key].solve((back @ np.ones(2))[0] * right.astype(complex))
        stages = np.real(np.outer(vectors[:, 0], first) + np.outer(vectors[:, 1], np.conj(first)))
        u, t = u + stages[1], end
        if np.isclose(times, end).any():
            out.append(at @ u)
    return np.stack(out, axis=1)


def plate() -> Plate:
    """The benchmark's plate."""
    circles = [*((*c, 5.0) for c in LARGE), *((*c, 1.0) for c in SMALL)]
    return Plate(heat().domain.shape, circles, 0.1)  # type: ignore[attr-defined]


def compute(spacing: float = SPACING, steps: int = STEPS) -> Table:
    """u at 1,000 random places and 12 times; the places are stored as values, the same at all times."""
    places = sample(Interior(), Region(heat().domain.shape, {}), PLACES, stream(0, "heat holes"))  # type: ignore[attr-defined]
    times = 0.25 * np.arange(1, 13)
    metadata = {
        "equation": "u_t = lap(u), du/dn = 5 - u on large circles, 1 - u on small ones, 0.1 - u outside, u(0) = 0",
        "parameters": {"large": len(LARGE), "small": len(SMALL)},
        "method": f"quadratic isoparametric elements, spacing {spacing:g}, Radau of order 3, {steps} steps a doubling",
        "accuracy": np.nan,  # `check` measures it
    }
    values = {name: np.repeat(column[:, None], len(times), axis=1) for name, column in zip("xy", places.T, strict=True)}
    values["u"] = solve(plate(), spacing, steps, times, places)
    return Table({"place": np.arange(PLACES), "t": times}, values, metadata)


def check(stored: Table) -> list[Comparison]:
    """Compare a table with coarser meshes and fewer steps; the first comparison is harsher than needed."""
    places = np.stack([stored.values[name][:, 0] for name in "xy"], axis=1)

    def compare(what: str, allowed: float, spacing: float, steps: int) -> Comparison:
        found = solve(plate(), spacing, steps, stored.axes["t"], places)
        return Comparison(what, relative(found, stored.values["u"]), allowed)

    return [
        compare("spacing 0.2", 2e-4, 0.2, STEPS),
        compare("spacing 0.3, half the steps", 5e-4, 0.3, STEPS // 2),
        compare("spacing 0.4, half the steps", 1e-2, 0.4, STEPS // 2),
    ]


def _values(basis: Any, straight: Any, points: np.ndarray) -> sparse.csr_array:
    """The matrix from coefficients to values at points. Circles bulge out of the domain, so straight triangles cover it."""
    cells = straight.element_finder()(*points.T)
    X = basis.mapping.invF(points.T[:, :, None], tind=cells)[:, :, 0]
    columns = basis.element_dofs[:, cells]
    weights = np.stack([basis.elem.lbasis(X, i)[0] for i in range(len(columns))])
    rows = np.broadcast_to(np.arange(len(points)), columns.shape)
    return sparse.csr_array((weights.ravel(), (rows.ravel(), columns.ravel())), shape=(len(points), basis.N))


def _elements(plate: Plate, spacing: float) -> tuple[Any, Any, np.ndarray]:
    """Quadratic elements with curved sides, their straight mesh, and to which circle each facet of the rim belongs."""
    skfem = need("skfem", "this reference")
    bounds = dict(zip(plate.shape.axes, plate.shape.bounds, strict=True))
    made = mesh(plate.shape, {axis: int(np.ceil((b - a) / spacing)) + 1 for axis, (a, b) in bounds.items()})
    straight = skfem.MeshTri(made.nodes.T.copy(), made.simplices.T.copy())
    curved = skfem.MeshTri2.from_mesh(straight)
    nodes = curved.doflocs.copy()
    facets = straight.boundary_facets()
    ends = straight.p[:, straight.facets[:, facets]]
    of = np.full(len(facets), -1)
    for k, (x, y, r, _) in enumerate(plate.circles):
        gap = np.abs(np.hypot(ends[0] - x, ends[1] - y) - r)
        of[np.all(gap < 1e-6, axis=0)] = k
        middle = ends[:, :, of == k].mean(axis=1)
        for m in middle.T:
            where = np.argmin(np.hypot(*(nodes - m[:, None])))
            nodes[:, where] = np.array([x, y]) + (m - [x, y]) * r / np.hypot(m[0] - x, m[1] - y)
    curved = skfem.MeshTri2(nodes, curved.t)
    return skfem.Basis(curved, skfem.ElementTriP2()), straight, np.stack([facets, of])


def _matrices(plate: Plate, basis: Any, rim: np.ndarray) -> tuple[Any, Any, np.ndarray]:
    skfem = need("skfem", "this reference")
    product = skfem.BilinearForm(lambda u, v, _: u * v)
    one = skfem.LinearForm(lambda v, _: 1.0 * v)
    slopes = skfem.BilinearForm(lambda u, v, _: u.grad[0] * v.grad[0] + u.grad[1] * v.grad[1])
    M, K, b = product.assemble(basis), slopes.assemble(basis), np.zeros(basis.N)
    facets, of = rim
    for value in {plate.outside, *(circle[3] for circle in plate.circles)}:
        mine = [k for k, circle in enumerate(plate.circles) if circle[3] == value] + ([-1] * (value == plate.outside))
        if not np.isin(of, mine).any():
            continue
        side = skfem.FacetBasis(basis.mesh, basis.elem, facets=facets[np.isin(of, mine)])
        K, b = K + product.assemble(side), b + value * one.assemble(side)
    return M, K, b
