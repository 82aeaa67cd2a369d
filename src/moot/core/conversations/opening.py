"""Open a conversation: its first turn, its first members and its policy."""

from collections.abc import Mapping

from moot.core.conversations import turns
from moot.core.conversations.turns import conversation_id, new_turn
from moot.core.events import NewEvent, iso
from moot.core.ids import derived_id
from moot.core.payloads.conversations import (
    ConversationEnded,
    ConversationExchanged,
    ConversationOpened,
    ParticipantJoined,
    Turn,
)
from moot.core.payloads.councils import CouncilMember, PolicySet
from moot.core.payloads.interrupts import InterruptResolved
from moot.core.payloads.nodes import NodeResumed
from moot.core.runs.answers import gate_completed_event
from moot.core.state.council_policy import NAMING_MODES, THREAD_MODES
from moot.core.state.run import Run
from moot.core.text import mentions
from moot.core.text.names import is_person
from moot.core.workflows.flow import Flow, FlowNode
from moot.core.workflows.node_types import ConversationSpec


def open_conversation(
    run: Run, flow: Flow, node: FlowNode, spec: ConversationSpec, at: int
) -> list[NewEvent]:
    """Return the opening turn, the invited members and the policy of a council."""
    name = conversation_id(run, node.id)
    turn = _opening_turn(run, spec, name, 0 if spec.mock_turns is not None else at)
    opened = ConversationOpened(
        conversation_id=name,
        initial_turn=turn,
        agent_id=spec.owner,
        participants=spec.participants,
        schema=spec.schema,
        capabilities=["multi-turn"],
    )
    return [
        NewEvent(opened, node.id),
        *turns.try_echo_turn(run, flow, node, turn, turn.ts or 0),
        *_join_initial_members(run, node, spec),
        *_set_initial_policy(run, node, spec),
    ]


def _opening_turn(run: Run, spec: ConversationSpec, name: str, at: int) -> Turn:
    """Return the first turn, by the owner if it is a member, else by the run's person.

    The host never puts words into the mouth of a member that it invites.
    """
    starter = run.person if spec.opening is not None else None
    if spec.owner is not None and spec.participation is None and _is_speaker(spec, spec.owner):
        role, speaker = "agent", spec.owner
    elif starter is not None and is_person(starter):
        role, speaker = "user", starter
    elif starter is not None and _is_speaker(spec, starter):
        role, speaker = "agent", starter
    else:
        role, speaker = "system", "system"
    content = spec.opening if spec.opening is not None else spec.title or "The floor is open."
    return new_turn(name, 0, role, speaker, content, at, spec.group_id)


def _is_speaker(spec: ConversationSpec, name: str) -> bool:
    participants = spec.participants
    return participants is None or any(member["agentId"] == name for member in participants)


def _join_initial_members(run: Run, node: FlowNode, spec: ConversationSpec) -> list[NewEvent]:
    """Return the join events of the members that are invited from the beginning."""
    events = []
    for member in spec.invited:
        joined = ParticipantJoined(
            conversation_id=conversation_id(run, node.id),
            participant_id=member["agentId"],
            profile=_profile(spec, member),
            by=run.person,
            from_turn=1,
            outside=member["agentId"] in spec.outside,
        )
        events.append(NewEvent(joined, node.id))
    return events


def _set_initial_policy(run: Run, node: FlowNode, spec: ConversationSpec) -> list[NewEvent]:
    """Return the event that makes the conversation a council, if it has a policy."""
    if spec.participation is None:
        return []
    members = spec.participants if spec.participants is not None else spec.invited
    agents = [
        CouncilMember(
            agent_id=member["agentId"],
            profile=_profile(spec, member),
            outside=member["agentId"] in spec.outside,
        )
        for member in members
        if not is_person(member["agentId"])
    ]
    mentioned, is_thread = mentions.Mentions([]), spec.participation.get("mode") in THREAD_MODES
    if spec.participation.get("mode") in NAMING_MODES and is_person(run.person):
        profiles = {run.person: {}, **{each.agent_id: each.profile or {} for each in agents}}
        mentioned = mentions.find_mentions(spec.opening, profiles)
    policy = PolicySet(
        conversation_id=conversation_id(run, node.id),
        policy=spec.participation,
        members=agents,
        # in a thread without an opening, no person has spoken yet
        called=False if spec.opening is None and is_thread else None,
        asked=[name for name in mentioned.names if name != run.person] or None,
        unclear=(mentioned.unclear or None) if is_thread else None,
    )
    return [NewEvent(policy, node.id)]


def _profile(spec: ConversationSpec, member: Mapping[str, object]) -> dict[str, object]:
    """Merge the profile from the definition with the host's profile of the agent."""
    profile = {key: value for key, value in member.items() if key != "agentId"}
    return {**profile, **spec.profiles.get(str(member["agentId"]), {})}


def mock_conversation(
    run: Run, flow: Flow, node: FlowNode, spec: ConversationSpec, at: int
) -> list[NewEvent]:
    """Play a conversation with fixed turns, for a host under test.

    The turns depend on neither the run nor the time, so a replay gives the same ones.
    """
    events, turn = _mock_turns(run, flow, node, spec)
    interrupt_id = derived_id("int_", run.run_id, node.id, str(run.nodes[node.id].attempt))
    outcome = turn.content
    resolved = InterruptResolved(
        node_id=node.id,
        interrupt_id=interrupt_id,
        kind="conversation.exchange",
        resume_value=outcome,
        resolved_at=iso(at * 1000),
        resolved_by="mock",
    )
    resumed = NodeResumed(node_id=node.id, interrupt_id=interrupt_id, resume_value=outcome)
    outputs = {"outcome": outcome, "turnCount": turn.turn_index}
    return [
        *events,
        NewEvent(resolved, node.id, cause=run.next_sequence),
        NewEvent(resumed, node.id),
        gate_completed_event(run, node, outputs, at),
    ]


def _mock_turns(
    run: Run, flow: Flow, node: FlowNode, spec: ConversationSpec
) -> tuple[list[NewEvent], Turn]:
    """Return pairs of a user's and an agent's turn with the close, and the final turn."""
    talk = conversation_id(run, node.id)
    speaker = spec.participants[0]["agentId"] if spec.participants else spec.owner or "host:mock"
    events: list[NewEvent] = []
    last = run.next_sequence + 2  # requested, suspended, opened: three events of the same decision
    first = last + len(open_conversation(run, flow, node, spec, 0))
    for index in range(1, 2 * (spec.mock_turns or 1) + 1):
        is_user = index % 2 == 1
        role, sender = ("user", "user") if is_user else ("agent", speaker)
        turn = new_turn(talk, index, role, sender, f"mock turn {index}", index, spec.group_id)
        exchanged = ConversationExchanged(conversation_id=talk, turn_index=index, turn=turn)
        sequence = first + len(events)
        events.append(NewEvent(exchanged, node.id, cause=last))
        events += turns.echo_turn(run, flow, node, turn, index)
        last = sequence
    index = 2 * (spec.mock_turns or 1) + 1
    final_turn = new_turn(talk, index, "system", "system", "mock close", index)
    closed = ConversationEnded(
        conversation_id=talk,
        turn_index=index,
        final_turn=final_turn,
        outcome="mock close",
    )
    events.append(NewEvent(closed, node.id, cause=last))
    return [*events, *turns.try_echo_turn(run, flow, node, final_turn, index)], final_turn
