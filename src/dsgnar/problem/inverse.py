"""What an inverse problem asks for beside the unknowns: coefficients, and unknown functions of fewer axes.

A coefficient is a function of no axes, and `Unknown("k", axes=("x",))` is one of some. Both are outputs of the network like
the unknowns, whose derivatives along absent axes are zero, so residuals, derivatives and scales treat all of them alike.
`Problem.outputs` lists them: unknowns first, then coefficients. Positive ones are exponentials of what is trained.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dsgnar.problem.problem import Problem


@dataclass(frozen=True)
class Coefficient:
    """A number that is to be found, beginning at `start`; a `positive` one stays so.

    `start` also tells its size: what is trained is the ratio to it.
    """

    start: float
    positive: bool = False

    def __post_init__(self):
        number = isinstance(self.start, int | float) and not isinstance(self.start, bool)
        try:
            start = float(self.start) if number or hasattr(self.start, "dtype") else math.nan
        except (TypeError, ValueError):
            start = math.nan
        if not math.isfinite(start):
            raise ValueError(f"Coefficient: start must be a finite number, not {self.start!r}; write Coefficient(0.1)")
        if self.positive and start <= 0:
            raise ValueError(f"Coefficient: a positive coefficient starts above zero, not at {start:g}")
        object.__setattr__(self, "start", start)


class Unknown(str):
    """The name of an unknown with what is known of it: the `axes` that it depends on, and whether it is `positive`.

    `Unknown("k", axes=("x",), positive=True)` is a conductivity of space in a problem of space and time. Without `axes` it
    depends on all of them. An unknown is its name: a plain string stands for one without further properties.
    """

    axes: tuple[str, ...] | None
    positive: bool

    def __new__(cls, name: str, axes: Any = None, positive: bool = False) -> "Unknown":
        if not isinstance(name, str):
            raise TypeError(f"Unknown: the first argument is a name such as 'k', not {name!r}")
        made = super().__new__(cls, name)
        made.axes = (axes,) if isinstance(axes, str) else None if axes is None else tuple(axes)
        made.positive = bool(positive)
        if made.axes is not None and not made.axes:
            raise ValueError(f"Unknown {name!r}: without any axis it is a number; write coefficients={{{name!r}: ...}}")
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return Unknown, (str(self), self.axes, self.positive)


def axes_of(problem: "Problem", output: str) -> tuple[str, ...]:
    """The axes that an output depends on, in the order of the domain."""
    if output in problem.coefficients:
        return ()
    found = next(name for name in problem.unknowns if name == output)
    axes = found.axes if isinstance(found, Unknown) else None
    return tuple(axis for axis in problem.domain.axes if axes is None or axis in axes)


def is_positive(problem: "Problem", output: str) -> bool:
    """Whether an output is an exponential of what is trained."""
    if output in problem.coefficients:
        return problem.coefficients[output].positive
    found = next(name for name in problem.unknowns if name == output)
    return isinstance(found, Unknown) and found.positive


def plain(problem: "Problem") -> bool:
    """Whether the outputs are those of one network of all axes, and nothing else."""
    every = problem.domain.axes
    return not any(axes_of(problem, name) != every or is_positive(problem, name) for name in problem.outputs)


def check_coefficients(coefficients: Any) -> None:
    """Raise unless coefficients make sense."""
    if not isinstance(coefficients, Mapping):
        kind = type(coefficients).__name__
        raise TypeError(f"coefficients: expected a dict such as {{'nu': Coefficient(0.1)}}, got {kind}")
    for name, coefficient in coefficients.items():
        if not isinstance(name, str) or not name.isidentifier():
            raise ValueError(f"the coefficient {name!r} must be a name that a function can have as a parameter")
        if not isinstance(coefficient, Coefficient):
            raise TypeError(f"coefficient {name!r}: write Coefficient({coefficient!r}), and positive=True if it is so")


def check_unknowns(problem: "Problem") -> None:
    """Raise unless unknowns of fewer axes, and positive ones, make sense."""
    domain, fixed = problem.domain, {**problem.hard, **problem.known}
    for unknown in problem.unknowns:
        if not isinstance(unknown, Unknown):
            continue
        for axis in unknown.axes or ():
            if axis not in domain.axes:
                raise ValueError(
                    f"unknown {unknown!r}: there is no axis {axis!r}; the domain has {', '.join(domain.axes)}"
                )
        if unknown in fixed and (unknown.positive or (unknown.axes and set(unknown.axes) != set(domain.axes))):
            raise ValueError(
                f"unknown {unknown!r} is positive or has fewer axes, so it takes no hard value and no known part; "
                "state a condition (ds.boundary, ds.at) in their place"
            )
