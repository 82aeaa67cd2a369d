"""What the tests of councils and threads share: convening, steering, joining, minutes."""

import itertools
from typing import Any

import httpx2 as httpx

from tests.support.api.caller import Api
from tests.support.api.questions import resolve

THREADS = "/v1/host/moot/threads"
ADA, BO, CY = "host:ada", "host:bo", "host:cy"
_names = itertools.count()


def convened(api: Api, *names: str, **body: Any) -> str:
    """The thread of a new council."""
    members = names if names or body.get("open") else (ADA, BO)
    given = {"question": "June?", "participants": list(members), **body}
    answer = api.post("/v1/host/moot/councils", given)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["threadId"])


def run_of(thread: str) -> str:
    return thread.partition("~")[0]


def node_of(thread: str) -> str:
    """The node of a conversation; a thread of its own has one for all."""
    return thread.split("~")[1] if "~" in thread else "talk"


def read(api: Api, thread: str) -> dict[str, Any]:
    answer = api.get(f"{THREADS}/{thread}")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def state(api: Api, thread: str) -> dict[str, Any]:
    return dict(read(api, thread)["state"])


def steer(api: Api, thread: str, content: Any, **more: Any) -> httpx.Response:
    return api.post(f"{THREADS}/{thread}/controls", {"content": content, **more})


def close(api: Api, thread: str, **body: Any) -> httpx.Response:
    return api.post(f"{THREADS}/{thread}:close", body)


def join(api: Api, thread: str, name: str, **more: Any) -> httpx.Response:
    return api.post(f"{THREADS}/{thread}/join", {"as": name, **more})


def joined(api: Api, thread: str, name: str, **more: Any) -> Api:
    """The participant's own key for this thread."""
    answer = join(api, thread, name, **more)
    assert answer.status_code == 201, answer.text
    return api.with_key(str(answer.json()["token"]))


def tell(api: Api, thread: str, name: str, content: Any = "hello", **turn: Any) -> httpx.Response:
    """A turn of an agent."""
    said = {"role": "agent", "speakerId": name, "content": content, **turn}
    return resolve(api, run_of(thread), said, node_of(thread))


def person(api: Api, thread: str, content: Any = "hello", **turn: Any) -> httpx.Response:
    return resolve(api, run_of(thread), {"content": content, **turn}, node_of(thread))


def key_as(api: Api, *names: str, **more: Any) -> Api:
    """An ordinary key that is bound to these names."""
    return api.with_key(api.new_key(f"speaker-{next(_names)}", **{"as": list(names)}, **more))


def export(api: Api, thread: str, format_: str = "md") -> httpx.Response:
    answer = api.get(f"{THREADS}/{thread}/export", params={"format": format_})
    assert answer.status_code == 200, answer.text
    return answer
