"""Payloads of events as JSON, for tests that compare them."""

from collections.abc import Mapping, Sequence
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Raw

from moot.core.catalogue import PAYLOADS
from moot.core.events import Event, decode_payload, payload_fields


def payload_json(event: Any) -> dict[str, Any]:
    """Return the payload of an event of the log, or of one that a client has received."""
    payload = event.payload
    return payload if isinstance(payload, dict) else payload_fields(event)


def event_with(*, type: str, payload: dict[str, Any], **fields: Any) -> Event:
    """Return an event whose payload has these fields, as if it had been read from a log."""
    raw = Raw(msgspec.json.encode(payload))
    return Event(type=type, payload=decode_payload(type, raw), raw=raw, **fields)


def example_fields(type_: str, **fields: Any) -> dict[str, Any]:
    """Return these fields, and an example of every other field that the payload must have."""
    return _required_fields(PAYLOADS[type_]) | fields


def example_event(type_: str, **fields: Any) -> Event:
    return event_with(
        type=type_, payload=example_fields(type_, **fields), event_id="run_1.31", run_id="run_1",
        sequence=31, timestamp="2030-01-31T12:00:00.000000Z", node_id="talk",
    )  # fmt: skip


def _required_fields(struct: type[msgspec.Struct]) -> dict[str, Any]:
    hints = get_type_hints(struct)
    required = [each for each in msgspec.structs.fields(struct) if each.required]
    return {each.encode_name: _example(hints[each.name]) for each in required}


def _example(hint: Any) -> Any:
    origin = get_origin(hint)
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return _required_fields(hint)
    if origin is Literal:
        return get_args(hint)[0]
    if origin is UnionType:
        return None if type(None) in get_args(hint) else _example(get_args(hint)[0])
    kinds = {
        str: "x",
        int: 1,
        float: 1.0,
        bool: True,
        dict: {},
        Mapping: {},
        list: [],
        Sequence: [],
    }
    return kinds.get(origin or hint)
