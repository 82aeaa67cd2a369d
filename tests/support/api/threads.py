"""What the tests of the thread API share: threads, events, conflicts."""

import time
from collections.abc import Callable
from typing import Any

import httpx2 as httpx

from tests.support.api.caller import Api

PATIENCE = 60.0


def new(api: Api, name: str = "Ours", **body: Any) -> str:
    answer = api.post("/threads", {"name": name, **body})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])


def post(api: Api, thread: str, content: Any = "hello", /, **body: Any) -> httpx.Response:
    return api.post(f"/threads/{thread}/events", {"content": content, **body})


def posted(api: Api, thread: str, content: Any = "hello", /, **body: Any) -> dict[str, Any]:
    answer = post(api, thread, content, **body)
    assert answer.status_code == 200 and answer.json()["received"] is True, answer.text
    return dict(answer.json()["event"])


def events(api: Api, thread: str, **query: Any) -> list[dict[str, Any]]:
    answer = api.get(f"/threads/{thread}/events", params=query)
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert found["count"] == len(found["events"])
    return list(found["events"])


def conflict(answer: httpx.Response, code: str) -> dict[str, Any]:
    assert answer.status_code == 409, answer.text
    about = dict(answer.json()["error"])
    assert about["code"] == code
    return about


def until(look: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if found := look():
            return found
        time.sleep(0.01)
    raise AssertionError("it never came")
