"""A solution seen in short slices of time, for the estimate of its error.

An error that travels varies as fast in time as in space, and faster than the solution: over many periods no space of a few
hundred functions holds it, and all spaces agree on an estimate that is too small. In a slice of the time it varies little.
The network stays what it is; the error at the end of a slice is the one with which the next begins, as in a time march.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from dsgnar.problem.softened import begins_hard
from dsgnar.solving.march import March, why_not
from dsgnar.solving.model import Model


@dataclass(frozen=True, eq=False)
class Sliced(Model):
    """A model whose time intervals are slices of those of its networks."""

    whole: March

    def place(self, k: int) -> tuple[float, ...]:
        """That of the network to which a slice belongs."""
        middle = np.array([sum(self.march.interval(k)) / 2])
        return Model(self.problem, self.network, self.residuals, self.whole).place(int(self.whole.piece(middle)[0]))


def sliced(
    model: Model, thetas: Float[np.ndarray, "intervals parameters"], count: int
) -> tuple[Sliced, Float[np.ndarray, "slices parameters"]]:
    """A model and its parameters with every time interval in so many slices."""
    ends = zip(model.march.times[:-1], model.march.times[1:], strict=True)
    starts = np.concatenate([np.linspace(begin, end, count, endpoint=False) for begin, end in ends])
    times = March((*map(float, starts), model.march.times[-1]))
    return Sliced(model.problem, model.network, model.residuals, times, model.march), np.repeat(thetas, count, axis=0)


def sliceable(model: Model) -> bool:
    """Whether initial conditions hand an error on."""
    problem = model.problem
    return problem.domain.time is not None and why_not(problem) is None and not begins_hard(problem)
