"""A thread leaves as one file and comes back on another host, as it is or not at all."""

import json
import threading
import time
from collections.abc import Callable
from typing import Any

import httpx2 as httpx
import pytest

from moot.core.events import iso
from moot.engine.replay.import_log import CLOCK_TOLERANCE_S
from tests.support import processes
from tests.support.api.bundles import altered, bundle_of, fresh, remade, rows_of, take_in
from tests.support.api.caller import Api
from tests.support.api.councils import (
    ADA,
    BO,
    CY,
    THREADS,
    close,
    convened,
    export,
    joined,
    key_as,
    person,
    read,
    run_of,
    state,
    steer,
    tell,
)  # fmt: skip
from tests.support.api.questions import answered, begun, gate, refused, say, talk, unchanged
from tests.support.servers import server_environment

VALIDATION = "validation_error"


@pytest.fixture(scope="module")
def told(api: Api) -> str:
    """A council in which everything has happened, and which is still open."""
    thread = convened(api, "ada", "bo", title="Shipping")
    answered(tell(api, thread, ADA, "In June"))
    answered(steer(api, thread, {"mute": [BO], "prod": ["ada"]}))
    answered(person(api, thread, {"any": ["thing", 1.5, None, "ü\u2028"]}))
    return thread


# -- there ---------------------------------------------------------------------------------------


def test_a_closed_thread_is_the_same_elsewhere(api: Api, elsewhere: Api) -> None:
    thread = convened(api, title="Shipping")
    run_id = run_of(thread)
    answered(tell(api, thread, ADA, "June"))
    votes = [{"by": ADA, "vote": "yes"}, {"by": BO, "vote": "no", "reason": "late"}]
    answered(close(api, thread, decision={"text": "June", "votes": votes, "citedTurns": [1]}))
    api.until(run_id, "completed")
    bundle = bundle_of(api, thread)
    answer = take_in(elsewhere, bundle)
    assert answer.status_code == 201, answer.text
    body = answer.json()
    assert (body["runId"], body["threadId"], body["status"]) == (run_id, thread, "completed")
    assert answer.headers["location"] == body["url"] == f"{THREADS}/{thread}"
    for format_ in ("md", "html", "json"):
        assert export(elsewhere, thread, format_).content == export(api, thread, format_).content
    assert rows_of(bundle_of(elsewhere, thread))[1:] == rows_of(bundle)[1:], "every byte"
    assert elsewhere.events(run_id) == api.events(run_id)
    ours, theirs = api.read(run_id), elsewhere.read(run_id)
    assert {k: v for k, v in ours.items() if k != "owner"} == {
        k: v for k, v in theirs.items() if k != "owner"
    }
    with unchanged(elsewhere, run_id):
        refused(take_in(elsewhere, bundle), 409, "conflict")
        refused(tell(elsewhere, thread, ADA), 409, "interrupt_already_resolved")


def test_an_open_thread_goes_on_elsewhere(api: Api, elsewhere: Api, told: str) -> None:
    assert take_in(elsewhere, bundle_of(api, told)).status_code == 201
    run_id = run_of(told)
    assert state(elsewhere, told) == state(api, told)
    assert elsewhere.read(run_id)["status"] == "waiting-approval"
    with unchanged(elsewhere, run_id):
        refused(tell(elsewhere, told, BO), 409, "participant_muted")
        refused(tell(elsewhere, told, "host:cy"), 422, VALIDATION)
    answered(tell(key_as(elsewhere, ADA), told, ADA, "and here?"))
    assert read(elsewhere, told)["turns"] == read(api, told)["turns"] + 1
    answered(close(elsewhere, told, decision="June"))
    assert elsewhere.until(run_id)["status"] == "completed"
    assert read(api, told)["open"], "the first knows nothing of it"
    again = rows_of(bundle_of(elsewhere, told))[1:-1]
    assert again[: len(api.events(run_id))] == rows_of(bundle_of(api, told))[1:-1]


@pytest.mark.parametrize("time_", ["9999-12-31T23:59:59.999999Z", "2400-01-01T00:00:00.000000Z"])
def test_a_log_of_the_future_is_not_taken_in(
    api: Api, elsewhere: Api, told: str, time_: str
) -> None:
    lines = rows_of(fresh(api, bundle_of(api, told), told))
    lines[-2] = altered(lines[-2], timestamp=time_)
    answer = take_in(elsewhere, remade(lines))
    refused(answer, 400, VALIDATION)
    assert "future" in answer.json()["message"]


def test_the_clocks_of_two_hosts_may_be_minutes_apart_and_not_hours(
    api: Api, elsewhere: Api, told: str
) -> None:
    for seconds, status in ((CLOCK_TOLERANCE_S + 60, 400), (CLOCK_TOLERANCE_S - 60, 201)):
        lines = rows_of(fresh(api, bundle_of(api, told), told))
        lines[-2] = altered(lines[-2], timestamp=iso(time.time_ns() // 1000 + seconds * 1_000_000))
        assert take_in(elsewhere, remade(lines)).status_code == status


def test_what_was_brought_along_says_so_wherever_it_is_found(
    api: Api, elsewhere: Api, told: str
) -> None:
    bundle = fresh(api, bundle_of(api, told), told)
    thread = take_in(elsewhere, bundle).json()["threadId"]
    mark = read(elsewhere, thread)["imported"]
    assert mark["by"].startswith("key_") and mark["at"] >= read(elsewhere, thread)["createdAt"]
    query = {"q": "June", "thread": thread}
    hits = elsewhere.get("/v1/host/moot/search", params=query).json()["results"]
    assert hits and all(hit["imported"] for hit in hits)
    assert "imported" not in read(api, told)
    here = api.get("/v1/host/moot/search", params={"q": "June", "thread": told}).json()["results"]
    assert here and not any("imported" in hit for hit in here)


def test_what_came_in_is_whole_and_survives_a_restart(
    api: Api, host: Callable[..., Any], told: str
) -> None:
    other = host()
    assert take_in(other, bundle_of(api, told)).status_code == 201
    answered(person(other, told))
    other.server.restart()
    answered(person(other, told))
    found = export(other, told).content
    other.server.stop()
    file = other.server.database
    for word in ("verify", "rebuild", "verify"):
        done = processes.run("db", word, file, folder=file.parent, environment=server_environment())
        assert done.code == 0, done.out + done.err
    other.server.start()
    assert export(other, told).content == found


def test_a_conversation_of_a_workflow_comes_along_with_its_workflow(
    api: Api, elsewhere: Api
) -> None:
    after = {"id": "after", "typeId": "core.setVariable", "config": {"name": "x", "value": 1}}
    run_id = begun(api, talk(), after)
    answered(say(api, run_id))
    assert take_in(elsewhere, bundle_of(api, run_id)).status_code == 201
    answered(close(elsewhere, run_id, outcome=1))
    assert elsewhere.until(run_id)["variables"]["x"] == 1


def test_what_new_runs_use_stays_what_it_was(api: Api, elsewhere: Api) -> None:
    run_id = begun(api, talk())
    name = api.read(run_id)["workflowId"]
    other = {**api.get(f"/v1/workflows/{name}").json(), "description": "another one"}
    elsewhere.register(other)
    assert take_in(elsewhere, bundle_of(api, run_id)).status_code == 201
    assert elsewhere.get(f"/v1/workflows/{name}").json()["description"] == "another one"


def test_only_who_may_bring_logs_along_does(api: Api, elsewhere: Api, told: str) -> None:
    bundle = fresh(api, bundle_of(api, told), told)
    run_id = json.loads(rows_of(bundle)[0])["runId"]
    usual = elsewhere.with_key(elsewhere.new_key("usual"))
    assert refused(take_in(usual, bundle), 403, "forbidden")["scopeRequired"] == "runs:import"
    importer = elsewhere.with_key(elsewhere.new_key("importer", scopes=["runs:import"]))
    assert take_in(importer, bundle).status_code == 201
    assert elsewhere.read(run_id)["owner"]["tenant"] == "default"


def test_a_run_comes_to_the_tenant_that_takes_it_in(api: Api, elsewhere: Api, told: str) -> None:
    bundle = fresh(api, bundle_of(api, told), told)
    run_id = json.loads(rows_of(bundle)[0])["runId"]
    other = elsewhere.with_key(elsewhere.new_key("acme", tenant="acme", admin=True))
    assert take_in(other, bundle).status_code == 201
    assert other.read(run_id)["owner"]["tenant"] == "acme"
    refused(elsewhere.get(f"/v1/runs/{run_id}"), 404, "run_not_found")
    answered(person(other, run_id))
    with unchanged(other, run_id):
        refused(take_in(elsewhere, bundle), 409, "conflict")
    refused(elsewhere.get(f"/v1/runs/{run_id}"), 404, "run_not_found")


def test_a_run_that_waits_for_its_children_stays_where_they_are(api: Api, elsewhere: Api) -> None:
    kid = begun(api, gate("approvalGate", "ok"))
    name = api.read(kid)["workflowId"]
    sub = {"id": "sub", "typeId": "core.subWorkflow", "config": {"workflowId": name}}
    run_id = begun(api, talk(), sub, edges=[])
    refused(take_in(elsewhere, bundle_of(api, run_id)), 422, VALIDATION)


def test_an_export_needs_a_format_that_is_there(api: Api, foreign: Api, told: str) -> None:
    for wrong in ("pdf", "", "MD"):
        answer = api.get(f"{THREADS}/{told}/export", params={"format": wrong})
        refused(answer, 400, VALIDATION)
    refused(foreign.get(f"{THREADS}/{told}/export"), 404, "not_found")


def test_a_huge_thread_comes_in_and_keeps_nobody_waiting(api: Api, elsewhere: Api) -> None:
    thread = convened(api)
    answered(tell(api, thread, ADA, "x" * 200))
    lines = rows_of(fresh(api, bundle_of(api, thread), thread))
    turn = json.loads(lines[-2])
    rows = lines[1:-1]
    for index in range(2, 20_001):
        place = len(rows)
        said = {**turn["payload"]["turn"], "turnIndex": index, "messageId": f"m{index}"}
        payload = {**turn["payload"], "turnIndex": index, "turn": said}
        claimed = {"sequence": place, "eventId": f"{turn['runId']}.{place}", "payload": payload}
        rows.append(json.dumps({**turn, **claimed}).encode())
    waits: list[float] = []
    done = threading.Event()

    def knock() -> None:
        with httpx.Client(base_url=elsewhere.url, trust_env=False) as http:
            while not done.is_set():
                began = time.monotonic()
                assert http.get("/healthz").status_code == 200
                waits.append(time.monotonic() - began)

    other = threading.Thread(target=knock)
    first = time.monotonic()
    other.start()
    try:
        answer = take_in(elsewhere, remade([lines[0], *rows, b""]))
        assert answer.status_code == 201, answer.text
        copy = answer.json()["threadId"]
        assert read(elsewhere, copy)["turns"] == 20_000
        assert len(json.loads(export(elsewhere, copy, "json").content)["transcript"]) == 20_001
        answered(tell(elsewhere, copy, ADA))
        assert len(rows_of(bundle_of(elsewhere, copy))) == len(rows) + 3
    finally:
        done.set()
        other.join()
    whole = time.monotonic() - first
    assert max(waits) < max(1.0, whole / 8), (max(waits), whole)


@pytest.mark.parametrize("form", ["md", "html", "json", "bundle"])
def test_who_asks_only_for_the_head_is_told_of_what_kind_it_is(api: Api, form: str) -> None:
    path = f"{THREADS}/{convened(api)}/export?format={form}"
    head, whole = api.call("HEAD", path), api.get(path)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-type"] == whole.headers["content-type"]
    assert "content-length" not in head.headers, "it is long, and nobody knows how long"


# -- threads without a host's lead -----------------------------------------------------------------


SEARCH = "/v1/host/moot/search"


@pytest.fixture
def thread(api: Api) -> str:
    """Open, with people who came and went, and every control in force."""
    name = convened(api, ADA, BO, open=True, question="Where is the saola?", title="Sightings")
    profile = {"client": "codex", "model": "m1", "nickname": "cee"}
    answered(steer(api, name, {"invite": {"participant_id": CY, "profile": profile}}))
    answered(tell(api, name, CY, "A saola in the north"))
    answered(steer(api, name, {"uninvite": {"participant_id": BO}}))
    answered(steer(api, name, {"mute": {"targets": [ADA], "seconds": 86_400}}))
    answered(steer(api, name, {"discussion": {"on": True, "allow_agent_mentions": False}}))
    answered(steer(api, name, {"invited_auto": {"on": True}, "ttl_seconds": 600}))
    answered(steer(joined(api, name, CY), name, {"done": True}))
    answered(person(api, name, {"said": ["in", "parts"]}, to=CY, meta={"replyTo": "#1"}))
    answered(steer(api, name, {"pause": {"on": True}, "prod": [CY]}))
    return name


def seen(api: Api, thread: str) -> dict[str, Any]:
    """Everything about a thread that anybody can read, but where it comes from."""
    found = api.get(SEARCH, params={"q": f"saola thread:{thread}"}).json()
    for each in (view := read(api, thread), *found["results"]):
        each.pop("imported", None)
    return {
        "view": view,
        "log": api.events(thread),
        "minutes": export(api, thread, "json").json(),
        "page": export(api, thread, "md").text,
        "found": found,
    }


def test_the_whole_of_it_is_seen_as_it_was(api: Api, elsewhere: Api, thread: str) -> None:
    assert take_in(elsewhere, bundle_of(api, thread)).status_code == 201
    assert seen(elsewhere, thread) == seen(api, thread)
    view = read(elsewhere, thread)
    assert view["state"]["paused"] and view["state"]["done"] == []
    assert [each["id"] for each in view["state"]["participants"]["invited"]] == [ADA, CY]


def test_a_fork_comes_without_its_source_and_goes_on(api: Api, elsewhere: Api, thread: str) -> None:
    branch = {"mode": "branch", "fromSeq": len(api.events(thread))}
    fork = str(api.post(f"/v1/runs/{thread}:fork", branch).json()["runId"])
    answered(person(api, fork, "The saola again, in the fork"))
    answer = take_in(elsewhere, bundle_of(api, fork))
    assert answer.status_code == 201, answer.text
    assert seen(elsewhere, fork) == seen(api, fork)
    answered(steer(elsewhere, fork, {"pause": {"on": False}}))
    answered(tell(elsewhere, fork, CY, "I go on here"))
    answered(close(elsewhere, fork, decision="Look again in June"))
    elsewhere.until(fork, "completed")
    before, after = bundle_of(elsewhere, fork), read(elsewhere, fork)
    assert after["open"] is False and before.count(b"\n") == len(elsewhere.events(fork)) + 2
