"""How wrong is it? An estimate of the error from the residuals, without a reference.

With the residuals r = F(u) of a solution, its error e satisfies F(u + e) = 0, and to first order

    F'(u) e = -r.

The equation is solved by least squares for e in a linear space that is not the network's: at the end of a run the network's
own directions see nothing of the residual that is left. Everything is evaluated in float64 at new points, denser towards
the ends of each axis and weighted accordingly; on a shape the space is that of its bounding box, at points of it. Much
of a residual is rough and carries little error, so that the space need not hold all of it. How much it carries is read off
the rougher half of the space, which takes away g of the norm of the residuals and adds d to the error: what is left of them,
l, is taken to hide an error of d l / g, which counts (`beyond`: its share). It is small for diffusion, where rough functions
have small errors, and large where errors travel. The largest error that anything of norm l and as rough as that half could
have is no estimate, but a reason to look closer where it exceeds the estimate (`unseen`). The estimate is unknown where

    spread        half of the space, or another one, gives another error
    nonlinear     F(u + e) is not what F(u) + F'(u) e predicts, against the terms of F'(u) e

Polynomials come first, with waves as the other space. Where they do not even resolve the solution, or the spaces do not
quite agree, or leave too much, the error is finer than they are, and often larger than they say. Where short slices of time
resolve the solution well, they resolve the error too, and the equation is solved in one after the other (`slices.py`). Else
a space that follows the solution, as a sharp front, decides (`tangents.py`), with more functions where polynomials follow
it, too. Of all looks the largest error counts. Where one is settled, its spaces agree and leave little; then others count
only if they are known and leave little, too.

In a time march the error at the end of an interval is the error with which the next begins. Rounding counts too: for a
solution in single precision the difference to its own evaluation in float64, in double the error that belongs to the
rounding of the residuals.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.linalg import lstsq

from dsgnar.calculus.precision import x64
from dsgnar.calculus.spaces import Space, polynomials, waves
from dsgnar.calculus.streams import stream
from dsgnar.problem.domain import Interior
from dsgnar.problem.sampling import sample
from dsgnar.solving.correction import FULL, HALF, ROUNDING, Correction, Piece, derivative
from dsgnar.solving.estimate import NONE, NONLINEAR, SPREAD, Estimate
from dsgnar.solving.evaluation import by_interval, located
from dsgnar.solving.linearised import EACH, Equation, rms
from dsgnar.solving.model import Model
from dsgnar.solving.quantity import Gauge
from dsgnar.solving.slices import sliceable, sliced
from dsgnar.solving.tangents import Own
from dsgnar.solving.verdict import Judge

RESOLVED = 1e-2  # the relative error with which polynomials are to follow a solution
WELL = 1e-6  # and in slices of time, which are to resolve an error as well
SLICES = (2, 1), (4, 1), (8, 1), (8, 4), (16, 4)  # of a time interval, and the stretch of spaces along axes of space
MOST_SLICES = 16
AGREE = 1.3  # ratio of estimates in different spaces up to which one of them is good to about as much
RICHER = 2  # by which the space has more functions where they do not agree


@x64
def estimate(
    model: Model,
    thetas: Float[np.ndarray, "intervals parameters"],
    judge: Judge,
    tol: float = math.inf,
    looser: Mapping[str, float] = NONE,
    gauge: Gauge | None = None,
) -> Estimate:
    """The error of a solution; a rough estimate does where that is unknown, or above a tolerance already.

    With a gauge, the tolerance is about the quantity that it measures.
    """

    def measured(found: Estimate) -> Estimate:
        return found if gauge is None else replace(found, quantity=gauge(model, thetas, found))

    estimator = Estimator(Equation(model, thetas, judge))
    found = measured(estimator.smooth())
    if tol < math.inf and not found.meets(tol, looser):
        return found
    follows = estimator.misfit <= RESOLVED
    if follows and found.settled(AGREE) and found.unseen <= 1:
        return found
    tried = [found] if follows else []
    for finer, agree in _finer(estimator, found):
        tried.append(measured(finer()))
        if tried[-1].settled(agree):
            return tried[-1]
    if any(one.settled(AGREE) for one in tried):
        tried = [one for one in tried if one.settled(SPREAD)]
    return max(tried or [found], key=lambda estimate: estimate.decisive)


def _finer(estimator: "Estimator", found: Estimate) -> Iterator[tuple[Callable[[], Estimate], float]]:
    """Closer looks, with the spread up to which the first of them is the last."""
    equation = estimator.equation
    if found.nonlinear > NONLINEAR:
        return
    slices = _sliced(equation)
    if slices is not None:
        yield slices.smooth, SPREAD if slices.misfit <= WELL else 0.0
    if equation.model.problem.domain.dimension > 1 and equation.model.march.count == 1:
        richer = RICHER if estimator.misfit <= RESOLVED else 1
        yield Estimator(replace(equation, fronts=True, richer=richer)).own, 0.0


def _sliced(equation: Equation) -> "Estimator | None":
    """The same in those slices of time that resolve the solution best; None where none do."""
    tried: list[Estimator] = []
    for count, stretch in SLICES if sliceable(equation.model) else ():
        if count * equation.model.march.count <= MOST_SLICES:
            model, thetas = sliced(equation.model, equation.thetas, count)
            tried.append(Estimator(replace(equation, model=model, thetas=thetas), stretch))
            if tried[-1].misfit <= WELL:
                return tried[-1]
    best = min(tried, key=lambda estimator: estimator.misfit, default=None)
    return best if best is not None and best.misfit <= RESOLVED else None


@dataclass(frozen=True, eq=False)
class Estimator:
    """Solutions of the equation of the error in different spaces, compared."""

    equation: Equation
    stretch: int = 1  # of polynomials along the axes of space

    def smooth(self) -> Estimate:
        """In polynomials, checked in half of them and in waves."""
        equation = self.equation
        other = waves(equation.size, equation.periodic, stream(0, "waves"), equation.kinks)
        return self._compared(lambda k: self._polynomials, lambda k: other)

    def own(self) -> Estimate:
        """In a space that follows the solution, checked in half of it and in another one."""
        equation, tangents = self.equation, self.equation.judge.tangents

        def following(seed: int) -> Callable[[int], Space]:
            where = equation.size, equation.periodic, tangents, equation.model
            return lambda k: Own.of(*where, k, equation.wide[k], seed)

        return self._compared(following(0), following(1))

    def _compared(self, space: Callable[[int], Space], other: Callable[[int], Space]) -> Estimate:
        """The error in one space, checked in half of it and in another; spaces belong to time intervals."""
        unknowns, march = self.equation.model.problem.unknowns, self.equation.model.march
        pieces, others = self._through(space), self._through(other)
        rounding = np.maximum(self._norms([p[ROUNDING] for p in pieces]), self._evaluation)
        kinds = [[p[HALF] for p in pieces], [p[FULL] for p in pieces], [p[FULL] for p in others]]
        beyond = [0.0 * rounding, self._beyond(pieces), self._beyond(others)]
        found = [
            np.sqrt(self._norms(kind) ** 2 + more**2 + rounding**2) for kind, more in zip(kinds, beyond, strict=True)
        ]
        with np.errstate(invalid="ignore", divide="ignore"):
            ratios = np.nan_to_num(np.max(found, axis=0) / np.min(found, axis=0), nan=1.0, posinf=math.inf)
            missing = np.nan_to_num(beyond[FULL] / found[FULL])
            unseen = np.nan_to_num(self._unseen(pieces) / found[FULL])
        full = tuple(p[FULL] for p in pieces)
        return Estimate(
            dict(zip(unknowns, map(float, found[FULL]), strict=True)),
            float(np.max(ratios)),
            max(self.equation.nonlinear(k, piece) for k, piece in enumerate(full)),
            dict(zip(unknowns, map(float, rounding), strict=True)),
            tuple(Correction(march, tuple(kind)) for kind in (full, kinds[HALF], kinds[2], [p[ROUNDING] for p in pieces])),
            beyond=float(np.max(missing)),
            unseen=float(np.max(unseen)),
        )

    def _beyond(self, pieces: list[tuple[Piece, ...]]) -> Float[np.ndarray, " unknowns"]:
        """The error of what a space leaves of the residuals, if it has the size that the rougher half of the space found.

        What one interval leaves goes on to the next.
        """
        zero, squares = (0,) * self.equation.model.problem.domain.dimension, []
        for piece, x in zip(pieces, self.equation.inside, strict=True):
            gained = math.sqrt(max(piece[HALF].left ** 2 - piece[FULL].left ** 2, 0.0))
            change = rms(piece[FULL].derivative(x, zero) - piece[HALF].derivative(x, zero)) / self.equation.sizes
            squares.append((change * piece[FULL].left / gained) ** 2 if gained > 0 else 0.0 * change)
        shares = [len(x) for x in self.equation.inside]
        return np.sqrt(np.average(np.cumsum(squares, axis=0), axis=0, weights=shares))

    def _unseen(self, pieces: list[tuple[Piece, ...]]) -> Float[np.ndarray, " unknowns"]:
        """The largest error that what is left could have, if it were as rough as the rougher half of a space."""
        first = pieces[0][FULL]
        return np.array(first.most) * first.left / self.equation.sizes if first.most else 0.0 * self.equation.sizes

    @cached_property
    def misfit(self) -> float:
        """The relative error with which polynomials follow the solution itself, in the first, middle and last interval.

        What is not finite is no front.
        """
        equation, model, worst = self.equation, self.equation.model, 0.0
        last = model.march.count - 1
        for k in sorted({0, last // 2, last}):
            box = model.march.domain(model.problem.domain, k)
            points = sample(Interior(), box, EACH * equation.size, stream(0, "resolved", k), "clustered")
            table = derivative(self._polynomials, box, points, (0,) * box.dimension)
            theta, placed = jnp.asarray(equation.wide[k]), jnp.asarray(located(model, points, k))
            u = np.asarray(model.residuals.ansatz.values(theta, placed)) / equation.sizes
            if np.isfinite(u).all():
                # by QR, in a third of the time of an SVD
                fit, *_ = lstsq(table[::2], u[::2], lapack_driver="gelsy", check_finite=False)  # type: ignore[misc]
                worst = max(worst, float(np.max(rms(table[1::2] @ fit - u[1::2]))))
        return worst

    @cached_property
    def _evaluation(self) -> Float[np.ndarray, " unknowns"]:
        """What evaluation in the solution's own precision adds."""
        equation, model = self.equation, self.equation.model
        points, values = np.concatenate(equation.inside), model.residuals.ansatz.values
        here, there = (by_interval(model, thetas, values, points) for thetas in (equation.thetas, equation.wide))
        return rms(here - there) / equation.sizes

    def _norms(self, pieces: list[Piece]) -> Float[np.ndarray, " unknowns"]:
        zero, inside = (0,) * self.equation.model.problem.domain.dimension, self.equation.inside
        values = [piece.derivative(x, zero) for piece, x in zip(pieces, inside, strict=True)]
        return rms(np.concatenate(values)) / self.equation.sizes

    def _through(self, space: Callable[[int], Space]) -> list[tuple[Piece, ...]]:
        """Errors by interval: in half of a space, in all of it, and that of rounding."""
        out: list[tuple[Piece, ...]] = []
        model = self.equation.model
        for k, rows in enumerate(self.equation.rows):
            box = model.march.domain(model.problem.domain, k)
            out.append(self.equation.solve(box, space(k), rows, out[-1] if out else None))
        return out

    @cached_property
    def _polynomials(self) -> Space:
        domain = self.equation.model.problem.domain
        stretch = tuple(1 if axis == domain.time else self.stretch for axis in domain.axes)
        return polynomials(self.equation.size, self.equation.periodic, stretch, self.equation.kinks)
