"""Where the default network does not solve a problem, a network of another kind is tried, and the better one counts."""

from dataclasses import make_dataclass
from types import SimpleNamespace

import pytest

import dsgnar as ds
from dsgnar.problem.scales import estimate
from dsgnar.solving.model import other_network
from dsgnar.solving.stop import StopReason
from dsgnar.solving.tolerance import reach
from small import problem as heat


def record(**fields):
    """A value with these fields that `dataclasses.replace` can change."""
    return make_dataclass("Record", fields)(**fields)


def attempted(network, verdict="failed", residual=1.0, error=None, stop=StopReason.STALLED, seconds=10.0):
    """What an attempt hands back, as far as `reach` looks at it."""
    outcome = record(
        seconds={"solve": seconds, "compile": 0.0},
        error_estimate=None if error is None else {"u": error},
        decisive=error,
        relative_residuals={"pde": residual},
        tolerance_met=None,
        hidden=False,
        stop=stop,
        settings=record(max_seconds=None),
    )
    return record(verdict=verdict, outcome=outcome, model=SimpleNamespace(network=network or ds.MLP()))


def solve(*outcomes, network=None, **options):
    """`reach` with attempts that end in the given ways; the solution, and the calls that were made."""
    calls = []

    def attempt(network, settings):
        calls.append((network, settings))
        return attempted(network, **outcomes[len(calls) - 1])

    return reach(heat(), network, ds.Settings(**options), attempt), calls


def test_a_problem_that_is_solved_is_left_alone():
    solution, calls = solve(dict(verdict="solved"))
    assert solution.verdict == "solved" and len(calls) == 1 and calls[0][0] is None


def test_another_kind_of_network_follows_and_the_better_one_counts():
    better, calls = solve(dict(verdict="partly", error=1e-3), dict(verdict="partly", error=1e-5))
    assert better.outcome.error_estimate == {"u": 1e-5} and isinstance(calls[1][0], ds.Siren)
    kept, _ = solve(dict(verdict="partly", error=1e-3), dict(verdict="failed", residual=1e-9))
    assert kept.verdict == "partly"


def test_an_unknown_error_is_worse_than_a_known_one():
    solution, _ = solve(dict(verdict="partly", error=1e-3), dict(verdict="partly", residual=1e-9))
    assert solution.outcome.error_estimate == {"u": 1e-3}


@pytest.mark.parametrize("options", [dict(network=ds.MLP(widths=(4,))), dict(method="paper")])
def test_a_persons_own_network_and_the_papers_method_are_left_alone(options):
    _, calls = solve({}, **options)
    assert len(calls) == 1


def test_limits_hold_for_all_attempts_together():
    _, calls = solve(dict(stop=StopReason.SECONDS))
    assert len(calls) == 1
    _, calls = solve(dict(seconds=30.0), {}, max_seconds=100.0)
    assert [settings.max_seconds for _, settings in calls] == [100.0, 70.0]
    _, calls = solve(dict(seconds=30.0), max_seconds=30.0)
    assert len(calls) == 1


def test_time_counts_over_all_attempts():
    solution, _ = solve(dict(verdict="partly", seconds=30.0), dict(verdict="failed", seconds=12.0))
    assert solution.verdict == "partly" and solution.outcome.seconds["solve"] == 42.0
    alone, _ = solve(dict(verdict="solved", seconds=30.0))
    assert alone.outcome.seconds["solve"] == 30.0


def test_the_other_network_is_of_the_other_kind():
    problem = heat()
    scales = estimate(problem)
    assert isinstance(other_network(problem, scales, ds.MLP()), ds.Siren)
    assert isinstance(other_network(problem, scales, ds.Siren()), ds.MLP)
