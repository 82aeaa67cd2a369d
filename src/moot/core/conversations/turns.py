"""Turns, speakers, rosters, closing: what may be said in a conversation, and by whom.

The server writes index, time and sender; text never decides who spoke. A refused turn is not
consumed: the interrupt stays open and nothing is appended.
"""

from typing import Any

from moot.core.conversations import joining, turn_schema
from moot.core.errors import (
    BadRequest,
    InterruptAlreadyResolved,
    InterruptNotFound,
    NotYourName,
    ParticipantMuted,
    SpeakerMissing,
    SpeakerNotParticipant,
    ThreadPaused,
)
from moot.core.events import NewEvent
from moot.core.json import schema
from moot.core.runs.nodes import write_events
from moot.core.speaker import Speaker
from moot.core.state import thread_controls
from moot.core.state.conversation import Conversation
from moot.core.state.council_policy import BY_NAME, THREADED
from moot.core.state.run import Run
from moot.core.text import mentions
from moot.core.text.names import full_name, is_person
from moot.core.workflows.graph import Flow, FlowNode
from moot.core.workflows.node_types import ChannelWrite, ConversationSpec

MESSAGE_ROLES = {"agent": "assistant", "user": "user", "system": "system"}


#: who the host is when it acts for a member
HOST = "moot"


def conversation_id(run: Run, node_id: str, attempt: int) -> str:
    return f"{run.run_id}:{node_id}:{attempt}"


def opened(run: Run, node: FlowNode, spec: ConversationSpec, at: int) -> NewEvent:
    """The opening turn has index 0."""
    name = conversation_id(run, node.id, run.nodes[node.id].attempt)
    turn = _opening(run, spec, name, 0 if spec.mock_turns is not None else at)
    payload: dict[str, Any] = {"conversationId": name, "initialTurn": turn}
    if spec.owner is not None:
        payload["agentId"] = spec.owner
    if spec.participants is not None:
        payload["participants"] = spec.participants
    if spec.schema is not None:
        payload["schema"] = spec.schema
    payload["capabilities"] = ["multi-turn"]
    return NewEvent("conversation.opened", payload, node.id)


def _opening(run: Run, spec: ConversationSpec, name: str, at: int) -> dict[str, Any]:
    """Put by the owner, where it is a member, else by the person who started the run. Of a member
    that the host gives the floor nothing is said that it has not said."""
    asker = run.person if spec.opening is not None else None
    if spec.owner is not None and spec.participation is None and _speaks(spec, spec.owner):
        role, speaker = "agent", spec.owner
    elif asker is not None and is_person(asker):
        role, speaker = "user", asker
    elif asker is not None and _speaks(spec, asker):
        role, speaker = "agent", asker
    else:
        role, speaker = "system", "system"
    content = spec.opening if spec.opening is not None else spec.title or "The floor is open."
    return new_turn(name, 0, role, speaker, content, at, spec.group_id)


def _speaks(spec: ConversationSpec, name: str) -> bool:
    members = spec.participants
    return members is None or any(member["agentId"] == name for member in members)


def joined(run: Run, node: FlowNode, spec: ConversationSpec) -> list[NewEvent]:
    """Those who are invited from the beginning to a conversation whose roster is open."""
    name = conversation_id(run, node.id, run.nodes[node.id].attempt)
    return [
        NewEvent(
            "moot.participant.joined",
            {
                "conversationId": name,
                "participantId": member["agentId"],
                "profile": _profile(spec, member),
                "by": run.person,
                "fromTurn": 1,
                **_outside(spec, member),
            },
            node.id,
        )
        for member in spec.invited
    ]


def led(run: Run, node: FlowNode, spec: ConversationSpec) -> list[NewEvent]:
    """The host gives the floor, by a policy, to those who were named at the beginning."""
    if spec.participation is None:
        return []
    members = spec.participants if spec.participants is not None else spec.invited
    payload: dict[str, Any] = {
        "conversationId": conversation_id(run, node.id, run.nodes[node.id].attempt),
        "policy": spec.participation,
        "members": [
            {
                "agentId": member["agentId"],
                "profile": _profile(spec, member),
                **_outside(spec, member),
            }
            for member in members
            if not is_person(member["agentId"])
        ],
    }
    if spec.opening is None and spec.participation.get("mode") in THREADED:
        payload["called"] = False  # nobody has said anything yet
    payload |= _asked_at_first(run, spec, payload["members"])
    return [NewEvent("moot.participation.set", payload, node.id)]


def _asked_at_first(
    run: Run, spec: ConversationSpec, members: list[dict[str, Any]]
) -> dict[str, Any]:
    """Whom a person means who opens with a name, where it is names that decide who speaks; and
    words of a thread that could mean several, as in every other turn."""
    mode = (spec.participation or {}).get("mode")
    if mode not in BY_NAME or not is_person(run.person):
        return {}
    known: dict[str, dict[str, Any]] = {run.person: {}}
    known |= {member["agentId"]: member["profile"] for member in members}
    found = mentions.mentioned(spec.opening, known)
    names = [name for name in found.names if name != run.person]
    said = {"asked": names} if names else {}
    return {**said, "unclear": found.unclear} if found.unclear and mode in THREADED else said


def _profile(spec: ConversationSpec, member: dict[str, Any]) -> dict[str, Any]:
    """What is known of somebody: by who named him, and of an agent of this host by the host."""
    given = {key: value for key, value in member.items() if key != "agentId"}
    return {**given, **spec.profiles.get(member["agentId"], {})}


def _outside(spec: ConversationSpec, member: dict[str, Any]) -> dict[str, bool]:
    return {"outside": True} if member["agentId"] in spec.outside else {}


def new_turn(
    name: str, index: int, role: str, speaker: str, content: Any, at: int, group: str | None = None
) -> dict[str, Any]:
    turn: dict[str, Any] = {
        "messageId": f"{name}:{index}:{role}",
        "from": speaker,
        "content": content,
        "ts": at,
        "role": role,
        "turnIndex": index,
    }
    if role == "agent":
        turn["speakerId"] = speaker
    if group is not None:
        turn["groupId"] = group
    return turn


def turn_of(talk: Conversation, said: dict[str, Any], who: Speaker, at: int) -> dict[str, Any]:
    """The turn as it is recorded. Raises when it may not be said; the checks go in this order:
    shape, right to the name, speaker, roster, name, mute, pause, content."""
    turn_schema.check(talk, said, own=who.principal == HOST)
    role, speaker = floor(talk, said, who, at)
    if talk.schema is not None and (found := schema.problems(talk.schema, said["content"])):
        raise BadRequest(f"The turn does not fit the conversation: {found[0]}", fields=found)
    index = talk.turns + 1
    turn = new_turn(talk.conversation_id, index, role, speaker, said["content"], at, talk.group_id)
    for key in ("messageId", "ts", "groupId", "agent", "meta"):
        if key in said:
            turn[key] = said[key]
    if said.get("to", "all") != "all":
        turn["to"] = full_name(said["to"])
    turn["via"] = who.principal
    if who.principal != HOST and speaker not in who.names and _host_speaks_for(talk, speaker):
        turn["spokenBy"] = who.person
    return turn


def _host_speaks_for(talk: Conversation, speaker: str) -> bool:
    """Whether the host gives it the floor: its name says that a model spoke."""
    member = talk.floor.members.get(speaker) if talk.floor is not None else None
    return member is not None and not member.outside


def floor(talk: Conversation, said: dict[str, Any], who: Speaker, at: int) -> tuple[str, str]:
    """The role and the name under which somebody speaks now. Raises when he may not."""
    role = said.get("role", "user")
    speaker = _speaker(said, role, who)
    if role == "agent" and not joining.comes_in(talk, full_name(speaker), who.joins):
        _check_roster(talk, speaker)
    joining.check(speaker, "turn.speakerId" if role == "agent" else "turn.from")
    check_floor(talk, speaker, role, at)
    return role, speaker


def _speaker(said: dict[str, Any], role: str, who: Speaker) -> str:
    """Identity is structural: the key decides, the body may only repeat it."""
    if role == "agent":
        speaker = said.get("speakerId")
        if speaker is None:
            raise SpeakerMissing("An agent's turn names its speaker: speakerId.")
        if said.get("from", speaker) != speaker:
            raise BadRequest("from and speakerId differ.", field="turn.from")
        if is_person(speaker):
            raise BadRequest("A person's turn has role 'user'.", field="turn.role")
    else:
        speaker = said.get("from", who.person)
        if "from" not in said and not is_person(speaker):
            raise NotYourName("user", list(who.names))
        if not is_person(speaker):
            raise BadRequest("A user's turn comes from 'user' or 'user:<name>'.", field="turn.from")
        if speaker == who.person:
            return str(speaker)
    if not who.admin and speaker not in who.names:
        raise NotYourName(str(speaker), list(who.names))
    return str(speaker)


def _check_roster(talk: Conversation, speaker: str) -> None:
    if talk.roster is not None:
        if speaker not in talk.roster:
            raise SpeakerNotParticipant(
                "Speaker is not on this conversation's roster.",
                speakerId=speaker,
                conversationId=talk.conversation_id,
                roster=talk.roster,
            )
    elif talk.state.by_invitation and full_name(speaker) not in talk.state.members:
        raise joining.not_invited(talk, speaker)


def check_floor(talk: Conversation, speaker: str, role: str, at: int) -> None:
    """Raises while somebody may not speak."""
    if thread_controls.is_muted(talk.state, speaker, at):
        raise ParticipantMuted(
            f"{speaker} is muted here.", thread=talk.conversation_id, participant=speaker
        )
    if talk.state.paused and role != "user":
        raise ThreadPaused(
            "The conversation is paused; only people speak now.",
            thread=talk.conversation_id,
            participant=speaker,
        )


def exchanged(
    run: Run, flow: Flow, node: FlowNode, talk: Conversation, turn: dict[str, Any], at: int
) -> list[NewEvent]:
    payload = {
        "conversationId": talk.conversation_id,
        "turnIndex": turn["turnIndex"],
        "turn": turn,
    }
    event = NewEvent("conversation.exchanged", payload, node.id, cause=talk.turn_seq)
    return [event, *echo(run, flow, node, turn, at)]


def closed(
    talk: Conversation,
    node: FlowNode,
    turn: dict[str, Any],
    outcome: Any,
    cause: int | None = None,
) -> NewEvent:
    """``cause`` is the last turn, when it belongs to the same decision."""
    payload = {
        "conversationId": talk.conversation_id,
        "turnIndex": turn["turnIndex"],
        "finalTurn": turn,
        "outcome": outcome,
    }
    last = talk.turn_seq if cause is None else cause
    return NewEvent("conversation.closed", payload, node.id, cause=last)


def system_turn(talk: Conversation, content: str, at: int, ahead: int = 1) -> dict[str, Any]:
    """A turn by the host itself."""
    return new_turn(talk.conversation_id, talk.turns + ahead, "system", "system", content, at)


def channel_of(flow: Flow, wanted: str | None) -> str | None:
    """The messages channel a conversation is written to as well, if the workflow declares one."""
    for name in (wanted, "conversation", "messages"):
        if name is not None and name in flow.channels and flow.channels[name].reducer == "message":
            return name
    return None


def own_echo(run: Run, flow: Flow, node: FlowNode, turn: dict[str, Any], at: int) -> list[NewEvent]:
    """Of a turn that opens or ends the conversation: a full channel keeps nobody from that."""
    try:
        return echo(run, flow, node, turn, at)
    except BadRequest:
        return []


def echo(run: Run, flow: Flow, node: FlowNode, turn: dict[str, Any], at: int) -> list[NewEvent]:
    """The turn on the channel of messages, if there is one."""
    name = channel_of(flow, node.definition.config.get("channel"))
    if name is None:
        return []
    message: dict[str, Any] = {
        "messageId": f"{node.id}:{turn['turnIndex']}:{turn['role']}",
        "role": MESSAGE_ROLES[turn["role"]],
        "content": turn["content"],
        "timestamp": turn["ts"],
    }
    if "speakerId" in turn:
        message["agentId"] = turn["speakerId"]
    if "editedBy" in turn:  # a speaker's words that are not his own say so everywhere
        message |= {key: turn[key] for key in ("editedBy", "originalEventId")}
    return write_events(
        run, flow, node, (ChannelWrite(channel=name, value=message, turn=True),), at
    )


def people(talk: Conversation) -> dict[str, dict[str, Any]]:
    """The agents that take part, and what is known of them."""
    found = {name: member.profile for name, member in talk.state.members.items()}
    found |= {name: {} for name in talk.roster or ()}
    if talk.floor is not None:
        found |= {name: member.profile for name, member in talk.floor.members.items()}
    return found


def everybody(talk: Conversation) -> dict[str, dict[str, Any]]:
    """The same, and the people who are here."""
    return {name: {} for name in thread_controls.people_of(talk.state)} | people(talk)


def must_be_open(talk: Conversation | None, run: Run, node_id: str) -> Conversation:
    if talk is None:
        raise InterruptNotFound(run.run_id, node_id)
    if not talk.open:
        raise InterruptAlreadyResolved(
            "The conversation is closed.", runId=run.run_id, nodeId=node_id
        )
    return talk


def outputs(talk: Conversation, turns: int, outcome: Any) -> dict[str, Any]:
    return {
        "outcome": outcome,
        "conversationId": talk.conversation_id,
        "turnCount": turns,
    }
