"""The load driver: a process of its own. ``python -m bench.driver '{"scenario": ...}'``."""

import asyncio
import gc
import json
import statistics
import sys
from collections.abc import Callable, Coroutine
from itertools import cycle
from time import perf_counter, perf_counter_ns
from typing import Any, cast

import uvloop

from bench.wire import Listener, Script, listen, play, request

Result = dict[str, float]


def _between(text: bytes, left: bytes, right: bytes) -> bytes:
    start = text.index(left) + len(left)
    return text[start : text.index(right, start)]


def _percentile(values: list[float], share: float) -> float:
    """Of nothing there is none: however little time there is, one of all scripts asks once."""
    ranked = sorted(values)
    return ranked[min(len(ranked) - 1, int(len(ranked) * share))]


# -- runs from create to terminal ----------------------------------------------------------------


def _runs_script(key: str, body: bytes, until: float, most: int, took: list[float]) -> Script:
    create = request("POST", "/v1/runs", key, body)
    head, _, rest = request("GET", "/v1/runs/{}", key).partition(b"{}")
    while not took or (perf_counter() < until and len(took) < most):
        started = perf_counter()
        read = head + _between((yield create), b'"runId":"', b'"') + rest
        while b'"status":"completed"' not in (yield read):
            pass
        took.append(perf_counter() - started)


async def runs(
    port: int, key: str, clients: int, seconds: float, body: str, most: int = 10**9
) -> Result:
    took: list[float] = []
    started = perf_counter()
    until = started + seconds
    await play(port, [_runs_script(key, body.encode(), until, most, took) for _ in range(clients)])
    return _rate(took, perf_counter() - started)


def _ended_script(key: str, body: bytes, last: int, until: float, took: list[float]) -> Script:
    create = request("POST", "/v1/runs", key, body)
    path = f"/v1/runs/{{}}/events/poll?lastSequence={last - 1}&timeout=30"
    head, _, rest = request("GET", path, key).partition(b"{}")
    while not took or perf_counter() < until:
        started = perf_counter()
        read = head + _between((yield create), b'"runId":"', b'"') + rest
        while b'"isTerminal":true' not in (yield read):
            pass
        took.append(perf_counter() - started)


async def ended_runs(
    port: int, key: str, clients: int, seconds: float, body: str, last: int
) -> Result:
    """Runs whose last event has this number: who waits for it asks once for each commit."""
    took: list[float] = []
    started = perf_counter()
    until = started + seconds
    await play(port, [_ended_script(key, body.encode(), last, until, took) for _ in range(clients)])
    return _rate(took, perf_counter() - started)


def _rate(took: list[float], elapsed: float) -> Result:
    return {
        "rate": len(took) / elapsed,
        "count": len(took),
        "p50": _percentile(took, 0.5) * 1000,
        "p99": _percentile(took, 0.99) * 1000,
    }


# -- turns into conversations --------------------------------------------------------------------

NUMBER = b"#" * 20


def _turns_script(asks: list[bytes], until: float, most: int, took: list[float]) -> Script:
    """A body may have a place for a number, of which each turn of all drivers gets another one.
    However short the time is, something is measured."""
    for ask in cycle(asks):
        started = perf_counter()
        if took and (started >= until or len(took) >= most):
            return
        yield ask.replace(NUMBER, b"%020d" % perf_counter_ns())
        took.append(perf_counter() - started)


async def turns(
    port: int,
    key: str,
    clients: int,
    seconds: float,
    paths: list[str],
    bodies: list[str],
    most: int = 10**9,
) -> Result:
    """Clients share the paths among them; each says all bodies, one after the other, and each of
    them on all of its paths."""
    took: list[float] = []
    started = perf_counter()
    scripts = []
    for client in range(clients):
        its, first = paths[client % len(paths) :: clients], client % len(bodies)
        said = [*bodies[first:], *bodies[:first]]
        asks = [request("POST", path, key, body.encode()) for body in said for path in its]
        scripts.append(_turns_script(asks, started + seconds, most, took))
    await play(port, scripts)
    return _rate(took, perf_counter() - started)


# -- reads ---------------------------------------------------------------------------------------


def _reads_script(ask: bytes, until: float, took: list[float]) -> Script:
    while not took or perf_counter() < until:
        started = perf_counter()
        yield ask
        took.append(perf_counter() - started)


async def reads(port: int, key: str, clients: int, seconds: float, path: str) -> Result:
    ask = request("GET", path, key)
    took: list[float] = []
    started = perf_counter()
    await play(port, [_reads_script(ask, started + seconds, took) for _ in range(clients)])
    return _rate(took, perf_counter() - started)


# -- from a cause to its event on an open stream -------------------------------------------------


async def latency(port: int, key: str, count: int, body: str) -> Result:
    """Pause and resume a waiting run in turn; each shows up on its stream."""
    run_id = await _created(port, key, body)
    news = asyncio.Event()
    events = request("GET", f"/v1/runs/{run_id}/events", key, accept="text/event-stream")
    listener = await listen(port, events, lambda _: news.set())
    await asyncio.sleep(0.1)
    pause = request("POST", f"/v1/runs/{run_id}:pause", key, b'{"drainPolicy":"immediate"}')
    resume = request("POST", f"/v1/runs/{run_id}:resume", key, b"{}")
    took: list[float] = []

    async def cause() -> None:
        loop = asyncio.get_running_loop()
        pusher = _Pusher()
        await loop.create_connection(lambda: pusher, "127.0.0.1", port)
        for number in range(count):
            await asyncio.sleep(0.003)  # idle: nothing is left over from the cause before
            news.clear()
            started = perf_counter()
            pusher.push(resume if number % 2 else pause)
            await asyncio.wait_for(news.wait(), 5)
            took.append(listener.last - started)
        pusher.close()

    await cause()
    listener.transport.close()
    return {
        "p50": statistics.median(took) * 1000,
        "p99": _percentile(took, 0.99) * 1000,
        "count": len(took),
    }


class _Pusher(asyncio.Protocol):
    """Sends requests and does not look at the answers."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def push(self, ask: bytes) -> None:
        self._transport.write(ask)

    def close(self) -> None:
        self._transport.close()


async def _created(port: int, key: str, body: str, path: str = "/v1/runs") -> str:
    found: list[str] = []

    def script() -> Script:
        created = yield request("POST", path, key, body.encode())
        found.append(_between(created, b'"runId":"', b'"').decode())

    await play(port, [script()])
    return found[0]


# -- from a message to everybody who listens to its thread ---------------------------------------


async def deliveries(port: int, key: str, streams: int, path: str, body: str, count: int) -> Result:
    """One message at a time, the next when all have heard it. Each is one event of its thread."""
    news = asyncio.Event()
    heard: list[float] = []

    def hear(found: int) -> None:
        heard.extend([perf_counter()] * found)
        if len(heard) >= streams:
            news.set()

    ask = request("GET", f"{path}/stream", key, accept="text/event-stream")
    listeners = [await listen(port, ask, hear) for _ in range(streams)]
    await asyncio.sleep(0.3)  # by then everybody listens
    loop = asyncio.get_running_loop()
    _, caller = await loop.create_connection(_Caller, "127.0.0.1", port)
    say = request("POST", path, key, body.encode())
    took: list[float] = []
    answered: list[float] = []
    for _ in range(count):
        await asyncio.sleep(0.003)  # idle: nothing is left over from the message before
        heard.clear()
        news.clear()
        started = perf_counter()
        answered.append(await caller.call(say) - started)
        await asyncio.wait_for(news.wait(), 5)
        took += [at - started for at in heard]
    if any(listener.events != count for listener in listeners):
        raise RuntimeError("A stream did not hear each message once.")
    for listener in listeners:
        listener.transport.close()
    return {
        "p50": statistics.median(took) * 1000,
        "p99": _percentile(took, 0.99) * 1000,
        "answered": statistics.median(answered) * 1000,
        "heard": len(took),
    }


class _Caller(asyncio.Protocol):
    """Sends a request and waits for its answer, one after the other."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    async def call(self, ask: bytes) -> float:
        """When the answer was there."""
        self._buffer = b""
        self._answered: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._transport.write(ask)
        return await asyncio.wait_for(self._answered, 5)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, whole, body = self._buffer.partition(b"\r\n\r\n")
        if not whole or len(body) < int(_between(head + whole, b"content-length:", b"\r\n")):
            return
        if head[9:10] != b"2":
            self._answered.set_exception(RuntimeError(f"The server answered {head[9:]!r}"))
        else:
            self._answered.set_result(perf_counter())


# -- many readers of one run ---------------------------------------------------------------------


async def fan_out(port: int, key: str, subscribers: int, body: str, path: str) -> Result:
    """The run waits a moment before it says much; by then everybody listens."""
    run_id = await _created(port, key, body, path)
    events = f"/v1/runs/{run_id}/events?streamMode=debug"
    ask = request("GET", events, key, accept="text/event-stream")
    ended = asyncio.Event()
    first: list[float] = []
    listeners: list[Listener] = []

    def heard(found: int) -> None:
        if not first and found:
            first.append(perf_counter())
        if not found and not any(listener.open for listener in listeners):
            ended.set()

    listeners += [await listen(port, ask, heard) for _ in range(subscribers)]
    await asyncio.sleep(0.3)
    before = sum(listener.events for listener in listeners)
    first.clear()
    await asyncio.wait_for(ended.wait(), 120)
    deliveries = sum(listener.events for listener in listeners) - before
    elapsed = max(listener.last for listener in listeners) - first[0]
    return {"rate": deliveries / elapsed, "deliveries": deliveries, "seconds": elapsed}


SCENARIOS: dict[str, Callable[..., Coroutine[Any, Any, Result]]] = {
    "runs": runs,
    "ended_runs": ended_runs,
    "turns": turns,
    "reads": reads,
    "latency": latency,
    "deliveries": deliveries,
    "fan_out": fan_out,
}


def main() -> None:
    asked = json.loads(sys.argv[1])
    gc.disable()  # the driver's pauses are not the server's
    print(json.dumps(uvloop.run(SCENARIOS[asked.pop("scenario")](**asked))))


if __name__ == "__main__":
    main()
