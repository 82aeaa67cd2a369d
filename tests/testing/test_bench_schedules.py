"""Schedules on a bench: the clock is set forward, or the host was away."""

from pathlib import Path

from moot.core.events import iso
from moot.testing import Bench

BRIEF = "workflow: brief\nsteps: [{set: {done: true}}]\n"
DAY_MS = 86_400_000
DAILY = {"workflowId": "brief", "kind": "words", "words": "daily 08:30 Europe/Berlin"}


def test_what_falls_due_while_the_clock_is_set_forward_is_started_in_time() -> None:
    with Bench().flow(BRIEF) as bench:
        made = bench.client.schedules.make(DAILY)
        bench.advance(days=7)
        fires = bench.client.schedules.fires(made.schedule_id).fires
        assert [fire.state for fire in fires] == ["delivered"] * 7
        assert {fire.slot[11:16] for fire in fires} == {"07:30"}
        assert {fire.cause for fire in fires} == {"slot"}


def test_a_host_that_was_away_catches_up_once(tmp_path: Path) -> None:
    with Bench(database=tmp_path / "moot.db").flow(BRIEF) as bench:
        caught = bench.client.schedules.make(DAILY).schedule_id
        left = bench.client.schedules.make({**DAILY, "catchUp": "none"}).schedule_id
        bench.restart()
        bench.clock.forward(3 * 86_400 + 12 * 3600)
        bench.advance(seconds=1)
        schedules = bench.client.schedules
        assert sorted((fire.state, fire.count) for fire in schedules.fires(caught).fires) == [
            ("delivered", 1), ("skipped", 3),
        ]  # fmt: skip
        [missed] = schedules.fires(left).fires
        assert (missed.state, missed.count) == ("missed", 4)
        [notice] = bench.client.inbox.list().notices
        assert (notice.kind, notice.schedule_id, notice.id) == ("missed-fire", left, missed.fire_id)
        assert notice.text == "4 missed fires, the last at 2030-01-04T07:30:00.000000Z"
        schedules.run(left, fire=missed.fire_id)
        assert bench.client.inbox.list().notices == []
        assert [fire.state for fire in schedules.fires(left).fires] == ["delivered", "skipped"]


def test_a_schedule_that_is_paused_anew_by_its_subscription_is_paused_until_then() -> None:
    with Bench().flow(BRIEF) as bench:
        made = bench.client.schedules.make(DAILY).schedule_id
        [listed] = bench.client.subscriptions.list(source="schedule").subscriptions
        name = listed.subscription_id
        ends = [iso(1000 * (bench.clock.millis() + days * DAY_MS)) for days in (9, 2)]
        for until in ends:
            found = bench.client.subscriptions.change(name, state="paused", note="x", until=until)
            assert (found.bound.note, found.bound.until) == ("x", until)
        bench.advance(days=3)
        assert len(bench.client.schedules.fires(made, state="delivered").fires) == 1
        assert bench.client.subscriptions.get(name).bound.until is None
