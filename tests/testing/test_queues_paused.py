"""A queue that is paused until a time resumes by itself, also after a restart."""

from pathlib import Path

import pytest

from moot import ApiError
from moot.core.events import iso
from moot.testing import Bench

HELLO = "workflow: hello\nsteps: [{set: {done: true}}]\n"


def paused(bench: Bench, hours: float) -> str:
    """A queue with an item that waits; its subscription."""
    bench.client.queues.bind("leads", "hello")
    until = iso(1000 * (bench.clock.millis() + round(hours * 3_600_000)))
    name = bench.client.queues.get("leads").subscription_id
    bench.client.subscriptions.change(name, state="paused", note="quarter close", until=until)
    found = bench.client.queues.get("leads")
    assert (found.state, found.note, found.until) == ("paused", "quarter close", until)
    told = bench.client.queues.push("leads", {"subject": "x"})
    assert told.status == "waiting" and f"is paused until {until} (quarter close)" in told.reason
    return name


def states(bench: Bench) -> list[str]:
    return [item.state for item in bench.client.queues.items("leads").items]


@pytest.mark.parametrize("restarted", [False, True], ids=["running", "restarted"])
def test_it_resumes_at_that_time_and_takes_up_what_has_waited(
    tmp_path: Path, restarted: bool
) -> None:
    with Bench(database=tmp_path / "moot.db").flow(HELLO) as bench:
        name = paused(bench, hours=2)
        bench.advance(hours=1, minutes=59)
        assert states(bench) == ["waiting"]
        if restarted:
            bench.restart()
        bench.advance(minutes=2)
        assert states(bench) == ["delivered"]
        found = bench.client.queues.get("leads")
        assert (found.state, found.note, found.until) == ("active", "", None)
        changes = bench.client.subscriptions.get(name).state_changes
        told = [(each.payload.to_state, each.by == "moot") for each in changes]
        assert told[-2:] == [("paused", False), ("active", True)]
        assert len({each.event_id for each in changes}) == len(changes)


def test_a_pause_ends_in_the_future_and_with_whoever_ends_it_first(tmp_path: Path) -> None:
    with Bench().flow(HELLO) as bench:
        name = paused(bench, hours=2)
        change = bench.client.subscriptions.change
        for given, wrong in (
            ({"state": "paused", "until": iso(bench.clock.micros())}, "has passed"),
            ({"state": "paused", "until": "monday"}, "no ISO time"),
            ({"state": "paused", "until": "2031-01-01T00:00"}, "needs a time zone"),
            ({"state": "active", "until": "2031-01-01T00:00Z"}, "end of a pause"),
        ):
            with pytest.raises(ApiError, match=wrong):
                change(name, **given)
        change(name, state="paused")
        bench.advance(hours=3)
        assert states(bench) == ["waiting"], "the newer pause has no end"
        change(name, state="active")
        bench.advance(seconds=1)
        assert states(bench) == ["delivered"]


def test_a_queue_that_nobody_takes_from_does_not_resume(tmp_path: Path) -> None:
    with Bench().flow(HELLO) as bench:
        paused(bench, hours=1)
        bench.client.queues.unbind("leads")
        bench.advance(hours=2)
        found = bench.client.queues.get("leads")
        assert (found.state, found.until, states(bench)) == ("paused", None, ["waiting"])


def test_a_time_that_has_passed_makes_nobody_look_for_ever() -> None:
    """Of a queue that nobody takes from a pause has no end; it is looked at now and then."""
    with Bench() as bench:
        bench.client.queues.push("leads", {"subject": "x"})
        until = iso(1000 * (bench.clock.millis() + 1000))
        name = bench.client.queues.get("leads").subscription_id
        bench.client.subscriptions.change(name, state="paused", until=until)
        bench.advance(hours=1)
        courier = bench.hosting.services.triggers.courier
        due = bench.hosting.loop.call(courier.next_due())
        assert due is None and states(bench) == ["waiting"]
