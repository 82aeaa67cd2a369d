"""A body that is too large: who sends all of it first still reads why it was refused."""

import socket
import urllib.error
import urllib.request
from contextlib import suppress

import httpx2 as httpx
import pytest

from tests.support.api.caller import Api

LARGE = 9_000_000


def connected(api: Api) -> socket.socket:
    address = httpx.URL(api.url)
    return socket.create_connection((address.host, int(address.port or 0)), timeout=30)


def head(api: Api, path: str, *headers: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: x", f"Authorization: Bearer {api.key}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


def everything(connection: socket.socket) -> bytes:
    found = bytearray()
    while piece := connection.recv(1 << 16):
        found += piece
    return bytes(found)


def test_a_caller_that_closes_after_each_request_reads_the_refusal(api: Api) -> None:
    asked = urllib.request.Request(
        f"{api.url}/v1/runs", b" " * LARGE, {"Authorization": f"Bearer {api.key}"}
    )
    with pytest.raises(urllib.error.HTTPError) as refused, urllib.request.urlopen(asked):
        pass
    assert refused.value.code == 413 and b"payload_too_large" in refused.value.read()


def test_what_follows_the_last_answer_is_not_done(api: Api) -> None:
    second = b'{"title":"After the end"}'
    more = head(api, "/v1/host/moot/threads", f"Content-Length: {len(second)}") + second
    with connected(api) as connection:
        connection.sendall(head(api, "/v1/runs", f"Content-Length: {LARGE}", "Connection: close"))
        assert connection.recv(12) == b"HTTP/1.1 413"
        told = everything(connection)  # the answer ends, though the request does not
        assert b"connection: close" in told
        with suppress(OSError):  # it may be closed before all of this is out
            connection.sendall(b" " * LARGE + more)
            assert everything(connection) == b""
    found = api.get("/v1/host/moot/threads?limit=20").json()["threads"]
    assert "After the end" not in [each["title"] for each in found]


def test_no_more_than_a_bound_of_it_is_taken(api: Api) -> None:
    with connected(api) as connection:
        connection.sendall(
            head(api, "/v1/runs", "Content-Length: 99999999999", "Connection: close")
        )
        assert connection.recv(12) == b"HTTP/1.1 413"
        piece = b" " * 1_000_000
        with pytest.raises(OSError, match=r"reset|[Bb]roken"):
            for _ in range(200):
                connection.sendall(piece)
