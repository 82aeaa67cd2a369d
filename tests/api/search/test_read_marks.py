"""How far everybody has read: marks that are each reader's own and are in no log."""

from typing import Any

import pytest

from moot.engine.threads import transcript
from tests.support.api.caller import Api
from tests.support.api.councils import (
    ADA,
    BO,
    THREADS,
    close,
    convened,
    joined,
    key_as,
    person,
    run_of,
    steer,
    tell,
)
from tests.support.api.questions import answered, refused, unchanged


def mark(api: Api, thread: str, **body: Any) -> dict[str, Any]:
    return answered(api.post(f"{THREADS}/{thread}/read", body))


def standing(api: Api, thread: str) -> dict[str, Any]:
    return answered(api.get(f"{THREADS}/{thread}/read"))


@pytest.fixture
def thread(api: Api) -> str:
    """One's own question, and three turns."""
    name = convened(api, ADA, BO)
    for number in range(3):
        answered(tell(api, name, ADA, f"turn {number + 1}"))
    return name


def places(api: Api, thread: str) -> list[int]:
    """Sequences of the turns."""
    return [event["sequence"] for event in api.events(run_of(thread))
            if event["type"].startswith("conversation.")]  # fmt: skip


def test_everything_is_unread_until_it_is_read(api: Api, thread: str) -> None:
    assert standing(api, thread) == {
        "threadId": thread, "reader": "user", "upTo": -1, "turnIndex": -1, "unread": 3
    }  # fmt: skip
    opened, first, _, last = places(api, thread)
    assert mark(api, thread, upTo=opened)["unread"] == 3
    assert mark(api, thread, upTo=first)["unread"] == 2
    assert mark(api, thread)["unread"] == 0
    assert standing(api, thread)["turnIndex"] == 3
    answered(tell(api, thread, BO, "one more"))
    assert standing(api, thread)["unread"] == 1
    assert mark(api, thread, upTo=last + 1)["unread"] == 0


def test_what_one_says_oneself_is_not_unread(api: Api, thread: str) -> None:
    mark(api, thread)
    answered(person(api, thread, "my own words"))
    assert standing(api, thread)["unread"] == 0
    answered(tell(api, thread, ADA, "an answer"))
    answered(person(api, thread, "more of mine"))
    assert standing(api, thread)["unread"] == 1


def test_what_is_no_turn_is_not_unread(api: Api, thread: str) -> None:
    mark(api, thread)
    answered(steer(api, thread, {"mute": [BO]}))
    assert standing(api, thread)["unread"] == 0


def test_a_mark_only_goes_on_and_not_beyond_the_end(api: Api, thread: str) -> None:
    last = api.read(run_of(thread))["metrics"]["eventCount"] - 1
    assert mark(api, thread, upTo=10**9)["upTo"] == last
    assert mark(api, thread, upTo=0)["upTo"] == last
    answered(tell(api, thread, ADA, "later"))
    assert standing(api, thread)["unread"] == 1


def test_everybody_has_a_mark_of_their_own_whatever_key_they_use(api: Api, thread: str) -> None:
    eve, eve_again = (key_as(api, "user:eve") for _ in range(2))
    fay, ada = key_as(api, "user:fay"), joined(api, thread, ADA)
    assert mark(eve, thread)["unread"] == 0
    assert standing(eve_again, thread)["unread"] == 0
    assert standing(fay, thread)["unread"] == 4
    assert (standing(ada, thread)["reader"], standing(ada, thread)["unread"]) == (ADA, 1)
    assert mark(ada, thread)["unread"] == 0


def test_a_mark_is_in_no_log(api: Api, thread: str) -> None:
    with unchanged(api, run_of(thread)):
        mark(api, thread)


def test_a_closed_thread_can_be_read_too(api: Api, thread: str) -> None:
    answered(close(api, thread))
    assert mark(api, thread)["unread"] == 0


def test_a_repeat_under_one_key_is_each_readers_own(api: Api, thread: str) -> None:
    eve, fay = key_as(api, "user:eve"), key_as(api, "user:fay")
    headers = {"Idempotency-Key": "read-once"}
    path = f"{THREADS}/{thread}/read"
    first = eve.post(path, {}, headers=headers)
    assert eve.post(path, {}, headers=headers).json() == first.json()
    assert fay.post(path, {}, headers=headers).status_code == 409


def test_what_is_not_there_cannot_be_read(api: Api, foreign: Api, thread: str) -> None:
    for caller, name in ((foreign, thread), (api, "th_nowhere"), (api, f"{thread}~talk~9")):
        refused(caller.post(f"{THREADS}/{name}/read", {}), 404, "not_found")
    for body in ({"upTo": -1}, {"upTo": "x"}, {"until": 3}):
        refused(api.post(f"{THREADS}/{thread}/read", body), 400, "validation_error")


def test_a_long_absence_is_counted_without_reading_all_of_it(api: Api) -> None:
    name = convened(api, ADA, BO)
    mark(api, name)
    for number in range(transcript.EVENTS_SEARCHED + 5):
        answered(tell(api, name, ADA, f"turn {number}"))
    assert standing(api, name)["unread"] == transcript.EVENTS_SEARCHED + 5
    middle = places(api, name)[100]
    assert mark(api, name, upTo=middle)["unread"] == transcript.EVENTS_SEARCHED + 5 - 100
