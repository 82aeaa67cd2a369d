"""Notices of schedules on a bench: a run that could not begin is listed, tried again, let go."""

from moot.testing import Bench

OPEN = "workflow: brief\nsteps: [{set: {done: true}}]\n"
PICKY = "workflow: brief\ninputs: {topic: str}\nsteps: [{set: {done: true}}]\n"
DAILY = {"workflowId": "brief", "kind": "words", "words": "daily 08:30"}


def test_a_run_that_could_not_begin_is_a_notice_until_it_begins_or_is_let_go() -> None:
    with Bench().flow(OPEN) as bench:
        schedules, inbox = bench.client.schedules, bench.client.inbox
        name = schedules.make(DAILY).schedule_id
        bench.flow(PICKY)
        before = inbox.list().revision
        bench.advance(days=2)
        found = inbox.list()
        assert found.revision > before
        assert [notice.kind for notice in found.notices] == ["failed-fire"] * 2
        newest, oldest = schedules.fires(name, state="missed,dead").fires
        assert {newest.fire_id, oldest.fire_id} == {notice.id for notice in found.notices}
        again = schedules.run(name, fire=newest.fire_id)
        assert again.run_id is None, "what is missing is missing still"
        assert len(inbox.list().notices) == 2
        bench.flow(OPEN)
        assert schedules.run(name, fire=newest.fire_id).run_id is not None
        after = inbox.list()
        assert [notice.id for notice in after.notices] == [oldest.fire_id]
        assert after.revision > found.revision
        schedules.skip(name, fire=oldest.fire_id)
        last = inbox.list()
        assert last.notices == [] and last.revision > after.revision
