"""Calls that may be made: to the very address that was judged, bounded, never passed on."""

import asyncio
import datetime
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from moot.net.outbound import CallFailed, Outbound, OutboundRequest, TargetRefused

NAME = "rates.example.com"


class Shop:
    """An HTTP server on this machine that answers with the bytes it is given."""

    def __init__(self) -> None:
        self.port = 0
        self.asked: list[str] = []
        self.answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"
        self.quiet = False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            self.asked.append((await reader.readuntil(b"\r\n\r\n")).decode())
            if self.quiet:
                await reader.read()
            writer.write(self.answer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def shop(tls: ssl.SSLContext | None = None) -> AsyncIterator[Shop]:
    found = Shop()
    server = await asyncio.start_server(found.serve, "127.0.0.1", 0, ssl=tls)
    found.port = server.sockets[0].getsockname()[1]
    try:
        yield found
    finally:
        server.close()


def to(*places: str) -> Callable[..., Any]:
    async def resolve(name: str, port: int, whose: str) -> list[str]:
        return list(places)

    return resolve


async def test_what_one_server_asks_to_be_kept_is_told_to_no_other_call() -> None:
    """Whoever answers may ask for a cookie; the next call is somebody else's."""
    async with shop() as there:
        there.answer = (
            b"HTTP/1.1 200 OK\r\nset-cookie: a=1\r\nset-cookie: b=2; path=/; domain=127.0.0.1\r\n"
            b"content-length: 2\r\n\r\nhi"
        )
        outbound = Outbound(private=True, resolve=to("127.0.0.1"))
        for name in (NAME, NAME, "other.example.com", "127.0.0.1"):
            await outbound.send(OutboundRequest(method="GET", url=f"http://{name}:{there.port}/"))
        await outbound.aclose()
    assert len(there.asked) == 4
    assert not [asked for asked in there.asked if "cookie" in asked.lower()]


async def test_the_call_goes_to_the_address_under_the_name() -> None:
    async with shop() as there:
        outbound = Outbound(private=True, resolve=to("127.0.0.1"))
        fetched = await outbound.send(
            OutboundRequest(method="GET", url=f"http://{NAME}:{there.port}/a%2Fb?c=d")
        )
        await outbound.aclose()
    assert fetched.status == 200 and fetched.body == b"hi"
    [asked] = there.asked
    assert asked.startswith("GET /a%2Fb?c=d HTTP/1.1\r\n")
    assert f"host: {NAME}:{there.port}" in asked.lower()


async def test_the_name_is_looked_up_once_and_judged_at_every_call() -> None:
    """Whoever answers the second look-up otherwise changes nothing about the first call."""
    answers = [["127.0.0.1"], ["224.0.0.1"]]
    looked: list[str] = []

    async def resolve(name: str, port: int, whose: str) -> list[str]:
        looked.append(name)
        return answers[len(looked) - 1]

    async with shop() as there:
        outbound = Outbound(private=True, resolve=resolve)
        order = OutboundRequest(method="GET", url=f"http://{NAME}:{there.port}/")
        await outbound.send(order)
        assert looked == [NAME]
        with pytest.raises(TargetRefused):
            await outbound.send(order)
        await outbound.aclose()
    assert len(there.asked) == 1


async def test_a_redirect_is_an_answer_and_not_followed() -> None:
    async with shop() as inside, shop() as there:
        there.answer = (
            f"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:{inside.port}/\r\n"
            "content-length: 0\r\n\r\n"
        ).encode()
        outbound = Outbound(private=True, resolve=to("127.0.0.1"))
        fetched = await outbound.send(
            OutboundRequest(method="GET", url=f"http://{NAME}:{there.port}/")
        )
        await outbound.aclose()
    assert fetched.status == 302 and inside.asked == []


async def test_too_much_is_cut_off_and_what_is_packed_is_not_unpacked() -> None:
    async with shop() as there:
        outbound = Outbound(private=True, resolve=to("127.0.0.1"))
        order = OutboundRequest(method="GET", url=f"http://{NAME}:{there.port}/", most_bytes=1000)
        there.answer = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n" + b"x" * 100_000
        with pytest.raises(CallFailed, match="larger than 1000"):
            await outbound.send(order)
        there.answer = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 2\r\n\r\nhi"
        with pytest.raises(CallFailed, match="packed"):
            await outbound.send(order)
        await outbound.aclose()


async def test_an_answer_that_breaks_off_may_have_been_acted_on() -> None:
    async with shop() as there:
        there.answer = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf"
        outbound = Outbound(private=True, resolve=to("127.0.0.1"))
        with pytest.raises(CallFailed) as caught:
            await outbound.send(OutboundRequest(method="POST", url=f"http://{NAME}:{there.port}/"))
        await outbound.aclose()
    assert caught.value.sent


async def test_who_never_answers_is_waited_for_no_longer_than_allowed() -> None:
    async with shop() as there:
        there.quiet = True
        outbound = Outbound(private=True, resolve=to("127.0.0.1"))
        with pytest.raises(CallFailed, match=r"within 0\.2 seconds") as caught:
            await outbound.send(
                OutboundRequest(method="POST", url=f"http://{NAME}:{there.port}/", seconds=0.2)
            )
        await outbound.aclose()
    assert caught.value.sent


async def test_the_next_address_is_tried_when_nobody_is_at_the_first() -> None:
    async with shop() as there:
        outbound = Outbound(private=True, resolve=to("127.0.0.2", "127.0.0.1"))
        fetched = await outbound.send(
            OutboundRequest(method="GET", url=f"http://{NAME}:{there.port}/")
        )
        await outbound.aclose()
    assert fetched.body == b"hi"


def certificate(folder: Path, name: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's side that has a certificate for the name, and a client's that trusts it."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    who = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    day = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(who)
        .issuer_name(who)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(day)
        .not_valid_after(day + datetime.timedelta(days=36500))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = folder / "both.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    file.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(file)
    return server, ssl.create_default_context(cafile=str(file))


async def test_the_certificate_must_be_for_the_name_not_for_the_address(tmp_path: Path) -> None:
    tls, trusted = certificate(tmp_path, NAME)
    seen: list[str | None] = []
    tls.sni_callback = lambda _, name, __: seen.append(name)
    async with shop(tls) as there:
        outbound = Outbound(private=True, resolve=to("127.0.0.1"), verify=trusted)
        fetched = await outbound.send(
            OutboundRequest(method="GET", url=f"https://{NAME}:{there.port}/")
        )
        assert fetched.body == b"hi" and seen == [NAME]
        with pytest.raises(CallFailed) as caught:
            await outbound.send(
                OutboundRequest(method="GET", url=f"https://other.example.com:{there.port}/")
            )
        await outbound.aclose()
    assert not caught.value.sent
    assert len(there.asked) == 1


async def test_a_socket_that_closes_while_it_is_opened_counts_as_no_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """anyio asks such a socket for its address and raises AttributeError."""
    from httpcore2 import AsyncConnectionPool

    async def closed(*_: Any) -> None:
        raise AttributeError("'NoneType' object has no attribute 'getpeername'")

    monkeypatch.setattr(AsyncConnectionPool, "handle_async_request", closed)
    outbound = Outbound(private=True, resolve=to("127.0.0.1"))
    with pytest.raises(CallFailed, match="closed at once") as failure:
        await outbound.send(OutboundRequest(method="GET", url=f"http://{NAME}:9/"))
    await outbound.aclose()
    assert not failure.value.sent
