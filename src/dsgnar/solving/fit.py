"""How well data are fitted: a misfit of the size of the noise is success.

With n values of standard deviation sigma and the root mean square misfit d, chi^2 / n = (d / sigma)^2 is near one for the
right equations, with a spread of sqrt(2 / n). What exceeds 1 + FAR sqrt(2 / n) cannot be noise; the excess

    sqrt(max(0, d^2 - (1 + FAR sqrt(2 / n)) sigma^2))

over the size of the condition's terms is judged as the residuals of equations are (`verdict.py`). So data without noise need
not be met to their last digits. Where sigma is not known it is d, and only a misfit of half the values is too much.
"""

import math
from typing import TYPE_CHECKING

from dsgnar.problem.data import Measurements
from dsgnar.solving.coefficients import Inference

if TYPE_CHECKING:
    from dsgnar.solving.record import Outcome

FAR = 4.0  # spreads: one fit in 30,000 exceeds them by chance
UNEXPLAINED = 0.5  # of the values
NOT_THERE = 0.5  # standard errors from the best fit
HELD = 2.0  # times as firmly: a fit that noise moves half as far as it should


def excess(measured: Measurements, misfit: float, count: int | None = None) -> float:
    """What of a root mean square misfit is not noise; `count` says how many of the values it is of, if not of all."""
    if measured.noise is None:
        return misfit if misfit > UNEXPLAINED * measured.size else 0.0
    allowed = 1 + FAR * math.sqrt(2 / max(1, measured.values.size if count is None else count))
    return math.sqrt(max(0.0, misfit**2 - allowed * measured.typical**2))


def inferred(found: Inference | None) -> list[str]:
    """Coefficients, functions and fits, a line each."""
    if found is None:
        return []
    lines = [f"{name} = {estimated}" for name, estimated in found.coefficients.items() if estimated.determined]
    lines += [f"{name} is {estimated}" for name, estimated in found.coefficients.items() if not estimated.determined]
    lines += [f"{name}: {account}" for name, account in found.functions.items()]
    return lines + [f"{name}: {fit}" for name, fit in found.fits.items()]


def about_data(outcome: "Outcome") -> list[str]:
    """Advice where data do not fit, or a fit is not at its end."""
    found, out = outcome.inference, []
    if found is None:
        return out
    for name, fit in found.fits.items():
        spread = math.sqrt(2 / fit.count)
        if fit.given and fit.misfit > fit.noise * math.sqrt(1 + FAR * spread):
            out.append(
                f"{name!r} does not fit: its misfit is {fit.misfit / fit.noise:.1f} times its noise; either the noise is "
                "larger than stated or the equations lack something, and standard errors do not account for it"
            )
    determined = all(c.determined for c in found.coefficients.values())
    if found.held is not None and found.held > HELD and determined:
        out.append(
            f"the equations hold the coefficients {found.held:.1f} times more firmly than the data do, since the network "
            "follows a change of theirs only roughly, and values may be biased; initial and boundary values that do not "
            "fit each other at corners do that, and a larger network helps"
        )
    if found.distance is not None and found.distance > NOT_THERE:
        out.append(
            f"the coefficients are still {found.distance:.1f} standard errors from the best fit: a larger network or "
            "sketch, or another seed"
        )
    return out
