"""Notices of schedules on a bench: a run that could not begin is listed, tried again, let go."""

from moot.testing import Bench

OPEN = "workflow: brief\nsteps: [{set: {done: true}}]\n"
PICKY = "workflow: brief\ninputs: {topic: str}\nsteps: [{set: {done: true}}]\n"
DAILY = {"workflowId": "brief", "kind": "words", "words": "daily 08:30"}


def test_a_run_that_could_not_begin_is_a_notice_until_it_begins() -> None:
    with Bench().flow(OPEN) as bench:
        schedules, inbox = bench.client.schedules, bench.client.inbox
        name = schedules.make(DAILY).schedule_id
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
        name = schedules.make(DAILY).schedule_id
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
