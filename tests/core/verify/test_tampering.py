"""Whatever is changed in the copy of a log, verification says where."""

import random
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from moot.core.commands import TimePassed
from moot.core.events import Event, event_id, with_fields
from moot.core.verify.walk import verify
from moot.core.workflows.node_types import ChannelWrite, Completed
from tests.support.core.simulator import (
    TENANT,
    Life,
    World,
    chain,
    compiled,
    definition,
    edge,
    node,
)
from tests.support.event_payloads import payload_json

Log = list[Event]

V = {"type": "variable", "variableName": "v"}
FAILING = node("broken", "core.fail", config={"retryable": True}, settings={"maxRetries": 1})


def story() -> tuple[World, Life]:
    """A run in which nearly everything happens once."""
    flows = {"kid": compiled(chain(_set("x", 7), id="kid"))}
    members = [{"agentId": "host:a"}, {"agentId": "host:b"}]
    top = chain(
        _set("v", {"a": [1]}),
        node("copy", "core.identity", inputs={"payload": V}),
        node("work", "acme.work"),
        node("nap", "core.delay", config={"ms": 30}),
        node("sub", "core.subWorkflow", config={"workflowId": "kid", "outputMapping": {"y": "x"}}),
        node("ok", "core.approvalGate", config={"title": "Ship?"}),
        node("talk", "core.conversationGate", config={"prompt": "June?", "participants": members}),
        node("which", "core.conditional", config={"expression": "variables.y == 7"}),
        id="top", channels={"log": {"reducer": "append"}},
        variables=[{"name": "size", "type": "number", "defaultValue": 3}],
    )  # fmt: skip
    top["nodes"] += [node("never"), FAILING]
    top["edges"] += [edge("which", "never", sourceOutput="false"), edge("ok", "broken")]
    flows["top"] = compiled(top)
    world = World(flows)
    life = world.start(flows["top"], inputs={"topic": "June"})
    _live(world, life)
    assert life.run.terminal and len(life.log) > 40
    return world, life


def _live(world: World, life: Life) -> None:
    wrote = Completed({"n": 1}, {"w": 2}, (ChannelWrite(channel="log", value="x"),))
    world.finish(life, "work", wrote)
    world.pass_time(31)
    world.take(life, TimePassed(world.at))
    for child in list(world.lives.values()):
        if child.run.parent_run and child.run.terminal:
            world.tell_parent(child)
    world.answer(life, "ok", {"action": "accept", "comment": "Go"})
    for name in ("host:a", "host:b"):
        world.answer(life, "talk", {"role": "agent", "speakerId": name, "content": name})
    world.answer(life, "talk", {"operation": "close", "outcome": "June"})
    world.pass_time(60_000)
    world.take(life, TimePassed(world.at))


def _set(name: str, value: Any) -> dict[str, Any]:
    return node(f"set-{name}", "core.setVariable", config={"name": name, "value": value})


def at(log: Log, type_: str, nth: int = 0, **said: Any) -> int:
    found = [
        n for n, event in enumerate(log)
        if event.type == type_ and all(payload_json(event).get(k) == v for k, v in said.items())
    ]  # fmt: skip
    return found[nth]


def told(log: Log, place: int, **changes: Any) -> Log:
    """One payload says something else."""
    event = log[place]
    return [
        *log[:place],
        with_fields(event, {**payload_json(event), **changes}),
        *log[place + 1 :],
    ]


def changed(log: Log, place: int, **changes: Any) -> Log:
    return [*log[:place], replace(log[place], **changes), *log[place + 1 :]]


def renumbered(log: Log) -> Log:
    """As a careful forger would: numbers, ids, causes and times all fit again."""
    places = {event.event_id: n for n, event in enumerate(log)}
    stamps = sorted(event.timestamp for event in log)
    return [
        replace(
            event,
            sequence=n,
            event_id=event_id(event.run_id, n),
            timestamp=stamps[n],
            **(
                {"causation_id": event_id(event.run_id, places[event.causation_id])}
                if event.causation_id in places
                else {}
            ),
        )
        for n, event in enumerate(log)
    ]


def dropped(log: Log, place: int) -> Log:
    return [*log[:place], *log[place + 1 :]]


def swapped(log: Log, place: int) -> Log:
    return [*log[:place], log[place + 1], log[place], *log[place + 2 :]]


def twice(log: Log, place: int) -> Log:
    return [*log[: place + 1], log[place], *log[place + 1 :]]


TAMPERING: dict[str, Callable[[Log], Log]] = {
    "an event is missing": lambda log: dropped(log, 7),
    "an event is missing and the rest moved up": lambda log: renumbered(dropped(log, 7)),
    "a skip is missing and the rest moved up": lambda log: renumbered(
        dropped(log, at(log, "node.skipped"))
    ),
    "an event stands there twice": lambda log: twice(log, 5),
    "an event stands there twice and the rest moved on": lambda log: renumbered(twice(log, 5)),
    "two events have changed places": lambda log: swapped(log, 4),
    "two events have changed places and numbers": lambda log: renumbered(swapped(log, 4)),
    "the log begins with its second event": lambda log: log[1:],
    "the log goes on after its end": lambda log: renumbered([*log, log[-2]]),
    "a decision is cut in two": lambda log: log[: at(log, "interrupt.resolved") + 1],
    "another number": lambda log: changed(log, 3, sequence=30),
    "another id": lambda log: changed(log, 3, event_id="run0.30"),
    "another run": lambda log: changed(log, 3, run_id="run9"),
    "another type": lambda log: changed(log, at(log, "node.completed"), type="node.failed"),
    "a type that nobody writes": lambda log: changed(log, 5, type="acme.happened"),
    "another node": lambda log: changed(log, at(log, "node.completed", 1), node_id="work"),
    "an earlier time": lambda log: changed(log, 9, timestamp=log[2].timestamp),
    "no time": lambda log: changed(log, 9, timestamp="yesterday"),
    "another cause": lambda log: changed(log, 9, causation_id=event_id("run0", 1)),
    "a cause that is still to come": lambda log: changed(log, 9, causation_id=event_id("run0", 40)),
    "another engine": lambda log: changed(log, 9, engine_version="7"),
    "other inputs": lambda log: told(log, 0, inputs={"topic": "May"}),
    "other defaults": lambda log: told(log, 0, variables={"topic": "June", "size": 4}),
    "another definition": lambda log: told(log, 0, definition="digest-of-else"),
    "another owner": lambda log: told(log, 0, owner={"tenant": "else", "principal": "p"}),
    "a variable was something else before": lambda log: told(
        log, at(log, "variable.changed", name="w"), previous=1
    ),
    "a pure node set another value": lambda log: told(
        log, at(log, "variable.changed", name="v"), next=2
    ),
    "a pure node gave something else": lambda log: told(
        log, at(log, "node.completed", nodeId="copy"), outputs={"payload": 9}
    ),
    "a condition went the other way": lambda log: told(
        log, at(log, "node.completed", nodeId="which"), outputs={"false": True, "result": False}
    ),
    "a node took longer than there was time": lambda log: told(
        log, at(log, "node.completed", nodeId="copy"), durationMs=99_999
    ),
    "a timer rang too early": lambda log: told(
        log, at(log, "node.started", nodeId="nap"), dueAt="2030-01-01T00:00:00.000000Z"
    ),
    "another attempt": lambda log: told(log, at(log, "node.started", nodeId="work"), attempt=2),
    "another wait before the next attempt": lambda log: told(
        log, at(log, "node.retried"), delayMs=1
    ),
    "no further attempt": lambda log: changed(
        told(log, at(log, "node.retried"), error={"code": "x", "message": "x"}),
        at(log, "node.retried"), type="node.failed",
    ),
    "another child": lambda log: told(
        log, at(log, "node.dispatched"), childRunId="run_aaaaaaaaaaaaaaaaaaaa"
    ),
    "a child ended otherwise": lambda log: told(
        log, at(log, "node.completed", nodeId="sub"),
        outputs={"childRunId": "x", "childStatus": "completed", "childOutputs": {}},
    ),
    "another question": lambda log: told(log, at(log, "interrupt.requested"), data={"title": "?"}),
    "another name of the question": lambda log: told(
        log, at(log, "node.suspended"), interruptId="int_aaaaaaaaaaaaaaaaaaaa"
    ),
    "an answer to another question": lambda log: told(
        log, at(log, "interrupt.resolved"), interruptId="int_aaaaaaaaaaaaaaaaaaaa"
    ),
    "another answer": lambda log: told(
        log, at(log, "interrupt.resolved"), resumeValue={"action": "reject"}
    ),
    "the approval says something else": lambda log: told(
        log, at(log, "approval.received"), action="reject"
    ),
    "the node goes on with something else": lambda log: told(
        log, at(log, "node.resumed"), resumeValue={"action": "reject"}
    ),
    "a stranger speaks": lambda log: _turn(log, speakerId="host:c", **{"from": "host:c"}),
    "two names for one speaker": lambda log: _turn(log, **{"from": "host:b"}),
    "a turn out of turn": lambda log: _turn(log, turnIndex=5),
    "another conversation": lambda log: told(
        log, at(log, "conversation.exchanged"), conversationId="run9:talk:1"
    ),
    "another outcome of a talk": lambda log: told(
        log, at(log, "conversation.closed"), outcome="May"
    ),
    "another rule of a channel": lambda log: told(log, at(log, "channel.written"), reducer="merge"),
    "another result of the run": lambda log: told(log, len(log) - 1, error={"code": "x"}),
    "another end": lambda log: changed(log, len(log) - 1, type="run.cancelled"),
}  # fmt: skip


def _turn(log: Log, **changes: Any) -> Log:
    place = at(log, "conversation.exchanged")
    return told(log, place, turn={**payload_json(log[place])["turn"], **changes})


LIVED = story()[1]


def test_the_story_is_as_it_was_written() -> None:
    assert verify(LIVED.flow, TENANT, LIVED.run.run_id, LIVED.log) is None


@pytest.mark.parametrize("how", TAMPERING)
def test_what_was_tampered_with_is_reported(how: str) -> None:
    forged = TAMPERING[how](list(LIVED.log))
    assert forged != LIVED.log, "nothing was changed"
    found = verify(LIVED.flow, TENANT, LIVED.run.run_id, forged)
    assert found is not None, how


@pytest.mark.parametrize("place", range(1, len(LIVED.log)))
def test_no_event_can_be_left_out(place: int) -> None:
    """However carefully the rest is moved up; but for words that lead to nothing."""
    forged = renumbered(dropped(list(LIVED.log), place))
    whole = place == len(LIVED.log) - 1  # a log without its last decision is a younger one
    found = verify(LIVED.flow, TENANT, LIVED.run.run_id, forged)
    assert found is not None or whole or LIVED.log[place].type in ("channel.written",)


def test_no_two_neighbours_can_change_places() -> None:
    for place in range(1, len(LIVED.log) - 1):
        forged = renumbered(swapped(list(LIVED.log), place))
        assert verify(LIVED.flow, TENANT, LIVED.run.run_id, forged) is not None, place


def test_a_log_of_another_workflow_is_none_of_this() -> None:
    other = compiled(definition([node("a")], id="top"))
    assert verify(other, TENANT, LIVED.run.run_id, LIVED.log) is not None
    assert verify(LIVED.flow, "else", LIVED.run.run_id, LIVED.log) is not None
    assert verify(LIVED.flow, TENANT, LIVED.run.run_id, []) is not None


#: what only the world knows: whose word it was, what a node at work said; a clock may be earlier
FREE = frozenset({
    ("approval.received", "decidedBy"), ("interrupt.resolved", "resolvedBy"),
    ("channel.written", "channel"), ("channel.written", "more"), ("channel.written", "value"),
    ("channel.written", "schemaVersion"), ("channel.written", "writtenAt"),
    ("node.completed", "outputs"), ("run.failed", "durationMs"),
    ("run.started", "memory"), ("run.started", "more"),
    ("variable.changed", "more"), ("variable.changed", "name"), ("variable.changed", "next"),
})  # fmt: skip


def test_noise_is_reported_and_never_raises() -> None:
    """Except for what the world may have said otherwise, and clocks that may be earlier."""
    chance = random.Random(7)
    unseen = set()
    for _ in range(3000):
        place = chance.randrange(len(LIVED.log))
        noise = chance.choice([None, 1, -1, "x", [], [None], {}, {"a": None}, True, 1.5])
        event = LIVED.log[place]
        key = chance.choice([*payload_json(event), "more"])
        if key in payload_json(event) and msgspec.json.encode(
            payload_json(event)[key]
        ) == msgspec.json.encode(noise):
            continue
        payload = {**payload_json(event), key: noise}
        forged = changed(LIVED.log, place, payload=payload)
        if verify(LIVED.flow, TENANT, LIVED.run.run_id, forged) is None:
            unseen.add((event.type, key))
    assert unseen <= FREE, "; ".join(map(str, sorted(unseen - FREE)))
