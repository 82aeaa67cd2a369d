"""What goes wrong around a server: one clear error each, nothing acknowledged lost, it goes on."""

import contextlib
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from tests.support.api.caller import Api, definition
from tests.support.servers import ROOT

NODES = str(ROOT / "tests" / "support" / "api" / "nodes.py")


#: half of what any of those who are waited for in vain would take
SOON = 30


def sleeping(ms: int, name: str = "sleep") -> dict[str, Any]:
    return definition(name, [{"id": "wait", "typeId": "core.delay", "config": {"ms": ms}}])


def connected(api: Api) -> socket.socket:
    address = httpx.URL(api.url)
    return socket.create_connection((address.host, int(address.port or 0)), timeout=30)


def request(api: Api, method: str, path: str, *headers: str) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: x", f"Authorization: Bearer {api.key}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


def everything(connection: socket.socket) -> bytes:
    """All that comes until the other side closes."""
    found = bytearray()
    with connection:
        while piece := connection.recv(1 << 16):
            found += piece
    return bytes(found)


def verified(api: Any) -> None:
    """The file of a stopped server is whole."""
    command = [sys.executable, "-m", "moot.cli", "db", "verify", str(api.server.database)]
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr


def refused(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    assert (answer.status_code, answer.json()["error"]) == (status, code), answer.text
    return dict(answer.json().get("details", {}))


# -- bodies ------------------------------------------------------------------------------------


def pieces(size: int) -> Iterator[bytes]:
    for _ in range(0, size, 65536):
        yield b" " * 65536


def test_a_body_that_is_too_large_is_refused(api: Api) -> None:
    limit = api.get("/.well-known/openwop").json()["limits"]["maxRequestBodyBytes"]
    for content in (b" " * (limit + 1), b" " * (5 * limit), pieces(2 * limit)):
        answer = api.call("POST", "/v1/runs", content=content)
        assert refused(answer, 413, "payload_too_large") == {"maxRequestBodyBytes": limit}
    for path in ("/v1/runs/x/cancel", "/v1/host/moot/workflows", "/v1/host/sample/workflows"):
        answer = api.call("POST", path, content=b" " * (limit + 1))
        refused(answer, 413, "payload_too_large")
    assert api.run("conformance-noop")["status"] == "completed"


def test_a_large_body_is_not_sent_when_the_client_asks_first(api: Api) -> None:
    with connected(api) as connection:
        connection.sendall(
            request(api, "POST", "/v1/runs", "Content-Length: 99999999", "Expect: 100-continue")
        )
        assert connection.recv(12) == b"HTTP/1.1 413"


def test_a_slow_body_holds_up_nobody_and_arrives(api: Api) -> None:
    body = b'{"workflowId":"conformance-noop"}'
    with connected(api) as connection:
        connection.sendall(request(api, "POST", "/v1/runs", f"Content-Length: {len(body)}"))
        for place in range(len(body) - 1):
            connection.sendall(body[place : place + 1])
            if place % 8 == 0:
                assert api.get("/healthz").status_code == 200
        connection.sendall(body[-1:])
        assert connection.recv(12) == b"HTTP/1.1 201"


def test_a_body_that_never_ends_makes_no_run(host: Callable[..., Api]) -> None:
    plain = host()
    plain.register(sleeping(60_000))
    for headers, sent in (
        (["Content-Length: 500"], b'{"workflowId":"sleep"}'),
        (["Content-Length: 500"], b""),
        (["Transfer-Encoding: chunked"], b'16\r\n{"workflowId":"sleep"}\r\n'),
    ):
        with connected(plain) as connection:
            connection.sendall(request(plain, "POST", "/v1/runs", *headers) + sent)
    assert plain.get("/v1/host/moot/runs").json()["runs"] == []
    assert plain.create("sleep")


@pytest.mark.parametrize(
    "garbage",
    [
        b"nonsense\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"get / HTTP/1.1\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /v1/runs HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        b"POST /v1/runs HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST /v1/runs HTTP/1.1\r\nContent-Length: 99999999999999999999999999\r\n\r\n",
        b"POST /v1/runs HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"POST /v1/runs HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST /v1/runs HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"GET / HTTP/1.1\r\nbad header\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\0" * 100,
    ],
)
def test_what_is_not_http_is_refused_in_the_same_shape(api: Api, garbage: bytes) -> None:
    connection = connected(api)
    connection.sendall(garbage)
    head, _, body = everything(connection).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400")
    assert b"application/json" in head
    api.answers.error(httpx.Response(400, content=body).json())
    assert api.get("/healthz").status_code == 200


def test_a_client_that_leaves_in_the_middle_harms_nobody(host: Callable[..., Any]) -> None:
    busy = host("--nodes", NODES)
    flood = {"id": "a", "typeId": "wire.flood", "config": {"count": 500, "size": 10_000}}
    busy.register(definition("flood", [flood]))
    run_id = busy.run("flood")["runId"]
    paths = [f"/v1/runs/{run_id}/{rest}" for rest in ("debug-bundle", "events", "events/poll")]
    for number in range(60):
        connection = connected(busy)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # reset
        path = paths[number % 3] + ("?streamMode=debug" if number % 3 == 1 else "")
        connection.sendall(request(busy, "GET", path))
        if number % 2:
            connection.recv(1000)
        connection.close()
    assert len(busy.events(run_id)) == 504
    assert busy.server.stop() == 0
    assert "Traceback" not in busy.server.log.read_text()


# -- stopping ----------------------------------------------------------------------------------


def test_one_sigterm_ends_everything_gracefully_and_waits_for_nobody(
    host: Callable[..., Any],
) -> None:
    plain = host()
    plain.register(sleeping(3000))
    runs = [plain.create("sleep") for _ in range(20)]
    streams = [connected(plain) for _ in range(24)]
    for number, connection in enumerate(streams):
        run_id = runs[number % 20]
        path = f"/v1/runs/{run_id}/events" if number < 20 else f"/v1/runs/{run_id}/events/poll"
        query = "" if number < 20 else "?lastSequence=99&timeout=60"
        connection.sendall(request(plain, "GET", path + query))
        if number < 20:
            assert connection.recv(12) == b"HTTP/1.1 200"
    idle, half = connected(plain), connected(plain)
    half.sendall(request(plain, "POST", "/v1/runs", "Content-Length: 500") + b"{")
    plain.get("/healthz")
    assert plain.server.stop(SOON) == 0
    for connection in streams:
        assert everything(connection).endswith((b"0\r\n\r\n", b"}"))
    idle.close()
    half.close()
    plain.server.start()
    for run_id in runs:
        assert plain.until(run_id)["status"] == "completed"


@pytest.mark.parametrize("node", ["wire.hang", "wire.hang-blocking"])
def test_a_node_that_never_returns_does_not_hold_up_the_stop(
    host: Callable[..., Any], node: str
) -> None:
    busy = host("--nodes", NODES)
    busy.register(definition("hang", [{"id": "a", "typeId": node}]))
    runs = [busy.create("hang") for _ in range(40)]
    assert busy.server.stop(SOON) == 0
    busy.server.start()
    results = busy.post("/v1/runs:bulk-cancel", {"runIds": runs}).json()["results"]
    assert {result["status"] for result in results} == {"cancelled"}


def test_sigint_stops_too(host: Callable[..., Any]) -> None:
    plain = host()
    plain.server.process.send_signal(signal.SIGINT)
    assert plain.server.process.wait(SOON) == 0


def test_what_is_accepted_while_stopping_is_kept(host: Callable[..., Any]) -> None:
    plain = host()
    plain.register(definition("quick", [{"id": "a", "typeId": "core.noop"}]))
    accepted: list[str] = []
    gone = threading.Event()

    def hammer() -> None:
        while not gone.is_set():
            try:
                answer = plain.post("/v1/runs", {"workflowId": "quick"})
            except httpx.TransportError:
                return
            if answer.status_code == 201:
                accepted.append(answer.json()["runId"])
            else:
                refused(answer, 503, "service_unavailable")

    threads = [threading.Thread(target=hammer) for _ in range(6)]
    for thread in threads:
        thread.start()
    while len(accepted) < 200:
        time.sleep(0.001)
    assert plain.server.stop(SOON) == 0
    gone.set()
    for thread in threads:
        thread.join()
    plain.server.start()
    for run_id in accepted:
        assert plain.until(run_id)["status"] == "completed"
    plain.server.stop()
    verified(plain)


def command(*arguments: str, **given: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "moot.cli", "serve", *arguments],
        capture_output=True, text=True, timeout=90, **given,
    )  # fmt: skip


def test_a_second_server_on_the_same_file_is_refused_with_a_sentence(
    host: Callable[..., Any],
) -> None:
    plain = host()
    second = command(str(plain.server.database), "--port", "0")
    assert second.returncode == 1
    assert "is in use by another Moot" in second.stderr
    assert "Traceback" not in second.stderr
    assert plain.get("/readyz").status_code == 200


def test_a_taken_port_is_refused_with_a_sentence(host: Callable[..., Any], tmp_path: Path) -> None:
    plain = host()
    second = command(str(tmp_path / "other.db"), "--port", str(plain.server.port))
    assert second.returncode == 1
    assert "in use" in second.stderr
    assert "Traceback" not in second.stderr


def test_a_file_that_is_no_database_is_refused_with_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_bytes(b"this is not a database" * 100)
    found = command(str(tmp_path / "x.db"), "--port", "0")
    assert found.returncode == 1
    assert "cannot be opened" in found.stderr
    assert "Traceback" not in found.stderr


@pytest.mark.parametrize(
    "source", ["def broken(:\n", "import nothing_like_this\n", "raise SystemExit(3)\n", "1/0\n"]
)
def test_nodes_that_cannot_be_loaded_are_refused_with_a_sentence(
    tmp_path: Path, source: str
) -> None:
    (tmp_path / "nodes.py").write_text(source)
    place = str(tmp_path / "nodes.py")
    found = command(str(tmp_path / "x.db"), "--port", "0", "--nodes", place)
    assert found.returncode == 1
    assert "nodes.py cannot be loaded" in found.stderr
    assert "Traceback" not in found.stderr


# -- too much ----------------------------------------------------------------------------------


def burst(caller: Api) -> list[httpx.Response]:
    """Many at once, again if need be: the answers, some of them limited."""
    with ThreadPoolExecutor(16) as pool:
        for _ in range(20):
            found = list(pool.map(lambda _: caller.get("/v1/runs/nobody"), range(40)))
            if any(answer.status_code == 429 for answer in found):
                return found
    raise AssertionError("nothing is limited")


def test_more_than_the_rate_is_told_when_to_come_back(host: Callable[..., Api]) -> None:
    slow = host(MOOT_RATE_LIMIT="5")
    other = slow.with_key(slow.new_key("other"))
    answers = burst(slow)
    limited = [answer for answer in answers if answer.status_code == 429]
    assert {answer.status_code for answer in answers} == {404, 429}
    for answer in limited:
        details = refused(answer, 429, "rate_limited")
        assert details["scope"] == "key"
        assert details["limit"] == 5
        assert 1 <= details["retryAfterMs"] <= int(answer.headers["retry-after"]) * 1000
    assert other.get("/v1/runs/nobody").status_code == 404  # another key has its own share
    time.sleep(int(limited[-1].headers["retry-after"]))
    assert slow.get("/v1/runs/nobody").status_code == 404


def test_the_rate_comes_before_the_key_and_the_scope(host: Callable[..., Api]) -> None:
    """Who is limited is told so, whatever else would be refused."""
    for which, refusal in (("weak", 403), ("wrong", 401), ("none", 401)):
        slow = host(MOOT_RATE_LIMIT="3")
        keys = {"weak": slow.new_key("weak", scopes=[]), "wrong": "hk_wrong", "none": None}
        caller = slow.with_key(keys[which])
        while (first := caller.get("/v1/runs/nobody")).status_code == 429:
            time.sleep(0.1)  # a key not seen yet shares what its address has left
        answers = [first, *burst(caller)]
        assert {answer.status_code for answer in answers} == {refusal, 429}
        limited = next(answer for answer in answers if answer.status_code == 429)
        assert limited.json()["details"]["scope"] == ("key" if which == "weak" else "global")


def test_a_full_queue_is_told_to_come_back_and_loses_nothing(host: Callable[..., Any]) -> None:
    busy = host(MOOT_QUEUE_LIMIT="1")
    busy.register(definition("chain", [{"id": f"n{n}", "typeId": "core.noop"} for n in range(5)]))
    busy.register(sleeping(20, "nap"))
    seen: Counter[int] = Counter()
    accepted: list[str] = []
    retried: list[tuple[str, dict[str, Any]]] = []

    def hammer(worker: int) -> None:
        for number in range(60):
            body = {"workflowId": ("chain", "nap")[number % 2], "tags": [f"{worker}-{number}"]}
            key = f"full-{worker}-{number}"
            answer = busy.post("/v1/runs", body, headers={"Idempotency-Key": key})
            seen[answer.status_code] += 1
            if answer.status_code == 201:
                accepted.append(answer.json()["runId"])
                continue
            details = refused(answer, 503, "service_unavailable")
            assert answer.headers["retry-after"] == str(details["retryAfter"])
            retried.append((key, body))

    threads = [threading.Thread(target=hammer, args=(worker,)) for worker in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(seen) == {201, 503}
    for key, body in retried[:50]:  # a 503 is never replayed: the same key succeeds later
        for _ in range(1000):
            answer = busy.post("/v1/runs", body, headers={"Idempotency-Key": key})
            if answer.status_code != 503:
                break
        assert answer.status_code == 201
        assert "openwop-idempotent-replay" not in answer.headers
        accepted.append(answer.json()["runId"])
    for run_id in accepted:
        assert busy.until(run_id)["status"] == "completed"
    assert len(set(accepted)) == len(accepted)
    busy.server.stop()
    verified(busy)


# -- the disk ----------------------------------------------------------------------------------


@contextlib.contextmanager
def full_disk(api: Any, room: int = 0) -> Iterator[None]:
    """No file of the server may grow beyond its database's log and some room."""
    wal = Path(f"{api.server.database}-wal")
    most = max(file.stat().st_size for file in (wal, api.server.database, api.server.log)) + room
    process = api.server.process.pid
    resource.prlimit(process, resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
    try:
        yield
    finally:
        forever = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        resource.prlimit(process, resource.RLIMIT_FSIZE, forever)


def test_a_full_disk_refuses_clearly_loses_nothing_and_recovers(host: Callable[..., Any]) -> None:
    plain = host("--nodes", NODES)
    plain.register(definition("quick", [{"id": "a", "typeId": "core.noop"}]))
    plain.register(sleeping(700, "nap"))
    drip = {"id": "a", "typeId": "wire.drip", "config": {"count": 10, "every_ms": 60}}
    plain.register(definition("drip", [drip]))
    accepted = [plain.create(name) for name in ("quick", "nap", "drip") * 3]
    refusals = 0
    with full_disk(plain, room=30_000):
        for number in range(120):
            headers = {"Idempotency-Key": f"disk-{number}"}
            answer = plain.post("/v1/runs", {"workflowId": "quick"}, headers=headers)
            if answer.status_code == 201:
                accepted.append(answer.json()["runId"])
            else:
                details = refused(answer, 503, "service_unavailable")
                assert answer.headers["retry-after"] == str(details["retryAfter"])
                assert "nothing of it was kept" in answer.json()["message"]
                refusals += 1
        assert refusals
        for caller in (
            lambda: plain.post("/v1/host/moot/keys", {"name": "x"}),
            lambda: plain.post("/v1/host/moot/workflows", sleeping(1, "late")),
            lambda: plain.post(f"/v1/runs/{accepted[1]}/cancel"),
        ):
            assert caller().status_code in (200, 201, 503)  # what is small may still find room
        assert plain.get("/healthz").status_code == 200
        assert plain.read(accepted[0])["status"] == "completed"  # reading needs no room
        assert plain.get("/v1/host/moot/runs").status_code == 200
    again = plain.post("/v1/runs", {"workflowId": "quick"}, headers={"Idempotency-Key": "disk-119"})
    assert again.status_code == 201
    accepted.append(again.json()["runId"])
    for run_id in accepted:
        assert plain.until(run_id)["status"] in ("completed", "cancelled")
    listed = {row["runId"] for row in plain.get("/v1/host/moot/runs?limit=500").json()["runs"]}
    assert listed == set(accepted)
    assert plain.server.stop() == 0
    verified(plain)
    plain.server.start()
    for run_id in accepted:
        assert plain.read(run_id)["status"] in ("completed", "cancelled")


def test_a_scope_is_free_again_after_a_create_that_failed(host: Callable[..., Any]) -> None:
    plain = host()
    plain.register(sleeping(60_000))
    enforce = {"X-Dedup": "enforce"}
    body = {"workflowId": "sleep", "scopeId": "s"}
    with full_disk(plain):
        refused(plain.post("/v1/runs", body, headers=enforce), 503, "service_unavailable")
    answer = plain.post("/v1/runs", body, headers=enforce)
    assert answer.status_code == 201, answer.text


def test_a_head_that_does_not_end_is_cut_off(api: Api) -> None:
    host, port = api.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as line:
        with contextlib.suppress(ConnectionError):  # it may be closed before all of this is out
            line.sendall(b"GET /healthz HTTP/1.1\r\nX: " + b"a" * 200_000)
        assert line.recv(100).startswith(b"HTTP/1.1 431 ")
