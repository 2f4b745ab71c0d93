"""Values that hold exactly because the network's output is transformed (Lagaris et al. 1998; Appendix B of the paper).

With `g` a function that takes the prescribed values, and `D >= 0` one that vanishes exactly where they are prescribed,

    u(x) = g(x) + D(x) N(x)

satisfies them for every network `N`. `D` is a product of one factor per face, normalised to order one:
`(x-a)/(b-a)` on a lower face, `(b-x)/(b-a)` on an upper one, `(t-t0)/(t1-t0)` at the initial time, squared when
the time derivative is prescribed too.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import equinox as eqx
import jax.numpy as jnp

from dsgnar.domain import Boundary, Box, Initial
from dsgnar.fields import Signature


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
        if not self.on or not all(isinstance(part, Initial | Boundary) for part in self.on):
            raise ValueError("a hard constraint holds `on` at least one of Initial() and Boundary(...)")
        if self.rate is not None and not any(isinstance(part, Initial) for part in self.on):
            raise ValueError("a hard rate needs the initial time among the parts it holds on: on=(Initial(), ...)")


@dataclass(frozen=True)
class Transform:
    """The transformation of all outputs that makes a problem's hard constraints hold on one domain."""

    domain: Box
    unknowns: tuple[str, ...]
    hard: dict[str, Hard] = field(hash=False)

    def __call__(self, x, raw):
        """Outputs at the point `x` from the raw outputs of the network there."""
        if not self.hard:
            return raw
        return jnp.stack([self._one(self.hard.get(name), x, raw[k]) for k, name in enumerate(self.unknowns)])

    def _one(self, hard: Hard | None, x, raw):
        if hard is None:
            return raw
        out = _evaluate(hard.value, x, self.domain, "the value of a hard constraint")
        factor = self._vanishing(hard, x)
        if hard.rate is not None:
            since = x[self.domain.index(str(self.domain.time))] - self.domain.interval(str(self.domain.time))[0]
            out = out + since * _evaluate(hard.rate, x, self.domain, "the rate of a hard constraint")
        return out + factor * raw

    def _vanishing(self, hard: Hard, x):
        factor: Any = 1.0
        for part in hard.on:
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
    return jnp.asarray(Signature.of(value, domain.axes, what)(coordinates), x.dtype)


class Constrained(eqx.Module):
    """A network whose outputs are transformed so that hard constraints hold."""

    network: Callable
    transform: Transform = eqx.field(static=True)

    def __call__(self, x):
        return self.transform(x, self.network(x))


def constrain(network: Callable, domain: Box, unknowns: Sequence[str], hard: dict[str, Hard]) -> Callable:
    """The network itself where nothing is hard, else the network with its outputs transformed."""
    return Constrained(network, Transform(domain, tuple(unknowns), dict(hard))) if hard else network
