"""Every setting of a run, and every default, in one place.

A value of None means "chosen from the network and the precision when the run starts"; `resolve` chooses. What was chosen is
what `config.json` records.
"""

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

from dsgnar.precision import Precision, dtype_of

MethodName = Literal["fast", "paper"]


@dataclass(frozen=True)
class Settings:
    """How a problem is solved. Section numbers are the paper's."""

    precision: Precision = "single"
    method: MethodName = "fast"
    seed: int = 0
    sketch: int | None = None  # s; None: SKETCH_SHARE of the number of parameters
    columns: int | None = None  # of the sketch; with `fast` in stage 1 only. None: `paper` s, `fast` see GROUPED
    late_sketch: int | None = None  # rows from stage 2 on; None: the same. Beyond the paper
    points: int | None = None  # interior points of each condition; other conditions get half (section 4.2)
    max_points: int | None = None  # up to which points are added when held-out residuals ask for it
    adaptive: float = 0.0  # share of the interior points that is drawn where residuals are large; beyond the paper
    targets: tuple[float, float] | None = None  # target ratio of stage 1 and 2 (sections 3.1, 4.2)
    wait: int | None = None  # iterations before the stage switch is considered
    window: int | None = None  # W of Algorithm 5
    intervals: int | tuple[float, ...] = 1  # of time: how many, or the times between them (section 4.4)
    radius: float = 1.0  # initial trust-region radius (section 4.2)
    minimum_radius: float | None = None  # the run stops below it (section 4.2)
    exponent: float = 0.05  # alpha of UpdateWeights (section 4.2)
    warm_up: int = 10  # first iterations of a double-precision run in single precision (section 4.2, hybrid precision)
    single_above: float | None = None  # and all further ones while lambda is above this; beyond the paper
    max_iterations: int = 2000  # of each time interval
    max_seconds: float | None = None

    def __post_init__(self):
        dtype_of(self.precision)
        _check(self.method in ("fast", "paper"), f"method must be 'fast' or 'paper', not {self.method!r}")
        for name in ("sketch", "columns", "late_sketch", "points", "max_points", "window", "max_iterations"):
            value = getattr(self, name)
            _check(
                value is None or (isinstance(value, int) and value > 0), f"{name} must be a positive integer: {value!r}"
            )
        _check(
            self.wait is None or (isinstance(self.wait, int) and self.wait >= 0),
            f"wait must be a number of iterations, 0 or more: {self.wait!r}",
        )
        for name in ("radius", "minimum_radius", "single_above", "max_seconds"):
            value = getattr(self, name)
            _check(value is None or value > 0, f"{name} must be positive, not {value!r}")
        if isinstance(self.intervals, int):
            _check(self.intervals > 0, f"intervals must be a positive integer or a list of times: {self.intervals!r}")
        else:
            object.__setattr__(self, "intervals", tuple(float(t) for t in self.intervals))
        _check(
            0 <= self.adaptive < 1, f"adaptive must be a share from 0 up to (not including) 1, not {self.adaptive!r}"
        )
        for name in ("adaptive", "late_sketch"):
            _check(self.method == "fast" or not getattr(self, name), f"method 'paper' has no {name}; leave it out")
        if self.targets is not None:
            object.__setattr__(self, "targets", tuple(self.targets))
            _check(
                len(self.targets) == 2 and all(0 < t < 1 for t in self.targets),
                f"targets must be two ratios between 0 and 1, not {self.targets!r}",
            )

    def resolve(self, parameters: int) -> "Settings":
        """The same settings with every None replaced by the value that fits the network and the precision."""
        chosen: dict[str, Any] = dict(DEFAULTS[self.method, self.precision])
        chosen["sketch"] = min(parameters, max(1, round(SKETCH_SHARE * parameters)))
        filled = {name: value for name, value in chosen.items() if getattr(self, name) is None}
        resolved = dataclasses.replace(self, **filled)
        if resolved.columns is None:
            grouped = resolved.method == "paper" or (
                resolved.precision == "double" and (resolved.sketch or 0) >= GROUPED
            )
            resolved = dataclasses.replace(resolved, columns=resolved.sketch if grouped else parameters)
        for size in filter(None, (resolved.sketch, resolved.columns, resolved.late_sketch)):
            if size > parameters:
                raise ValueError(f"the sketch ({size}) must not exceed the number of parameters ({parameters})")
        if resolved.max_points is not None and resolved.points is not None and resolved.max_points < resolved.points:
            resolved = dataclasses.replace(resolved, max_points=resolved.points)
        return resolved


# Between a third and a half of the parameters (section 3.2).
SKETCH_SHARE = 0.45

# From this sketch size on `fast` has, in double precision, only s columns in stage 1. That halves the time of a
# factorisation, which is what large sketches spend most of it on. Small networks need all columns: heat conduction with
# 163 parameters ended at 9e-6, 4e-4, 3e-7 with groups and at 9e-9, 2e-6, 1e-6 without (seeds 0 to 2).
GROUPED = 1500  # a guess: no harm was seen at 5,125 parameters, and nothing between was tried

# Paper: sections 3.1, 4.2 and Appendix A; the wait of 80 iterations is the authors'. The authors stop at ten times the
# minimum radius that the paper prints, which is what stands here.
# Fast: measured on Burgers, see docs/speed.md.
DEFAULTS: dict[tuple[str, str], dict[str, Any]] = {
    ("paper", "single"): dict(
        points=2**15, max_points=2**15, targets=(0.1, 0.5), wait=80, window=30, minimum_radius=1e-3
    ),
    ("paper", "double"): dict(
        points=2**15, max_points=2**15, targets=(0.075, 0.5), wait=80, window=30, minimum_radius=1e-7
    ),
    ("fast", "single"): dict(
        points=2**13, max_points=2**15, targets=(0.2, 0.8), wait=40, window=15, minimum_radius=1e-4
    ),
    ("fast", "double"): dict(
        points=2**13, max_points=2**16, targets=(0.1, 0.8), wait=60, window=30, minimum_radius=1e-8, single_above=1e-8
    ),
}


def _check(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)
