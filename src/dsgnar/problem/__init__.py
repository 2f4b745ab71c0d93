"""What is to be solved: a domain, the unknowns on it, and the conditions that they satisfy.

A person writes residuals as mathematics (`fields`) on parts of a box (`domain`) and collects them in a `Problem`, which is
checked when it is made. `constraints` builds what is known beforehand into the network's output, `sampling` places points,
and `reference` holds solutions to compare with. Nothing here knows how a problem is solved.
"""

from dsgnar.problem.conditions import Condition, at, boundary, initial, interior
from dsgnar.problem.data import data, read_data
from dsgnar.problem.inverse import Coefficient, Unknown
from dsgnar.problem.problem import Problem

__all__ = [
    "Coefficient",
    "Condition",
    "Problem",
    "Unknown",
    "at",
    "boundary",
    "data",
    "initial",
    "interior",
    "read_data",
]
