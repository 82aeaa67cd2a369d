"""Another host as an engine may meet it: proper, slow, broken, gone, or talking nonsense."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from moot.core.workflows.definition import DISPATCH, SUPERVISOR
from moot.engine.host import Host
from moot.engine.peers.calls import Peer
from tests.support.engine.hosts import Place, chain, definition, edge, node, sub

KEY = "hk_the_key_of_the_lab"
DONE = {"kind": "terminate"}


class Asked:
    """One request as it came in."""

    def __init__(self, line: str, headers: dict[str, str], body: bytes) -> None:
        self.method, self.path, _ = line.split(" ")
        self.headers, self.body = headers, json.loads(body) if body else None


class StrangePeer:
    """Serves the few routes a parent uses. ``instead`` answers in its place: (method, route) -> raw
    bytes, None to cut the connection, or ``HANG``."""

    HANG = object()

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.runs: dict[str, dict[str, Any]] = {}
        self.by_key: dict[str, str] = {}
        self.instead: dict[tuple[str, str], list[Any]] = {}
        self.first = "running"
        self.changed = asyncio.Event()
        self.url = ""
        self._server: asyncio.Server | None = None
        self._port = 0
        self._open: set[asyncio.StreamWriter] = set()

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._talk, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self._port}"

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()
        self._server = None
        for writer in self._open:
            writer.transport.abort()

    def become(self, run_id: str, status: str, **more: Any) -> None:
        self.runs[run_id] |= {"status": status, **more}
        self.changed.set()
        self.changed = asyncio.Event()

    def count(self, method: str, route: str) -> int:
        return Counter((each.method, self._route(each.path)) for each in self.asked)[method, route]

    def says(self, method: str, route: str, *answers: Any) -> None:
        """These, and the last one for ever."""
        self.instead[method, route] = list(answers)

    def _route(self, path: str) -> str:
        path = path.partition("?")[0]
        if path.startswith("/v1/runs/"):
            return path.replace(path.split("/")[3], "*", 1)
        return path

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        with suppress(OSError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
            named = dict(line.split(": ", 1) for line in head[1:] if line)
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            asked = Asked(head[0], {name.lower(): v for name, v in named.items()}, body)
            self.asked.append(asked)
            await self._answer(asked, writer)
        self._open.discard(writer)
        writer.close()

    async def _answer(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        route = self._route(asked.path)
        planned = self.instead.get((asked.method, route))
        if planned:
            answer = planned.pop(0) if len(planned) > 1 else planned[0]
            if answer is self.HANG:
                await asyncio.sleep(60)
            elif answer == "create, then cut":
                self._create(asked)
            elif answer != "proper" and answer is not None:
                writer.write(answer)
                await writer.drain()
            if answer != "proper":
                return
        if route == "/v1/runs/*/events":
            await self._stream(asked, writer)
            return
        writer.write(said(*self._proper(asked, route)))
        await writer.drain()

    def _proper(self, asked: Asked, route: str) -> tuple[int, Any]:
        if route == "/.well-known/openwop":
            across = {"supported": True, "hostId": "the-lab"}
            return 200, {"multiAgent": {"executionModel": {"crossHostCausation": across}}}
        if route == "/v1/runs":
            return 201, {"runId": self._create(asked), "status": "running"}
        run = self.runs.get(asked.path.split("/")[3])
        if run is None:
            return 404, {"error": "run_not_found", "message": "No such run."}
        if route == "/v1/runs/*/cancel":
            self.become(run["runId"], "cancelled")
        return 200, run

    def _create(self, asked: Asked) -> str:
        key = asked.headers["idempotency-key"]
        if key not in self.by_key:
            name = f"far_{len(self.by_key)}"
            self.by_key[key] = name
            self.runs[name] = {"runId": name, "status": self.first, "variables": {"out": "far"}}
        return self.by_key[key]

    async def _stream(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        name = asked.path.split("/")[3]
        for number in range(1000):
            run, changed = self.runs[name], self.changed
            over = run["status"] in ("completed", "failed", "cancelled")
            type_ = f"run.{run['status']}" if over else "node.suspended"
            event = {"eventId": f"{name}.{number}", "type": type_}
            writer.write(f"id: {number}\nevent: {type_}\ndata: {json.dumps(event)}\n\n".encode())
            await writer.drain()
            if over:
                return
            await changed.wait()


def said(status: int, body: Any, **headers: str) -> bytes:
    """An answer, as bytes."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(data)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


@asynccontextmanager
async def strange_peer() -> AsyncIterator[StrangePeer]:
    found = StrangePeer()
    await found.open()
    yield found
    if found._server is not None:
        await found.close()


def knowing(place: Place, peer: StrangePeer, patience_ms: int = 60_000) -> Host:
    """A host that knows the other as ``lab``."""
    host = place.host()
    host.peers.know([Peer("lab", peer.url, KEY)])
    host.peers.host_id, host.peers.address = "near", "http://near.example:1"
    host.peers.patience_ms = patience_ms
    return host


def hand(*workers: str) -> dict[str, Any]:
    return {"kind": "next-worker", "nextWorkerIds": list(workers)}


def led(*plan: Any, **config: Any) -> dict[str, Any]:
    both = [
        node("boss", SUPERVISOR, config={"plan": [*plan]}),
        node("hands", DISPATCH, config={"outputMapping": {"result": "out"}, **config}),
    ]
    loop = [edge("boss", "hands"), edge("hands", "boss")]
    variables = [{"name": "result", "type": "string"}]
    return definition(both, loop, id="led", variables=variables)


def above(**settings: Any) -> dict[str, Any]:
    step = {**sub("lab/w", outputMapping={"result": "out"}), "settings": settings}
    return chain(step, id="above", variables=[{"name": "result", "type": "string"}])
