"""The published fixtures of agents, each as its own description says, and the agents of others."""

import hashlib
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.api.caller import Api, definition
from tests.support.api.questions import answered, begun, mine, of, refused, resolve, unchanged

#: every fixture that this file is about
OURS = (
    "conformance-agent-identity", "conformance-agent-low-confidence",
    "conformance-agent-reasoning", "conformance-agent-reasoning-streaming",
)  # fmt: skip

MOCK = "core.conformance.mock-agent"
_count = iter(range(10_000))


def scripted(api: Api, run: Any = None, agent: Any = None, **config: Any) -> str:
    """A run of a mock agent with this script."""
    pin = {"agent": agent} if agent else {}
    node = {"id": "a", "typeId": MOCK, "config": config, **pin}
    name = api.register(definition(f"conformance-scripted-{next(_count)}", [node]))
    return api.create(name, **(run or {}))


def agents(api: Api, run_id: str) -> list[dict[str, Any]]:
    return [event for event in api.events(run_id) if event["type"].startswith("agent.")]


def test_all_of_them_are_listed(api: Api) -> None:
    assert set(OURS) <= set(api.get("/.well-known/openwop").json()["fixtures"])


def test_a_pinned_node_shows_its_agent(api: Api) -> None:
    found = api.run("conformance-agent-identity")
    pin = {"agentId": "core.conformance.identity-agent", "modelClass": "chat"}
    assert found["agent"] == pin
    for type_ in ("node.started", "node.completed"):
        assert of(api, found["runId"], type_)[0]["agent"] == pin
    assert agents(api, found["runId"]) == []


def test_an_agent_thinks_uses_a_tool_hands_over_and_decides(api: Api) -> None:
    found = api.run("conformance-agent-reasoning")
    assert found["status"] == "completed"
    told = agents(api, found["runId"])
    assert [event["type"] for event in told] == [
        "agent.reasoned", "agent.toolCalled", "agent.toolReturned", "agent.handoff", "agent.decided"
    ]  # fmt: skip
    thought, call, back, passed, decided = (event["payload"] for event in told)
    me = "core.conformance.reasoning-agent"
    assert {said.get("agentId", me) for said in (thought, call, back, decided)} == {me}
    assert thought["reasoning"].startswith("Decomposed query")
    assert (thought["verbosity"], thought["tokenCount"]) == ("summary", 24)
    assert call["callId"] == back["callId"]
    assert told[2]["causationId"] == told[1]["eventId"]
    assert call["toolName"] == call["toolId"] == back["toolName"] == "openwop.echo:echo"
    assert (call["inputs"], back["outcome"], back["durationMs"]) == ({"x": 1}, {"x": 1}, 1)
    assert call["argsHash"] == hashlib.sha256(b'{"x":1}').hexdigest()
    target = "core.conformance.handoff-target"
    assert (passed["fromAgentId"], passed["toAgentId"]) == (me, target)
    assert passed["reason"] == "demo-handoff"
    assert (decided["decision"], decided["confidence"]) == ({"next": "done"}, 1)
    assert found["agent"] == {"agentId": target}


def test_a_thought_is_streamed_and_closed_once(api: Api) -> None:
    found = api.run("conformance-agent-reasoning-streaming")
    told = agents(api, found["runId"])
    deltas = [e["payload"] for e in told if e["type"] == "agent.reasoning.delta"]
    [closing] = [e["payload"] for e in told if e["type"] == "agent.reasoned"]
    assert [said["sequence"] for said in deltas] == [0, 1, 2]
    assert "".join(said["delta"] for said in deltas) == closing["reasoning"]
    assert told[-1]["payload"] == closing
    assert len({said["agentId"] for said in (*deltas, closing)}) == 1
    shown = [frame.event for frame in api.stream(found["runId"], streamMode="debug")]
    assert shown.count("agent.reasoning.delta") == 3


def test_deltas_are_counted_afresh_in_each_attempt_and_off_says_nothing(api: Api) -> None:
    script = {"summary": "s", "streamChunks": ["a", "", "b"]}
    run_id = scripted(api, mockReasoning=script)
    api.until(run_id)
    deltas = of(api, run_id, "agent.reasoning.delta")
    assert [(said["sequence"], said["delta"]) for said in deltas] == [(0, "a"), (1, ""), (2, "b")]
    off = scripted(api, {"configurable": {"reasoningVerbosity": "off"}}, mockReasoning=script)
    api.until(off)
    assert of(api, off, "agent.reasoning.delta") == []
    [said] = of(api, off, "agent.reasoned")
    assert (said["reasoning"], said["verbosity"]) == ("", "off") and "summary" not in said


@pytest.mark.parametrize(("how", "text"), [("summary", "short"), ("full", "long and whole")])
def test_a_run_says_how_much_of_a_thought_is_kept(api: Api, how: str, text: str) -> None:
    script = {"summary": "short", "trace": "long and whole"}
    run_id = scripted(api, {"configurable": {"reasoningVerbosity": how}}, mockReasoning=script)
    api.until(run_id)
    assert of(api, run_id, "agent.reasoned")[0]["reasoning"] == text


def test_a_summary_is_bounded_by_the_claimed_limit(api: Api) -> None:
    limit = api.get("/.well-known/openwop").json()["agents"]["reasoning"]["tokenLimit"]
    run_id = scripted(api, mockReasoning={"summary": "s", "streamChunks": ["word " * 999] * 4})
    api.until(run_id)
    [said] = of(api, run_id, "agent.reasoned")
    assert len(said["reasoning"]) == limit * 4
    deltas = of(api, run_id, "agent.reasoning.delta")
    assert "".join(each["delta"] for each in deltas) == said["reasoning"]


def test_a_tool_that_failed_gives_its_error(api: Api) -> None:
    error = {"error": "no_such_page", "message": "There is none.", "details": {"page": 4}}
    run_id = scripted(api, mockToolCalls=[{"toolId": "web:get", "error": error}])
    assert api.until(run_id)["status"] == "completed"
    [back] = of(api, run_id, "agent.toolReturned")
    assert back["error"] == {"code": "no_such_page", "message": "There is none.",
                             "details": {"page": 4}}  # fmt: skip
    assert "outcome" not in back and back["status"] == "error"


@pytest.mark.parametrize(
    ("config", "agent", "name"),
    [({}, None, "host:mock-agent:a"), ({}, {"agentId": "host:pin"}, "host:pin"),
     ({"agentId": "host:config"}, {"agentId": "host:pin"}, "host:config")],
)  # fmt: skip
def test_who_a_mock_agent_is(api: Api, config: Any, agent: Any, name: str) -> None:
    run_id = scripted(api, agent=agent, mockReasoning=True, **config)
    api.until(run_id)
    assert of(api, run_id, "agent.reasoned")[0]["agentId"] == name


# -- decisions -----------------------------------------------------------------------------------


def test_an_unsure_agent_waits_for_a_person(api: Api) -> None:
    run_id = api.create("conformance-agent-low-confidence")
    found = api.until(run_id, "waiting-approval")
    assert found["currentNodeId"] == "low-conf-decider"
    types = api.types(run_id)
    place = types.index("agent.decided")
    assert types[place:] == ["agent.decided", "interrupt.requested", "node.suspended"]
    [waits] = of(api, run_id, "node.suspended")
    who = {"agentId": "core.conformance.low-conf-decider", "threshold": 0.7, "observed": 0.5}
    assert waits == {**waits, **who, "reason": "low-confidence", "kind": "low-confidence"}
    [asked] = of(api, run_id, "interrupt.requested")
    assert asked["data"] == {**who, "decision": {"kind": "stub-low-conf"}}
    assert len(mine(api, run_id)) == 1
    with unchanged(api, run_id):
        refused(
            resolve(api, run_id, {"action": "shrug"}, "low-conf-decider"), 400, "validation_error"
        )
    answered(resolve(api, run_id, {"action": "accept"}, "low-conf-decider"))
    found = api.until(run_id)
    assert found["status"] == "completed"
    assert found["outputs"] == {"decision": {"kind": "stub-low-conf"}}
    assert len(of(api, run_id, "agent.decided")) == 1


def test_what_a_person_makes_of_a_decision_is_what_the_node_goes_on_with(api: Api) -> None:
    run_id = scripted(api, mockConfidence=0.1)
    api.until(run_id, "waiting-approval")
    answered(resolve(api, run_id, {"action": "edit-accept", "editedArtifactData": {"x": 1}}, "a"))
    assert api.until(run_id)["outputs"] == {"decision": {"x": 1}}


def test_a_rejected_decision_fails_the_node_visibly(api: Api) -> None:
    run_id = scripted(api, mockDecision={"decision": 1, "confidence": 0.2})
    api.until(run_id, "waiting-approval")
    answered(resolve(api, run_id, {"action": "reject"}, "a"))
    found = api.until(run_id)
    assert (found["status"], found["error"]["code"]) == ("failed", "decision_rejected")
    assert found["nodeStates"]["a"]["error"]["code"] == "decision_rejected"


@pytest.mark.parametrize(
    ("confidence", "threshold", "waits"),
    [(0.7, None, False), (None, None, False), (0.69, None, True), (0.5, 0.5, False),
     (0.8, 0.9, True), (0, 0, False)],
)  # fmt: skip
def test_how_sure_is_sure_enough(api: Api, confidence: Any, threshold: Any, waits: bool) -> None:
    decision = {"decision": 1} | ({} if confidence is None else {"confidence": confidence})
    options = {} if threshold is None else {"configurable": {"escalationThreshold": threshold}}
    run_id = scripted(api, options, mockDecision=decision)
    found = api.until(run_id, "waiting-approval" if waits else "completed")
    assert ("interrupt.requested" in api.types(run_id)) is waits, found


# -- who has the work ----------------------------------------------------------------------------


def pinned(name: str, agent: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "typeId": "core.noop", "agent": {"agentId": agent, **more}}


def test_the_active_agent_rotates_as_the_work_passes_on(api: Api) -> None:
    nodes = [
        pinned("a", "host:one"),
        pinned("b", "host:two"),
        pinned("c", "host:two", version="1.2"),
    ]
    run_id = begun(api, *nodes)
    found = api.until(run_id)
    assert found["agent"] == {"agentId": "host:two", "version": "1.2"}
    assert of(api, run_id, "agent.handoff") == [
        {"fromAgentId": "host:one", "toAgentId": "host:two"}
    ]
    started = [said["agent"]["agentId"] for said in of(api, run_id, "node.started")]
    assert started == ["host:one", "host:two", "host:two"]


def test_a_replay_passes_the_work_on_in_the_same_way(api: Api) -> None:
    run_id = begun(api, pinned("a", "host:one"), pinned("b", "host:two"))
    then = api.until(run_id)
    answer = api.post(f"/v1/runs/{run_id}:fork", {"mode": "replay"})
    now = api.until(answer.json()["runId"])
    assert api.types(now["runId"]) == api.types(run_id)
    assert now["agent"] == then["agent"]


@pytest.mark.parametrize("from_seq", range(0, 10, 3))
def test_a_replay_of_an_agent_asks_nobody(api: Api, from_seq: int) -> None:
    run_id = api.create("conformance-agent-low-confidence")
    api.until(run_id, "waiting-approval")
    answered(resolve(api, run_id, {"action": "accept"}, "low-conf-decider"))
    then = api.until(run_id)
    answer = api.post(f"/v1/runs/{run_id}:fork", {"mode": "replay", "fromSeq": from_seq})
    now = api.until(answer.json()["runId"])
    assert (now["status"], now["outputs"]) == (then["status"], then["outputs"])
    assert api.types(now["runId"]) == api.types(run_id)
    assert agents(api, now["runId"])[0]["payload"] == agents(api, run_id)[0]["payload"]


@pytest.mark.parametrize(
    "agent",
    [{"agentId": "host:a", "version": "1", "channel": "x"},
     {"agentId": "ab"}, {"agentId": "x" * 257}, {"agentId": "host:a", "modelClass": "writing"},
     {"agentId": "host:a", "persona": "Sally"}, {}, "host:a"],
)  # fmt: skip
def test_a_pin_that_cannot_be_is_refused(api: Api, agent: Any) -> None:
    node = {"id": "a", "typeId": "core.noop", "agent": agent}
    answer = api.post("/v1/host/moot/workflows", definition("bad-pin", [node]))
    refused(answer, 400, "validation_error")


def test_the_mock_agent_is_for_the_suite_alone(api: Api, host: Callable[..., Any]) -> None:
    node = {"id": "a", "typeId": MOCK, "config": {"mockReasoning": True}}
    details = refused(
        api.post("/v1/host/moot/workflows", definition("my-agent", [node])),
        400, "capability_required",
    )  # fmt: skip
    assert details["requiredCapability"] == "conformance.mockAgent"
    plain = host()
    assert "conformance" not in plain.get("/.well-known/openwop").json()
    answer = plain.post("/v1/host/moot/workflows", definition("conformance-mine", [node]))
    refused(answer, 400, "capability_required")


def test_a_tool_call_with_neither_result_nor_error_is_refused(api: Api) -> None:
    node = {"id": "a", "typeId": MOCK, "config": {"mockToolCalls": [{"toolId": "t"}]}}
    answer = api.post("/v1/host/moot/workflows", definition("conformance-half", [node]))
    refused(answer, 400, "validation_error")
