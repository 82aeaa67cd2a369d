"""What becomes of slots that are due: overlap, outages, pauses, work that is not there."""

import msgspec
import pytest

from moot.core.schedules.decide import decide_fires, merge_skips, new_ledger, retime_ledger
from moot.core.schedules.model import (
    BlockedPeriod,
    BufferedSlot,
    Fire,
    FireDecision,
    Schedule,
    ScheduleFacts,
    SlotLedger,
)
from moot.core.schedules.pauses import block_starts, unblock_starts
from moot.core.schedules.slots import iterate_due_slots, next_slots
from tests.support.core.schedules import DAY, HOUR, MINUTE, MONDAY, SECOND, at, schedule, told


def looked(spec: Schedule, ledger: SlotLedger | None = None, **seen: object) -> FireDecision:
    return decide_fires(
        spec, ledger or new_ledger(spec, MONDAY), msgspec.convert(seen, ScheduleFacts)
    )


def hours(count: float) -> int:
    return MONDAY + int(count * HOUR)


def test_nothing_is_due_at_first_and_it_is_known_when_to_look_again() -> None:
    found = looked(schedule(), now=MONDAY)
    assert (found.fires, found.wake_at, found.more) == ((), hours(1), False)
    assert found.ledger == SlotLedger(decided=MONDAY)


def test_a_slot_starts_a_run_when_it_is_due_and_only_once() -> None:
    spec = schedule()
    first = looked(spec, now=hours(1))
    assert told(first.fires) == ["start 01-05T01:00"]
    assert first.fires[0].key("sch_1") == f"sch_1:slot:{hours(1)}"
    assert first.wake_at == hours(2)
    again = looked(spec, first.ledger, now=hours(1))
    assert (again.fires, again.ledger) == ((), first.ledger)


def test_asking_again_after_a_crash_decides_the_same() -> None:
    spec, ledger = schedule(catchUp="all-within-window"), SlotLedger(decided=MONDAY)
    assert looked(spec, ledger, now=hours(9)) == looked(spec, ledger, now=hours(9))


def test_a_slot_a_little_late_is_on_time() -> None:
    spec = schedule(catchUp="none")
    assert told(looked(spec, now=hours(1) + 60 * SECOND).fires) == ["start 01-05T01:00"]
    late = looked(spec, now=hours(1) + 60 * SECOND + 1)
    assert told(late.fires) == ["skip 01-05T01:00 missed"]


def test_two_slots_a_moment_late_are_both_on_time() -> None:
    spec = schedule(intervalSeconds=2, catchUp="none", overlap="allow")
    found = looked(spec, now=MONDAY + 9 * SECOND)
    assert [(fire.act, fire.slot - MONDAY) for fire in found.fires] == [
        ("skip", 2000), ("start", 4000), ("start", 6000), ("start", 8000),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("catch_up", "window", "expected"),
    [
        ("one", 86_400, ["skip 01-05T01:00 x8 until 01-05T08:00 missed",
                         "start 01-05T09:00 catch-up"]),
        ("one", 5400, ["skip 01-05T01:00 x7 until 01-05T07:00 window", "skip 01-05T08:00 missed",
                       "start 01-05T09:00 catch-up"]),
        ("one", 600, ["skip 01-05T01:00 x9 until 01-05T09:00 window"]),
        ("none", 86_400, ["skip 01-05T01:00 x9 until 01-05T09:00 missed"]),
        ("all-within-window", 7200, ["skip 01-05T01:00 x7 until 01-05T07:00 window",
                                     "start 01-05T08:00 catch-up", "start 01-05T09:00 catch-up"]),
    ],
)  # fmt: skip
def test_after_an_outage_the_catch_up_policy_says_what_is_started(
    catch_up: str, window: int, expected: list[str]
) -> None:
    spec = schedule(catchUp=catch_up, catchUpWindowSeconds=window, overlap="allow")
    found = looked(spec, now=hours(9.5))
    assert told(found.fires) == expected
    assert (found.ledger.decided, found.wake_at) == (hours(9), hours(10))


def test_a_slot_that_is_on_time_is_the_one_after_an_outage() -> None:
    found = looked(schedule(), now=hours(9) + 30)
    assert told(found.fires) == [
        "skip 01-05T01:00 x8 until 01-05T08:00 missed", "start 01-05T09:00",
    ]  # fmt: skip


def test_a_year_of_missed_minutes_is_worked_off_in_bounded_steps() -> None:
    spec = schedule(cronExpr="* * * * *")
    now = MONDAY + 20 * DAY
    ledger, records, calls = new_ledger(spec, MONDAY), [], 0
    while True:
        found = looked(spec, ledger, now=now)
        records += found.fires
        ledger, calls = found.ledger, calls + 1
        assert len(found.fires) <= 2
        if not found.more:
            break
        assert found.wake_at == now
    assert sum(fire.count for fire in records) == 20 * 24 * 60
    assert [fire.slot for fire in records if fire.act == "start"] == [now]
    assert calls == len(range(0, 28_800, 1000))


def test_no_more_than_a_hundred_missed_slots_are_started() -> None:
    spec = schedule(
        cronExpr="* * * * *", catchUp="all-within-window", catchUpWindowSeconds=30 * 86_400,
        overlap="allow",
    )  # fmt: skip
    ledger, started = new_ledger(spec, MONDAY), []
    for _ in range(3):
        found = looked(spec, ledger, now=MONDAY + 2000 * MINUTE + 90 * SECOND)
        ledger = found.ledger
        started += [fire.slot for fire in found.fires if fire.act == "start"]
    assert not found.more
    on_time = 2001
    assert started == [MONDAY + minute * MINUTE for minute in (*range(1, 101), on_time)]
    assert looked(spec, ledger, now=MONDAY + 2002 * MINUTE).fires[0].act == "start"


@pytest.mark.parametrize(
    ("overlap", "expected", "waiting"),
    [
        ("skip", ["skip 01-05T01:00 overlap"], 0),
        ("buffer-one", ["buffer 01-05T01:00"], 1),
        ("buffer-all", ["buffer 01-05T01:00"], 1),
        ("cancel-other", ["start 01-05T01:00"], 0),
        ("allow", ["start 01-05T01:00"], 0),
    ],
)
def test_while_a_run_is_going_the_overlap_policy_says_what_happens(
    overlap: str, expected: list[str], waiting: int
) -> None:
    found = looked(schedule(overlap=overlap), now=hours(1), going=("run_1",))
    assert told(found.fires) == expected
    assert len(found.ledger.buffered) == waiting
    assert found.fires[0].cancels == (("run_1",) if overlap == "cancel-other" else ())


def test_one_slot_waits_and_those_after_it_are_skipped() -> None:
    spec = schedule(overlap="buffer-one")
    first = looked(spec, now=hours(1), going=("run_1",))
    second = looked(spec, first.ledger, now=hours(2), going=("run_1",))
    assert told(second.fires) == ["skip 01-05T02:00 overlap"]
    ended = looked(spec, second.ledger, now=hours(2.5))
    assert told(ended.fires) == ["start 01-05T01:00"]
    assert ended.fires[0].waited
    assert ended.ledger.buffered == ()


def test_slots_that_wait_are_started_one_after_the_other() -> None:
    spec = schedule(overlap="buffer-all")
    ledger = new_ledger(spec, MONDAY)
    for hour in (1, 2, 3):
        ledger = looked(spec, ledger, now=hours(hour), going=("run_1",)).ledger
    found = looked(spec, ledger, now=hours(4))
    assert told(found.fires) == ["start 01-05T01:00", "buffer 01-05T04:00"]
    found = looked(spec, found.ledger, now=hours(4.1))
    assert told(found.fires) == ["start 01-05T02:00"]
    assert [one.slot for one in found.ledger.buffered] == [hours(3), hours(4)]


def test_so_many_slots_wait_and_no_more() -> None:
    spec = schedule(cronExpr="* * * * *", overlap="buffer-all")
    ledger = new_ledger(spec, MONDAY)
    for minute in range(1, 103):
        found = looked(spec, ledger, now=MONDAY + minute * MINUTE, going=("run_1",))
        ledger = found.ledger
    assert (len(ledger.buffered), found.fires[0].reason) == (100, "overlap")
    assert len(msgspec.json.encode(ledger)) < 10_000


def test_of_several_slots_that_cancel_each_other_only_the_last_is_started() -> None:
    spec = schedule(overlap="cancel-other", catchUp="all-within-window")
    found = looked(spec, now=hours(3.5), going=("run_1", "run_2"))
    assert told(found.fires) == [
        "skip 01-05T01:00 x2 until 01-05T02:00 overlap", "start 01-05T03:00 catch-up",
    ]  # fmt: skip
    assert found.fires[-1].cancels == ("run_1", "run_2")


def test_a_schedule_that_is_switched_off_starts_nothing_and_catches_nothing_up() -> None:
    spec = schedule(enabled=False)
    off = looked(spec, now=hours(5))
    assert told(off.fires) == ["skip 01-05T01:00 x5 until 01-05T05:00 disabled"]
    assert off.wake_at is None
    on = msgspec.structs.replace(spec, enabled=True)
    ledger = unblock_starts(off.ledger, hours(7.5), "disabled")
    found = looked(on, ledger, now=hours(8.5))
    assert told(found.fires) == [
        "skip 01-05T06:00 x2 until 01-05T07:00 disabled", "start 01-05T08:00 catch-up",
    ]  # fmt: skip
    assert found.ledger.bars == ()


def test_switching_off_counts_in_the_moment_of_deciding() -> None:
    spec = schedule()
    ledger = new_ledger(spec, MONDAY)
    off = msgspec.structs.replace(spec, enabled=False)
    for bars in (ledger, block_starts(ledger, hours(1) + 5, "disabled")):
        assert told(looked(off, bars, now=hours(1) + 9).fires) == ["skip 01-05T01:00 disabled"]
    paused = block_starts(ledger, hours(1) + 5, "paused")
    assert told(looked(spec, paused, now=hours(1) + 9).fires) == ["skip 01-05T01:00 paused"]


def test_a_pause_skips_and_nothing_of_it_is_caught_up() -> None:
    spec = schedule(catchUp="all-within-window")
    paused = block_starts(new_ledger(spec, MONDAY), hours(0.5), "paused")
    during = looked(spec, paused, now=hours(2.5))
    assert told(during.fires) == ["skip 01-05T01:00 x2 until 01-05T02:00 paused"]
    assert during.wake_at is None
    resumed = unblock_starts(during.ledger, hours(4.5), "paused")
    after = looked(spec, resumed, now=hours(5))
    assert told(after.fires) == [
        "skip 01-05T03:00 x2 until 01-05T04:00 paused", "start 01-05T05:00",
    ]  # fmt: skip


def test_a_pause_ends_by_itself_even_while_nobody_looks() -> None:
    spec = schedule()
    paused = block_starts(new_ledger(spec, MONDAY), hours(0.5), "paused", until=hours(3))
    assert looked(spec, paused, now=hours(1)).wake_at == hours(3)
    found = looked(spec, paused, now=hours(4.5))
    assert told(found.fires) == [
        "skip 01-05T01:00 x2 until 01-05T02:00 paused", "skip 01-05T03:00 missed",
        "start 01-05T04:00 catch-up",
    ]  # fmt: skip


def test_a_pause_drops_what_waits() -> None:
    spec = schedule(overlap="buffer-all")
    waiting = looked(spec, now=hours(1), going=("run_1",)).ledger
    paused = block_starts(waiting, hours(1.2), "paused", until=hours(1.4))
    for now, busy in ((hours(1.3), ()), (hours(1.5), ("run_1",))):
        found = looked(spec, paused, now=now, going=busy)
        assert told(found.fires) == ["skip 01-05T01:00 paused"]
        assert found.ledger.buffered == ()


def test_the_pauses_of_a_member_are_those_of_its_schedules() -> None:
    spec = schedule()
    gone = looked(spec, now=hours(1), bars=(BlockedPeriod(0, None, "disabled"),))
    assert told(gone.fires) == ["skip 01-05T01:00 disabled"]
    away = BlockedPeriod(hours(1.5), hours(2.5), "paused")
    found = looked(spec, gone.ledger, now=hours(2.6), bars=(away,))
    assert told(found.fires) == ["skip 01-05T02:00 paused"]
    assert told(looked(spec, found.ledger, now=hours(3), bars=(away,)).fires) == [
        "start 01-05T03:00"
    ]


def test_pauses_beyond_number_become_longer_ones() -> None:
    ledger = SlotLedger(decided=MONDAY)
    for hour in range(0, 60, 2):
        ledger = block_starts(ledger, hours(hour), "paused", until=hours(hour + 1))
    assert len(ledger.bars) == 20
    assert (ledger.bars[0].since, ledger.bars[-1].since) == (hours(0), hours(58))
    off = SlotLedger(
        decided=MONDAY, bars=(BlockedPeriod(hours(-1), None, "disabled"), *ledger.bars[1:])
    )
    for hour in (70, 80):
        off = block_starts(off, hours(hour), "paused", until=hours(hour + 1))
    assert off.bars[0] == BlockedPeriod(hours(-1), None, "disabled")


def test_where_there_is_no_work_nothing_is_woken() -> None:
    spec = schedule(condition={"queue": "leads"}, overlap="buffer-one")
    found = looked(spec, now=hours(1), work=False)
    assert told(found.fires) == ["skip 01-05T01:00 no-work"]
    waiting = SlotLedger(
        decided=hours(1), buffered=(BufferedSlot(hours(1), hours(1), "slot", hours(1)),)
    )
    idle = looked(spec, waiting, now=hours(1.5), work=False)
    assert told(idle.fires) == ["skip 01-05T01:00 no-work"]


def test_a_single_time_comes_once_and_nothing_after_it() -> None:
    spec = schedule(at="2026-01-06T08:00Z")
    assert looked(spec, now=MONDAY).wake_at == at("2026-01-06T08:00")
    found = looked(spec, now=at("2026-01-06T08:00"))
    assert (told(found.fires), found.wake_at) == (["start 01-06T08:00"], None)
    assert looked(spec, found.ledger, now=MONDAY + 300 * DAY).fires == ()


def delays(spec: Schedule, slots: list[int]) -> list[int]:
    """How long after each of these slots it falls due."""
    return [next(iterate_due_slots(spec, slot - 1)).due - slot for slot in slots]


def test_jitter_is_the_same_for_the_same_slot_and_comes_before_the_next() -> None:
    spec = schedule(jitterSeconds=7200)
    found = next_slots(spec, MONDAY, 200)
    late = delays(spec, found)
    assert late == delays(spec, found)
    assert all(0 <= one < HOUR for one in late)
    assert len(set(late)) > 150
    other = msgspec.structs.replace(spec, schedule_id="sch_2")
    assert delays(other, found) != late
    first = looked(spec, now=MONDAY)
    assert first.wake_at == hours(1) + delays(spec, [hours(1)])[0]
    assert looked(spec, now=first.wake_at - 1).fires == ()
    fire = looked(spec, now=first.wake_at).fires[0]
    assert (fire.slot, fire.due) == (hours(1), first.wake_at)


def test_new_times_have_no_slots_before_they_were_given() -> None:
    spec, new = schedule(), schedule(cronExpr="*/10 * * * *")
    ledger = retime_ledger(looked(spec, now=hours(2.3)).ledger, hours(2.3))
    assert looked(new, ledger, now=hours(2.3)).fires == ()
    assert told(looked(new, ledger, now=hours(2) + 20 * MINUTE).fires) == ["start 01-05T02:20"]


def test_skips_in_a_row_become_one_and_nothing_else_does() -> None:
    def skip(hour: int, **more: object) -> Fire:
        found = {"act": "skip", "slot": hours(hour), "due": hours(hour), "reason": "paused", **more}
        return msgspec.convert(found, Fire)

    both = merge_skips(skip(1), skip(2))
    assert both == skip(1, count=2, until=hours(2))
    assert merge_skips(both, skip(3, count=4, until=hours(6))) == skip(1, count=6, until=hours(6))
    for earlier, later in (
        (skip(1), skip(2, reason="disabled")),
        (skip(1), skip(1)),
        (both, skip(2)),
        (skip(1), skip(2, waited=True)),
        (skip(1, cause="backfill"), skip(2, cause="backfill")),
        (skip(1), skip(2, act="start", reason=None)),
    ):
        assert merge_skips(earlier, later) is None
