"""The seams for councils of a host under trial (conformance-mode): thin callers of the engine."""

import itertools
from collections.abc import Callable
from typing import Any

import httpx2 as httpx
import pytest

from tests.support.api.caller import Api
from tests.support.api.questions import of, refused

VALIDATION = "validation_error"
SAMPLE = "/v1/host/sample"
OPEN, EXCHANGE = (
    f"{SAMPLE}/conversation/multi-party/open",
    f"{SAMPLE}/conversation/multi-party/exchange",
)
GATE = f"{SAMPLE}/governance/approval-gate"
OWNER = "conformance-owner-principal"
A, B, C = "host:a", "host:b", "host:c"
_names = itertools.count()


def opened(api: Api, *names: str, **more: Any) -> str:
    name = f"council-{next(_names)}"
    members = [{"agentId": each, "name": each} for each in names or (A, B)]
    answer = api.post(OPEN, {"conversationId": name, "participants": members, **more})
    assert answer.status_code == 200, answer.text
    assert answer.json() == {"conversationId": name, "accepted": True}
    return name


def turn(role: str = "agent", **more: Any) -> dict[str, Any]:
    """A turn as the suite sends it: whole."""
    named = {"from": more.get("speakerId", "user")}
    number = next(_names)
    return {"messageId": f"m{number}", "content": "hello", "ts": 1, "role": role, "turnIndex": 9,
            **named, **more}  # fmt: skip


def exchange(api: Api, name: str, said: Any) -> httpx.Response:
    return api.post(EXCHANGE, {"conversationId": name, "turn": said})


def test_a_member_is_heard_and_a_stranger_is_not(api: Api) -> None:
    name = opened(api)
    answer = exchange(api, name, turn(speakerId=A))
    assert (answer.status_code, answer.json()["accepted"]) == (200, True)
    details = refused(exchange(api, name, turn(speakerId=C)), 422, VALIDATION)
    assert (details["speakerId"], details["roster"]) == (C, [A, B])
    refused(exchange(api, name, turn(**{"from": A})), 422, VALIDATION)
    assert exchange(api, name, turn(speakerId=B)).status_code == 200
    assert exchange(api, name, turn("user")).status_code == 200


def test_behind_a_seam_is_a_run_like_any_other(api: Api) -> None:
    name = opened(api, A, B, C)
    for speaker in (A, B, C):
        assert exchange(api, name, turn(speakerId=speaker)).status_code == 200
    refused(exchange(api, name, turn(speakerId="host:d")), 422, VALIDATION)
    newest = api.get("/v1/host/moot/runs", params={"limit": 1}).json()["runs"][0]
    assert newest["workflowId"] == "moot.thread"
    [first] = of(api, newest["runId"], "conversation.opened")
    assert [member["agentId"] for member in first["participants"]] == [A, B, C]
    said = of(api, newest["runId"], "conversation.exchanged")
    assert [each["turn"]["speakerId"] for each in said] == [A, B, C]
    assert [each["turnIndex"] for each in said] == [1, 2, 3]


@pytest.mark.parametrize(
    "wrong",
    [
        {"participants": [{"agentId": A}]}, {"participants": []}, {"participants": [{}, {}]},
        {"participants": [{"agentId": A}, {"agentId": A}]}, {"participants": "all"},
        {"participants": [{"agentId": f"host:{n}"} for n in range(33)]},
        {"participants": [{"agentId": x} for x in (A, B, C)], "maxParticipants": 2},
        {"participants": [{"agentId": A}, {"agentId": B}], "maxParticipants": 1},
        {"participants": [{"agentId": f"host:{n}"} for n in range(33)], "maxParticipants": 99},
        {"participants": [{"agentId": A}, {"agentId": B}], "maxParticipants": "2"},
        {"conversationId": ""}, {"conversationId": 1},
    ],
)  # fmt: skip
def test_a_roster_that_is_none_opens_nothing(api: Api, wrong: dict[str, Any]) -> None:
    members = [{"agentId": A}, {"agentId": B}]
    answer = api.post(OPEN, {"conversationId": "never", "participants": members, **wrong})
    assert answer.status_code in (400, 422) and answer.json()["error"] == VALIDATION
    refused(exchange(api, "never", turn(speakerId=A)), 404, "not_found")


def test_a_seam_may_narrow_a_roster(api: Api) -> None:
    opened(api, A, B, maxParticipants=2)
    details = refused(
        api.post(OPEN, {"conversationId": "x", "maxParticipants": 2,
                        "participants": [{"agentId": n} for n in (A, B, C)]}), 422, VALIDATION
    )  # fmt: skip
    assert (details["code"], details["maxParticipants"]) == ("conversation_roster_exceeded", 2)


@pytest.mark.parametrize("wrong", [None, "x", {}, {"role": "agent"}, {"content": 1, "role": "x"}])
def test_a_turn_that_is_none_is_not_consumed(api: Api, wrong: Any) -> None:
    name = opened(api)
    answer = exchange(api, name, wrong)
    assert answer.status_code in (400, 422) and answer.json()["error"] == VALIDATION
    assert exchange(api, name, turn(speakerId=A)).status_code == 200


def test_a_council_is_its_tenants_own(api: Api, foreign: Api) -> None:
    name = opened(api)
    refused(exchange(foreign, name, turn(speakerId=A)), 404, "not_found")
    refused(exchange(api, "unknown", turn(speakerId=A)), 404, "not_found")


# -- a gate with an owner ------------------------------------------------------------------------


def test_who_is_not_asked_releases_nothing(api: Api) -> None:
    asked = {"scenario": "unauthorized-grant", "principal": "somebody-else"}
    body = api.post(GATE, asked).json()
    assert body["released"] is False and "event" not in body
    assert api.read(body["runId"])["status"] == "waiting-approval"
    assert not of(api, body["runId"], "moot.approval.granted", "approval.received")


def test_one_of_several_owners_is_not_enough(api: Api) -> None:
    body = api.post(GATE, {"scenario": "unauthorized-grant", "principal": OWNER}).json()
    assert body["released"] is False


def test_an_override_is_told_with_its_reason(api: Api) -> None:
    asked = {"scenario": "override", "principal": OWNER, "reason": "the house is on fire"}
    body = api.post(GATE, asked).json()
    assert body["event"]["type"] == "approval.overridden"
    assert body["event"]["payload"]["reason"] == "the house is on fire"
    assert body["released"] is True
    assert of(api, body["runId"], "approval.overridden") == [body["event"]["payload"]]
    assert api.until(body["runId"])["status"] == "completed"


def test_nobody_else_overrides(api: Api) -> None:
    asked = {"scenario": "override", "principal": "somebody-else", "reason": "because"}
    body = api.post(GATE, asked).json()
    assert body["released"] is False and "event" not in body


@pytest.mark.parametrize("wrong", [{}, {"scenario": "override"}, {"principal": OWNER},
                                   {"scenario": 1, "principal": OWNER}, {"scenario": "override",
                                   "principal": ""}, {"scenario": "x", "principal": OWNER,
                                   "reason": 1}])  # fmt: skip
def test_a_malformed_scenario_is_refused(api: Api, wrong: Any) -> None:
    refused(api.post(GATE, wrong), 400, VALIDATION)


def test_without_trial_there_are_no_seams(host: Callable[..., Any]) -> None:
    plain = host()
    members = [{"agentId": A}, {"agentId": B}]
    for path, body in (
        (OPEN, {"conversationId": "x", "participants": members}),
        (EXCHANGE, {"conversationId": "x", "turn": turn(speakerId=A)}),
        (GATE, {"scenario": "override", "principal": OWNER, "reason": "x"}),
    ):
        assert plain.post(path, body).status_code == 404
    assert plain.get("/v1/host/moot/runs").json()["runs"] == []


def test_a_seam_needs_a_key(api: Api) -> None:
    for path in (OPEN, EXCHANGE, GATE):
        refused(api.with_key(None).post(path, {}), 401, "unauthenticated")
