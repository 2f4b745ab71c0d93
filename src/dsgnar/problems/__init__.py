"""The suite: the paper's problems (Appendix C), one file each."""

from dsgnar.problems.base import Benchmark, Measured, Preset
from dsgnar.problems.burgers import BURGERS, BURGERS_SHIFTED

SUITE: dict[str, Benchmark] = {b.name: b for b in (BURGERS, BURGERS_SHIFTED)}

__all__ = ["SUITE", "Benchmark", "Measured", "Preset"]
