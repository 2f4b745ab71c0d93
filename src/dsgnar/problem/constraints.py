"""What is known of a solution beforehand, built into the network's output.

Values that hold exactly (Lagaris et al. 1998; Appendix B of the paper).

With `g` a function that takes the prescribed values, and `D >= 0` one that vanishes exactly where they are prescribed,

    u(x) = g(x) + D(x) N(x)

satisfies them for every network `N`. `D` is a product of one factor per face, normalised to order one:
`(x-a)/(b-a)` on a lower face, `(b-x)/(b-a)` on an upper one, `(t-t0)/(t1-t0)` at the initial time, squared when
the time derivative is prescribed too; then `g` is turned at the initial time so as to have that derivative,
`g(x, t) + (t - t0) (rate(x) - g_t(x, t0))`. On the boundary of a shape it is a product of functions of its primitives
(`shapes/`), each of which vanishes on the primitive's surface.

Known parts. Where a solution is a given function `k`, such as the leading term at a corner, plus something smoother,

    u(x) = k(x) + N(x)

leaves the smoother rest to the network.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from dsgnar.calculus.streams import stream
from dsgnar.problem.domain import Boundary, Box, Initial
from dsgnar.problem.region import Region
from dsgnar.problem.sampling import sample
from dsgnar.problem.signature import Signature


@dataclass(frozen=True)
class Hard:
    """Prescribed values of one unknown: `Hard(lambda x: -jnp.sin(jnp.pi * x), on=(ds.Initial(),))`.

    `value` is a number or a function of axes, defined on the whole domain, that takes the prescribed values on every part
    in `on`. With `rate` (a number or a function of axes) the time derivative at the initial time is prescribed too.
    """

    value: Callable | float
    on: tuple[Initial | Boundary, ...]
    rate: Callable | float | None = None

    def __post_init__(self):
        if isinstance(self.on, Initial | Boundary):
            object.__setattr__(self, "on", (self.on,))
        if not self.on or not all(isinstance(part, Initial | Boundary) for part in self.on):
            raise ValueError("a hard constraint holds `on` at least one of Initial() and Boundary(...)")
        if self.rate is not None and not any(isinstance(part, Initial) for part in self.on):
            raise ValueError("a hard rate needs the initial time among the parts it holds on: on=(Initial(), ...)")


@dataclass(frozen=True)
class Transform:
    """The transformation of all outputs that builds a problem's hard constraints and known parts in, on one domain."""

    domain: Box
    unknowns: tuple[str, ...]
    hard: dict[str, Hard] = field(hash=False)
    known: dict[str, Callable] = field(hash=False, default_factory=dict)

    def __call__(self, x: Float[Array, " d"], raw: Float[Array, " unknowns"]) -> Float[Array, " unknowns"]:
        """Outputs at the point `x` from the raw outputs of the network there."""
        if not self.hard and not self.known:
            return raw
        return jnp.stack([self._one(name, x, raw[k]) for k, name in enumerate(self.unknowns)])

    def _one(self, name: str, x, raw):
        if name in self.known:
            return raw + _evaluate(self.known[name], x, self.domain, f"the known part of {name!r}")
        hard = self.hard.get(name)
        if hard is None:
            return raw
        out = self.prescribed(name, x)
        if hard.rate is not None:
            since, slope = self._start(name, x)
            rate = _evaluate(hard.rate, x, self.domain, f"the rate of the hard constraint on {name!r}")
            out = out + since * (rate - slope)
        return out + self._vanishing(hard, x) * raw

    def prescribed(self, name: str, x: Float[Array, " d"]) -> Float[Array, ""]:
        """The values `g` of one unknown."""
        return _evaluate(self.hard[name].value, x, self.domain, f"the value of the hard constraint on {name!r}")

    def _start(self, name: str, x):
        """The time since the start, and the rate that `g` itself has there."""
        axis = self.domain.index(str(self.domain.time))
        start, now = jnp.asarray(self.domain.bounds[axis][0], x.dtype), jnp.arange(self.domain.dimension) == axis
        at_start = jnp.where(now, start, x)
        return x[axis] - start, jax.jvp(partial(self.prescribed, name), (at_start,), (now.astype(x.dtype),))[1]

    def _vanishing(self, hard: Hard, x):
        factor: Any = 1.0
        for part in hard.on:
            if isinstance(self.domain, Region) and isinstance(part, Boundary):
                factor = factor * self.domain.vanishing(part, x, jnp)
            for fixed in part.fixed(self.domain):
                for i, value in fixed.items():
                    lower, upper = self.domain.bounds[i]
                    distance = (x[i] - lower if value == lower else upper - x[i]) / (upper - lower)
                    twice = isinstance(part, Initial) and hard.rate is not None
                    factor = factor * distance * (distance if twice else 1.0)
        return factor


def _evaluate(value: Callable | float, x, domain: Box, what: str):
    if not callable(value):
        return jnp.asarray(value, x.dtype)
    coordinates: dict[str, Any] = {axis: x[i] for i, axis in enumerate(domain.axes)}
    result = jnp.asarray(Signature.of(value, domain.axes, what)(coordinates), x.dtype)
    if result.shape:
        raise ValueError(f"{what} returned shape {result.shape}, expected one number per point")
    return result


class Constrained(eqx.Module):
    """A network whose outputs are transformed so that hard constraints hold and known parts are added."""

    network: Callable
    transform: Transform = eqx.field(static=True)

    def __call__(self, x: Float[Array, " d"]) -> Float[Array, " unknowns"]:
        return self.transform(x, self.network(x))


def constrain(
    network: Callable,
    domain: Box,
    unknowns: Sequence[str],
    hard: Mapping[str, Hard],
    known: Mapping[str, Callable] = MappingProxyType({}),
) -> Callable:
    """The network itself where nothing is hard or known, else the network with its outputs transformed."""
    if not hard and not known:
        return network
    return Constrained(network, Transform(domain, tuple(unknowns), dict(hard), dict(known)))


def check_rates(domain: Box, unknowns: tuple[str, ...], hard: dict[str, Hard]) -> None:
    """A rate moves the values away from the initial time. Where a boundary holds them, it must agree with them."""
    transform = Transform(domain, unknowns, hard)
    for name, constraint in hard.items():
        for part in constraint.on:
            if constraint.rate is None or isinstance(part, Initial):
                continue
            for x in map(jnp.asarray, sample(part, domain, 16, stream(0, "rate", name))):
                moved = transform(x, jnp.zeros(len(unknowns)))[unknowns.index(name)] - transform.prescribed(name, x)
                if abs(moved) > 1e-8:
                    raise ValueError(
                        f"the hard constraint on {name!r}: its rate moves its value on {part.describe()} by {moved:.2g}; "
                        "prescribe the rate there that the value itself has, or leave the boundary or the rate out"
                    )
