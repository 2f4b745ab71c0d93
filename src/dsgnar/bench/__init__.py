"""How fast `fast` is, side by side with `paper`, on this machine (`dsgnar bench`), and the paper's Table 1.

    cases          what is measured: a problem, a preset, sizes
    spread         repeats of one measurement, and ratios of two
    parts          sketch, factorisation and search, timed inside the real loop
    measurements   everything that was asked for: parts, whole solves, compiling, growth with N, the factorisation alone
    isolated       a measurement in a process of its own, with limits of time and memory
    machine        what this machine is, and what it can do: GEMM
    records        earlier results, and how today's compare with them
    report         markdown and a figure
    table1         Table 1 of the paper

`fast` and `paper` take turns, repeat by repeat, so that a noisy machine hits both.
"""

from dsgnar.bench.cases import CASES, Case, find
from dsgnar.bench.measurements import PARTS, Options, measure
from dsgnar.bench.spread import Row, Spread

__all__ = ["CASES", "PARTS", "Case", "Options", "Row", "Spread", "find", "measure"]
