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


# -- notices ---------------------------------------------------------------------------------------


OPEN = "workflow: brief\nsteps: [{set: {done: true}}]\n"
PICKY = "workflow: brief\ninputs: {topic: str}\nsteps: [{set: {done: true}}]\n"
UTC_DAILY = {"workflowId": "brief", "kind": "words", "words": "daily 08:30"}


def test_a_run_that_could_not_begin_is_a_notice_until_it_begins() -> None:
    with Bench().flow(OPEN) as bench:
        schedules, inbox = bench.client.schedules, bench.client.inbox
        name = schedules.make(UTC_DAILY).schedule_id
        bench.flow(PICKY)
        before = inbox.list().revision
        bench.advance(days=2)
        found = inbox.list()
        assert found.revision > before
        [dead] = schedules.fires(name, state="missed,dead").fires
        assert [(each.kind, each.id) for each in found.notices] == [("failed-fire", dead.fire_id)]
        assert schedules.get(name).state == "dead-lettered", "it stands still until somebody looks"
        assert schedules.run(name, fire=dead.fire_id).run_id is None, "missing is missing still"
        assert len(inbox.list().notices) == 1
        bench.flow(OPEN)
        assert schedules.run(name, fire=dead.fire_id).run_id is not None
        after = inbox.list()
        assert after.notices == [] and after.revision > found.revision


def test_a_run_that_could_not_begin_is_let_go_with_its_notice() -> None:
    with Bench().flow(OPEN) as bench:
        schedules, inbox = bench.client.schedules, bench.client.inbox
        name = schedules.make(UTC_DAILY).schedule_id
        bench.flow(PICKY)
        bench.advance(days=2)
        before = inbox.list()
        schedules.skip(name, fire=before.notices[0].id)
        after = inbox.list()
        assert after.notices == [] and after.revision > before.revision
        bench.flow(OPEN)
        schedules.resume(name)
        bench.advance(days=1)
        assert schedules.get(name).last_run_id is not None
