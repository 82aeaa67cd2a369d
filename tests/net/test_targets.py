"""Where calls may go: whatever an address looks like, nothing inside is ever reached."""

import asyncio
import ipaddress
from collections.abc import AsyncIterator

import hypothesis.strategies as st
import pytest
from hypothesis import given

from moot.net.outbound import CallFailed, Outbound, OutboundRequest
from moot.net.targets import TargetRefused, is_public, parse_target
from tests.support.addresses import NAMES, PUBLIC, TRICKY


async def resolve(name: str, port: int, whose: str) -> list[str]:
    return NAMES.get(name, [PUBLIC])


class Listener:
    """Somebody inside whom nobody may reach."""

    def __init__(self) -> None:
        self.hits = 0
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.hits += 1
        writer.close()


@pytest.fixture
async def inside() -> AsyncIterator[Listener]:
    listener = Listener()
    server = await asyncio.start_server(listener.serve, None, 0)
    listener.port = server.sockets[0].getsockname()[1]
    yield listener
    server.close()


async def test_no_address_however_it_is_written_reaches_anything_inside(inside: Listener) -> None:
    assert len(TRICKY) >= 60
    outbound = Outbound(resolve=resolve)
    for url in TRICKY:
        with pytest.raises(TargetRefused):
            await outbound.send(
                OutboundRequest(method="GET", url=url.replace("PORT", str(inside.port)), seconds=5)
            )
    await outbound.aclose()
    assert inside.hits == 0


@pytest.mark.parametrize("url", ["https://example.com", "https://Example.com.:8443/a?b=c"])
def test_an_ordinary_address_is_taken(url: str) -> None:
    found = parse_target(url)
    assert found.host == "example.com" and found.rest in ("/", "/a?b=c")


@given(st.ip_addresses())
def test_what_counts_as_public_is_never_more_than_python_thinks(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    if is_public(address):
        assert not (address.is_private or address.is_loopback or address.is_link_local)
        assert not (address.is_multicast or address.is_reserved or address.is_unspecified)
        assert getattr(address, "ipv4_mapped", None) is None
        assert getattr(address, "sixtofour", None) is None
        assert getattr(address, "teredo", None) is None


@given(st.text(max_size=60))
def test_any_text_is_a_target_or_refused(text: str) -> None:
    for url in (text, f"https://{text}", f"https://example.com/{text}"):
        try:
            found = parse_target(url)
        except TargetRefused:
            continue
        assert (found.scheme == "https" and "." in found.host) or ":" in found.host


async def test_multicast_and_nowhere_are_refused_whatever_is_allowed() -> None:
    outbound = Outbound(private=True, resolve=resolve)
    for name in ("multicast.example.com", "multicast6.example.com", "zero.example.com"):
        with pytest.raises(TargetRefused):
            await outbound.send(OutboundRequest(method="GET", url=f"http://{name}:9/"))


async def test_a_name_that_cannot_be_looked_up_is_no_refusal() -> None:
    with pytest.raises(CallFailed) as caught:
        await Outbound().send(OutboundRequest(method="GET", url="https://no-such-name.invalid/"))
    assert not caught.value.sent
