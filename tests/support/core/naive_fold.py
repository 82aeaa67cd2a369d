"""What a log says, worked out the slow way: from the whole log, with nothing of the fold.

The answers of the core are compared with these at every step of the random stories.
"""

from typing import Any

from msgspec import UNSET

from moot.core.events import Event, millis
from moot.core.state.conversation import Conversation
from moot.core.state.participants import joined_members
from moot.core.state.status import Status
from tests.support.event_payloads import payload_json

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
            found[node_of(event)] = payload_json(event)["kind"]
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
            if payload_json(event).get("childStatus") in WAITING:
                found[node_of(event)] = payload_json(event)["childStatus"]
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
        payload_json(event)[field[event.type]]
        for event in log
        if event.type in field and node_of(event) == node_id
    ]


def is_person(name: Any) -> bool:
    return isinstance(name, str) and (name == "user" or name[:5] == "user:")


def asked(log: list[Event], node_id: str) -> set[str]:
    """People a turn was addressed to who have not answered since, to all or to who asked; 'user' is
    whoever speaks first."""
    said = turns(log, node_id)
    found = set()
    for number, turn in enumerate(said):
        person = turn.get("to")
        to = (None, "all", turn["from"])
        later = [each["from"] for each in said[number + 1 :] if each.get("to") in to]
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
    return str(payload_json(waits[-1])["interruptId"]) if waits else ""


def votes(log: list[Event], node_id: str) -> dict[str, str]:
    """The last vote of each voter."""
    words = {"moot.approval.granted": "accept", "moot.approval.rejected": "reject"}
    return {
        payload_json(event)["principal"]: words[event.type]
        for event in log
        if event.type in words and payload_json(event)["gateId"] == node_id
    }


# -- threads -------------------------------------------------------------------------------------


class Thread:
    """What the controls of a conversation come to, each rule written down again (N.1)."""

    def __init__(self) -> None:
        self.paused = self.discussion = self.mentions = self.invited_auto = False
        self.muted: dict[str, int] = {}
        self.prodded: list[str] = []
        self.done: list[str] = []
        self.ttl_until: int | None = None
        self.members: dict[str, dict[str, Any]] = {}
        self.ever_invited = False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Thread) and vars(self) == vars(other)

    def __repr__(self) -> str:
        return f"Thread({vars(self)})"


def thread_shown(talk: Conversation) -> Thread:
    """The core's state of a thread in the words used here."""
    shown, state = Thread(), talk.state
    shown.paused, shown.discussion = state.paused, state.discussion
    shown.mentions, shown.invited_auto = state.allow_agent_mentions, state.invited_auto
    shown.muted, shown.ttl_until = dict(state.muted), state.ttl_until
    shown.prodded, shown.done = list(state.prodded), list(state.done)
    shown.members = {name: dict(each.profile) for name, each in joined_members(talk).items()}
    shown.ever_invited = state.by_invitation
    return shown


def turn_of(event: Event) -> dict[str, Any] | None:
    said = payload_json(event)
    found = said.get("initialTurn") or said.get("turn") or said.get("finalTurn")
    return found if event.type.startswith("conversation.") else None


def thread(log: list[Event], node_id: str = "convo") -> Thread:
    found = Thread()
    for event in log:
        if node_of(event) != node_id:
            continue
        said, at = payload_json(event), millis(event.timestamp)
        if event.type in ("conversation.opened", "conversation.exchanged"):
            speaker = full((turn_of(event) or {})["from"])
            found.prodded = [name for name in found.prodded if name != speaker]
            found.done = [name for name in found.done if name != speaker]
        elif event.type == "moot.participant.joined":
            before = found.members.get(said["participantId"], {})
            found.members[said["participantId"]] = {**before, **said["profile"]}
            found.ever_invited = True
        elif event.type == "moot.participant.left":
            del found.members[said["participantId"]]
        elif event.type == "moot.thread.control":
            _steer(found, said["content"], said["from"], at)
    return found


def _steer(found: Thread, content: dict[str, Any], sender: str, at: int) -> None:
    timed = isinstance(content.get("mute"), dict) and "seconds" in content["mute"]
    for name in _names(content.get("mute")):
        if not timed:
            found.muted[name] = 0
        elif _is_time(content["mute"]["seconds"]):
            found.muted[name] = at + int(content["mute"]["seconds"] * 1000)
    for name in _names(content.get("unmute")):
        found.muted.pop(name, None)
    found.paused = _flag(content, "pause", found.paused)
    for name in _names(content.get("prod")):
        if name not in found.prodded:
            found.prodded.append(name)
    if "prod" in content:
        found.done = [name for name in found.done if name not in found.prodded]
    if content.get("done") is True and full(sender) not in found.done:
        found.done.append(full(sender))
    if _is_time(content.get("ttl_seconds")):
        found.ttl_until = at + int(content["ttl_seconds"] * 1000)
    nobody = object()
    on: Any = _flag(content, "discussion", nobody)
    if on is not nobody:
        said = content["discussion"]
        asked_for = said.get("allow_agent_mentions") if isinstance(said, dict) else None
        found.discussion, found.mentions = on, asked_for if asked_for in (True, False) else on
    found.invited_auto = _flag(content, "invited_auto", found.invited_auto)


def _names(value: Any) -> list[str]:
    if isinstance(value, dict):
        value = value.get("targets")
    many = value if isinstance(value, list) else []
    return [full(name) for name in many if isinstance(name, str) and name]


def full(name: str) -> str:
    """A short name means an agent of this host."""
    return name if ":" in name or name in ("user", "system") else f"host:{name}"


def _flag(content: dict[str, Any], word: str, otherwise: Any) -> Any:
    value = content.get(word)
    if isinstance(value, dict):
        value = value.get("on", True)
    return value if value is True or value is False else otherwise


def _is_time(value: Any) -> bool:
    return type(value) in (int, float) and 0 < value <= 100 * 365 * 24 * 3600


def muted(found: Thread, name: str, event: Event) -> bool:
    """At the event's own time; a turn is judged a moment before it is recorded."""
    until = found.muted.get(full(name))
    return until is not None and (until == 0 or millis(event.timestamp) < until)


def may_speak(log: list[Event], event: Event, speaker: str) -> bool:
    """Whether the roster let an agent speak at that point of the log."""
    opening = event if event.type == "conversation.opened" else None
    opened = opening or next(each for each in log if each.type == "conversation.opened")
    roster = payload_json(opened).get("participants")
    if roster is not None:
        return speaker in [member["agentId"] for member in roster]
    now = thread(log)
    return full(speaker) in now.members or not now.ever_invited
