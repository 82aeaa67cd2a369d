"""Open a conversation: its first turn, its first members and its policy."""

from typing import Any

from moot.core.conversations.turns import conversation_id, new_turn
from moot.core.events import NewEvent
from moot.core.payloads.conversations import ConversationOpened, ParticipantJoined, Turn
from moot.core.payloads.councils import CouncilMember, PolicySet
from moot.core.state.council_policy import NAMING_MODES, THREAD_MODES
from moot.core.state.run import Run
from moot.core.text import mentions
from moot.core.text.names import is_person
from moot.core.workflows.flow import FlowNode
from moot.core.workflows.node_types import ConversationSpec


def opened_event(run: Run, node: FlowNode, spec: ConversationSpec, at: int) -> NewEvent:
    """Return the event with the opening turn, which has index 0."""
    name = conversation_id(run, node.id, run.nodes[node.id].attempt)
    turn = _opening_turn(run, spec, name, 0 if spec.mock_turns is not None else at)
    opened = ConversationOpened(
        conversation_id=name,
        initial_turn=turn,
        agent_id=spec.owner,
        participants=spec.participants,
        schema=spec.schema,
        capabilities=["multi-turn"],
    )
    return NewEvent(opened, node.id)


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


def join_initial_members(run: Run, node: FlowNode, spec: ConversationSpec) -> list[NewEvent]:
    """Return the join events of the members that are invited from the beginning."""
    name = conversation_id(run, node.id, run.nodes[node.id].attempt)
    return [
        NewEvent(
            ParticipantJoined(
                conversation_id=name,
                participant_id=member["agentId"],
                profile=_profile(spec, member),
                by=run.person,
                from_turn=1,
                outside=member["agentId"] in spec.outside,
            ),
            node.id,
        )
        for member in spec.invited
    ]


def set_initial_policy(run: Run, node: FlowNode, spec: ConversationSpec) -> list[NewEvent]:
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
    # in a thread without an opening, no person has spoken yet
    is_silent = spec.opening is None and spec.participation.get("mode") in THREAD_MODES
    policy = PolicySet(
        conversation_id=conversation_id(run, node.id, run.nodes[node.id].attempt),
        policy=spec.participation,
        members=agents,
        called=False if is_silent else None,
        **_initial_mentions(run, spec, agents),
    )
    return [NewEvent(policy, node.id)]


def _initial_mentions(
    run: Run, spec: ConversationSpec, members: list[CouncilMember]
) -> dict[str, Any]:
    """Return the members that the opening mentions, and the ambiguous words of a thread."""
    mode = (spec.participation or {}).get("mode")
    if mode not in NAMING_MODES or not is_person(run.person):
        return {}
    profiles: dict[str, dict[str, Any]] = {run.person: {}}
    profiles |= {member.agent_id: member.profile or {} for member in members}
    mentioned = mentions.find_mentions(spec.opening, profiles)
    names = [name for name in mentioned.names if name != run.person]
    requested = {"asked": names} if names else {}
    return (
        {**requested, "unclear": mentioned.unclear}
        if mentioned.unclear and mode in THREAD_MODES
        else requested
    )


def _profile(spec: ConversationSpec, member: dict[str, Any]) -> dict[str, Any]:
    """Merge the profile from the definition with the host's profile of the agent."""
    profile = {key: value for key, value in member.items() if key != "agentId"}
    return {**profile, **spec.profiles.get(member["agentId"], {})}
