"""Read from the log which turns a participant should answer.

In a council the host's decisions say so. For people, and where no policy is set, an address or a
mention in the turn does.
"""

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from moot.core.councils.answer_loops import chain_limit, is_chain_held
from moot.core.events import Event
from moot.core.payloads.conversations import ConversationExchanged, ConversationOpened, Turn
from moot.core.payloads.councils import MemberInvitation, MemberReason, MembersInvited
from moot.core.state import tasks, thread_controls
from moot.core.state.conversation import Conversation
from moot.core.text import mentions
from moot.core.text.names import full_name, is_person


def turn_of(event: Event) -> Turn | None:
    """Return the turn of an opening or an exchange."""
    match event.payload:
        case ConversationOpened(initial_turn=turn) | ConversationExchanged(turn=turn):
            return turn
        case _:
            return None


TO_ALL = "a person spoke to all"
NAMED = "addressed by "
#: the address of any person in the conversation
ANYBODY = "user"
#: turns to others after which a request counts as passed over
MOST_PASSED = 3


class PendingRequest(Struct, frozen=True, kw_only=True):
    """A request to speak. ``seq`` is the event that asks, ``turn`` the turn to answer."""

    seq: int
    turn: int
    reason: str
    task: bool = False
    #: speaker of that turn, if the log was read that far back
    by: str | None = None
    #: whether any person may answer
    anybodys: bool = False


class RequestReply(Struct, frozen=True):
    """The requests that a turn answers: one, all, or those of the participant ``to``.

    ``anothers`` marks another person's turn. It answers only what any person may answer.
    """

    place: int | None = None
    to: str | None = None
    anothers: bool = False

    def settles(self, request: PendingRequest) -> bool:
        if self.anothers and not request.anybodys:
            return False
        if self.place is not None:
            return request.turn == self.place
        return self.to is None or request.by is None or _is_same_person(self.to, request.by)


class RequestReader:
    """Reads the log for the requests to one participant of one conversation.

    ``spoken_for`` means that the host speaks for it, so invitations of the host do not count.
    """

    def __init__(self, conversation: Conversation, name: str, spoken_for: bool = False) -> None:
        self._conversation, self._name, self._spoken_for = conversation, name, spoken_for
        member = conversation.floor.members.get(name) if conversation.floor is not None else None
        participant = conversation.state.members.get(name)
        self._is_member = member is not None
        profile = (
            member.profile if member is not None else participant.profile if participant else {}
        )
        #: other people are matched by their names only, never by a nickname
        others: dict[str, dict[str, Any]] = {
            person: {} for person in thread_controls.people_present(conversation.state)
        }
        self._profiles = {**others, name: dict(profile)}
        #: the newest turn that mentions the participant, and the newest turn of a person to all
        self._named: PendingRequest | None = None
        self._to_all: PendingRequest | None = None
        #: sequence of a turn -> its speaker
        self._speakers: dict[int, str] = {}
        #: the first request of agents since their loop was stopped; it waits for a person
        self.withheld: int | None = None

    def asked(self, event: Event) -> PendingRequest | None:
        """Return the request in this event, if it is for the participant.

        The reader must have read the turn before the host's decision about it.
        """
        if not self._is_here(event):
            return None
        if isinstance(event.payload, MembersInvited):
            return self._request_from_decision(event, event.payload)
        turn = turn_of(event)
        if turn is None or self._is_own_turn(turn):
            return None
        request = self._request_from_turn(event, turn)
        if request is not None and not self._is_member and self._is_held(event, turn):
            self.withheld = event.sequence if self.withheld is None else self.withheld
            return None
        return None if self._is_member else request

    def _is_held(self, event: Event, turn: Turn) -> bool:
        between_agents = turn.role == "agent" and not is_person(self._name)
        return between_agents and is_chain_held(self._conversation.chain, event.sequence)

    def waits(self, request: PendingRequest) -> bool:
        """Return whether the request waits until a person lets the agents continue."""
        floor, chain = self._conversation.floor, self._conversation.chain
        stopped = chain_limit(chain) if floor is None else floor.stopped
        between_agents = (
            request.by is not None and not is_person(request.by) and not is_person(self._name)
        )
        return between_agents and stopped is not None

    def answered(self, event: Event) -> RequestReply | None:
        """Return what the participant's turn answers, or another person's turn for a person."""
        turn = turn_of(event)
        if turn is None or not self._is_here(event):
            return None
        anothers = not self._is_own_turn(turn)
        if anothers and not (is_person(self._name) and is_person(_speaker_of(turn))):
            return None
        reply = turn.meta.get("replyTo") if isinstance(turn.meta, dict) else None
        if type(reply) is int:
            return RequestReply(reply, anothers=anothers)
        to = full_name(turn.to) if turn.to is not None and turn.to != "all" else None
        return RequestReply(to=to, anothers=anothers)

    def _is_own_turn(self, turn: Turn) -> bool:
        return _speaker_of(turn) == self._name

    def _is_here(self, event: Event) -> bool:
        talk = getattr(event.payload, "conversation_id", None)
        return talk == self._conversation.conversation_id

    def _request_from_decision(
        self, event: Event, invited: MembersInvited
    ) -> PendingRequest | None:
        rows: list[MemberReason | MemberInvitation] = [*(invited.called or []), *invited.wakes]
        for row in rows:
            if row.agent_id == self._name and self._counts(row):
                return self._request_from_row(event, row)
        return None

    def _counts(self, row: MemberReason | MemberInvitation) -> bool:
        """Return whether a row is a call, or an invitation that is not the host's to answer."""
        if isinstance(row, MemberReason):
            return True
        return row.task == "speak" and not self._spoken_for

    def _request_from_row(
        self, event: Event, row: MemberReason | MemberInvitation
    ) -> PendingRequest:
        invitation = row if isinstance(row, MemberInvitation) else None
        reason = row.reason or ""
        sequence = None if invitation is None else invitation.reply_to
        earlier = self._named if reason.startswith(NAMED) else None
        earlier = self._to_all if reason == TO_ALL else earlier
        if earlier is not None and sequence is None:
            return replace(earlier, seq=event.sequence, reason=reason)
        if sequence is None:
            cause = str(event.causation_id).rpartition(".")[2]
            sequence = int(cause) if cause.isascii() and cause.isdigit() else event.sequence
        task = invitation is not None and invitation.result
        by = self._speakers.get(sequence)
        return PendingRequest(seq=event.sequence, turn=sequence, reason=reason, task=task, by=by)

    def _request_from_turn(self, event: Event, turn: Turn) -> PendingRequest | None:
        sequence, to = event.sequence, turn.to
        reason, profiles = f"{NAMED}{turn.from_}", self._profiles
        task, by = tasks.turn_kind(turn) == "task", _speaker_of(turn)
        self._speakers[sequence] = by
        if to is not None and to != "all":
            for_anybody = full_name(to) == ANYBODY and is_person(self._name)
            if full_name(to) != self._name and not for_anybody:
                return None
            self._named = PendingRequest(
                seq=sequence, turn=sequence, reason=reason, task=task, by=by, anybodys=for_anybody
            )
            return self._named
        if self._name in mentions.find_mentions(turn.content, profiles).names:
            self._named = PendingRequest(seq=sequence, turn=sequence, reason=reason, by=by)
            return self._named
        if turn.role == "user" and "@" not in str(turn.content):
            self._to_all = PendingRequest(seq=sequence, turn=sequence, reason=TO_ALL, by=by)
            return (
                None
                if is_person(self._name) or self._conversation.floor is not None
                else self._to_all
            )
        return None


def _speaker_of(turn: Turn) -> str:
    return full_name(turn.speaker_id or turn.from_)


def _is_same_person(to: str, by: str) -> bool:
    return to == by or (to == ANYBODY and is_person(by))


class PendingRequests:
    """The unanswered requests to a participant, oldest first.

    A request counts as passed over when the participant speaks to others several times. A task
    stays open until its result.
    """

    def __init__(self, reader: RequestReader) -> None:
        self._reader = reader
        self.due: list[PendingRequest] = []
        #: sequence of a request -> turns of the participant to others since
        self._passed: dict[int, int] = {}

    def hear(self, event: Event) -> None:
        reply = self._reader.answered(event)
        if reply is not None:
            self.due = [request for request in self.due if self._stays(request, reply)]
        if (reply is None or reply.anothers) and (new_request := self._reader.asked(event)):
            self.due.append(new_request)

    def first_open(self) -> PendingRequest | None:
        """Return the oldest request that the participant may answer now."""
        return next((request for request in self.due if not self._reader.waits(request)), None)

    def _stays(self, request: PendingRequest, reply: RequestReply) -> bool:
        if reply.settles(request):
            return False
        if reply.anothers or reply.place is not None or request.task:
            return True
        self._passed[request.seq] = self._passed.get(request.seq, 0) + 1
        return self._passed[request.seq] < MOST_PASSED
