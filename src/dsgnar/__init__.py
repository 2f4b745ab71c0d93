"""Partial differential equations solved with physics-informed neural networks to the accuracy of classical solvers."""

from dsgnar.config import Settings
from dsgnar.constraints import Hard
from dsgnar.domain import Boundary, Box, Initial, Interior, Points
from dsgnar.fields import gradient, laplacian
from dsgnar.keeper import RunDirectory, resume
from dsgnar.networks import MLP, SPINN, GaborNet, Siren
from dsgnar.problem import Condition, Problem, at, boundary, initial, interior
from dsgnar.progress import Progress
from dsgnar.reference import Reference
from dsgnar.runs import load
from dsgnar.sampling import Near
from dsgnar.solution import Solution
from dsgnar.solve import solve
from dsgnar.stages import StopReason

__version__ = "0.1.0"

__all__ = [
    "MLP",
    "SPINN",
    "Boundary",
    "Box",
    "Condition",
    "GaborNet",
    "Hard",
    "Initial",
    "Interior",
    "Near",
    "Points",
    "Problem",
    "Progress",
    "Reference",
    "RunDirectory",
    "Settings",
    "Siren",
    "Solution",
    "StopReason",
    "at",
    "boundary",
    "gradient",
    "initial",
    "interior",
    "laplacian",
    "load",
    "resume",
    "solve",
]
