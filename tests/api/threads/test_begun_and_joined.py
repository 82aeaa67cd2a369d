"""Threads are begun and joined with what people would write first."""

import pytest

from tests.support.api.caller import Api
from tests.support.api.questions import refused
from tests.support.api.threads import events, new, post

THREADS = "/v1/host/moot/threads"


@pytest.mark.parametrize("path", ["/threads", THREADS])
def test_a_thread_begins_with_a_title_with_others_and_with_a_question(api: Api, path: str) -> None:
    body = {"title": "Q1 prices", "participants": ["rex", "cy"], "opening": "Do we raise them?"}
    made = api.post(path, {**body, "policy": {"mode": "small"}}).json()
    thread = made.get("id", made.get("threadId"))
    view = api.get(f"{THREADS}/{thread}").json()
    assert (view["title"], view["floor"]["mode"]) == ("Q1 prices", "small")
    assert view["floor"]["outside"] == ["host:rex", "host:cy"]
    said = [each["content"] for each in events(api, thread) if each["type"] == "message"]
    assert said == ["Do we raise them?"]


def test_a_name_and_a_title_are_one_thing(api: Api) -> None:
    refused(api.post("/threads", {"name": "a", "title": "b"}), 400, "validation_error")
    assert api.post("/threads", {}).json()["name"] == "Untitled"


def test_who_joins_is_named_once_and_described(api: Api) -> None:
    thread = new(api)
    body = {"name": "rex", "profile": {"client": "codex", "roles": ["implementer"]}}
    made = api.post(f"{THREADS}/{thread}/join", body)
    assert made.status_code == 201 and made.json()["as"] == "host:rex"
    state = api.get(f"/threads/{thread}/state").json()["state"]
    [rex] = state["participants"]["invited"]
    assert rex["profile"]["client"] == "codex"
    assert post(api, thread, "Well?", to="implementer").json()["event"]["to"] == "rex"
    for wrong in ({}, {"name": "rex", "as": "rex"}):
        refused(api.post(f"{THREADS}/{thread}/join", wrong), 400, "validation_error")


def test_a_minute_is_waited_at_most(api: Api) -> None:
    thread = new(api)
    post(api, thread, "Well?", to="user:eve")
    path = f"{THREADS}/{thread}/next"
    assert api.get(path, params={"wait": 60, "as": "user:eve"}).status_code == 200
    assert api.get(path, params={"wait": 61, "as": "user:eve"}).status_code == 400
