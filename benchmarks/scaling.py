"""Predicted seconds of an iteration on 1 to 64 GPUs, by the model of docs/devices.md. Nothing in it was measured on a GPU.

python benchmarks/scaling.py
"""

from dataclasses import dataclass

DEVICES = (1, 2, 4, 8, 16, 32, 64)

# Assumptions, for GPUs such as an H100 with a link such as NVLink or four 400 Gbit/s cards to each node.
RATE = {4: 47e12, 8: 24e12}  # flops of large products, by the bytes of a number: 70 % of 67 and 34 TFLOP/s
NETWORK_SHARE = 0.1  # of that rate in sketch and loss: products of narrow layers (2 to 9 % on a CPU)
FACTOR_SHARE = 0.3  # in an LQ, and in a band reduction if there were one on the device
SVD_RATE = 0.2e12  # flops of the vendor's SVD
BANDWIDTH = 300e9  # bytes/s into a device
LATENCY = 20e-6  # seconds of an exchange, and of each turn of a ring
CALL = 1e-3  # seconds of the host for each loss evaluation, and for sketch, factorisation and new points
EVALUATIONS = 6
ACTIVATIONS = 1.5  # flops over those of the products
DEPTH = 8  # residuals to a bucket


@dataclass(frozen=True)
class Case:
    """A problem: c Taylor coefficients, d parameters, s rows, columns of the sketch, N residuals, B bytes of a number."""

    name: str
    c: int
    d: int
    s: int
    columns: int
    N: int
    B: int

    def seconds(self, G: int, band: bool) -> tuple[float, float, float, float, float]:
        """Sketch, losses, factorisation with steps, exchange, host; on G devices."""
        rate, residual = RATE[self.B], 2 * self.c * self.d * ACTIVATIONS
        sketch = 3 * min(self.N, DEPTH * self.s) * residual / (NETWORK_SHARE * rate * G)
        losses = EVALUATIONS * self.N * residual / (NETWORK_SHARE * rate * G)
        square = 2 * self.s**2 * max(self.columns - self.s / 3, 0) / (FACTOR_SHARE * rate)
        small = 8 / 3 * self.s**3 / (FACTOR_SHARE * rate) if band else 22 * self.s**3 / SVD_RATE
        steps = EVALUATIONS * 4 * self.s * self.columns / (FACTOR_SHARE * rate)
        rows = (G - 1) / G * self.s * self.columns * self.B / BANDWIDTH + (G - 1) * LATENCY
        sums = (2 * EVALUATIONS + 2) * 2 * LATENCY if G > 1 else 0.0
        return sketch, losses, square + small + steps, rows + sums, (EVALUATIONS + 3) * CALL


CASES = (
    Case("Burgers, single", 4, 1_447, 700, 1_447, 49_152, 4),
    Case("Burgers, double", 4, 11_285, 4_000, 4_000, 49_152, 8),
    Case("Kuramoto-Sivashinsky, double", 6, 15_265, 5_000, 5_000, 49_152, 8),
    Case("Poisson in 10D, double", 12, 17_241, 5_000, 5_000, 49_152, 8),
    Case("3D Navier-Stokes, single", 11, 250_000, 10_000, 250_000, 2**24, 4),
    Case("3D Navier-Stokes, double", 11, 250_000, 10_000, 10_000, 2**24, 8),
)


def main() -> None:
    print(
        "| problem | factorisation | "
        + " | ".join(f"{G} GPU{'s' if G > 1 else ''}" for G in DEVICES)
        + " | of 64, exchange |"
    )
    print("|---|---|" + "---|" * (len(DEVICES) + 1))
    for case in CASES:
        for band in (False, True):
            parts = {G: case.seconds(G, band) for G in DEVICES}
            first = sum(parts[1])
            cells = [f"{first:.3g} s"] + [f"{first / sum(parts[G]):.1f}x" for G in DEVICES[1:]]
            exchange = f"{parts[64][3] / sum(parts[64]):.0%}"
            print(f"| {case.name} | {'band (not built)' if band else 'SVD'} | {' | '.join(cells)} | {exchange} |")


if __name__ == "__main__":
    main()
