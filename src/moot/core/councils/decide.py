"""A led conversation goes on: the floor is given, members answer, or are passed over.

Whatever a member does with the floor, the wake it had ends exactly once; an answer to a wake that
is over causes nothing.
"""

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from moot.core.conversations.decide import talk as take_turn
from moot.core.conversations.decisions import carried
from moot.core.conversations.turns import HOST as HOST
from moot.core.conversations.turns import system_turn
from moot.core.councils import floor_events, mention_question
from moot.core.councils.next_step import step
from moot.core.councils.steps import Step
from moot.core.errors import Conflict, MootError, ParticipantMuted, ThreadPaused
from moot.core.errors.models import DailyBudgetUsedUp
from moot.core.events import NewEvent
from moot.core.runs.answers import Answer
from moot.core.speaker import Speaker
from moot.core.state import agents
from moot.core.state.conversation import Conversation
from moot.core.state.floor import DAY, NATURAL, NOBODY, PAIR, RUNWAY, SPOKEN, SYNTHESIS, Floor, Wake
from moot.core.state.run import Run
from moot.core.state.usage import ABANDONED
from moot.core.text.names import full_name
from moot.core.workflows.graph import Flow, FlowNode


class Participate(Struct, frozen=True):
    """Give the floor to whoever is next."""

    node_id: str
    at: int


class WakeEnded(Struct, frozen=True, kw_only=True):
    """What a member did with the floor: ``content`` is a turn, ``answer`` what else was asked."""

    node_id: str
    wake_id: str
    at: int
    #: spoke, answered, passed, failed or refused
    outcome: str
    content: Any = None
    to: str | None = None
    answer: dict[str, Any] | None = None
    usage: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    #: what is told about the turn beside its words
    meta: dict[str, Any] | None = None
    agent: dict[str, Any] | None = None
    #: what else is recorded with it
    facts: tuple[NewEvent, ...] = ()


class WakeReport(Struct, frozen=True):
    """Facts while a member is at work on its answer."""

    node_id: str
    wake_id: str
    events: tuple[NewEvent, ...]
    at: int
    #: the caller relies on them: refuse when the wake is over
    required: bool = False


def participate(run: Run, flow: Flow, node_id: str, at: int) -> list[NewEvent]:
    talk = run.conversations.get(node_id)
    found = step(talk, at) if talk is not None and run.going else None
    if talk is None or found is None:
        return []
    if found.stop is not None:
        return _stop(flow.nodes[node_id], talk, found, at)
    if talk.floor is None:
        return []
    if found.close:
        return _close(run, flow, flow.nodes[node_id], talk, talk.floor, at)
    decided = floor_events.decided(run, node_id, talk, found)
    if not found.unclear:
        return [decided]
    asked = said_by_host(
        flow.nodes[node_id], talk, mention_question.question(talk, found.unclear), at
    )
    asked.payload["turn"]["meta"] = {"replyTo": talk.turn_seq}
    if talk.floor.unclear_to:
        asked.payload["turn"]["to"] = talk.floor.unclear_to
    return [decided, asked]


#: stops in words, where their name says too little, and how a person undoes any of them
STOPS = {
    PAIR: "{who} have answered one another {times}",
    NOBODY: "nobody-answered, everybody who was asked failed, declined or was silent",
    SYNTHESIS: "synthesis, the moderator did not sum up",
    RUNWAY: "ttl reached its limit",
}
GO_ON = "A person can let it go on: /continue."


def _stop(node: FlowNode, talk: Conversation, found: Step, at: int) -> list[NewEvent]:
    payload: dict[str, Any] = {"conversationId": talk.conversation_id, "reason": found.stop}
    if found.limit is not None:
        payload["limit"] = found.limit
    if found.observed is not None:
        payload["observed"] = round(found.observed, 6)
    events = [NewEvent("moot.participation.stopped", payload, node.id, cause=talk.turn_seq)]
    if found.stop not in NATURAL:
        why = STOPS.get(str(found.stop), "{stop} reached its limit of {limit:g}")
        times = "once" if found.limit == 1 else f"{found.limit} times"
        why = why.format(stop=found.stop, limit=found.limit, who=_pair(talk), times=times)
        text = f"Stopped: {why}. {GO_ON}"
        events.append(said_by_host(node, talk, text, at))
    return events


def _pair(talk: Conversation) -> str:
    """Who have asked one another most often."""
    held = talk.floor if talk.floor is not None else talk.chain
    pairs = held.pairs if held is not None else {}
    most = max(pairs, key=lambda each: pairs[each], default="")
    return " and ".join(called(talk, name) for name in most.split("|")) or "two agents"


def said_by_host(
    node: FlowNode, talk: Conversation, text: str, at: int, ahead: int = 1
) -> NewEvent:
    turn = system_turn(talk, text, at, ahead)
    payload = {
        "conversationId": talk.conversation_id,
        "turnIndex": turn["turnIndex"],
        "turn": turn,
    }
    return NewEvent("conversation.exchanged", payload, node.id, cause=talk.turn_seq)


def _close(
    run: Run, flow: Flow, node: FlowNode, talk: Conversation, floor: Floor, at: int
) -> list[NewEvent]:
    """It ends with what was decided, and who was against it: by the moderator, or in the name of
    the person who asked for the vote."""
    votes = [
        {"by": name, "vote": str(said.get("vote", "abstain")), "reason": str(said["reason"])}
        if said.get("reason")
        else {"by": name, "vote": str(said.get("vote", "abstain"))}
        for name, said in floor.votes.items()
    ]
    # a person may decide against the votes, and says so
    rejected = floor.closer is None and floor.policy.vote and not carried(votes)
    text = f"Not adopted: {floor.proposal}" if rejected else floor.proposal
    decision: dict[str, Any] = {"text": text, "votes": votes}
    if rejected:
        decision["adopted"] = False
    decision["dissent"] = [
        {"by": vote["by"], "text": vote.get("reason", "votes no")}
        for vote in votes
        if vote["vote"] == "no"
    ]
    if floor.proposed_in:
        decision["citedTurns"] = [floor.proposed_in]
    value: dict[str, Any] = {"operation": "close", "decision": decision}
    if floor.closer is not None:
        who = Speaker(HOST, (floor.closer, *floor.votes), admin=True)
    else:
        moderator = str(floor.policy.moderator)
        said = text if rejected else f"Decided: {text}"
        value["turn"] = {"role": "agent", "speakerId": moderator, "content": said}
        who = Speaker(HOST, (moderator, *floor.votes), admin=True)
    try:
        return take_turn(run, flow, node, Answer(node_id=node.id, value=value, who=who, at=at))
    except MootError as refusal:  # the moderator is muted, or the outcome must be another one
        return _not_closed(node, talk, refusal, at)


def _not_closed(node: FlowNode, talk: Conversation, refusal: MootError, at: int) -> list[NewEvent]:
    """It rests until a person closes it, or lets it go on."""
    error = {"code": refusal.code, "message": refusal.message}
    payload = {"conversationId": talk.conversation_id, "reason": "close", "error": error}
    text = f"It could not be closed: {refusal.message} A person can close it, or /continue."
    return [
        NewEvent("moot.participation.stopped", payload, node.id, cause=talk.turn_seq),
        said_by_host(node, talk, text, at),
    ]


def wake_ended(run: Run, flow: Flow, given: WakeEnded) -> list[NewEvent]:
    talk = run.conversations.get(given.node_id)
    wake = _open_wake(run, talk, given.wake_id)
    if talk is None or wake is None:
        return []
    node = flow.nodes[given.node_id]
    facts = _fresh(talk, wake, given.wake_id, given.facts)
    return [*facts, *_ending(run, flow, node, talk, wake, replace(given, facts=tuple(facts)))]


def _ending(
    run: Run, flow: Flow, node: FlowNode, talk: Conversation, wake: Wake, given: WakeEnded
) -> list[NewEvent]:
    if given.outcome != "spoke" or wake.task not in SPOKEN:
        return _without_turn(node, talk, wake, given)
    said: dict[str, Any] = {
        "role": "agent",
        "speakerId": wake.agent,
        "content": given.content,
    }
    for key in ("to", "meta", "agent"):
        if getattr(given, key) is not None:
            said[key] = getattr(given, key)
    if more := floor_events.about(talk, wake):
        said["meta"] = {**said.get("meta", {}), **more}
    who = Speaker(HOST, (wake.agent,))
    answer = Answer(node_id=node.id, value={"turn": said}, who=who, at=given.at)
    try:
        turns = take_turn(run, flow, node, answer)
    except (ParticipantMuted, ThreadPaused) as refusal:
        place = str(run.next_sequence + len(given.facts))
        held = {"held": place, "turn": said, "reason": refusal.code}
        return _held(node, talk, wake, given, held)
    except MootError as refusal:
        error = {"code": refusal.code, "message": refusal.message}
        return _without_turn(node, talk, wake, _failed(given, error))
    return [answered(node, talk, wake, given, "spoke"), *turns]


def _failed(given: WakeEnded, error: dict[str, Any]) -> WakeEnded:
    return WakeEnded(
        node_id=given.node_id, wake_id=given.wake_id, at=given.at, outcome="failed",
        usage=given.usage, error=error,
    )  # fmt: skip


def _open_wake(run: Run, talk: Conversation | None, wake_id: str) -> Wake | None:
    if talk is None or talk.floor is None or not talk.open or not run.going:
        return None
    return talk.floor.wakes.get(wake_id)


def answered(
    node: FlowNode, talk: Conversation, wake: Wake, given: WakeEnded, outcome: str
) -> NewEvent:
    payload: dict[str, Any] = {
        "conversationId": talk.conversation_id,
        "wakeId": given.wake_id,
        "agentId": wake.agent,
        "task": wake.task,
        "outcome": outcome,
    }
    for key in ("answer", "usage", "error"):
        if getattr(given, key) is not None:
            payload[key] = getattr(given, key)
    return NewEvent("moot.participation.answered", payload, node.id, cause=wake.seq)


#: what the host says of a member that had the floor and did not speak
EXCUSES = {
    "failed": "{name} could not answer: {why}",
    "refused": "{name} declined to answer.",
}


def _without_turn(
    node: FlowNode, talk: Conversation, wake: Wake, given: WakeEnded
) -> list[NewEvent]:
    events = [answered(node, talk, wake, given, given.outcome)]
    if (given.error or {}).get("code") == DailyBudgetUsedUp.code:
        payload = {"conversationId": talk.conversation_id, "reason": DAY}
        events.append(NewEvent("moot.participation.stopped", payload, node.id, cause=talk.turn_seq))
    excuse = EXCUSES.get(given.outcome)
    if excuse is not None:
        why = str((given.error or {}).get("message", "no reason was given"))[:500]
        text = excuse.format(name=called(talk, wake.agent), why=why)
        events.append(said_by_host(node, talk, text, given.at))
    return events


def called(talk: Conversation, name: str) -> str:
    """How people call a member."""
    member = talk.floor.members.get(name) if talk.floor is not None else None
    profile = member.profile if member is not None else {}
    return str(profile.get("name") or name.rpartition(":")[2])


def _held(
    node: FlowNode, talk: Conversation, wake: Wake, given: WakeEnded, held: dict[str, Any]
) -> list[NewEvent]:
    """It was finished when its speaker might not speak any more: a person lets it in or not."""
    payload = {"conversationId": talk.conversation_id, "wakeId": given.wake_id, **held}
    return [
        NewEvent("moot.turn.held", payload, node.id, cause=wake.seq),
        answered(node, talk, wake, given, "held"),
    ]


def report(run: Run, flow: Flow, given: WakeReport) -> list[NewEvent]:
    talk = run.conversations.get(given.node_id)
    wake = _open_wake(run, talk, given.wake_id)
    if talk is None or wake is None:
        if given.required:
            raise Conflict("The member no longer has the floor.", runId=run.run_id)
        return _owed(run, talk, given)
    return _fresh(talk, wake, given.wake_id, given.events)


def _owed(run: Run, talk: Conversation | None, given: WakeReport) -> list[NewEvent]:
    """Whoever has lost the floor may still tell what its last call has cost."""
    floor = talk.floor if talk is not None and talk.open and run.going else None
    gone = floor.unpaid.get(given.wake_id) if floor is not None else None
    if gone is None:
        return []
    told = [event for event in given.events if event.type == ABANDONED]
    return [replace(event, cause=gone.seq) for event in told[:1]]


def _caused(event: NewEvent, wake: Wake) -> NewEvent:
    """What a member does is caused by its having the floor, unless it says otherwise."""
    return event if event.cause is not None else replace(event, cause=wake.seq)


def _fresh(
    talk: Conversation, wake: Wake, wake_id: str, events: tuple[NewEvent, ...]
) -> list[NewEvent]:
    """What has not been recorded yet: work that a crash cut short is lived again."""
    found = (_once(talk, wake, wake_id, event) for event in events)
    return [_caused(event, wake) for event in found if event is not None]


def _once(talk: Conversation, wake: Wake, wake_id: str, event: NewEvent) -> NewEvent | None:
    """The event as it is recorded, or None when it has been. A command may be decided again, so
    the event itself stays as it is."""
    if event.type == "moot.tool.asked":
        known = talk.floor is not None and event.payload.get("askId") in talk.floor.asks
        payload = {"conversationId": talk.conversation_id, **event.payload}
        return None if known else replace(event, payload=payload)
    if event.type not in agents.HANDLERS:
        return event
    nth: int = (event.hints or {}).get("nth", 0)
    mine = replace(event, hints={"wake": wake_id})
    if event.type == agents.RETURNED:
        call = wake.calls.get(event.payload["callId"])
        return None if call is None else replace(mine, cause=call)
    return None if nth < wake.said.get(event.type, 0) else mine


def taken(run: Run, node: FlowNode, said: list[NewEvent], at: int) -> list[NewEvent]:
    """What a turn from outside does to those who have the floor: its own wake is answered; a
    person who interrupts takes it from everybody."""
    talk, first = run.conversations[node.id], said[0]
    floor, turn = talk.floor, first.payload.get("turn")
    if floor is None or not floor.wakes or turn is None:
        return []
    ends: list[tuple[str, str]] = []
    meta = turn.get("meta")
    interrupts = floor.policy.interject == "interrupt" or (
        isinstance(meta, dict) and meta.get("interrupt") is True
    )
    for wake_id, wake in floor.wakes.items():
        if turn["role"] == "agent" and wake.agent == full_name(turn["from"]):
            ends.append((wake_id, "spoke"))
        elif turn["role"] == "user" and interrupts and wake.task == "speak":
            ends.append((wake_id, "superseded"))
    return [_over(node, talk, wake_id, at, outcome) for wake_id, outcome in ends]


def unasked(node: FlowNode, talk: Conversation, at: int) -> list[NewEvent]:
    """Whoever speaks may finish; what else members were asked is asked no longer."""
    wakes = talk.floor.wakes if talk.floor is not None else {}
    return [
        _over(node, talk, wake_id, at, "superseded")
        for wake_id, wake in wakes.items()
        if wake.task != "speak"
    ]


def _over(node: FlowNode, talk: Conversation, wake_id: str, at: int, outcome: str) -> NewEvent:
    assert talk.floor is not None
    given = WakeEnded(node_id=node.id, wake_id=wake_id, at=at, outcome=outcome)
    return answered(node, talk, talk.floor.wakes[wake_id], given, outcome)
