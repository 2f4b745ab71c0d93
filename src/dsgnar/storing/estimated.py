"""The estimate of an error in result.json: what it rests on, and the quantity that it is of, where one was wanted."""

import dataclasses
import math
import sys
from collections.abc import Mapping
from typing import Any

from dsgnar.solving.estimate import Estimate, Measured


def checks(found: Estimate | None) -> dict[str, Any] | None:
    """What an estimate rests on. JSON has no infinity: the largest number stands for it."""
    if found is None:
        return None
    names = [f.name for f in dataclasses.fields(Estimate) if f.name not in ("spaces", "quantity")]
    values = {name: getattr(found, name) for name in names}
    finite = {name: min(v, sys.float_info.max) if isinstance(v, float) else v for name, v in values.items()}
    return {"known": found.known, **finite}


def quantity(found: Estimate | None) -> dict[str, Any]:
    """The quantity that was wanted, if there was one; a value that is not finite is null."""
    if found is None or found.quantity is None:
        return {}
    value = found.quantity.value
    return {"quantity": dataclasses.asdict(found.quantity) | {"value": value if math.isfinite(value) else None}}


def quantity_in(reached: Mapping[str, Any]) -> Measured | None:
    """And back."""
    found = reached.get("quantity")
    return None if found is None else Measured(**found | {"value": math.nan if found["value"] is None else found["value"]})


def estimate_in(reached: Mapping[str, Any]) -> Estimate | None:
    """And back."""
    found = reached.get("error_checks")
    if found is None:
        return None
    return Estimate(**{name: v for name, v in found.items() if name != "known"}, quantity=quantity_in(reached))
