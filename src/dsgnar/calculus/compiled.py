"""Compiled kernels kept on disk between runs.

JAX has a persistent compilation cache; it is switched on here unless the user has configured one. Machine code fits the
processor it was made for, so each kind of processor has a directory of its own (homes are shared between machines).
`DSGNAR_CACHE=off` switches it off, `DSGNAR_CACHE=DIR` moves it.
"""

import hashlib
import os
import platform
from contextlib import suppress
from pathlib import Path

import jax


def enable_compilation_cache() -> Path | None:
    """Keep compiled kernels on disk; returns where, or None if the user has decided otherwise."""
    wish = os.environ.get("DSGNAR_CACHE", "")
    if wish.lower() == "off" or jax.config.values["jax_compilation_cache_dir"] is not None:
        return None
    home = Path(wish) if wish else Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "dsgnar"
    directory = home / f"jax-{jax.__version__}-{_processor()}"
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    jax.config.update("jax_compilation_cache_dir", str(directory))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
    _quieten_loading()
    return directory


def _quieten_loading() -> None:
    """Keep XLA's log to fatal errors, unless the user has chosen a level.

    For every kernel that it takes from disk XLA 0.10 writes a page about features such as "prefer-no-gather", which it sets
    itself when it compiles and then misses in the processor. There is no public way to set the level after JAX is imported.
    """
    if os.environ.get("TF_CPP_MIN_LOG_LEVEL", "1") == "1":  # what JAX sets it to
        with suppress(ImportError, AttributeError):
            from jax._src.lib import utils  # pyright: ignore[reportPrivateImportUsage]

            utils.absl_set_min_log_level(3)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        flags = next(line for line in lines if line.startswith(("flags", "Features")))
    except (OSError, StopIteration):
        flags = platform.processor()
    return hashlib.sha256((platform.machine() + flags).encode()).hexdigest()[:12]
