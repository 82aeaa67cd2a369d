"""Functions that block, in threads of their own: whoever comes back late finds nobody."""

import asyncio
import threading
from typing import Any

import pytest

from moot.blocking import run_in_thread


def test_what_returns_just_after_its_loop_is_closed_disturbs_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate, failures = threading.Event(), list[Any]()
    monkeypatch.setattr(threading, "excepthook", failures.append)
    before = set(threading.enumerate())
    loop = asyncio.new_event_loop()

    async def given_up() -> None:
        task = asyncio.ensure_future(run_in_thread(gate.wait, {"timeout": 20}))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])

    loop.run_until_complete(given_up())
    [thread] = set(threading.enumerate()) - before
    with monkeypatch.context() as closing:
        closing.setattr(loop, "is_closed", lambda: False)  # it was not when it was asked
        loop.close()
        gate.set()
        thread.join(20)
    assert not thread.is_alive() and failures == []
