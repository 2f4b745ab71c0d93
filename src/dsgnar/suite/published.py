"""Table 1 of the paper, beside the errors that `Benchmark.paper` has: its seconds on an H100, and the best result before it.

The results before are those that the paper cites, on other machines. For Burgers they are for a viscosity of 0.01/pi, which
is harder than the paper's 0.01.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Before:
    """The best published result before the paper."""

    error: float
    seconds: float
    source: str
    about: tuple[str, ...] = ()  # which of the two the paper prints with a tilde
    harder: str = ""  # how the problem differed

    def __str__(self) -> str:
        error = f"~{self.error:.0e}" if "error" in self.about else f"{self.error:.2e}"
        seconds = f"{'~' if 'seconds' in self.about else ''}{self.seconds:,.0f} s"
        return f"{error} ({seconds}; {self.harder})" if self.harder else f"{error} ({seconds})"


@dataclass(frozen=True)
class Published:
    """What is known about one problem in one precision."""

    seconds: float  # of the paper, on an H100, without compiling
    before: Before | None = None


_KIYANI, _GUZMAN = "Kiyani et al. 2025", "Guzman-Cordero et al. 2025"
_DAI, _CHIU, _ANDERSON = "Dai et al. 2026", "Chiu et al. 2026", "Anderson et al. 2026"
_HARDER = "nu = 0.01/pi"

PUBLISHED: dict[tuple[str, str], Published] = {
    ("burgers", "single"): Published(9.8, Before(4.04e-5, 179, _KIYANI, harder=_HARDER)),
    ("burgers", "double"): Published(346.1, Before(1.62e-8, 2878, _KIYANI, harder=_HARDER)),
    ("burgers-shifted", "double"): Published(334.6),
    ("ks", "double"): Published(5226.6, Before(6.51e-4, 130_222, _KIYANI)),
    ("poisson10d", "double"): Published(3239.7, Before(1e-5, 8000, _GUZMAN, ("error", "seconds"))),
    ("cavity", "double"): Published(402.9, Before(1.43e-2, 90, _CHIU, ("seconds",))),
    ("wave", "single"): Published(70.1),
    ("wave", "double"): Published(635.4, Before(6.71e-6, 2772, _DAI)),
    ("kdv", "single"): Published(275.3),
    ("kdv", "double"): Published(1209.7, Before(1.53e-4, 2412, _DAI)),
    ("multiscale", "single"): Published(46.5),
    ("multiscale", "double"): Published(281.0, Before(1e-3, 62, _ANDERSON, ("error",))),
    ("multiscale-wide", "double"): Published(351.8),
    ("poisson5d", "double"): Published(406.7, Before(1e-7, 7000, _GUZMAN, ("error", "seconds"))),
}
