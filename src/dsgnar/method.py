"""Two compositions of the optimiser's parts. They differ only in which parts they pick.

part             paper                              fast
row sketch       CountSketch, 4 hashes              balanced buckets, gradients of bucket sums
column sketch    SRCT on rows of the Jacobian       stage 1 in double with a large sketch: groups of parameters;
                                                    else none: the step lies in the row space of the sketch
factorisation    full SVD                           the fastest for size, type and device (factorise.py)
radius search    24 probes and PCHIP                bracketing in log radius; after stage 1 the smallest loss
stage rules      Algorithm 5                        Algorithm 5 and those of stages.py
"""

from dataclasses import replace

from dsgnar.config import Settings
from dsgnar.factorise import SVD, Auto
from dsgnar.jacobian import Jacobian
from dsgnar.optimiser import Optimiser
from dsgnar.radius import Bracket, Probes
from dsgnar.residuals import Residuals
from dsgnar.sketch import SRCT, AllColumns, Buckets, CountSketch, Groups
from dsgnar.weights import Reweighting

DEPTH = 8  # residuals to a bucket: Burgers ends as with all 18, while 4 ended above 1e-6 for one of five seeds

SLACK = 0.03  # a bracketing search goes by the length that a step has, not by the one it asked for


def compose(settings: Settings, residuals: Residuals) -> tuple[Optimiser, Optimiser]:
    """The optimisers that resolved settings name: of stage 1, and of the later ones."""
    assert settings.sketch is not None and settings.columns is not None and settings.minimum_radius is not None
    reweighting = Reweighting(settings.exponent)
    if settings.method == "paper":
        jacobian = Jacobian(residuals, CountSketch(settings.sketch), SRCT(settings.columns))
        whole = Optimiser(residuals, jacobian, SVD(), Probes(), reweighting, settings.seed)
        return whole, whole
    few = settings.columns < residuals.parameters.count
    jacobian = Jacobian(residuals, Buckets(settings.sketch, DEPTH), Groups(settings.columns) if few else AllColumns())
    search = Bracket(smallest=settings.minimum_radius / 10, free=settings.radius)
    early = Optimiser(residuals, jacobian, Auto(), search, reweighting, settings.seed, slack=SLACK)
    later = jacobian.resized(Buckets(settings.late_sketch or settings.sketch, DEPTH), AllColumns())
    return early, replace(early, jacobian=later, search=replace(search, greedy=True))
