"""Is this installation sound? Facts about it, and checks that its numbers are right.

An optimiser that aims at relative errors of 1e-7 (single) and 1e-13 (double) shows a wrong product only as a run
that stalls, so products are checked directly. For integer M and x_i,

    y_i = |M x_i|^2,        i = 1..n,

is a sum of small integers, exact in float32 and float64 in every order of summation: one wrong bit is a fault
of the compiler. JAX 0.10.2 on CPU fails this for some n (jax issue 39103: a jitted, vmapped matrix-vector
product followed by a reduction), JAX 0.10.1 does not.

The checks run in the mode in which dsgnar computes (`precision.x64`) and on JAX's default device.
"""

import importlib.metadata
import os
import platform
import threading
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dsgnar.calculus import choices, precision

BAD_JAX = {
    "0.10.2": "returns wrong numbers on CPU (jax issue 39103)",
    "0.11.0": "can crash (jax issue 39257)",
}
REMEDY = 'Install a sound version: pip install "jax==0.10.1" "jaxlib==0.10.1".'

# 0.10.2 is wrong for widths 3 and 5 at some n between 16385 and 32769. 16 is a usual width of a network, and
# the other lengths lie just above powers of two, where a compiler changes how it cuts a loop.
WIDTHS = (3, 5, 16)
LENGTHS = (8193, 16385, 20000, 32769, 65537)


class Check(NamedTuple):
    """Outcome of one check: `detail` says what was found and, if not `ok`, what to do."""

    name: str
    ok: bool
    detail: str


def facts() -> dict[str, str]:
    """Versions, system and device."""
    packages = ("dsgnar", "jax", "jaxlib", "equinox", "numpy", "scipy")
    device = jax.devices()[0]
    return {
        **{name: _version(name) for name in packages},
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "device": device.platform,
        "device_kind": device.device_kind,
        "devices": str(jax.device_count()),
        "cores": str(os.cpu_count()),
    }


def untested() -> list[str]:
    """What no run of dsgnar has been tested on, of what this machine has; and what is true of all machines."""
    platform = jax.default_backend()
    machines = "several machines: processes that work together were tested on one machine, over loopback"
    if choices.of(platform).tested:
        return ["GPUs: kernels are lowered for CUDA in a test, and no run was made on one", machines]
    kernels = "kernels are lowered for CUDA in a test, and " if platform in ("gpu", "cuda") else ""
    return [f"{platform}: {kernels}no run was made on one; compare a first result with JAX_PLATFORMS=cpu", machines]


def check_versions() -> list[Check]:
    """Is the installed JAX one of those known to be faulty?"""
    checks = []
    for name in ("jax", "jaxlib"):
        version = _version(name)
        fault = BAD_JAX.get(version)
        detail = f"{name} {version}" + (f" {fault}. {REMEDY}" if fault else "")
        checks.append(Check(f"{name} version", fault is None, detail))
    return checks


@precision.x64
def check_numerics() -> list[Check]:
    """Does JAX compute what it should, in both precisions, on the default device?"""
    return [
        check_products(np.float32),
        check_products(np.float64),
        check_float32_matmul(),
        check_dtypes(),
        check_threads(),
    ]


def squared_norms(M: jax.Array, x: jax.Array) -> jax.Array:
    """|M x_i|^2 for every row x_i, in the form that JAX 0.10.2 compiles wrongly."""
    return jax.vmap(lambda row: jnp.sum((M @ row) ** 2))(x)


def check_products(dtype: type, function: Callable = squared_norms) -> Check:
    """Compare the jitted `function(M, x)` with |M x_i|^2 in integers; any difference is a fault."""
    compiled = jax.jit(function)
    faults = []
    for width in WIDTHS:
        M = np.arange(width * width).reshape(width, width) % 5 - 2
        for n in LENGTHS:
            x = np.arange(n * width).reshape(n, width) * 7 % 31 - 15
            exact = ((x @ M.T) ** 2).sum(axis=1)
            wrong = int((np.asarray(compiled(M.astype(dtype), x.astype(dtype))) != exact).sum())
            if wrong:
                faults.append(f"{wrong} of {n} rows (width {width})")
    name = f"jitted products, {np.dtype(dtype).name}"
    if faults:
        return Check(name, False, f"JAX returns wrong numbers: {'; '.join(faults)}. {REMEDY}")
    return Check(name, True, f"exact for {len(WIDTHS) * len(LENGTHS)} shapes")


def check_float32_matmul() -> Check:
    """Is a float32 product computed in float32, not in TF32 or bfloat16?

    TF32 keeps 10 bits of the factors and bfloat16 7, so that their errors are about 1e-3 and 1e-2.
    """
    k = 256
    A, B = np.random.default_rng(0).standard_normal((2, k, k)).astype(np.float32)
    product = np.asarray(jax.jit(jnp.matmul)(A, B), np.float64)
    exact = A.astype(np.float64) @ B.astype(np.float64)
    error = np.linalg.norm(product - exact) / np.linalg.norm(exact)
    # random signs make the error grow like sqrt(k) eps; a factor of 4 is left for the order of summation
    bound = 4 * np.sqrt(k) * np.finfo(np.float32).eps
    detail = f"relative error {error:.1e}, bound {bound:.1e}"
    if error > bound:
        detail += '. Set jax.default_matmul_precision("highest") or unset JAX_DEFAULT_MATMUL_PRECISION'
    return Check("full float32 products", bool(error <= bound), detail)


def check_dtypes() -> Check:
    """Do both precisions keep their dtype and all their bits in one x64 context?"""
    faults = []
    for dtype in precision.DTYPES.values():
        eps = np.finfo(dtype).eps
        one_up = np.asarray(1 + eps, dtype)
        result = jax.jit(lambda a: 2.0 * (a - 1.0))(one_up)
        if result.dtype != dtype:
            faults.append(f"{np.dtype(dtype).name} became {result.dtype}")
        elif float(result) != 2 * eps:
            faults.append(f"{np.dtype(dtype).name} lost bits: 2 (1 + eps - 1) gave {float(result) / eps} eps")
    detail = "; ".join(faults) + f". {REMEDY}" if faults else "float32 and float64 keep their bits"
    return Check("both precisions", not faults, detail)


def check_threads() -> Check:
    """Is x64 mode a matter of each thread? One thread inside it and one outside must not see each other."""
    seen: dict[bool, str] = {}
    both_inside = threading.Barrier(2, timeout=60)

    def work(enabled: bool) -> None:
        with jax.enable_x64(enabled):
            both_inside.wait()
            seen[enabled] = str(jnp.ones(3).sum().dtype)
            both_inside.wait()

    threads = [threading.Thread(target=work, args=(enabled,)) for enabled in (True, False)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ok = seen == {True: "float64", False: "float32"}
    detail = f"x64 on gives {seen.get(True)}, x64 off gives {seen.get(False)}, at the same time"
    return Check("x64 mode per thread", ok, detail if ok else f"{detail}. {REMEDY}")


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
