"""What is waited for, given the log: open interrupts, who answered, conversations and threads.

Counters, rosters and references only; what was said stays in the log.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Struct, field

from moot.core.events import Event, millis
from moot.core.state import (
    agent_chain,
    agents,
    awaited_people,
    floor_continuation,
    floor_held_turns,
    floor_tool_requests,
    lineage,
    put_off_requests,
    supervisor,
    tasks,
    thread_controls,
    turn_addressees,
    usage,
)
from moot.core.state.floor import Floor, decided, joined, stopped, was_set
from moot.core.state.tasks import Task
from moot.core.text.names import full_name, is_person

if TYPE_CHECKING:
    from moot.core.state.run import Run


#: the host's own workflow of one conversation
THREAD = "moot.thread"


class Interrupt(Struct, omit_defaults=True):
    """An open question of a node."""

    kind: str
    key: str
    data: dict[str, Any]
    requested_at: int
    seq: int
    interrupt_id: str = ""
    due: int | None = None
    resume_schema: dict[str, Any] | None = None
    profile: str | None = None
    #: who has voted what, in a quorum
    votes: dict[str, str] = {}
    #: what those who accept an edit have made of the artifact, the newest last
    edits: dict[str, Any] = {}


class Answered(Struct, omit_defaults=True):
    """Who ended a wait, for whoever comes too late."""

    interrupt_id: str
    by: str
    at: int
    action: str | None = None
    kind: str = ""


class Link(Struct, omit_defaults=True):
    """Another thread that this one points to; open until its summary has been told."""

    title: str = ""
    open: bool = True
    #: that one points to this one
    back: bool = False


class Conversation(Struct, omit_defaults=True):
    """One suspension that carries many turns."""

    conversation_id: str
    node_id: str
    opened_at: int
    opened_seq: int
    last_seq: int
    #: index of the newest turn; the opening one is 0
    turns: int = 0
    #: where that turn is in the log: the next one is caused by it, whatever was steered between
    turn_seq: int = 0
    open: bool = True
    #: agents that may speak, when the roster is closed
    roster: list[str] | None = None
    schema: dict[str, Any] | None = None
    owner: str | None = None
    group_id: str | None = None
    #: people who were asked and have not answered
    asked: awaited_people.Asked = {}
    #: as it was renamed; None while it is called as at first
    title: str | None = None
    #: place of a task that is open -> what it is
    tasks: dict[int, Task] = {}
    #: thread -> how it is linked
    links: dict[str, Link] = {}
    state: thread_controls.ThreadState = field(default_factory=thread_controls.ThreadState)
    #: of a conversation that the host leads
    floor: Floor | None = None
    #: of one that nobody leads, while agents speak
    chain: agent_chain.Chain | None = None


def thread_id(run: "Run", talk: Conversation) -> str:
    """A thread is its run; a conversation within another run is named after its node, too."""
    if run.workflow_id == THREAD:
        return run.run_id
    return f"{run.run_id}~{talk.node_id}~{talk.conversation_id.rpartition(':')[2]}"


#: of a title in a list
LONGEST_TITLE = 256
TITLE = f"A title is a line of 1 to {LONGEST_TITLE} characters that can be read."


def as_title(text: Any) -> str | None:
    """What a thread may be called: one line that can be read. None for anything else."""
    line = " ".join(text.split()) if isinstance(text, str) else ""
    return line if 1 <= len(line) <= LONGEST_TITLE and line.isprintable() else None


def first_title(run: "Run", talk: Conversation) -> str:
    """What the conversation was called when it began: by a name, or by its question."""
    given = run.inputs.get("title") or run.inputs.get("question")
    text = given[: 4 * LONGEST_TITLE] if isinstance(given, str) else ""
    line = " ".join("".join(mark if mark.isprintable() else " " for mark in text).split())
    return (line or f"{run.workflow_id}/{talk.node_id}")[:LONGEST_TITLE]


def title_of(run: "Run", talk: Conversation) -> str:
    return first_title(run, talk) if talk.title is None else talk.title


def only_titled(run: "Run") -> bool:
    """Whether nobody opened the thread with words: its first turn is its title, and none."""
    return run.workflow_id == THREAD and not run.inputs.get("question")


def turns_said(run: "Run", talk: Conversation) -> int:
    """How many turns there are."""
    return talk.turns if only_titled(run) else talk.turns + 1


def _requested(run: "Run", event: Event, at: int) -> None:
    said = event.payload
    run.interrupts[_node(event)] = Interrupt(
        kind=said.get("kind", "custom"),
        key=said.get("key", ""),
        data=said.get("data", {}),
        requested_at=at,
        seq=event.sequence,
        resume_schema=said.get("resumeSchema"),
    )


def _suspended(run: "Run", event: Event, at: int) -> None:
    said = event.payload
    found = run.interrupts.get(_node(event))
    if found is not None:
        due = lineage.due_of(event)
        found.interrupt_id = said.get("interruptId", "")
        found.due = millis(due) if due else None
        found.profile = said.get("profile")
    run.suspend(_node(event))


def _voted(run: "Run", event: Event, at: int) -> None:
    found = run.interrupts.get(event.payload.get("gateId", ""))
    if found is not None:
        action = "accept" if event.type == "moot.approval.granted" else "reject"
        found.votes[event.payload.get("principal", "")] = action
        found.edits.pop(event.payload.get("principal", ""), None)
        if "editedArtifactData" in event.payload:
            found.edits[event.payload.get("principal", "")] = event.payload["editedArtifactData"]


def _resolved(run: "Run", event: Event, at: int) -> None:
    said = event.payload
    node_id = _node(event)
    found = run.interrupts.pop(node_id, None)
    if found is not None and node_id in run.nodes:  # what a pause takes of it, its end counts
        until = run.paused_at or at
        run.nodes[node_id].paused_ms += max(0, until - found.requested_at)
    value = said.get("resumeValue")
    action = value.get("action") if isinstance(value, dict) else None
    if found is not None and found.data.get("artifactType") == supervisor.DECISION:
        supervisor.ratified(run, action)
    run.answered[node_id] = Answered(
        said.get("interruptId", ""),
        said.get("resolvedBy", ""),
        at,
        action or said.get("outcome"),
        said.get("kind", ""),
    )


def _resumed(run: "Run", event: Event, at: int) -> None:
    run.unsuspend(_node(event))
    node = run.nodes.get(_node(event))
    if node is not None:
        value = event.payload.get("resumeValue")
        if not agents.ruled(node, value):
            node.answer = [value]


def _opened(run: "Run", event: Event, at: int) -> None:
    said = event.payload
    members = said.get("participants")
    node_id = _node(event)
    run.conversations[node_id] = Conversation(
        conversation_id=said.get("conversationId", ""),
        node_id=node_id,
        opened_at=at,
        opened_seq=event.sequence,
        last_seq=event.sequence,
        roster=None if members is None else [member.get("agentId", "") for member in members],
        schema=said.get("schema"),
        owner=said.get("agentId"),
        group_id=said.get("initialTurn", {}).get("groupId"),
    )
    run.conversations[node_id].state.by_invitation = run.workflow_id == THREAD
    thread_controls.came(run.conversations[node_id].state, run.person)
    _heard(run.conversations[node_id], said.get("initialTurn", {}), event.sequence, at)
    if supervisor.asks(run, said.get("agentId")):
        awaited_people.asked(run.conversations[node_id].asked, "user", said["agentId"], (0, at))


def _exchanged(run: "Run", event: Event, at: int) -> None:
    found = run.conversations.get(_node(event))
    if found is not None:
        _heard(found, event.payload.get("turn", {}), event.sequence, at)


def _heard(conversation: Conversation, turn: dict[str, Any], sequence: int, at: int) -> None:
    conversation.turns = turn.get("turnIndex", conversation.turns)
    conversation.last_seq = conversation.turn_seq = sequence
    speaker, to = turn.get("from", ""), turn.get("to")
    if conversation.asked:
        awaited_people.answered(conversation.asked, speaker, to)
    if to is not None and is_person(to):
        awaited_people.asked(conversation.asked, to, speaker, (conversation.turns, at))
    thread_controls.heard(conversation.state, speaker)
    tasks.heard(conversation.tasks, turn, sequence, at)
    if conversation.floor is not None:
        turn_addressees.heard(conversation.floor, turn, conversation.state, sequence, at)
    else:
        known = {name: member.profile for name, member in conversation.state.members.items()}
        known |= {name: {} for name in (*(conversation.roster or ()), *conversation.state.people)}
        conversation.chain = agent_chain.heard(conversation.chain, turn, known, sequence)


def _closed(run: "Run", event: Event, at: int) -> None:
    found = run.conversations.get(_node(event))
    if found is not None:
        found.turns = event.payload.get("turnIndex", found.turns)
        found.last_seq = event.sequence
        found.open = False
        found.asked, found.tasks, found.chain = {}, {}, None
        if found.floor is not None:
            found.floor.wakes, found.floor.held, found.floor.asks = {}, {}, {}
            found.floor.unpaid, found.floor.later = {}, {}


def _controlled(run: "Run", event: Event, at: int) -> None:
    found = run.conversations.get(_node(event))
    if found is not None:
        thread_controls.control(found.state, event.payload, at)
        found.last_seq = event.sequence
        if found.floor is not None:
            thread_controls.prodded_here(found.state, found.floor.members)
            put_off_requests.taken_up(found.floor, found.state)
            if not thread_controls.run_out(found.state, at):
                floor_continuation.time_given(found.floor)


def _renamed(run: "Run", event: Event, at: int) -> None:
    found = run.conversations.get(_node(event))
    if found is not None:
        found.title = str(event.payload.get("title", ""))[:LONGEST_TITLE]
        found.last_seq = event.sequence


def _linked(run: "Run", event: Event, at: int) -> None:
    found = run.conversations.get(_node(event))
    if found is not None:
        said = event.payload
        back = said.get("back") is True
        going_on = said.get("closed") is not True and not back
        link = Link(str(said.get("title", "")), going_on, back)
        found.links[str(said.get("threadId", ""))] = link
        found.last_seq = event.sequence


def _presence(run: "Run", event: Event, at: int) -> None:
    found = run.conversations.get(_node(event))
    if found is not None:
        thread_controls.present(found.state, event.payload)
        found.last_seq = event.sequence


def _joined(run: "Run", event: Event, at: int) -> None:
    found = run.conversations.get(_node(event))
    if found is not None:
        thread_controls.joined(found.state, event.payload, at)
        found.last_seq = event.sequence
        name = full_name(str(event.payload.get("participantId", "")))
        if found.floor is not None:
            member = found.state.members[name]
            by = member.invited_by
            joined(found.floor, name, member.profile, member.outside, by)


def _left(run: "Run", event: Event, at: int) -> None:
    found = run.conversations.get(_node(event))
    if found is not None:
        thread_controls.left(found.state, event.payload)
        found.last_seq = event.sequence
        if found.floor is not None:
            name = full_name(str(event.payload.get("participantId", "")))
            usage.left(found.floor, name)


def _led(run: "Run", event: Event, at: int) -> None:
    """Who is given the floor, and what comes of it."""
    found = run.conversations.get(_node(event))
    if found is None:
        if event.type == agents.ASKED:
            agents.asked(run, event)
        return
    found.last_seq = event.sequence
    said, floor = event.payload, found.floor
    if event.type == "moot.participation.set":
        found.floor = was_set(floor, said, found.turns, at)
        if floor is None and found.floor is not None:
            turn_addressees.opened(found.floor, said, run.person, found.opened_seq)
    elif floor is not None and event.type == "moot.participation.decided":
        put_off_requests.put_off(floor, found.state, said)
        decided(floor, said, event.sequence, at)
        told = [item for word in ("wakes", "skipped", "called") for item in said.get(word, [])]
        given = [item["agentId"] for item in told]
        found.state.prodded = [name for name in found.state.prodded if name not in given]
    elif floor is not None:
        LED[event.type](floor, event, at)
        if event.type == "moot.participation.continued" and thread_controls.run_out(
            found.state, at
        ):
            found.state.ttl_until = None  # a person's word is more than the time he has set
    elif event.type == "moot.participation.stopped" and found.chain is not None:
        found.chain.stopped = True
    elif event.type == "moot.participation.continued":
        found.chain = None


LED: dict[str, Callable[[Floor, Event, int], None]] = {
    "moot.participation.answered": lambda floor, event, at: usage.answered(floor, event.payload),
    "moot.participation.stopped": lambda floor, event, at: stopped(floor, event.payload),
    "moot.participation.continued": lambda floor, event, at: floor_continuation.continued(
        floor, event.payload, at
    ),
    "moot.vote.called": lambda floor, event, at: floor_continuation.put_to_vote(
        floor, event.payload, at
    ),
    "moot.turn.held": lambda floor, event, at: floor_held_turns.held(
        floor, event.payload, event.sequence
    ),
    "moot.tool.asked": lambda floor, event, at: floor_tool_requests.asked(
        floor, event.payload, event.sequence, at
    ),
    "moot.tool.answered": lambda floor, event, at: floor_tool_requests.answered(
        floor, event.payload, at
    ),
    "moot.tool.reopened": lambda floor, event, at: floor_tool_requests.reopened(
        floor, event.payload
    ),
    "moot.turn.admitted": lambda floor, event, at: floor_held_turns.settled(floor, event.payload),
    "moot.turn.dropped": lambda floor, event, at: floor_held_turns.settled(floor, event.payload),
}


def _node(event: Event) -> str:
    return event.node_id if event.node_id is not UNSET else event.payload.get("nodeId", "")


HANDLERS: dict[str, Callable[["Run", Event, int], None]] = {
    "interrupt.requested": _requested,
    "node.suspended": _suspended,
    "moot.approval.granted": _voted,
    "moot.approval.rejected": _voted,
    "interrupt.resolved": _resolved,
    "node.resumed": _resumed,
    "conversation.opened": _opened,
    "conversation.exchanged": _exchanged,
    "conversation.closed": _closed,
    "moot.thread.control": _controlled,
    "moot.thread.renamed": _renamed,
    "moot.thread.linked": _linked,
    "moot.presence.changed": _presence,
    "moot.participant.joined": _joined,
    "moot.participant.left": _left,
    **dict.fromkeys(["moot.participation.set", "moot.participation.decided", *LED], _led),
}
