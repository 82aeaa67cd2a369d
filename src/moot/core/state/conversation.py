"""Fold conversations and threads: turns, controls, links and participants.

The state holds counters, rosters and references only. The text of a turn stays in the log.
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
    ThreadControlled,
    ThreadLinked,
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
    agent_chain,
    awaited_people,
    supervisor,
    tasks,
    thread_controls,
    turn_addressees,
    usage,
)
from moot.core.state.floor import (
    Floor,
    add_floor_member,
    apply_participation_decided,
    apply_participation_set,
    apply_participation_stopped,
)
from moot.core.state.floor_continuation import (
    apply_participation_continued,
    apply_vote_called,
    lift_ttl_stop,
)
from moot.core.state.mutes import (
    apply_turn_held,
    apply_turn_settled,
    put_off_muted_requests,
    resume_put_off_requests,
)
from moot.core.state.node import node_id_of
from moot.core.state.tasks import ThreadTask
from moot.core.state.tool_requests import (
    apply_tool_answered,
    apply_tool_asked,
    apply_tool_asked_at_node,
    apply_tool_reopened,
)
from moot.core.text import mentions
from moot.core.text.names import full_name, is_person

if TYPE_CHECKING:
    from moot.core.state.run import Run


#: the built-in workflow of a thread
THREAD = "moot.thread"


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
    #: agents that may speak, when the roster is closed
    roster: list[str] | None = None
    schema: dict[str, Any] | None = None
    owner: str | None = None
    group_id: str | None = None
    #: people who were asked and have not answered
    asked: awaited_people.AwaitedPeople = {}
    #: the title after a rename; None while the first title holds
    title: str | None = None
    #: sequence of an open task -> the task
    tasks: dict[int, ThreadTask] = {}
    #: thread id -> its link
    links: dict[str, ThreadLink] = {}
    state: thread_controls.ThreadControls = field(default_factory=thread_controls.ThreadControls)
    #: set in a council
    floor: Floor | None = None
    #: set while agents speak in a conversation without a floor
    chain: agent_chain.AgentChain | None = None


def thread_id(run: "Run", conversation: Conversation) -> str:
    """Return the run's id for a thread; other conversations are named after their node, too."""
    if run.workflow_id == THREAD:
        return run.run_id
    number = conversation.conversation_id.rpartition(":")[2]
    return f"{run.run_id}~{conversation.node_id}~{number}"


def _apply_conversation_opened(
    run: "Run", payload: ConversationOpened, event: Event, at: int
) -> None:
    members = payload.participants
    node_id = node_id_of(event)
    run.conversations[node_id] = conversation = Conversation(
        conversation_id=payload.conversation_id,
        node_id=node_id,
        opened_at=at,
        opened_seq=event.sequence,
        last_seq=event.sequence,
        roster=None if members is None else [str(member.get("agentId", "")) for member in members],
        schema=payload.schema,
        owner=payload.agent_id,
        group_id=payload.initial_turn.group_id,
    )
    conversation.state.by_invitation = run.workflow_id == THREAD
    thread_controls.add_person(conversation.state, run.person)
    _apply_turn(conversation, payload.initial_turn, event.sequence, at)
    if supervisor.is_supervisor_question(run, payload.agent_id):
        awaited_people.add_question(conversation.asked, "user", str(payload.agent_id), (0, at))


def _apply_conversation_exchanged(
    run: "Run", payload: ConversationExchanged, event: Event, at: int
) -> None:
    conversation = run.conversations.get(node_id_of(event))
    if conversation is not None:
        _apply_turn(conversation, payload.turn, event.sequence, at)


def _apply_turn(conversation: Conversation, turn: Turn, sequence: int, at: int) -> None:
    if turn.turn_index is not None:
        conversation.turns = turn.turn_index
    conversation.last_seq = conversation.turn_seq = sequence
    speaker, to = turn.from_, turn.to
    controls = conversation.state
    if conversation.asked:
        awaited_people.apply_reply(conversation.asked, speaker, to)
    if to is not None and is_person(to):
        awaited_people.add_question(conversation.asked, to, speaker, (conversation.turns, at))
    thread_controls.apply_speaker(controls, speaker)
    if turn.meta is not UNSET:
        tasks.apply_task_turn(conversation.tasks, turn, sequence, at)
    if conversation.floor is not None:
        turn_addressees.apply_turn_to_floor(conversation.floor, turn, controls, sequence, at)
    else:
        profiles = _mentionable_profiles(conversation) if mentions.has_mention(turn.content) else {}
        conversation.chain = agent_chain.apply_turn_to_chain(
            conversation.chain, turn, profiles, sequence
        )


def _mentionable_profiles(conversation: Conversation) -> dict[str, dict[str, Any]]:
    controls = conversation.state
    profiles = {name: member.profile for name, member in controls.members.items()}
    return profiles | {name: {} for name in (*(conversation.roster or ()), *controls.people)}


def _apply_conversation_closed(
    run: "Run", payload: ConversationEnded, event: Event, at: int
) -> None:
    conversation = run.conversations.get(node_id_of(event))
    if conversation is not None:
        conversation.turns = payload.turn_index
        conversation.last_seq = event.sequence
        conversation.open = False
        conversation.asked, conversation.tasks, conversation.chain = {}, {}, None
        floor = conversation.floor
        if floor is not None:
            floor.wakes, floor.held, floor.asks = {}, {}, {}
            floor.unpaid, floor.later = {}, {}


def _apply_thread_control(run: "Run", payload: ThreadControlled, event: Event, at: int) -> None:
    conversation = run.conversations.get(node_id_of(event))
    if conversation is not None:
        thread_controls.apply_control(conversation.state, payload, at)
        conversation.last_seq = event.sequence
        if conversation.floor is not None:
            thread_controls.drop_absent_prods(conversation.state, conversation.floor.members)
            resume_put_off_requests(conversation.floor, conversation.state)
            if not thread_controls.is_ttl_over(conversation.state, at):
                lift_ttl_stop(conversation.floor)


def _apply_thread_linked(run: "Run", payload: ThreadLinked, event: Event, at: int) -> None:
    conversation = run.conversations.get(node_id_of(event))
    if conversation is not None:
        is_open = not payload.closed and not payload.back
        link = ThreadLink(payload.title, is_open, payload.back)
        conversation.links[payload.thread_id] = link
        conversation.last_seq = event.sequence


def _apply_presence_changed(run: "Run", payload: PresenceChanged, event: Event, at: int) -> None:
    conversation = run.conversations.get(node_id_of(event))
    if conversation is not None:
        thread_controls.apply_presence(conversation.state, payload)
        conversation.last_seq = event.sequence


def _apply_participant_joined(
    run: "Run", payload: ParticipantJoined, event: Event, at: int
) -> None:
    conversation = run.conversations.get(node_id_of(event))
    if conversation is not None:
        thread_controls.apply_participant_joined(conversation.state, payload, at)
        conversation.last_seq = event.sequence
        name = full_name(payload.participant_id)
        if conversation.floor is not None:
            member = conversation.state.members[name]
            by = member.invited_by
            add_floor_member(conversation.floor, name, member.profile, member.outside, by)


def _apply_participant_left(run: "Run", payload: ParticipantLeft, event: Event, at: int) -> None:
    conversation = run.conversations.get(node_id_of(event))
    if conversation is not None:
        thread_controls.apply_participant_left(conversation.state, payload)
        conversation.last_seq = event.sequence
        if conversation.floor is not None:
            name = full_name(payload.participant_id)
            usage.apply_member_left(conversation.floor, name)


def _apply_floor_event(run: "Run", payload: Payload, event: Event, at: int) -> None:
    """Apply an event of a council, or of the agent chain where the conversation has no floor."""
    conversation = run.conversations.get(node_id_of(event))
    if conversation is None:
        if isinstance(payload, ToolAsked):
            apply_tool_asked_at_node(run, event)
        return
    conversation.last_seq = event.sequence
    floor = conversation.floor
    if isinstance(payload, PolicySet):
        conversation.floor = apply_participation_set(floor, payload, conversation.turns, at)
        if floor is None and conversation.floor is not None:
            turn_addressees.apply_opening_addressees(
                conversation.floor, payload, run.person, conversation.opened_seq
            )
    elif floor is not None and isinstance(payload, MembersInvited):
        put_off_muted_requests(floor, conversation.state, payload)
        apply_participation_decided(floor, payload, event.sequence, at)
        reasons = [*(payload.skipped or []), *(payload.called or [])]
        handled = {item.agent_id for item in payload.wakes}.union(item.agent_id for item in reasons)
        prodded = conversation.state.prodded
        conversation.state.prodded = [name for name in prodded if name not in handled]
    elif floor is not None:
        FLOOR_HANDLERS[type(payload)](floor, payload, event.sequence, at)
        if isinstance(payload, CouncilContinued) and thread_controls.is_ttl_over(
            conversation.state, at
        ):
            conversation.state.ttl_until = None  # the person who continues overrides the limit
    elif isinstance(payload, CouncilStopped) and conversation.chain is not None:
        conversation.chain.stopped = True
    elif isinstance(payload, CouncilContinued):
        conversation.chain = None


FLOOR_HANDLERS: dict[type[Payload], Callable[[Floor, Any, int, int], None]] = {
    InvitationAnswered: lambda floor, payload, *_: usage.apply_participation_answered(
        floor, payload
    ),
    CouncilStopped: lambda floor, payload, *_: apply_participation_stopped(floor, payload),
    CouncilContinued: lambda floor, payload, _, at: apply_participation_continued(
        floor, payload, at
    ),
    VoteCalled: lambda floor, payload, _, at: apply_vote_called(floor, payload, at),
    TurnHeld: lambda floor, payload, *_: apply_turn_held(floor, payload),
    ToolAsked: apply_tool_asked,
    ToolAnswered: lambda floor, payload, _, at: apply_tool_answered(floor, payload, at),
    ToolReopened: lambda floor, payload, *_: apply_tool_reopened(floor, payload),
    TurnAdmitted: lambda floor, payload, *_: apply_turn_settled(floor, payload),
    TurnDropped: lambda floor, payload, *_: apply_turn_settled(floor, payload),
}

HANDLERS: dict[type[Payload], Callable[["Run", Any, Event, int], None]] = {
    ConversationOpened: _apply_conversation_opened,
    ConversationExchanged: _apply_conversation_exchanged,
    ConversationEnded: _apply_conversation_closed,
    ThreadControlled: _apply_thread_control,
    ThreadLinked: _apply_thread_linked,
    PresenceChanged: _apply_presence_changed,
    ParticipantJoined: _apply_participant_joined,
    ParticipantLeft: _apply_participant_left,
    **dict.fromkeys([PolicySet, MembersInvited, *FLOOR_HANDLERS], _apply_floor_event),
}
