"""Problems on shapes: normals in residuals, hard values, doubts, solving, pictures and files."""

import re
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dsgnar as ds
from dsgnar.calculus.streams import stream
from dsgnar.problem.doubts import doubts
from dsgnar.problem.meshing import mesh
from dsgnar.problem.sampling import sample
from dsgnar.showing.figures.page import page
from dsgnar.showing.planes import planes, values_on
from dsgnar.showing.quality import Quality
from dsgnar.showing.report import maps
from dsgnar.storing.files import WrongDirectory
from small import invented

PLATE = ds.Box(x=(0, 4), y=(0, 2)) - ds.Ball(x=1, y=1, radius=0.3, name="hole")
DISC = ds.Ball(x=0, y=0, radius=1)


def poisson(shape=DISC, **conditions):
    usual = {"pde": ds.interior(lambda u: ds.laplacian(u) + 1), "bc": ds.boundary(lambda u: u)}
    return ds.Problem(domain=shape, unknowns="u", conditions=conditions or usual)


def heat(shape=PLATE):
    return ds.Problem(
        domain=shape.over(t=(0, 1)),
        unknowns="u",
        conditions={
            "pde": ds.interior(lambda u: u.t - ds.laplacian(u)),
            "ic": ds.initial(lambda u: u - 1),
            "wall": ds.boundary(lambda u: u.n + u, on="hole"),
            "sides": ds.boundary(lambda u: u.n, on="box"),
        },
    )


def residuals(problem, name, u, count=50):
    points = sample(problem.conditions[name].part, problem.domain, count, stream(0, name))
    return np.asarray(jax.jit(jax.vmap(lambda x: problem.residual(name, u, x)))(jnp.asarray(points))), points


# Normals


def test_normal_derivatives_on_every_boundary():
    """u = x^2 y + t: its normal derivative is grad u . n, on circles, sides and boxes."""
    u = lambda p: (p[0] ** 2 * p[1] + p[-1])[None]
    plain = {"pde": ds.interior(lambda u: u.t), "ic": ds.initial(lambda u: u)}
    on = lambda where, **part: ds.Problem(
        domain=where, unknowns="u", conditions=plain | {"bc": ds.boundary(lambda u: u.n, **part)}
    )
    hole = on(PLATE.over(t=(0, 1)), on="hole")
    found, p = residuals(hole, "bc", u)
    n = -(p[:, :2] - 1) / 0.3
    assert np.allclose(found, 2 * p[:, 0] * p[:, 1] * n[:, 0] + p[:, 0] ** 2 * n[:, 1], atol=1e-11)
    for where in (PLATE.over(t=(0, 1)), ds.Box(x=(0, 4), y=(0, 2), t=(0, 1))):
        found, p = residuals(on(where, faces=[("x", "lower"), ("y", "upper")]), "bc", u)
        assert np.allclose(found, np.where(p[:, 1] == 2, p[:, 0] ** 2, -2 * p[:, 0] * p[:, 1]), atol=1e-11)
    found, p = residuals(on(ds.Box(x=(0, 4), y=(0, 2), t=(0, 1))), "bc", u)
    x, y = p[:, 0], p[:, 1]
    normal = np.select([x == 0, x == 4, y == 0], [-2 * x * y, 8 * y, -(x**2)], x**2)
    assert np.allclose(found, normal, atol=1e-11)


def test_the_normal_itself_is_an_argument():
    problem = poisson(
        pde=ds.interior(lambda u: ds.laplacian(u)),
        bc=ds.boundary(lambda u, n, x, y: u.n - (n.x * u.x + n["y"] * u.y) + n[0] - x + n.y - y + len(n) - 2),
        second=ds.boundary(lambda u, n: u.x.n - (n.x * u.xx + n.y * u.xy)),
    )
    u = lambda p: jnp.exp(p[:1] + 2 * p[1:])
    for name in ("bc", "second"):
        assert np.abs(residuals(problem, name, u)[0]).max() < 1e-12


def test_an_axis_or_unknown_called_n_keeps_its_name():
    box = ds.Problem(
        domain=ds.Box(n=(0, 1), x=(0, 1)),
        unknowns="u",
        conditions={"pde": ds.interior(lambda u: u.nn + u.xx), "bc": ds.boundary(lambda u, n: u.n + n)},
    )
    assert box.requests["bc"] == {"u": frozenset({(1, 0)})}
    system = ds.Problem(
        domain=DISC,
        unknowns=("n",),
        conditions={"pde": ds.interior(lambda n: n.xx + n.yy), "bc": ds.boundary(lambda n: n.n + n)},
    )
    assert system.requests["bc"]["n"] == {(0, 0), (1, 0), (0, 1)}


@pytest.mark.parametrize(
    "conditions, words",
    [
        ({"pde": ds.interior(lambda u: u.n)}, "only conditions on the boundary have"),
        ({"pde": ds.interior(lambda u, n: u * n.x)}, "'n' is neither an unknown nor an axis"),
        ({"bc": ds.boundary(lambda u, n: u * n.t)}, "no component along 't'"),
        ({"bc": ds.boundary(lambda u: u, on="hole")}, "no shape here is called 'hole'; there are ball"),
        ({"bc": ds.boundary(lambda u: u, faces=[("x", "lower")])}, "no box with a face"),
        ({"bc": ds.boundary(lambda u: u, where=lambda x: x > 2)}, "no point of the boundary where"),
        ({"bc": ds.boundary(lambda u: u, where=lambda x: x)}, "where must say yes or no"),
        ({"bc": ds.boundary(lambda u: u, where=lambda z: z > 0)}, "'z' is neither an unknown nor an axis"),
        ({"at": ds.at(lambda u: u, {"x": 2.0, "y": 0.0})}, "outside the domain"),
    ],
)
def test_mistakes_are_named(conditions, words):
    with pytest.raises((ValueError, TypeError), match=words):
        poisson(**conditions)


def test_a_box_has_a_name_and_picks_points_too():
    with pytest.raises(ValueError, match="the box is called 'box'"):
        poisson(ds.Box(x=(0, 1), y=(0, 1)), bc=ds.boundary(lambda u: u, on="hole"))
    half = ds.boundary(lambda u: u.n, on="rim", where=lambda x: x > 0.5)
    problem = poisson(ds.Box(x=(0, 1), y=(0, 1), name="rim"), bc=half)
    _, points = residuals(problem, "bc", lambda p: p[:1])
    assert (points[:, 0] > 0.5).all() and "where" in problem.conditions["bc"].part.describe()
    with pytest.raises(ValueError, match="cannot be periodic: it belongs to a shape"):
        ds.Problem(domain=PLATE, unknowns="u", conditions={"pde": ds.interior(lambda u: u.x)}, periodic="x")


# Hard values, doubts


@pytest.mark.parametrize(
    "shape, on",
    [
        (DISC, None),
        (PLATE, None),
        (PLATE, ("hole",)),
        (ds.Ellipse(x=0, y=0, radii=(2, 1), angle=0.4), None),
        (ds.Polygon([(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)]), None),
        (ds.Polygon([(0, 0), (2, 0), (1, 1)]), None),
        (ds.extrude(DISC, z=(0, 1)), None),
    ],
)
def test_hard_values_hold_exactly_and_leave_the_inside_free(shape, on):
    part = ds.Boundary(on=on)
    problem = ds.Problem(
        domain=shape,
        unknowns="u",
        conditions={"pde": ds.interior(lambda u: ds.laplacian(u) + 1)},
        hard={"u": ds.Hard(lambda x, y: x + 2 * y, on=part)},
    )
    u = jax.jit(jax.vmap(problem.constrained(lambda x: jnp.cos(x[:1]) + 2)))
    edge = sample(problem.hard["u"].on[0], problem.domain, 50, stream(0, "edge"))
    assert np.allclose(u(jnp.asarray(edge))[:, 0], edge[:, 0] + 2 * edge[:, 1], atol=1e-12)
    inside = sample(ds.Interior(), problem.domain, 200, stream(0, "inside"))
    away = inside[problem.domain.shape.depth(inside, np) < -0.05 * problem.domain.shape.size]
    freedom = np.asarray(u(jnp.asarray(away)))[:, 0] - away[:, 0] - 2 * away[:, 1]
    assert (np.abs(freedom) > 1e-5).all() and (np.sign(freedom) == np.sign(freedom[0])).all()
    if shape is PLATE:
        network, few = problem.constrained(lambda x: jnp.cos(x[:1])), jnp.asarray(away[:20])
        taylor, nested = (
            jax.jit(jax.vmap(lambda x, mode=mode: problem.residual("pde", network, x, mode)))(few)
            for mode in ("taylor", "nested")
        )
        assert np.allclose(taylor, nested, rtol=1e-8)


@pytest.mark.parametrize(
    "shape, part, words",
    [
        (DISC + ds.Ball(x=1, y=0, radius=1, name="other"), ds.Boundary(), "runs through the inside of a union"),
        (PLATE, ds.Boundary(where=lambda x: x > 1), "hard values hold on whole shapes"),
        (DISC - ds.Box(x=(-0.2, 0.2), y=(-0.2, 0.2), name="cut"), ds.Boundary(on=("cut",)), "corners point into the domain"),
    ],
)
def test_hard_values_that_cannot_be_had_are_refused(shape, part, words):
    with pytest.raises(ValueError, match=words):
        ds.Problem(
            domain=shape,
            unknowns="u",
            conditions={"pde": ds.interior(lambda u: ds.laplacian(u) + 1)},
            hard={"u": ds.Hard(0.0, on=part)},
        )


def test_sides_without_conditions_are_doubted():
    assert doubts(heat()) == [] and doubts(poisson()) == []
    bare = poisson(PLATE, pde=ds.interior(lambda u: ds.laplacian(u)), bc=ds.boundary(lambda u: u, on="box"))
    (doubt,) = doubts(bare)
    assert re.search(r"fewer than 1 boundary condition on 1\d % of the boundary, for instance at x=", doubt)
    assert "100 % of the boundary" in doubts(poisson(pde=ds.interior(lambda u: u.xx)))[0]
    parts = poisson(
        PLATE,
        pde=ds.interior(lambda u: ds.laplacian(u)),
        hole=ds.boundary(lambda u: u, on="hole"),
        left=ds.boundary(lambda u: u, faces=[("x", "lower"), ("x", "upper"), ("y", "lower")]),
        top=ds.boundary(lambda u: u.n, where=lambda y: y > 1.999),
    )
    assert doubts(parts) == []


def test_parameters_are_no_part_of_space():
    problem = ds.Problem(
        domain=ds.Box(x=(0, 1)).over(t=(0, 1), nu=(0.01, 0.1)),
        unknowns="u",
        conditions={
            "pde": ds.interior(lambda u, nu: u.t - nu * ds.laplacian(u)),
            "ic": ds.initial(lambda u, x: u - jnp.sin(jnp.pi * x)),
            "bc": ds.boundary(lambda u: u),
        },
    )
    assert doubts(problem) == []
    u = lambda p: (jnp.sin(jnp.pi * p[0]) * jnp.exp(-jnp.pi**2 * p[2] * p[1]))[None]
    assert max(np.abs(residuals(problem, name, u)[0]).max() for name in problem.conditions) < 1e-12
    assert [(p.horizontal, p.vertical, round(p.fixed["nu"], 3)) for p in planes(problem.domain, None)] == [
        ("t", "x", 0.01), ("t", "x", 0.055), ("t", "x", 0.1),
    ]  # fmt: skip
    page(invented(problem))


# Solving


def test_laplaces_equation_on_a_disc():
    """u = x^2 - y^2. The error is known without a reference, and lap(u) is judged by its second derivatives."""
    problem = poisson(pde=ds.interior(lambda u: ds.laplacian(u)), bc=ds.boundary(lambda u, x, y: u - x**2 + y**2))
    solution = ds.solve(problem, network=ds.MLP(widths=(10, 10)), points=600, max_iterations=90, precision="double")
    points = sample(ds.Interior(), solution.problem.domain, 2000, stream(9))
    reference = ds.Reference(points, {"u": points[:, 0] ** 2 - points[:, 1] ** 2}, 1e-15, "exact")
    error = solution.relative_l2(reference)["u"]
    assert error < 1e-4 and solution.verdict != "failed"
    assert solution.error_estimate is not None and error / 5 < solution.error_estimate["u"] < 5 * error + 1e-9
    with pytest.warns(UserWarning, match="1 of 2 points lie outside the domain"):
        solution(x=[0.5, 0.9], y=[0.5, 0.9])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        inside, outside = solution(x=[0.5, 0.9], y=[0.2, 0.9], extrapolate="nan")
        solution(x=np.cos(np.linspace(0, 6, 99)), y=np.sin(np.linspace(0, 6, 99)))  # the boundary belongs to it
    assert abs(inside - 0.21) < 1e-3 and np.isnan(outside)


@pytest.mark.slow
def test_hard_values_and_a_march_over_a_shape():
    """The conditions stay those of the shape in every interval of time."""
    ring = DISC - ds.Ball(x=0, y=0, radius=0.5, name="hole")
    problem = ds.Problem(
        domain=ring.over(t=(0, 1)),
        unknowns="u",
        conditions={
            "pde": ds.interior(lambda u, x, y, t: u.t - ds.laplacian(u) - 4 * t - 1 + x**2 + y**2),
            "ic": ds.initial(lambda u: u),
            "flux": ds.boundary(lambda u, t: u.n - t, on="hole"),
        },
        hard={"u": ds.Hard(0.0, on=ds.Boundary(on="ball"))},  # type: ignore[arg-type]
    )  # u = t (1 - r^2); on the hole, where r = 1/2, u.n = -du/dr = 2 r t = t
    solution = ds.solve(problem, network=ds.MLP(widths=(10, 10)), points=300, max_iterations=100, intervals=2)
    points = sample(ds.Interior(), problem.domain, 500, stream(9))
    exact = points[:, 2] * (1 - points[:, 0] ** 2 - points[:, 1] ** 2)
    assert np.linalg.norm(solution.at(points)[:, 0] - exact) < 1e-2 * np.linalg.norm(exact)
    edge = sample(ds.Boundary(on=("ball",)), problem.domain, 50, stream(9))
    assert np.abs(solution.at(edge)).max() < 1e-12


# Pictures and files


def test_pictures_leave_holes_white():
    with jax.enable_x64(True):
        solution = invented(heat())
    first = planes(solution.problem.domain, None)[0]
    values = values_on(solution, first)["u"]
    v, h = np.meshgrid(first.grid["y"], first.grid["x"], indexing="ij")
    assert np.array_equal(np.isnan(values), np.hypot(h - 1, v - 1) < 0.3 * (1 - 1e-9))
    page(solution)
    charts = {chart.name: chart for chart in maps.charts(Quality(solution, None))}
    assert "nan" not in charts["solution-u-0"].summary and "nan" not in charts["error--0"].summary
    page(invented(poisson(ds.Ball(x=0, y=0, z=0, radius=1))))


def test_files_hold_the_shape(tmp_path):
    with jax.enable_x64(True):
        solution = invented(heat())
    table = solution.to_xarray(counts={"x": 41, "y": 21, "t": 3})
    assert np.isnan(table["u"].sel(x=1, y=1, method="nearest")).all()
    assert np.isfinite(table["u"].sel(x=3, y=1, method="nearest")).all()
    solution.to_csv(tmp_path / "u.csv", counts=9, t=0.5)
    rows = np.loadtxt(tmp_path / "u.csv", delimiter=",", skiprows=1)
    assert len(rows) < 81 and np.isfinite(rows).all()
    solution.to_vtk(tmp_path / "u.vtu", counts=21, t=0.5)
    text = (tmp_path / "u.vtu").read_text()
    assert 'type="UnstructuredGrid"' in text and 'Name="u"' in text
    solution.to_vtk(tmp_path / "u.pvd", counts={"x": 11, "y": 11, "t": 2})
    assert len(list((tmp_path / "u").glob("*.vtu"))) == 2
    with pytest.raises(ValueError, match="axis 't': a .vtu file holds the whole shape"):
        solution.to_vtk(tmp_path / "v.vtu", counts=5)
    with pytest.raises(ValueError, match="this domain is a box"):
        invented(poisson(ds.Box(x=(0, 1), y=(0, 1)))).to_vtk(tmp_path / "w.vtu", counts=5)


def test_meshes_fill_their_shapes():
    """The measure of the mesh is that of the shape, up to the curvature of its sides."""
    for shape, measure in ((PLATE, 8 - 0.09 * np.pi), (ds.extrude(PLATE, z=(0, 1)), 8 - 0.09 * np.pi)):
        made = mesh(shape, dict(x=41, y=21, z=6))
        corners = made.nodes[made.simplices]
        edges = corners[:, 1:] - corners[:, :1]
        volumes = np.abs(np.linalg.det(edges)) / (2 if len(shape.axes) == 2 else 6)
        assert np.isclose(volumes.sum(), measure, rtol=0.01)
        assert shape.inside(made.nodes * (1 - 1e-9) + 1e-9).mean() > 0.8


def test_runs_remember_their_shape(tmp_path):
    with jax.enable_x64(True):
        solution = invented(poisson())
    solution.save(tmp_path / "run")
    again = ds.load(tmp_path / "run", poisson())
    assert np.array_equal(again.at(np.array([[0.1, 0.2]])), solution.at(np.array([[0.1, 0.2]])))
    with pytest.raises(WrongDirectory, match="its shape is"):
        ds.load(tmp_path / "run", poisson(ds.Polygon([(-1, -1), (1, -1), (1, 1), (-1, 1)])))
