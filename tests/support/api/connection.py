"""One HTTP connection without a socket, its own time, and an application behind it."""

import asyncio
from collections.abc import Callable
from typing import Any

import uvicorn
from uvicorn.server import ServerState


class Alarm:
    """What a loop gives for something that is called later."""

    def __init__(self, at: float, call: Callable[[], Any]) -> None:
        self.at, self.call = at, call
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class Time:
    """The loop, with hands that are moved: nothing is waited for, and no machine is too slow."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._now = 0.0
        self._alarms: list[Alarm] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)

    def time(self) -> float:
        return self._now

    def call_later(self, delay: float, call: Callable[..., Any], *given: Any) -> Alarm:
        self._alarms.append(Alarm(self._now + delay, lambda: call(*given)))
        return self._alarms[-1]

    async def passes(self, seconds: float) -> None:
        """Whatever is due in these seconds happens, each at its own time."""
        await settled()
        end = self._now + seconds
        while due := [alarm for alarm in self._alarms if alarm.at <= end]:
            first = min(due, key=lambda alarm: alarm.at)
            self._alarms.remove(first)
            self._now = first.at
            if not first.cancelled:
                first.call()
                await settled()
        self._now = end


class Wire(asyncio.Transport):
    """The other end sees ``sent``; nothing is read while ``paused``."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = b""
        self.writes = 0
        self.closed = self.paused = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("192.0.2.1", 1) if name in ("peername", "sockname") else default

    def write(self, data: Any) -> None:
        self.sent += data
        self.writes += 1

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False


class Site:
    """A small application with one of everything."""

    def __init__(self) -> None:
        self.left = 0
        self.go_on = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await getattr(self, scope["path"].strip("/").partition("/")[0])(scope, receive, send)

    async def echo(self, scope: Any, receive: Any, send: Any) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.left += 1
                return
            body += message["body"]
            more = message["more_body"]
        await answer(send, b"%b %b" % (repr(scope["query_string"]).encode(), body))

    async def early(self, scope: Any, receive: Any, send: Any) -> None:
        await answer(send, b"" if scope["method"] == "HEAD" else b"No.", 413, length=3)

    async def empty(self, scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def stream(self, scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"x-a", b"b")]})
        for piece in (b"one", b"", b"two" * 10):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def broken(self, scope: Any, receive: Any, send: Any) -> None:
        raise OSError("on purpose")

    async def injected(self, scope: Any, receive: Any, send: Any) -> None:
        headers = [(b"location", b"/a\r\nset-cookie: b"), (b"content-length", b"0")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    async def half(self, scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"one", "more_body": True})
        raise OSError("on purpose")

    async def nothing(self, scope: Any, receive: Any, send: Any) -> None:
        """Leaves without an answer."""

    async def twice(self, scope: Any, receive: Any, send: Any) -> None:
        await answer(send, b"once")
        await answer(send, b"twice")

    async def slow(self, scope: Any, receive: Any, send: Any) -> None:
        await self.go_on.wait()
        await answer(send, b"slow")

    async def listen(self, scope: Any, receive: Any, send: Any) -> None:
        """A stream that says one thing and waits until nobody listens."""
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"one", "more_body": True})
        await self.until_gone(scope, receive, send)

    async def until_gone(self, scope: Any, receive: Any, send: Any) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self.left += 1


async def answer(send: Any, body: bytes, status: int = 200, length: int | None = None) -> None:
    size = len(body) if length is None else length
    headers = [(b"content-type", b"text/plain"), (b"content-length", b"%d" % size)]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class Connection:
    def __init__(self, kind: Callable[..., Any], site: Site | None = None, patience: float = 75):
        self.site, self.wire, self.state = site or Site(), Wire(), ServerState()
        config = uvicorn.Config(
            self.site, loop="none", ws="none", lifespan="off", log_config=None, access_log=False,
            timeout_keep_alive=patience,
        )  # fmt: skip
        config.load()
        self.time = Time()
        given = {"config": config, "server_state": self.state, "app_state": {}}
        self.protocol = kind(**given, _loop=self.time)
        self.protocol.connection_made(self.wire)

    async def feed(self, *pieces: bytes) -> bytes:
        for piece in pieces:
            if not self.wire.closed:
                self.protocol.data_received(piece)
                await settled()
        return self.wire.sent

    async def end(self) -> None:
        self.wire.closed = True
        self.protocol.connection_lost(None)
        await settled()
        assert not self.state.tasks
        assert not self.state.connections


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def get(path: str, *headers: str, method: str = "GET", version: str = "1.1") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/{version}", "Host: x", *headers, "", ""]).encode()


BODY = b"0123456789"
LENGTH = "Content-Length: 10"
