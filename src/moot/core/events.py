"""Events: recorded facts in the form that is stored and sent."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import replace

from moot.core.catalogue import PAYLOADS
from moot.core.payloads.base import OpaquePayload, Payload
from moot.core.payloads.hints import NO_HINTS, EventHints

if TYPE_CHECKING:
    from moot.core.runs.start import LinkedStart

ENGINE_VERSION = 1
LOG_SCHEMA_VERSION = 2


class MemoryWrite(Struct, frozen=True, kw_only=True):
    """A put of a memory entry, or a delete when it has no content.

    The store adds its time and sequence. ``write_id`` is the same in every attempt of the node, so
    that no attempt writes twice.
    """

    scope: str
    memory_id: str
    write_id: str
    content: str | None = None
    tags: list[str] = []
    agent_id: str | None = None
    ttl_ms: int | None = None
    expires_at: int | None = None

    def end(self, now: int) -> int | None:
        """Return the end of the entry when it is written now; its time to live starts then."""
        ends = [] if self.expires_at is None else [self.expires_at]
        ends += [] if self.ttl_ms is None else [now + self.ttl_ms]
        return min(ends, default=None)


class NewEvent(Struct):
    """An event that decide returns: without id, time and sequence.

    ``cause`` is the sequence of the causing event in the same run, or the event id of another run's
    event; by default it is the previous event. ``sealed``, ``artifact`` and ``note`` are stored
    beside the log. A copied payload is written with the bytes in ``raw``.
    """

    payload: Payload | OpaquePayload
    node_id: str | None = None
    cause: int | str | None = None
    hints: Mapping[str, object] | None = None
    sealed: Mapping[str, object] | None = None
    artifact: Mapping[str, object] | None = None
    note: MemoryWrite | None = None
    #: the id of the delivery that led to the run, instead of an id from the sequence
    event_id: str | None = None
    #: a run that is created in the same commit as the event
    begins: "LinkedStart | None" = None
    raw: Raw | None = None
    #: how many events of its type the attempt or invitation has reported before
    nth: int = 0

    @property
    def type(self) -> str:
        return self.payload.event_type


def check_hints(hints: Mapping[str, object]) -> EventHints:
    """Return the hints with their types. Raise ValidationError when one does not fit."""
    return msgspec.convert(hints, EventHints)


class Event(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A recorded fact of a run. ``sequence`` is dense per run and starts at 0.

    ``raw`` holds the bytes of a payload that was read or copied; they stay as they are.
    """

    event_id: str
    run_id: str
    sequence: int
    type: str
    timestamp: str
    payload: Payload | OpaquePayload
    schema_version: int | UnsetType = UNSET
    engine_version: str | UnsetType = UNSET
    node_id: str | UnsetType = UNSET
    causation_id: str | UnsetType = UNSET
    hints: Mapping[str, object] | UnsetType = UNSET
    raw: Raw | None = None

    @property
    def known_hints(self) -> EventHints:
        """The hints with their types. A hint that does not fit counts as absent."""
        if self.hints is UNSET:
            return NO_HINTS
        try:
            return check_hints(self.hints)
        except msgspec.ValidationError:
            return check_hints({key: self.hints[key] for key in filter(self._fits, self.hints)})

    def _fits(self, key: str) -> bool:
        try:
            check_hints({key: self.hints[key]} if self.hints is not UNSET else {})
        except msgspec.ValidationError:
            return False
        return True


class StoredEvent(Struct, frozen=True, rename="camel"):
    """An event with its payload as bytes."""

    event_id: str
    run_id: str
    sequence: int
    type: str
    timestamp: str
    payload: Raw
    schema_version: int | UnsetType = UNSET
    engine_version: str | UnsetType = UNSET
    node_id: str | UnsetType = UNSET
    causation_id: str | UnsetType = UNSET
    hints: Mapping[str, object] | UnsetType = UNSET


class EventHead(Struct, frozen=True, rename="camel"):
    """The fields that readers filter by; the payload stays unparsed."""

    sequence: int
    type: str
    event_id: str = ""
    node_id: str | None = None
    causation_id: str | None = None


_encode = msgspec.json.Encoder().encode
_decode_stored = msgspec.json.Decoder(StoredEvent).decode
_decode_fields = msgspec.json.Decoder(dict[str, Any]).decode
_decoders = {name: msgspec.json.Decoder(payload).decode for name, payload in PAYLOADS.items()}
decode_head = msgspec.json.Decoder(EventHead).decode

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def encode(event: Event) -> bytes:
    if event.raw is not None:
        event = replace(event, payload=event.raw, raw=None)
    return _encode(event)


def decode(row: bytes) -> Event:
    stored = _decode_stored(row)
    return Event(
        event_id=stored.event_id,
        run_id=stored.run_id,
        sequence=stored.sequence,
        type=stored.type,
        timestamp=stored.timestamp,
        payload=decode_payload(stored.type, stored.payload),
        schema_version=stored.schema_version,
        engine_version=stored.engine_version,
        node_id=stored.node_id,
        causation_id=stored.causation_id,
        hints=stored.hints,
        raw=stored.payload,
    )


def decode_payload(type_: str, raw: Raw) -> Payload | OpaquePayload:
    """Return the payload of this type. Never raise: a payload that does not fit is opaque."""
    decoder = _decoders.get(type_)
    if decoder is not None:
        try:
            return decoder(raw)
        except msgspec.MsgspecError:
            pass
    return OpaquePayload(type_, raw)


def payload_bytes(event: Event | NewEvent) -> bytes:
    return _encode(event.payload) if event.raw is None else bytes(event.raw)


def payload_fields(event: Event | NewEvent) -> dict[str, Any]:
    """Return the payload as JSON, with the keys that this host does not know."""
    return _decode_fields(payload_bytes(event))


def with_fields(event: Event, fields: Mapping[str, object]) -> Event:
    """Return the event with these fields in this order as its payload."""
    raw = Raw(_encode(fields))
    return replace(event, payload=decode_payload(event.type, raw), raw=raw)


def set_fields(new: NewEvent, fields: Mapping[str, object]) -> None:
    """Give the event these fields in this order as its payload."""
    new.raw = Raw(_encode(fields))
    new.payload = decode_payload(new.type, new.raw)


def copy_payload(new: NewEvent) -> None:
    """Make the payload a copy as the log records it. Raise ValueError when it is not JSON."""
    if new.raw is None:
        try:
            new.raw = Raw(_encode(new.payload))
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"JSON cannot say this: {error}") from None
        new.payload = decode_payload(new.type, new.raw)


def new_event(
    type_: str, fields: Mapping[str, object], node_id: str | None = None, **more: Any
) -> NewEvent:
    """Return an event whose payload has these fields in this order, unknown ones as well."""
    raw = Raw(_encode(fields))
    return NewEvent(decode_payload(type_, raw), node_id, raw=raw, **more)


def event_id(run_id: str, sequence: int) -> str:
    return f"{run_id}.{sequence}"


def iso(micros: int) -> str:
    """Return the time in the protocol's form, with microseconds."""
    return f"{_format_second(micros // 1_000_000)}.{micros % 1_000_000:06d}Z"


def millis(timestamp: str) -> int:
    """Return milliseconds since the epoch for a timestamp of ``iso``."""
    return _parse_second(timestamp[:19]) * 1000 + int(timestamp[20:23])


def micros(timestamp: str) -> int:
    """Return microseconds since the epoch for a timestamp of ``iso``."""
    return _parse_second(timestamp[:19]) * 1_000_000 + int(timestamp[20:26])


# Many events share a second, so the calendar part is cached.
@lru_cache(maxsize=256)
def _format_second(seconds: int) -> str:
    return (_EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S")


@lru_cache(maxsize=256)
def _parse_second(written: str) -> int:
    return (datetime.fromisoformat(written + "+00:00") - _EPOCH) // timedelta(seconds=1)
