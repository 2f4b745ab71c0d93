"""Speed of `fast`, side by side with `paper`, on this machine (`dsgnar bench`), and the paper's Tables 1 and 2.

    cases          what is measured: a problem, a preset, sizes
    spread         repeats of one measurement, and ratios of two
    parts          sketch, factorisation and search, timed inside the real loop
    measurements   all measurements: parts, whole solves, compiling, growth with N, the factorisation alone
    isolated       a measurement in its own process, with limits of time and memory
    machine        what this machine is, and its GEMM rate
    records        earlier results, and how today's compare with them
    report         markdown and a figure
    kept           a solve that is kept in a run directory, and continued there
    results        Table 1 of the paper: errors and times of all problems
    jacobians      Table 2 of the paper: the time to build Jacobians
    ablation       Figure 4 of the paper, and other choices of the method one at a time

`fast` and `paper` take turns, repeat by repeat, so that a noisy machine slows both.
"""

from dsgnar.tools.bench.cases import CASES, Case, find
from dsgnar.tools.bench.measurements import PARTS, Options, measure
from dsgnar.tools.bench.spread import Row, Spread

__all__ = ["CASES", "PARTS", "Case", "Options", "Row", "Spread", "find", "measure"]
