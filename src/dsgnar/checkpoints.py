"""Checkpoints: the state of a run in one file that is whole or refused, and that never executes anything.

    b"dsgnar checkpoint 1\\n" | SHA-256 of all that follows (32 bytes) | length of the header (8 bytes, little endian)
    | header: JSON | arrays: raw numbers, one after the other; the header has their names, types and shapes

JSON keeps a float64 exactly (Python writes the shortest text that reads back as the same number), and the arrays are kept as
they are, so a run goes on from its checkpoint bit for bit. The last two checkpoints are kept. A new one is written beside
them and moved into place once it is on the disk: whatever happens, one of them is whole.
"""

import dataclasses
import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dsgnar.optimiser import State
from dsgnar.solution import Record
from dsgnar.stages import Plan, StopReason

MAGIC = b"dsgnar checkpoint "
VERSION = b"1\n"
DIGEST = hashlib.sha256().digest_size
CURRENT, PREVIOUS, REFUSED = "checkpoint.dsgnar", "checkpoint.previous.dsgnar", "checkpoint.refused.dsgnar"
DTYPES = ("<f4", "<f8")
ARRAY = "[array]"  # marks the place of an array; no unknown can be called that


class CheckpointError(ValueError):
    """A file is no checkpoint, or a damaged one."""


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """Everything that a run depends on beside problem, network and settings."""

    state: State
    plan: Plan
    history: tuple[Record, ...]
    seconds: dict[str, float]
    finished: tuple[np.ndarray, ...] = ()  # parameters of the time intervals that are solved
    worst: tuple[float, ...] | None = None  # their largest held-out residuals
    unfinished: StopReason | None = None  # why one of them was left early
    stop: StopReason | None = None  # why the run ended, if it has
    evaluated: bool = False  # whether the state's mean squares belong to the points in force


# --- files ------------------------------------------------------------------------------------------------------------


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file in one step: a reader sees the old one or the new one, and what is there stays there."""
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


def save(directory: Path, checkpoint: Checkpoint, run: str) -> None:
    """Write a checkpoint of the run with the fingerprint `run`; the one before it is kept."""
    fresh = directory / (CURRENT + ".new")
    write_atomically(fresh, encode(checkpoint, run))
    if (directory / CURRENT).exists():
        os.replace(directory / CURRENT, directory / PREVIOUS)
    os.replace(fresh, directory / CURRENT)
    _sync_directory(directory)


def latest(directory: Path, run: str) -> tuple[Checkpoint | None, list[str]]:
    """The newest whole checkpoint of a run, and what is wrong with newer ones."""
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


def encode(checkpoint: Checkpoint, run: str) -> bytes:
    """A checkpoint of a run as bytes."""
    arrays: list[np.ndarray] = []
    header = {
        "run": run,
        "state": _fields(checkpoint.state, arrays),
        "plan": _fields(checkpoint.plan, arrays),
        "history": [_fields(record, arrays) for record in checkpoint.history],
        "seconds": checkpoint.seconds,
        "finished": [_value(theta, arrays) for theta in checkpoint.finished],
        "worst": checkpoint.worst,
        "unfinished": checkpoint.unfinished and checkpoint.unfinished.code,
        "stop": checkpoint.stop and checkpoint.stop.code,
        "evaluated": checkpoint.evaluated,
    }
    header["arrays"] = [{"dtype": a.dtype.str, "shape": a.shape} for a in arrays]
    text = json.dumps(header).encode()
    body = len(text).to_bytes(8, "little") + text + b"".join(a.tobytes() for a in arrays)
    return MAGIC + VERSION + hashlib.sha256(body).digest() + body


def _fields(value: Any, arrays: list[np.ndarray]) -> dict[str, Any]:
    return {f.name: _value(getattr(value, f.name), arrays) for f in dataclasses.fields(value)}


def _value(value: Any, arrays: list[np.ndarray]) -> Any:
    """Plain data as it is; an array becomes its number in the list of arrays."""
    if not isinstance(value, np.ndarray):
        return value
    arrays.append(np.ascontiguousarray(value, value.dtype.newbyteorder("<")))
    return {ARRAY: len(arrays) - 1}


def decode(content: bytes, run: str) -> Checkpoint:
    """The checkpoint of a run from bytes; nothing in them is executed."""
    start = len(MAGIC) + len(VERSION)
    if not content.startswith(MAGIC):
        raise CheckpointError("it is not a checkpoint of dsgnar")
    if content[len(MAGIC) : start] != VERSION:
        raise CheckpointError("it was written by another version of dsgnar, or is damaged")
    body = content[start + DIGEST :]
    if hashlib.sha256(body).digest() != content[start : start + DIGEST]:
        raise CheckpointError("it is damaged or cut short (its checksum does not fit)")
    try:
        return _from_body(body, run)
    except CheckpointError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, RecursionError, StopIteration) as error:
        raise CheckpointError(f"its content makes no sense ({type(error).__name__}: {error})") from error


def _from_body(body: bytes, run: str) -> Checkpoint:
    length = int.from_bytes(body[:8], "little")
    header = json.loads(body[8 : 8 + length])
    if header["run"] != run:
        raise CheckpointError("it belongs to a run of another problem, network or settings")
    arrays = _arrays(header["arrays"], body[8 + length :])
    data = {name: _restored(header[name], arrays) for name in header if name != "arrays"}
    return Checkpoint(
        state=State(**data["state"]),
        plan=Plan(**data["plan"]),
        history=tuple(Record(**record) for record in data["history"]),
        seconds=data["seconds"],
        finished=data["finished"],
        worst=data["worst"],
        unfinished=data["unfinished"] and StopReason.of(data["unfinished"]),
        stop=data["stop"] and StopReason.of(data["stop"]),
        evaluated=data["evaluated"],
    )


def _restored(value: Any, arrays: list[np.ndarray]) -> Any:
    """The inverse of `_value`, with JSON's lists as the tuples that they were."""
    if isinstance(value, list):
        return tuple(_restored(v, arrays) for v in value)
    if isinstance(value, dict):
        return arrays[value[ARRAY]] if ARRAY in value else {k: _restored(v, arrays) for k, v in value.items()}
    return value


def _arrays(described: list[dict[str, Any]], content: bytes) -> list[np.ndarray]:
    out, start = [], 0
    for each in described:
        if each["dtype"] not in DTYPES:
            raise ValueError(f"there are no arrays of type {each['dtype']!r} in a checkpoint")
        dtype, shape = np.dtype(each["dtype"]), tuple(each["shape"])
        count = int(np.prod(shape, dtype=np.int64))
        flat = np.frombuffer(content, dtype, count, start)
        out.append(flat.reshape(shape).copy())
        start += count * dtype.itemsize
    return out
