"""The radius whose step has the target ratio (section 3.4 and Algorithm 3 of the paper).

The ratio of a step compares what happened with what the sketched model predicted,

    rho(D) = (L(theta) - L(theta + p(D))) / (m(0) - m(p(D))),      ||p(D)|| = D,

and falls as the radius D grows. Two ways to find D with rho(D) = target:

    Probes    the paper's: geometrically spaced radii in [D/3, 3D], made monotone, inverted by monotone cubic
              interpolation (PCHIP); one more evaluation at the radius found. The search never leaves this range.
    Bracket   a root search in log D that starts at the last radius, goes as far as it must, and stops as soon as the
              ratio is close enough to the target.

Where the gradient is exactly zero, every radius has the same step, of length zero and without a ratio. Both searches
then return it, and the optimiser rejects it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from jax import Array
from jaxtyping import Float
from scipy.interpolate import PchipInterpolator


@dataclass(frozen=True, eq=False)
class Probe:
    """A step that was tried."""

    radius: float  # ||p||, at most the radius asked for
    lam: float
    ratio: float  # not finite where the loss was not
    loss: float
    mean_squares: Float[np.ndarray, " conditions"] = field(repr=False)
    step: Float[Array, " d"] = field(repr=False)
    limit: bool = False  # the undamped step: a larger radius gives the same

    def decreases(self, loss: float) -> bool:
        return math.isfinite(self.loss) and self.loss < loss and self.ratio > 0


@dataclass(frozen=True, eq=False)
class Found:
    """The probe to take, and every probe that was evaluated."""

    best: Probe
    probes: tuple[Probe, ...]


Evaluate = Callable[[float], Probe]


class Search(Protocol):
    """Anything that finds the step to take."""

    def __call__(self, evaluate: Evaluate, radius: float, target: float) -> Found: ...


@dataclass(frozen=True)
class Probes:
    """The paper's search (section 4.2): q = `count` probes, from D / `span` to D `span`."""

    count: int = 24
    span: float = 3.0

    def __call__(self, evaluate: Evaluate, radius: float, target: float) -> Found:
        radii = np.geomspace(radius / self.span, radius * self.span, self.count)
        probes = [evaluate(float(r)) for r in radii]
        ratios = monotone([p.ratio for p in probes])
        if ratios[-1] >= target:
            return Found(probes[-1], tuple(probes))
        if ratios[0] <= target:
            return Found(probes[0], tuple(probes))
        best = evaluate(invert(ratios, radii, target))
        return Found(best, (*probes, best))


def monotone(ratios: list[float]) -> Float[np.ndarray, " q"]:
    """Running minimum of the non-negative parts: a curve that does not rise with the radius."""
    clean = np.nan_to_num(np.asarray(ratios, np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    return np.minimum.accumulate(np.maximum(clean, 0.0))


def invert(ratios: Float[np.ndarray, " q"], radii: Float[np.ndarray, " q"], target: float) -> float:
    """The radius at which a falling curve takes the value `target`, by PCHIP in (ratio, log radius)."""
    values, first = np.unique(ratios, return_index=True)  # ties: the smallest radius, where the curve arrives
    return float(np.exp(PchipInterpolator(values, np.log(radii[first]))(target)))


@dataclass(frozen=True)
class Bracket:
    """Root search in log radius.

    `tolerance` is relative to the target. `growth` is the first stride; it doubles (in the logarithm) while the root is not
    bracketed. A step far beyond the initial radius can saturate a network for good, however good its ratio: the multi-scale
    problem in single precision was lost to a radius of 19 in its fifth iteration. Hence `free` and `reach`.
    On Burgers in single precision a run of 102 iterations made 548 evaluations, one each for new points included.
    """

    tolerance: float = 0.25
    growth: float = 1.5
    evaluations: int = 9
    smallest: float = 0.0  # radii below it are not tried
    patience: float = math.inf  # by which factor the radius may fall at most: one bad sketch must not end a run
    free: float = math.inf  # up to here the radius may grow at will, beyond by `reach` in one iteration
    reach: float = 3.0
    greedy: bool = False  # take the probe with the smallest loss, and do not shorten steps where that gains nothing

    def __call__(self, evaluate: Evaluate, radius: float, target: float) -> Found:
        probes: list[Probe] = []
        low: Probe | None = None  # ratio above the target: radius too small
        high: Probe | None = None
        stride, x = math.log(self.growth), math.log(radius)
        largest = math.log(max(self.reach * radius, self.free))
        smallest = max(self.smallest, radius / self.patience)
        while len(probes) < self.evaluations:
            probe = evaluate(math.exp(x))
            probes.append(probe)
            ratio = probe.ratio if math.isfinite(probe.ratio) else -math.inf
            at_limit = probe.limit or x >= largest
            if abs(ratio - target) <= self.tolerance * target or (at_limit and ratio >= target):
                break
            if not probe.radius > 0:
                break  # the gradient is zero: no radius has another step, and no logarithm this one
            if self.greedy and high is not None and low is None and high.ratio > 0 and probe.loss > high.loss:
                break  # shorter steps gain less, whatever their ratio
            if ratio > target:
                low = probe
            else:
                high = probe
            if low is not None and high is not None:
                x = _between(low, high, target)
                if math.log(high.radius / low.radius) < 1e-3:
                    break
            else:
                x = min(math.log(probe.radius) + (stride if high is None else -stride), largest)
                stride = min(2 * stride, 2.0)
                if math.exp(x) < smallest:
                    break
        return Found(_lowest(probes) if self.greedy else _closest(probes, target), tuple(probes))


def _between(low: Probe, high: Probe, target: float) -> float:
    """False position in (log radius, ratio), kept away from the ends; ratios far below zero are cut off."""
    a, b = math.log(low.radius), math.log(high.radius)
    ratio = max(high.ratio, -1.0) if math.isfinite(high.ratio) else -1.0
    share = (low.ratio - target) / (low.ratio - ratio)
    return a + (b - a) * min(max(share, 0.15), 0.85)


def _lowest(probes: list[Probe]) -> Probe:
    """The probe with the smallest loss, else the shortest."""
    good = [p for p in probes if math.isfinite(p.ratio) and p.ratio > 0]
    return min(good, key=lambda p: p.loss) if good else min(probes, key=lambda p: p.radius)


def _closest(probes: list[Probe], target: float) -> Probe:
    """The probe to take: among those that decrease the loss the one closest to the target, else the shortest."""
    good = [p for p in probes if math.isfinite(p.ratio) and p.ratio > 0]
    return min(good, key=lambda p: (abs(p.ratio - target), -p.radius)) if good else min(probes, key=lambda p: p.radius)
