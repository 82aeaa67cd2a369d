"""Verification over the wire: a log against its hashes and against what it follows from."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.api.replay.test_branches import branched, diff, edited, place, put
from tests.api.replay.test_forks import NODES, fork, forked
from tests.support.api.caller import Api
from tests.support.api.councils import close
from tests.support.api.questions import answered, asked, begun, council, gate, refused, resolve, say

A, B = "host:a", "host:b"


def verify(api: Api, run_id: str) -> dict[str, Any]:
    answer = api.post(f"/v1/host/moot/runs/{run_id}:verify")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def check(api: Api, run_id: str) -> None:
    count = len(api.events(run_id))
    expected = {"runId": run_id, "events": count, "modelCalls": 0, "identical": True}
    assert verify(api, run_id) == expected


def test_what_was_written_here_is_found_to_be_so(host: Callable[..., Any]) -> None:
    api = host("--nodes", str(NODES))
    flaky = {"id": "f", "typeId": "wire.flaky", "settings": {"retryDelayMs": 1}}
    source = begun(api, put("x", 1), flaky, gate(), council(A, B), put("y", 2))
    api.until(source, "waiting-approval")
    check(api, source)
    answered(resolve(api, source, {"action": "accept"}))
    for name in (A, B):
        answered(say(api, source, name, role="agent", speakerId=name))
    cut = place(api, source, "conversation.exchanged", 1)
    answered(close(api, f"{source}~convo~1", decision={"text": "June", "votes": {A: "yes"}}))
    api.until(source, "completed")
    other = edited(api, source, fromSeq=cut, edit={"turn": {"content": "no"}}).json()["runId"]
    runs = api.get("/v1/host/moot/runs").json()
    for run_id in (source, branched(api, source, cut), forked(api, source, cut), other):
        check(api, run_id)
    assert len(api.get("/v1/host/moot/runs").json()["runs"]) == len(runs["runs"]) + 2


def test_a_changed_byte_is_reported(host: Callable[..., Any]) -> None:
    api = host()
    source = begun(api, put("x", "a word"), put("y", 2))
    api.until(source, "completed")
    api.server.stop()
    _meddle(_file(api), "a word", "b word")
    api.server.start()
    found = verify(api, source)
    assert (found["identical"], found["first"]["kind"]) == (False, "hash")
    assert found["first"]["sequence"] == 0 or found["first"]["sequence"] == 2
    assert found["modelCalls"] == 0


def _file(api: Api) -> Path:
    server: Any = getattr(api, "server")  # noqa: B009 - only hosts of one test have one
    return Path(server.database)


def _meddle(file: Path, old: str, new: str) -> None:
    with sqlite3.connect(file) as db:
        db.execute(
            "UPDATE events SET body = CAST(replace(CAST(body AS TEXT), ?, ?) AS BLOB)"
            " WHERE instr(CAST(body AS TEXT), 'variable.changed') > 0",
            (old, new),
        )
    db.close()


def test_verification_is_for_readers_and_takes_nothing(api: Api, foreign: Api) -> None:
    source = asked(api, gate())
    path = f"/v1/host/moot/runs/{source}:verify"
    refused(foreign.post(path), 404, "run_not_found")
    refused(api.post("/v1/host/moot/runs/run_nobody:verify"), 404, "run_not_found")
    refused(api.post(path, {"deep": True}), 400, "validation_error")
    blind = api.with_key(api.new_key("blind", scopes=["runs:create"]))
    refused(blind.post(path), 403, "forbidden")


@pytest.mark.parametrize("fixture", ["conformance-noop", "conformance-multi-node",
                                     "conformance-conversation-replay", "conformance-dispatch-loop",
                                     "conformance-subworkflow-parent", "conformance-stream-text",
                                     "conformance-cap-breach", "conformance-channel-ttl",
                                     "conformance-multi-agent-handoff"])  # fmt: skip
def test_runs_of_the_published_workflows_verify(api: Api, fixture: str) -> None:
    mock = {"mockProvider": {"id": "stream-text", "config": {"tokens": ["a", "b"]}}}
    given = {"configurable": mock} if "stream" in fixture else {}
    check(api, api.run(fixture, **given)["runId"])


# -- edited decisions ------------------------------------------------------------------------------


SOURCE = "conformance-multi-agent-handoff"
DECIDED = "runOrchestrator.decided"
ONE_MORE = {"kind": "next-worker", "nextWorkerIds": ["conformance-noop"]}


def another(api: Api, run_id: str, nth: int) -> str:
    """A branch in which the nth decision hands work to one more worker."""
    at = place(api, run_id, DECIDED, nth)
    made = edited(api, run_id, fromSeq=at, edit={"decision": ONE_MORE})
    assert made.status_code == 201, made.text
    return str(api.until(made.json()["runId"], "completed")["runId"])


def test_a_replay_says_it_again_and_does_not_ask_the_plan(api: Api) -> None:
    branch = another(api, api.until(api.create(SOURCE), "completed")["runId"], 1)
    for from_seq in range(len(api.events(branch)) + 1):
        again = forked(api, branch, from_seq)
        assert api.types(again) == api.types(branch)
        assert diff(api, branch, again)["divergedAtSeq"] is None
        check(api, again)


def test_it_is_sound_in_forks_of_the_fork(api: Api) -> None:
    branch = another(api, api.until(api.create(SOURCE), "completed")["runId"], 1)
    for from_seq in range(place(api, branch, DECIDED, 1), len(api.events(branch)) + 1, 3):
        made = fork(api, branch, mode="branch", fromSeq=from_seq).json()["runId"]
        api.until(made, "completed")
        check(api, made)
    third = another(api, branch, 2)
    check(api, third)
    check(api, forked(api, third, 0))
