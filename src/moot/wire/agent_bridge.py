"""Answers of the Agent Bridge thread API."""

from typing import Any

from msgspec import Struct, field

from moot.wire.json import JsonObject


class BridgeThread(Struct, frozen=True):
    """A thread with its id and name."""

    id: str
    name: str = ""
    created_at: str = ""
    updated_at: str = ""


class BridgeThreadList(Struct, frozen=True):
    """All threads."""

    threads: list[BridgeThread] = []


class BridgeEvent(Struct, frozen=True):
    """One event of a thread. ``seq`` is the cursor, ``turn`` the number of a turn."""

    id: str
    ts: str
    seq: int
    type: str
    sender: str = field(name="from")
    to: str = "all"
    thread: str = ""
    content: Any = None
    meta: JsonObject = {}
    turn: int | None = None


class BridgeEventList(Struct, frozen=True):
    """Events of a thread, oldest first."""

    events: list[BridgeEvent] = []
    count: int = 0
    #: more events follow; continue after the last one
    more: bool = False


class BridgePostResult(Struct, frozen=True):
    """The answer to a posted event."""

    received: bool
    event: BridgeEvent | None = None
    #: why the event was stored but has no effect
    warning: str | None = None


class BridgeThreadState(Struct, frozen=True):
    """The controls of a thread."""

    thread: str
    state: JsonObject = {}


class BridgePresence(Struct, frozen=True):
    """The presence of one participant."""

    state: str
    updated_at: str = ""
    details: Any = None
    stale: bool = False


class BridgePresenceList(Struct, frozen=True):
    """The presence of all participants of a thread."""

    thread: str
    ttl_seconds: int = 0
    presence: dict[str, BridgePresence] = {}


class BridgePresenceResult(Struct, frozen=True):
    """The answer to a presence report."""

    received: bool
    presence: JsonObject = {}


class BridgePing(Struct, frozen=True):
    """The answer to a ping."""

    status: str
    server: str = ""
    version: str = ""
    timestamp: str = ""
