"""A quantity of a solution, with the error that the estimate of the solution's error implies.

With the estimated error e of a solution u, and a functional Q (`problem/quantities.py`),

    Q(u + e) - Q(u)

is the error of Q(u). It is evaluated for e in all the spaces in which e was found (`error.py`): one number may be small by
chance, and derivatives at a boundary differ more between spaces than values do, so that the largest counts. What no space
holds makes it larger by as much as it does e. Rounding, the error of the quadrature and what the linearisation misses come
on top; the latter is a share of the change without regard to its sign. Where e is not known, neither is the error of Q(u).
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from dsgnar.calculus.precision import x64
from dsgnar.optimise.residuals import Residuals
from dsgnar.problem.domain import Initial
from dsgnar.problem.quadrature import Sums, rule
from dsgnar.problem.quantities import NAME, Quantity
from dsgnar.solving.correction import Correction
from dsgnar.solving.estimate import NO_ESTIMATE, SPREAD, UNSOLVED, Estimate, Measured
from dsgnar.solving.evaluation import located
from dsgnar.solving.model import Model
from dsgnar.solving.verdict import Judge

COUNTS = 2**12, 2**16  # points: at first, and where they are too few
FINE = 0.1  # share of the error that quadrature may have
LEAST = 1e-13  # of the number itself: rounding


class Gauge:
    """Measures a quantity of solutions of one problem and network."""

    def __init__(self, quantity: Quantity, residuals: Residuals):
        self.quantity = quantity
        problem = quantity.within(residuals.problem)
        self.judge = Judge(replace(residuals, problem=problem, ansatz=replace(residuals.ansatz, problem=problem)))

    @x64
    def __call__(
        self, model: Model, thetas: Float[np.ndarray, "intervals parameters"], found: Estimate | None
    ) -> Measured:
        """The quantity of a solution, whose error was estimated."""
        domain, mean = model.problem.domain, self.quantity.kind == "mean"
        why = NO_ESTIMATE if model.problem.inverse else UNSOLVED if found is None else found.why
        if domain.time is not None and self._until(model) > model.march.times[-1]:
            return Measured(np.nan, None, why=f"the run got only to {domain.time}={model.march.times[-1]:g}")
        spaces = found.spaces if found is not None and not why else ()
        plain, *changed, sizes = self._sums(model, thetas, spaces, COUNTS[0])
        number, quadrature = plain.number(mean)
        changes = [change.number(mean)[0] for change in changed]
        missed = found.nonlinear * sizes.number(mean)[0] if found is not None and changes else 0.0
        beyond = 0.0 if found is None else found.beyond
        error = max(map(abs, changes), default=0.0) / math.sqrt(max(1 - beyond**2, SPREAD**-2)) + missed
        if quadrature > max(FINE * error, LEAST * abs(number)):
            number, quadrature = self._sums(model, thetas, (), COUNTS[1])[0].number(mean)
        if not changes or not np.isfinite([number, error]).all():
            return Measured(number, None, why=why or "it is not finite")
        return Measured(number, error + quadrature + LEAST * abs(number), number + changes[0])

    def _until(self, model: Model) -> float:
        """The last time that it needs."""
        domain = model.problem.domain
        assert domain.time is not None
        first, last = domain.interval(domain.time)
        return first if isinstance(self.quantity.on, Initial) else self.quantity.at.get(domain.time, last)

    def _sums(self, model: Model, thetas: np.ndarray, spaces: Sequence[Correction], count: int) -> list[Sums]:
        """Of the solution; of the changes by each of the corrections; and of the first change without its sign."""
        problem, march = self.judge.residuals.problem, model.march
        part, fixed, totals = problem.conditions[NAME].part, self.quantity.fixed(problem.domain), None
        only = None if problem.domain.time is None else fixed.get(problem.domain.index(problem.domain.time))
        if only is None and isinstance(part, Initial):
            only = march.times[0]
        for k in range(march.count):
            if march.count > 1 and only is not None and march.piece(np.array([only]))[0] != k:
                continue
            points, weights = rule(part, march.domain(problem.domain, k), fixed, problem.periodic, count)
            values = self.judge.derivatives(thetas[k], located(model, points, k))
            here = self.judge.at(NAME, points, values)
            moved = [self.judge.at(NAME, points, values + self._change(space, points)) - here for space in spaces]
            sums = np.stack([weights @ f for f in (here, *moved, np.abs(moved[0]) if moved else 0 * here)])
            both = np.stack([sums, np.broadcast_to(weights.sum(axis=1), sums.shape)])
            totals = both if totals is None else totals + both
        assert totals is not None
        return [Sums(*pair) for pair in zip(*totals, strict=True)]

    def _change(self, space: Correction, points: np.ndarray) -> Float[np.ndarray, "n keys"]:
        """What a correction adds to the derivatives that the quantity asks for."""
        unknowns = self.judge.residuals.problem.unknowns
        tables = {key: space.derivative(points, key) for key in {key for _, key in self.judge.keys}}
        return np.stack([tables[key][:, unknowns.index(name)] for name, key in self.judge.keys], axis=1)
