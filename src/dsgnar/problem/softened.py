"""Hard values as conditions: u(x) = g(x) on a part of the domain, as a residual u - g there.

A network holds hard values exactly, by its ansatz. What has no such ansatz needs them as conditions: a linear space in which
a rough solution is sought, and a time interval after the first, which begins with what the one before found.
"""

import inspect
from collections.abc import Mapping
from copy import copy
from functools import lru_cache
from typing import Any

from dsgnar.problem.conditions import Condition
from dsgnar.problem.constraints import Hard
from dsgnar.problem.domain import Boundary, Initial, Part
from dsgnar.problem.problem import Problem
from dsgnar.problem.signature import Signature


@lru_cache(maxsize=16)
def softened(problem: Problem, kinds: tuple[type, ...] = (Initial, Boundary)) -> Problem:
    """The same problem, its hard values on parts of these kinds stated as conditions; itself where there are none.

    The same problem always gives the same one, so that what was found out about it is not sought again. It is not checked
    again: residuals need not be finite for functions that are far from the hard values.
    """
    hard, conditions = {}, dict(problem.conditions)
    for unknown, given in problem.hard.items():
        kept = tuple(part for part in given.on if not isinstance(part, kinds))
        for part in (part for part in given.on if isinstance(part, kinds)):
            where = "at the start" if isinstance(part, Initial) else f"on {part.describe()}"
            conditions[_free(f"{unknown} {where}", conditions)] = _difference(problem, unknown, given.value, part, 0)
            if isinstance(part, Initial) and given.rate is not None:
                rate = _difference(problem, unknown, given.rate, part, 1)
                conditions[_free(f"{unknown}.{problem.domain.time} {where}", conditions)] = rate
        if kept:
            hard[unknown] = Hard(given.value, on=kept)  # initial values, which have rates, are always softened
    if len(conditions) == len(problem.conditions):
        return problem
    soft = copy(problem)
    for cached in ("requests", "_stated"):
        soft.__dict__.pop(cached, None)
    object.__setattr__(soft, "hard", hard)
    object.__setattr__(soft, "conditions", conditions)
    soft.requests  # noqa: B018 - found now, outside of any function that JAX traces
    return soft


def _free(name: str, taken: Mapping[str, Any]) -> str:
    """A name that nothing else has."""
    names = (name, *(f"{name} ({k})" for k in range(2, len(taken) + 3)))
    return next(name for name in names if name not in taken)


def begins_hard(problem: Problem) -> bool:
    """Whether initial values are hard, so that only the first time interval can hold them."""
    return any(isinstance(part, Initial) for hard in problem.hard.values() for part in hard.on)


def _difference(problem: Problem, unknown: str, value: Any, part: Part, order: int) -> Condition:
    """An unknown, or its derivative in time, minus what it is to be."""
    axes, time = problem.domain.axes, str(problem.domain.time)
    called = Signature.of(value, axes, f"the hard value of {unknown!r}") if callable(value) else None

    def residual(**given: Any) -> Any:
        field = given[unknown].d(time, order) if order else given[unknown]
        return field - (value if called is None else called(given))

    names = (unknown, *(called.names if called else ()))
    parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    residual.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return Condition(residual, part)
