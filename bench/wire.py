"""The load driver's side of HTTP/1.1: raw connections that leave the cores to the server."""

import asyncio
from collections.abc import Callable, Generator
from functools import partial
from time import perf_counter
from typing import cast

#: yields requests, is sent the body of each answer
Script = Generator[bytes, bytes, None]


def request(method: str, path: str, key: str, body: bytes = b"", accept: str = "*/*") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Accept: {accept}"]
    if key:
        lines.append(f"Authorization: Bearer {key}")
    if method == "POST":
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode() + body


class Player(asyncio.Protocol):
    """Plays a script on one keep-alive connection; ``done`` is set when the script ends."""

    def __init__(self, script: Script, done: "asyncio.Future[None]") -> None:
        self._script, self._done = script, done
        self._buffer = b""
        self._needed = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._go_on(lambda: next(self._script))

    def data_received(self, data: bytes) -> None:
        self._buffer = buffer = self._buffer + data if self._buffer else data
        if len(buffer) < self._needed:
            return
        end = buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        start = buffer.index(b"content-length:") + 15
        self._needed = end + 4 + int(buffer[start : buffer.index(b"\r\n", start)])
        if len(buffer) >= self._needed:
            self._buffer, self._needed = b"", 0
            self._answered(buffer, end)

    def _answered(self, answer: bytes, end: int) -> None:
        if answer[9:10] != b"2":
            self._transport.close()
            said = answer[9:500].decode(errors="replace")
            self._done.set_exception(RuntimeError(f"The server answered {said}"))
        else:
            self._go_on(lambda: self._script.send(answer[end + 4 :]))

    def _go_on(self, step: Callable[[], bytes]) -> None:
        """A script may be over before its connection is made."""
        try:
            self._transport.write(step())
        except StopIteration:
            self._transport.close()
            self._done.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._done.done():
            self._done.set_exception(exc or ConnectionError("The server closed the connection."))


async def play(port: int, scripts: list[Script]) -> None:
    """All of them at once, a connection each."""
    loop = asyncio.get_running_loop()
    waiting = []
    for script in scripts:
        done: asyncio.Future[None] = loop.create_future()
        waiting.append(done)
        await loop.create_connection(partial(Player, script, done), "127.0.0.1", port)
    await asyncio.gather(*waiting)


class Listener(asyncio.Protocol):
    """One open event stream: counts events, remembers when bytes last came."""

    MARK = b"\ndata: "

    def __init__(self, ask: bytes, heard: Callable[[int], None]) -> None:
        self._ask, self._heard = ask, heard
        self._tail = b""
        self.events = 0
        self.last = 0.0
        self.open = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.write(self._ask)

    def data_received(self, data: bytes) -> None:
        self.last = perf_counter()
        seen = self._tail + data  # a mark may be cut in two by the transport
        found = seen.count(self.MARK)
        self._tail = seen[-len(self.MARK) + 1 :]
        if found:
            self.events += found
            self._heard(found)
        if data.endswith(b"\r\n0\r\n\r\n") or data == b"0\r\n\r\n":
            self.open = False
            self._heard(0)

    def connection_lost(self, exc: Exception | None) -> None:
        self.open = False


async def listen(port: int, ask: bytes, heard: Callable[[int], None]) -> Listener:
    loop = asyncio.get_running_loop()
    _, listener = await loop.create_connection(lambda: Listener(ask, heard), "127.0.0.1", port)
    return listener
