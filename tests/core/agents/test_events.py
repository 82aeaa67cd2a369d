"""What agents say: trains of thought in pieces, who has the work in hand, decisions held back."""

import itertools
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.conformance.nodes.registry import conformance_types
from moot.core.agents.events import (
    CHARACTERS_PER_TOKEN,
    FULL_LIMIT,
    TOKEN_LIMIT,
    VERBOSITIES,
    ReasoningBlock,
    decision_event,
    reasoning_delta_event,
    reasoning_event,
    reasoning_verbosity,
    tool_called_event,
    tool_returned_event,
)
from moot.core.commands import Advance, FinishNode, decide
from moot.core.errors import BadRequest, CapabilityRequired
from moot.core.events import Event, NewEvent, new_event
from moot.core.json import canonical
from moot.core.payloads.agents import AgentDecided, AgentHandedOff, ReasoningDelta
from moot.core.runs.nodes import Emit
from moot.core.runs.start import RunLimits, StartRun
from moot.core.secrets import MASK
from moot.core.state.run import Run, apply, fold
from moot.core.state.status import Status
from moot.core.workflows.definition import parse_definition
from moot.core.workflows.flow import Flow, compile_flow
from moot.core.workflows.node_types import Completed, NodeKind, NodeType
from moot.engine.nodes.registry import built_in_types
from tests.support.event_payloads import payload_json

SECRETS = ["hunter2!", "abcab", "abcabd", "bb"]
letters = st.text("abcd h2!x", max_size=12) | st.sampled_from(SECRETS)
pieces = st.lists(letters, max_size=12)


@given(pieces)
def test_the_pieces_of_a_thought_are_the_whole_of_it(given: list[str]) -> None:
    block = ReasoningBlock("full", SECRETS)
    told = [block.add(piece) for piece in given] + [block.close()]
    assert "".join(told) == block.whole
    for secret in SECRETS:
        assert secret not in block.whole.replace(MASK, "\0")


@given(pieces, st.data())
def test_how_a_thought_is_cut_does_not_change_what_it_says(given: list[str], data: Any) -> None:
    text = "".join(given)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)))))
    wholes = []
    for ends in ([len(text)], [*cuts, len(text)]):
        block = ReasoningBlock("full", SECRETS)
        start = 0
        for end in ends:
            block.add(text[start:end])
            start = end
        block.close()
        wholes.append(block.whole)
    assert wholes[0] == wholes[1]


@given(pieces)
def test_without_secrets_nothing_is_held_back(given: list[str]) -> None:
    block = ReasoningBlock("full", [])
    assert [block.add(piece) for piece in given] == given
    assert block.close() == ""


@pytest.mark.parametrize(("how", "most"), [("summary", TOKEN_LIMIT), ("full", FULL_LIMIT)])
def test_a_thought_is_cut_to_its_measure(how: str, most: int) -> None:
    block = ReasoningBlock(how, [])
    told = "".join(block.add("x" * 999) for _ in range(1 + most * CHARACTERS_PER_TOKEN // 999))
    assert len(told) == len(block.whole) == most * CHARACTERS_PER_TOKEN


def test_a_thought_that_is_switched_off_says_nothing() -> None:
    block = ReasoningBlock("off", SECRETS)
    assert (block.add("much"), block.close(), block.whole) == ("", "", "")


@pytest.mark.parametrize("wrong", ["summary", "off", "loud", None, 3])
def test_what_a_run_asks_for_counts_if_there_is_such_a_thing(wrong: Any) -> None:
    found = reasoning_verbosity({"reasoningVerbosity": wrong})
    assert found == (wrong if wrong in VERBOSITIES else "summary")


def test_the_hash_of_arguments_is_over_their_one_spelling() -> None:
    one, other = (
        payload_json(tool_called_event("n", "host:a", "t", (0, "c"), [given]))
        for given in ({"b": 1.0, "a": [None]}, {"a": [None], "b": 1})
    )
    assert one["argsHash"] == other["argsHash"] == canonical.canonical_digest({"a": [None], "b": 1})
    assert "argsHash" not in payload_json(tool_called_event("n", "host:a", "t", (0, "c"), []))


@pytest.mark.parametrize(
    ("confidence", "kept"), [(0.0, 0.0), (1, 1), (None, None), (float("nan"), None)]
)
def test_a_confidence_that_is_no_number_says_nothing(confidence: Any, kept: Any) -> None:
    payload = payload_json(decision_event("n", "host:a", 1, confidence, 0))
    assert payload.get("confidence") == kept


@pytest.mark.parametrize("confidence", [-0.1, 1.1])
def test_a_confidence_beyond_its_bounds_is_refused(confidence: float) -> None:
    with pytest.raises(BadRequest):
        decision_event("n", "host:a", 1, confidence, 0)


# -- in a run ------------------------------------------------------------------------------------


def flow_of(
    *nodes: dict[str, Any], edges: list[tuple[str, str]] | None = None, **given: Any
) -> Flow:
    names = [each["id"] for each in nodes]
    pairs = list(itertools.pairwise(names)) if edges is None else edges
    body = {
        "id": "agents", "name": "agents", "version": "1",
        "nodes": [
            {"typeId": "core.noop", "name": each["id"], "config": {}, "inputs": {},
             "position": {"x": 0, "y": 0}, **each}
            for each in nodes
        ],
        "edges": [{"id": f"{a}>{b}", "sourceNodeId": a, "targetNodeId": b} for a, b in pairs],
        "triggers": [], "variables": [], "metadata": {}, "settings": {}, **given,
    }  # fmt: skip
    types = {
        **built_in_types(extra=conformance_types()),
        "acme.work": NodeType(type_id="acme.work", kind=NodeKind.ACTIVITY),
    }
    return compile_flow(parse_definition(msgspec.json.encode(body)), types, "d")


def pinned(name: str, agent: str | None, type_id: str = "acme.work", **more: Any) -> dict[str, Any]:
    pin = {} if agent is None else {"agent": {"agentId": agent, **more}}
    return {"id": name, "typeId": type_id, **pin}


class Told:
    """A run and its log, told command by command."""

    def __init__(self, flow: Flow, **given: Any) -> None:
        self.flow, self.run, self.log = flow, Run("run_1"), list[Event]()
        self.take(StartRun(tenant="t", principal="p", at=0, limits=RunLimits(), **given))
        self.on()

    def take(self, command: Any) -> list[Event]:
        events = decide(self.run, self.flow, command)
        for new in events:
            event = Event(
                event_id=f"run_1.{self.run.next_sequence}", run_id="run_1", type=new.type,
                sequence=self.run.next_sequence, timestamp="2026-01-01T00:00:00.000000Z",
                payload=new.payload, raw=new.raw, node_id=new.node_id or msgspec.UNSET,
                hints=new.hints or msgspec.UNSET,
            )  # fmt: skip
            self.log.append(event)
            apply(self.run, event)
        return self.log[-len(events) :] if events else []

    def on(self) -> None:
        while self.take(Advance(0)):
            pass

    def end(self, name: str) -> None:
        self.take(FinishNode(name, self.run.nodes[name].attempt, Completed(), 0))
        self.on()

    def say(self, event: NewEvent, node: str = "a") -> list[str]:
        said = Emit(node, self.run.nodes[node].attempt, (event,), 0, required=True)
        return [event.type for event in self.take(said)]

    def handoffs(self) -> list[tuple[str, str]]:
        return [
            (payload_json(event)["fromAgentId"], payload_json(event)["toAgentId"])
            for event in self.log
            if event.type == AgentHandedOff.event_type
        ]


def test_the_work_passes_when_the_next_node_is_another_agents() -> None:
    flow = flow_of(
        pinned("a", "host:one"), pinned("b", "host:one"), pinned("c", None), pinned("d", "host:two")
    )
    told = Told(flow)
    assert told.run.agent == {"agentId": "host:one"}
    for name in "abc":
        assert told.handoffs() == []
        told.end(name)
    assert told.handoffs() == [("host:one", "host:two")]
    place = [event.type for event in told.log].index(AgentHandedOff.event_type)
    assert (told.log[place + 1].type, told.log[place + 1].node_id) == ("node.started", "d")
    assert payload_json(told.log[place + 1])["agent"] == {"agentId": "host:two"}
    told.end("d")
    assert payload_json(told.log[-2])["agent"] == {"agentId": "host:two"}
    assert told.run.status is Status.COMPLETED and fold("run_1", told.log) == told.run


@given(
    st.lists(st.sampled_from([None, "host:one", "host:two", "host:three"]), min_size=1, max_size=6)
)
def test_only_a_handoff_puts_one_agent_in_anothers_place(agents: list[str | None]) -> None:
    told = Told(flow_of(*(pinned(f"n{i}", agent) for i, agent in enumerate(agents))))
    for i in range(len(agents)):
        told.end(f"n{i}")
    named = [agent for agent in agents if agent is not None]
    changes = [(a, b) for a, b in itertools.pairwise(named) if a != b]
    assert told.handoffs() == changes
    assert told.run.agent == ({"agentId": named[-1]} if named else None)


def test_a_pin_is_shown_with_the_memory_it_refers_to() -> None:
    pin = {"memoryRef": "m", "modelClass": "chat"}
    told = Told(flow_of(pinned("a", "host:one", **pin)))
    assert told.run.agent == {"agentId": "host:one", **pin}


CUT = {"nodeId": "a", "provider": "mock", "model": "m", "stopReason": "max_tokens"}


def test_an_agent_says_each_thing_once() -> None:
    """The attempt is lived again from its beginning: what it has said is passed over."""
    told = Told(flow_of(pinned("a", "host:one")))
    for life in range(2):
        for block, words in enumerate((["x", "y"], ["z"])):
            for number, word in enumerate(words):
                event = reasoning_delta_event("a", "host:one", word, block, number, "full")
                assert told.say(event) == ([ReasoningDelta.event_type] if not life else [])
            event = reasoning_event("a", "host:one", "".join(words), block, "full")
            assert bool(told.say(event)) is not bool(life)
        call = tool_called_event("a", "host:one", "t", (0, "c0"), [])
        back = tool_returned_event("a", "host:one", "t", (0, "c0"), {"outcome": 1})
        assert bool(told.say(call)) is bool(told.say(back)) is not bool(life)
        cut = new_event("envelope.truncated", CUT, "a", nth=0)
        assert bool(told.say(cut)) is not bool(life)
        sure = decision_event("a", "host:one", "go", 0.9, 0)
        assert bool(told.say(sure)) is not bool(life)
    sequences = [
        payload_json(event)["sequence"]
        for event in told.log
        if event.type == ReasoningDelta.event_type
    ]
    assert sequences == [0, 1, 0]
    told.end("a")
    assert (told.run.nodes["a"].said, told.run.nodes["a"].calls) == ({}, {})


def test_a_tool_that_nobody_called_gives_nothing() -> None:
    told = Told(flow_of(pinned("a", "host:one")))
    with pytest.raises(BadRequest):
        told.say(tool_returned_event("a", "host:one", "t", (0, "c0"), {"outcome": 1}))
    with pytest.raises(BadRequest):
        tool_returned_event("a", "host:one", "t", (0, "c0"), {})


@pytest.mark.parametrize(
    ("confidence", "threshold", "waits"),
    [(0.69, None, True), (0.7, None, False), (None, None, False), (float("nan"), None, False),
     (float("inf"), None, False), (0.0, 0.0, False), (0.8, 0.9, True), (0.9, 0.9, False)],
)  # fmt: skip
def test_a_decision_waits_when_its_agent_is_not_sure_enough(
    confidence: Any, threshold: Any, waits: bool
) -> None:
    options = {} if threshold is None else {"escalationThreshold": threshold}
    told = Told(flow_of(pinned("a", "host:one")), configurable=options)
    types = told.say(decision_event("a", "host:one", {"go": 1}, confidence, 0))
    if not waits:
        assert types == [AgentDecided.event_type] and told.run.status is Status.RUNNING
        return
    assert types == [AgentDecided.event_type, "interrupt.requested", "node.suspended"]
    assert told.run.status is Status.WAITING_APPROVAL
    data = told.run.interrupts["a"].data
    expected = {"agentId": "host:one", "threshold": threshold or 0.7, "observed": confidence}
    assert data == {**expected, "decision": {"go": 1}}


def test_the_mock_agent_is_for_the_workflows_of_the_suite() -> None:
    node = pinned("a", None, "core.conformance.mock-agent")
    with pytest.raises(CapabilityRequired) as refusal:
        flow_of(node)
    assert refusal.value.details["requiredCapability"] == "conformance.mockAgent"
    assert flow_of(node, id="conformance-mine")


@pytest.mark.parametrize(
    "config",
    [{"more": 1}, {"mockToolCalls": [{"toolId": "t"}]}, {"mockConfidence": 2}, {"agentId": "ab"},
     {"mockToolCalls": [{"toolId": "t", "result": 1, "error": {"error": "e", "message": "m"}}]},
     {"mockReasoning": {"trace": "no summary"}}, {"mockDecision": {"confidence": 1}},
     {"mockHandoff": {"reason": "nowhere"}}, {"mockToolCalls": [{"result": 1}]},
     {"mockReasoning": {"summary": "s", "tokenCount": -1}}],
)  # fmt: skip
def test_a_script_that_cannot_be_followed_is_refused_when_it_is_registered(config: Any) -> None:
    node = {"id": "a", "typeId": "core.conformance.mock-agent", "config": config}
    with pytest.raises(BadRequest):
        flow_of(node, id="conformance-mine")


@pytest.mark.parametrize(
    "pin",
    [{}, {"agentId": "ab"}, {"agentId": "x" * 257},
     {"agentId": "host:a", "version": "1", "channel": "x"},
     {"agentId": "host:a", "modelClass": "writing"},
     {"agentId": "host:a", "persona": "Sally"}],
)  # fmt: skip
def test_a_pin_that_is_none_is_refused(pin: dict[str, Any]) -> None:
    with pytest.raises(BadRequest):
        flow_of({"id": "a", "agent": pin})
