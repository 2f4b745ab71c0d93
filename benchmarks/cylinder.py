"""Flow around a cylinder (Schäfer and Turek 1996, test case 2D-1): drag, lift and pressure difference at Re = 20.

    u . grad u = -grad p + nu lap(u),  div u = 0      in [0, 2.2] x [0, 0.41] without the disc (0.2, 0.2; 0.05)

nu = 0.001; the inflow is 4 U y (0.41 - y) / 0.41^2 with U = 0.3, walls and cylinder hold the fluid, and at the outflow
nu u_x = p, nu v_x = 0. With n the normal of the cylinder into the fluid and the mean velocity 0.2, D = 0.1:

    force = int (nu (grad u + grad u^T) n - p n) ds,      drag and lift coefficients = 2 force / (0.2^2 0.1)

Published (Nabh 1998): 5.57953523384 and 0.010618948146; the pressure in front of the cylinder exceeds that behind it by
0.11752016697.

    python benchmarks/cylinder.py --max-seconds 600
"""

import argparse

import numpy as np

import dsgnar as ds

NU, HEIGHT, RADIUS, CENTRE = 1e-3, 0.41, 0.05, (0.2, 0.2)
PUBLISHED = {"drag": 5.57953523384, "lift": 0.010618948146, "pressure difference": 0.11752016697}


def problem() -> ds.Problem:
    channel = ds.Box(x=(0, 2.2), y=(0, HEIGHT), name="channel")
    channel = channel - ds.Ball(x=CENTRE[0], y=CENTRE[1], radius=RADIUS, name="cylinder")
    walls, inlet, outlet = [("y", "lower"), ("y", "upper")], [("x", "lower")], [("x", "upper")]
    return ds.Problem(
        domain=channel,
        unknowns=("u", "v", "p"),
        conditions={
            "momentum x": ds.interior(lambda u, v, p: u * u.x + v * u.y + p.x - NU * ds.laplacian(u)),
            "momentum y": ds.interior(lambda u, v, p: u * v.x + v * v.y + p.y - NU * ds.laplacian(v)),
            "mass": ds.interior(lambda u, v: u.x + v.y),
            "inflow": ds.boundary(lambda u, y: u - 1.2 * y * (HEIGHT - y) / HEIGHT**2, faces=inlet),
            "inflow, across": ds.boundary(lambda v: v, faces=inlet),
            "walls": ds.boundary(lambda u: u, faces=walls),
            "walls, across": ds.boundary(lambda v: v, faces=walls),
            "cylinder": ds.boundary(lambda u: u, on="cylinder"),
            "cylinder, across": ds.boundary(lambda v: v, on="cylinder"),
            "outflow": ds.boundary(lambda u, p: NU * u.x - p, faces=outlet),
            "outflow, across": ds.boundary(lambda v: v.x, faces=outlet),
        },
    )


def coefficients(solution: ds.Solution, count: int = 720) -> dict[str, float]:
    """Drag and lift by the trapezoidal rule around the cylinder, which is exact for what is smooth."""
    angle = 2 * np.pi * np.arange(count) / count
    nx, ny = np.cos(angle), np.sin(angle)
    at = {"x": CENTRE[0] + RADIUS * nx, "y": CENTRE[1] + RADIUS * ny}
    slope = {name + axis: np.asarray(solution.derivative(name, axis)(**at)) for name in "uv" for axis in "xy"}
    p, ds_ = np.asarray(solution(**at)["p"]), 2 * np.pi * RADIUS / count
    shear = slope["uy"] + slope["vx"]
    force_x = np.sum(NU * (2 * slope["ux"] * nx + shear * ny) - p * nx) * ds_
    force_y = np.sum(NU * (shear * nx + 2 * slope["vy"] * ny) - p * ny) * ds_
    ends = np.asarray(solution(x=np.array([0.15, 0.25]), y=np.array([0.2, 0.2]))["p"])
    over = 2 / (0.2**2 * 2 * RADIUS)
    return {"drag": over * force_x, "lift": over * force_y, "pressure difference": float(ends[0] - ends[1])}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--max-seconds", type=float, default=600)
    given = arguments.parse_args()
    solution = ds.solve(problem(), seed=given.seed, max_seconds=given.max_seconds, observers=[ds.Progress()])
    print(solution.summary())
    for name, value in coefficients(solution).items():
        print(f"{name:20} {value:.6g}   published {PUBLISHED[name]:.6g}   {value / PUBLISHED[name] - 1:+.2%}")


if __name__ == "__main__":
    main()
