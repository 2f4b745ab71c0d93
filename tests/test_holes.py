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

    from dsgnar.showing.unstructured import mesh

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
