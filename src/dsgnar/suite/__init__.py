"""The suite: the paper's problems (Appendix C), one file each."""

from dsgnar.suite.base import Benchmark, Measured, Preset
from dsgnar.suite.burgers import BURGERS, BURGERS_SHIFTED
from dsgnar.suite.cavity import CAVITY
from dsgnar.suite.kdv import KDV
from dsgnar.suite.ks import KS
from dsgnar.suite.multiscale import MULTISCALE, MULTISCALE_WIDE
from dsgnar.suite.poisson import POISSON5D, POISSON10D
from dsgnar.suite.wave import WAVE

# In the order of the paper's Table 1, variants beside what they vary.
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
