"""A small problem that several tests share: heat conduction with a network of a few dozen parameters."""

import math
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np

import dsgnar as ds
from dsgnar.calculus.streams import stream
from dsgnar.networks import Inputs
from dsgnar.optimise.residuals import Residuals
from dsgnar.problem.reference import Reference, interior_grid
from dsgnar.problem.sampling import sample
from dsgnar.solving.context import Context
from dsgnar.solving.record import Outcome, Record
from dsgnar.solving.settings import with_options
from dsgnar.solving.solution import Solution
from dsgnar.solving.stop import StopReason
from dsgnar.solving.verdict import Verdict
from dsgnar.storing import runs
from dsgnar.suite.statement import from_suite

WEIGHTS = np.array([0.3, 1.7])

# Runs of seconds. Tests that agree in network and points share compiled kernels, of which there are few: held-out points
# have the shape of training points, and an even sketch falls into two shares of equal shape.
NETWORK = ds.MLP(widths=(10, 10))
# As the suite's presets are: in the problem's own units, in one time interval.
RAW = dict(scaled=False, exponent=0.05, redraws=0, search_patience=math.inf, restarts=0, undamped=0, intervals=1)
SIZES = dict(sketch=72, points=512, max_points=512, held_out=512, **RAW)
SMALL = dict(network=NETWORK, wait=10, **SIZES)


@cache
def problem() -> ds.Problem:
    return ds.Problem(
        domain=ds.Box(x=(0, 1), t=(0, 1)),
        unknowns=("u",),
        conditions={
            "heat": ds.interior(lambda u: u.t - 0.1 * u.xx),
            "start": ds.initial(lambda u, x: u - jnp.sin(2 * jnp.pi * x)),
        },
        periodic=("x",),
    )


def heat_reference() -> Reference:
    """The exact solution of the problem on a grid."""

    def exact(x, t):
        return {"u": np.exp(-0.1 * (2 * np.pi) ** 2 * t) * np.sin(2 * np.pi * x)}

    return Reference.on_grid({"x": interior_grid(0, 1, 40), "t": interior_grid(0, 1, 30)}, exact, 0.0, "closed form")


@cache
def residuals(dtype=np.float64, widths=(6, 6)):
    """Residuals of the problem for a small network, and the network's parameters."""
    inputs = Inputs(((0.0, 1.0), (0.0, 1.0)), 1, (0,))
    return Residuals.of(problem(), ds.MLP(widths=widths).build(inputs, 1, key=jax.random.key(0), dtype=dtype))


def points(interior=40, initial=15):
    """Training points by condition."""
    p = problem()
    return {
        name: sample(c.part, p.domain, n, stream(1, name))
        for (name, c), n in zip(p.conditions.items(), (interior, initial), strict=True)
    }


def weighted(res, theta, sets, weights=WEIGHTS):
    """The weighted residual vector r(theta) of eq. 9, as a differentiable function."""
    out = []
    for (name, x), w in zip(sets.items(), weights, strict=True):
        values = jax.vmap(lambda p, name=name: res.at_point(name, theta, p))(jnp.asarray(x.astype(theta.dtype)))
        out.append(np.sqrt(w / len(x)) * values)
    return jnp.concatenate(out)


def invented(problem, network=None, *, error=False, dtype=np.float64, intervals=1, stop=StopReason.RADIUS, **changed):
    """A solution that was never trained, with an account of a run that never was: pictures and exports need no more.

    The account has 20 iterations: a switch of precision after 4 and of stage after 12 of them, a rejected step without
    a ratio (15), an undamped one (7), and the ends of time intervals at equal distances.
    """
    network = network or ds.MLP(widths=(6, 6))
    context = _context(problem, network, "double" if dtype == np.float64 else "single", intervals)
    theta = np.asarray(context.start().iterate.theta)
    thetas = theta * (1 + 0.1 * np.random.default_rng(0).standard_normal((intervals, theta.size)))
    errors = dict.fromkeys(problem.unknowns, 0.5) if error else None
    history = tuple(
        Record(
            iteration=k, interval=(k - 1) * intervals // 20, stage=1 + (k > 12), precision="single" if k <= 4 else "double",
            points=100, loss=10.0**-k, mean_squares=(10.0**-k,) * len(problem.conditions),
            weights=(1.0,) * len(problem.conditions), ratio=np.nan if k == 15 else 0.1, target=0.1 if k <= 12 else 0.5,
            lam=0.0 if k == 7 else 10.0**-k, radius=1.0, accepted=k != 15, evaluations=3, seconds=2.0 * k,
            held_out=2 * 10.0**-k if k % 5 == 0 else None, error=errors if k % 5 == 0 else None,
        )
        for k in range(1, 21)
    )  # fmt: skip
    account = dict(
        settings=context.settings, history=history, stop=stop, seconds={"solve": 40.0, "compile": 2.0},
        held_out=dict.fromkeys(problem.conditions, 1e-10), points=dict.fromkeys(problem.conditions, 50), relative_l2=errors,
        relative_residuals=dict.fromkeys(problem.conditions, 1e-8), verdict=Verdict.SOLVED,
    )  # fmt: skip
    outcome = Outcome(**account | changed)
    return Solution(context.model, thetas.astype(dtype), outcome)


@cache
def _context(problem, network, precision, intervals) -> Context:
    return Context.of(
        problem, network, with_options(ds.Settings(), RAW | dict(precision=precision, intervals=intervals))
    )


def run_of_burgers(directory):
    """A run directory of the suite's Burgers, over two time intervals; nothing was trained."""
    statement = from_suite("burgers", "default")
    with jax.enable_x64(True):
        solution = invented(statement.problem, error=True, intervals=2, stop=StopReason.ITERATIONS)
    runs.write(directory, solution, statement)
    return directory
