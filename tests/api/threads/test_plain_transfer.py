"""A thread that nobody leads comes back on another host with everything that belongs to it."""

from typing import Any

import pytest

from tests.support.api.bundles import bundle_of, take_in
from tests.support.api.caller import Api
from tests.support.api.councils import (
    ADA,
    BO,
    CY,
    close,
    convened,
    export,
    joined,
    person,
    read,
    steer,
    tell,
)
from tests.support.api.questions import answered

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
