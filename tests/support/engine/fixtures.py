"""Hosts on every store, as fixtures."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.engine.hosts import Place


@pytest.fixture(params=["memory", "sqlite"])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    found = Place(request.param, tmp_path)
    await found.open()
    yield found
    await found.aclose()


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Place]:
    found = Place("memory", tmp_path)
    await found.open()
    yield found
    await found.aclose()


@pytest.fixture
async def sqlite(tmp_path: Path) -> AsyncIterator[Place]:
    found = Place("sqlite", tmp_path)
    await found.open()
    yield found
    await found.aclose()
