"""Branches, edited forks and diffs over the wire (core protocol 3.9 and 9)."""

from typing import Any

import httpx2 as httpx
import pytest

from tests.api.replay.test_forks import NODES, fork
from tests.support.api.caller import Api, definition
from tests.support.api.councils import close, export, joined
from tests.support.api.questions import (
    answered,
    asked,
    begun,
    council,
    gate,
    link,
    mine,
    of,
    refused,
    resolve,
    say,
    talk,
    turns,
    unchanged,
)  # fmt: skip

VALIDATION = "validation_error"
A, B = "host:a", "host:b"


def put(name: str, value: Any) -> dict[str, Any]:
    return {"id": f"set-{name}", "typeId": "core.setVariable",
            "config": {"name": name, "value": value}}  # fmt: skip


def branched(api: Api, run_id: str, from_seq: int, **overlay: Any) -> str:
    body = {"mode": "branch", "fromSeq": from_seq}
    answer = fork(api, run_id, **body, **({"runOptionsOverlay": overlay} if overlay else {}))
    assert answer.status_code == 201, answer.text
    return str(answer.json()["runId"])


def edited(api: Api, run_id: str, **body: Any) -> httpx.Response:
    return api.post(f"/v1/host/moot/runs/{run_id}:fork", body)


def diff(api: Api, a: str, b: str) -> dict[str, Any]:
    answer = api.get(f"/v1/runs/{a}:diff", params={"against": b})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def place(api: Api, run_id: str, type_: str, nth: int = 0) -> int:
    return [e["sequence"] for e in api.events(run_id) if e["type"] == type_][nth]


# -- branches --------------------------------------------------------------------------------------


def test_a_branch_is_a_run_of_its_own_from_every_event_on(api: Api) -> None:
    source = begun(api, put("x", 1), gate(), put("y", 2), run={"tags": ["t"]})
    api.until(source, "waiting-approval")
    answered(resolve(api, source, {"action": "accept"}))
    api.until(source, "completed")
    before = api.events(source)
    for from_seq in range(len(before) + 1):
        answer = fork(api, source, mode="branch", fromSeq=from_seq)
        body = answer.json()
        run_id = body.pop("runId")
        assert (answer.status_code, answer.headers["location"]) == (201, f"/v1/runs/{run_id}")
        assert body == {
            "sourceRunId": source, "fromSeq": from_seq, "mode": "branch", "status": "pending",
            "eventsUrl": f"/v1/runs/{run_id}/events",
        }  # fmt: skip
        found = api.until(run_id, "waiting-approval", "completed")
        if found["status"] != "completed":
            answered(resolve(api, run_id, {"action": "accept"}))
            found = api.until(run_id, "completed")
        assert found["variables"] == {"x": 1, "y": 2}
        assert (found["owner"], found["tags"]) == (api.read(source)["owner"], ["t"])
        told = api.events(run_id)
        assert [event["type"] for event in told].count("run.started") == 1
        assert [event["payload"] for event in told[1:from_seq]] == [
            event["payload"] for event in before[1:from_seq]
        ]
        assert diff(api, source, run_id)["divergedAtSeq"] is None
    assert api.events(source) == before


def test_options_laid_over_are_checked_and_clamped_as_for_a_new_run(api: Api, live: Api) -> None:
    source = begun(api, put("x", 1), put("y", 1))
    api.until(source)
    run_id = branched(
        api, source, 1, configurable={"recursionLimit": 1}, tags=["u"], metadata={"m": 1}
    )
    found = api.until(run_id)
    assert found["error"]["code"] == "recursion_limit_exceeded"
    assert (found["tags"], found["metadata"]) == (["u"], {"m": 1})
    huge = branched(api, source, 1, configurable={"recursionLimit": 10**9})
    ceiling = api.get("/.well-known/openwop").json()["limits"]["maxNodeExecutions"]
    assert api.events(huge)[0]["payload"]["limits"]["nodeExecutions"] == ceiling
    for wrong in (
        {"configurable": {"recursionLimit": 0}}, {"configurable": {"recursionLimt": 1}},
        {"tags": [""]}, {"metadata": {"a": {"b": {"c": {"d": {"e": 1}}}}}}, {"inputs": {}},
        {"workflowId": "x"}, {"scopeId": "x"},
    ):  # fmt: skip
        with unchanged(api, source):
            answer = fork(api, source, mode="branch", fromSeq=1, runOptionsOverlay=wrong)
            refused(answer, 400, VALIDATION)
    mock = {"configurable": {"mockProvider": {"id": "stream-text"}}}
    answer = fork(live, source, mode="branch", fromSeq=1, runOptionsOverlay=mock)
    refused(answer, 403, "mock_provider_forbidden")


def test_an_open_question_waits_in_both_and_each_has_its_own_answer(api: Api) -> None:
    source = asked(api, gate(), put("x", 1))
    theirs = link(api, source)
    run_id = branched(api, source, len(api.events(source)))
    api.until(run_id, "waiting-approval")
    [ours], [was] = mine(api, run_id), mine(api, source)
    assert ours["id"] != was["id"]
    answered(api.post(theirs, {"resumeValue": {"action": "accept"}}))
    assert api.until(source)["status"] == "completed"
    assert api.read(run_id)["status"] == "waiting-approval"
    answered(api.post(link(api, run_id), {"resumeValue": {"action": "reject"}}))
    assert api.until(run_id)["status"] == "failed"


def test_a_council_goes_on_elsewhere_with_its_members(api: Api) -> None:
    source = asked(api, council(A, B), put("x", 1))
    answered(say(api, source, "one", role="agent", speakerId=A, messageId="first"))
    answered(say(api, source, "two", role="agent", speakerId=B))
    cut = place(api, source, "conversation.exchanged", 1)
    run_id = branched(api, source, cut)
    again = say(api, run_id, "one", role="agent", speakerId=A, messageId="first")
    assert answered(again)["conversation"]["turnIndex"] == 1
    other = say(api, run_id, "else", role="agent", speakerId=A, messageId="first")
    refused(other, 409, "message_id_conflict")
    refused(say(api, run_id, "x", role="agent", speakerId="host:c"), 422, VALIDATION)
    answered(say(api, run_id, "other", role="agent", speakerId=B))
    answered(close(api, f"{run_id}~convo~1", decision="May"))
    api.until(run_id, "completed")
    assert [turn["content"] for turn in turns(api, run_id)[1:3]] == ["one", "other"]
    assert [turn["content"] for turn in turns(api, source)[1:]] == ["one", "two"]


def test_a_thread_forks_to_a_thread(api: Api) -> None:
    made = api.post("/v1/host/moot/councils", {"question": "Ship?", "participants": [A, B]}).json()
    source = made["runId"]
    run_id = branched(api, source, len(api.events(source)))
    assert run_id.split("_")[0] == source.split("_")[0]


def test_effects_of_the_history_are_not_made_again(host: Any) -> None:
    api = host("--nodes", str(NODES))
    source = begun(api, {"id": "f", "typeId": "wire.flaky", "settings": {"retryDelayMs": 1}},
                   put("x", 1))  # fmt: skip
    api.until(source, "completed")
    cut = place(api, source, "node.completed") + 1
    run_id = branched(api, source, cut)
    api.server.restart()
    found = api.until(run_id, "completed")
    assert found["nodeStates"]["f"] == {
        **api.read(source)["nodeStates"]["f"], "startedAt": found["nodeStates"]["f"]["startedAt"]
    }  # fmt: skip


def test_the_same_branch_again_is_the_same_run(api: Api) -> None:
    source = begun(api, put("x", 1))
    api.until(source)
    headers = {"Idempotency-Key": f"branch-{source}"}
    path, body = f"/v1/runs/{source}:fork", {"mode": "branch", "fromSeq": 1}
    first = api.post(path, body, headers=headers)
    again = api.post(path, body, headers=headers)
    assert (first.status_code, again.json()) == (201, first.json())
    host_path = f"/v1/host/moot/runs/{source}:fork"
    once = api.post(host_path, {"fromSeq": 1}, headers=headers)
    assert once.json() == api.post(host_path, {"fromSeq": 1}, headers=headers).json()


# -- edits -----------------------------------------------------------------------------------------


def test_an_edit_is_the_first_difference(api: Api) -> None:
    source = asked(api, council(A, B), gate(), put("x", 1))
    for name in (A, B):
        answered(say(api, source, name, role="agent", speakerId=name))
    answered(close(api, f"{source}~convo~1", outcome="June"))
    api.until(source, "waiting-approval")
    answered(resolve(api, source, {"action": "accept"}))
    api.until(source)
    edits: list[tuple[int, dict[str, Any]]] = [
        (1, {"inputs": {"topic": "May"}}),
        (place(api, source, "conversation.exchanged", 1), {"turn": {"content": "changed"}}),
        (place(api, source, "conversation.closed"), {"turn": {"content": "changed"}}),
        (place(api, source, "interrupt.resolved", 1), {"answer": {"action": "reject"}}),
        (place(api, source, "node.completed") + 1, {"variables": {"x": 5}}),
    ]
    for from_seq, edit in edits:
        answer = edited(api, source, fromSeq=from_seq, edit=edit, note="what if")
        assert answer.status_code == 201, answer.text
        body = answer.json()
        assert (body["note"], body["mode"], body["status"]) == ("what if", "branch", "pending")
        first = 0 if "inputs" in edit else from_seq
        found = diff(api, source, body["runId"])
        assert (found["divergedAtSeq"], found["eventDiffs"][0]["op"]) == (first, "changed")
        mark = api.events(body["runId"])[0]["payload"]["forkedFrom"]
        assert (mark["note"], mark["edit"]["kinds"]) == ("what if", list(edit))


def test_minutes_show_whose_words_were_edited(api: Api) -> None:
    source = asked(api, council(A, B), put("x", 1))
    answered(say(api, source, "mine", role="agent", speakerId=A))
    cut = place(api, source, "conversation.exchanged")
    made = edited(api, source, fromSeq=cut, edit={"turn": {"content": "not mine"}}).json()
    thread = f"{made['runId']}~convo~1"
    lines = export(api, thread, "json").json()["transcript"]
    [line] = [each for each in lines if "editedBy" in each]
    assert (line["by"], line["content"]) == (A, "not mine")
    for format_ in ("md", "html"):
        assert "edited by key" in export(api, thread, format_).text
    then = export(api, f"{source}~convo~1", "md").text
    assert "edited by" not in then


def test_whoever_forks_answers_in_his_own_name(api: Api) -> None:
    source = asked(api, gate(approversList=["user:ann"]), put("x", 1))
    ann = api.with_key(api.new_key("ann", **{"as": ["user:ann"]}))
    answered(resolve(ann, source, {"action": "accept"}))
    api.until(source)
    cut = place(api, source, "interrupt.resolved")
    bob = api.with_key(api.new_key("bob", **{"as": ["user:bob"]}))
    edit = {"answer": {"action": "reject"}}
    refused(edited(bob, source, fromSeq=cut, edit=edit), 403, "forbidden")
    run_id = edited(ann, source, fromSeq=cut, edit=edit).json()["runId"]
    [received] = of(api, run_id, "approval.received")
    assert (received["action"], received["decidedBy"]) == ("reject", "user:ann")


@pytest.mark.parametrize(
    "wrong",
    [
        {}, {"fromSeq": -1}, {"fromSeq": "1"}, {"fromSeq": 1, "edit": {"words": 1}},
        {"fromSeq": 1, "mode": "branch"}, {"fromSeq": 1, "note": ""},
        {"fromSeq": 1, "note": "x" * 501}, {"fromSeq": 1, "edit": {"turn": {"text": "x"}}},
        {"fromSeq": 1, "edit": {"variables": []}}, {"fromSeq": 1, "edit": {"models": {"a": 1}}},
        {"fromSeq": 1, "edit": {"inputs": {}, "answer": 1}}, {"fromSeq": 1, "edit": None},
    ],
)  # fmt: skip
def test_what_is_no_edit_makes_no_run(api: Api, wrong: Any) -> None:
    source = begun(api, put("x", 1))
    api.until(source)
    newest = api.runs(limit=1)
    with unchanged(api, source):
        refused(edited(api, source, **wrong), 400, VALIDATION)
    assert api.runs(limit=1) == newest


def test_an_edit_that_does_not_fit_says_what_stands_there(api: Api) -> None:
    source = begun(api, put("x", 1))
    api.until(source)
    details = refused(
        edited(api, source, fromSeq=2, edit={"turn": {"content": "x"}}), 422, VALIDATION
    )
    assert details == {"field": "edit.turn", "fromSeq": 2, "eventType": "variable.changed"}
    refused(edited(api, source, fromSeq=99), 422, VALIDATION)


def test_others_and_half_keys_fork_nothing(api: Api, foreign: Api) -> None:
    source = asked(api, talk())
    with unchanged(api, source):
        refused(edited(foreign, source, fromSeq=1), 404, "run_not_found")
        refused(fork(foreign, source, mode="branch", fromSeq=1), 404, "run_not_found")
        for scopes in (["runs:create"], ["runs:read"]):
            key = api.with_key(api.new_key("half", scopes=scopes))
            refused(edited(key, source, fromSeq=1), 403, "forbidden")
        refused(edited(joined(api, source, A), source, fromSeq=1), 403, "forbidden")
    mute = api.with_key(api.new_key("mute", scopes=["runs:create", "runs:read"]))
    edit = {"turn": {"content": "x"}}
    details = refused(edited(mute, source, fromSeq=1, edit=edit), 403, "forbidden")
    assert details == {"scopeRequired": "approvals:respond"}


# -- diffs -----------------------------------------------------------------------------------------


def test_a_diff_lists_what_each_run_has_alone(api: Api) -> None:
    short = api.run(api.register(definition("diff-short", [put("x", 1)])))["runId"]
    long = api.run(api.register(definition("diff-long", [put("x", 2), put("y", 1)])))["runId"]
    assert diff(api, short, short) == {
        "a": short, "b": short, "divergedAtSeq": None, "eventDiffs": [], "stateDiff": {}
    }  # fmt: skip
    found = diff(api, short, long)
    assert found["divergedAtSeq"] == 0  # another workflow
    assert [each["op"] for each in found["eventDiffs"]][-2:] == ["added", "added"]
    assert found["stateDiff"] == {"variables": {"x": {"a": 1, "b": 2}, "y": {"b": 1}}}
    assert [each["op"] for each in diff(api, long, short)["eventDiffs"]][-1] == "removed"
    assert "truncated" not in found


def test_two_runs_of_one_workflow_differ_in_what_they_say_only(api: Api) -> None:
    nodes = [gate(), talk(), {"id": "d", "typeId": "core.delay", "config": {"ms": 1}}]
    name = api.register(definition("diff-same", nodes))
    runs = [api.create(name) for _ in range(2)]
    for run_id, word in zip(runs, ("a", "b"), strict=True):
        api.until(run_id, "waiting-approval")
        answered(resolve(api, run_id, {"action": "accept"}))
        answered(say(api, run_id, word))
        answered(close(api, f"{run_id}~convo~1", outcome="x"))
        api.until(run_id, "completed")
    found = diff(api, *runs)
    assert [each["seq"] for each in found["eventDiffs"]] == [
        place(api, runs[0], "conversation.exchanged")
    ]


def test_what_a_living_run_has_not_come_to_yet_is_no_difference(api: Api) -> None:
    source = asked(api, gate(), put("x", 1))
    other = branched(api, source, len(api.events(source)))
    answered(resolve(api, other, {"action": "accept"}))
    api.until(other, "completed")
    found = diff(api, source, other)
    assert (found["eventDiffs"], found["truncated"]) == ([], True)
    assert found["stateDiff"]["status"] == {"a": "waiting-approval", "b": "completed"}


def test_a_diff_needs_two_runs_of_ones_own(api: Api, foreign: Api) -> None:
    source = begun(api, put("x", 1))
    path = f"/v1/runs/{source}:diff"
    refused(api.get(path), 400, VALIDATION)
    refused(api.get(path, params={"against": "run_nobody"}), 404, "run_not_found")
    refused(foreign.get(path, params={"against": source}), 404, "run_not_found")
    key = api.with_key(api.new_key("blind", scopes=["runs:create"]))
    refused(key.get(path, params={"against": source}), 403, "forbidden")
