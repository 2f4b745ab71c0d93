"""history.csv: a row for each iteration, and back. Every number is written so that it reads back as the same number."""

import csv
import io
import typing
from collections.abc import Sequence
from typing import Any

from dsgnar.solving.record import Record


def to_csv(history: Sequence[Record], conditions: tuple[str, ...]) -> str:
    """A table with a column for each condition's mean square and weight and each unknown's error."""
    rows = [record.row(conditions) for record in history]
    columns = list(dict.fromkeys(column for row in rows for column in row)) or ["iteration"]
    buffer = io.StringIO(newline="")
    writer = csv.DictWriter(buffer, fieldnames=columns)
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()


def from_csv(text: str, conditions: tuple[str, ...]) -> tuple[Record, ...]:
    """The history that `to_csv` wrote."""
    return tuple(_record(row, conditions) for row in csv.DictReader(io.StringIO(text, newline="")))


def _record(row: dict[str, str], conditions: tuple[str, ...]) -> Record:
    errors = {name[6:-1]: float(value) for name, value in row.items() if name.startswith("error[") and value}
    values: dict[str, Any] = {
        "mean_squares": tuple(float(row[f"mean_square[{name}]"]) for name in conditions),
        "weights": tuple(float(row[f"weight[{name}]"]) for name in conditions),
        "lam": float(row["lambda"]),
        "held_out": float(row["held_out"]) if row["held_out"] else None,
        "error": errors or None,
        "estimate": float(row["estimate"]) if row.get("estimate") else None,
        "accepted": row["accepted"] == "True",
    }
    for name, kind in typing.get_type_hints(Record).items():
        if name not in values:
            values[name] = kind(row[name])
    return Record(**values)
