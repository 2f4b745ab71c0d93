"""Shapes in space: balls, ellipses, polygons, surfaces, and what can be made of them (`tree.py`).

A shape knows nothing of time, conditions or networks; `problem/region.py` makes it a domain.
"""

from dsgnar.problem.shapes.extruded import extrude
from dsgnar.problem.shapes.polygon import Polygon
from dsgnar.problem.shapes.round import Ball, Ellipse
from dsgnar.problem.shapes.surface import Surface
from dsgnar.problem.shapes.tree import Shape

__all__ = ["Ball", "Ellipse", "Polygon", "Shape", "Surface", "extrude"]
