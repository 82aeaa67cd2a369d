"""Claims about supervisors, dispatch, memory and agents, each tried on the host."""

from typing import Any

from tests.conformance import test_mock_model
from tests.support.api.caller import Api, definition
from tests.support.api.claims import agents, roster, schedules, supervisors
from tests.support.api.claims.probes import PROBES, claims, document
from tests.support.api.memories import check_wave, remembered
from tests.support.api.questions import of
from tests.support.api.questions import refused as refused_by_gate

__all__ = ["PROBES"]

ROUNDTRIP = "conformance/agent-memory-roundtrip"

LATER = {"kind": "terminate", "reason": "goal-reached"}


def handing(name: str, plan: list[Any], **config: Any) -> dict[str, Any]:
    """A supervisor with this plan, its dispatch node, and the way back."""
    nodes = [
        {"id": "boss", "typeId": "core.orchestrator.supervisor", "config": {"plan": plan}},
        {"id": "hands", "typeId": "core.dispatch", "config": config},
    ]
    return definition(name, nodes, [("boss", "hands"), ("hands", "boss")])


def handed(api: Api, name: str, workers: list[str], **config: Any) -> dict[str, Any]:
    plan = [{"kind": "next-worker", "nextWorkerIds": workers}, LATER]
    api.register(handing(name, plan, **config))
    return api.run(name)


@claims("agents.orchestrator", "agents.dispatch", "agents.dispatchMapping")
def _orchestrator(api: Api, value: Any) -> None:
    assert value is True
    found = api.run("conformance-dispatch-output-mapping")
    assert found["variables"]["parentResult"] == "done"
    assert found["runOrchestrator"] == {"agentId": "supervisor-supervisor"}


@claims("dispatch.*")
def _dispatch(api: Api, value: Any) -> None:
    two = ["conformance-noop", "conformance-identity"]
    assert value["supported"] and value["fanOutSupported"] and value["models"] == ["child-run"]
    for policy in value["fanOutPolicies"]:
        found = handed(api, f"fan-{policy}", two, fanOutPolicy=policy)
        assert found["status"] == ("failed" if policy == "reject" else "completed")
    for mode in value["joinModes"]:
        for failure in value["onChildFailureModes"]:
            join = {"mode": mode, "onChildFailure": failure, "quorum": 1}
            name = f"join-{mode}-{failure}"
            found = handed(api, name, two, fanOutPolicy="parallel", joinPolicy=join)
            assert found["status"] == "completed"
            [said] = of(api, found["runId"], "core.dispatch.join")
            assert said["joinOutcome"] == "satisfied"
    for routing in value["askUserRoutings"]:
        ask = {"kind": "ask-user", "prompt": "Blue?"}
        api.register(handing(f"ask-{routing}", [ask], askUserRouting=routing))
        run_id = api.create(f"ask-{routing}")
        api.until(run_id, "waiting-approval", "waiting-input")
        kind = "clarification.requested" if routing == "clarification" else "conversation.opened"
        assert len(of(api, run_id, kind)) == 1
        api.post(f"/v1/runs/{run_id}/cancel")


@claims("agents.supported", "agents.reasoning.*", "conformance.mockAgent")
def _agents(api: Api, value: Any) -> None:
    found = api.run("conformance-agent-reasoning-streaming")
    claimed = document(api)["agents"]
    assert claimed["supported"] and document(api)["conformance"] == {"mockAgent": True}
    deltas = of(api, found["runId"], "agent.reasoning.delta")
    assert bool(deltas) is claimed["reasoning"]["streaming"]
    [closing] = of(api, found["runId"], "agent.reasoned")
    assert closing["verbosity"] == claimed["reasoning"]["verbosity"]
    assert len(closing["reasoning"]) <= 4 * claimed["reasoning"]["tokenLimit"]
    assert found["agent"]["agentId"] == closing["agentId"]


@claims("multiAgent.executionModel.replayDeterminism.*")
def _determinism(api: Api, value: Any) -> None:
    """The key is the recipe's, the record serves, a refusal on one side is told."""
    assert value == {
        "supported": True, "llmCacheKeyRecipe": "spec-rfc-0041", "refusalDivergenceEmission": True
    }  # fmt: skip
    test_mock_model.test_an_answer_that_fits_is_taken_and_recorded_under_its_key(api)
    test_mock_model.test_a_replay_is_served_from_the_record(api)
    for first, second in (
        (test_mock_model.GOOD, test_mock_model.REFUSAL),
        (test_mock_model.REFUSAL, test_mock_model.GOOD),
    ):
        test_mock_model.told(api, first, second)
        source = api.run("conformance-phase4-replay-divergence")["runId"]
        answer = test_mock_model.fork(api, source)
        refused_by_gate(answer, 422, "replay_diverged_at_refusal")


@claims("multiAgent.executionModel.supported", "multiAgent.executionModel.version")
def _model(api: Api, value: Any) -> None:
    assert value in (True, 5)
    found = api.run("conformance-multi-agent-handoff")
    phases = [said["phase"] for said in of(api, found["runId"], "core.workflowChain.event")]
    assert phases == [
        "dispatch.began", "dispatch.succeeded", "child.completed", "output.harvested"
    ]  # fmt: skip


for _name, _probe in {
    "scheduling.supported": lambda api, value: schedules.scheduling(
        api, document(api)["scheduling"]
    ),
    "scheduling.cron": schedules.cron,
    "scheduling.delayed": schedules.delayed,
    "scheduling.maxFutureHorizon": schedules.horizon,
    "agents.subRunAttestation": supervisors.attested,
    "agents.manifestRuntime.*": agents.manifest_runtime,
    "agents.liveRuntime.supported": lambda api, value: agents.sources(
        api, ["workflow-node", "run-api", "chat-mention"]
    ),
    "agents.liveRuntime.sources": agents.sources,
    "agents.liveRuntime.confidenceEscalation": agents.escalation,
    "agents.roster.*": roster.kept,
    "agents.roster.portfolioTriggerSources": roster.sources,
    "agents.deployment.*": agents.deployment,
    "agents.deployment.canary": agents.canary,
    "agents.deployment.states": agents.states,
    "multiAgent.executionModel.confidenceEscalationFloor": supervisors.floor,
    "multiAgent.executionModel.confidenceEscalationInterruptKind": supervisors.interrupt_kind,
    "multiAgent.executionModel.statefulResume": supervisors.stateful_resume,
    "multiAgent.executionModel.transcriptWindow": supervisors.transcript_window,
}.items():
    claims(_name)(_probe)


@claims("multiAgent.executionModel.crossChildMemoryConcurrency")
def _serialised(api: Api, value: Any) -> None:
    assert value == "strict"
    check_wave(api)


@claims("agents.memoryBackends")
def _backends(api: Api, value: Any) -> None:
    """Kept across runs, and without secrets."""
    assert value == ["long-term"]
    earlier = api.run("conformance-agent-memory-roundtrip")["variables"]["memoryReadback"]
    api.run("conformance-agent-memory-roundtrip")
    assert earlier["id"] in [entry["id"] for entry in remembered(api, ROUNDTRIP)]
    found = api.run("conformance-agent-memory-redaction")["variables"]["memoryReadback"]
    assert "[REDACTED:conformance-test-secret]" in found["content"]


@claims("memory.supported", "memory.attribution.*")
def _remembers(api: Api, value: Any) -> None:
    run = api.run("conformance-agent-memory-roundtrip")
    [said] = of(api, run["runId"], "memory.written")
    assert said["memoryId"] == run["variables"]["memoryReadback"]["id"]
    assert "content" not in said


@claims("memory.maxEntrySizeBytes")
def _size(api: Api, value: Any) -> None:
    for size, status in ((value, "completed"), (value + 1, "failed")):
        config = {"memoryAction": "write-then-read", "content": "x" * size}
        node = {"id": "n", "typeId": "core.identity", "config": config}
        api.register(definition("memory-size", [node]))
        assert api.run("memory-size")["status"] == status


@claims("memory.ttlSupported", "memory.retention.*")
def _ends(api: Api, value: Any) -> None:
    assert value in (True, {"ttl": True, "forget": True})
    listed = api.run("conformance-agent-memory-ttl")["variables"]["memoryList"]
    assert [entry["id"] for entry in listed] == ["future"]
    query = {"ref": "conformance/agent-memory-ttl", "id": "future"}
    assert api.delete("/v1/host/moot/memory", params=query).status_code == 200
    assert remembered(api, query["ref"]) == []


@claims("multiAgent.executionModel.crossHostCausation.*")
def _across_hosts(api: Api, value: Any) -> None:
    """What a run on another host is told of this one is in tests/api/runs/test_peers.py."""
    assert value["supported"] and value["ancestryEndpointSupported"]
    run_id = api.run("conformance-multi-agent-handoff")["runId"]
    [child] = [said["childRunId"] for said in of(api, run_id, "node.dispatched")]
    parent = {"runId": run_id, "hostId": value["hostId"], "cause": "core.dispatch"}
    assert api.get(f"/v1/runs/{child}/ancestry").json()["parent"] == parent
    top = {"runId": run_id, "hostId": value["hostId"], "parent": None}
    assert api.get(f"/v1/runs/{run_id}/ancestry").json() == top
    assert api.get("/v1/runs/nobody/ancestry").status_code == 404


@claims("limits.maxLoopIterations")
def _rounds_of_a_loop(api: Api, value: Any) -> None:
    options = {"maxLoopIterations": value + 1}
    run_id = api.run("conformance-noop", configurable=options)["runId"]
    assert api.events(run_id)[0]["payload"]["limits"]["loopIterations"] == value
    found = api.run("conformance-dispatch-loop", configurable={"maxLoopIterations": 1})
    assert found["error"]["code"] == "loop_limit_exceeded"
