"""A program as it was written for Agent Bridge: no key, the standard library, naive about errors.

It knows what is documented of that server and nothing of this one.
"""

import json
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

Event = dict[str, Any]


class Refused(Exception):
    def __init__(self, status: int, body: Any) -> None:
        super().__init__(f"{status}: {body}")
        self.status, self.body = status, body


class BridgeClient:
    def __init__(self, url: str) -> None:
        self.url = url

    def _json(self, method: str, path: str, payload: Any = None) -> Any:
        data = None if payload is None else json.dumps(payload).encode()
        headers = {"Accept": "application/json"}
        if data is not None:
            headers["Content-Type"] = "application/json"
        call = urllib.request.Request(self.url + path, data=data, headers=headers, method=method)
        try:
            with urllib.request.urlopen(call, timeout=30) as answer:
                return json.loads(answer.read())
        except urllib.error.HTTPError as refusal:
            with refusal:
                raise Refused(refusal.code, json.loads(refusal.read())) from None

    def ping(self) -> Any:
        return self._json("GET", "/ping")

    def threads(self) -> list[Any]:
        return list(self._json("GET", "/threads")["threads"])

    def create(self, name: str, sender: str = "user") -> str:
        made = self._json("POST", "/threads", {"name": name, "from": sender})
        assert made["name"] == name
        return str(made["id"])

    def events(self, thread: str, since: str | None = None) -> list[Event]:
        query = "" if since is None else "?since=" + urllib.parse.quote(since)
        answer = self._json("GET", f"/threads/{thread}/events{query}")
        assert answer["count"] == len(answer["events"])
        return list(answer["events"])

    def post(self, thread: str, sender: str, content: Any, **more: Any) -> Event:
        event = {"type": "message", "from": sender, "to": "all", "content": content, **more}
        answer = self._json("POST", f"/threads/{thread}/events", event)
        assert answer["received"] is True
        return dict(answer["event"])

    def control(self, thread: str, content: Any, sender: str = "user") -> Event:
        return self.post(thread, sender, content, type="control")

    def state(self, thread: str) -> Any:
        answer = self._json("GET", f"/threads/{thread}/state")
        assert answer["thread"] == thread
        return answer["state"]

    def presence(self, thread: str) -> Any:
        return self._json("GET", f"/threads/{thread}/presence")

    def beat(self, thread: str, sender: str, state: str, details: Any = None) -> Any:
        body = {"from": sender, "state": state}
        if details is not None:
            body["details"] = details
        answer = self._json("POST", f"/threads/{thread}/presence", body)
        assert answer["received"] is True
        return answer["presence"]

    def stream(self, thread: str, since: str | None = None) -> Iterator[Event]:
        """Lines that begin with ``data:``; comments are skipped, and nothing else may come."""
        query = "" if since is None else "?since=" + urllib.parse.quote(since)
        call = urllib.request.Request(
            f"{self.url}/threads/{thread}/events/stream{query}",
            headers={"Accept": "text/event-stream"},
        )
        with urllib.request.urlopen(call, timeout=60) as answer:
            for raw in answer:
                line = raw.decode().strip()
                if not line or line.startswith(":"):
                    continue
                assert line.startswith("data:"), line
                yield json.loads(line[5:].strip())


class Participant(threading.Thread):
    """Listens from the end of a thread on, and answers whatever its rule says."""

    def __init__(self, client: BridgeClient, thread: str, name: str, rule: Callable[[Event], Any]):
        super().__init__(daemon=True)
        self._client, self._thread_id, self._name, self._rule = client, thread, name, rule
        self.listening, self.seen = threading.Event(), list[Event]()

    def run(self) -> None:
        for event in self._open():
            self.seen.append(event)
            answer = self._rule(event)
            if answer is not None and event["from"] != self._name:
                self._client.beat(self._thread_id, self._name, "thinking")
                meta = {"reply_to": event["id"], "tags": ["bot"]}
                self._client.post(self._thread_id, self._name, answer, meta=meta)
                self._client.beat(self._thread_id, self._name, "listening")

    def _open(self) -> Iterator[Event]:
        call = urllib.request.Request(
            f"{self._client.url}/threads/{self._thread_id}/events/stream",
            headers={"Accept": "text/event-stream"},
        )
        with urllib.request.urlopen(call, timeout=60) as answer:
            for raw in answer:
                self.listening.set()
                line = raw.decode().strip()
                if line.startswith("data:"):
                    yield json.loads(line[5:].strip())
