"""Fold conversations and threads: turns, controls, links, titles and participants.

The state holds counters, participants and references only. The text of a turn stays in the log.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Struct, field

from moot.core.events import Event
from moot.core.payloads.base import Payload
from moot.core.payloads.conversations import (
    ConversationEnded,
    ConversationExchanged,
    ConversationOpened,
    ParticipantJoined,
    ParticipantLeft,
    PresenceChanged,
    SeatClaimed,
    SeatLeft,
    ThreadControlled,
    ThreadLinked,
    ThreadRenamed,
    Turn,
)
from moot.core.payloads.councils import (
    CouncilContinued,
    CouncilStopped,
    InvitationAnswered,
    MembersInvited,
    PolicySet,
    ToolAnswered,
    ToolAsked,
    ToolReopened,
    TurnAdmitted,
    TurnDropped,
    TurnHeld,
    VoteCalled,
)
from moot.core.state import (
    floor,
    mutes,
    participants,
    supervisor,
    thread_controls,
    tool_requests,
    usage,
)
from moot.core.state.agent_chain import AgentChain, apply_turn_to_chain
from moot.core.state.control_content import MOST_NAMES
from moot.core.state.floor import RUNWAY, Floor
from moot.core.state.node import node_id_of
from moot.core.state.participants import ConversationParticipant
from moot.core.state.tasks import (
    AwaitedPeople,
    ThreadTask,
    add_question,
    apply_reply,
    apply_task_turn,
)
from moot.core.state.thread_controls import ThreadControls, is_ttl_over
from moot.core.state.turn_addressees import apply_opening_addressees, apply_turn_to_floor
from moot.core.text import mentions
from moot.core.text.names import full_name, is_person
from moot.core.text.titles import LONGEST_TITLE

if TYPE_CHECKING:
    from moot.core.state.run import Run


#: the built-in workflow of a thread
THREAD = "moot.thread"
#: profiles that the state holds of participants who left
MOST_GONE = 8


class ThreadLink(Struct, omit_defaults=True):
    """A link to another thread; it stays open until that thread's summary is recorded here."""

    title: str = ""
    open: bool = True
    #: the other thread links to this one
    back: bool = False


class Conversation(Struct, omit_defaults=True):
    """One interrupt that carries many turns."""

    conversation_id: str
    node_id: str
    opened_at: int
    opened_seq: int
    last_seq: int
    #: index of the newest turn; the opening turn is 0
    turns: int = 0
    #: sequence of the newest turn: the next turn is caused by it, whatever controls came between
    turn_seq: int = 0
    open: bool = True
    #: name -> the participant, however it came
    participants: dict[str, ConversationParticipant] = {}
    #: the roster is closed: of the agents only listed ones speak
    closed: bool = False
    schema: dict[str, object] | None = None
    owner: str | None = None
    group_id: str | None = None
    #: people who were asked and have not answered
    asked: AwaitedPeople = {}
    #: the title after a rename; None while the first title holds
    title: str | None = None
    #: sequence of an open task -> the task
    tasks: dict[int, ThreadTask] = {}
    #: thread id -> its link
    links: dict[str, ThreadLink] = {}
    state: ThreadControls = field(default_factory=ThreadControls)
    #: set in a council
    floor: Floor | None = None
    #: set while agents speak in a conversation without a floor
    chain: AgentChain | None = None


def thread_id(run: "Run", conversation: Conversation) -> str:
    """Return the run's id for a thread; other conversations are named after their node, too."""
    if run.workflow_id == THREAD:
        return run.run_id
    number = conversation.conversation_id.rpartition(":")[2]
    return f"{run.run_id}~{conversation.node_id}~{number}"


def first_title(run: "Run", conversation: Conversation) -> str:
    """Return the title at the beginning: the run's title, else its question, else its node."""
    source = run.inputs.get("title") or run.inputs.get("question")
    text = source[: 4 * LONGEST_TITLE] if isinstance(source, str) else ""
    line = " ".join("".join(mark if mark.isprintable() else " " for mark in text).split())
    return (line or f"{run.workflow_id}/{conversation.node_id}")[:LONGEST_TITLE]


def current_title(run: "Run", conversation: Conversation) -> str:
    return first_title(run, conversation) if conversation.title is None else conversation.title


def is_opened_by_title(run: "Run") -> bool:
    """Return whether the thread's first turn is only its title, which does not count as a turn."""
    return run.workflow_id == THREAD and not run.inputs.get("question")


def count_turns(run: "Run", conversation: Conversation) -> int:
    return conversation.turns if is_opened_by_title(run) else conversation.turns + 1


# -- the fold -------------------------------------------------------------------------------------


def _apply_conversation_opened(
    run: "Run", payload: ConversationOpened, event: Event, at: int
) -> None:
    roster = payload.participants
    node_id = node_id_of(event)
    run.conversations[node_id] = conversation = Conversation(
        conversation_id=payload.conversation_id,
        node_id=node_id,
        opened_at=at,
        opened_seq=event.sequence,
        last_seq=event.sequence,
        schema=payload.schema,
        owner=payload.agent_id,
        group_id=payload.initial_turn.group_id,
    )
    if roster is not None:
        participants.list_roster(conversation, [str(row.get("agentId", "")) for row in roster])
    conversation.state.by_invitation = run.workflow_id == THREAD
    participants.add_person(conversation, run.person)
    _apply_turn(conversation, payload.initial_turn, event.sequence, at)
    if supervisor.is_supervisor_question(run, payload.agent_id):
        add_question(conversation.asked, "user", str(payload.agent_id), (0, at))


def _apply_to_conversation(run: "Run", payload: Payload, event: Event, at: int) -> None:
    conversation = run.conversations.get(node_id_of(event))
    if conversation is None:
        return
    match payload:
        case ConversationExchanged():
            _apply_turn(conversation, payload.turn, event.sequence, at)
        case ConversationEnded():
            _close(conversation, payload.turn_index)
        case ThreadControlled():
            _apply_thread_control(conversation, payload, at)
        case ThreadRenamed():
            conversation.title = payload.title[:LONGEST_TITLE]
        case ThreadLinked():
            is_open = not payload.closed and not payload.back
            conversation.links[payload.thread_id] = ThreadLink(payload.title, is_open, payload.back)
        case PresenceChanged():
            thread_controls.apply_presence(conversation.state, payload)
        case ParticipantJoined():
            _apply_participant_joined(conversation, payload, at)
        case ParticipantLeft():
            _apply_participant_left(conversation, payload)
        case _:
            return
    conversation.last_seq = event.sequence


def _apply_turn(conversation: Conversation, turn: Turn, sequence: int, at: int) -> None:
    if turn.turn_index is not None:
        conversation.turns = turn.turn_index
    conversation.turn_seq = sequence
    if conversation.asked:
        apply_reply(conversation.asked, turn.from_, turn.to)
    if turn.to is not None and is_person(turn.to):
        add_question(conversation.asked, turn.to, turn.from_, (conversation.turns, at))
    speaker = full_name(turn.from_)
    participants.add_person(conversation, speaker)
    thread_controls.apply_speaker(conversation.state, speaker)
    if turn.meta is not UNSET:
        apply_task_turn(conversation.tasks, turn, conversation.turns, sequence, at)
    if conversation.floor is not None:
        apply_turn_to_floor(conversation, conversation.floor, turn, sequence, at)
    else:
        profiles = (
            participants.mentionable_profiles(conversation)
            if mentions.has_mention(turn.content)
            else {}
        )
        conversation.chain = apply_turn_to_chain(conversation.chain, turn, profiles, sequence)


def _close(conversation: Conversation, last_turn: int) -> None:
    conversation.turns, conversation.open = last_turn, False
    conversation.asked, conversation.tasks, conversation.chain = {}, {}, None
    if (council := conversation.floor) is not None:
        council.wakes, council.held, council.asks = {}, {}, {}
        council.unpaid, council.later = {}, {}


def _apply_thread_control(conversation: Conversation, payload: ThreadControlled, at: int) -> None:
    state, council = conversation.state, conversation.floor
    thread_controls.apply_control(state, payload, at)
    if council is not None:
        members = participants.led_members(conversation)
        # the prod of an absent member does not count when the member joins later
        state.prodded = [name for name in state.prodded if name in members or is_person(name)]
        mutes.resume_put_off_requests(conversation, council)
        if council.stopped == RUNWAY and not is_ttl_over(state, at):
            council.stopped = None


def _apply_participant_joined(
    conversation: Conversation, payload: ParticipantJoined, at: int
) -> None:
    state, name = conversation.state, full_name(payload.participant_id)
    state.by_invitation = True
    state.away = [each for each in state.away if each != name]
    state.gone.pop(name, None)
    participants.add_joined(conversation, payload, at)


def _apply_participant_left(conversation: Conversation, payload: ParticipantLeft) -> None:
    state, name, by = conversation.state, full_name(payload.participant_id), payload.by
    participant = participants.remove_joined(conversation, name)
    if participant.joined and participant.profile:
        state.gone = dict([*state.gone.items(), (name, participant.profile)][-MOST_GONE:])
    if is_person(by) and by != name and name not in state.away:
        state.away = [*state.away, name][-MOST_NAMES:]
    if conversation.floor is not None:
        usage.apply_member_left(conversation.floor, name)


def _apply_seat(run: "Run", payload: SeatClaimed | SeatLeft, event: Event, at: int) -> None:
    conversation = run.conversations.get(node_id_of(event))
    if conversation is not None:
        thread_controls.apply_seat(conversation.state, payload, at)


def _apply_council_event(run: "Run", payload: Payload, event: Event, at: int) -> None:
    """Apply an event of a council, or of the agent chain where the conversation has no floor."""
    conversation = run.conversations.get(node_id_of(event))
    if conversation is None:
        if isinstance(payload, ToolAsked):
            tool_requests.apply_tool_asked_at_node(run, event)
        return
    conversation.last_seq = event.sequence
    council = conversation.floor
    if isinstance(payload, PolicySet):
        floor.apply_participation_set(conversation, payload, at)
        if council is None and conversation.floor is not None:
            apply_opening_addressees(conversation, conversation.floor, payload, run.person)
    elif council is not None:
        _apply_floor_event(conversation, council, payload, event.sequence, at)
    elif isinstance(payload, CouncilStopped) and conversation.chain is not None:
        conversation.chain.stopped = True
    elif isinstance(payload, CouncilContinued):
        conversation.chain = None


def _apply_floor_event(
    conversation: Conversation, council: Floor, payload: Payload, sequence: int, at: int
) -> None:
    state = conversation.state
    match payload:
        case MembersInvited():
            mutes.put_off_muted_requests(council, state, payload)
            floor.apply_participation_decided(council, payload, sequence, at)
            reasons = [*(payload.skipped or []), *(payload.called or [])]
            handled = {row.agent_id for row in payload.wakes} | {row.agent_id for row in reasons}
            state.prodded = [name for name in state.prodded if name not in handled]
        case InvitationAnswered():
            usage.apply_participation_answered(conversation, council, payload)
        case CouncilStopped():
            floor.apply_participation_stopped(conversation, council, payload.reason)
        case CouncilContinued():
            floor.apply_participation_continued(council, payload, at)
            if is_ttl_over(state, at):
                state.ttl_until = None  # the person who continues overrides the limit
        case VoteCalled():
            floor.apply_vote_called(council, payload, at)
        case _:
            _apply_held_event(council, payload, sequence, at)


def _apply_held_event(council: Floor, payload: Payload, sequence: int, at: int) -> None:
    """Apply an event about a turn or a tool call that waits for a person."""
    match payload:
        case TurnHeld():
            mutes.apply_turn_held(council, payload)
        case TurnAdmitted() | TurnDropped():
            council.held.pop(payload.held, None)
        case ToolAsked():
            tool_requests.apply_tool_asked(council, payload, sequence, at)
        case ToolAnswered():
            tool_requests.apply_tool_answered(council, payload, at)
        case ToolReopened():
            tool_requests.apply_tool_reopened(council, payload)
        case _:
            pass


COUNCIL_EVENTS: tuple[type[Payload], ...] = (
    PolicySet, MembersInvited, InvitationAnswered, CouncilStopped, CouncilContinued, VoteCalled,
    TurnHeld, TurnAdmitted, TurnDropped, ToolAsked, ToolAnswered, ToolReopened,
)  # fmt: skip

CONVERSATION_EVENTS: tuple[type[Payload], ...] = (
    ConversationExchanged, ConversationEnded, ThreadControlled, ThreadRenamed, ThreadLinked,
    PresenceChanged, ParticipantJoined, ParticipantLeft,
)  # fmt: skip

HANDLERS: dict[type[Payload], Callable[["Run", Any, Event, int], None]] = {
    ConversationOpened: _apply_conversation_opened,
    SeatClaimed: _apply_seat,
    SeatLeft: _apply_seat,
    **dict.fromkeys(CONVERSATION_EVENTS, _apply_to_conversation),
    **dict.fromkeys(COUNCIL_EVENTS, _apply_council_event),
}
