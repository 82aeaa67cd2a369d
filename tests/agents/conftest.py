"""Models of every kind, behind a provider that is really spoken to; and a shop for tools."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from moot.agents.models.registry import ModelRegistry, ModelSettings
from moot.clock import SystemClock
from moot.config.models import ModelEntry
from tests.support.agents.http_shop import Shop
from tests.support.agents.models import KEY, Waits
from tests.support.model_provider import StandIn, stand_in


@pytest.fixture
async def provider() -> AsyncIterator[StandIn]:
    async with stand_in() as running:
        yield running


@pytest.fixture
def waits() -> Waits:
    return Waits()


@pytest.fixture
async def book_of(provider: StandIn, waits: Waits) -> AsyncIterator[Any]:
    """``book_of("openai", attempts=2)``: a book with one entry, 'it', that the stand-in answers."""
    made: list[ModelRegistry] = []

    def make(
        kind: str, ways: ModelSettings | None = None, prices: Any = None, **entry: Any
    ) -> ModelRegistry:
        where = {"url": provider.url + ("/v1" if kind == "openai" else "")}
        given = {} if kind == "demo" else {**where, "model": "big", "key_env": "IT_KEY"}
        one = ModelEntry(provider=kind, **{**given, **entry})  # type: ignore[arg-type]
        secrets = {"IT_KEY": KEY}
        book = ModelRegistry(
            {"it": one},
            secrets.get,
            SystemClock(),
            ways or ModelSettings(demo_wps=0),
            prices,
            waits,
        )
        made.append(book)
        return book

    yield make
    for book in made:
        await book.aclose()


@pytest.fixture
async def shop() -> AsyncIterator[Shop]:
    found = Shop()
    server = await asyncio.start_server(found.serve, "127.0.0.1", 0)
    found.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    yield found
    server.close()
