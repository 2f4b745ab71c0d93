"""Meshes of shapes: triangles or tetrahedra.

Nodes are the points of an even grid inside the shape, points of its boundary about as dense, and its corners. Their Delaunay
triangulation, without the simplices whose centre lies outside, is the mesh: it follows straight sides exactly and curved
ones to second order in the spacing.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.spatial import Delaunay

from dsgnar.calculus.streams import stream
from dsgnar.problem.domain import Boundary
from dsgnar.problem.region import Region
from dsgnar.problem.sampling import sample
from dsgnar.problem.shapes.polygon import Polygon
from dsgnar.problem.shapes.tree import Shape


@dataclass(frozen=True, eq=False)
class Mesh:
    """Nodes (n, d) and simplices (m, d + 1)."""

    nodes: np.ndarray
    simplices: np.ndarray


def mesh(shape: Shape, counts: Mapping[str, int]) -> Mesh:
    """A mesh of a shape in two or three dimensions, with so many grid points along each axis of its bounds."""
    axes, dimension = shape.axes, len(shape.axes)
    if dimension not in (2, 3):
        raise ValueError(f"a mesh is made in two or three dimensions, not along {', '.join(axes)}: write a table")
    lower, upper = np.array(shape.bounds).T
    lines = [np.linspace(a, b, counts[axis]) for axis, (a, b) in zip(axes, shape.bounds, strict=True)]
    spacing = (upper - lower) / (np.array([len(line) for line in lines]) - 1)
    grid = np.stack(np.meshgrid(*lines, indexing="ij"), -1).reshape(-1, dimension)
    inside = grid[shape.depth(grid, np) < -0.4 * spacing.min()]
    nodes = np.concatenate([_corners(shape), _around(shape, spacing), inside]) / spacing  # in units of the spacing
    found = Delaunay(nodes)
    simplices = found.simplices
    centres = nodes[simplices].mean(axis=1) * spacing
    kept = simplices[shape.inside(centres) & (_volumes(nodes[simplices]) > 1e-6)]
    used, numbers = np.unique(kept, return_inverse=True)
    return Mesh(nodes[used] * spacing, numbers.reshape(kept.shape))


def _volumes(corners: np.ndarray) -> np.ndarray:
    edges = corners[:, 1:] - corners[:, :1]
    return np.abs(np.linalg.det(edges)) / math.factorial(edges.shape[1])


def _corners(shape: Shape) -> np.ndarray:
    """Corners of boxes and polygons that are on the boundary."""
    found = [np.empty((0, len(shape.axes)))]
    for leaf, _ in shape.leaves:
        if leaf.flat == leaf.axes:
            found.append(np.array(list(product(*leaf.bounds))))
        elif isinstance(leaf, Polygon):
            found.append(leaf.edges[0])
    corners = np.concatenate(found)
    return corners[np.abs(shape.depth(corners, np)) < 1e-9 * shape.size] if len(corners) else corners


def _around(shape: Shape, spacing: np.ndarray) -> np.ndarray:
    """Points of the boundary, about one in each cell of a grid that it passes through."""
    surface = sum(leaf.surface for leaf, _ in shape.leaves)
    count = math.ceil(12 * surface / float(np.prod(spacing)) ** ((len(spacing) - 1) / len(spacing)))
    points = sample(Boundary(), Region(shape, {}), min(count, 200_000), stream(0, "mesh"))
    _, first = np.unique(np.floor(points / (0.8 * spacing)).astype(int), axis=0, return_index=True)
    return points[np.sort(first)]
