"""Runs (protocol 3.4 to 3.10, 11): creating, reading, cancelling, pausing, listing, exporting."""

from collections.abc import Callable
from typing import Any

import httpx2 as httpx
import pytest

from tests.support.api.caller import Api, definition, in_time, sleeping, unless_over
from tests.support.api.questions import refused

# -- reading -----------------------------------------------------------------------------------


def test_a_read_is_conditional(api: Api) -> None:
    run_id = api.run("conformance-noop")["runId"]
    first = api.get(f"/v1/runs/{run_id}")
    tag = first.headers["etag"]
    assert tag.startswith('"')
    for known in (tag, f'"other", {tag}', f"W/{tag}", "*"):
        again = api.get(f"/v1/runs/{run_id}", headers={"If-None-Match": known})
        assert again.status_code == 304
        assert again.headers["etag"] == tag
        assert "content-length" not in again.headers
        assert "content-type" not in again.headers
    for unknown in ('"other"', "", tag.strip('"')):
        again = api.get(f"/v1/runs/{run_id}", headers={"If-None-Match": unknown})
        assert again.status_code == 200


@pytest.mark.parametrize("said", ["no-cache", "max-age=0", "no-store"])
def test_a_callers_cache_control_does_not_defeat_if_none_match(api: Api, said: str) -> None:
    run_id = api.run("conformance-noop")["runId"]
    tag = api.get(f"/v1/runs/{run_id}").headers["etag"]
    headers = {"If-None-Match": tag, "Cache-Control": said, "Pragma": "no-cache"}
    assert api.get(f"/v1/runs/{run_id}", headers=headers).status_code == 304


def test_the_tag_moves_with_the_run(api: Api) -> None:
    run_id = api.create("conformance-cancellable")
    tag = api.get(f"/v1/runs/{run_id}").headers["etag"]
    api.post(f"/v1/runs/{run_id}/cancel")
    changed = api.get(f"/v1/runs/{run_id}", headers={"If-None-Match": tag})
    assert (changed.status_code, changed.json()["status"]) == (200, "cancelled")


def test_the_tag_of_a_parent_moves_with_its_children(api: Api) -> None:
    api.register(sleeping("sleepy-child"))
    call = {"id": "call", "typeId": "core.subWorkflow", "config": {"workflowId": "sleepy-child"}}
    api.register(definition("sleepy-parent", [call]))
    run_id = api.create("sleepy-parent")
    first = api.get(f"/v1/runs/{run_id}")
    child = first.json()["childRuns"][0]
    assert child["status"] == "running"
    headers = {"If-None-Match": first.headers["etag"]}
    assert api.get(f"/v1/runs/{run_id}", headers=headers).status_code == 304
    api.post(f"/v1/runs/{child['runId']}:pause", {"drainPolicy": "immediate"})
    changed = api.get(f"/v1/runs/{run_id}", headers=headers)
    assert changed.status_code == 200
    assert changed.json()["childRuns"][0]["status"] == "paused"
    api.post(f"/v1/runs/{run_id}/cancel")


def test_head_says_what_get_would(api: Api) -> None:
    run_id = api.run("conformance-noop")["runId"]
    whole = api.get(f"/v1/runs/{run_id}")
    head = api.call("HEAD", f"/v1/runs/{run_id}")
    assert head.status_code == 200
    for name in ("etag", "content-type", "content-length"):
        assert head.headers[name] == whole.headers[name]


# -- cancelling --------------------------------------------------------------------------------


def test_a_cancel_is_idempotent(api: Api) -> None:
    run_id = api.create("conformance-cancellable")
    first = api.post(f"/v1/runs/{run_id}/cancel", {"reason": "x"})
    assert first.json() == {"runId": run_id, "status": "cancelled"}
    events = api.events(run_id)
    for body in (None, {}, {"reason": "y"}):
        again = api.post(f"/v1/runs/{run_id}/cancel", body)
        assert (again.status_code, again.json()["status"]) == (200, "cancelled")
    assert api.events(run_id) == events


@pytest.mark.parametrize("name", ["conformance-noop", "conformance-failure"])
def test_a_cancel_of_an_ended_run_says_how_it_ended(api: Api, name: str) -> None:
    found = api.run(name)
    answer = api.post(f"/v1/runs/{found['runId']}/cancel")
    assert answer.status_code == 200
    assert answer.json()["status"] == found["status"]
    assert answer.json()["alreadyTerminal"] is True


@pytest.mark.parametrize(
    "body", [b"x", [], {"x": 1}, {"reason": 1}, {"reason": "x" * 513}, b'{"reason":"\xff"}']
)
def test_a_cancel_with_a_wrong_body_changes_nothing(api: Api, body: Any) -> None:
    run_id = api.create("conformance-cancellable")
    refused(api.post(f"/v1/runs/{run_id}/cancel", body), 400, "validation_error")
    assert api.read(run_id)["status"] == "running"
    api.post(f"/v1/runs/{run_id}/cancel")


def test_a_cancel_reaches_the_children(api: Api) -> None:
    api.register(sleeping("cancelled-child"))
    call = {"id": "call", "typeId": "core.subWorkflow", "config": {"workflowId": "cancelled-child"}}
    api.register(definition("cancelled-parent", [call]))
    run_id = api.create("cancelled-parent")
    child = api.read(run_id)["childRuns"][0]["runId"]
    api.post(f"/v1/runs/{run_id}/cancel", {"reason": "mine"})
    assert api.until(child, "cancelled")["parentRunId"] == run_id
    said = api.events(child)[-1]["payload"]
    assert (said["reason"], said["parentRunId"]) == ("parent-cancelled", run_id)
    assert "parentRunId" not in api.events(run_id)[-1]["payload"]


def test_a_bulk_cancel_answers_each_in_order(api: Api, foreign: Api) -> None:
    foreign.register(sleeping("foreign-sleep"))
    theirs = foreign.create("foreign-sleep")
    running, cancelled = (
        api.create("conformance-cancellable"),
        api.create("conformance-cancellable"),
    )
    api.post(f"/v1/runs/{cancelled}/cancel")
    ended, failed = api.run("conformance-noop")["runId"], api.run("conformance-failure")["runId"]
    asked = [running, "nobody", cancelled, ended, failed, theirs, running]
    answer = api.post("/v1/runs:bulk-cancel", {"runIds": asked, "reason": "all of them"})
    assert answer.status_code == 200
    results = answer.json()["results"]
    assert [result["runId"] for result in results] == asked
    shown = [result.get("status") or result["error"]["code"] for result in results]
    assert shown == [
        "cancelled", "not_found", "cancelled", "run_terminal", "run_terminal", "not_found",
        "cancelled",
    ]  # fmt: skip
    for result in results:
        assert set(result) == {"runId", "ok", "status" if result["ok"] else "error"}
        assert result["ok"] or set(result["error"]) == {"code", "message"}
    assert foreign.read(theirs)["status"] == "running"
    assert api.events(running)[-1]["payload"]["reason"] == "all of them"
    foreign.post(f"/v1/runs/{theirs}/cancel")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"runIds": []},
        {"runIds": "x"},
        {"runIds": [1]},
        {"runIds": [""]},
        {"runIds": ["x" * 129]},
        {"runIds": None},
        {"runIds": ["x"], "reason": "y" * 513},
        {"runIds": ["x"], "more": 1},
        [],
        b"",
    ],
)
def test_a_bulk_cancel_that_does_not_fit_is_refused(api: Api, body: Any) -> None:
    refused(api.post("/v1/runs:bulk-cancel", body), 400, "validation_error")


def test_a_bulk_cancel_has_a_cap(api: Api) -> None:
    details = refused(
        api.post("/v1/runs:bulk-cancel", {"runIds": [f"r{n}" for n in range(101)]}),
        400,
        "validation_error",
    )
    assert details["maxRunIds"] == 100
    most = api.post("/v1/runs:bulk-cancel", {"runIds": [f"r{n}" for n in range(100)]})
    assert len(most.json()["results"]) == 100


# -- pausing -----------------------------------------------------------------------------------


def test_pause_at_once_and_resume(api: Api) -> None:
    def attempt(ms: int) -> httpx.Response | None:
        run_id = api.create("conformance-delay", inputs={"delayMs": ms})
        body = {"drainPolicy": "immediate", "reason": "wait"}
        return unless_over(api.post(f"/v1/runs/{run_id}:pause", body))

    paused = in_time(attempt, 800)
    assert paused.status_code == 202
    run_id = paused.json()["runId"]
    assert paused.json()["status"] == "paused"
    assert api.read(run_id)["status"] == "paused"
    said = next(e for e in api.events(run_id) if e["type"] == "run.paused")["payload"]
    assert (said["drainPolicy"], said["reason"]) == ("immediate", "wait")
    resumed = api.post(f"/v1/runs/{run_id}:resume", {"reason": "go"})
    assert resumed.status_code == 202
    assert (resumed.json()["runId"], resumed.json()["status"]) == (run_id, "running")
    api.until(run_id, "completed")
    types = api.types(run_id)
    after = types[types.index("run.paused") + 1 :]
    assert after[0] == "run.resumed"
    assert "node.started" in after  # a fresh attempt


def test_pause_lets_the_node_finish_first_by_default(api: Api) -> None:
    def attempt(ms: int) -> str | None:
        nap = {"id": "a", "typeId": "core.delay", "config": {"ms": ms}}
        api.register(definition("two-steps", [nap, {"id": "b", "typeId": "core.noop"}]))
        run_id = api.create("two-steps")
        if (first := unless_over(api.post(f"/v1/runs/{run_id}:pause"))) is None:
            return None
        assert first.status_code == 202
        second = api.post(f"/v1/runs/{run_id}:pause")
        standing = refused(second, 409, "conflict")["runStatus"]
        return run_id if standing == "running" else None

    run_id = in_time(attempt, 1000)
    api.until(run_id, "paused")
    types = api.types(run_id)
    assert types.index("node.completed") < types.index("run.paused")
    assert types[-1] == "run.paused"
    said = api.events(run_id)[-1]["payload"]
    assert said["drainPolicy"] == "drain-current-node"
    api.post(f"/v1/runs/{run_id}:resume")
    assert api.until(run_id)["status"] == "completed"


def test_a_second_pause_conflicts_and_says_since_when(api: Api) -> None:
    run_id = api.create("conformance-cancellable")
    first = api.post(f"/v1/runs/{run_id}:pause", {"drainPolicy": "immediate"}).json()
    details = refused(api.post(f"/v1/runs/{run_id}:pause"), 409, "conflict")
    assert details["runStatus"] == "paused"
    assert details["pausedAt"] == first["pausedAt"] == api.read(run_id)["pausedAt"]
    api.post(f"/v1/runs/{run_id}/cancel")
    assert api.read(run_id)["status"] == "cancelled"


def test_a_resume_of_what_is_not_paused_conflicts(api: Api) -> None:
    run_id = api.create("conformance-cancellable")
    details = refused(api.post(f"/v1/runs/{run_id}:resume"), 409, "conflict")
    assert details["runStatus"] == "running"
    api.post(f"/v1/runs/{run_id}/cancel")


@pytest.mark.parametrize("verb", ["pause", "resume"])
@pytest.mark.parametrize("name", ["conformance-noop", "conformance-failure"])
def test_an_ended_run_is_neither_paused_nor_resumed(api: Api, verb: str, name: str) -> None:
    found = api.run(name)
    answer = api.post(f"/v1/runs/{found['runId']}:{verb}")
    assert refused(answer, 409, "run_terminal")["runStatus"] == found["status"]


@pytest.mark.parametrize("verb", ["pause", "resume"])
def test_an_unknown_run_is_neither_paused_nor_resumed(api: Api, verb: str) -> None:
    refused(api.post(f"/v1/runs/nobody:{verb}"), 404, "run_not_found")


@pytest.mark.parametrize(
    ("verb", "body"),
    [
        ("pause", {"drainPolicy": "later"}),
        ("pause", {"drainPolicy": None}),
        ("pause", {"x": 1}),
        ("pause", {"reason": 1}),
        ("resume", {"drainPolicy": "immediate"}),
        ("resume", {"x": 1}),
        ("resume", []),
    ],
)
def test_a_pause_that_does_not_fit_is_refused(api: Api, verb: str, body: Any) -> None:
    run_id = api.create("conformance-cancellable")
    answer = api.post(f"/v1/runs/{run_id}:{verb}", body)
    assert answer.status_code in (400, 422)
    assert answer.json()["error"] == "validation_error"
    assert api.read(run_id)["status"] == "running"
    api.post(f"/v1/runs/{run_id}/cancel")


def test_a_pause_survives_a_restart(host: Callable[..., Any]) -> None:
    plain = host()

    def attempt(ms: int) -> httpx.Response | None:
        plain.register(sleeping("nap", ms))
        path = f"/v1/runs/{plain.create('nap')}:pause"
        return unless_over(plain.post(path, {"drainPolicy": "immediate"}))

    run_id = in_time(attempt, 1000).json()["runId"]
    plain.server.restart()
    assert plain.read(run_id)["status"] == "paused"
    plain.post(f"/v1/runs/{run_id}:resume")
    assert plain.until(run_id)["status"] == "completed"
