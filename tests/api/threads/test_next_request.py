"""What is asked of a participant outside: each thing once, none lost, whenever it looks."""

import threading

import pytest

from tests.support.api.caller import Api
from tests.support.api.councils import THREADS, joined, key_as
from tests.support.api.threads import conflict, new, post, posted

REX = "host:rex"


def asked(api: Api, thread: str, **query: object) -> dict[str, object] | None:
    answer = api.get(f"{THREADS}/{thread}/next", params={"wait": 0, **query})
    assert answer.status_code in (200, 204), answer.text
    return answer.json() if answer.status_code == 200 else None


@pytest.fixture
def thread(api: Api) -> str:
    name = new(api, "Ours")
    posted(api, name, {"invite": "rex"}, type="control")
    return name


def test_a_turn_for_somebody_is_given_to_him_once_with_what_it_is_about(
    api: Api, thread: str
) -> None:
    rex = joined(api, thread, REX)
    assert asked(rex, thread) is None
    first = posted(api, thread, "How much?", to="rex")
    second = posted(api, thread, "And why?", to="rex")
    due = asked(rex, thread, wait=20)
    assert due is not None and due["as"] == REX and due["reason"] == "addressed by user"
    assert due["event"] == first
    late = asked(rex, thread, after=due["seq"], wait=20)
    assert late is not None and late["event"] == second
    assert asked(rex, thread, after=late["seq"]) is None


def test_who_comes_back_without_a_cursor_gets_what_is_not_answered(api: Api, thread: str) -> None:
    rex = joined(api, thread, REX)
    first, second = (posted(api, thread, text, to="rex") for text in ("One?", "Two?"))
    assert asked(rex, thread, wait=20) == asked(rex, thread)
    posted(rex, thread, "Two.", meta={"reply_to": second["id"]})
    due = asked(rex, thread)
    assert due is not None and due["event"] == first
    posted(rex, thread, "That is all.")
    assert asked(rex, thread) is None


def test_whoever_waits_is_answered_when_it_comes(api: Api, thread: str) -> None:
    rex = joined(api, thread, REX)
    found: list[object] = []
    waiting = threading.Thread(target=lambda: found.append(asked(rex, thread, wait=30)))
    waiting.start()
    posted(api, thread, "for nobody in particular", to="user:ann")
    task = posted(api, thread, "Count them.", type="task", to="rex")
    waiting.join(40)
    [due] = found
    assert isinstance(due, dict) and due["task"] is True and due["event"] == task
    posted(rex, thread, "Four.", type="result", meta={"reply_to": task["id"]})
    assert asked(rex, thread) is None


def test_while_it_may_not_speak_nobody_is_asked(api: Api, thread: str) -> None:
    rex = joined(api, thread, REX)
    posted(api, thread, "How much?", to="rex")
    assert asked(rex, thread, wait=20) is not None
    posted(api, thread, {"pause": {"on": True}}, type="control")
    assert asked(rex, thread) is None
    conflict(post(rex, thread, "Four."), "thread_paused")
    posted(api, thread, {"pause": {"on": False}}, type="control")
    assert asked(rex, thread) is not None


@pytest.mark.parametrize("until", ["unmute", "its end"])
def test_who_was_asked_while_muted_is_asked_when_that_is_over(
    api: Api, thread: str, until: str
) -> None:
    rex = joined(api, thread, REX)
    wait = {} if until == "unmute" else {"seconds": 0.3}
    posted(api, thread, {"mute": {"targets": ["rex"], **wait}}, type="control")
    task = posted(api, thread, "Count them.", type="task", to="rex")
    if until == "unmute":
        assert asked(rex, thread) is None
        posted(api, thread, {"unmute": ["rex"]}, type="control")
    due = asked(rex, thread, wait=20)
    assert due is not None and due["event"] == task and due["task"] is True


def test_a_person_is_asked_by_name(api: Api, thread: str) -> None:
    ann = joined(api, thread, "user:ann")
    posted(api, thread, "for all")
    assert asked(ann, thread) is None
    sent = posted(api, thread, "What do you say, @ann?")
    due = asked(ann, thread)
    assert due is not None and due["event"] == sent


def test_only_who_takes_part_is_asked_and_only_under_his_own_name(api: Api, thread: str) -> None:
    rex, eve = joined(api, thread, REX), key_as(api, "host:eve")
    path = f"{THREADS}/{thread}/next"
    assert eve.get(path).status_code == 422
    assert rex.get(path, params={"as": "eve"}).status_code == 403
    assert rex.get(path, params={"wait": 61}).status_code == 400
    assert rex.get(f"{THREADS}/{new(api)}/next").status_code == 404
    assert api.get(f"{THREADS}/th_none/next").status_code == 404
    assert asked(api, thread, **{"as": "rex"}) is None
    api.post(f"{THREADS}/{thread}:close", {})
    assert rex.get(path).json()["error"] == "conversation_closed"


def test_polling_is_a_sign_of_life(api: Api, thread: str) -> None:
    asked(joined(api, thread, REX), thread)
    there = api.get(f"/threads/{thread}/presence").json()["presence"]
    assert there["rex"]["state"] == "listening"


def test_whom_a_led_council_waits_for_is_asked_and_goes_on_with_the_answer(api: Api) -> None:
    rex, roy = key_as(api, REX), key_as(api, "host:roy")
    body = {"question": "Do we?", "participants": ["rex", "roy"], "policy": {"rounds": 1}}
    council = api.post("/v1/host/moot/councils", body).json()["threadId"]
    due = asked(rex, council, wait=20)
    assert due is not None and asked(roy, council) is None
    posted(rex, council, "No.")
    assert asked(rex, council) is None
    due = asked(roy, council, wait=20)
    assert due is not None and isinstance(due["event"], dict)
    assert due["event"]["content"] in ("No.", "Do we?")


def test_where_nobody_leads_a_question_to_all_is_for_every_agent(api: Api) -> None:
    body = {"question": "Do we?", "participants": ["rex", "roy"]}
    council = api.post("/v1/host/moot/councils", body).json()["threadId"]
    for name in ("rex", "roy"):
        due = asked(joined(api, council, f"host:{name}"), council)
        assert due is not None and due["reason"] == "a person spoke to all"
        assert isinstance(due["event"], dict) and due["event"]["content"] == "Do we?"


def test_agents_that_pass_on_in_a_ring_without_a_cursor_come_to_an_end(api: Api) -> None:
    ring = ["x", "y", "z"]
    thread = new(api, "Ring")
    for name in ring:
        posted(api, thread, {"invite": name}, type="control")
    keys = [joined(api, thread, f"host:{name}") for name in ring]
    posted(api, thread, "start", to="x")
    silent = 0
    for place in range(60):
        mine = keys[place % 3]
        silent = silent + 1 if asked(mine, thread) is None else 0
        if silent == 3:
            break
        if not silent:
            posted(mine, thread, "on", to=ring[(place + 1) % 3])
    else:
        raise AssertionError("they go on for ever")
