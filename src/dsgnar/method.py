"""Two compositions of the optimiser's parts. They differ only in which parts they pick.

part             paper                              fast
row sketch       CountSketch, 4 hashes              balanced buckets, gradients of bucket sums
column sketch    SRCT on rows of the Jacobian       none: the step lies in the row space of the sketch
factorisation    full SVD                           the fastest for size, type and device (factorise.py)
radius search    24 probes and PCHIP                bracketing in log radius
stage rules      Algorithm 5                        Algorithm 5, retreat, added points (stages.py)
"""

from dsgnar.config import Settings
from dsgnar.factorise import SVD, Auto
from dsgnar.jacobian import Jacobian
from dsgnar.optimiser import Optimiser
from dsgnar.radius import Bracket, Probes
from dsgnar.residuals import Residuals
from dsgnar.sketch import SRCT, AllColumns, Buckets, CountSketch
from dsgnar.weights import Reweighting

DEPTH = 8  # residuals to a bucket: Burgers ends as with all 18, while 4 ended above 1e-6 for one of five seeds


def compose(settings: Settings, residuals: Residuals) -> Optimiser:
    """The optimiser that resolved settings name."""
    assert settings.sketch is not None and settings.minimum_radius is not None
    reweighting = Reweighting(settings.exponent)
    if settings.method == "paper":
        jacobian = Jacobian(residuals, CountSketch(settings.sketch), SRCT(settings.sketch))
        return Optimiser(residuals, jacobian, SVD(), Probes(), reweighting, settings.seed)
    jacobian = Jacobian(residuals, Buckets(settings.sketch, DEPTH), AllColumns())
    search = Bracket(smallest=settings.minimum_radius / 10, free=settings.radius)
    return Optimiser(residuals, jacobian, Auto(), search, reweighting, settings.seed)
