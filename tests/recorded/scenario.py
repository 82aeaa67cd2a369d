"""One scenario over most routes, and what the host answered, with ids and times made comparable.

``python tests/recorded/scenario.py`` plays it on the ``moot`` that is imported and writes the
answers beside this file. The answers that are committed were recorded on the tree before the
types of the wire were written.
"""

import asyncio
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from moot.testing import Bench

ANSWERS = Path(__file__).with_name("answers.jsonl")
#: headers of an answer that a client may rely on
KEPT = ("content-type", "location", "etag", "retry-after", "openwop-version", "www-authenticate")
IDS = re.compile(
    r"\b(run|th|key|art|mem|sch|sub|wh|dlv|item|ros|int|fire|del|cu|sp|seat|mbr|host|que|st|tok|ev|inv|snd|ask|lnk|log|rec|who|tr|n)_[a-z2-7]{20}\b"
)
TIMES = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)")
LONG = re.compile(r"\b(?:[0-9a-f]{32,64}|moot_[0-9a-f]{20,}|[A-Za-z0-9_-]{43,})\b")

BRIEF = {
    "id": "brief",
    "name": "Brief",
    "version": "1",
    "nodes": [
        {
            "id": "start",
            "name": "Start",
            "typeId": "core.start",
            "position": {"x": 0, "y": 0},
            "config": {},
        },
        {
            "id": "ok",
            "name": "Approve",
            "typeId": "core.approvalGate",
            "position": {"x": 1, "y": 0},
            "config": {"prompt": "Send it?"},
        },
    ],
    "edges": [{"id": "e", "sourceNodeId": "start", "targetNodeId": "ok"}],
}
HELLO = """
workflow: hello
name: Hello
inputs:
  name: {type: str, default: world}
steps:
  - set: {greeting: "Hello, {name}!"}
outputs:
  greeting: "{greeting}"
"""
GATE = """
workflow: gate
name: Gate
inputs:
  topic: {type: str, default: launch}
steps:
  - approve: "Shall we go on with {topic}?"
  - set: {done: "yes"}
outputs:
  done: "{done}"
"""
ASKS = """
workflow: asks
name: Asks
steps:
  - ask: "Which colour?"
"""


class Player:
    """Sends requests to the application in this process and records every answer."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.answers: list[dict[str, Any]] = []
        self._names: dict[str, str] = {}

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        hosting = self.bench.hosting
        headers.setdefault("authorization", f"Bearer {hosting.key}")
        status, sent, raw = hosting.loop.call(_exchange(hosting.app, method, path, body, headers))
        try:
            value = json.loads(raw) if raw else None
        except ValueError:
            value = raw.decode("utf-8", "replace")
        kept = {name: text for name, text in sent.items() if name in KEPT}
        self.answers.append({
            "request": f"{method} {self._plain(path)}",
            "status": status,
            "headers": self._comparable(kept),
            "body": _in_order(path, self._comparable(value)),
        })  # fmt: skip
        return value

    def _plain(self, text: str) -> str:
        text = TIMES.sub("<time>", IDS.sub(lambda match: self._name(match[0]), text))
        return LONG.sub(lambda match: self._name(match[0], "long"), text)

    def _name(self, found: str, kind: str = "") -> str:
        kind = kind or found.partition("_")[0]
        number = sum(name.startswith(f"<{kind} ") for name in self._names.values()) + 1
        return self._names.setdefault(found, f"<{kind} {number}>")

    def _comparable(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._plain(value)
        if isinstance(value, list):
            return [self._comparable(each) for each in value]
        if isinstance(value, dict):
            return {self._plain(key): self._comparable(each) for key, each in value.items()}
        return value


def _in_order(path: str, value: Any) -> Any:
    """Events are stored bytes: the order of their keys counts, too."""
    if "/events/poll" in path and isinstance(value, dict) and "events" in value:
        events = [json.dumps(event, ensure_ascii=False) for event in value["events"]]
        return {**value, "events": events}
    return value


async def _exchange(
    app: Any, method: str, path: str, body: Any, headers: dict[str, str]
) -> tuple[int, dict[str, str], bytes]:
    raw = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    status, sent, pieces, read = 0, {}, [], False

    async def receive() -> dict[str, Any]:
        nonlocal read
        if read:
            await asyncio.Event().wait()
        read = True
        return {"type": "http.request", "body": raw}

    async def send(message: dict[str, Any]) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
            sent.update({name.decode(): value.decode() for name, value in message["headers"]})
        pieces.append(message.get("body", b""))

    plain, _, query = path.partition("?")
    pairs = [(name.replace("_", "-").encode(), text.encode()) for name, text in headers.items()]
    scope = {
        "type": "http", "method": method, "path": plain, "query_string": query.encode(),
        "client": ("127.0.0.1", 1), "headers": [*pairs, (b"host", b"127.0.0.1")],
    }  # fmt: skip
    async with asyncio.timeout(20):
        await app(scope, receive, send)
    return status, sent, b"".join(pieces)


def play() -> list[dict[str, Any]]:
    """Play the whole scenario; return the answers in order."""
    with Bench(seed="recorded") as bench:
        for flow in (HELLO, GATE, ASKS):
            bench.flow(flow)
        bench.agent("ada", "You are Ada, an engineer.", role="engineer")
        bench.agent("bob", "You are Bob, a critic.", role="critic")
        call = Player(bench)
        for part in (runs, questions, councils, threads, standing, inbound, hosts, refusals):
            part(call, bench)
        logs(call)
    return call.answers


def runs(call: Player, bench: Bench) -> None:
    call("POST", "/v1/host/moot/workflows", BRIEF)
    call("POST", "/v1/host/moot/workflows:check", BRIEF)
    call("GET", "/v1/host/moot/workflows")
    call("GET", "/v1/workflows/hello")
    started = call("POST", "/v1/runs", {"workflowId": "hello", "inputs": {"name": "Ada"}})
    run = started["runId"]
    bench.settle(run)
    call("GET", f"/v1/runs/{run}")
    call("GET", f"/v1/runs/{run}/events/poll?after=-1")
    call("GET", f"/v1/runs/{run}/ancestry")
    call("GET", f"/v1/runs/{run}/debug-bundle")
    call("POST", f"/v1/runs/{run}/cancel", {"reason": "late"})
    call("POST", f"/v1/host/moot/runs/{run}:verify", {})
    fork = call("POST", f"/v1/runs/{run}:fork", {"mode": "replay", "fromSeq": 0})
    bench.settle(fork["runId"])
    call("GET", f"/v1/runs/{run}:diff?against={fork['runId']}")
    edited = call(
        "POST", f"/v1/host/moot/runs/{run}:fork",
        {"fromSeq": 1, "edit": {"inputs": {"name": "Bob"}}},
    )  # fmt: skip
    if "runId" in edited:
        bench.settle(edited["runId"])
        call("GET", f"/v1/runs/{edited['runId']}")
    key = {"idempotency_key": "once"}
    once = call("POST", "/v1/runs", {"workflowId": "hello"}, **key)
    bench.settle(once["runId"])
    call("POST", "/v1/runs", {"workflowId": "hello"}, **key)
    call("POST", "/v1/runs", {"workflowId": "hello", "inputs": {"name": "x"}}, **key)
    held = call("POST", "/v1/runs", {"workflowId": "gate", "tags": ["a"], "metadata": {"k": 1}})
    bench.settle(held["runId"])
    call("POST", f"/v1/runs/{held['runId']}:pause", {"reason": "lunch"})
    call("GET", f"/v1/runs/{held['runId']}")
    call("POST", f"/v1/runs/{held['runId']}:resume", {})
    call("POST", "/v1/runs:bulk-cancel", {"runIds": [held["runId"]], "reason": "done"})
    call("GET", "/v1/host/moot/runs?limit=3")
    call("GET", "/v1/host/moot/runs?status=completed&workflow=hello")


def questions(call: Player, bench: Bench) -> None:
    gate = call("POST", "/v1/runs", {"workflowId": "gate", "inputs": {"topic": "tea"}})["runId"]
    bench.settle(gate)
    call("GET", f"/v1/runs/{gate}")
    inbox = call("GET", "/v1/host/moot/inbox")
    asked = call("GET", f"/v1/host/moot/runs/{gate}/interrupts")
    node = inbox["items"][0]["nodeId"]
    call("POST", f"/v1/runs/{gate}/interrupts/{node}", {"resumeValue": {"action": "perhaps"}})
    call("POST", f"/v1/runs/{gate}/interrupts/{node}", {"resumeValue": {"action": "accept"}})
    bench.settle(gate)
    call("POST", f"/v1/runs/{gate}/interrupts/{node}", {"resumeValue": {"action": "accept"}})
    call("GET", f"/v1/runs/{gate}")
    assert asked
    ask = call("POST", "/v1/runs", {"workflowId": "asks"})["runId"]
    bench.settle(ask)
    inbox = call("GET", "/v1/host/moot/inbox")
    node = inbox["items"][0]["nodeId"]
    call(
        "POST", f"/v1/runs/{ask}/interrupts/{node}", {"resumeValue": {"answers": {"answer": "red"}}}
    )
    bench.settle(ask)
    call("GET", f"/v1/runs/{ask}")
    call("GET", "/v1/host/moot/inbox")


def councils(call: Player, bench: Bench) -> None:
    body = {
        "question": "Which database?", "participants": ["ada", "bob"],
        "policy": {"mode": "round-robin", "rounds": 1},
    }  # fmt: skip
    council = call("POST", "/v1/host/moot/councils", body)["threadId"]
    bench.settle(council)
    call("GET", f"/v1/host/moot/threads/{council}")
    call("GET", f"/threads/{council}/state")
    call("GET", f"/threads/{council}/events")
    call("GET", f"/v1/host/moot/threads/{council}/export")
    call("GET", f"/v1/host/moot/threads/{council}/export?format=json")
    call("POST", f"/v1/host/moot/threads/{council}/controls", {"content": {"mute": ["ada"]}})
    call("POST", f"/v1/host/moot/threads/{council}/controls", {"content": {"unmute": ["ada"]}})
    call("POST", f"/v1/host/moot/threads/{council}/controls", {"content": {"mute": ["zoe"]}})
    call("POST", f"/v1/host/moot/threads/{council}/controls", {"content": {"dance": True}})
    bench.settle(council)
    call(
        "POST", f"/v1/host/moot/threads/{council}:close",
        {"decision": {"text": "SQLite", "votes": [{"by": "ada", "vote": "yes"}]}},
    )  # fmt: skip
    call("GET", f"/v1/host/moot/threads/{council}")
    again = call("POST", f"/v1/host/moot/threads/{council}:reopen", {})
    bench.settle(again["threadId"])


def threads(call: Player, bench: Bench) -> None:
    made = call(
        "POST",
        "/v1/host/moot/threads",
        {"title": "Tea", "participants": ["ada"], "opening": "What about tea?"},
    )
    thread = made["threadId"]
    bench.settle(thread)
    call("POST", f"/threads/{thread}/events", {"from": "user", "to": "all", "content": "Hello"})
    bench.settle(thread)
    call("POST", f"/threads/{thread}/events", {"from": "zoe", "content": "I am new"})
    call("GET", "/threads")
    call("GET", "/v1/host/moot/threads?limit=5")
    call("GET", f"/v1/host/moot/threads/{thread}/events")
    call("POST", f"/v1/host/moot/threads/{thread}:rename", {"title": "Green tea"})
    call("POST", f"/v1/host/moot/threads/{thread}/links", {"title": "Aside"})
    bench.settle(thread)
    call("POST", f"/v1/host/moot/threads/{thread}:archive")
    call("POST", f"/v1/host/moot/threads/{thread}:unarchive")
    call("POST", f"/v1/host/moot/threads/{thread}/join", {"as": "codex"})
    call("POST", f"/v1/host/moot/threads/{thread}/seats", {"as": "codex", "seat": "seat-one"})
    call("POST", f"/threads/{thread}/presence", {"from": "user", "state": "typing"})
    call("GET", f"/threads/{thread}/presence")
    call("GET", f"/v1/host/moot/threads/{thread}/next?as=ada&wait=0")
    call("POST", f"/v1/host/moot/threads/{thread}/read", {"turn": 1})
    call("GET", f"/v1/host/moot/threads/{thread}/read")
    call("GET", f"/v1/host/moot/threads/{thread}/catch-ups")
    call("GET", "/v1/host/moot/search?q=tea")
    call("GET", "/v1/host/moot/search?q=")


def standing(call: Player, bench: Bench) -> None:
    hire = {"persona": "Ada", "agentRef": {"agentId": "host:ada"}, "workflows": ["hello"]}
    hired = call("POST", "/v1/host/moot/roster", hire)
    call("POST", "/v1/host/moot/roster", {**hire, "agentRef": {"agentId": "host:zoe"}})
    call("GET", "/v1/host/moot/roster")
    call("GET", "/v1/agents/roster")
    if "rosterId" in hired:
        member = hired["rosterId"]
        call("GET", f"/v1/host/moot/roster/{member}")
        call("GET", f"/v1/host/moot/roster/{member}/work")
        call("POST", f"/v1/host/moot/roster/{member}/pause", {"reason": "holiday"})
        call("POST", f"/v1/host/moot/roster/{member}/resume")
        call("GET", f"/v1/host/moot/roster/{member}/history")
    plan = {"workflowId": "hello", "kind": "words", "words": "daily at 09:00", "timezone": "UTC"}
    call("POST", "/v1/host/moot/schedules:check", plan)
    made = call("POST", "/v1/host/moot/schedules", plan)
    call("POST", "/v1/host/moot/schedules", {**plan, "words": "now and then"})
    call("GET", "/v1/host/moot/schedules")
    if "scheduleId" in made:
        schedule = f"/v1/host/moot/schedules/{made['scheduleId']}"
        call("GET", schedule)
        call("PATCH", schedule, {"words": "daily at 10:00"})
        call("POST", f"{schedule}/pause", {"reason": "later"})
        call("POST", f"{schedule}/resume")
        call("POST", f"{schedule}/skip", {})
        fired = call("POST", f"{schedule}/run", {})
        if "runId" in fired:
            bench.settle(fired["runId"])
        bench.advance(days=2)
        call("GET", f"{schedule}/fires")
        call("GET", f"{schedule}/history")
        call("DELETE", schedule)
    call("GET", "/v1/agents")
    call("GET", "/v1/host/moot/agents")
    call("GET", "/v1/host/moot/agents/ada")
    call("GET", "/v1/host/moot/tools")
    call("GET", "/v1/host/moot/memory?scope=tenant")


def inbound(call: Player, bench: Bench) -> None:
    call("PUT", "/v1/host/moot/queues/leads", {"workflowId": "hello"})
    call("GET", "/v1/host/moot/queues")
    call("GET", "/v1/host/moot/queues/leads")
    item = {"subject": "A lead", "body": {"name": "Ada"}}
    key = {"idempotency_key": "lead-1"}
    sent = call("POST", "/v1/host/moot/queues/leads/items", item, **key)
    call("POST", "/v1/host/moot/queues/leads/items", item, **key)
    bench.advance(seconds=2)
    call("GET", "/v1/host/moot/queues/leads/items")
    if "itemId" in sent:
        call("GET", f"/v1/host/moot/queues/leads/items/{sent['itemId']}")
    call("GET", "/v1/host/moot/deliveries")
    call("GET", "/v1/trigger-subscriptions")
    made = call(
        "POST", "/v1/trigger-subscriptions",
        {"source": "webhook", "workflowId": "hello"},
    )  # fmt: skip
    if "subscriptionId" in made:
        call("GET", f"/v1/trigger-subscriptions/{made['subscriptionId']}")
        call("POST", f"/v1/host/moot/ingest/{made['subscriptionId']}", {"a": 1})
    hook = call(
        "POST", "/v1/webhooks",
        {"url": "https://example.com/hook", "events": ["run.completed"]},
    )  # fmt: skip
    call("GET", "/v1/host/moot/webhooks")
    if "webhookId" in hook:
        call("GET", f"/v1/host/moot/webhooks/{hook['webhookId']}")
        call("POST", f"/v1/host/moot/webhooks/{hook['webhookId']}/pause")
        call("DELETE", f"/v1/webhooks/{hook['webhookId']}")
    call("DELETE", "/v1/host/moot/queues/leads")


def hosts(call: Player, bench: Bench) -> None:
    call("GET", "/.well-known/openwop")
    call("GET", "/healthz")
    call("GET", "/readyz")
    call("GET", "/ping")
    call("GET", "/")
    made = call("POST", "/v1/host/moot/keys", {"name": "eve", "scopes": ["runs:read"]})
    call("GET", "/v1/host/moot/keys")
    if "key" in made:
        mine = {"authorization": f"Bearer {made['key']}"}
        call("GET", "/v1/host/moot/runs?limit=1", **mine)
        call("POST", "/v1/runs", {"workflowId": "hello"}, **mine)
        call("DELETE", f"/v1/host/moot/keys/{made['id']}")
        call("GET", "/v1/host/moot/runs?limit=1", **mine)


def refusals(call: Player, bench: Bench) -> None:
    call("GET", "/v1/runs/run_aaaaaaaaaaaaaaaaaaaa")
    call("POST", "/v1/runs", {"workflowId": "none"})
    call("POST", "/v1/runs", {"workflow": "hello"})
    call("POST", "/v1/runs", b"{")
    call("POST", "/v1/runs", {"workflowId": "hello", "inputs": {"nme": "x"}})
    call("GET", "/v1/host/moot/runs?limit=many")
    call("GET", "/v1/nothing")
    call("PUT", "/v1/runs", {})
    call("GET", "/v1/host/moot/runs", authorization="Bearer nobody")
    call("GET", "/v1/host/moot/threads/th_aaaaaaaaaaaaaaaaaaaa")
    call("DELETE", "/v1/host/moot/keys/key_aaaaaaaaaaaaaaaaaaaa")


def logs(call: Player) -> None:
    """Read every log: the bodies of events must stay equal."""
    listed = call("GET", "/v1/host/moot/runs?limit=100")
    for row in listed.get("runs") or listed.get("items") or []:
        call("GET", f"/v1/runs/{row['runId']}/events/poll?after=-1&limit=1000")


def lines(answers: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(each, sort_keys=True, ensure_ascii=False) + "\n" for each in answers)


def main(write: Callable[[str], object]) -> None:
    write(lines(play()))


if __name__ == "__main__":
    main(sys.stdout.write if "-" in sys.argv else ANSWERS.write_text)
