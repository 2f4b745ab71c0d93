"""Solving to a tolerance: cheap first, then more, until the estimated error is small enough.

    level   network and points
    0       as they are by default, or as given
    1       half as wide again, twice the points
    2       twice as wide, four times the points

Levels that differ in nothing from the one before are left out, and so are those of a network of the person's own beyond
what settings change. Precision and points that were given stay. Time counts over all levels (`max_seconds`).

Without a tolerance there is one level, and where the default network does not solve the problem, one with a network of
another kind.
"""

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from dsgnar.networks import Architecture
from dsgnar.problem import Problem
from dsgnar.problem.scales import Scales
from dsgnar.problem.softened import begins_hard
from dsgnar.solving.estimate import NO_ESTIMATE
from dsgnar.solving.forecast import System
from dsgnar.solving.march import possible, restated
from dsgnar.solving.method import FAST
from dsgnar.solving.model import Network, default_network, other_network
from dsgnar.solving.settings import Settings, with_options
from dsgnar.solving.sizing import foreseen
from dsgnar.solving.solution import Solution
from dsgnar.solving.sources import followed
from dsgnar.solving.stop import StopReason
from dsgnar.solving.verdict import Verdict

FLOOR = 1e-7  # below the errors of single precision
REACHED = {"single": 3e-5, "double": 1e-10}  # residuals over their terms that a healthy interval reaches
AS_STATED = 0.4  # of the seconds, for an attempt with hard initial values before time is cut
LEVELS = ((1.0, 1), (1.5, 2), (2.0, 4))  # width and points, as factors


def levels(problem: Problem, network: Network | None, settings: Settings) -> Iterator[tuple[Network | None, Settings]]:
    """What to try, one after the other."""
    tol = settings.strictest
    assert tol is not None
    base = _strict(settings, tol, problem)
    scales = foreseen(problem, settings.scales) if base.chosen_method().scaled else None
    first = default_network(problem, scales) if network is None else network
    base = base if scales is None or network is not None else _in(base, problem, scales)
    for width, points in LEVELS:
        wider = _wider(first, width)
        if width > 1 and wider is None:
            return
        count = settings.points or points * base.chosen_method().points
        yield wider or first, base if points == 1 else replace(base, points=count)


def _in(settings: Settings, problem: Problem, scales: Scales) -> Settings:
    """Settings with the sizes that were foreseen, which are not looked for where a network is given."""
    return replace(settings, scales=dict(zip(problem.outputs, scales.unknowns, strict=True)))


def _strict(settings: Settings, tol: float, problem: Problem) -> Settings:
    """Settings for a problem under which a time interval whose residuals exceed the tolerance is cut."""
    chosen = settings.for_problem(problem)
    method = chosen.chosen_method()
    goal = min(method.interval_goal, max(tol, REACHED[chosen.precision or "single"]))
    return replace(chosen, method=replace(method, interval_goal=goal))


def _wider(network: Network, factor: float) -> Network | None:
    """The same architecture with wider layers; None if it has none."""
    widths = getattr(network, "widths", None)
    if not isinstance(network, Architecture) or widths is None:
        return None
    return dataclasses.replace(network, widths=tuple(round(factor * w) for w in widths))  # type: ignore[arg-type]


def kinds(
    problem: Problem, network: Network | None, settings: Settings, first: Callable[[], Network]
) -> Iterator[tuple[Network | None, Settings]]:
    """What to try without a tolerance; `first` tells which network was tried first.

    Where sources are faster than the first network begins, it is not tried from other parameters.
    """
    if network is not None or problem.inverse or not settings.for_problem(problem).chosen_method().scaled:
        yield network, settings
        return
    scales = foreseen(problem, settings.scales)
    fast = followed(problem, scales) is not None
    yield network, with_options(settings, {"restarts": 0}) if fast else settings
    other = _in(settings, problem, scales)
    if fast and other.chosen_method().interior_weight == FAST.interior_weight:
        other = with_options(other, {"interior_weight": 1.0})
    yield other_network(problem, scales, first()), other


def reach(
    problem: Problem,
    network: Network | None,
    settings: Settings,
    attempt: Callable[[Network | None, Settings], Solution],
) -> Solution:
    """The first solution whose estimated error meets the tolerance, else the best one; `attempt` makes them.

    Without a tolerance, the first that is solved. Hard initial values are held exactly at first, over all of the time; if
    that is not solved, and time can be cut, they are conditions.
    """
    left, tried = math.inf if settings.max_seconds is None else settings.max_seconds, []
    _check_tolerance(problem, settings)
    for chosen, level in _tries(problem, network, settings, lambda: tried[-1].model.network):
        if tried and left <= 0:
            break
        seconds = min(left, level.max_seconds or math.inf)
        solution = attempt(chosen, level if seconds == math.inf else replace(level, max_seconds=seconds))
        tried.append(solution)
        assert solution.outcome is not None
        left -= solution.outcome.seconds["solve"] + solution.outcome.seconds["compile"]
        done = solution.verdict == "solved" if settings.tol is None else solution.outcome.tolerance_met is not False
        stop, as_stated = solution.outcome.stop, level.intervals != settings.intervals  # whose limits are its own
        limited = stop is StopReason.INTERRUPTED or (stop.is_limit and not as_stated)
        if done or limited or solution.outcome.hidden:
            break
    return _together(min(reversed(tried), key=_wrong), tried, settings)


def _tries(
    problem: Problem, network: Network | None, settings: Settings, last: Callable[[], Network]
) -> Iterator[tuple[Network | None, Settings]]:
    """What to try: hard initial values as they are stated first, once, where intervals would be found on the way.

    In initial value problems in one variable they hold exactly in every interval.
    """
    intervals = possible(problem, settings.intervals, settings.chosen_method().scaled)
    soft = restated(problem, intervals)
    if intervals == "auto" and begins_hard(problem) and System.of(soft) is None:
        seconds = None if settings.max_seconds is None else AS_STATED * settings.max_seconds
        yield network, replace(with_options(settings, {"restarts": 0}), intervals=1, max_seconds=seconds)
    yield from kinds(soft, network, settings, last) if settings.tol is None else levels(soft, network, settings)


def _check_tolerance(problem: Problem, settings: Settings) -> None:
    """Raise unless a tolerance can be reached and checked."""
    tol = settings.strictest
    if tol is None:
        return
    if problem.inverse:
        raise ValueError(f"tol={settings.tol} cannot be checked: {NO_ESTIMATE}; leave tol out")
    if isinstance(settings.tol, Mapping) and set(settings.tol) != set(problem.unknowns):
        unknowns, given = ", ".join(problem.unknowns), ", ".join(map(str, settings.tol))
        raise ValueError(f"tol needs a number for each unknown ({unknowns}), not for {given}; or one number for all")
    if settings.precision == "single" and tol < FLOOR:
        raise ValueError(f"tol={tol:g} is below what single precision can reach ({FLOOR:g}): use precision='double'")


def _together(solution: Solution, tried: list[Solution], settings: Settings) -> Solution:
    """The solution with the time that all attempts took, and the limit that was given for all of them."""
    if len(tried) == 1:
        return solution
    spent = [one.outcome.seconds for one in tried if one.outcome is not None]
    assert solution.outcome is not None
    total = {part: sum(seconds.get(part, 0.0) for seconds in spent) for part in solution.outcome.seconds}
    limit = math.inf if settings.max_seconds is None else settings.max_seconds
    resolved = replace(solution.outcome.settings, max_seconds=limit)
    return replace(solution, outcome=replace(solution.outcome, seconds=total, settings=resolved))


def _wrong(solution: Solution) -> tuple[int, bool, float]:
    """How bad a solution is: unknown errors are worse than known ones, and among themselves ordered by residuals.

    The verdict comes first: residuals of a march that did not get to its end say nothing about the rest.
    """
    assert solution.outcome is not None
    error, ranks = solution.outcome.decisive, [verdict.code for verdict in Verdict]
    worst = max(solution.outcome.relative_residuals.values()) if error is None else error
    return ranks.index(solution.verdict or ranks[-1]), error is None, worst
