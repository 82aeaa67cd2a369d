"""What a log says, worked out the slow way: from the whole log, with nothing of the fold.

The answers of the core are compared with these at every step of the random stories.
"""

from typing import Any

from msgspec import UNSET

from moot.core.events import Event, millis
from moot.core.status import Status

#: how a child may be shown by its parent while it lives
WAITING = ("waiting-approval", "waiting-input", "waiting-external")
SHOWN = ("running", *WAITING)
ENDED = {"run.completed": "completed", "run.failed": "failed", "run.cancelled": "cancelled"}
NODE_OVER = ("node.completed", "node.failed", "node.cancelled", "node.skipped")

#: id of the interrupt, node, kind
Row = tuple[str, str, str]


def node_of(event: Event) -> str:
    return "" if event.node_id is UNSET else event.node_id


def questions(log: list[Event]) -> dict[str, str]:
    """Node -> kind of its open question, oldest first."""
    found: dict[str, str] = {}
    for event in log:
        if event.type == "interrupt.requested":
            found[node_of(event)] = event.payload["kind"]
        elif event.type == "interrupt.resolved" or event.type in NODE_OVER:
            found.pop(node_of(event), None)
        elif event.type in ENDED:
            found = {}
    return found


def status(log: list[Event]) -> Status:
    """The end, else paused, else how it waits when all that holds it open waits, else running."""
    last = log[-1].type
    if last in ENDED:
        return Status(ENDED[last])
    marks = [event.type for event in log if event.type in ("run.paused", "run.resumed")]
    if marks and marks[-1] == "run.paused":
        return Status.PAUSED
    asking, shown = questions(log), _mirrored(log)
    if not _holding(log) - asking.keys() - shown.keys():
        for kind in asking.values():
            return _status_of(kind)
        for found in shown.values():
            return Status(found)
    return Status.RUNNING


def _status_of(kind: str) -> Status:
    if kind == "external-event":
        return Status.WAITING_EXTERNAL
    if kind in ("clarification", "custom"):
        return Status.WAITING_INPUT
    return Status.WAITING_APPROVAL


def _holding(log: list[Event]) -> set[str]:
    """The nodes that have begun and not ended."""
    begun = {node_of(event) for event in log if event.type == "node.started"}
    return begun - {node_of(event) for event in log if event.type in NODE_OVER}


def _mirrored(log: list[Event]) -> dict[str, str]:
    """Node -> how the child it waits for waits."""
    found: dict[str, str] = {}
    for event in log:
        if event.type == "node.dispatched":
            found.pop(node_of(event), None)
            if event.payload.get("childStatus") in WAITING:
                found[node_of(event)] = event.payload["childStatus"]
        elif event.type in ("node.started", "node.retried", *NODE_OVER):
            found.pop(node_of(event), None)
    return found


def active_ms(log: list[Event]) -> int:
    """How long the run was running: neither paused nor waiting nor over."""
    spent, since = 0, None
    for number, event in enumerate(log):
        running = status(log[: number + 1]) is Status.RUNNING
        if running and since is None:
            since = millis(event.timestamp)
        elif not running and since is not None:
            spent, since = spent + millis(event.timestamp) - since, None
    return spent


# -- conversations -------------------------------------------------------------------------------


def turns(log: list[Event], node_id: str = "convo") -> list[dict[str, Any]]:
    """The turns of a conversation in order, with the opening and the final one."""
    field = {
        "conversation.opened": "initialTurn", "conversation.exchanged": "turn",
        "conversation.closed": "finalTurn",
    }  # fmt: skip
    return [
        event.payload[field[event.type]]
        for event in log
        if event.type in field and node_of(event) == node_id
    ]


def is_person(name: Any) -> bool:
    return isinstance(name, str) and (name == "user" or name[:5] == "user:")


def asked(log: list[Event], node_id: str) -> set[str]:
    """People a turn was addressed to who have not spoken since; 'user' is whoever speaks first."""
    said = turns(log, node_id)
    found = set()
    for number, turn in enumerate(said):
        person = turn.get("to")
        later = [each["from"] for each in said[number + 1 :]]
        answers = is_person if person == "user" else lambda name, who=person: name == who
        if is_person(person) and not any(answers(name) for name in later):
            found.add(person)
    return found


def inbox(log: list[Event]) -> list[Row]:
    """DECISIONS 12: a row for each open question that waits for a person."""
    found = []
    for node_id, kind in questions(log).items():
        if kind == "external-event":
            continue
        talk = kind.startswith("conversation.")
        if talk and not asked(log, node_id):
            continue
        found.append((_interrupt(log, node_id), node_id, "conversation" if talk else kind))
    return found


def _interrupt(log: list[Event], node_id: str) -> str:
    waits = [e for e in log if e.type == "node.suspended" and node_of(e) == node_id]
    return str(waits[-1].payload["interruptId"]) if waits else ""
