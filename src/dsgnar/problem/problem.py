"""What is to be solved: a domain, the unknowns on it, and conditions (section 2.1 of the paper).

A condition `F_m u = 0` is a residual on a part of the domain. All of them together are the operator `F` of the paper;
the loss (eq. 5) weighs the mean squares of their residuals. Names of conditions are the user's own; nothing depends on
them. A problem is checked when it is made (`checks.py`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import jax.numpy as jnp
from jaxtyping import Array, Float

from dsgnar.problem.checks import check_residuals, check_statement, required, resolve_condition, resolve_hard
from dsgnar.problem.conditions import Condition
from dsgnar.problem.constraints import Hard, constrain
from dsgnar.problem.domain import Boundary, Points
from dsgnar.problem.fields import Field, Mode, Requests, arguments, evaluate
from dsgnar.problem.inverse import Coefficient, check_coefficients, check_unknowns
from dsgnar.problem.normals import NAME as NORMAL
from dsgnar.problem.region import Domain, as_domain
from dsgnar.problem.signature import Signature


@dataclass(frozen=True, eq=False)
class Problem:
    """A differential equation with its conditions, checked when it is made.

    `conditions` maps names of your choice to `interior(...)`, `initial(...)`, `boundary(...)` and `at(...)`. `periodic` axes
    hold exactly through the network's input; `hard` values (`{"u": Hard(...)}`) through its output. A `known` part of an
    unknown (`{"p": lambda x, y: jnp.log(x**2 + y**2)}`), such as a singularity that no network can hold, is added to it.
    `coefficients` (`{"nu": Coefficient(0.1)}`) are numbers to be found; residuals take them by name (`inverse.py`).
    `implied` is not for people: singular parts that a statement implies are found by the solver (`singular.py`).
    """

    domain: Domain  # a Box; a shape given becomes a `Region`
    unknowns: tuple[str, ...]
    conditions: Mapping[str, Condition]
    periodic: tuple[str, ...] = ()
    hard: Mapping[str, Hard] = field(default_factory=dict)
    known: Mapping[str, Callable] = field(default_factory=dict)
    coefficients: Mapping[str, Coefficient] = field(default_factory=dict)
    implied: Mapping[str, Callable] = field(default_factory=dict)

    def __post_init__(self):
        for names in ("unknowns", "periodic"):  # one name alone will do
            given = getattr(self, names)
            object.__setattr__(self, names, (given,) if isinstance(given, str) else tuple(given))
        object.__setattr__(self, "domain", as_domain(self.domain))
        check_coefficients(self.coefficients)
        check_statement(self)
        check_unknowns(self)
        place = self.domain, self.periodic
        hard = {name: resolve_hard(name, constraint, *place) for name, constraint in self.hard.items()}
        object.__setattr__(self, "hard", hard)
        conditions = {name: resolve_condition(name, condition, *place) for name, condition in self.conditions.items()}
        object.__setattr__(self, "conditions", conditions)
        self.requests  # noqa: B018 - found now, outside of any function that JAX traces
        check_residuals(self)

    @property
    def stated(self) -> "Problem":
        """The problem as it was before singular parts that it implies were added."""
        return self.__dict__.get("_stated", self)

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """All that is sought: unknowns, then coefficients."""
        return (*self.unknowns, *self.coefficients)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of unknowns and coefficients, then of axes: what a residual's parameters may be called."""
        return (*self.outputs, *self.domain.axes)

    @cached_property
    def inverse(self) -> bool:
        """Whether more is sought than solutions of equations: coefficients, functions of fewer axes, or a fit of data."""
        fewer = any(getattr(unknown, "axes", None) is not None for unknown in self.unknowns)
        return bool(self.coefficients) or fewer or any(c.measured is not None for c in self.conditions.values())

    @cached_property
    def requests(self) -> dict[str, Requests]:
        """For each condition, the derivatives that it needs."""
        return {
            name: required(self._signature(name), self.outputs, self.domain, condition.part)
            for name, condition in self.conditions.items()
        }

    def residual(
        self, name: str, network: Callable, x: Float[Array, " d"], mode: Mode = "taylor", wide: bool = False
    ) -> Float[Array, ""]:
        """The residual of one condition at one point for any function `network: (d,) -> (unknowns,)`.

        With `wide` the equation itself is evaluated in float64, whatever the network's precision: its terms may be far
        apart in the units of the problem, beyond what float32 can hold.
        """
        fields = evaluate(network, x, self.outputs, self.requests[name], self.domain, mode)
        if wide:
            x = x.astype(jnp.float64)
            fields = {unknown: field_.widened() for unknown, field_ in fields.items()}
        result = self._signature(name)(arguments(fields, self.domain, self.conditions[name].part, x))
        return jnp.asarray(result.value if isinstance(result, Field) else result, x.dtype)

    def constrained(self, network: Callable) -> Callable:
        """The network with the hard constraints and the known parts built into its output."""
        return constrain(network, self.domain, self.outputs, self.hard, {**self.known, **self.implied})

    def _signature(self, name: str) -> Signature:
        condition = self.conditions[name]
        beside = (NORMAL,) if isinstance(condition.part, Boundary | Points) and NORMAL not in self.names else ()
        return Signature.of(condition.residual, (*self.names, *beside), f"condition {name!r}")
