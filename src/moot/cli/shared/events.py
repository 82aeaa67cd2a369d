"""Decode the events that the server sends."""

from collections.abc import Mapping

import msgspec

from moot.core.events import Event, decode, encode


def read_event(fields: Mapping[str, object]) -> Event:
    return decode(msgspec.json.encode(fields))


def event_fields(event: Event) -> dict[str, object]:
    """Return the event as the server has written it."""
    return msgspec.json.decode(encode(event), type=dict)
