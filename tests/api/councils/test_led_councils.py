"""Councils that the host leads, over the wire: a vote before the close, who is invited, at rest."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.api.caller import Api
from tests.support.api.councils import close, convened, read, steer
from tests.support.api.questions import refused

PEOPLE = ("ada", "bo", "mo")


def hired(api: Api, *names: str) -> None:
    for name in names:
        answer = api.post("/v1/host/moot/agents", {"name": name, "role": "skeptic"})
        assert answer.status_code == 201, answer.text


def until(api: Api, thread: str, fits: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    deadline = time.monotonic() + 60
    while not fits(found := read(api, thread)):
        assert time.monotonic() < deadline, found
    return found


def at_rest(found: dict[str, Any]) -> bool:
    return bool(found["floor"]["atRest"])


def test_a_close_with_a_vote_asks_the_members_first(api: Api) -> None:
    hired(api, *PEOPLE)
    thread = convened(api, *PEOPLE, moderator="mo", policy={"rounds": 1})
    until(api, thread, at_rest)
    answer = close(api, thread, decision="We wait.", vote=True)
    assert answer.status_code == 200, answer.text
    found = until(api, thread, lambda found: not found["open"])
    assert (found["floor"]["proposal"], set(found["floor"]["votes"])) == (
        "We wait.", {"host:ada", "host:bo"},
    )  # fmt: skip
    outcome = api.get(f"/v1/runs/{thread}").json()["outputs"]["outcome"]
    assert outcome["text"] == "We wait."
    assert {vote["by"] for vote in outcome["votes"]} == {"host:ada", "host:bo"}
    assert close(api, thread, decision="Again.", vote=True).status_code == 409


@pytest.mark.parametrize("more", [{"moderator": "mo"}, {"policy": {"moderator": "host:mo"}}])
def test_who_moderates_takes_part_though_it_is_not_named_twice(
    api: Api, more: dict[str, Any]
) -> None:
    hired(api, *PEOPLE)
    thread = convened(api, *(name for name in PEOPLE if name != "mo"), **more)
    found = until(api, thread, at_rest)
    assert [each["agentId"] for each in found["participants"]][-1] == "host:mo"
    assert found["floor"]["proposal"]
    stranger = {"question": "Ship?", "participants": ["ada", "bo"], "moderator": "nobody"}
    refused(api.post("/v1/host/moot/councils", stranger), 422, "validation_error")


def test_a_vote_needs_something_to_vote_on_and_somebody_who_leads(api: Api) -> None:
    hired(api, *PEOPLE)
    led = convened(api, *PEOPLE, policy={"mode": "addressed"})
    assert at_rest(read(api, led))
    assert close(api, led, vote=True).status_code == 400
    assert close(api, led, vote=True, decision={"text": "No."}).status_code == 400
    assert steer(api, led, {"vote": {"decision": ""}}).status_code == 400
    alone = convened(api, *PEOPLE)
    assert close(api, alone, vote=True, decision="No.").status_code == 400
    assert "floor" not in read(api, alone)


def test_who_is_invited_is_introduced_by_what_the_host_knows(api: Api) -> None:
    hired(api, *PEOPLE, "dee")
    thread = convened(api, "ada", open=True, policy={"mode": "addressed"})
    assert steer(api, thread, {"invite": "dee"}).status_code == 200
    invited = {"participant_id": "bo", "profile": {"role": "counsel"}}
    assert steer(api, thread, {"invite": invited}).status_code == 200
    members = read(api, thread)["floor"]["members"]
    assert members["host:dee"] == {"name": "Dee", "role": "skeptic", "model": "demo"}
    assert members["host:bo"]["role"] == "counsel"
    api.post(f"/v1/runs/{thread}/interrupts/talk",
             {"resumeValue": {"content": "@counsel, and you?"}})  # fmt: skip
    found = until(api, thread, at_rest)
    assert found["turns"] == 2


def test_minutes_say_who_the_members_are_and_what_was_put_to_the_vote(api: Api) -> None:
    hired(api, *PEOPLE)
    thread = convened(api, *PEOPLE, policy={"mode": "addressed"})
    steer(api, thread, {"vote": {"decision": "We wait.", "close": True}})
    until(api, thread, lambda found: not found["open"])
    minutes = api.get(f"/v1/host/moot/threads/{thread}/export?format=json").json()
    assert minutes["participants"][0] == {
        "agentId": "host:ada", "name": "Ada", "role": "skeptic", "model": "demo",
    }  # fmt: skip
    assert any(
        line.get("note") == "user put to the vote: We wait." for line in minutes["transcript"]
    )
