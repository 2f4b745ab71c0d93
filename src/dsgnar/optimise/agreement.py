"""One factorisation, and one step, for all processes.

The first process has the rows of all, factorises them and finds the steps. The others lend it their cores if they are on its
machine (`calculus/cores.py`), wait, and receive each step that is tried: one exchange of d + 4 numbers. So machines that
round differently do not part, and a search takes the same turns everywhere. Where there is no step, a norm that is not a
number says so.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from dsgnar.calculus import choices, cores
from dsgnar.calculus.devices import Devices
from dsgnar.calculus.team import Alone
from dsgnar.optimise.blas import ONE_THREAD_BELOW
from dsgnar.optimise.factorise import Factorisation
from dsgnar.optimise.jacobian import Sketched
from dsgnar.optimise.subproblem import FactorisationError, OfColumns, Subproblem, Trial

FAILED = (
    "the first process could not factorise the sketched Jacobian, or found no finite step; its own message says why"
)


@dataclass(frozen=True, eq=False)
class Steps:
    """The damped steps of a sketched problem, in parameter space, the same in all processes."""

    team: Alone
    theta: Float[Array, " d"]  # for its shape and type
    sketched: Sketched
    model: Subproblem | None  # of the first process

    @classmethod
    def of(
        cls,
        devices: Devices,
        theta: Float[Array, " d"],
        factorisation: Factorisation,
        sketched: Sketched,
        g: OfColumns | None = None,
    ) -> "Steps":
        """Factorised by the first process, with what the others lend it; the memory of the sketch is used up."""
        A, r = sketched.jacobian, sketched.residual
        team = devices.team
        if team.size == 1:
            return cls(team, theta, sketched, factorisation.factorise(A, r, g, overwrite=True))
        lent = devices.lent  # an exchange, the first time
        if not team.leads:
            return cls(team, theta, sketched, None)
        large = choices.here().host_factorisation and min(A.shape) >= ONE_THREAD_BELOW
        with _telling(team, theta.size), cores.borrowed(lent) if large else nullcontext():
            return cls(team, theta, sketched, factorisation.factorise(A, r, g, overwrite=True))

    def to(self, radius: float, start: float | None, tolerance: float) -> tuple[Trial, Float[Array, " d"]]:
        """The step of a given length, and what is known about it (`Subproblem.solve_radius`)."""
        if self.model is None:
            return self._received(np.zeros(4 + self.theta.size))
        with _telling(self.team, self.theta.size):
            trial = self.model.solve_radius(radius, start, tolerance)
            step = self.sketched.lift(jnp.asarray(self.model.step(trial.lam)))
        if self.team.size == 1:
            return trial, step
        known = np.array([trial.lam, trial.norm, trial.decrease, trial.slope])
        return self._received(np.concatenate([known, np.asarray(step, np.float64)]))

    def _received(self, own: Float[np.ndarray, " n"]) -> tuple[Trial, Float[Array, " d"]]:
        first = self.team.first(own)
        lam, norm, decrease, slope = map(float, first[:4])
        if math.isnan(norm):
            raise FactorisationError(FAILED)
        return Trial(lam, norm, decrease, slope), jnp.asarray(first[4:].astype(self.theta.dtype))


@contextmanager
def _telling(team: Alone, parameters: int) -> Iterator[None]:
    """Within, a failure of the first process reaches the others, who wait for a step."""
    try:
        yield
    except FactorisationError:
        if team.size > 1:
            team.first(np.full(4 + parameters, np.nan))
        raise
