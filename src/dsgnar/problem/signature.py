"""Functions that a person writes, `lambda u, x: ...`: their parameters are matched by name."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dsgnar.problem.mistakes import Untraceable, explain


@dataclass(frozen=True)
class Signature:
    """A person's function, which unknowns and coordinates its parameters name, and what messages call it."""

    function: Callable
    names: tuple[str, ...]
    what: str

    @classmethod
    def of(cls, function: Callable, known: Sequence[str], what: str) -> "Signature":
        if not callable(function):
            raise TypeError(f"{what}: expected a function, got {type(function).__name__}")
        try:
            parameters = inspect.signature(function).parameters.values()
        except ValueError:
            raise ValueError(f"{what}: {function!r} does not tell its parameters; wrap it, lambda u, x: ...") from None
        names = tuple(p.name for p in parameters if p.default is inspect.Parameter.empty)
        if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD, p.POSITIONAL_ONLY) for p in parameters):
            raise ValueError(f"{what}: name its parameters one by one, as in lambda u, x: ..., without *, ** and /")
        for name in names:
            if name not in known:
                raise ValueError(
                    f"{what}: its parameter {name!r} is neither an unknown nor an axis; there are {', '.join(known)}"
                )
        return cls(function, names, what)

    def __call__(self, values: dict[str, Any]) -> Any:
        try:
            return self.function(**{name: values[name] for name in self.names})
        except Exception as error:
            explanation = explain(error, self.what, self.function)
            if explanation is None:
                raise
            raise Untraceable(explanation) from None
