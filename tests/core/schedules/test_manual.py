"""What people do to a schedule: run it now, leave a slot out, fill the past, look ahead."""

import pytest

from moot.core.errors.schedules import ScheduleBusy, ScheduleOff, ScheduleRefused
from moot.core.schedules.decide import decide_fires, new_ledger
from moot.core.schedules.manual import backfill, run_now, skip_next_slot, upcoming_slots
from moot.core.schedules.model import BlockedPeriod, BufferedSlot, ScheduleFacts, SlotLedger
from moot.core.schedules.pauses import block_starts
from tests.support.core.schedules import DAY, HOUR, MONDAY, schedule, told

NOW = MONDAY + 90_000


def test_a_run_by_hand_takes_no_slot_away() -> None:
    spec = schedule()
    ledger = new_ledger(spec, MONDAY)
    found = run_now(spec, ledger, ScheduleFacts(now=MONDAY + HOUR - 1))
    (fire,) = found.fires
    assert (fire.act, fire.cause, fire.slot) == ("start", "manual", MONDAY + HOUR - 1)
    assert (found.ledger, found.wake_at) == (ledger, MONDAY + HOUR)
    at_the_slot = run_now(spec, ledger, ScheduleFacts(now=MONDAY + HOUR)).fires[0]
    due = decide_fires(spec, ledger, ScheduleFacts(now=MONDAY + HOUR)).fires[0]
    assert due.key("sch_1") != at_the_slot.key("sch_1")


def test_a_run_by_hand_keeps_to_the_overlap_policy() -> None:
    busy = ScheduleFacts(now=NOW, going=("run_1",))
    ledger = SlotLedger(decided=MONDAY)
    with pytest.raises(ScheduleBusy) as refused:
        run_now(schedule(), ledger, busy)
    assert refused.value.details == {"scheduleId": "sch_1", "activeRunId": "run_1"}
    assert refused.value.code == "conflict"
    assert run_now(schedule(), ledger, busy, overlap="allow").fires[0].act == "start"
    cancels = run_now(schedule(overlap="cancel-other"), ledger, busy).fires[0]
    assert (cancels.act, cancels.cancels) == ("start", ("run_1",))


def test_a_run_by_hand_may_wait_and_is_not_lost() -> None:
    spec = schedule(overlap="buffer-one")
    found = run_now(spec, SlotLedger(decided=MONDAY), ScheduleFacts(now=NOW, going=("run_1",)))
    assert found.fires[0].act == "buffer"
    with pytest.raises(ScheduleBusy):
        run_now(spec, found.ledger, ScheduleFacts(now=NOW + 1, going=("run_1",)))
    free = decide_fires(spec, found.ledger, ScheduleFacts(now=NOW + 2))
    assert [(fire.act, fire.cause, fire.waited) for fire in free.fires] == [
        ("start", "manual", True)
    ]


def test_what_is_switched_off_is_not_run_by_hand_either() -> None:
    ledger = SlotLedger(decided=MONDAY)
    member_gone = ScheduleFacts(now=NOW, bars=(BlockedPeriod(0, None, "disabled"),))
    for spec, seen in (
        (schedule(enabled=False), ScheduleFacts(now=NOW)),
        (schedule(), member_gone),
    ):
        with pytest.raises(ScheduleOff, match="switch it on"):
            run_now(spec, ledger, seen)
        with pytest.raises(ScheduleOff):
            backfill(spec, ledger, seen, (MONDAY - DAY, MONDAY))


def test_a_paused_schedule_is_run_by_hand_but_nothing_waits_in_it() -> None:
    spec = schedule(overlap="buffer-all", condition={"queue": "leads"})
    paused = block_starts(SlotLedger(decided=MONDAY), MONDAY, "paused")
    found = run_now(spec, paused, ScheduleFacts(now=NOW, work=False))
    assert (found.fires[0].act, found.wake_at) == ("start", None)
    assert found.ledger == paused
    with pytest.raises(ScheduleBusy):
        run_now(spec, paused, ScheduleFacts(now=NOW, going=("run_1",)))
    with pytest.raises(ScheduleOff, match="resume it"):
        backfill(spec, paused, ScheduleFacts(now=NOW), (MONDAY - DAY, MONDAY))


def test_a_run_by_hand_forgets_no_pause_that_slots_still_fall_into() -> None:
    spec = schedule(catchUp="all-within-window")
    ledger = block_starts(SlotLedger(decided=MONDAY), MONDAY, "paused", until=MONDAY + 2 * HOUR)
    by_hand = run_now(spec, ledger, ScheduleFacts(now=MONDAY + 2 * HOUR)).ledger
    found = decide_fires(spec, by_hand, ScheduleFacts(now=MONDAY + 2 * HOUR))
    assert told(found.fires) == ["skip 01-05T01:00 paused", "start 01-05T02:00"]


def test_the_next_slot_is_left_out_and_then_the_one_after_it() -> None:
    spec = schedule()
    first, ledger = skip_next_slot(spec, new_ledger(spec, MONDAY))
    second, ledger = skip_next_slot(spec, ledger)
    assert (first, second) == (MONDAY + HOUR, MONDAY + 2 * HOUR)
    found = decide_fires(spec, ledger, ScheduleFacts(now=MONDAY + HOUR))
    assert told(found.fires) == ["skip 01-05T01:00 asked"]
    assert found.ledger.skips == (MONDAY + 2 * HOUR,)
    later = decide_fires(spec, found.ledger, ScheduleFacts(now=MONDAY + 3 * HOUR))
    assert told(later.fires) == ["skip 01-05T02:00 asked", "start 01-05T03:00"]
    assert later.ledger.skips == ()


def test_what_never_comes_or_is_too_much_cannot_be_left_out() -> None:
    once = schedule(at="2026-01-06T08:00Z")
    _, ledger = skip_next_slot(once, new_ledger(once, MONDAY))
    with pytest.raises(ScheduleRefused, match="to come"):
        skip_next_slot(once, ledger)
    ledger = SlotLedger(decided=MONDAY, skips=tuple(range(MONDAY, MONDAY + 100)))
    with pytest.raises(ScheduleRefused, match="pause"):
        skip_next_slot(schedule(), ledger)


def test_the_past_is_filled_one_run_after_the_other() -> None:
    spec = schedule()
    ledger = SlotLedger(decided=MONDAY)
    between = (MONDAY - 4 * HOUR, MONDAY - HOUR)
    found = backfill(spec, ledger, ScheduleFacts(now=NOW), between, ran=[MONDAY - 3 * HOUR])
    assert told(found.fires) == [
        "start 01-04T20:00 backfill", "buffer 01-04T22:00 backfill", "buffer 01-04T23:00 backfill",
    ]  # fmt: skip
    assert found.ledger.decided == MONDAY
    again = backfill(spec, found.ledger, ScheduleFacts(now=NOW, going=("r",)), between, ran=[
        MONDAY - 3 * HOUR, MONDAY - 4 * HOUR,
    ])  # fmt: skip
    assert again.fires == ()
    drained = decide_fires(spec, found.ledger, ScheduleFacts(now=NOW))
    assert told(drained.fires) == ["start 01-04T22:00 backfill"]
    assert drained.fires[0].key("sch_1") == f"sch_1:slot:{MONDAY - 2 * HOUR}"


def test_the_past_is_filled_within_bounds() -> None:
    spec, seen = schedule(), ScheduleFacts(now=NOW)
    ledger = SlotLedger(decided=MONDAY)
    assert len(backfill(spec, ledger, seen, (MONDAY - 99 * HOUR, MONDAY)).fires) == 100
    for between, field in (
        ((MONDAY - 100 * HOUR, MONDAY), "to"),
        ((MONDAY - HOUR, NOW + 1), "to"),
        ((MONDAY, MONDAY - 1), "from"),
    ):
        with pytest.raises(ScheduleRefused) as refused:
            backfill(spec, ledger, seen, between)
        assert refused.value.details["field"] == field
    with pytest.raises(ScheduleBusy):
        busy = ScheduleFacts(now=NOW, going=("run_1",))
        backfill(spec, ledger, busy, (MONDAY - HOUR, MONDAY), overlap="skip")


def test_slots_that_are_not_decided_are_not_the_past() -> None:
    spec = schedule()
    found = backfill(
        spec,
        SlotLedger(decided=MONDAY),
        ScheduleFacts(now=MONDAY + 5 * HOUR),
        (MONDAY, MONDAY + 5 * HOUR),
    )
    assert told(found.fires) == ["start 01-05T00:00 backfill"]


def test_what_is_to_come_is_shown_with_what_will_be_skipped() -> None:
    spec = schedule()
    _, ledger = skip_next_slot(spec, new_ledger(spec, MONDAY))
    ledger = block_starts(ledger, NOW, "paused", until=MONDAY + 3 * HOUR)
    member = BlockedPeriod(MONDAY + 4 * HOUR, None, "disabled")
    found = upcoming_slots(spec, ledger, ScheduleFacts(now=NOW, bars=(member,)))
    assert [one.slot for one in found] == [MONDAY + hour * HOUR for hour in range(1, 6)]
    assert [one.skipped for one in found] == ["paused", "paused", None, "disabled", "disabled"]
    plain = upcoming_slots(
        spec, skip_next_slot(spec, new_ledger(spec, MONDAY))[1], ScheduleFacts(now=NOW), 2
    )
    assert [one.skipped for one in plain] == ["asked", None]
    assert len(upcoming_slots(spec, ledger, ScheduleFacts(now=NOW), 10**6)) == 100


def test_a_dry_run_is_the_same_question_without_writing_the_answer() -> None:
    spec = schedule(overlap="buffer-all")
    ledger = SlotLedger(decided=MONDAY, buffered=(BufferedSlot(MONDAY, MONDAY, "slot", MONDAY),))
    seen = ScheduleFacts(now=MONDAY + 3 * HOUR, going=("run_1",))
    assert decide_fires(spec, ledger, seen) == decide_fires(spec, ledger, seen)
    assert run_now(spec, ledger, seen) == run_now(spec, ledger, seen)
