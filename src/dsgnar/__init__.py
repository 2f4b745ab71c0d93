"""Partial differential equations solved with physics-informed neural networks."""

from dsgnar.calculus.version import VERSION
from dsgnar.networks import MLP, SPINN, GaborNet, Siren
from dsgnar.problem import (
    Coefficient,
    Condition,
    Problem,
    Unknown,
    at,
    boundary,
    data,
    initial,
    interior,
    read_data,
)
from dsgnar.problem.constraints import Hard
from dsgnar.problem.domain import Boundary, Box, Initial, Interior, Points
from dsgnar.problem.fields import gradient, laplacian
from dsgnar.problem.quantities import Quantity, integral, mean, value
from dsgnar.problem.reference import Reference
from dsgnar.problem.sampling import Near
from dsgnar.problem.shapes import Ball, Ellipse, Polygon, Shape, Surface, extrude
from dsgnar.showing.progress import Progress
from dsgnar.solving.abilities import offer
from dsgnar.solving.entry import solve
from dsgnar.solving.interruption import Interrupted, Terminated
from dsgnar.solving.method import FAST, PAPER, Method
from dsgnar.solving.settings import Settings
from dsgnar.solving.solution import Solution
from dsgnar.solving.stop import StopReason
from dsgnar.storing.directory import RunDirectory, resume
from dsgnar.storing.runs import load

__version__ = VERSION

offer(
    {name: f"dsgnar.showing.export:{name}" for name in ("to_xarray", "to_netcdf", "to_csv", "to_vtk", "export")}
    | {
        "plot": "dsgnar.showing.figures:show",
        "save": "dsgnar.storing.runs:save",
        "summary": "dsgnar.solving.advice:summary",
    }
)

__all__ = [
    "FAST",
    "MLP",
    "PAPER",
    "SPINN",
    "Ball",
    "Boundary",
    "Box",
    "Coefficient",
    "Condition",
    "Ellipse",
    "GaborNet",
    "Hard",
    "Initial",
    "Interior",
    "Interrupted",
    "Method",
    "Near",
    "Points",
    "Polygon",
    "Problem",
    "Progress",
    "Quantity",
    "Reference",
    "RunDirectory",
    "Settings",
    "Shape",
    "Siren",
    "Solution",
    "StopReason",
    "Surface",
    "Terminated",
    "Unknown",
    "at",
    "boundary",
    "data",
    "extrude",
    "gradient",
    "initial",
    "integral",
    "interior",
    "laplacian",
    "load",
    "mean",
    "read_data",
    "resume",
    "solve",
    "value",
]
