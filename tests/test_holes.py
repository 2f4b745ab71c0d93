"""References around holes: expansions satisfy their equation, converge, and agree with finite elements."""

import numpy as np
import pytest

from dsgnar.calculus.streams import stream
from dsgnar.problem.domain import Interior
from dsgnar.problem.sampling import sample
from dsgnar.suite.pinnacle import CASES, shaped
from dsgnar.suite.truth import holes


def inside(name, count):
    return sample(Interior(), CASES[name].problem().domain, count, stream(3, "holes"))


def laplacian(u, points, step=1e-3):
    """By the five-point formula, and how far that is from the truth for smooth u: a few parts in 1e6 of u / r^4."""
    moved = [points + step * np.array(d) for d in ((1, 0), (-1, 0), (0, 1), (0, -1))]
    return (sum(map(u, moved)) - 4 * u(points)) / step**2


def test_the_expansion_around_four_discs_is_harmonic_and_takes_its_values():
    u, error = holes.classic(shaped.FOUR, 32)
    points = inside("Poisson2d-C", 200)
    assert error < 2e-8
    assert np.abs(laplacian(u, points)).max() < 0.1  # of terms of the size 100
    assert u(points).min() > 0 and u(points).max() < 1
    assert np.allclose(u(np.array([[0.5, 0.1], [-0.5, 0.5], [0.2, -0.5]])), 1, atol=1e-7)
    assert np.allclose(u(points), u(points[:, ::-1]), atol=1e-8) and np.allclose(u(points), u(-points), atol=1e-8)


def test_the_expansion_with_a_source_satisfies_its_equation():
    u, error = holes.uneven(shaped.UNEVEN, 28)
    points = inside("Poisson2d-CG", 100)
    away = points[(1 - np.abs(points).max(axis=1)) > 0.05]
    residual = -laplacian(u, away) + 64 * u(away) - holes.source(*away.T)
    assert error < 3e-5
    assert np.abs(residual).max() < 2e-2  # of terms of the size 300
    finer = holes.uneven(shaped.UNEVEN, 36)[0]
    assert np.linalg.norm(u(points) - finer(points)) < 2e-5 * np.linalg.norm(u(points))


@pytest.mark.parametrize("name, screen, f", [("Poisson2d-C", 0.0, None), ("Poisson2d-CG", 64.0, holes.source)])
def test_finite_elements_agree(name, screen, f):
    """Quadratic elements on straight triangles: the error of a curved side falls with the square of the spacing."""
    skfem = pytest.importorskip("skfem")
    from skfem.helpers import dot, grad

    from dsgnar.problem.meshing import mesh

    problem, errors = CASES[name].problem(), []
    exact = CASES[name].anywhere
    for count in (41, 81):
        made = mesh(problem.domain.shape, dict.fromkeys("xy", count))
        m = skfem.MeshTri(made.nodes.T.copy(), made.simplices.T.copy())
        basis = skfem.Basis(m, skfem.ElementTriP2())
        A = skfem.BilinearForm(lambda u, v, w: dot(grad(u), grad(v)) + screen * u * v).assemble(basis)
        b = skfem.LinearForm(lambda v, w: (0 * w.x[0] if f is None else f(*w.x)) * v).assemble(basis)
        rim = basis.get_dofs().flatten()
        x = np.zeros(basis.N)
        places = basis.doflocs[:, rim]
        outer = np.isclose(np.abs(places).max(axis=0), problem.domain.bounds[0][1])
        x[rim] = np.where(outer, 1.0 if f is None else 0.2, 0.0 if f is None else 1.0)
        x = skfem.solve(*skfem.condense(A, b, x=x, D=rim))
        inner = np.setdiff1d(np.arange(basis.N), rim)
        points = basis.doflocs[:, inner].T
        points = points[problem.domain.contains(points)]
        values = x[inner][problem.domain.contains(basis.doflocs[:, inner].T)]
        truth = exact(points)[:, 0]
        errors.append(np.linalg.norm(values - truth) / np.linalg.norm(truth))
    assert errors[1] < 4e-3 and errors[0] / errors[1] > 2, errors


def test_heat_around_a_hole_is_that_of_the_radial_equation():
    """In a ring the heat equation has one variable: Chebyshev collocation and the exponential of its matrix."""
    pytest.importorskip("skfem")
    import dsgnar as ds
    from dsgnar.suite.truth import heat_holes

    ring = ds.Ball(x=0, y=0, radius=2) - ds.Ball(x=0, y=0, radius=1, name="hole")
    plate = heat_holes.Plate(ring, ((0, 0, 2, 0.1), (0, 0, 1, 5.0)), 0.0)
    rng = stream(0, "ring")
    r, angle = rng.uniform(1.05, 1.95, 100), rng.uniform(0, 2 * np.pi, 100)
    times = np.array([0.75, 1.5, 3.0])
    found = heat_holes.solve(plate, 0.2, 12, times, np.stack([r * np.cos(angle), r * np.sin(angle)], 1))
    exact = np.stack([_radial(r, t) for t in times], axis=1)
    assert np.linalg.norm(found - exact) < 2e-4 * np.linalg.norm(exact)
    with pytest.raises(ValueError, match="must be among the 12 steps"):
        heat_holes.solve(plate, 0.5, 12, np.array([0.7, 3.0]), np.array([[1.5, 0.0]]))


def _radial(r, t, degree=40):
    """u_t = u_rr + u_r / r on [1, 2], u_r = 0.1 - u at r = 2, -u_r = 5 - u at r = 1, u(0) = 0."""
    from numpy.polynomial import chebyshev
    from scipy.linalg import expm

    z = np.cos(np.pi * np.arange(degree + 1) / degree)
    values = chebyshev.chebvander(z, degree)
    D = 2 * chebyshev.chebvander(z, degree - 1) @ chebyshev.chebder(np.eye(degree + 1)) @ np.linalg.inv(values)
    A = D @ D + np.diag(2 / (3 + z)) @ D
    ends = np.stack([D[0], -D[-1]])
    ends[0, 0] += 1
    ends[1, -1] += 1
    # the ends follow from the inside w: they are E (g - ends w)
    E, g = np.linalg.inv(ends[:, [0, -1]]), np.array([0.1, 5.0])
    J = A[1:-1, 1:-1] - A[1:-1][:, [0, -1]] @ E @ ends[:, 1:-1]
    f = A[1:-1][:, [0, -1]] @ E @ g
    w = np.linalg.solve(J, (expm(J * t) - np.eye(degree - 1)) @ f)
    first, last = E @ (g - ends[:, 1:-1] @ w)
    return chebyshev.chebval(2 * r - 3, np.linalg.solve(values, np.concatenate([[first], w, [last]])))
