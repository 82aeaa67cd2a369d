"""What the world may have said: the command that an event tells of, decided anew.

A fact cannot be worked out. But what stands in the log beside it follows from it: who answered
is a fact, what the answer led to is not.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import UNSET

from moot.core.agents import refusals
from moot.core.agents.decide import TOLD, attributed, emit
from moot.core.children import peer_requests
from moot.core.commands import CancelRun, PauseRun, ResumeRun, Wake, decide
from moot.core.events import Event, NewEvent, iso, millis
from moot.core.ids import logical_invocation_id
from moot.core.pending import deadline
from moot.core.replay.compare import CLOCKS, alike
from moot.core.replay.masks import Veil
from moot.core.runs import handles
from moot.core.runs.handles import worker
from moot.core.runs.nodes import Emit
from moot.core.state import agents
from moot.core.state.lineage import CHILD_FORKED
from moot.core.state.node import NodeState
from moot.core.state.remote_children import ASKED_ANEW
from moot.core.state.run import HANDLERS, Run
from moot.core.state.status import NodeStatus
from moot.core.state.usage import CHARGED
from moot.core.verify import children, conversations, councils, nodes
from moot.core.verify.interrupts import ANSWERS, asked_back
from moot.core.verify.nodes import Impossible, Kept, Seen
from moot.core.wake import wake_node
from moot.core.workflows.channels import Rule, check
from moot.core.workflows.definition import SUPERVISOR
from moot.core.workflows.graph import Flow, FlowNode
from moot.core.workflows.node_types import Kind

__all__ = ["TIMESTAMP", "Impossible", "caused", "is_turn"]

TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII)

#: what time may bring about without changing the state
TIMELY = ("cap.breached",)


def is_turn(flow: Flow, event: Event) -> bool:
    """Whether a turn of the supervisor begins."""
    node = flow.nodes.get(event.node_id) if event.node_id is not UNSET else None
    if node is None or node.type.type_id != SUPERVISOR or event.type != "node.started":
        return False
    again = event.hints is not UNSET and "again" in event.hints
    return again or event.payload.get("attempt") == 1


def caused(
    run: Run, flow: Flow, log: Sequence[Event], first: int, veil: Veil, kept: Kept
) -> list[NewEvent]:
    """What the command that the event tells of causes. Raises Impossible, or what the command is
    refused with."""
    event = log[first]
    node = flow.nodes.get(event.node_id) if event.node_id is not UNSET else None
    if event.node_id is not UNSET and node is None:
        raise Impossible("node", "a node of the workflow", event.node_id)
    seen = Seen(run, flow, node, log, first, millis(event.timestamp), veil, kept)
    operator = OPERATORS.get(event.type)
    if operator is not None:
        return operator(seen)
    woken = _woken(seen) if event.type in HANDLERS or event.type in TIMELY else []
    if woken:
        return woken
    if run.replayed and event.type in ("run.failed", "cap.breached"):
        return [seen.as_told()]  # a limit of the source: part of it may have become history
    if node is None:
        raise Impossible("type", "something that nobody's node says", event.type)
    found = _of_node(seen, node, event)
    for new in found:
        if new.type == "node.completed" and (by := worker(run, flow, new.node_id or "")):
            new.payload["agent"] = by
    return found


def _of_node(seen: Seen, node: FlowNode, event: Event) -> list[NewEvent]:
    state = seen.run.nodes.get(node.id)
    if state is None or node.id not in seen.run.active:
        raise Impossible("impossible", "a node at work", event.type)
    answers = ANSWERS.get(event.type) or conversations.TALKS.get(event.type)
    if answers is not None:
        return answers(seen)
    if state.status is NodeStatus.SUSPENDED:
        return _of_waiting(seen, node, event)
    if node.type.kind is Kind.CHILD:
        return children.child(seen, state)
    if event.type == "node.started" and seen.run.replayed:
        return [seen.as_told()]  # what a pause had cut short begins again, the pause is not told
    if state.status is not NodeStatus.RUNNING:
        raise Impossible("impossible", f"nothing of a node that is {state.status}", event.type)
    if event.type in nodes.OUTCOMES:
        return nodes.outcome(seen, state)
    if node.type.kind is Kind.ACTIVITY and event.type in TOLD:
        return _of_agent(seen, state, node)
    if node.type.kind is Kind.ACTIVITY or (node.type.kind is Kind.INSTANT and seen.veiled):
        return [_report(seen, node, event)]
    raise Impossible("impossible", "what follows from the state", event.type)


def _of_waiting(seen: Seen, node: FlowNode, event: Event) -> list[NewEvent]:
    """Beside an answer, only a question back, and the work of who has the floor."""
    if event.type == "channel.written":
        return asked_back(seen)
    talk = seen.run.conversations.get(node.id)
    if talk is None or talk.floor is None:
        raise Impossible("impossible", "nothing of a node that is suspended", event.type)
    return councils.report(seen)


def _of_agent(seen: Seen, state: NodeState, node: FlowNode) -> list[NewEvent]:
    """What an agent tells of itself, and the question that an unsure decision leads to."""
    event = seen.event
    counted = agents.REASONED if event.type == agents.DELTA else event.type
    new = NewEvent(event.type, event.payload, node.id, hints={"nth": state.said.get(counted, 0)})
    return emit(seen.run, seen.flow, Emit(node.id, state.attempt, (new,), seen.at, required=True))


def _report(seen: Seen, node: FlowNode, event: Event) -> NewEvent:
    """What a node at work tells on the way."""
    cause: int | None = seen.run.nodes[node.id].started_seq
    said = event.payload
    if event.type == "variable.changed":
        _check_variable(seen, said)
    elif event.type == "channel.written":
        _check_write(seen, node, event)
        cause = None if seen.caused_by_before() else cause
    elif event.type.startswith("moot.effect."):
        _check_effect(seen, node, event)
    elif event.type in HANDLERS and event.type != agents.RETRIED:
        raise Impossible("impossible", "a report of a node at work", event.type)
    elif event.type == "cap.breached":  # of a model's calls: it explains the failure to come
        cause = None if seen.caused_by_before() else cause
    if said.get("nodeId", node.id) != node.id:
        raise Impossible("payload", {"nodeId": node.id}, {"nodeId": said["nodeId"]})
    return NewEvent(event.type, said, node.id, cause=cause, hints=seen.hints)


def _check_variable(seen: Seen, said: dict[str, Any]) -> None:
    """What it was before is known."""
    name, known = said.get("name"), seen.run.variables
    if not isinstance(name, str) or name in seen.flow.channels:
        raise Impossible("payload", "the name of a variable", name)
    expected = {"previous": known[name]} if name in known else {}
    found = {"previous": said["previous"]} if "previous" in said else {}
    if not alike(expected, found, None):
        raise Impossible("payload", expected, found)


def _check_write(seen: Seen, node: FlowNode, event: Event) -> None:
    """By the channel's own rule, and something that the channel takes."""
    said, name = event.payload, event.payload.get("channel", "")
    declared = seen.flow.channels.get(name)
    found = {key: value for key, value in (seen.hints or {}).items() if key != "turn"}
    if declared is not None:
        expected = (declared.recorded, declared.hints() or {})
        if (said.get("reducer"), found) != expected:
            raise Impossible("payload", expected, (said.get("reducer"), found))
    rule = declared or Rule(str(found.get("reducer") or said.get("reducer", "replace")))
    covered = seen.veil.covers_channel(seen.run, name, said.get("value"))
    if rule.reducer != "message" and not covered:
        current = seen.run.channels.get(name)
        if problem := check(rule, current, _bare(rule, said.get("value"))):
            raise Impossible("payload", problem, said.get("value"))


def _bare(rule: Rule, value: Any) -> Any:
    """What was written, without the time that is kept with it."""
    if rule.ttl_ms and isinstance(value, dict) and set(value) == {"value", "_ts"}:
        return value["value"]
    return value


def _check_effect(seen: Seen, node: FlowNode, event: Event) -> None:
    """Its name follows from where it was made; its end follows its beginning."""
    said, run = event.payload, seen.run
    earlier = run.attempts.get(node.id, 0)
    place = f"{node.id}#{earlier}" if earlier else node.id
    if event.sequence >= run.inherited:
        name = logical_invocation_id(
            run.tenant, run.run_id, place, said["ordinal"], said["providerKey"]
        )
        if said["invocationId"] != name:
            raise Impossible("payload", {"invocationId": name}, said)
    if said.get("attempt") != run.nodes[node.id].attempt:
        raise Impossible("payload", {"attempt": run.nodes[node.id].attempt}, said)
    if said.get(CHARGED) not in (None, *handles.payers(run, handles.handle_of(node))):
        raise Impossible("impossible", "whoever's work it is", said)
    begun = (node.id, said["ordinal"])
    if event.type == "moot.effect.finished" and begun not in seen.kept.begun:
        raise Impossible("impossible", "an effect that was begun", said)


def _woken(seen: Seen) -> list[NewEvent]:
    """What time alone brings about: at the time it is told, or when something fell due before."""
    run, flow, event = seen.run, seen.flow, seen.event
    for at in sorted(_moments(seen), reverse=True):
        events = decide(run, flow, Wake(at, children.lost(seen)))
        if events and seen.fits(events):
            return _later(_observed(events, event), seen.at - at)
    if seen.timeless and event.node_id in run.active:  # no time passes there: each on its own
        late = max(seen.at, *(run.nodes[key].due or 0 for key in run.active))
        given_up = children.lost(seen)
        woken = wake_node(run, flow, str(event.node_id), late, [], given_up)
        events = attributed(run, flow, woken)
        if events and seen.fits(events):
            return events
    return []


def _later(events: list[NewEvent], by_ms: int) -> list[NewEvent]:
    """It was looked at some time between falling due and being written: no later than that."""
    for new in events:
        for key in CLOCKS.intersection(new.payload):
            value = new.payload[key]
            later = value + by_ms if isinstance(value, int) else _shifted(value, by_ms)
            new.payload = {**new.payload, key: later}
    return events


def _shifted(written: str, by_ms: int) -> str:
    return iso((millis(written) + by_ms) * 1000)


def _moments(seen: Seen) -> set[int]:
    run, found = seen.run, {seen.at}
    for node_id in run.active:
        due, limit = run.nodes[node_id].due, seen.flow.nodes[node_id].timeout_ms
        if due is not None and due <= seen.at:
            found.add(due)
        if limit:
            state = run.nodes[node_id]
            found.add(min(seen.at, state.started_at + state.paused_ms + limit))
        talk = run.conversations.get(node_id)
        wakes = talk.floor.wakes if talk is not None and talk.floor is not None else {}
        found |= {wake.due for wake in wakes.values() if wake.due <= seen.at}
    if seen.timeless:
        found.add(deadline(run) or seen.at)
    return found


def _observed(events: list[NewEvent], event: Event) -> list[NewEvent]:
    """How much too long a run took is known to the moment only when it was looked."""
    cap, seen = events[0].payload, event.payload.get("observed")
    if events[0].type == "cap.breached" and isinstance(seen, int) and seen > cap["limit"]:
        cap["observed"] = seen
    return events


# -- operators -----------------------------------------------------------------------------------


def _cancelled(seen: Seen) -> list[NewEvent]:
    end = next((e for e in seen.rest if e.type == "run.cancelled"), None)
    if seen.run.replayed and (end is None or seen.node is not None):
        return [seen.as_told()]  # half of a cancel may have become history
    if end is None:
        raise Impossible("missing", "run.cancelled", seen.event.type)
    said = end.payload
    command = CancelRun(
        seen.at, said.get("reason"), said.get("cancelledBy"), said.get("parentRunId")
    )
    return decide(seen.run, seen.flow, command)


def _paused(seen: Seen) -> list[NewEvent]:
    said = seen.event.payload
    policy = said.get("drainPolicy", "")
    if policy not in ("immediate", "drain-current-node"):
        raise Impossible("payload", "a drain policy", policy)
    command = PauseRun(seen.at, policy, said.get("reason"), said.get("pausedBy"))
    return decide(seen.run, seen.flow, command)


def _resumed(seen: Seen) -> list[NewEvent]:
    said = seen.event.payload
    return decide(
        seen.run, seen.flow, ResumeRun(seen.at, said.get("reason"), said.get("resumedBy"))
    )


def _set(seen: Seen) -> list[NewEvent]:
    if seen.node is not None:
        return []
    _check_variable(seen, seen.event.payload)
    return [NewEvent("variable.changed", seen.event.payload)]


def _variable(seen: Seen) -> list[NewEvent]:
    if seen.node is None:
        return _set(seen)
    woken = _woken(seen)
    return woken or _of_node(seen, seen.node, seen.event)


def _answered(seen: Seen) -> list[NewEvent]:
    """Silence is what time brings about; everything else a member does."""
    if seen.node is None or seen.its.id not in seen.run.active:
        raise Impossible("impossible", "a conversation that goes on", seen.event.type)
    if seen.event.payload.get("outcome") != "silent":
        return conversations.answered(seen)
    return conversations.silent(seen) if seen.timeless else _woken(seen)


def _child_forked(seen: Seen) -> list[NewEvent]:
    """Only at the fork, only of a child that lives. A replay says again what its source did."""
    run, said = seen.run, seen.event.payload
    if not run.replayed and (run.next_sequence < run.inherited or run.forked_from is None):
        raise Impossible("impossible", "a branch at its fork", seen.event.type)
    if run.children.get(said["childRunId"], "") is not None:
        raise Impossible("impossible", "a living child", said)
    given = (seen.hints or {}).get("given", {})
    if given.get(said["childRunId"], 0) < 1:
        raise Impossible("hints", "how much of the child was said again", given)
    return [NewEvent(CHILD_FORKED, said, said["nodeId"], hints=seen.hints)]


def _asked_anew(seen: Seen) -> list[NewEvent]:
    """Only in a branch, only of a child that its source has asked for, and as it did."""
    run, said = seen.run, seen.event.payload
    former = said["formerAskId"]
    if run.forked_from is None or former not in peer_requests.others(run):
        raise Impossible("impossible", "a child that the source had asked for", former)
    again = peer_requests.anew(run, former, seen.log[run.abroad[former].asked_seq])
    if run.next_sequence < run.inherited:  # the source was a branch itself: the names are its own
        again.payload |= {name: said[name] for name in ("askId", "parentRunId")}
    return [again]


def _diverged(seen: Seen) -> list[NewEvent]:
    if not seen.run.replayed:
        raise Impossible("impossible", "a replay", seen.event.type)
    return [NewEvent("replay.diverged", seen.event.payload)]


def _refused(seen: Seen) -> list[NewEvent]:
    """Only a replay ends so; its kinds differ, and everything else follows from them."""
    said = seen.event.payload
    if not seen.run.replayed or said["sourceRunId"] != (seen.run.forked_from or {})["sourceRunId"]:
        raise Impossible("impossible", "a replay of this source", seen.event.type)
    return refusals.end_of(seen.run, said, seen.at)


OPERATORS: dict[str, Callable[[Seen], list[NewEvent]]] = {
    "run.cancelled": _cancelled,
    "node.cancelled": _cancelled,
    "run.paused": _paused,
    "moot.pause.requested": _paused,
    "run.resumed": _resumed,
    "variable.changed": _variable,
    conversations.ANSWERED: _answered,
    "moot.peer.stopped": children.stopped,
    CHILD_FORKED: _child_forked,
    ASKED_ANEW: _asked_anew,
    "replay.diverged": _diverged,
    "replay.divergedAtRefusal": _refused,
}
