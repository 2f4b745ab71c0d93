"""Checkpoints: the state of a run in one file that is whole or refused, and that never executes anything.

    b"dsgnar checkpoint 2\\n" | SHA-256 of all that follows (32 bytes) | length of the header (8 bytes, little endian)
    | header: JSON | arrays: raw numbers, one after the other; the header has their types and shapes

JSON keeps a float64 exactly (Python writes the shortest text that reads back as the same number) and the arrays are raw, so
a resumed run repeats the uninterrupted one bit for bit. The last two checkpoints are kept. A new one is written beside them
and moved into place once it is on the disk: one of them is whole at any moment.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from dsgnar.solving.state import RunState
from dsgnar.storing.plain import from_plain, to_plain

MAGIC = b"dsgnar checkpoint "
VERSION = b"5\n"
DIGEST = hashlib.sha256().digest_size
CURRENT, PREVIOUS, REFUSED = "checkpoint.dsgnar", "checkpoint.previous.dsgnar", "checkpoint.refused.dsgnar"
DTYPES = ("<f4", "<f8")


class CheckpointError(ValueError):
    """A file is not a checkpoint, or is damaged."""


# --- files ------------------------------------------------------------------------------------------------------------


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file in one step: a reader sees the old one or the new one, never half of it."""
    temporary = path.with_name(path.name + ".partial")
    try:
        _write_through(temporary, content)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_directory(path.parent)


def _write_through(path: Path, content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync_directory(directory: Path) -> None:
    if os.name != "posix":  # elsewhere a directory cannot be opened
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def save(directory: Path, state: RunState, run: str) -> None:
    """Write the state of the run with the fingerprint `run`; the checkpoint before it is kept."""
    fresh = directory / (CURRENT + ".new")
    write_atomically(fresh, encode(state, run))
    if (directory / CURRENT).exists():
        os.replace(directory / CURRENT, directory / PREVIOUS)
    os.replace(fresh, directory / CURRENT)
    _sync_directory(directory)


def latest(directory: Path, run: str) -> tuple[RunState | None, list[str]]:
    """The state in the newest whole checkpoint of a run, and what is wrong with newer ones."""
    complaints = []
    for name in (CURRENT, PREVIOUS):
        path = directory / name
        if not path.exists():
            continue
        try:
            return decode(path.read_bytes(), run), complaints
        except (CheckpointError, OSError) as error:
            complaints.append(f"{path} is not used: {error}")
    return None, complaints


def set_aside(directory: Path) -> None:
    """Move a refused newest checkpoint out of the way, so that it does not take the place of a whole one."""
    if (directory / CURRENT).exists():
        os.replace(directory / CURRENT, directory / REFUSED)


# --- the format -------------------------------------------------------------------------------------------------------


def encode(state: RunState, run: str) -> bytes:
    """The state of a run as bytes."""
    arrays: list[np.ndarray] = []
    header: dict[str, Any] = {"run": run, "state": to_plain(state, arrays)}
    header["arrays"] = [{"dtype": a.dtype.str, "shape": a.shape} for a in arrays]
    text = json.dumps(header).encode()
    body = len(text).to_bytes(8, "little") + text + b"".join(a.tobytes() for a in arrays)
    return MAGIC + VERSION + hashlib.sha256(body).digest() + body


def decode(content: bytes, run: str) -> RunState:
    """The state of a run from bytes; nothing in them is executed."""
    start = len(MAGIC) + len(VERSION)
    if not content.startswith(MAGIC):
        raise CheckpointError("it is not a checkpoint of dsgnar")
    if content[len(MAGIC) : start] != VERSION:
        raise CheckpointError(
            "another version of dsgnar wrote it, in another format, or it is damaged; "
            "resume with the version that wrote it, or start a new run"
        )
    body = content[start + DIGEST :]
    if hashlib.sha256(body).digest() != content[start : start + DIGEST]:
        raise CheckpointError("it is damaged or cut short (its checksum does not fit)")
    try:
        return _from_body(body, run)
    except CheckpointError:
        raise
    except (KeyError, TypeError, ValueError, ArithmeticError, RecursionError) as error:
        raise CheckpointError(f"its content makes no sense ({type(error).__name__}: {error})") from error


def _from_body(body: bytes, run: str) -> RunState:
    length = int.from_bytes(body[:8], "little")
    header = json.loads(body[8 : 8 + length])
    if header["run"] != run:
        raise CheckpointError("it belongs to a run of another problem, network or settings")
    return from_plain(RunState, header["state"], _arrays(header["arrays"], body[8 + length :]))


def _arrays(described: list[dict[str, Any]], content: bytes) -> list[np.ndarray]:
    out, start = [], 0
    for each in described:
        if each["dtype"] not in DTYPES:
            raise ValueError(f"a checkpoint has no arrays of type {each['dtype']!r}")
        dtype, shape = np.dtype(each["dtype"]), tuple(each["shape"])
        count = int(np.prod(shape, dtype=np.int64))
        flat = np.frombuffer(content, dtype, count, start)
        out.append(flat.reshape(shape).copy())
        start += count * dtype.itemsize
    return out
