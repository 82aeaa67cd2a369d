"""The hash chain of a log, and checks that stored bytes are where they belong."""

import hashlib

import msgspec
from msgspec import Struct

from moot.core.payloads.memory import MemoryWritten
from moot.store.protocol import Definition


class _EventPlace(Struct, rename="camel"):
    run_id: str
    sequence: int


class _MemoryPayload(Struct, rename="camel"):
    memory_id: str


class _MemoryEvent(Struct):
    type: str
    payload: _MemoryPayload


_decode_memory_event = msgspec.json.Decoder(_MemoryEvent).decode
_decode_event_place = msgspec.json.Decoder(_EventPlace).decode


def chain_scope(tenant: str, run_id: str) -> bytes:
    """Return the bytes that tie a hash to one run of one tenant."""
    return f"{tenant}\0{run_id}\0".encode()


def hash_event(previous: bytes, scope: bytes, sequence: int, body: bytes) -> bytes:
    """Return the hash of one event; ``previous`` is empty for the first."""
    chained = b"%b%b%d\0%b" % (previous, scope, sequence, body)
    return hashlib.blake2b(chained, digest_size=16).digest()


def check_event_place(body: bytes, run_id: str, sequence: int) -> str | None:
    """Return what is wrong when an event names another run or sequence; None if nothing is."""
    try:
        event = _decode_event_place(body)
    except msgspec.MsgspecError:
        return "The event is not JSON with a runId and a sequence."
    if (event.run_id, event.sequence) != (run_id, sequence):
        return f"The event says it is number {event.sequence} of run {event.run_id!r}."
    return None


def check_definition_digest(definition: Definition) -> str | None:
    """Return what is wrong when a definition's bytes do not match its digest; else None."""
    if hashlib.sha256(definition.body).hexdigest() == definition.digest:
        return None
    return f"The definition of workflow {definition.workflow_id!r} does not match its digest."


def check_memory_event(body: bytes | None, memory_id: str) -> str | None:
    """Return what is wrong when ``body`` is not the event of this memory write; else None."""
    try:
        event = _decode_memory_event(body or b"")
    except msgspec.MsgspecError:
        event = None
    if event is None or (event.type, event.payload.memory_id) != (
        MemoryWritten.event_type,
        memory_id,
    ):
        return f"Something is remembered as {memory_id!r}, and no event tells of it."
    return None
