"""The bare limit: the same server stack and the same grouped commits, and nothing else.

``python -m bench.bare FILE`` reads from FILE what to write and to answer: events of the size and
number the real server writes, bodies of the size it sends.
"""

import asyncio
import queue
import sys
import threading
from collections.abc import Awaitable, Callable
from itertools import cycle
from pathlib import Path
from typing import Any

import apsw
import msgspec
import uvicorn
import uvloop

Send = Callable[[dict[str, Any]], Awaitable[None]]

PRAGMAS = "pragma journal_mode=wal; pragma synchronous=full; pragma wal_autocheckpoint=4000"
TABLE = """
create table if not exists event(run int, sequence int, body blob, primary key(run, sequence))
without rowid
"""
SSE = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-cache")]


class Sample(msgspec.Struct):
    """What the real server was seen to write and to answer."""

    database: str
    #: the events one noop run writes in its one commit
    run_events: list[bytes] = []
    created: bytes = b""
    snapshot: bytes = b""
    #: exact path -> body
    answers: dict[str, bytes] = {}
    #: one event of a pause, and of a long run; how many come in a group, and how many groups
    pause_event: bytes = b""
    fan_event: bytes = b""
    fan_group: int = 1
    fan_groups: int = 0
    quiet_ms: int = 0
    #: the events that messages of a thread write, of one after the other, and how one is told
    messages: list[list[bytes]] = []
    told: bytes = b""


class Writer:
    """One thread, one connection; everything queued while a commit runs shares the next one."""

    def __init__(self, path: str, grouped: bool = True) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue: queue.SimpleQueue[tuple[list[bytes], asyncio.Future[None]] | None]
        self._queue = queue.SimpleQueue()
        self._grouped = grouped
        self._run = 0
        self._path = path
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    async def append(self, rows: list[bytes]) -> None:
        done = self._loop.create_future()
        self._queue.put((rows, done))
        await done

    def close(self) -> None:
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        db = apsw.Connection(self._path)
        db.execute(PRAGMAS).fetchall()
        db.execute(TABLE)
        while (item := self._queue.get()) is not None:
            group = [item]
            while self._grouped and not self._queue.empty():
                if (item := self._queue.get()) is None:
                    return
                group.append(item)
            db.execute("begin immediate")
            db.executemany("insert into event values(?,?,?)", self._rows(group))
            db.execute("commit")
            self._loop.call_soon_threadsafe(_settle, [done for _, done in group])

    def _rows(self, group: list[tuple[list[bytes], "asyncio.Future[None]"]]) -> list[Any]:
        rows = []
        for bodies, _ in group:
            self._run += 1
            rows += [(self._run, sequence, body) for sequence, body in enumerate(bodies)]
        return rows


def _settle(waiting: list["asyncio.Future[None]"]) -> None:
    for done in waiting:
        done.set_result(None)


class Bare:
    """The ASGI application."""

    def __init__(self, sample: Sample) -> None:
        self._sample = sample
        self._writer = Writer(sample.database)
        self._readers: set[asyncio.Queue[bytes]] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._messages = cycle(sample.messages)

    async def __call__(self, scope: Any, receive: Any, send: Send) -> None:
        path = scope["path"]
        if scope["method"] == "POST":
            while (await receive()).get("more_body"):
                pass
            await self._post(path, send)
        elif path.endswith(("/events", "/events/stream")):
            await self._stream(receive, send)
        else:
            asked = f"{path}?{scope['query_string'].decode()}" if scope["query_string"] else path
            await _answer(send, 200, self._sample.answers.get(asked, self._sample.snapshot))

    async def _post(self, path: str, send: Send) -> None:
        sample = self._sample
        if path.endswith((":pause", ":resume")):
            await self._writer.append([sample.pause_event])
            self._publish(_frame(sample.pause_event))
            await _answer(send, 202, b"{}")
        elif path == "/v1/fan":
            task = asyncio.get_running_loop().create_task(self._fan())
            self._tasks.add(task)
            await _answer(send, 201, sample.created)
        elif path.startswith("/threads/"):
            await self._writer.append(next(self._messages))
            self._publish(b"data: %b\n\n" % sample.told)
            await _answer(send, 200, sample.created)
        else:
            await self._writer.append(sample.run_events)
            await _answer(send, 201, sample.created)

    async def _stream(self, receive: Any, send: Send) -> None:
        waiting: asyncio.Queue[bytes] = asyncio.Queue()
        self._readers.add(waiting)
        watch = asyncio.get_running_loop().create_task(_watch(receive, waiting))
        await send({"type": "http.response.start", "status": 200, "headers": SSE})
        while piece := await waiting.get():
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
        self._readers.discard(waiting)
        watch.cancel()

    async def _fan(self) -> None:
        """Groups of events: each on disk first, then to everybody in one piece."""
        sample = self._sample
        await asyncio.sleep(sample.quiet_ms / 1000)
        rows = [sample.fan_event] * sample.fan_group
        piece = _frame(sample.fan_event) * sample.fan_group
        for _ in range(sample.fan_groups):
            await self._writer.append(rows)
            self._publish(piece)
            await asyncio.sleep(0)
        self._publish(b"")

    def _publish(self, piece: bytes) -> None:
        for waiting in self._readers:
            waiting.put_nowait(piece)


async def _watch(receive: Any, waiting: "asyncio.Queue[bytes]") -> None:
    """Who has gone is sent no more: the next round is not to pay for the readers of this one."""
    while (await receive())["type"] != "http.disconnect":
        pass
    waiting.put_nowait(b"")


def _frame(body: bytes) -> bytes:
    return b"id: 1000\nevent: node.completed\ndata: %b\n\n" % body


async def _answer(send: Send, status: int, body: bytes) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _serve(sample: Sample) -> None:
    from moot.api.http.connection import HttpConnection

    config = uvicorn.Config(
        Bare(sample), port=0, loop="none", http=HttpConnection, ws="none", lifespan="off",
        access_log=False, log_config=None, server_header=False, proxy_headers=False,
        date_header=False, backlog=2048,
    )  # fmt: skip
    server = uvicorn.Server(config)
    serving = asyncio.get_running_loop().create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.001)
    print(f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}", flush=True)
    await serving


if __name__ == "__main__":
    uvloop.run(_serve(msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Sample)))
