"""A head that could be read in two ways is refused, and what stands beside a body counts."""

import json

import pytest

from moot.api.app import App
from moot.api.http import connection as http
from moot.api.http.connection import HttpConnection
from moot.api.services import Services
from tests.support.api.connection import BODY, Connection, get, settled

CHUNKED = get("/echo", "Transfer-Encoding: chunked", method="POST")


def head(*lines: str, version: str = "1.1") -> bytes:
    return "\r\n".join([f"GET /echo HTTP/{version}", *lines, "", ""]).encode()


async def refusal(*pieces: bytes) -> int:
    """The status of the only answer, which is in our shape and ends the connection."""
    connection = Connection(HttpConnection)
    sent = await connection.feed(*pieces)
    assert sent.count(b"HTTP/1.1 ") == 1
    start, _, body = sent.partition(b"\r\n\r\n")
    assert connection.wire.closed
    assert b"\r\nconnection: close" in start
    assert sorted(json.loads(body)) == ["error", "message"]
    await connection.end()
    return int(start.split()[1])


@pytest.mark.parametrize("lines", [[], ["Host: a", "Host: a"], ["Host: a", "host: b"]])
async def test_a_request_names_its_host_once(lines: list[str]) -> None:
    assert await refusal(head(*lines)) == 400


async def test_an_old_request_may_leave_out_its_host_but_not_name_two() -> None:
    connection = Connection(HttpConnection)
    assert (await connection.feed(head(version="1.0"))).startswith(b"HTTP/1.1 200 ")
    await connection.end()
    assert await refusal(head("Host: a", "Host: b", version="1.0")) == 400


async def test_a_request_has_one_key() -> None:
    keys = ["Authorization: Bearer a", "authorization: Bearer b"]
    assert await refusal(head("Host: a", *keys)) == 400
    assert await refusal(head("Host: a", keys[0], keys[0])) == 400


@pytest.mark.parametrize("wish", ["gzip", "", "100-continue, gzip"])
async def test_an_expectation_nobody_can_meet_is_417(wish: str) -> None:
    assert await refusal(get("/echo", f"Expect: {wish}")) == 417


async def test_a_refused_head_waits_for_the_answers_before_it() -> None:
    connection = Connection(HttpConnection)
    assert await connection.feed(get("/slow") + head() + get("/echo")) == b""
    connection.site.go_on.set()
    await settled()
    answers = connection.wire.sent.split(b"HTTP/1.1 ")[1:]
    assert [answer[:3] for answer in answers] == [b"200", b"400"]
    assert connection.wire.closed
    await connection.end()


async def test_a_trailer_is_no_header() -> None:
    """It comes when the request has been believed already."""
    seen = []
    connection = Connection(HttpConnection)

    async def note(scope: object, receive: object, send: object) -> None:
        seen.extend(scope["headers"])  # type: ignore[index]

    connection.protocol.app = note
    await connection.feed(CHUNKED + b"0\r\nAuthorization: Bearer a\r\n\r\n")
    assert [name for name, _ in seen] == [b"host", b"transfer-encoding"]
    await connection.end()


@pytest.mark.parametrize(
    "piece", [b"1;" + b"x" * 100 + b"\r\na\r\n", b"trailer: " + b"x" * 90 + b"\r\n"],
    ids=["extensions", "trailers"],
)  # fmt: skip
async def test_what_stands_beside_a_body_counts_as_its_head_does(
    piece: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "MOST_HEAD_BYTES", 1000)
    begin = b"0\r\n" if piece.startswith(b"trailer") else b""
    assert await refusal(CHUNKED + begin, *[piece] * 20) == 431


async def test_one_extension_without_an_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "MOST_HEAD_BYTES", 1000)
    assert await refusal(CHUNKED, b"5;", *[b"x" * 100] * 20) == 431


@pytest.mark.parametrize("cut", [1, 60, 1_000_000])
async def test_a_body_of_many_small_chunks_is_none_of_that(
    cut: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "MOST_HEAD_BYTES", 1000)
    whole = CHUNKED + b"1\r\nx\r\n" * 600 + b"100\r\n%b\r\n" % (b"y" * 256) + b"0\r\n\r\n"
    connection = Connection(HttpConnection)
    sent = await connection.feed(*(whole[i : i + cut] for i in range(0, len(whole), cut)))
    assert sent.endswith(b"x" * 600 + b"y" * 256)
    await connection.end()


async def test_what_came_in_one_piece_with_a_head_is_not_counted_as_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http, "MOST_HEAD_BYTES", 1000)
    connection = Connection(HttpConnection)
    post = get("/echo", "Content-Length: 2000", method="POST") + BODY * 200
    await connection.feed(post + get("/echo") * 30 + get("/echo")[:-2], b"\r\n")
    for _ in range(10):
        await settled()
    assert connection.wire.sent.count(b"HTTP/1.1 200 ") == 32
    await connection.end()


@pytest.mark.parametrize(
    "path", ["/v1%2fhost/moot/keys", "/v1/host%2Fmoot/keys", "/v1/host/moot%5Ckeys", "/v1%5cruns"]
)
async def test_a_slash_that_is_escaped_parts_nothing(
    services: Services, bearer: str, path: str
) -> None:
    assert await status_of(services, path, bearer) == 404
    assert await status_of(services, path) == 401


async def test_other_escapes_are_read(services: Services, bearer: str) -> None:
    assert await status_of(services, "/v1/host/moot/%6beys", bearer) == 200


async def status_of(services: Services, path: str, bearer: str | None = None) -> int:
    connection = Connection(HttpConnection)
    connection.protocol.app = App(services)
    await connection.feed(get(path, *([f"Authorization: {bearer}"] if bearer else [])))
    await connection.end()
    return int(connection.wire.sent.split()[1])
