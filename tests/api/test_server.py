"""What the server does once an hour goes on after a failure."""

import asyncio
import contextlib

import pytest

from moot.api.server import forget_expired_records
from moot.api.services import Services
from moot.core.errors import StorageFailed


async def test_upkeep_goes_on_after_a_failure_and_says_so(
    services: Services, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    again = asyncio.Event()
    calls = 0

    async def forget(before: int) -> int:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise StorageFailed("The disk is full.")
        again.set()
        return 0

    monkeypatch.setattr(services.store, "forget_receipts", forget)
    task = asyncio.ensure_future(forget_expired_records(services, every=0))
    await asyncio.wait_for(again.wait(), 60)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert "The disk is full." in caplog.text
