"""Our HTTP protocol answers to the byte what uvicorn's own one answers; and what it adds."""

import pytest
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from moot.api.http import connection as http
from moot.api.http.connection import HttpConnection
from tests.support.api.connection import BODY, LENGTH, Connection, get, settled

CHUNKS = b"4\r\n0123\r\n6;x=y\r\n456789\r\n0\r\n\r\n"

REQUESTS = {
    "a body": [get("/echo", LENGTH, method="POST") + BODY],
    "no body": [get("/echo?a=%20b&c", method="POST")],
    "a body in pieces": [get("/echo", LENGTH, method="POST"), BODY[:3], BODY[3:]],
    "a chunked body": [get("/echo", "Transfer-Encoding: chunked", method="POST") + CHUNKS],
    "a caller that asks first": [
        get("/echo", LENGTH, "Expect: 100-Continue", method="POST"),
        BODY,
    ],
    "a caller that asks first and is refused": [
        get("/early", LENGTH, "Expect: 100-continue", method="POST")
    ],
    "an answer before the body": [
        get("/early", LENGTH, method="POST"),
        BODY + get("/echo"),
    ],
    "HEAD": [get("/early", method="HEAD"), get("/echo")],
    "no content": [get("/empty"), get("/echo")],
    "a stream": [get("/stream"), get("/echo")],
    "a stream and close": [get("/stream", "Connection: close")],
    "close": [get("/echo", "Connection: close")],
    "talk after close": [get("/echo", "Connection: close") + get("/echo")],
    "HTTP/1.0": [get("/echo", version="1.0")],
    "HTTP/1.0 that would stay": [get("/echo", "Connection: keep-alive", version="1.0")],
    "three at once": [get("/echo/1") + get("/stream") + get("/echo?3")],
    "bodies at once": [(get("/echo", LENGTH, method="POST") + BODY) * 3],
    "escapes in the path": [get("/echo/%C3%BC%2f?%41")],
    "a whole address": [get("http://example.org/echo?a#b")],
    "another protocol": [get("/echo", "Connection: Upgrade", "Upgrade: websocket")],
    "an application that fails": [get("/broken"), get("/echo")],
    "an application that fails half way": [get("/half"), get("/echo")],
    "an application that says nothing": [get("/nothing"), get("/echo")],
}


@pytest.mark.parametrize("name", REQUESTS)
@pytest.mark.parametrize("cut", [0, 1, 7])
async def test_the_bytes_are_those_of_uvicorns_own_protocol(name: str, cut: int) -> None:
    pieces = REQUESTS[name]
    if cut:
        pieces = [piece[i : i + cut] for piece in pieces for i in range(0, len(piece), cut)]
    theirs, ours = Connection(HttpToolsProtocol), Connection(HttpConnection)
    expected = await theirs.feed(*pieces)
    assert expected
    assert await ours.feed(*pieces) == expected
    assert ours.wire.closed == theirs.wire.closed
    await ours.end()


async def test_a_header_that_would_end_its_line_is_not_sent() -> None:
    connection = Connection(HttpConnection)
    sent = await connection.feed(get("/injected"))
    assert sent.startswith(b"HTTP/1.1 500 ")
    assert b"set-cookie" not in sent
    assert connection.wire.closed
    await connection.end()


async def test_a_whole_answer_is_one_write() -> None:
    connection = Connection(HttpConnection)
    await connection.feed(get("/echo"))
    await connection.feed(get("/early"))
    assert connection.wire.writes == 2
    await connection.end()


async def test_what_is_said_after_an_answer_is_not_sent() -> None:
    connection = Connection(HttpConnection)
    sent = await connection.feed(get("/twice"))
    assert sent.count(b"HTTP/1.1") == 1
    assert (await connection.feed(get("/echo"))).count(b"HTTP/1.1") == 2
    await connection.end()


async def test_answers_come_in_the_order_of_the_requests() -> None:
    connection = Connection(HttpConnection)
    assert await connection.feed(get("/slow"), get("/echo?2"), get("/echo?3")) == b""
    assert connection.wire.paused
    connection.site.go_on.set()
    await settled()
    assert not connection.wire.paused
    sent = connection.wire.sent
    assert sent.index(b"slow") < sent.index(b"b'2'") < sent.index(b"b'3'")
    await connection.end()


@pytest.mark.parametrize("behind", [b"", get("/echo")])
async def test_an_application_is_told_that_its_caller_has_gone(behind: bytes) -> None:
    connection = Connection(HttpConnection)
    await connection.feed(get("/until_gone") + behind)
    assert connection.site.left == 0
    await connection.end()
    assert connection.site.left == 1
    assert connection.wire.sent == b""


async def test_a_caller_that_goes_in_the_middle_of_its_body_is_noticed() -> None:
    connection = Connection(HttpConnection)
    await connection.feed(get("/echo", LENGTH, method="POST") + BODY[:3])
    await connection.end()
    assert connection.site.left == 1


async def test_a_large_body_waits_until_it_is_read() -> None:
    connection = Connection(HttpConnection)
    size = 300_000
    await connection.feed(get("/slow") + get("/echo", f"Content-Length: {size}", method="POST"))
    await connection.feed(b"x" * 200_000)
    assert connection.wire.paused
    connection.site.go_on.set()
    await settled()
    assert not connection.wire.paused
    assert b"x" * size in await connection.feed(b"x" * 100_000)
    await connection.end()


async def test_a_slow_reader_holds_up_its_answer() -> None:
    connection = Connection(HttpConnection)
    connection.protocol.pause_writing()
    assert await connection.feed(get("/echo")) == b""
    connection.protocol.resume_writing()
    await settled()
    assert connection.wire.sent.endswith(b"b'' ")
    await connection.end()


async def test_a_slow_reader_that_goes_holds_up_nothing() -> None:
    connection = Connection(HttpConnection)
    connection.protocol.pause_writing()
    await connection.feed(get("/stream"))
    await connection.end()


async def test_a_stop_closes_what_is_quiet_and_lets_the_others_finish() -> None:
    quiet, busy = Connection(HttpConnection), Connection(HttpConnection)
    await quiet.feed(get("/echo"))
    await busy.feed(get("/slow"))
    quiet.protocol.shutdown()
    busy.protocol.shutdown()
    assert quiet.wire.closed
    assert not busy.wire.closed
    busy.site.go_on.set()
    await settled()
    assert busy.wire.closed
    assert b"connection: close\r\n" in busy.wire.sent
    assert busy.wire.sent.endswith(b"slow")


async def test_an_answer_that_is_cut_off_by_a_stop_closes_its_connection() -> None:
    connection = Connection(HttpConnection)
    await connection.feed(get("/slow"))
    for task in connection.state.tasks:
        task.cancel()
    await settled()
    assert connection.wire.sent.startswith(b"HTTP/1.1 500 ")
    assert connection.wire.closed
    await connection.end()


async def test_a_quiet_connection_is_closed_and_a_busy_one_is_not() -> None:
    quiet, busy = Connection(HttpConnection, patience=20), Connection(HttpConnection, patience=20)
    await busy.feed(get("/echo"), get("/slow"))
    await quiet.feed(get("/echo"))
    for each in (quiet, busy):
        await each.time.passes(30)
    assert quiet.wire.closed
    assert not busy.wire.closed
    busy.site.go_on.set()
    await busy.time.passes(50)
    assert busy.wire.closed
    await busy.end()


async def test_a_head_that_does_not_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "MOST_HEAD_BYTES", 1000)
    connection = Connection(HttpConnection)
    sent = await connection.feed(b"GET / HTTP/1.1\r\n", *[b"a: %b\r\n" % (b"x" * 100)] * 20)
    assert sent.startswith(b"HTTP/1.1 431 ")
    assert connection.wire.closed
