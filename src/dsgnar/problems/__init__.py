"""The suite: the paper's problems (Appendix C), one file each."""

from dsgnar.problems.base import Benchmark, Measured, Preset
from dsgnar.problems.burgers import BURGERS, BURGERS_SHIFTED
from dsgnar.problems.cavity import CAVITY
from dsgnar.problems.kdv import KDV
from dsgnar.problems.ks import KS
from dsgnar.problems.multiscale import MULTISCALE, MULTISCALE_WIDE
from dsgnar.problems.poisson import POISSON5D, POISSON10D
from dsgnar.problems.wave import WAVE

# In the order of the paper's Table 2, variants beside what they vary.
_ALL = (
    BURGERS,
    BURGERS_SHIFTED,
    KS,
    POISSON10D,
    CAVITY,
    WAVE,
    KDV,
    MULTISCALE,
    MULTISCALE_WIDE,
    POISSON5D,
)
SUITE: dict[str, Benchmark] = {benchmark.name: benchmark for benchmark in _ALL}

__all__ = ["SUITE", "Benchmark", "Measured", "Preset"]
