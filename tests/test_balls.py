"""The reference around balls: cut cells are integrated well, known solutions are found, and the statement is the same."""

import jax.numpy as jnp
import numpy as np

from dsgnar.suite.pinnacle import CASES, shaped
from dsgnar.suite.truth import balls


def test_integrals_over_what_balls_leave_of_cells():
    """The volume of the cube without balls, and an integral that they leave unchanged by symmetry about the first."""
    n, solid = 6, np.array([[0.5, 0.5, 0.5, 0.3]])
    volume = second = 0.0
    for index in np.ndindex(n, n, n):
        corner = np.array(index) / n
        s, w = balls.outside(corner, 1 / n, solid, 3)
        points = corner + s / n
        volume += np.sum(w) / n**3
        second += np.sum(w * (points[:, 1] - 0.5) ** 2) / n**3
    assert abs(volume - (1 - 4 / 3 * np.pi * 0.3**3)) < 2e-5
    assert abs(second - (1 / 12 - 4 / 15 * np.pi * 0.3**5)) < 2e-5


def test_a_solution_that_is_known():
    """exp(-((r - R) / w)^2) has no slope at the ball, and next to none at the sides."""
    R, w = 0.2, 0.1
    u = lambda p: np.exp(-(((np.linalg.norm(p - 0.5, axis=1) - R) / w) ** 2))

    def f(p):
        r = np.linalg.norm(p - 0.5, axis=1)
        s = (r - R) / w
        laplacian = ((4 * s**2 - 2) / w**2 - 4 * s / w / r) * u(p)
        return -laplacian + np.where(p[:, 2] < 0.5, *balls.SCREENS) * u(p)

    points = np.random.default_rng(0).random((2000, 3))
    points = points[np.linalg.norm(points - 0.5, axis=1) > R]
    errors = []
    for n in (6, 12):
        made = balls.Cells(((0.5, 0.5, 0.5, R),), f, n, 3)
        errors.append(np.linalg.norm(made.at(made.solve(), points) - u(points)) / np.linalg.norm(u(points)))
    assert errors[1] < 1.5e-3 and errors[0] / errors[1] > 6, errors


def test_statement_and_reference_have_the_same_source_and_screen():
    problem, points = shaped.poisson3d(), np.random.default_rng(0).random((5, 3))
    at = lambda value: [float(problem.residual("pde", lambda p: jnp.full(1, value), jnp.asarray(p))) for p in points]
    np.testing.assert_allclose(at(0.0), -balls.source(points), rtol=1e-12)
    np.testing.assert_allclose(np.subtract(at(1.0), at(0.0)), np.where(points[:, 2] < 0.5, *balls.SCREENS), rtol=1e-12)


def test_the_stored_table_is_inside_and_accurate():
    reference = CASES["Poisson3d-CG"].reference()
    assert shaped.poisson3d().domain.contains(reference.points).all()
    assert reference.accuracy < 5e-4
