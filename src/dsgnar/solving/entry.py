"""The front door: `solve(problem)`."""

import warnings
from collections.abc import Sequence
from typing import Any

from dsgnar.calculus.devices import over
from dsgnar.problem import Problem
from dsgnar.problem.doubts import doubts
from dsgnar.problem.reference import Reference
from dsgnar.solving.context import Context
from dsgnar.solving.loop import run
from dsgnar.solving.model import Network
from dsgnar.solving.observers import Observer, Settling, tell_preparing
from dsgnar.solving.settings import Settings, unknown_option, with_options
from dsgnar.solving.solution import Solution
from dsgnar.solving.tolerance import reach


def solve(
    problem: Problem,
    *,
    network: Network | None = None,
    reference: Reference | None = None,
    observers: Sequence[Observer] = (),
    settings: Settings | None = None,
    devices: int | None = None,
    **options: Any,
) -> Solution:
    """Solve a problem.

    `network` is an architecture (`MLP(...)`, `Siren(...)`, ...) or any callable Equinox module from a point to the
    unknowns. All other options are fields of `Settings`, such as `precision`, `seed`, `method`, `sketch` and `points`, or of
    `Method`. With `tol` precision, network and points grow until the estimated relative l2 error of every unknown is below
    it, or `max_seconds` are over; with `quantity` (`integral(...)`, `mean(...)`, `value(...)`), that of this number.
    `devices` is how many JAX devices share the work; one by default. With a `reference` the error is followed on the way.
    `observers` see the run: `Progress()` shows it, `RunDirectory("runs/mine")` keeps it on disk. Ctrl-C ends the run after
    the current iteration and is then raised again as `Interrupted`, which carries the solution as it stood.
    """
    if not isinstance(problem, Problem):
        hint = f"; a problem of the suite is solved by `dsgnar solve {problem}`" if isinstance(problem, str) else ""
        raise TypeError(f"solve() takes a dsgnar.Problem, not {type(problem).__name__} {problem!r}{hint}")
    if settings is not None and not isinstance(settings, Settings):
        raise TypeError(f"`settings` must be a dsgnar.Settings, not {type(settings).__name__}; or pass options by name")
    if not isinstance(observers, Sequence):
        raise TypeError(f"`observers` must be a list, such as [dsgnar.Progress()], not {type(observers).__name__}")
    wrong = unknown_option(options)
    if wrong is not None:
        raise TypeError(f"solve() has no option {wrong}")
    for doubt in doubts(problem):
        warnings.warn(doubt, stacklevel=2)

    attempts = 0

    def attempt(network: Network | None, settings: Settings) -> Solution:
        nonlocal attempts
        attempts += 1
        context = Context.of(problem, network, settings, reference)
        return run(context, context.start(), observers)

    with over(devices) as shared:
        if network is None and shared.team.leads:
            tell_preparing(observers)
        solution = reach(problem, network, with_options(settings or Settings(), options), attempt)
        for observer in observers if attempts > 1 and shared.team.leads else ():
            if isinstance(observer, Settling):
                observer.settled(solution)
    return solution
