"""What the thread API answers."""

from typing import Any

from msgspec import Struct, field

from moot.wire.runs import Data


class Named(Struct, frozen=True):
    """A thread, by its id and its name."""

    id: str
    name: str = ""
    created_at: str = ""
    updated_at: str = ""


class Index(Struct, frozen=True):
    threads: list[Named] = []


class Told(Struct, frozen=True):
    """One event of a thread. ``seq`` is what to go on from, ``turn`` how a turn is numbered."""

    id: str
    ts: str
    seq: int
    type: str
    sender: str = field(name="from")
    to: str = "all"
    thread: str = ""
    content: Any = None
    meta: Data = {}
    turn: int | None = None


class Events(Struct, frozen=True):
    events: list[Told] = []
    count: int = 0
    #: there is more than one answer holds: go on after the last
    more: bool = False


class Received(Struct, frozen=True):
    received: bool
    event: Told | None = None
    #: what is wrong with it, where it was kept and changes nothing
    warning: str | None = None


class Steered(Struct, frozen=True):
    thread: str
    state: Data = {}


class Here(Struct, frozen=True):
    state: str
    updated_at: str = ""
    details: Any = None
    stale: bool = False


class Present(Struct, frozen=True):
    thread: str
    ttl_seconds: int = 0
    presence: dict[str, Here] = {}


class Heard(Struct, frozen=True):
    received: bool
    presence: Data = {}


class Pong(Struct, frozen=True):
    status: str
    server: str = ""
    version: str = ""
    timestamp: str = ""
