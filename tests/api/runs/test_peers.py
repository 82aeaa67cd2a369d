"""Work handed to another host: two real servers, one asking the other."""

from typing import Any

import pytest

from tests.support.api.caller import Api
from tests.support.api.questions import resolve
from tests.support.api.two_hosts import (
    DONE,
    GATE,
    Pair,
    Start,
    away,
    chain,
    hand,
    host_id,
    led,
    phases,
    sub,
    worker,
)  # fmt: skip

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"


@pytest.fixture
def pair(host: Start) -> Pair:
    return Pair(host)


def test_a_worker_on_another_host_does_the_work_and_gives_it_back(pair: Pair) -> None:
    pair.far.register(worker("research"))
    known = [{"name": "topic", "type": "string", "defaultValue": "bees"}]
    mapping = {"inputMapping": {"given": "topic"}, "outputMapping": {"result": "out"}}
    pair.near.register(led(hand("lab/research"), DONE, variables=known, **mapping))
    found = pair.near.run("led", headers={"traceparent": PARENT, "tracestate": "a=1"})
    assert found["status"] == "completed" and found["variables"]["result"] == "of research"
    child = away(pair.near, found["runId"])
    there = pair.far.read(child)
    assert there["status"] == "completed" and there["inputs"] == {"given": "bees"}
    assert phases(pair.near, found["runId"]) == [
        "dispatch.began", "dispatch.succeeded", "child.completed", "output.harvested"
    ]  # fmt: skip
    assert {"runId": child, "status": "completed"} in found["childRuns"]
    with pytest.raises(AssertionError):
        pair.near.read(child)  # it is no run of this host


def test_each_event_says_on_which_host_its_cause_is(pair: Pair) -> None:
    pair.far.register(worker("research"))
    pair.near.register(led(hand("lab/research"), DONE, outputMapping={"result": "out"}))
    run_id = pair.near.run("led")["runId"]
    child = away(pair.near, run_id)
    began, succeeded, completed, harvested = chain(pair.near, run_id)
    [last] = pair.far.events(child)[-1:]
    assert completed["causationId"] == last["eventId"]
    assert completed["payload"]["causationHostId"] == host_id(pair.far)
    for here in (began, succeeded, harvested):
        assert "causationHostId" not in here["payload"]
        assert here["causationId"].startswith(run_id)
    assert harvested["causationId"] == completed["eventId"]
    assert succeeded["causationId"] == began["eventId"]
    [first] = pair.far.events(child)[:1]
    mine = {event["eventId"]: event["type"] for event in pair.near.events(run_id)}
    assert mine[first["causationId"]] == "moot.peer.asked"
    assert first["payload"]["causationHostId"] == host_id(pair.near) != host_id(pair.far)


def test_ancestry_leads_from_the_child_to_its_parent(pair: Pair) -> None:
    pair.far.register(worker("research"))
    pair.far.register(sub("research"))
    pair.near.register(sub("lab/above", outputMapping={"result": "result"}))
    found = pair.near.run("above")
    assert found["status"] == "completed"
    child = away(pair.near, found["runId"])
    [inner] = [each["runId"] for each in pair.far.read(child)["childRuns"]]
    near, far = host_id(pair.near), host_id(pair.far)
    assert pair.near.get(f"/v1/runs/{found['runId']}/ancestry").json() == {
        "runId": found["runId"], "hostId": near, "parent": None,
    }  # fmt: skip
    url = f"{pair.near.url}/.well-known/openwop"
    parent = {"runId": found["runId"], "hostId": near, "cause": "core.subWorkflow"}
    assert pair.far.get(f"/v1/runs/{child}/ancestry").json() == {
        "runId": child, "hostId": far, "parent": {**parent, "wellKnownUrl": url},
    }  # fmt: skip
    assert pair.far.get(f"/v1/runs/{inner}/ancestry").json() == {
        "runId": inner, "hostId": far,
        "parent": {"runId": child, "hostId": far, "cause": "core.subWorkflow"},
    }  # fmt: skip
    stranger = pair.far.with_key(pair.far.new_key("other", tenant="elsewhere"))
    assert stranger.get(f"/v1/runs/{child}/ancestry").status_code == 404


def test_a_trace_goes_through_both_hosts(pair: Pair) -> None:
    pair.far.register(worker("research"))
    pair.far.register(sub("research"))
    pair.near.register(sub("lab/above"))
    found = pair.near.run("above", headers={"traceparent": PARENT, "tracestate": "a=1"})
    child = away(pair.near, found["runId"])
    [inner] = [each["runId"] for each in pair.far.read(child)["childRuns"]]
    said = [
        api.events(run_id)[0]["payload"]["trace"]
        for api, run_id in ((pair.near, found["runId"]), (pair.far, child), (pair.far, inner))
    ]
    assert said[0] == {"traceparent": PARENT, "tracestate": "a=1"}
    assert all(each["tracestate"] == "a=1" for each in said)
    assert {each["traceparent"].split("-")[1] for each in said} == {TRACE}
    assert len({each["traceparent"].split("-")[2] for each in said}) == 3


@pytest.mark.parametrize("bad", ["", "garbage", "00-" + "0" * 32 + "-00f067aa0ba902b7-01", "ÿ"])
def test_a_trace_that_cannot_be_read_is_ignored(api: Api, bad: str) -> None:
    headers = {"traceparent": bad.encode("latin-1"), "moot-parent": bad.encode("latin-1")}
    run_id = api.create("conformance-noop", headers=headers)
    said = api.events(run_id)[0]["payload"]
    assert "trace" not in said and "origin" not in said
    assert api.get(f"/v1/runs/{run_id}/ancestry").json()["parent"] is None


def test_a_parent_is_told_and_gives_no_right(api: Api, foreign: Api) -> None:
    mine = api.create("conformance-noop")
    url = "https://elsewhere.example/.well-known/openwop"
    header = f'{mine}; host="elsewhere"; url="{url}"; cause=core.dispatch; event="{mine}.0"'
    foreign.register(worker("theirs"))
    run_id = foreign.create("theirs", headers={"Moot-Parent": header})
    assert foreign.get(f"/v1/runs/{run_id}/ancestry").json()["parent"] == {
        "runId": mine, "hostId": "elsewhere", "wellKnownUrl": url, "cause": "core.dispatch",
    }  # fmt: skip
    assert foreign.get(f"/v1/runs/{mine}").status_code == 404
    assert "childRuns" not in api.read(mine) and "parentRunId" not in foreign.read(run_id)


def test_a_child_that_waits_elsewhere_is_shown_by_its_parent(pair: Pair) -> None:
    pair.far.register(worker("ask", GATE))
    pair.near.register(led(hand("lab/ask"), DONE, outputMapping={"result": "out"}))
    run_id = pair.near.create("led")
    pair.near.until(run_id, "waiting-approval")
    child = away(pair.near, run_id)
    assert {"runId": child, "status": "waiting-approval", "peer": "lab"} in pair.near.read(run_id)[
        "childRuns"
    ]
    resolve(pair.far, child, {"action": "accept"}, "ask")
    assert pair.near.until(run_id)["variables"]["result"] == "of ask"


@pytest.mark.parametrize("parent", [led(hand("lab/ask"), DONE), sub("lab/ask")])
def test_a_cancel_reaches_the_child_on_the_other_host(pair: Pair, parent: Any) -> None:
    pair.far.register(worker("ask", GATE))
    run_id = pair.near.create(pair.near.register(parent))
    pair.near.until(run_id, "waiting-approval")
    child = away(pair.near, run_id)
    assert pair.near.post(f"/v1/runs/{run_id}/cancel", {}).json()["status"] == "cancelled"
    assert pair.far.until(child, "cancelled")["status"] == "cancelled"
    [end] = pair.far.events(child)[-1:]
    assert end["payload"]["reason"] == "parent-cancelled"


def test_who_loses_a_race_elsewhere_is_stopped_there(pair: Pair) -> None:
    pair.far.register(worker("ask", GATE))
    pair.near.register(worker("quick", GATE))
    race = {"fanOutPolicy": "parallel", "joinPolicy": {"mode": "first"}}
    pair.near.register(led(hand("lab/ask", "quick"), DONE, outputMapping={"result": "out"}, **race))
    run_id = pair.near.create("led")
    child = away(pair.near, run_id)
    [here] = [each["runId"] for each in pair.near.read(run_id)["childRuns"] if "peer" not in each]
    pair.near.until(here, "waiting-approval")
    resolve(pair.near, here, {"action": "accept"}, "ask")
    found = pair.near.until(run_id)
    assert found["variables"]["result"] == "of quick"
    assert pair.far.until(child, "cancelled")
    assert "child.cancelled" in phases(pair.near, found["runId"])


def test_a_child_that_fails_elsewhere_is_the_supervisors_to_see(pair: Pair) -> None:
    bad = {"id": "w", "typeId": "core.fail", "config": {"code": "broken", "message": "It broke."}}
    pair.far.register(worker("bad", bad))
    pair.near.register(led(hand("lab/bad"), DONE, outputMapping={"result": "out"}))
    found = pair.near.run("led")
    assert found["status"] == "completed" and found["variables"]["result"] == ""
    [failed] = [
        e for e in chain(pair.near, found["runId"]) if e["payload"]["phase"] == "child.failed"
    ]
    assert failed["payload"]["error"]["code"] == "broken"
    assert failed["payload"]["causationHostId"] == host_id(pair.far)


def test_workers_here_and_there_come_together(pair: Pair) -> None:
    pair.far.register(worker("there"))
    pair.near.register(worker("here"))
    wave = {"fanOutPolicy": "parallel", "outputMapping": {"result": "out"}}
    pair.near.register(led(hand("lab/there", "here", "lab/there"), DONE, **wave))
    found = pair.near.run("led")
    [join] = [
        e["payload"] for e in pair.near.events(found["runId"]) if e["type"] == "core.dispatch.join"
    ]
    assert join["joinOutcome"] == "satisfied" and join["completedCount"] == 3
    assert len(set(join["mergeOrder"])) == 3


def test_a_replay_says_it_again_and_asks_nobody(pair: Pair) -> None:
    pair.far.register(worker("research"))
    pair.near.register(led(hand("lab/research"), DONE, outputMapping={"result": "out"}))
    found = pair.near.run("led")
    before = len(pair.far.get("/v1/host/moot/runs").json()["runs"])
    pair.far.server.kill()
    answer = pair.near.post(f"/v1/runs/{found['runId']}:fork", {"fromSeq": 0, "mode": "replay"})
    assert answer.status_code == 201, answer.text
    again = pair.near.until(answer.json()["runId"])
    assert again["status"] == "completed" and again["variables"] == found["variables"]
    assert "replay.diverged" not in pair.near.types(again["runId"])
    pair.far.server.start()
    assert len(pair.far.get("/v1/host/moot/runs").json()["runs"]) == before


def test_a_host_that_is_not_known_is_refused_before_anything_begins(pair: Pair) -> None:
    pair.near.register(sub("nowhere/x"))
    answer = pair.near.post("/v1/runs", {"workflowId": "above"})
    assert answer.status_code == 422 and answer.json()["error"] == "peer_unknown"
    pair.near.register(led(hand("nowhere/x"), DONE))
    found = pair.near.run("led")
    assert found["error"]["code"] == "peer_unknown"
    assert phases(pair.near, found["runId"]) == ["dispatch.began", "dispatch.failed"]
    worker_here = {**worker("a"), "id": "lab/a"}
    assert pair.near.post("/v1/host/moot/workflows", worker_here).status_code == 400


def test_what_the_other_host_refuses_is_told_with_its_reason(pair: Pair) -> None:
    pair.near.register(led(hand("lab/missing"), DONE))
    found = pair.near.run("led")
    assert found["error"]["code"] == "peer_refused"
    assert found["error"]["details"]["code"] == "workflow_not_found"


def test_what_is_sensitive_stays_here(pair: Pair) -> None:
    pair.far.register(worker("research"))
    known = [{"name": "pin", "type": "string", "defaultValue": "sesame", "sensitive": True}]
    mapping = {"inputMapping": {"given": "pin"}}
    pair.near.register(led(hand("lab/research"), DONE, variables=known, **mapping))
    found = pair.near.run("led")
    assert found["error"]["code"] == "peer_secret_withheld"
    assert pair.far.get("/v1/host/moot/runs").json()["runs"] == []


def test_a_host_that_is_not_there_is_told_by_its_name(host: Start) -> None:
    near = host("--peer", "lab=http://127.0.0.1:1", MOOT_PEER_PATIENCE_S="0")
    near.register(led(hand("lab/research"), DONE))
    found = near.run("led")
    assert found["error"]["code"] == "peer_unreachable"
    assert found["error"]["details"] == {"peer": "lab"}
    assert phases(near, found["runId"]) == ["dispatch.began", "dispatch.failed"]


def test_a_tree_of_runs_is_bounded_across_hosts(host: Start) -> None:
    far = host()
    key = far.new_key("near")
    near = host("--peer", f"lab={far.url}", MOOT_PEER_LAB_KEY=key, MOOT_MAX_DEPTH="3")
    near.register(sub("lab/deep"))
    url = f"{near.url}/.well-known/openwop"
    header = f'run_x; host="h"; url="{url}"; cause=core.subWorkflow; depth=3; tree=9'
    found = near.run("above", headers={"Moot-Parent": header})
    assert found["error"]["code"] == "depth_exceeded"


def test_a_host_keeps_its_name(host: Start) -> None:
    first = host()
    name = host_id(first)
    first.server.restart()
    assert host_id(first) == name
    assert host_id(host(MOOT_HOST_ID="lab.example/moot")) == "lab.example/moot"
