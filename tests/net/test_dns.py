"""Names that are never answered cost whoever asks for them, and nobody else."""

import asyncio
import threading
from collections.abc import Iterator

import pytest

from moot.net import dns
from moot.net.dns import CallFailed, DnsLookups, LookupNotStarted
from moot.net.outbound import Outbound, OutboundRequest


class Resolver:
    """Silent about some names for as long as a test likes."""

    def __init__(self) -> None:
        self.speaks = threading.Event()
        self.asked: list[str] = []

    def __call__(self, name: str, port: int) -> list[str]:
        self.asked.append(name)
        if name.endswith("silent.example"):
            self.speaks.wait(30)
        if name.endswith("unknown.example"):
            raise OSError(-2, "Name or service not known")
        return ["203.0.114.1"]


async def asked_for(resolver: Resolver, count: int) -> list[str]:
    """What the resolver was asked, once its threads have all begun: a machine may be slow."""
    async with asyncio.timeout(60):
        while len(resolver.asked) < count:
            await asyncio.sleep(0.002)
    return resolver.asked


@pytest.fixture
def resolver() -> Iterator[Resolver]:
    found = Resolver()
    yield found
    found.speaks.set()


async def test_a_tenant_whose_names_are_silent_uses_up_its_own_share_only(
    resolver: Resolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dns, "SECONDS", 0.2)
    names = DnsLookups(resolver)
    silent = [names.find(f"h{number}.silent.example", 443, "evil") for number in range(40)]
    told = await asyncio.gather(*silent, return_exceptions=True)
    assert all(isinstance(each, CallFailed) and not each.sent for each in told)
    assert sum(isinstance(each, LookupNotStarted) for each in told) == 40 - dns.SHARE
    assert len(await asked_for(resolver, dns.SHARE)) == dns.SHARE
    with monkeypatch.context() as patient:
        patient.setattr(dns, "SECONDS", 20)
        assert await names.find("good.example", 443, "good") == ["203.0.114.1"]
    with pytest.raises(LookupNotStarted):
        await names.find("good.example", 443, "evil")


async def test_a_share_comes_free_when_the_look_up_ends_not_when_nobody_waits_any_more(
    resolver: Resolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dns, "SHARE", 1)
    monkeypatch.setattr(dns, "SECONDS", 0.05)
    names = DnsLookups(resolver)
    with pytest.raises(CallFailed, match="could not be looked up within"):
        await names.find("a.silent.example", 443, "one")
    with pytest.raises(LookupNotStarted):
        await names.find("good.example", 443, "one")
    monkeypatch.setattr(dns, "SECONDS", 20)
    waits = asyncio.create_task(names.find("good.example", 443, "one"))
    resolver.speaks.set()
    assert await waits == ["203.0.114.1"]


async def test_there_is_an_end_to_how_many_are_asked_for_at_a_time(
    resolver: Resolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dns, "MOST", 3)
    monkeypatch.setattr(dns, "SECONDS", 0.1)
    names = DnsLookups(resolver)
    asked = [names.find("a.silent.example", 443, f"tenant{number}") for number in range(9)]
    told = await asyncio.gather(*asked, return_exceptions=True)
    assert sum(isinstance(each, LookupNotStarted) for each in told) == 6
    assert len(await asked_for(resolver, 3)) == 3


async def test_many_who_ask_for_one_name_at_a_time_share_an_answer(resolver: Resolver) -> None:
    names = DnsLookups(resolver)
    asked = [asyncio.create_task(names.find("a.silent.example", 443, "one")) for _ in range(9)]
    await asyncio.sleep(0)
    resolver.speaks.set()
    assert await asyncio.gather(*asked) == [["203.0.114.1"]] * 9
    assert resolver.asked == ["a.silent.example"]


async def test_a_name_that_nobody_knows_is_told_of_in_words(resolver: Resolver) -> None:
    for name in ("unknown.example", "also.unknown.example"):
        with pytest.raises(CallFailed, match="cannot be looked up: Name or service"):
            await DnsLookups(resolver).find(name, 443, "")


async def test_a_call_whose_name_is_silent_was_not_sent(
    resolver: Resolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    outbound = Outbound(resolve=DnsLookups(resolver).find)
    with pytest.raises(CallFailed) as caught:
        await outbound.send(
            OutboundRequest(method="GET", url="https://a.silent.example/", seconds=0.05)
        )
    assert not caught.value.sent
