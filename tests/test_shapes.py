"""Shapes: points are uniform by measure, normals are unit and outward, and what is no shape is refused with its reason."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import dsgnar as ds
from dsgnar.calculus.streams import stream
from dsgnar.problem.domain import Boundary, Initial, Interior
from dsgnar.problem.normals import normals
from dsgnar.problem.region import as_domain
from dsgnar.problem.sampling import held_out, sample

trimesh = pytest.importorskip("trimesh")

PLATE = ds.Box(x=(0, 4), y=(0, 2)) - ds.Ball(x=1, y=1, radius=0.3, name="hole")
L_SHAPE = [(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)]
CUBES = ds.Box(x=(0, 2), y=(0, 1)) + ds.Box(x=(0, 1), y=(0, 2))  # the same shape as a union: two sides are shared
KITE = ds.Polygon([(0, 0), (2, -1), (3, 0), (2, 1)], holes=[[(1.5, -0.2), (2, -0.2), (2, 0.3)]])
RING = ds.Ball(x=0, y=0, z=0, radius=1) - ds.Ball(x=0, y=0, z=0, radius=0.5, name="core")
LENS = ds.Ball(x=0, y=0, radius=1) & ds.Ball(x=1, y=0, radius=1, name="other")
SHAPES = {
    "plate": PLATE,
    "disc": ds.Ball(x=1, y=-2, radius=0.5),
    "ball in five dimensions": ds.Ball(radius=2, **{f"x{i}": 0.5 for i in range(5)}),
    "ellipse": ds.Ellipse(x=1, y=0, radii=(3, 0.5), angle=0.7),
    "ellipsoid": ds.Ellipse(x=0, y=0, z=1, radii=(1, 2, 0.5)),
    "polygon": ds.Polygon(L_SHAPE),
    "polygon with a hole": KITE,
    "union": CUBES,
    "difference": ds.Box(x=(0, 2), y=(0, 2)) - ds.Box(x=(1, 2), y=(1, 2), name="cut"),
    "intersection": LENS,
    "shell": RING,
    "cylinder": ds.extrude(ds.Ball(x=0, y=0, radius=1), z=(0, 3)),
    "plate with thickness": ds.extrude(PLATE, z=(0, 0.5)),
    "surface": ds.Surface(trimesh.creation.icosphere(subdivisions=1, radius=1.5)),
    "drilled surface": ds.Surface(trimesh.creation.box((2, 2, 2))) - ds.Ball(x=1, y=0, z=0, radius=0.5, name="bite"),
}
MEASURES = {  # measures of inside and boundary, by hand
    "plate": (8 - 0.09 * np.pi, 12 + 0.6 * np.pi),
    "polygon": (3, 8),
    "union": (3, 8),
    "difference": (3, 8),
    "intersection": (2 * np.pi / 3 - np.sqrt(3) / 2, 4 * np.pi / 3),
    "shell": (4 * np.pi / 3 * (1 - 1 / 8), 4 * np.pi * 1.25),
    "cylinder": (3 * np.pi, 8 * np.pi),
    "polygon with a hole": (3 - 0.125, 2 * np.sqrt(5) + 2 * np.sqrt(2) + 1 + np.sqrt(0.5)),
}
every = pytest.mark.parametrize("name", SHAPES)


def points_of(name, part=None, count=4000, seed=0, **options):
    region = as_domain(SHAPES[name])
    return region, sample(part or Boundary(), region, count, stream(seed, name), **options)


def even(counts, expected):
    """Counts are a draw with the expected ones, by a chi-squared test whose false alarms are one in ten thousand."""
    keep = expected > 5
    return stats.chisquare(counts[keep], expected[keep] * counts[keep].sum() / expected[keep].sum()).pvalue > 1e-4


@every
def test_points_inside_are_uniform(name):
    """Counts in the cells of a grid are in proportion to the cells' share of the shape, found on a fine lattice."""
    region, points = points_of(name, Interior())
    assert region.contains(points).all()
    lower, upper = np.array(region.shape.bounds).T
    cells = 6 if region.dimension == 2 else 3 if region.dimension == 3 else 2
    count = 200_000
    fine = lower + (upper - lower) * stream(1, name).random((count, region.dimension))
    fine = fine[region.shape.inside(fine)]
    where = lambda x: np.ravel_multi_index(
        np.clip(cells * (x - lower) / (upper - lower), 0, cells - 1).astype(int).T, (cells,) * region.dimension
    )
    counts, expected = (np.bincount(where(x), minlength=cells**region.dimension) for x in (points, fine))
    assert even(counts, expected * len(points) / len(fine))


# The difference is left out: where both boxes end, its depth is zero on either side (its sides are counted below).
@pytest.mark.parametrize("name", [name for name in SHAPES if name != "difference" and "surface" not in name])
def test_points_of_the_boundary_are_uniform(name):
    """The measure of the boundary in a cell is the volume of a thin shell around it there, over the shell's thickness.

    The shell is found from signed distances alone, so nothing is shared with how points of the boundary are drawn.
    """
    region, points = points_of(name, count=3000)
    shape, dimension = region.shape, region.dimension
    thin, cells = 0.004 * shape.size, 4 if dimension == 2 else 2
    lower, upper = np.array(shape.bounds).T
    box = lower - thin + (upper - lower + 2 * thin) * stream(2, name).random((500_000, dimension))
    shell = box[np.abs(shape.depth(box, np)) < thin]
    middle = 0.013 * (upper - lower)  # so that no side of a shape is the border of two cells
    where = lambda x: np.ravel_multi_index(
        np.clip(cells * (x - lower - middle) / (upper - lower), 0, cells - 1).astype(int).T, (cells,) * dimension
    )
    counts, expected = (np.bincount(where(x), minlength=cells**dimension) for x in (points, shell))
    assert even(counts, expected * len(points) / len(shell))
    if name in MEASURES:
        inside, around = MEASURES[name]
        volume = np.prod(upper - lower + 2 * thin)
        assert np.isclose(volume * len(shell) / len(box) / (2 * thin), around, rtol=0.04)
        assert np.isclose(volume * np.mean(shape.depth(box, np) < 0), inside, rtol=0.01)
        for leaf, _ in shape.leaves if name in ("plate", "shell") else ():
            share, on = leaf.surface / around, np.abs(leaf.depth(points, np)) < 1e-6
            assert abs(on.mean() - share) < 5 * np.sqrt(share / len(points))
        if len(shape.leaves) == 1:
            (leaf, _), *_ = shape.leaves
            assert np.allclose((leaf.volume, leaf.surface), (inside, around))


def test_points_of_a_surface_are_uniform():
    """On a fine sphere as many in each octant; on a drilled cube on each face by its area, and on the bite by its own."""
    _, points = points_of("surface")
    counts = np.bincount((points > 0) @ [1, 2, 4], minlength=8)
    assert even(counts, np.full(8, 500.0))
    _, points = points_of("drilled surface")
    faces = [np.isclose(points[:, i], side) for i in range(3) for side in (-1, 1)]
    bite = np.isclose(np.linalg.norm(points - [1, 0, 0], axis=1), 0.5)
    areas = np.array([4, 4 - np.pi / 4, 4, 4, 4, 4, np.pi / 2])
    counts = np.array([f.sum() for f in (*faces, bite)])
    assert counts.sum() == 4000 and even(counts, areas * 4000 / areas.sum())


@pytest.mark.parametrize("name", ["polygon", "union", "difference"])
def test_the_same_shape_made_in_three_ways_has_the_same_boundary(name):
    """Each of the eight unit lengths of the L holds an eighth of the points; shared sides count once, inner ones never."""
    _, points = points_of(name, count=8000)
    x, y = points.T
    sides = [
        (y == 0) & (x < 1), (y == 0) & (x > 1), np.isclose(x, 2) & (y < 1), np.isclose(y, 1) & (x > 1),
        np.isclose(x, 1) & (y > 1), np.isclose(y, 2) & (x < 1), (x == 0) & (y < 1), (x == 0) & (y > 1),
    ]  # fmt: skip
    counts = np.array([s.sum() for s in sides])
    assert counts.sum() == 8000 and even(counts, np.full(8, 1000.0))


@pytest.mark.parametrize("radii, dimension", [((3.0, 0.5), 2), ((1.0, 2.0, 0.5), 3)])
def test_an_ellipse_has_the_length_and_density_of_a_fine_polygon(radii, dimension):
    shape = ds.Ellipse(radii=radii, **dict.fromkeys("xyz"[:dimension], 0.0))
    if dimension == 2:
        angle = np.linspace(0, 2 * np.pi, 200_001)
        corners = np.stack([radii[0] * np.cos(angle), radii[1] * np.sin(angle)], 1)
        lengths = np.linalg.norm(np.diff(corners, axis=0), axis=1)
        assert np.isclose(shape.surface, lengths.sum(), rtol=1e-8)
        points, _ = shape.on_surface(5000, stream(0))
        of = np.arctan2(points[:, 1] / radii[1], points[:, 0] / radii[0]) % (2 * np.pi)
        along = np.interp(of, angle, np.append(0, np.cumsum(lengths))) / lengths.sum()
        assert stats.kstest(along, "uniform").pvalue > 1e-4
    else:
        mesh = trimesh.creation.icosphere(subdivisions=5)
        mesh.apply_scale(radii)
        assert np.isclose(shape.surface, mesh.area, rtol=2e-3)


@every
def test_normals_are_unit_and_outward(name):
    region, points = points_of(name, count=300)
    found = normals(region, Boundary(), points)
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-12)
    step = 1e-5 * region.shape.size * found
    edges = ~region.contains(points - step) | region.contains(points + step)
    assert edges.mean() < 0.01  # at corners a step may miss


@pytest.mark.parametrize("name", ["plate", "ellipse", "polygon with a hole", "cylinder", "surface"])
def test_normals_and_depths_are_the_same_in_jax_and_numpy_and_in_single(name):
    region, points = points_of(name, count=40)
    shape = region.shape
    inner = sample(Interior(), region, 40, stream(3, name))
    both = np.concatenate([points, inner])[:, : len(shape.axes)]
    depth = jax.jit(jax.vmap(lambda x: shape.depth(x, jnp)))(jnp.asarray(both))
    assert np.allclose(depth, shape.depth(both, np), atol=1e-9)
    assert (shape.depth(inner, np) <= 0).all() and np.allclose(shape.depth(points, np), 0, atol=1e-9)
    one = jax.jit(jax.vmap(lambda x: region.normal(Boundary(), x, jnp)))
    assert np.allclose(one(jnp.asarray(points)), normals(region, Boundary(), points), atol=1e-9)
    single = np.asarray(one(jnp.asarray(points, jnp.float32)))
    assert single.dtype == np.float32
    assert np.mean(np.abs(single - normals(region, Boundary(), points)).max(axis=1) < 1e-4) > 0.95


def test_exact_distances():
    """Depths are signed distances: of a lattice, to the nearest of many points of the surface."""
    for name in ("disc", "polygon", "cylinder", "surface"):
        region, surface = points_of(name, count=20_000)
        lower, upper = np.array(region.shape.bounds).T
        x = lower + (upper - lower) * stream(4, name).random((50, region.dimension))
        nearest = np.sqrt(((x[:, None] - surface) ** 2).sum(-1).min(1))
        assert np.allclose(np.abs(region.shape.depth(x, np)), nearest, atol=0.06 * region.shape.size)
        assert (np.abs(region.shape.depth(x, np)) <= nearest + 1e-9).all()


def test_time_and_parameters():
    region = as_domain(PLATE.over(t=(1, 3), nu=(0.1, 0.2)))
    assert region.axes == ("x", "y", "t", "nu") and region.time == "t" and region.parameters == ("nu",)
    assert region.space == ("x", "y") and region.bounds[2:] == ((1, 3), (0.1, 0.2))
    for part in (Interior(), Initial(), Boundary(on=("hole",))):
        points = sample(part, region, 500, stream(0, "t"))
        assert region.contains(points).all()
        assert stats.kstest((points[:, 3] - 0.1) / 0.1, "uniform").pvalue > 1e-4
    assert (sample(Initial(), region, 9, stream(0))[:, 2] == 1).all()
    later = region.with_interval("t", (2, 2.5))
    assert sample(Interior(), later, 99, stream(0))[:, 2].min() >= 2 and later.shape is region.shape
    box = ds.Box(x=(0, 1)).over(t=(0, 1), nu=(0.01, 0.1))
    assert box.space == ("x",) and box.parameters == ("nu",) and box.faces == (("x", "lower"), ("x", "upper"))


@pytest.mark.parametrize("method", ["uniform", "even", "sobol", "clustered"])
def test_every_way_of_placing_points(method):
    region = as_domain(PLATE.over(t=(0, 1)))
    for part in (Interior(), Initial(), Boundary(), Boundary(on=("hole",))):
        points = sample(part, region, 123, stream(0, "m"), method, near=[ds.Near((("x", "lower"),), 0.3, 0.25)])
        assert points.shape == (123, 3) and region.contains(points).all()
        assert np.array_equal(
            points, sample(part, region, 123, stream(0, "m"), method, near=[ds.Near((("x", "lower"),), 0.3, 0.25)])
        )
        other = held_out(part, region, 50, stream(1, "h"), points, np.float32, method=method)
        assert region.contains(other).all() and not set(map(bytes, other)) & set(map(bytes, points))


def test_parts_of_the_boundary():
    region = as_domain(PLATE)
    hole = sample(Boundary(on=("hole",)), region, 200, stream(0))
    assert np.allclose(np.hypot(hole[:, 0] - 1, hole[:, 1] - 1), 0.3)
    assert np.allclose(normals(region, Boundary(on=("hole",)), hole), -(hole - 1) / 0.3)
    box = sample(Boundary(on=("box",)), region, 200, stream(0))
    assert (np.isclose(box, 0) | np.isclose(box, [4, 2])).any(axis=1).all()
    right = sample(Boundary(faces=(("x", "upper"),)), region, 50, stream(0))
    assert (right[:, 0] == 4).all()
    high = sample(Boundary(where=lambda x, y: y > 1.99), region, 50, stream(0))
    assert (high[:, 1] > 1.99).all()
    part = sample(Boundary(on=("hole",), where=lambda y: y > 1), region, 50, stream(0))
    assert (part[:, 1] > 1).all() and np.allclose(np.hypot(*(part - 1).T), 0.3)
    top = sample(Boundary(where=lambda x, y: x + y > 1.5), ds.Box(x=(0, 1), y=(0, 1)), 50, stream(0))
    assert (top.sum(axis=1) > 1.5).all() and (top.max(axis=1) == 1).all()


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: ds.Ball(x=0, y=0, radius=0), "must be positive"),
        (lambda: ds.Ball(x=0, y=np.nan, radius=1), "the centre's y must be a finite number"),
        (lambda: ds.Ball(x=0, radius=1), "at least two axes"),
        (lambda: ds.Ellipse(x=0, y=0, radii=(1,)), "needs 2 radii"),
        (lambda: ds.Polygon([(0, 0), (1, 1), (1, 0), (0, 1)]), r"self-intersection at \(0.5 0.5\)"),
        (lambda: ds.Polygon([(0, 0), (1, 1)]), "at least three points"),
        (lambda: ds.Polygon([(0, 0), (1, 1), (2, 2)]), "no inside|not simple"),
        (lambda: ds.Ball(x=0, y=0, radius=1) & ds.Ball(x=5, y=0, radius=1), "do not meet"),
        (lambda: as_domain(ds.Ball(x=0, y=0, radius=1) & ds.Ball(x=1.5, y=1.5, radius=1)), "has no inside"),
        (lambda: as_domain(ds.Ball(x=0, y=0, radius=1) - ds.Ball(x=0, y=0, radius=2)), "has no inside"),
        (lambda: ds.Ball(x=0, y=0, radius=1) - ds.Ball(x=0, z=0, radius=1), "same axes"),
        (lambda: ds.Ball(x=0, y=0, radius=1) - 1, "with a shape only"),  # type: ignore[operator]
        (lambda: PLATE.over(x=(0, 1)), "has an axis 'x' already"),
        (lambda: PLATE.over(), "at least one axis"),
        (lambda: ds.Box(x=(0, 1), y=(0, 1), t=(0, 1)) - ds.Ball(x=0, y=0, radius=1), "add them afterwards"),
        (lambda: ds.extrude(PLATE, x=(0, 1)), "already"),
        (lambda: ds.extrude(PLATE, z=(1, 0)), "below"),
        (lambda: ds.Surface("nowhere.stl"), "no such file"),
    ],
)
def test_what_is_no_shape_is_refused_with_its_reason(make, words):
    with pytest.raises((ValueError, TypeError, FileNotFoundError), match=words):
        make()


def test_surfaces_from_files(tmp_path):
    mesh = trimesh.creation.box((1, 2, 3))
    mesh.export(tmp_path / "part.stl")
    part = ds.Surface(tmp_path / "part.stl")
    assert np.isclose(part.volume, 6) and np.isclose(part.surface, 22)
    mesh.update_faces(np.arange(12) != 3)
    mesh.export(tmp_path / "open.stl")
    with pytest.raises(ValueError, match="it is open .3 edges belong to one triangle only, one near"):
        ds.Surface(tmp_path / "open.stl")
    turned = trimesh.creation.box((1, 1, 1))
    turned.invert()
    assert np.isclose(ds.Surface(turned).volume, 1)
    lattice = np.stack(np.meshgrid(*[np.linspace(-0.5, 0.5, 9)] * 3), -1).reshape(-1, 3) * 0.98  # rays meet edges here
    assert ds.Surface(turned).inside(lattice).all() and not ds.Surface(turned).inside(lattice + 1.2).any()
