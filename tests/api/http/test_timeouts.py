"""A caller that owes something is waited for, but not for ever; an answer takes what it takes."""

import json

import pytest

from moot.api.http.connection import BODY_SECONDS, HEAD_SECONDS, HttpConnection
from tests.support.api.connection import BODY, LENGTH, Connection, get, settled

#: seconds of the connection's own time
SHORT = HEAD_SECONDS
assert SHORT == BODY_SECONDS


def refused_408(connection: Connection) -> bool:
    head, _, body = connection.wire.sent.partition(b"\r\n\r\n")
    said = json.loads(body)
    return head.startswith(b"HTTP/1.1 408 ") and said["error"] == "bad_request" and said["message"]


async def drip(connection: Connection, piece: bytes, seconds: float) -> None:
    """The piece over and over, each time long before anybody loses patience."""
    end = connection.time.time() + seconds
    while connection.time.time() < end and not connection.wire.closed:
        await connection.feed(piece)
        await connection.time.passes(SHORT / 10)


async def test_a_connection_that_says_nothing_is_closed_without_a_word() -> None:
    connection = Connection(HttpConnection, patience=2 * SHORT)
    await connection.time.passes(1.5 * SHORT)
    assert not connection.wire.closed
    await connection.time.passes(SHORT)
    assert connection.wire.closed
    assert connection.wire.sent == b""
    await connection.end()


@pytest.mark.parametrize("before", [b"", get("/echo")], ids=["at first", "after a request"])
async def test_empty_lines_are_nothing_said(before: bytes) -> None:
    connection = Connection(HttpConnection, patience=SHORT)
    answered = await connection.feed(before)
    await drip(connection, b"\r\n", 3 * SHORT)
    assert connection.wire.closed
    assert connection.wire.sent == answered
    await connection.end()


@pytest.mark.parametrize("before", [b"", get("/empty")], ids=["at first", "after a request"])
async def test_half_a_head_is_answered_408(before: bytes) -> None:
    connection = Connection(HttpConnection)
    answered = len(await connection.feed(before))
    await connection.feed(get("/echo")[:-2])
    await connection.time.passes(SHORT / 2)
    assert not connection.wire.closed
    await connection.time.passes(SHORT)
    assert connection.wire.closed
    connection.wire.sent = connection.wire.sent[answered:]
    assert refused_408(connection)
    await connection.end()


async def test_a_head_that_comes_in_drops_has_no_more_time_than_another() -> None:
    connection = Connection(HttpConnection)
    await connection.feed(b"GET /echo HTTP/1.1\r\n")
    await drip(connection, b"a: b\r\n", 3 * SHORT)
    assert refused_408(connection)
    await connection.end()


@pytest.mark.parametrize("asks_first", [[], ["Expect: 100-continue"]])
async def test_a_body_that_stops_half_way_is_answered_408(asks_first: list[str]) -> None:
    connection = Connection(HttpConnection)
    await connection.feed(get("/echo", LENGTH, *asks_first, method="POST"))
    connection.wire.sent = b""
    await connection.feed(BODY[:3])
    await connection.time.passes(2 * SHORT)
    assert refused_408(connection)
    assert connection.wire.closed
    await connection.end()
    assert connection.site.left == 1


async def test_chunks_without_content_are_no_progress() -> None:
    connection = Connection(HttpConnection)
    await connection.feed(get("/echo", "Transfer-Encoding: chunked", method="POST") + b"5;")
    await drip(connection, b"x", 3 * SHORT)
    assert refused_408(connection)
    await connection.end()


async def test_a_slow_body_that_goes_on_is_waited_for() -> None:
    connection = Connection(HttpConnection)
    await connection.feed(get("/echo", LENGTH, method="POST"))
    for i in range(10):
        await connection.time.passes(SHORT / 4)
        await connection.feed(BODY[i : i + 1])
    assert connection.wire.sent.endswith(BODY)
    await connection.end()


async def test_the_rest_of_a_body_that_is_answered_already_is_not_waited_for_ever() -> None:
    connection = Connection(HttpConnection)
    sent = await connection.feed(get("/early", "Content-Length: 100000", method="POST"))
    await drip(connection, b"x", 3 * SHORT)
    assert connection.wire.closed
    assert connection.wire.sent == sent
    await connection.end()


@pytest.mark.parametrize(
    "behind", [b"", b"GET /half", get("/echo", LENGTH, method="POST") + BODY[:3]],
    ids=["nothing", "half a head", "half a body"],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/slow", "/until_gone"])
async def test_an_answer_under_way_takes_what_it_takes(path: str, behind: bytes) -> None:
    connection = Connection(HttpConnection, patience=SHORT)
    await connection.feed(get(path), behind)
    await connection.time.passes(3 * SHORT)
    assert not connection.wire.closed
    connection.site.go_on.set()
    await connection.end()


async def test_a_body_that_nobody_reads_holds_up_no_answer() -> None:
    connection = Connection(HttpConnection)
    await connection.feed(get("/slow", LENGTH) + BODY[:3])
    await connection.time.passes(3 * SHORT)
    connection.site.go_on.set()
    await settled()
    assert connection.wire.sent.endswith(b"slow")
    await connection.end()


async def test_a_stream_goes_on_whatever_is_missing_of_its_requests_body() -> None:
    connection = Connection(HttpConnection)
    await connection.feed(get("/listen", LENGTH) + BODY[:3])
    await connection.time.passes(3 * SHORT)
    assert not connection.wire.closed
    await connection.end()
    assert connection.site.left == 1


async def test_time_runs_from_when_the_body_is_asked_for() -> None:
    connection = Connection(HttpConnection)
    await connection.feed(get("/slow") + get("/echo", LENGTH, method="POST"))
    await connection.time.passes(2 * SHORT)
    connection.site.go_on.set()
    await connection.time.passes(SHORT / 2)
    assert (await connection.feed(BODY)).endswith(BODY)
    await connection.end()


async def test_what_breaks_off_behind_an_answer_says_nothing_into_it() -> None:
    connection = Connection(HttpConnection)
    sent = await connection.feed(get("/listen"))
    assert sent
    assert await connection.feed(b"this is not HTTP\r\n\r\n") == sent
    assert connection.wire.closed
    await connection.end()
