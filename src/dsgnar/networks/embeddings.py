"""Input embeddings (paper, Appendix B.1 and B.2): what a network sees of a point.

Each spatial coordinate is normalised to the unit interval by the bounds of its axis,

    x~ = (x - lower) / (upper - lower),

and enters the network in one of three ways:

    identity    x                                           any other axis
    periodic    cos 2 pi x~, sin 2 pi x~                    a periodic axis: so is u, with all derivatives
    Fourier     (cos 2 pi m_k x~)_k, (sin 2 pi m_k x~)_k    M modes asked for: on every spatial axis

with m_k = 1, 2, 3, .. ("linear") or 1, 2, 4, .. ("dyadic"). By default steady problems take dyadic modes, to
reach many length scales, and time-dependent ones linear modes. The raw coordinate is not among the Fourier
features: the paper's parameter counts rule it out, although its Example 4 lists it. Time is passed on
unchanged and comes last.

In the code the mode m_k on an axis is the frequency m_k / (upper - lower), in turns per unit of length.

A network may see holes of the domain too (`holes.py`).

Embeddings consist of elementary functions only, with Python numbers as constants, so that every precision and every way of
differentiating them works.
"""

import dataclasses
import math
import operator
from collections.abc import Sequence
from typing import Any, Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from dsgnar.calculus.elementary import angle
from dsgnar.networks.holes import Hole

Spacing = Literal["linear", "dyadic"]


def check_count(value: Any, name: str) -> int:
    """`value` as a positive int, or an error that names it."""
    try:
        count = operator.index(value)
    except TypeError:
        count = 0
    if count < 1 or isinstance(value, bool):
        raise ValueError(f"{name} must be a positive integer, not {value!r}")
    return count


@dataclasses.dataclass(frozen=True)
class Inputs:
    """The coordinates that a network receives, in the order of the axes of the domain.

    `bounds` holds (lower, upper) of every axis, `time` the index of the time axis (None: steady),
    `periodic` the indices of the periodic axes, and `holes` the holes of the domain.
    """

    bounds: tuple[tuple[float, float], ...]
    time: int | None = None
    periodic: tuple[int, ...] = ()
    holes: tuple[Hole, ...] = ()

    def __post_init__(self):
        bounds = tuple((float(lower), float(upper)) for lower, upper in self.bounds)
        object.__setattr__(self, "bounds", bounds)
        object.__setattr__(self, "periodic", tuple(sorted(operator.index(axis) for axis in self.periodic)))
        if not bounds:
            raise ValueError("Inputs: a network needs at least one axis; bounds is empty")
        for axis, (lower, upper) in enumerate(bounds):
            if not (math.isfinite(lower) and math.isfinite(upper) and lower < upper):
                raise ValueError(f"Inputs: bounds[{axis}] = ({lower}, {upper}) must be finite, lower < upper")
        for name, axes in (("time", () if self.time is None else (self.time,)), ("periodic", self.periodic)):
            for axis in axes:
                if axis not in range(len(bounds)):
                    raise ValueError(f"Inputs: {name} names axis {axis}, but the axes are 0 to {len(bounds) - 1}")
        if len(set(self.periodic)) < len(self.periodic):
            raise ValueError(f"Inputs: periodic names an axis twice: {self.periodic}")
        if self.time in self.periodic:
            raise ValueError(f"Inputs: axis {self.time} is the time axis and cannot be periodic")

    @property
    def size(self) -> int:
        """n_in, the number of coordinates."""
        return len(self.bounds)

    @property
    def order(self) -> tuple[int, ...]:
        """The axes in the order of their features: space first, time last."""
        space = tuple(axis for axis in range(self.size) if axis != self.time)
        return space if self.time is None else (*space, self.time)


@dataclasses.dataclass(frozen=True)
class AxisFeatures:
    """How one axis enters the network: as it is without frequencies, as cosines and sines otherwise."""

    axis: int
    origin: float = 0.0
    frequencies: tuple[float, ...] = ()  # turns per unit of length

    @property
    def size(self) -> int:
        return 2 * len(self.frequencies) or 1

    def __call__(self, x: Array) -> Array:
        coordinate = lax.slice_in_dim(x, self.axis, self.axis + 1)
        if not self.frequencies:
            return coordinate
        shifted = coordinate - self.origin
        turns = join([shifted * frequency for frequency in self.frequencies])
        angles = angle(turns)
        return jnp.concatenate([jnp.cos(angles), jnp.sin(angles)])


class Embedding(eqx.Module):
    """phi(x): the features of every spatial axis in turn, then time. Nothing in it is trained."""

    parts: tuple[AxisFeatures, ...] = eqx.field(static=True)

    @property
    def size(self) -> int:
        """d_e, the number of features."""
        return sum(part.size for part in self.parts)

    @property
    def is_identity(self) -> bool:
        """Whether the features are the coordinates, in the order of the axes."""
        return self.parts == tuple(AxisFeatures(axis) for axis in range(len(self.parts)))

    def split(self, x: Array) -> list[Array]:
        """The features of each axis apart, for networks with one branch per axis."""
        return [part(x) for part in self.parts]

    def __call__(self, x: Array) -> Array:
        return x if self.is_identity else join(self.split(x))


def embed(inputs: Inputs, modes: int | None = None, spacing: Spacing | None = None) -> Embedding:
    """The embedding of `inputs`: Fourier features if `modes` are asked for, else periodic or identity."""
    check_modes(modes, spacing, "embed")
    numbers = mode_numbers(modes or 1, spacing or ("dyadic" if inputs.time is None else "linear"))

    def features(axis: int) -> AxisFeatures:
        if axis == inputs.time or (modes is None and axis not in inputs.periodic):
            return AxisFeatures(axis)
        lower, upper = inputs.bounds[axis]
        return AxisFeatures(axis, lower, tuple(m / (upper - lower) for m in numbers))

    return Embedding(tuple(features(axis) for axis in inputs.order))


def feature_box(embedding: Embedding, inputs: Inputs) -> tuple[tuple[float, float], ...]:
    """(lower, upper) of every feature over the domain: the bounds of a raw coordinate, [-1, 1] of a wave."""
    return tuple(
        (-1.0, 1.0) if part.frequencies else inputs.bounds[part.axis]
        for part in embedding.parts
        for _ in range(part.size)
    )


def feature_frequencies(embedding: Embedding, inputs: Inputs, frequencies: Sequence[float], where: str) -> np.ndarray:
    """How fast the first layer is to vary with every feature, from frequencies along the axes (radians per unit of length).

    Along a wave feature, sin(w cos(k x)) holds the harmonics of k up to about w.
    """
    if len(frequencies) != inputs.size:
        raise ValueError(f"{where}: {len(frequencies)} frequencies for {inputs.size} axes; give one for each")
    out: list[float] = []
    for part in embedding.parts:
        frequency = frequencies[part.axis]
        waves = part.frequencies + part.frequencies  # cosines, then sines
        out += [max(1.0, frequency / (2 * math.pi * turns)) for turns in waves] or [frequency]
    return np.array(out)


def check_frequencies(frequencies: Any, where: str) -> tuple[float, ...] | None:
    """Frequencies as a tuple of positive numbers, or an error."""
    if frequencies is None:
        return None
    try:
        found = tuple(float(f) for f in frequencies)
    except (TypeError, ValueError):
        found = ()
    if not found or not all(math.isfinite(f) and f > 0 for f in found):
        raise ValueError(f"{where}: frequencies must be positive numbers, one for each axis, not {frequencies!r}")
    return found


def mode_numbers(count: int, spacing: Spacing) -> tuple[int, ...]:
    """m_1 .. m_M."""
    return tuple(2**k if spacing == "dyadic" else k + 1 for k in range(count))


def check_modes(modes: int | None, spacing: Spacing | None, where: str) -> None:
    """Raise unless `modes` and `spacing` describe Fourier features or the absence of them."""
    if modes is not None:
        check_count(modes, f"{where}: modes")
    if spacing not in (None, "linear", "dyadic"):
        raise ValueError(f"{where}: spacing must be 'linear' (1, 2, 3, ..) or 'dyadic' (1, 2, 4, ..), not {spacing!r}")
    if spacing is not None and modes is None:
        raise ValueError(f"{where}: spacing={spacing!r} needs the number of modes, say modes=3; or drop spacing")


def join(parts: list[Array]) -> Array:
    """Concatenate, without a trace of it if there is only one part."""
    return parts[0] if len(parts) == 1 else jnp.concatenate(parts)
