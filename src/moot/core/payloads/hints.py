"""The hints of an event: facts for the fold that a closed payload has no room for."""

from typing import Any

from msgspec import UNSET, Struct


class HeldOutputs(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The outputs of an attested child, until a person has reviewed them."""

    child: str
    workflow: str
    #: a secret output is None here and is sealed beside the log
    harvest: dict[str, Any]
    checksum: str | None = None


class EventHints(Struct, frozen=True, kw_only=True, rename="camel"):
    """All hints that this host knows. An absent hint is None, or UNSET where null is a value."""

    #: of a node's start: the nodes of a loop that start over, and the revision of memory
    again: list[str] | None = None
    memory_revision: int | None = None
    #: of a copied event: the new due time
    due_at: str | None = None
    #: of a channel: the rule of the write, and whether the message is a turn
    reducer: str | None = None
    ttl_ms: int = 0
    max_size: int = 0
    turn: bool = False
    #: of a report: the invitation of the member that sent it
    wake: str | None = None
    #: of a child that begins: its share of the run tree and the number of its worker
    tree: int | None = None
    worker: int | None = None
    #: of a request to a peer
    inputs: dict[str, Any] = {}
    depth: int = 0
    detached: bool = False
    #: of a peer's answer: the request, the peer, and the request if its outcome is not known
    ask_id: str | None = None
    host_id: str = ""
    unsure: str | None = None
    why: str = "not-needed"
    #: of a child's end: its status, its id if it must be stopped, its result, and the size of its
    #: run tree
    child_status: str | None = None
    child_run_id: str | None = None
    result: Any = UNSET
    runs: int | None = None
    held: HeldOutputs | None = None
    #: of a decision: the dispatch node that a person decided for, the routing of a question, the
    #: person's answer or rejection, and the editor
    dispatch: str | None = None
    routing: str | None = None
    answer: Any = UNSET
    rejected: bool = False
    edited_by: str | None = None
    #: of a forked child: run of its family -> its number of copied events
    given: dict[str, int] = {}


NO_HINTS = EventHints()
