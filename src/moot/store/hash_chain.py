"""How a log is chained and which bytes belong where; shared by every store that verifies."""

import hashlib

import msgspec
from msgspec import Struct

from moot.store.protocol import Definition


class _Stamp(Struct, rename="camel"):
    run_id: str
    sequence: int


class _Named(Struct, rename="camel"):
    memory_id: str


class _Written(Struct):
    type: str
    payload: _Named


_decode_written = msgspec.json.Decoder(_Written).decode
_decode_stamp = msgspec.json.Decoder(_Stamp).decode


def place(tenant: str, run_id: str) -> bytes:
    """What ties a hash to one run of one tenant."""
    return f"{tenant}\0{run_id}\0".encode()


def link(previous: bytes, where: bytes, sequence: int, body: bytes) -> bytes:
    """The hash of one event; ``previous`` is empty for the first."""
    chained = b"%b%b%d\0%b" % (previous, where, sequence, body)
    return hashlib.blake2b(chained, digest_size=16).digest()


def misplaced(body: bytes, run_id: str, sequence: int) -> str | None:
    """What is wrong when an event does not say that it stands here."""
    try:
        stamp = _decode_stamp(body)
    except msgspec.MsgspecError:
        return "The event is not JSON with a runId and a sequence."
    if (stamp.run_id, stamp.sequence) != (run_id, sequence):
        return f"The event says it is number {stamp.sequence} of run {stamp.run_id!r}."
    return None


def altered(definition: Definition) -> str | None:
    """What is wrong when a definition's bytes are not those its digest names."""
    if hashlib.sha256(definition.body).hexdigest() == definition.digest:
        return None
    return f"The definition of workflow {definition.workflow_id!r} does not match its digest."


def unattested(body: bytes | None, memory_id: str) -> str | None:
    """What is wrong when no event in the place of a memory's write tells of it."""
    try:
        found = _decode_written(body or b"")
    except msgspec.MsgspecError:
        found = None
    if found is None or (found.type, found.payload.memory_id) != ("memory.written", memory_id):
        return f"Something is remembered as {memory_id!r}, and no event tells of it."
    return None
