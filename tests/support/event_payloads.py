"""Payloads of events as JSON, for tests that compare them."""

from typing import Any

import msgspec
from msgspec import Raw

from moot.core.events import Event, decode_payload, payload_fields


def payload_json(event: Any) -> dict[str, Any]:
    """Return the payload of an event of the log, or of one that a client has received."""
    payload = event.payload
    return payload if isinstance(payload, dict) else payload_fields(event)


def event_with(*, type: str, payload: dict[str, Any], **fields: Any) -> Event:
    """Return an event whose payload has these fields, as if it had been read from a log."""
    raw = Raw(msgspec.json.encode(payload))
    return Event(type=type, payload=decode_payload(type, raw), raw=raw, **fields)
