"""Answers about searches and catch-ups."""

import msgspec

from moot.wire.search import CatchUpView


def test_a_catch_up_by_a_priced_model_can_be_read() -> None:
    usage = {"calls": 1, "inputTokens": 9, "cost": 0.25, "price": {"input": 1.0, "currency": "USD"}}
    answer = {
        "catchUpId": "run_x", "threadId": "th_x", "from": 1, "to": 2, "hidden": 0,
        "author": "host:ada", "reader": "user", "private": True, "status": "completed",
        "askedAt": "2026-01-01T00:00:00.000000Z", "usage": usage,
    }  # fmt: skip
    assert msgspec.convert(answer, CatchUpView).usage == usage
