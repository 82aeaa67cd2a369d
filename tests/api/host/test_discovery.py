"""Every claim of the discovery document is probed; one without a probe fails here."""

import importlib.metadata
import re
from collections.abc import Callable, Iterator
from typing import Any

import httpx2 as httpx
import pytest

from tests.support.api.caller import Api, definition, in_time, unless_over
from tests.support.api.claims import agent_bridge
from tests.support.api.claims.multi_agent import PROBES
from tests.support.api.claims.probes import claims, document
from tests.support.api.questions import (
    answered,
    asked,
    begun,
    council,
    gate,
    of,
    resolve,
    say,
    talk,
)
from tests.support.api.questions import refused as refused_by_gate

VALIDATION = "validation_error"


ROUNDTRIP = "conformance/agent-memory-roundtrip"


CLARIFICATION = gate("clarificationGate", questions=[{"id": "q", "question": "Which colour?"}])


EVENT = gate("interrupt", kind="external-event", data={"eventType": "x", "correlation": {}})


UNSURE = {
    "id": "gate", "typeId": "core.orchestrator.supervisor",
    "config": {"mockConfidence": 0.1, "mockPendingDecision": {"kind": "terminate"}},
}  # fmt: skip


def leaves(value: Any, path: str = "") -> Iterator[str]:
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from leaves(inner, f"{path}.{name}" if path else name)
    else:
        yield path


def claimed(found: Any, name: str) -> Any:
    for word in name.removesuffix(".*").split("."):
        found = found[word]
    return found


def refused(api: Api, body: dict[str, Any]) -> bool:
    return api.post("/v1/runs", body).status_code == 400


# -- the probes --------------------------------------------------------------------------------


@claims("protocolVersion", "protocolVersions")
def _version(api: Api, value: Any) -> None:
    found = document(api)
    versions = found["protocolVersions"]
    assert all(re.fullmatch(r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)", item) for item in versions)
    assert found["protocolVersion"] in versions
    assert found["protocolVersion"].startswith("1.")


@claims("implementation.*")
def _implementation(api: Api, value: Any) -> None:
    health = api.get("/healthz").json()
    assert value["version"] == health["version"] == importlib.metadata.version("moot")
    assert value["name"] == "moot"


@claims("engineVersion", "eventLogSchemaVersion")
def _engine(api: Api, value: Any) -> None:
    found, run = document(api), api.run("conformance-noop")
    assert run["engineVersion"] == str(found["engineVersion"])
    assert run["eventLogSchemaVersion"] == found["eventLogSchemaVersion"] == 2
    events = api.events(run["runId"])
    assert {event["engineVersion"] for event in events} == {str(found["engineVersion"])}
    assert {event["schemaVersion"] for event in events} == {1}


@claims("minClientVersion")
def _client(api: Api, value: Any) -> None:
    mine = importlib.metadata.version("openwop-client").split(".")
    assert [int(part) for part in value.split(".")] <= [int(part) for part in mine]


@claims("supportedTransports")
def _transports(api: Api, value: Any) -> None:
    assert value == ["rest"]


@claims("supportedEnvelopes", "schemaVersions.*")
def _envelopes(api: Api, value: Any) -> None:
    """The one that is claimed makes the interrupts profile: questions are asked and answered."""
    found = document(api)
    assert found["supportedEnvelopes"] == ["clarification.request"]
    assert found["schemaVersions"] == {"clarification.request": 1}
    run_id = asked(api, CLARIFICATION)
    [said] = of(api, run_id, "clarification.requested")
    assert [question["id"] for question in said["questions"]] == ["q"]
    answered(resolve(api, run_id, {"answers": {"q": "blue"}}))
    assert of(api, run_id, "clarification.resolved")[0]["answers"] == {"q": "blue"}


@claims("limits.clarificationRounds", "limits.schemaRounds", "limits.envelopesPerTurn")
def _rounds(api: Api, value: Any) -> None:
    """They bound what a model may ask again, and no model asks here: a gate asks once."""
    run_id = asked(api, CLARIFICATION)
    for wrong in range(value + 1):
        refused_by_gate(resolve(api, run_id, {"answers": {"other": wrong}}), 400, VALIDATION)
    assert len(of(api, run_id, "clarification.requested")) == 1 <= value
    assert "cap.breached" not in api.types(run_id)


@claims("replay.supported", "replay.modes")
def _forks(api: Api, value: Any) -> None:
    """Every mode that is named is taken, from every event."""
    run_id = begun(api, {"id": "n", "typeId": "core.noop"})
    api.until(run_id, "completed")
    for mode in document(api)["replay"]["modes"]:
        for from_seq in range(len(api.events(run_id)) + 1):
            answer = api.post(f"/v1/runs/{run_id}:fork", {"mode": mode, "fromSeq": from_seq})
            assert api.until(answer.json()["runId"])["status"] == "completed"


@claims("replay.sideEffectSuppression")
def _suppression(api: Api, value: Any) -> None:
    """Recorded outcomes are served; what is not recorded fails, whatever the kind of node."""
    assert value == "recorded-outcome"
    done = api.run("conformance-replay-side-effect", inputs={"delayMs": 1})
    copy = api.post(f"/v1/runs/{done['runId']}:fork", {"mode": "replay"}).json()["runId"]
    assert api.until(copy)["outputs"] == done["outputs"]
    sub = {
        "id": "effect",
        "typeId": "core.subWorkflow",
        "config": {"workflowId": "conformance-noop"},
    }
    wait = {"id": "wait", "typeId": "core.delay", "config": {"ms": 60_000}}
    for run_id in (
        api.create("conformance-replay-side-effect", inputs={"delayMs": 60_000}),
        begun(api, wait, sub),
    ):
        api.post(f"/v1/runs/{run_id}/cancel")
        api.until(run_id, "cancelled")
        copy = api.post(f"/v1/runs/{run_id}:fork", {"mode": "replay"}).json()["runId"]
        found = api.until(copy)["nodeStates"]["effect"]
        assert (found["status"], found["error"]["code"]) == ("failed", "replay_source_missing")


@claims("conversationPrimitive")
def _conversation(api: Api, value: Any) -> None:
    assert value is True
    run_id = asked(api, talk())
    answered(say(api, run_id))
    answered(resolve(api, run_id, {"operation": "close"}, "convo"))
    types = [type_ for type_ in api.types(run_id) if type_.startswith("conversation.")]
    assert types == ["conversation.opened", "conversation.exchanged", "conversation.closed"]


@claims("multiPartyConversation.*")
def _council(api: Api, value: Any) -> None:
    """All three promises: a roster is carried, speakers are named, others are refused."""
    assert value["supported"] is True
    names = [f"host:{number}" for number in range(value["maxParticipants"])]
    run_id = asked(api, council(*names))
    [opened] = of(api, run_id, "conversation.opened")
    assert [member["agentId"] for member in opened["participants"]] == names
    refused_by_gate(say(api, run_id, role="agent"), 422, VALIDATION)
    refused_by_gate(say(api, run_id, role="agent", speakerId="host:x"), 422, VALIDATION)
    answered(say(api, run_id, role="agent", speakerId=names[-1]))
    api.register(definition("one-too-many", [council(*names, "host:more")]))
    answer = api.post("/v1/runs", {"workflowId": "one-too-many"})
    details = refused_by_gate(answer, 422, VALIDATION)
    assert details["maxParticipants"] == value["maxParticipants"]


#: kind of interrupt -> a gate that waits in this way, and the event that shows it
KINDS: dict[str, tuple[dict[str, Any], str]] = {
    "approval": (gate(), "approval.requested"),
    "clarification": (CLARIFICATION, "clarification.requested"),
    "external-event": (EVENT, "node.suspended"),
    "custom": (gate("interrupt"), "node.suspended"),
    "conversation": (talk(), "node.suspended"),
    "conversation.start": (talk(), "conversation.opened"),
    "conversation.exchange": (talk(), "node.suspended"),
    "conversation.close": (talk(mockAutoResume=True), "conversation.closed"),
    "low-confidence": (UNSURE, "node.suspended"),
}


@claims("interrupts.kinds")
def _kinds(api: Api, value: Any) -> None:
    assert set(value) == set(KINDS)
    for kind, (node, shown) in KINDS.items():
        run_id = begun(api, node)
        assert shown in api.types(run_id)
        [requested] = of(api, run_id, "interrupt.requested")
        family = kind.startswith("conversation")
        assert requested["kind"] == ("conversation.exchange" if family else kind)


@claims("limits.maxNodeExecutions")
def _executions(api: Api, value: Any) -> None:
    started = api.events(api.create("conformance-noop"))[0]["payload"]
    assert started["limits"]["nodeExecutions"] == value
    asked = api.run("conformance-cap-breach", configurable={"recursionLimit": 3})
    assert asked["error"]["code"] == "recursion_limit_exceeded"


@claims("limits.maxRunDurationMs")
def _duration(api: Api, value: Any) -> None:
    body = {"workflowId": "conformance-noop", "configurable": {"runTimeoutMs": value + 1}}
    assert refused(api, body)
    assert api.run("conformance-noop", configurable={"runTimeoutMs": value})


@claims("limits.maxRequestBodyBytes")
def _body(api: Api, value: Any) -> None:
    for size, status in ((value, 400), (value + 1, 413)):
        answer = api.post("/v1/runs", b'{"x":"' + b"a" * (size - 8) + b'"}')
        assert answer.status_code == status


#: a value within the claim, and one outside
SAMPLES: dict[str, tuple[Any, Any]] = {
    "recursionLimit": (1000, 0),
    "maxLoopIterations": (1, 0),
    "escalationThreshold": (0.5, 1.5),
    "reasoningVerbosity": ("off", "loud"),
    "runTimeoutMs": (1000, 0),
    "mockProvider": ({"id": "stream-text"}, "stream-text"),
}


#: the same for what the protocol reserves and this host does not read
RESERVED: dict[str, tuple[Any, Any]] = {
    "model": ("x", 1),
    "temperature": (2, 2.01),
    "maxTokens": (1, 0),
    "promptOverrides": ({"a": "b"}, "b"),
}


def keeps_to(api: Api, samples: dict[str, tuple[Any, Any]]) -> None:
    for key, (fine, wrong) in samples.items():
        found = api.run("conformance-noop", configurable={key: fine})
        assert found["configurable"] == {key: fine}
        assert refused(api, {"workflowId": "conformance-noop", "configurable": {key: wrong}}), key


@claims("configurable.*")
def _configurable(api: Api, value: Any) -> None:
    assert set(value) == set(SAMPLES)
    keeps_to(api, SAMPLES)
    assert refused(api, {"workflowId": "conformance-noop", "configurable": {"unclaimed": 1}})


def test_reserved_options_are_checked_when_they_come_but_not_claimed(api: Api) -> None:
    assert not set(document(api)["configurable"]) & set(RESERVED)
    keeps_to(api, RESERVED)


def _paused(api: Api, ms: int, policy: str) -> httpx.Response | None:
    run_id = api.create("conformance-delay", inputs={"delayMs": ms})
    return unless_over(api.post(f"/v1/runs/{run_id}:pause", {"drainPolicy": policy}))


@claims("runs.pauseResume.*")
def _pausing(api: Api, value: Any) -> None:
    assert value["supported"] is True
    for policy in value["drainPolicies"]:
        paused = in_time(lambda ms, policy=policy: _paused(api, ms, policy), 800)  # type: ignore[misc]
        assert paused.status_code == 202
        run_id = paused.json()["runId"]
        # Nothing follows the only node, so a drained run may end instead of pausing.
        if api.until(run_id, "paused", "completed")["status"] == "paused":
            assert api.post(f"/v1/runs/{run_id}:resume").status_code == 202
        assert api.until(run_id)["status"] == "completed"
    run_id = api.create("conformance-cancellable")
    answer = api.post(f"/v1/runs/{run_id}:pause", {"drainPolicy": "unclaimed"})
    assert answer.status_code in (400, 422)
    api.post(f"/v1/runs/{run_id}/cancel")


@claims("runs.bulkCancel.*")
def _bulk(api: Api, value: Any) -> None:
    assert value["supported"] is True
    most = value["maxRunIds"]
    assert api.post("/v1/runs:bulk-cancel", {"runIds": ["x"] * most}).status_code == 200
    assert api.post("/v1/runs:bulk-cancel", {"runIds": ["x"] * (most + 1)}).status_code == 400


@claims("restTransport.conditionalRunGet")
def _conditional(api: Api, value: Any) -> None:
    path = f"/v1/runs/{api.run('conformance-noop')['runId']}"
    tag = api.get(path).headers["etag"]
    assert value is True
    assert api.get(path, headers={"If-None-Match": tag}).status_code == 304


@claims("webhooks.*")
def _webhooks(api: Api, value: Any) -> None:
    """Signatures and failures are tested in tests/api/triggers/test_webhooks.py."""
    assert value == {"supported": True, "signatureAlgorithms": ["v1"], "durable": True}
    body = {"url": "https://a.example/", "events": ["run.completed"]}
    made = api.post("/v1/webhooks", body)
    assert made.status_code == 201
    path = f"/v1/host/moot/webhooks/{made.json()['webhookId']}"
    assert api.get(f"{path}/dead-letters").json() == {"deadLetters": []}
    assert api.delete(f"/v1/webhooks/{made.json()['webhookId']}").status_code == 204


claims("triggerBridge.*")(agent_bridge.bridge)


@claims("deadLetter.supported")
def _dead_letter(api: Api, value: Any) -> None:
    """When it is said, and that such runs can be forked: tests/api/runs/test_lists.py."""
    assert value is True
    assert api.get("/v1/host/moot/runs?deadLettered=true").status_code == 200


@claims("debugBundle.supported")
def _bundle(api: Api, value: Any) -> None:
    assert value is True
    run_id = api.run("conformance-noop")["runId"]
    assert api.get(f"/v1/runs/{run_id}/debug-bundle").status_code == 200


@claims("subWorkflow.inputMapping")
def _mapping(api: Api, value: Any) -> None:
    assert value is True
    child = api.run("conformance-subworkflow-input-mapping")["childRuns"][0]["runId"]
    assert api.read(child)["variables"] == {"receivedPrdId": "prd-1"}


@claims("idempotency.*")
def _idempotency(api: Api, value: Any) -> None:
    assert value["supported"] is True
    assert value["layer1RetentionSeconds"] >= 86_400
    assert value["crossRegion"] == "single-region"
    headers = {"Idempotency-Key": "claim-of-discovery"}
    body = {"workflowId": "conformance-noop"}
    first, again = (api.post("/v1/runs", body, headers=headers) for _ in range(2))
    assert first.content == again.content
    assert again.headers["openwop-idempotent-replay"] == "true"


@claims("compliance.defaultMode")
def _compliance(api: Api, value: Any) -> None:
    variables = [{"name": "x", "type": "string", "sensitive": True}]
    flow = definition("masked", [{"id": "a", "typeId": "core.noop"}], variables=variables)
    api.register(flow)
    assert value == "mask"
    assert api.run("masked", inputs={"x": "y"})["variables"] == {"x": "[REDACTED]"}


@claims("runtimeCapabilities")
def _capabilities(api: Api, value: Any) -> None:
    assert value == []
    assert api.run("conformance-capability-missing")["error"]["code"] == "capability_not_provided"


@claims("fixtures")
def _fixtures(api: Api, value: Any) -> None:
    assert len(value) == len(set(value)) > 0
    for name in value:
        assert api.get(f"/v1/workflows/{name}").status_code == 200


@claims("testing.mockProviders")
def _mocks(api: Api, value: Any) -> None:
    assert "stream-text" in value
    for name in value:
        mock = {"mockProvider": {"id": name}}
        found = api.run("conformance-stream-text", configurable=mock)
        assert found["status"] == ("failed" if name == "error" else "completed")


@claims("testing.testKeyPrefix")
def _prefix(api: Api, value: Any) -> None:
    assert api.new_key("probe", test=True).startswith(value)
    assert not api.new_key("probe").startswith(value)


@claims("testing.forceEngineVersionRange.*")
def _forcing(api: Api, value: Any) -> None:
    for version in range(value["min"], value["max"] + 1):
        headers = {"X-Force-Engine-Version": str(version)}
        assert api.run("conformance-noop", headers)["engineVersion"] == str(version)
    for version in (value["min"] - 1, value["max"] + 1):
        headers = {"X-Force-Engine-Version": str(version)}
        body = {"workflowId": "conformance-noop"}
        assert api.post("/v1/runs", body, headers=headers).status_code == 400


# -- the table against the document ------------------------------------------------------------


def probe_of(leaf: str) -> str | None:
    words = leaf.split(".")
    wider = (".".join(words[:count]) + ".*" for count in range(len(words), 0, -1))
    return next((name for name in (leaf, *wider) if name in PROBES), None)


def test_every_claim_has_a_probe(api: Api) -> None:
    assert not [leaf for leaf in leaves(document(api)) if probe_of(leaf) is None]


def test_a_claim_without_a_probe_would_be_found() -> None:
    assert probe_of("prompts.supported") is None
    assert probe_of("limits.maxEverything") is None
    assert probe_of("runs.pauseResume.supported") == "runs.pauseResume.*"


@pytest.mark.parametrize("name", PROBES)
def test_a_claim_holds(api: Api, name: str) -> None:
    PROBES[name](api, claimed(document(api), name))


# -- the document itself -----------------------------------------------------------------------


def test_discovery_needs_no_key_and_may_be_cached(api: Api) -> None:
    answer = api.with_key(None).get("/.well-known/openwop")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "public, max-age=300"
    assert answer.json() == document(api)


def test_the_core_profile_is_derived(api: Api) -> None:
    found = document(api)
    assert isinstance(found["supportedEnvelopes"], list)
    assert isinstance(found["schemaVersions"], dict)
    for name in ("clarificationRounds", "schemaRounds", "envelopesPerTurn"):
        assert found["limits"][name] >= 0
    assert "capabilities" not in found
    assert not [key for key in found if key.startswith("host.")]


def test_without_conformance_nothing_of_it_is_claimed(host: Callable[..., Api]) -> None:
    plain = document(host())
    for name in ("fixtures", "testing"):
        assert name not in plain
    assert "mockProvider" not in plain["configurable"]


def test_limits_that_are_set_are_claimed_and_enforced(host: Callable[..., Api]) -> None:
    small = host(
        MOOT_MAX_NODE_EXECUTIONS="2",
        MOOT_MAX_RUN_DURATION_MS="1000",
        MOOT_MAX_BODY_BYTES="3000",
        MOOT_RECEIPT_HOURS="48",
    )
    found = document(small)
    assert found["limits"]["maxNodeExecutions"] == 2
    assert found["limits"]["maxRunDurationMs"] == 1000
    assert found["limits"]["maxRequestBodyBytes"] == 3000
    assert found["configurable"]["runTimeoutMs"]["max"] == 1000
    assert found["idempotency"]["layer1RetentionSeconds"] == 48 * 3600
    small.register(definition("three", [{"id": n, "typeId": "core.noop"} for n in "abc"]))
    small.register(
        definition("long", [{"id": "a", "typeId": "core.delay", "config": {"ms": 9000}}])
    )
    assert small.run("three")["error"]["code"] == "recursion_limit_exceeded"
    assert small.run("three", configurable={"recursionLimit": 99})["status"] == "failed"
    assert small.run("long")["error"]["code"] == "run_timeout"
    assert small.post("/v1/runs", b" " * 3001).status_code == 413
