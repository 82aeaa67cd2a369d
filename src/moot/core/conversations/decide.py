"""What an answer does to a conversation: a turn, or its close."""

from typing import Any

from msgspec import Struct

from moot.core.conversations import addressing, decisions, joining, turns
from moot.core.errors import BadRequest, Forbidden, MootError, NotFound
from moot.core.events import NewEvent, iso
from moot.core.ids import derived_id
from moot.core.json import schema as schemas
from moot.core.runs.answers import Answer, completed, ended
from moot.core.state import tasks
from moot.core.state.conversation import Conversation
from moot.core.state.run import Run
from moot.core.text.names import full_name
from moot.core.workflows.graph import Flow, FlowNode
from moot.core.workflows.node_types import ConversationSpec

OPERATIONS = ("exchange", "close")


class _Said(Struct, frozen=True):
    """An answer to a conversation, taken apart."""

    operation: str
    turn: Any = None
    outcome: Any = None
    #: the outcome was called a decision: it must be one
    decided: bool = False


def talk(run: Run, flow: Flow, node: FlowNode, given: Answer) -> list[NewEvent]:
    """A turn never resumes the node; only a close does."""
    found = turns.must_be_open(run.conversations.get(node.id), run, node.id)
    said = _said(given.value)
    _refuse_foreign(found, given.value)
    if said.operation == "close":
        _check_whose_end(found, given)
        _check_outcome(run, node, said.outcome)
        agents = () if given.who.speaks_for_people else given.who.names
        decisions.check(said.outcome, found, said.decided, agents)
        final = _final_turn(found, said.turn, given)
        closed = turns.closed(found, node, final, said.outcome)
        return closing(run, flow, node, found, closed, given)
    turn = turns.turn_of(found, said.turn, given.who, given.at)
    people = turns.everybody(found)
    turn = addressing.addressed(tasks.check(found.tasks, people, turn), people)
    return [*_comes_in(found, turn, given), *taken(run, flow, node, found, turn, given)]


def _comes_in(found: Conversation, turn: dict[str, Any], given: Answer) -> list[NewEvent]:
    """Who may speak without having been invited takes part from here on."""
    name = turn["from"]
    if turn["role"] != "agent" or not joining.needs_seat(found, full_name(name)):
        return []
    outside = given.who.joins == "outside"
    return [joining.welcome(found, joining.named(name, "from"), {}, name, outside)]


def taken(
    run: Run, flow: Flow, node: FlowNode, found: Conversation, turn: dict[str, Any], given: Answer
) -> list[NewEvent]:
    """A turn that may be said; the last one of a conversation that has so many closes it."""
    events = turns.exchanged(run, flow, node, found, turn, given.at)
    limit = close_after(node)
    if limit is not None and turn["turnIndex"] >= limit:
        final = turns.system_turn(found, "All turns have been taken.", given.at, ahead=2)
        closed = turns.closed(found, node, final, turn["content"], run.next_sequence)
        events += closing(run, flow, node, found, closed, given)
    return events


def _refuse_foreign(found: Conversation, value: dict[str, Any]) -> None:
    turn = value.get("turn")
    for place in (value, turn if isinstance(turn, dict) else {}):
        named = place.get("conversationId", found.conversation_id)
        if named != found.conversation_id:
            raise NotFound("There is no such conversation here.", conversationId=str(named)[:256])


def _check_outcome(run: Run, node: FlowNode, outcome: Any) -> None:
    schema = run.interrupts[node.id].data.get("outcomeSchema")
    if schema is not None and (problems := schemas.problems(schema, outcome)):
        raise BadRequest(f"The outcome does not fit: {problems[0]}", fields=problems)


def close_after(node: FlowNode) -> int | None:
    if node.type.dispatches:
        return 1  # a supervisor's question has one answer
    config = node.definition.config
    return int(config.get("turnCount", 1)) if config.get("lifecycle") else None


def _said(value: Any) -> _Said:
    """``{operation, turn, outcome}``; a bare turn is an exchange; a decision is an outcome."""
    if not isinstance(value, dict):
        raise BadRequest("Answer with {operation, turn} or with a turn.", field="resumeValue")
    if "operation" not in value and "turn" not in value:
        return _Said("exchange", value)
    operation = value.get("operation", "exchange")
    if operation not in OPERATIONS:
        raise BadRequest(f"operation must be one of {', '.join(OPERATIONS)}.", field="operation")
    decided = value.get("decision")
    if decided is not None and operation == "close":
        if value.get("outcome") is not None:
            raise BadRequest("A close has a decision or another outcome.", field="outcome")
        outcome = {"text": decided} if isinstance(decided, str) else decided
        return _Said(operation, value.get("turn"), outcome, decided=True)
    return _Said(operation, value.get("turn"), value.get("outcome"))


def _final_turn(found: Conversation, said: Any, given: Answer) -> dict[str, Any]:
    if said is not None:
        return turns.turn_of(found, said, given.who, given.at)
    _check_may_close(found, given)
    text = f"{given.who.person} closed the conversation."
    turn = turns.system_turn(found, text, given.at)
    turn["via"] = given.who.principal
    return turn


def _check_whose_end(found: Conversation, given: Answer) -> None:
    """A led conversation ends as its policy says, whichever way it is asked for."""
    floor, who = found.floor, given.who
    if floor is None or who.speaks_for_people:
        return
    if floor.policy.close != "moderator" or floor.policy.moderator not in who.names:
        raise Forbidden(
            "This conversation is closed by a person"
            + (" or its moderator." if floor.policy.close == "moderator" else "."),
            participant=who.person,
        )


def _check_may_close(found: Conversation, given: Answer) -> None:
    """A person may; an agent may who could also say so."""
    who = given.who
    if who.speaks_for_people:
        return
    agents = who.names
    refusals = []
    for name in agents:
        try:
            said = {"role": "agent", "speakerId": name}
            turns.floor(found, said, who, given.at)
        except MootError as refusal:
            refusals.append(refusal)
    if len(refusals) == len(agents):
        raise refusals[0]


def closing(
    run: Run, flow: Flow, node: FlowNode, found: Conversation, closed: NewEvent, given: Answer
) -> list[NewEvent]:
    outcome, final = closed.payload["outcome"], closed.payload["finalTurn"]
    outputs = turns.outputs(found, closed.payload["turnIndex"], outcome)
    return [
        closed,
        *turns.own_echo(run, flow, node, final, given.at),
        *ended(node, run.interrupts[node.id], given, outcome, []),
        completed(run, node, outputs, given.at),
    ]


def opened(run: Run, flow: Flow, node: FlowNode, spec: ConversationSpec, at: int) -> list[NewEvent]:
    """The first turn, and who is invited from the beginning."""
    event = turns.opened(run, node, spec, at)
    turn = event.payload["initialTurn"]
    said = turns.own_echo(run, flow, node, turn, turn["ts"])
    return [event, *said, *turns.joined(run, node, spec), *turns.led(run, node, spec)]


def by_itself(
    run: Run, flow: Flow, node: FlowNode, spec: ConversationSpec, at: int
) -> list[NewEvent]:
    """A host under trial talks to itself: no person, no model, and nothing of this run or this
    hour in what is said, so that a replay says the same."""
    said, turn = _mocked(run, flow, node, spec)
    name = derived_id("int_", run.run_id, node.id, str(run.nodes[node.id].attempt))
    outcome = turn["content"]
    resolved = {
        "nodeId": node.id,
        "interruptId": name,
        "kind": "conversation.exchange",
        "resumeValue": outcome,
        "resolvedAt": iso(at * 1000),
        "resolvedBy": "mock",
    }
    resumed = {"nodeId": node.id, "interruptId": name, "resumeValue": outcome}
    outputs = {"outcome": outcome, "turnCount": turn["turnIndex"]}
    return [
        *said,
        NewEvent("interrupt.resolved", resolved, node.id, cause=run.next_sequence),
        NewEvent("node.resumed", resumed, node.id),
        completed(run, node, outputs, at),
    ]


def _mocked(
    run: Run, flow: Flow, node: FlowNode, spec: ConversationSpec
) -> tuple[list[NewEvent], dict[str, Any]]:
    """Pairs of a user's and an agent's turn, and the close; the final turn besides."""
    name = turns.conversation_id(run, node.id, run.nodes[node.id].attempt)
    speaker = spec.participants[0]["agentId"] if spec.participants else spec.owner or "host:mock"
    events: list[NewEvent] = []
    last = run.next_sequence + 2  # asked, suspended, opened: the same decision
    first = last + len(opened(run, flow, node, spec, 0))
    for index in range(1, 2 * (spec.mock_turns or 1) + 1):
        person = index % 2 == 1
        role, who = ("user", "user") if person else ("agent", speaker)
        turn = turns.new_turn(name, index, role, who, f"mock turn {index}", index, spec.group_id)
        payload = {"conversationId": name, "turnIndex": index, "turn": turn}
        here = first + len(events)
        events.append(NewEvent("conversation.exchanged", payload, node.id, cause=last))
        events += turns.echo(run, flow, node, turn, index)
        last = here
    index = 2 * (spec.mock_turns or 1) + 1
    final = turns.new_turn(name, index, "system", "system", "mock close", index)
    payload = {
        "conversationId": name,
        "turnIndex": index,
        "finalTurn": final,
        "outcome": "mock close",
    }
    events.append(NewEvent("conversation.closed", payload, node.id, cause=last))
    return [*events, *turns.own_echo(run, flow, node, final, index)], final
