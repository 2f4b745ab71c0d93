"""Do the bands of unknown functions hold? A rate k(x) that depends on place, from 100 values of u with noise.

    u_t + k(x) u = 0,  u(x, 0) = 1,  x in [0, 1],  t in [0, 2],  k = 1 + sin(2 pi x) / 2,  noise 0.02

The equation has a smooth solution for every k, so that nothing but the data tells one from another. For each draw points and
noise are new; a small network keeps a draw at about ten seconds of processor time. `--reach 0.5` measures on one half only.

    python benchmarks/bands.py --draws 10:22 [--reach 0.5]

A line for each draw has the errors of log k at 101 places, and the share of them within the 95 % band.
"""

import argparse
import time

import numpy as np

import dsgnar as ds

NOISE, COUNT = 0.02, 100
PLACES = np.linspace(0, 1, 101)


def rate(x):
    return 1 + np.sin(2 * np.pi * x) / 2


def problem(draw: int, reach: float = 1.0) -> ds.Problem:
    """The equation with measurements of its exact solution."""
    rng = np.random.default_rng([78, draw])
    x, t = rng.uniform(0, reach, COUNT), rng.uniform(0, 2, COUNT)
    values = np.exp(-rate(x) * t) + NOISE * rng.normal(size=COUNT)
    return ds.Problem(
        domain=ds.Box(x=(0, 1), t=(0, 2)),
        unknowns=("u", ds.Unknown("k", axes=("x",), positive=True)),
        conditions={
            "decay": ds.interior(lambda u, k: u.t + k * u),
            "start": ds.initial(lambda u: u - 1),
            "data": ds.data(lambda u: u, at={"x": x, "t": t}, values=values, noise=NOISE),
        },
    )


def measure(draw: int, reach: float) -> tuple[np.ndarray, np.ndarray]:
    """Errors of log k over their standard errors, and whether they lie in the band, at places where k is determined."""
    begun = time.process_time()
    solution = ds.solve(problem(draw, reach), network=ds.MLP(widths=(20,) * 3), points=1024)
    found, known = solution.band("k", x=PLACES), solution.band("k", x=PLACES).determined
    errors = np.log(found.found / rate(PLACES))
    low, high = found.interval(0.95)
    inside = (low <= rate(PLACES)) & (rate(PLACES) <= high)
    over = errors[known] / (found.standard_error / found.found)[known]
    outcome = solution.outcome
    assert outcome is not None and outcome.inference is not None
    rms = lambda values: np.sqrt(np.mean(values**2)) if values.size else 0.0
    print(
        f"draw {draw}: {solution.verdict}, k: {outcome.inference.functions['k']}; "
        f"rms error {100 * rms(errors[known]):.1f} % ({100 * rms(errors[~known]):.0f} % where not determined), "
        f"over standard errors {rms(over):.2f}, "
        f"{100 * np.mean(inside[known]):.0f} % within; {time.process_time() - begun:.0f} s",
        flush=True,
    )
    return over, inside[known]


def main() -> None:
    parser = argparse.ArgumentParser(description="Coverage of 95 % bands.")
    parser.add_argument("--draws", default="10:22")
    parser.add_argument("--reach", type=float, default=1.0, help="values are measured from 0 to here")
    given = parser.parse_args()
    done = [measure(draw, given.reach) for draw in range(*map(int, given.draws.split(":")))]
    over, inside = (np.concatenate(parts) for parts in zip(*done, strict=True))
    print(f"{100 * np.mean(inside):.0f} % within; errors over standard errors: rms {np.sqrt(np.mean(over**2)):.2f}")


if __name__ == "__main__":
    main()
