"""What discovery claims of supervisors and attested children, each tried on the host."""

import itertools
from hashlib import sha256
from typing import Any

from tests.support.api.caller import Api, definition
from tests.support.api.questions import answered, of, resolve

DONE = {"kind": "terminate", "reason": "goal-reached"}
WORK = {"kind": "next-worker", "nextWorkerIds": ["conformance-noop"]}
DECIDED = "runOrchestrator.decided"
_numbers = itertools.count()


def led(api: Api, *plan: dict[str, Any]) -> str:
    """A run of a supervisor with this plan."""
    name = f"led-{next(_numbers)}"
    nodes = [
        {"id": "boss", "typeId": "core.orchestrator.supervisor", "config": {"plan": list(plan)}},
        {"id": "hands", "typeId": "core.dispatch", "config": {}},
    ]
    api.register(definition(name, nodes, [("boss", "hands"), ("hands", "boss")]))
    return api.create(name)


def weak(confidence: float) -> dict[str, Any]:
    return {**WORK, "confidence": confidence}


def iterations(api: Api, run_id: str) -> list[int]:
    return [said["iteration"] for said in of(api, run_id, DECIDED)]


def floor(api: Api, value: Any) -> None:
    """Below it a person is asked, at it nobody."""
    assert api.until(led(api, weak(value), DONE))["status"] == "completed"
    run_id = led(api, weak(value - 0.01), DONE)
    api.until(run_id, "waiting-approval")
    [said] = of(api, run_id, "core.workflowChain.confidence-escalated")
    assert (said["floor"], said["confidence"]) == (value, value - 0.01)


def interrupt_kind(api: Api, value: Any) -> None:
    run_id = led(api, weak(0.1), DONE)
    assert api.until(run_id, "waiting-approval")["status"] == "waiting-approval"
    assert [said["kind"] for said in of(api, run_id, "interrupt.requested")] == [value]


def stateful_resume(api: Api, value: Any) -> None:
    """Whatever a person says goes on in the same turn, and the next one is the next number."""
    assert value is True
    ask = {"kind": "clarify", "prompt": "Which?"}
    run_id = led(api, WORK, ask, weak(0.2), weak(0.2), DONE)
    api.until(run_id, "waiting-input")
    answered(resolve(api, run_id, {"answers": {"answer": "this"}}, "hands"))
    for action in ("reject", "accept"):
        api.until(run_id, "waiting-approval")
        answered(resolve(api, run_id, {"action": action}, "hands"))
        if action == "reject":  # the same turn asks again, by another question
            [first] = {said["interruptId"] for said in of(api, run_id, "approval.requested")[:1]}
            while len(of(api, run_id, "approval.requested")) < 2:
                api.poll(run_id, len(api.events(run_id)) - 1, 1)
            assert of(api, run_id, "approval.requested")[1]["interruptId"] != first
    assert api.until(run_id)["status"] == "completed"
    assert iterations(api, run_id) == [1, 2, 3, 3, 4]


def transcript_window(api: Api, value: Any) -> None:
    """A turn looks back on so many events and no more, each of them fenced."""
    rounds = value // 10 + 5
    run_id = led(api, *[WORK] * rounds, DONE)
    assert api.until(run_id)["status"] == "completed"
    events = api.events(run_id)
    for turn in (1, rounds, rounds + 1):
        told = api.get(f"/v1/host/moot/runs/{run_id}/turns/{turn}").json()
        assert told["iteration"] == turn
        seen = [entry["sequence"] for entry in told["transcript"]]
        assert len(seen) <= value and seen == list(range(seen[0], seen[-1] + 1))
        assert events[seen[-1] + 1]["nodeId"] == "boss", "up to where the turn began"
        assert all(entry["content"].startswith("<data>") for entry in told["transcript"])
    assert len(seen) == value


def attested(api: Api, value: Any) -> None:
    assert value is True
    name = f"attested-{next(_numbers)}"
    config = {
        "workflowId": "conformance-dispatch-output-mapping-child",
        "outputMapping": {"mine": "childOutcome"},
        "outputAttestation": {"checksum": True, "requireApproval": True},
    }
    node = {"id": "sub", "typeId": "core.subWorkflow", "config": config}
    api.register(definition(name, [node]))
    run_id = api.create(name)
    api.until(run_id, "waiting-approval")
    assert "mine" not in api.read(run_id)["variables"]
    answered(resolve(api, run_id, {"action": "accept"}, "sub"))
    assert api.until(run_id)["variables"]["mine"] == "done"
    said = of(api, run_id, "core.workflowChain.event")[-1]
    checksum = sha256(b'{"childOutcome":"done"}').hexdigest()
    assert said["attestation"] == {"checksum": checksum, "algorithm": "sha256"}
