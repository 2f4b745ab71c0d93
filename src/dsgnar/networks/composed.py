"""All outputs of an inverse problem: those of one network of all axes, of small networks of fewer axes, and numbers.

    unknowns of all axes     the network that a person chooses                          `shared`
    unknowns of some axes    a tanh network of their own, two or three layers of 16     `parts`
    coefficients             one parameter each, the last of all                        `numbers`

A positive output is exp of what is trained. All are over their sizes (`problem/scales.py`), so that parameters are near one.
"""

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dsgnar.networks.base import CALM, to_array
from dsgnar.networks.embeddings import Inputs
from dsgnar.networks.mlp import MLP
from dsgnar.problem import Problem
from dsgnar.problem.inverse import axes_of, is_positive, plain
from dsgnar.problem.scales import Scales


class Part(eqx.Module):
    """A network of some of the axes."""

    network: Callable
    axes: tuple[int, ...] = eqx.field(static=True)

    def __call__(self, x: Array) -> Array:
        return self.network(jnp.stack([x[i] for i in self.axes]))[0]


class Composed(eqx.Module):
    """A point to all outputs; `place[k]` says where output k comes from, a kind and a number."""

    shared: Callable | None
    parts: tuple[Part, ...]
    numbers: Array
    place: tuple[tuple[str, int], ...] = eqx.field(static=True)
    positive: tuple[bool, ...] = eqx.field(static=True)

    def __call__(self, x: Array) -> Array:
        outputs = {
            "shared": () if self.shared is None else self.shared(x),
            "part": [part(x) for part in self.parts],
            "number": self.numbers,
        }
        chosen = [outputs[kind][k] for kind, k in self.place]
        return jnp.stack([jnp.exp(v) if sign else v for v, sign in zip(chosen, self.positive, strict=True)])


def own(network: Any) -> tuple[int, ...]:
    """How many parameters belong to each function of fewer axes, and to coefficients: the last ones, in that order."""
    if not isinstance(network, Composed):
        return (0,)
    count = lambda tree: sum(leaf.size for leaf in jax.tree.leaves(eqx.filter(tree, eqx.is_inexact_array)))
    return *map(count, network.parts), count(network.numbers)


def shared(problem: Problem) -> tuple[str, ...]:
    """The unknowns of all axes, which share a network."""
    return tuple(name for name in problem.unknowns if axes_of(problem, name) == problem.domain.axes)


def compose(network: Any, problem: Problem, inputs: Inputs, scales: Scales | None, key: Array, dtype: Any) -> Any:
    """The network with all that a problem needs beside it; the network itself where that is nothing."""
    if plain(problem):
        return network
    together, parts, place = shared(problem), [], []
    for number, name in enumerate(problem.unknowns):
        if name in together:
            place.append(("shared", together.index(name)))
        else:
            place.append(("part", len(parts)))
            parts.append(_part(problem, name, inputs, jax.random.fold_in(key, 10_000 + number), dtype))
    place += [("number", k) for k in range(len(problem.coefficients))]
    sizes = (1.0,) * len(problem.outputs) if scales is None else scales.unknowns
    ratios = [
        c.start / size for c, size in zip(problem.coefficients.values(), sizes[len(problem.unknowns) :], strict=True)
    ]
    signs = tuple(is_positive(problem, name) for name in problem.outputs)
    starts = [math.log(r) if sign else r for r, sign in zip(ratios, signs[len(problem.unknowns) :], strict=True)]
    numbers = to_array(np.array(starts, np.float64), dtype)
    return Composed(network, tuple(parts), numbers, tuple(place), signs)


def _part(problem: Problem, name: str, inputs: Inputs, key: Array, dtype: Any) -> Part:
    axes = tuple(problem.domain.index(axis) for axis in axes_of(problem, name))
    time = axes.index(inputs.time) if inputs.time in axes else None
    periodic = tuple(axes.index(i) for i in inputs.periodic if i in axes)
    seen = Inputs(tuple(inputs.bounds[i] for i in axes), time, periodic)
    built = MLP(widths=(16,) * (2 if len(axes) == 1 else 3)).build(seen, 1, key=key, dtype=dtype)
    calm = eqx.tree_at(lambda n: n.output.weight, built, to_array(CALM * np.asarray(built.output.weight), dtype))
    return Part(calm, axes)
