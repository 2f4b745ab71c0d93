"""Earlier results, in a file with one JSON object per line, and how today's compare with them.

A result is compared with the latest one of the same case and part on the same machine. It counts as slower only if all of
today's repeats are slower than all of the earlier ones, and both have several. If the ratio of `paper` to `fast` has not
fallen as clearly, `paper` is slower too, and the machine is the likely reason.
"""

import json
import os
from pathlib import Path
from typing import Any

from dsgnar.tools.bench.spread import Row, Spread

Key = tuple[str, str]


def default_path() -> Path:
    """`~/.local/share/dsgnar/bench.jsonl`, or where XDG_DATA_HOME says."""
    return Path(os.environ.get("XDG_DATA_HOME") or "~/.local/share").expanduser() / "dsgnar" / "bench.jsonl"


def append(path: Path, row: Row, *, machine: str, version: str, date: str) -> None:
    """Add one result."""
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps({"date": date, "machine": machine, "version": version, **row.to_json()})
    with open(path, "a") as file:
        file.write(line + "\n")


def latest(path: Path, machine: str) -> dict[Key, dict[str, Any]]:
    """The last result of each case and part on this machine."""
    found: dict[Key, dict[str, Any]] = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            entry = json.loads(line)
        except json.JSONDecodeError:  # a line that was cut off by a full disk or an interruption
            continue
        if entry.get("machine") == machine:
            found[entry["case"], entry["part"]] = entry
    return found


def compare(row: Row, entry: dict[str, Any] | None) -> str:
    """Today's result against an earlier one, in words; empty where there is none."""
    before = None if entry is None else Row.from_json(entry)
    if entry is None or before is None or row.fast is None or before.fast is None:
        return ""
    change = f"{row.fast.median / before.fast.median:.2f} x {entry['version']} of {entry['date'][:10]}"
    if row.unit != "s" or not _above(row.fast, before.fast):
        return change
    if row.ratio is not None and before.ratio is not None and not _above(before.ratio, row.ratio):
        return f"{change}: slower, but so is paper"
    return f"{change}: SLOWER by more than the spread"


def _above(a: Spread, b: Spread) -> bool:
    return len(a.values) > 1 and len(b.values) > 1 and a.low > b.high
