"""Render a conversation's log in the format of Agent Bridge.

Participants appear under short handles, and the host under its own name. Every rendered event has a
time of its own.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from moot.core.conversations.participants import is_reserved
from moot.core.events import Event, event_id, iso, micros
from moot.core.state.conversation import Conversation
from moot.core.state.floor import FAILED_OUTCOMES
from moot.core.text.names import full_name, is_person

#: the host's handle
COORDINATOR = "moot"
#: the recipient of an event without an address
ALL = "all"
COORDINATOR_TAGS = ["coordinator"]
#: key in the rendered metadata -> key of the turn in the log
ACTOR_KEYS = {"edited_by": "editedBy", "spoken_by": "spokenBy"}
#: tag of the host's turn about a member that failed
ERROR_TAG = "error"
#: metadata keys and tags that only the host may write
HOST_META_KEYS = ("edited_by", "spoken_by", "outcome", "via")
HOST_TAGS = (*COORDINATOR_TAGS, ERROR_TAG, "closed")

BridgeEvent = dict[str, Any]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def handle_from_name(name: Any) -> str:
    """Return the short handle of a participant.

    An agent whose short name is reserved or looks like a person's keeps its full name. Logs from
    other hosts may hold such agents.
    """
    text = str(name)
    short = text.removeprefix("host:")
    if text == "system":
        return COORDINATOR
    return text if not short or is_person(short) or is_reserved(short) else short


def name_from_handle(handle: str) -> str:
    return "system" if handle == COORDINATOR else full_name(handle)


def micros_from_time(text: str) -> int:
    """Return the microseconds since the epoch of an ISO 8601 time, in UTC unless it has a zone.

    Raise ValueError for any other text.
    """
    time = datetime.fromisoformat(text)
    return ((time if time.tzinfo else time.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND


class BridgeRenderer:
    """Renders the events of one conversation, in the order of the log.

    All events of one decision have the same time in the log. Here each event is one microsecond
    later than the one before it; the host leaves room for that. Rendering must begin with the first
    event of a decision.
    """

    def __init__(self, conversation: Conversation, thread: str, title: str, founder: str) -> None:
        self._conversation, self._thread = conversation, thread
        self._title, self._founder = title, founder
        self._time, self._offset, self._micros = "", 0, 0
        #: the host's next turn reports a failure
        self._failed = False

    def tell(self, event: Event) -> list[BridgeEvent]:
        """Return the rendered events, usually none or one."""
        if event.timestamp == self._time:
            self._offset += 1
        else:
            self._time, self._offset, self._micros = event.timestamp, 0, micros(event.timestamp)
            self._failed = False
        render = RENDERERS.get(event.type)
        if (
            render is None
            or event.payload.get("conversationId") != self._conversation.conversation_id
        ):
            return []
        return render(self, event, event.payload)

    def _event(
        self, event: Event, type_: str, sender: Any, content: Any, **fields: Any
    ) -> BridgeEvent:
        return {
            "id": event.event_id,
            "ts": iso(self._micros + self._offset),
            "thread": self._thread,
            "seq": event.sequence,
            "type": type_,
            "from": handle_from_name(sender),
            "to": ALL,
            "content": content,
            "meta": {"tags": []},
            **fields,
        }

    def _control_by_host(self, event: Event, content: Any) -> list[BridgeEvent]:
        """Render a decision of the host under its own name."""
        return [
            self._event(event, "control", COORDINATOR, content, meta={"tags": COORDINATOR_TAGS})
        ]

    def _render_opened(self, event: Event, payload: BridgeEvent) -> list[BridgeEvent]:
        """Render the new thread, and the opening turn of a council as a message.

        The message has the event's time. The thread takes the time before it, which no rendered
        event uses.
        """
        created = self._event(event, "thread.created", self._founder, self._title)
        turn = payload.get("initialTurn")
        if not isinstance(turn, dict) or turn.get("role") == "system":
            return [created]
        created["id"] = f"{event.event_id}.0"
        created["ts"] = iso(self._micros + max(0, self._offset - 1))
        return [created, self._turn_event(event, turn)]

    def _render_turn(self, event: Event, payload: BridgeEvent) -> list[BridgeEvent]:
        turn = payload.get("turn")
        return [self._turn_event(event, turn)] if isinstance(turn, dict) else []

    def _render_closed(self, event: Event, payload: BridgeEvent) -> list[BridgeEvent]:
        turn = payload.get("finalTurn")
        if not isinstance(turn, dict):
            return []
        rendered = self._turn_event(event, turn)
        rendered["meta"] = {
            **rendered["meta"],
            "tags": [*rendered["meta"]["tags"], "closed"],
            "outcome": payload.get("outcome"),
        }
        return [rendered]

    def _note_failure(self, event: Event, payload: BridgeEvent) -> list[BridgeEvent]:
        """Render nothing, but remember a failure: the host's turn about it follows."""
        self._failed = str(payload.get("outcome")) in FAILED_OUTCOMES
        return []

    def _tags(self, turn: BridgeEvent, value: Any) -> list[Any]:
        tags = list(value) if isinstance(value, list) else []
        if turn.get("role") != "system":
            return [tag for tag in tags if tag not in HOST_TAGS]
        errors, self._failed = [ERROR_TAG] if self._failed else [], False
        return [*COORDINATOR_TAGS, *errors, *tags]

    def _turn_event(self, event: Event, turn: BridgeEvent) -> BridgeEvent:
        raw_meta = turn.get("meta")
        meta = dict(raw_meta) if isinstance(raw_meta, dict) else {}
        kind = meta.pop("kind", "message")
        tags = self._tags(turn, meta.pop("tags", []))
        reply = meta.pop("replyTo", None)
        meta = {key: value for key, value in meta.items() if key not in HOST_META_KEYS}
        if isinstance(reply, int | str):  # a sequence in this log, also in a fork
            meta["reply_to"] = event_id(event.run_id, reply) if type(reply) is int else reply
        if turn.get("role") == "agent" and turn.get("via") == COORDINATOR:
            meta["via"] = COORDINATOR  # the host asked the model and passes on its answer
        meta |= {
            word: handle_from_name(turn[key]) for word, key in ACTOR_KEYS.items() if key in turn
        }
        return self._event(
            event,
            kind if kind in ("task", "result") else "message",
            turn.get("speakerId") or turn.get("from"),
            turn.get("content"),
            turn=turn.get("turnIndex"),
            to=handle_from_name(turn.get("to", ALL)),
            meta={**meta, "tags": tags},
        )

    def _render_control(self, event: Event, payload: BridgeEvent) -> list[BridgeEvent]:
        if payload.get("from") == "system":
            return self._control_by_host(event, payload.get("content"))
        return [self._event(event, "control", payload.get("from"), payload.get("content"))]

    def _control_by(
        self, event: Event, payload: BridgeEvent, content: BridgeEvent
    ) -> list[BridgeEvent]:
        return [self._event(event, "control", payload.get("by"), content)]

    def _render_joined(self, event: Event, payload: BridgeEvent) -> list[BridgeEvent]:
        invited = {
            "participant_id": handle_from_name(payload.get("participantId")),
            "profile": payload.get("profile", {}),
        }
        changed = {"changed": True} if payload.get("changed") is True else {}
        return self._control_by(event, payload, {"invite": {**invited, **changed}})

    def _render_left(self, event: Event, payload: BridgeEvent) -> list[BridgeEvent]:
        participant = {"participant_id": handle_from_name(payload.get("participantId"))}
        return self._control_by(event, payload, {"uninvite": participant})

    def _render_renamed(self, event: Event, payload: BridgeEvent) -> list[BridgeEvent]:
        return [self._event(event, "thread.renamed", payload.get("by"), payload.get("title"))]

    def _render_linked(self, event: Event, payload: BridgeEvent) -> list[BridgeEvent]:
        link = {"thread": payload.get("threadId"), "name": payload.get("title")}
        if payload.get("back") is True:
            rendered = {**link, "back": True}
            return [
                self._event(
                    event, "thread.linked", COORDINATOR, rendered, meta={"tags": COORDINATOR_TAGS}
                )
            ]
        if payload.get("closed") is True:
            rendered = {**link, "closed": True, "summary": payload.get("summary")}
            return [
                self._event(
                    event, "thread.linked", COORDINATOR, rendered, meta={"tags": COORDINATOR_TAGS}
                )
            ]
        return [self._event(event, "thread.linked", payload.get("by"), link)]

    def _render_presence(self, event: Event, payload: BridgeEvent) -> list[BridgeEvent]:
        content = {"state": payload.get("state")}
        return [self._event(event, "presence", payload.get("from"), content)]

    def _render_policy(self, event: Event, payload: BridgeEvent) -> list[BridgeEvent]:
        if "by" not in payload:
            return []
        return self._control_by(event, payload, {"participation": payload.get("policy")})

    def _render_invitations(self, event: Event, payload: BridgeEvent) -> list[BridgeEvent]:
        content: BridgeEvent = {}
        for word in ("wakes", "skipped", "called"):
            rows = payload.get(word)
            entries = [
                {
                    "participant_id": handle_from_name(row.get("agentId")),
                    "reason": row.get("reason"),
                }
                for row in (rows if isinstance(rows, list) else [])
                if isinstance(row, dict)
            ]
            content |= {word: entries} if entries else {}
        return self._control_by_host(event, content) if content else []

    def _render_stop(self, event: Event, payload: BridgeEvent) -> list[BridgeEvent]:
        return self._control_by_host(event, {"stopped": payload.get("reason")})

    def _render_continue(self, event: Event, payload: BridgeEvent) -> list[BridgeEvent]:
        rounds = payload.get("rounds")
        return self._control_by(
            event, payload, {"continue": {"rounds": rounds} if rounds else True}
        )

    def _render_vote(self, event: Event, payload: BridgeEvent) -> list[BridgeEvent]:
        return self._control_by(event, payload, {"vote": {"decision": payload.get("decision")}})

    def _render_held_turn(self, event: Event, payload: BridgeEvent) -> list[BridgeEvent]:
        turn = payload.get("turn")
        speaker = handle_from_name(turn.get("speakerId")) if isinstance(turn, dict) else ""
        held = {
            "held": payload.get("held"),
            "participant_id": speaker,
            "reason": payload.get("reason"),
        }
        return self._control_by_host(event, {"held": held})

    def _render_settled_turn(self, event: Event, payload: BridgeEvent) -> list[BridgeEvent]:
        word = "admit" if event.type == "moot.turn.admitted" else "drop"
        return self._control_by(event, payload, {word: payload.get("held")})

    def _render_tool_request(self, event: Event, payload: BridgeEvent) -> list[BridgeEvent]:
        request = {"ask": payload.get("askId"), "tool": payload.get("toolName")}
        return [self._event(event, "control", payload.get("agentId"), {"asks": request})]

    def _render_tool_answer(self, event: Event, payload: BridgeEvent) -> list[BridgeEvent]:
        word = "allow" if payload.get("allowed") else "deny"
        return self._control_by(event, payload, {word: payload.get("askId")})


RENDERERS: dict[str, Callable[[BridgeRenderer, Event, BridgeEvent], list[BridgeEvent]]] = {
    "conversation.opened": BridgeRenderer._render_opened,
    "conversation.exchanged": BridgeRenderer._render_turn,
    "conversation.closed": BridgeRenderer._render_closed,
    "moot.thread.control": BridgeRenderer._render_control,
    "moot.thread.renamed": BridgeRenderer._render_renamed,
    "moot.thread.linked": BridgeRenderer._render_linked,
    "moot.presence.changed": BridgeRenderer._render_presence,
    "moot.participant.joined": BridgeRenderer._render_joined,
    "moot.participant.left": BridgeRenderer._render_left,
    "moot.participation.set": BridgeRenderer._render_policy,
    "moot.participation.decided": BridgeRenderer._render_invitations,
    "moot.participation.stopped": BridgeRenderer._render_stop,
    "moot.participation.answered": BridgeRenderer._note_failure,
    "moot.participation.continued": BridgeRenderer._render_continue,
    "moot.vote.called": BridgeRenderer._render_vote,
    "moot.turn.held": BridgeRenderer._render_held_turn,
    "moot.turn.admitted": BridgeRenderer._render_settled_turn,
    "moot.turn.dropped": BridgeRenderer._render_settled_turn,
    "moot.tool.asked": BridgeRenderer._render_tool_request,
    "moot.tool.answered": BridgeRenderer._render_tool_answer,
}
