"""Where calls may go: whatever an address looks like, nothing inside is ever reached."""

import asyncio
import ipaddress
from collections.abc import AsyncIterator

import hypothesis.strategies as st
import pytest
from hypothesis import given

from moot.net.outbound import CallFailed, Order, Outbound
from moot.net.targets import TargetRefused, is_public, target

PUBLIC = "93.184.216.34"

#: names that a resolver answers so: inside, or inside among others
NAMES = {
    "loopback.example.com": ["127.0.0.1"],
    "private.example.com": ["10.1.2.3"],
    "both.example.com": [PUBLIC, "127.0.0.1"],
    "late.example.com": [PUBLIC, PUBLIC, "::1"],
    "mapped.example.com": ["::ffff:127.0.0.1"],
    "mapped-hex.example.com": ["::ffff:7f00:1"],
    "compatible.example.com": ["::127.0.0.1"],
    "6to4.example.com": ["2002:7f00:0001::1"],
    "teredo.example.com": ["2001:0:7f00:1::1"],
    "nat64.example.com": ["64:ff9b::7f00:1"],
    "nat64-local.example.com": ["64:ff9b:1::7f00:1"],
    "isatap.example.com": ["fe80::5efe:7f00:1"],
    "link.example.com": ["169.254.169.254"],
    "link6.example.com": ["fe80::1%lo"],
    "unique.example.com": ["fd00:ec2::254"],
    "cgnat.example.com": ["100.64.0.1"],
    "multicast.example.com": ["224.0.0.1"],
    "multicast6.example.com": ["ff02::1"],
    "broadcast.example.com": ["255.255.255.255"],
    "zero.example.com": ["0.0.0.0"],
    "zero6.example.com": ["::"],
    "nowhere.example.com": [],
    "nonsense.example.com": ["localhost"],
    "cloud.example.com": ["168.63.129.16"],
}

TRICKY = [
    *(f"https://{name}:PORT/" for name in NAMES),
    "https://127.0.0.1:PORT/", "https://127.1:PORT/", "https://127.0.1:PORT/",
    "https://2130706433:PORT/", "https://017700000001:PORT/", "https://0x7f000001:PORT/",
    "https://0x7f.1:PORT/", "https://0x7f.0.0.0x1:PORT/", "https://0177.0.0.1:PORT/",
    "https://127.0.0.01:PORT/", "https://127.0.0.1.:PORT/", "https://00000177.1:PORT/",
    "https://0:PORT/", "https://0.0.0.0:PORT/", "https://[::]:PORT/", "https://[::1]:PORT/",
    "https://[0:0:0:0:0:0:0:1]:PORT/", "https://[::ffff:127.0.0.1]:PORT/",
    "https://[::ffff:7f00:1]:PORT/", "https://[::127.0.0.1]:PORT/", "https://[2002:7f00:1::]:PORT/",
    "https://[64:ff9b::127.0.0.1]:PORT/", "https://[fe80::1%25lo]:PORT/", "https://[::1%lo]:PORT/",
    "https://localhost:PORT/", "https://LOCALHOST:PORT/", "https://localhost.:PORT/",
    "https://a.localhost:PORT/", "https://printer.local:PORT/", "https://db.internal:PORT/",
    "https://metadata:PORT/", "https://metadata.google.internal/", "https://169.254.169.254/",
    "https://user@127.0.0.1:PORT/", "https://example.com:x@127.0.0.1:PORT/",
    "https://example.com@127.0.0.1:PORT/", "https://127.0.0.1:PORT@example.com/",
    "https://example.com\\@127.0.0.1:PORT/", "https://127.0.0.1\\.example.com:PORT/",
    "https://127.0.0.1%2eexample.com:PORT/", "https://%31%32%37.0.0.1:PORT/",
    "https://\uff11\uff12\uff17.0.0.1:PORT/", "https://\u24dbocalhost:PORT/",
    "https://127\u30020\u30020\u30021:PORT/",
    "https://127.0.0.1 .example.com:PORT/", "https://exa\tmple@127.0.0.1:PORT/",
    "https://\n127.0.0.1:PORT/", " https://127.0.0.1:PORT/", "https:///127.0.0.1:PORT/",
    "https://:PORT/", "https:127.0.0.1:PORT/", "//127.0.0.1:PORT/", "127.0.0.1:PORT",
    "http://127.0.0.1:PORT/", "http://loopback.example.com:PORT/", "ftp://127.0.0.1:PORT/",
    "file:///etc/passwd", "gopher://127.0.0.1:PORT/_x", "unix:///var/run/docker.sock",
    "https://example.com:22/", "https://example.com:6379/", "https://example.com:0/",
    "https://example.com:/", "https://example.com:99999/", "https://-.example.com/",
    "https://a..example.com/", "https://" + "a" * 300 + ".com/", "https://[127.0.0.1]:PORT/", "",
]  # fmt: skip


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
                Order(method="GET", url=url.replace("PORT", str(inside.port)), seconds=5)
            )
    await outbound.aclose()
    assert inside.hits == 0


@pytest.mark.parametrize("url", ["https://example.com", "https://Example.com.:8443/a?b=c"])
def test_an_ordinary_address_is_taken(url: str) -> None:
    found = target(url)
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
            found = target(url)
        except TargetRefused:
            continue
        assert (found.scheme == "https" and "." in found.host) or ":" in found.host


async def test_multicast_and_nowhere_are_refused_whatever_is_allowed() -> None:
    outbound = Outbound(private=True, resolve=resolve)
    for name in ("multicast.example.com", "multicast6.example.com", "zero.example.com"):
        with pytest.raises(TargetRefused):
            await outbound.send(Order(method="GET", url=f"http://{name}:9/"))


async def test_a_name_that_cannot_be_looked_up_is_no_refusal() -> None:
    with pytest.raises(CallFailed) as caught:
        await Outbound().send(Order(method="GET", url="https://no-such-name.invalid/"))
    assert not caught.value.sent
