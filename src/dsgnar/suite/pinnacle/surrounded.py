"""Solutions of the benchmark's cases on domains that are not boxes: expansions around holes, finite elements, a formula.

Tables hold random points of the domain, which are no training points.
"""

import numpy as np

from dsgnar.calculus.streams import stream
from dsgnar.problem import Problem
from dsgnar.problem.domain import Interior
from dsgnar.problem.reference import Reference
from dsgnar.problem.sampling import sample
from dsgnar.suite import truth
from dsgnar.suite.pinnacle import shaped
from dsgnar.suite.pinnacle.measure import Values, Yardstick, backwards
from dsgnar.suite.truth import holes

COUNT = 8192  # points of a table
ORDERS = 40  # terms around each hole: errors on the boundary of 2e-10 (Poisson2d-C) and 3e-7 (Poisson2d-CG)


def classic(points: np.ndarray) -> np.ndarray:
    return holes.classic(shaped.FOUR, ORDERS)[0](points)[:, None]


def uneven(points: np.ndarray) -> np.ndarray:
    return holes.uneven(shaped.UNEVEN, ORDERS)[0](points)[:, None]


def heat_ball(points: np.ndarray) -> np.ndarray:
    return np.exp(np.sum(points[:, :-1] ** 2, axis=1, keepdims=True) / 2 + points[:, -1:])


def classic_table() -> Reference:
    return _table(shaped.poisson_classic(), classic, holes.classic(shaped.FOUR, ORDERS)[1], EXPANSION)


def uneven_table() -> Reference:
    return _table(shaped.poisson_uneven(), uneven, holes.uneven(shaped.UNEVEN, ORDERS)[1], EXPANSION)


def heat_ball_table() -> Reference:
    return _table(shaped.heat_ball(), heat_ball, 1e-15, "closed form")


def heat(points: np.ndarray) -> np.ndarray:
    """With spacing 0.2 (a minute)."""
    from dsgnar.suite.truth import heat_holes

    places, i = np.unique(points[:, :2], axis=0, return_inverse=True)
    times, j = np.unique(points[:, 2], return_inverse=True)
    found = np.zeros((len(places), len(times)))
    found[:, times > 0] = heat_holes.solve(heat_holes.plate(), 0.2, 30, times[times > 0], places)
    return found[i.ravel(), j.ravel()][:, None]


def heat_table() -> Reference:
    """The stored table; its axes are places and times."""
    stored = truth.load("heat_holes")
    made = stored.reference()
    points = np.stack([*(made.values[name] for name in "xy"), made.points[:, 1]], axis=1)
    return Reference(points, {"u": made.values["u"]}, made.accuracy, made.source)


def poisson3d(points: np.ndarray) -> np.ndarray:
    """With cells of 1/32."""
    from dsgnar.suite.truth import balls

    return balls.solve(balls.CELLS, balls.DEGREE, points)[:, None]


def poisson3d_table() -> Reference:
    """The stored table; its axis counts places."""
    stored = truth.load("balls")
    made = stored.reference()
    points = np.stack([made.values[name] for name in "xyz"], axis=1)
    return Reference(points, {"u": made.values["u"]}, made.accuracy, made.source)


def heat_ball_points() -> Yardstick:
    """The benchmark's kind of points: 800 of the ball at each of 25 times."""
    problem = shaped.heat_ball()
    space = sample(Interior(), problem.domain, 800, stream(0, "yardstick"))[:, :-1]
    times = backwards(25, 1.0)
    points = np.hstack([np.repeat(space, len(times), axis=0), np.tile(times, len(space))[:, None]])
    return Yardstick(points, heat_ball(points))


EXPANSION = "expansions around the holes; the accuracy is the largest error on the boundary"


def _table(problem: Problem, values: Values, accuracy: float, source: str) -> Reference:
    points = sample(Interior(), problem.domain, COUNT, stream(0, "reference", "shape"))
    axes = problem.domain.axes
    function = lambda **at: {"u": values(np.stack([at[axis] for axis in axes], axis=1))[:, 0]}
    return Reference(points, {"u": values(points)[:, 0]}, accuracy, source, function=function)
