"""How a sensitive value looks in the log, in snapshots and in streams."""

import hashlib
from typing import Any

import msgspec
from msgspec import UNSET

MASK = "[REDACTED]"


def masked(mode: str, value: Any) -> Any:
    """The value as it may be recorded; UNSET where it must not appear at all."""
    match mode:
        case "omit":
            return UNSET
        case "hash":
            body = msgspec.json.encode(value, order="sorted")
            return f"sha256:{hashlib.sha256(body).hexdigest()}"
        case "passthrough":
            return value
        case _:
            return MASK
