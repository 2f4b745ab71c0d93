"""Why a run ended: a code for programs, a sentence for people, and whether it had converged."""

import enum


class StopReason(enum.Enum):
    """Why a run, or one time interval of it, ended."""

    RADIUS = (
        "radius_below_minimum",
        "the trust-region radius fell below its minimum: no further decrease was found",
        True,
    )
    STALLED = (
        "no_further_decrease",
        "the loss no longer decreases: it is as small as this network makes it",
        True,
    )
    FLOOR = (
        "rounding_floor",
        "the loss has reached the rounding floor of this precision",
        True,
    )
    TOLERANCE = ("tolerance_met", "the estimated error is small enough", True)
    RESIDUAL = ("residuals_met", "the residuals are far below the error that is sought", True)
    REJECTED = (
        "steps_rejected",
        "too many steps in a row were rejected: none of them decreased the loss",
        False,
    )
    ITERATIONS = (
        "max_iterations",
        "the maximum number of iterations (of one time interval) was reached before convergence",
        False,
    )
    SECONDS = ("max_seconds", "the maximum time was reached before convergence", False)
    INTERRUPTED = ("interrupted", "the run was interrupted", False)
    FAILED = (
        "no_usable_step",
        "no usable step was found: residuals or factorisation are not finite near the solution",
        False,
    )

    def __init__(self, code: str, sentence: str, converged: bool):
        self.code, self.sentence, self.converged = code, sentence, converged

    @classmethod
    def of(cls, code: str) -> "StopReason":
        """The reason with a code."""
        for reason in cls:
            if reason.code == code:
                return reason
        raise ValueError(f"there is no reason to stop that is called {code!r}")

    @property
    def found_nothing(self) -> bool:
        """Whether the optimiser ran out of steps that decrease the loss: other points, sketches or a stage may find some."""
        return self in (StopReason.RADIUS, StopReason.STALLED, StopReason.REJECTED)

    @property
    def hands_over(self) -> bool:
        """Whether a time march goes on to its next interval."""
        return self.converged or self in (StopReason.ITERATIONS, StopReason.REJECTED)

    @property
    def is_limit(self) -> bool:
        """Whether a run may go on from here: with a larger limit, or after an interruption."""
        return self in (StopReason.ITERATIONS, StopReason.SECONDS, StopReason.INTERRUPTED)
