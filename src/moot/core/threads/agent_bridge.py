"""Render a conversation's log in the format of Agent Bridge.

Participants appear under short handles, and the host under its own name. Every rendered event has a
time of its own.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from moot.core.events import Event, event_id, iso, micros
from moot.core.payloads.conversations import (
    ConversationEnded,
    ConversationExchanged,
    ConversationOpened,
    ParticipantJoined,
    ParticipantLeft,
    PresenceChanged,
    ThreadControlled,
    ThreadLinked,
    ThreadRenamed,
    Turn,
)
from moot.core.payloads.councils import (
    CouncilContinued,
    CouncilStopped,
    InvitationAnswered,
    MemberInvitation,
    MemberReason,
    MembersInvited,
    PolicySet,
    ToolAnswered,
    ToolAsked,
    TurnAdmitted,
    TurnDropped,
    TurnHeld,
    VoteCalled,
)
from moot.core.state.conversation import Conversation
from moot.core.state.floor import FAILED_OUTCOMES
from moot.core.text.names import COORDINATOR, handle_from_name
from moot.core.threads.rendered_event import RenderedEvent

#: the recipient of an event without an address
ALL = "all"
COORDINATOR_TAGS = ["coordinator"]
#: tag of the host's turn about a member that failed
ERROR_TAG = "error"
#: metadata keys and tags that only the host may write
HOST_META_KEYS = ("edited_by", "spoken_by", "outcome", "via")
HOST_TAGS = (*COORDINATOR_TAGS, ERROR_TAG, "closed")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


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

    def tell(self, event: Event) -> list[RenderedEvent]:
        """Return the rendered events, usually none or one."""
        if event.timestamp == self._time:
            self._offset += 1
        else:
            self._time, self._offset, self._micros = event.timestamp, 0, micros(event.timestamp)
            self._failed = False
        render = RENDERERS.get(type(event.payload))
        talk = getattr(event.payload, "conversation_id", None)
        if render is None or talk != self._conversation.conversation_id:
            return []
        return render(self, event, event.payload)

    def _event(
        self, event: Event, type_: str, sender: Any, content: Any, **fields: Any
    ) -> RenderedEvent:
        defaults = {"to": ALL, "meta": {"tags": []}}
        return RenderedEvent(
            id=event.event_id,
            ts=iso(self._micros + self._offset),
            thread=self._thread,
            seq=event.sequence,
            type=type_,
            sender=handle_from_name(sender),
            content=content,
            **(defaults | fields),
        )

    def _control_by_host(self, event: Event, content: Any) -> list[RenderedEvent]:
        """Render a decision of the host under its own name."""
        return [
            self._event(event, "control", COORDINATOR, content, meta={"tags": COORDINATOR_TAGS})
        ]

    def _render_opened(self, event: Event, payload: ConversationOpened) -> list[RenderedEvent]:
        """Render the new thread, and the opening turn of a council as a message.

        The message has the event's time. The thread takes the time before it, which no rendered
        event uses.
        """
        created = self._event(event, "thread.created", self._founder, self._title)
        turn = payload.initial_turn
        if turn.role == "system":
            return [created]
        before = iso(self._micros + max(0, self._offset - 1))
        created = replace(created, id=f"{event.event_id}.0", ts=before)
        return [created, self._turn_event(event, turn)]

    def _render_turn(self, event: Event, payload: ConversationExchanged) -> list[RenderedEvent]:
        return [self._turn_event(event, payload.turn)]

    def _render_closed(self, event: Event, payload: ConversationEnded) -> list[RenderedEvent]:
        rendered = self._turn_event(event, payload.final_turn)
        tags = [*rendered.meta["tags"], "closed"]
        return [replace(rendered, meta={**rendered.meta, "tags": tags, "outcome": payload.outcome})]

    def _note_failure(self, event: Event, payload: InvitationAnswered) -> list[RenderedEvent]:
        """Render nothing, but remember a failure: the host's turn about it follows."""
        self._failed = payload.outcome in FAILED_OUTCOMES
        return []

    def _tags(self, turn: Turn, value: Any) -> list[Any]:
        tags = list(value) if isinstance(value, list) else []
        if turn.role != "system":
            return [tag for tag in tags if tag not in HOST_TAGS]
        errors, self._failed = [ERROR_TAG] if self._failed else [], False
        return [*COORDINATOR_TAGS, *errors, *tags]

    def _turn_event(self, event: Event, turn: Turn) -> RenderedEvent:
        meta = dict(turn.meta) if isinstance(turn.meta, dict) else {}
        kind = meta.pop("kind", "message")
        tags = self._tags(turn, meta.pop("tags", []))
        reply = meta.pop("replyTo", None)
        meta = {key: value for key, value in meta.items() if key not in HOST_META_KEYS}
        if isinstance(reply, int | str):  # a sequence in this log, also in a fork
            meta["reply_to"] = event_id(event.run_id, reply) if type(reply) is int else reply
        if turn.role == "agent" and turn.via == COORDINATOR:
            meta["via"] = COORDINATOR  # the host asked the model and passes on its answer
        actors = {word: getattr(turn, word) for word in ("edited_by", "spoken_by")}
        meta |= {word: handle_from_name(name) for word, name in actors.items() if name is not None}
        return self._event(
            event,
            kind if kind in ("task", "result") else "message",
            turn.speaker_id or turn.from_,
            turn.body,
            turn=turn.turn_index,
            to=handle_from_name(ALL if turn.to is None else turn.to),
            meta={**meta, "tags": tags},
        )

    def _render_control(self, event: Event, payload: ThreadControlled) -> list[RenderedEvent]:
        if payload.from_ == "system":
            return self._control_by_host(event, payload.content)
        return [self._event(event, "control", payload.from_, payload.content)]

    def _control_by(
        self, event: Event, by: str | None, content: Mapping[str, object]
    ) -> list[RenderedEvent]:
        return [self._event(event, "control", by, content)]

    def _render_joined(self, event: Event, payload: ParticipantJoined) -> list[RenderedEvent]:
        invited = {
            "participant_id": handle_from_name(payload.participant_id),
            "profile": payload.profile,
        }
        changed = {"changed": True} if payload.changed else {}
        return self._control_by(event, payload.by, {"invite": {**invited, **changed}})

    def _render_left(self, event: Event, payload: ParticipantLeft) -> list[RenderedEvent]:
        participant = {"participant_id": handle_from_name(payload.participant_id)}
        return self._control_by(event, payload.by, {"uninvite": participant})

    def _render_renamed(self, event: Event, payload: ThreadRenamed) -> list[RenderedEvent]:
        return [self._event(event, "thread.renamed", payload.by, payload.title)]

    def _render_linked(self, event: Event, payload: ThreadLinked) -> list[RenderedEvent]:
        link = {"thread": payload.thread_id, "name": payload.title}
        kind, meta = "thread.linked", {"tags": COORDINATOR_TAGS}
        if payload.back:
            return [self._event(event, kind, COORDINATOR, {**link, "back": True}, meta=meta)]
        if payload.closed:
            ended = {**link, "closed": True, "summary": payload.summary}
            return [self._event(event, kind, COORDINATOR, ended, meta=meta)]
        return [self._event(event, kind, payload.by, link)]

    def _render_presence(self, event: Event, payload: PresenceChanged) -> list[RenderedEvent]:
        content = {"state": payload.state}
        return [self._event(event, "presence", payload.from_, content)]

    def _render_policy(self, event: Event, payload: PolicySet) -> list[RenderedEvent]:
        if payload.by is None:
            return []
        return self._control_by(event, payload.by, {"participation": payload.policy})

    def _render_invitations(self, event: Event, payload: MembersInvited) -> list[RenderedEvent]:
        content: dict[str, object] = {}
        for word in ("wakes", "skipped", "called"):
            rows: list[MemberReason | MemberInvitation] = getattr(payload, word) or []
            entries = [
                {"participant_id": handle_from_name(row.agent_id), "reason": row.reason}
                for row in rows
            ]
            content |= {word: entries} if entries else {}
        return self._control_by_host(event, content) if content else []

    def _render_stop(self, event: Event, payload: CouncilStopped) -> list[RenderedEvent]:
        return self._control_by_host(event, {"stopped": payload.reason})

    def _render_continue(self, event: Event, payload: CouncilContinued) -> list[RenderedEvent]:
        rounds = payload.rounds
        return self._control_by(
            event, payload.by, {"continue": {"rounds": rounds} if rounds else True}
        )

    def _render_vote(self, event: Event, payload: VoteCalled) -> list[RenderedEvent]:
        return self._control_by(event, payload.by, {"vote": {"decision": payload.decision}})

    def _render_held_turn(self, event: Event, payload: TurnHeld) -> list[RenderedEvent]:
        speaker = handle_from_name(payload.turn.speaker_id)
        held = {"held": payload.held, "participant_id": speaker, "reason": payload.reason}
        return self._control_by_host(event, {"held": held})

    def _render_settled_turn(
        self, event: Event, payload: TurnAdmitted | TurnDropped
    ) -> list[RenderedEvent]:
        word = "admit" if isinstance(payload, TurnAdmitted) else "drop"
        return self._control_by(event, payload.by, {word: payload.held})

    def _render_tool_request(self, event: Event, payload: ToolAsked) -> list[RenderedEvent]:
        request = {"ask": payload.ask_id, "tool": payload.tool_name}
        return [self._event(event, "control", payload.agent_id, {"asks": request})]

    def _render_tool_answer(self, event: Event, payload: ToolAnswered) -> list[RenderedEvent]:
        word = "allow" if payload.allowed else "deny"
        return self._control_by(event, payload.by, {word: payload.ask_id})


RENDERERS: dict[type, Callable[[BridgeRenderer, Event, Any], list[RenderedEvent]]] = {
    ConversationOpened: BridgeRenderer._render_opened,
    ConversationExchanged: BridgeRenderer._render_turn,
    ConversationEnded: BridgeRenderer._render_closed,
    ThreadControlled: BridgeRenderer._render_control,
    ThreadRenamed: BridgeRenderer._render_renamed,
    ThreadLinked: BridgeRenderer._render_linked,
    PresenceChanged: BridgeRenderer._render_presence,
    ParticipantJoined: BridgeRenderer._render_joined,
    ParticipantLeft: BridgeRenderer._render_left,
    PolicySet: BridgeRenderer._render_policy,
    MembersInvited: BridgeRenderer._render_invitations,
    CouncilStopped: BridgeRenderer._render_stop,
    InvitationAnswered: BridgeRenderer._note_failure,
    CouncilContinued: BridgeRenderer._render_continue,
    VoteCalled: BridgeRenderer._render_vote,
    TurnHeld: BridgeRenderer._render_held_turn,
    TurnAdmitted: BridgeRenderer._render_settled_turn,
    TurnDropped: BridgeRenderer._render_settled_turn,
    ToolAsked: BridgeRenderer._render_tool_request,
    ToolAnswered: BridgeRenderer._render_tool_answer,
}
