"""Forks (core protocol 9, multi-agent G.1-G.5): a run said again from its record."""

import re
from collections.abc import Callable
from typing import Any

import httpx2 as httpx
import pytest

from tests.support.api.caller import Api, definition
from tests.support.api.councils import close, export, joined, read, steer
from tests.support.api.questions import (
    answered,
    asked,
    begun,
    council,
    gate,
    mine,
    refused,
    resolve,
    say,
    talk,
    unchanged,
)  # fmt: skip
from tests.support.servers import ROOT

VALIDATION = "validation_error"
NODES = ROOT / "tests" / "support" / "api" / "nodes.py"
A, B = "host:a", "host:b"


def ends_aside(said: Any) -> str:
    return re.sub(r"until [-\d: ]+ UTC", "until then", str(said))


def fork(api: Api, run_id: str, **body: Any) -> httpx.Response:
    return api.post(f"/v1/runs/{run_id}:fork", body)


def forked(api: Api, run_id: str, from_seq: int | None = None) -> str:
    body = {"mode": "replay"} if from_seq is None else {"mode": "replay", "fromSeq": from_seq}
    answer = fork(api, run_id, **body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["runId"])


def order(api: Api, run_id: str) -> list[tuple[str, Any]]:
    return [(event["type"], event.get("nodeId")) for event in api.events(run_id)]


def check_same(api: Api, source: str, copy: str) -> None:
    then, now = api.read(source), api.read(copy)
    for name in ("status", "variables", "channels", "outputs", "owner", "inputs", "workflowId"):
        assert now.get(name) == then.get(name), name
    assert order(api, copy) == order(api, source)
    assert {key: state["status"] for key, state in now["nodeStates"].items()} == {
        key: state["status"] for key, state in then["nodeStates"].items()
    }


def check_everywhere(api: Api, source: str) -> None:
    """From each event on: history as it was, no second beginning, causes in the fork itself."""
    before = api.events(source)
    for from_seq in range(len(before) + 1):
        copy = forked(api, source, from_seq)
        check_same(api, source, copy)
        told = api.events(copy)
        assert [event["sequence"] for event in told] == list(range(len(told)))
        assert [event["type"] for event in told].count("run.started") == 1
        for was, now in zip(before[1:from_seq], told[1:from_seq], strict=True):
            assert _homeless(was["payload"], source) == _homeless(now["payload"], source, copy)
        places = {event["eventId"]: event["sequence"] for event in told}
        for event in told[1:]:
            assert places[event["causationId"]] < event["sequence"]
    assert api.events(source) == before, "the source was touched"


def _homeless(value: Any, *runs: str) -> Any:
    """Ids that are made from a run's id may move along."""
    if isinstance(value, dict):
        return {key: _homeless(item, *runs) for key, item in value.items()}
    if isinstance(value, list):
        return [_homeless(item, *runs) for item in value]
    for run_id in runs:
        value = value.replace(f"{run_id}:", "*:") if isinstance(value, str) else value
    return value


# -- what is said again --------------------------------------------------------------------------


def test_a_fork_is_a_run_of_its_own(api: Api) -> None:
    source = api.run(api.register(definition("fork-plain", [_set("x", 1)])))["runId"]
    answer = fork(api, source, mode="replay")
    body = answer.json()
    copy = body.pop("runId")
    assert answer.status_code == 201 and copy != source
    assert answer.headers["location"] == f"/v1/runs/{copy}"
    assert body == {
        "sourceRunId": source, "fromSeq": 0, "mode": "replay", "status": "pending",
        "eventsUrl": f"/v1/runs/{copy}/events",
    }  # fmt: skip
    check_same(api, source, copy)
    [frame] = [frame for frame in api.stream(copy) if frame.event == "run.started"]
    assert frame.data["payload"]["forkedFrom"]["sourceRunId"] == source


def _set(name: str, value: Any) -> dict[str, Any]:
    return {"id": f"set-{name}", "typeId": "core.setVariable",
            "config": {"name": name, "value": value}}  # fmt: skip


def _delay(ms: int, name: str = "wait") -> dict[str, Any]:
    return {"id": name, "typeId": "core.delay", "config": {"ms": ms}}


def test_answers_and_timers_are_given_again(api: Api) -> None:
    questions = [{"id": "q", "question": "When?"}]
    source = asked(
        api, gate(requiredApprovals=2), gate("clarificationGate", "what", questions=questions),
        _delay(5), _set("x", 1),
    )  # fmt: skip
    answered(resolve(api, source, {"action": "accept", "voter": "ann"}))
    answered(resolve(api, source, {"action": "accept", "voter": "ben"}))
    answered(resolve(api, source, {"answers": {"q": "June"}}, "what"))
    api.until(source, "completed")
    check_everywhere(api, source)


def test_a_rejection_is_one_again(api: Api) -> None:
    source = asked(api, gate(), _set("x", 1))
    answered(resolve(api, source, {"action": "reject", "comment": "no"}))
    api.until(source)
    check_everywhere(api, source)


def test_a_council_is_said_again_by_the_same_speakers(api: Api) -> None:
    channels = {"conversation": {"schema": {"type": "array"}, "reducer": "message"}}
    source = asked(api, council(A, B), _set("x", 1), channels=channels)
    thread = f"{source}:convo:1"
    for number in range(3):
        answered(say(api, source, number, role="agent", speakerId=(A, B)[number % 2]))
        answered(steer(api, thread, {"prod": [A], "mute": {"targets": [B], "seconds": 0.001}}))
    answered(close(api, thread, decision={"text": "June", "citedTurns": [1], "votes": {A: "yes"}}))
    api.until(source, "completed")
    check_everywhere(api, source)
    copy = forked(api, source)
    again = read(api, copy)
    assert (again["threadId"], again["turns"]) == (f"{copy}~convo~1", 4)
    assert again["state"]["prodded"] == read(api, thread)["state"]["prodded"]
    then, now = (export(api, name, "json").json() for name in (thread, copy))
    assert (now["decision"], now["question"]) == (then["decision"], then["question"])
    said, repeated = (
        [[line.get(k) for k in ("by", "content", "via", "note")] for line in each["transcript"]]
        for each in (then, now)
    )
    # it is said at another time, so that what held for a while ends at another
    assert len(said) == len(repeated) and ends_aside(said) == ends_aside(repeated)


def test_children_are_not_started_again(api: Api) -> None:
    kid = api.register(definition("fork-kid", [_set("x", 7)]))
    sub = {"id": "sub", "typeId": "core.subWorkflow",
           "config": {"workflowId": kid, "outputMapping": {"y": "x"}}}  # fmt: skip
    source = begun(api, sub, _set("z", 1))
    api.until(source, "completed")
    children = api.get("/v1/host/moot/runs", params={"parent": source}).json()
    check_everywhere(api, source)
    copy = forked(api, source)
    assert api.get("/v1/host/moot/runs", params={"parent": copy}).json()["runs"] == []
    assert api.get("/v1/host/moot/runs", params={"parent": source}).json() == children
    assert api.read(copy)["childRuns"] == api.read(source)["childRuns"]


def test_nodes_that_touch_the_world_are_not_called_again(host: Callable[..., Any]) -> None:
    api = host("--nodes", str(NODES))
    flaky = {"id": "f", "typeId": "wire.flaky", "settings": {"retryDelayMs": 1}}
    drip = {"id": "d", "typeId": "wire.drip", "config": {"count": 3, "every_ms": 1}}
    bad = {"id": "bad", "typeId": "wire.raise"}
    source = begun(api, flaky, drip)
    api.until(source, "completed")
    check_everywhere(api, source)
    failed = begun(api, bad, _set("x", 1))
    api.until(failed, "failed")
    check_everywhere(api, failed)
    copy = forked(api, source)
    api.server.restart()
    check_same(api, source, copy)
    api.server.stop()
    assert api.server.log.read_text().count("(wire.raise) raised") == 1, "it was called again"


def test_what_a_cancelled_source_does_not_say_has_failed(host: Callable[..., Any]) -> None:
    api = host("--nodes", str(NODES))
    source = begun(api, _delay(60_000), {"id": "effect", "typeId": "wire.flaky"})
    api.post(f"/v1/runs/{source}/cancel")
    api.until(source, "cancelled")
    found = api.until(forked(api, source))
    assert (found["status"], found["error"]["code"]) == ("failed", "replay_source_missing")
    assert found["nodeStates"]["effect"]["error"]["code"] == "replay_source_missing"
    assert found["nodeStates"]["wait"]["status"] == "completed"
    assert "replay.diverged" not in api.types(found["runId"])


def test_a_source_that_waits_is_left_alone(api: Api) -> None:
    source = asked(api, gate())
    before = mine(api, source)
    with unchanged(api, source):
        copy = forked(api, source)
        check_same(api, source, copy)
    with unchanged(api, copy):
        refused(resolve(api, copy, {"action": "reject"}), 409, "conflict")
    assert mine(api, source) == before
    answered(resolve(api, source, {"action": "accept"}))
    assert api.until(source)["status"] == "completed"


def test_nobody_is_asked_by_a_replay(api: Api) -> None:
    copy = forked(api, asked(api, gate()))
    assert mine(api, copy) == []


def test_nobody_speaks_in_a_replay(api: Api) -> None:
    source = asked(api, talk())
    answered(say(api, source, "one"))
    copy = forked(api, source)
    with unchanged(api, copy):
        refused(say(api, copy, "two"), 409, "conflict")
    assert (read(api, copy)["turns"], read(api, source)["turns"]) == (1, 1)


def test_whoever_forks_the_owner_is_the_sources(api: Api, live: Api) -> None:
    source = begun(api, _set("x", 1), run={"tags": ["t"], "metadata": {"m": 1}})
    api.until(source)
    copy = forked(live, source)
    then, now = api.read(source), api.read(copy)
    assert now["owner"] == then["owner"]
    assert (now["tags"], now["metadata"]) == (then["tags"], then["metadata"])


def test_the_same_fork_again_is_the_same_run(api: Api) -> None:
    source = begun(api, _set("x", 1))
    headers = {"Idempotency-Key": f"fork-{source}"}
    path = f"/v1/runs/{source}:fork"
    first = api.post(path, {"mode": "replay"}, headers=headers)
    again = api.post(path, {"mode": "replay"}, headers=headers)
    assert again.json() == first.json()
    other = api.post(path, {"mode": "replay", "fromSeq": 1}, headers=headers)
    refused(other, 409, "idempotency_key_mismatch")


# -- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        {}, {"mode": None}, {"mode": "again"}, {"mode": 1}, {"mode": ["replay"]},
        {"mode": "replay", "fromSeq": -1}, {"mode": "replay", "fromSeq": 1.5},
        {"mode": "replay", "fromSeq": "1"}, {"mode": "replay", "fromSeq": True},
        {"mode": "replay", "more": 1}, {"mode": "branch"},
        {"mode": "branch", "fromSeq": -1}, {"mode": "replay", "runOptionsOverlay": {"a": 1}},
        {"mode": "replay", "runOptionsOverlay": 1}, {"mode": "replay", "from_seq": 1}, [], 1,
    ],
)  # fmt: skip
def test_what_is_no_fork_makes_no_run(api: Api, wrong: Any) -> None:
    source = begun(api, _set("x", 1))
    api.until(source)
    newest = api.runs(limit=1)
    with unchanged(api, source):
        refused(api.post(f"/v1/runs/{source}:fork", wrong), 400, VALIDATION)
    assert api.runs(limit=1) == newest


def test_beyond_the_log_there_is_nothing_to_fork(api: Api) -> None:
    source = begun(api, _set("x", 1))
    length = len(api.events(source))
    with unchanged(api, source):
        details = refused(fork(api, source, mode="replay", fromSeq=length + 1), 422, VALIDATION)
    assert details == {"sourceRunId": source, "fromSeq": length + 1}
    assert fork(api, source, mode="replay", fromSeq=length).status_code == 201
    assert fork(api, source, mode="replay", fromSeq=0, runOptionsOverlay={}).status_code == 201


def test_a_run_of_others_is_not_there(api: Api, foreign: Api) -> None:
    source = begun(api, _set("x", 1))
    with unchanged(api, source):
        refused(fork(foreign, source, mode="replay"), 404, "run_not_found")
        refused(fork(foreign, source, mode="nonsense"), 404, "run_not_found")
        refused(fork(api, "run_nobody", mode="replay"), 404, "run_not_found")
        refused(fork(api.with_key(None), source, mode="replay"), 401, "unauthenticated")


def test_a_fork_reads_and_creates(api: Api) -> None:
    source = asked(api, talk())
    with unchanged(api, source):
        for scopes in (["runs:create"], ["runs:read"]):
            key = api.with_key(api.new_key("half", scopes=scopes))
            refused(fork(key, source, mode="replay"), 403, "forbidden")
        refused(fork(joined(api, source, A), source, mode="replay"), 403, "forbidden")
    both = api.with_key(api.new_key("both", scopes=["runs:create", "runs:read"]))
    forked(both, source)
