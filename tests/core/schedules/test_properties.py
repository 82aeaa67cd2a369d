"""Whatever the schedule, whenever it is looked at, wherever the host was when it died."""

from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from moot.core.errors import BadRequest
from moot.core.errors.schedules import ScheduleHorizonExceeded, ScheduleRefused
from moot.core.schedules.decide import decide_fires, new_ledger
from moot.core.schedules.model import Fire, Schedule, ScheduleFacts, SlotLedger
from moot.core.schedules.parse import edit_schedule, parse_schedule
from moot.core.schedules.pauses import block_starts, unblock_starts
from moot.core.schedules.slots import iterate_due_slots, slots_between
from tests.support.core.random_flows import examples
from tests.support.core.schedules import DAY, HOUR, at

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata",
         "America/Sao_Paulo", "Pacific/Apia", "Africa/Casablanca", "Antarctica/Troll")  # fmt: skip
#: around changes of clocks in one zone or the other
STARTS = ("2026-03-07", "2026-03-28", "2026-10-03", "2026-10-24", "2018-02-17", "2018-11-03",
          "2011-12-28", "2024-03-09")  # fmt: skip


def field(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    step = st.integers(1, high)
    return st.one_of(
        st.just("*"),
        number.map(str),
        step.map("*/{}".format),
        st.lists(number, min_size=1, max_size=4).map(lambda found: ",".join(map(str, found))),
        st.tuples(number, number).map(lambda pair: f"{min(pair)}-{max(pair)}"),
    )


CRONS = st.tuples(
    field(0, 59), field(0, 23), st.sampled_from(["*", "*", "1", "*/2", "L"]),
    st.just("*"), st.sampled_from(["*", "*", "1-5", "0", "SUN#1", "6L"]),
).map(" ".join)  # fmt: skip
WORDS = st.sampled_from([
    "hourly", "daily at 2:30", "weekday 1:30", "every 20 minutes", "saturday, sunday 2:00 and 3:00",
    "every day at midnight", "last of month 23:59",
])  # fmt: skip
TIMES = st.one_of(
    CRONS.map(lambda cron: {"kind": "cron", "cronExpr": cron}),
    WORDS.map(lambda words: {"kind": "words", "words": words}),
    st.integers(300, 200_000).map(lambda every: {"kind": "interval", "intervalSeconds": every}),
    st.integers(1, 4 * 86_400).map(lambda after: {"kind": "once", "after": after}),
)


@st.composite
def schedules(draw: st.DrawFn) -> tuple[Schedule, int]:
    start = at(draw(st.sampled_from(STARTS))) + draw(st.integers(0, DAY))
    body: dict[str, Any] = {"workflowId": "w", "timezone": draw(st.sampled_from(ZONES))}
    body |= draw(TIMES)
    if "after" in body:
        body["at"] = _moment(start + body.pop("after") * 1000)
    body |= {
        "overlap": draw(
            st.sampled_from(["skip", "buffer-one", "buffer-all", "cancel-other", "allow"])
        ),
        "catchUp": draw(st.sampled_from(["one", "none", "all-within-window"])),
        "catchUpWindowSeconds": draw(st.sampled_from([0, 3600, 86_400, 864_000])),
        "jitterSeconds": draw(st.sampled_from([0, 0, 20, 4000])),
    }
    return parse_schedule(body, "sch_1", start), start


def _moment(instant: int) -> str:
    return datetime.fromtimestamp(instant / 1000, UTC).isoformat()


@examples(60)
@given(schedules(), st.lists(st.integers(0, 3 * DAY), max_size=4))
def test_slots_grow_and_do_not_depend_on_where_one_begins(
    made: tuple[Schedule, int], cuts: list[int]
) -> None:
    spec, start = made
    whole = slots_between(spec, start, start + 3 * DAY)
    assert whole == sorted(set(whole))
    assert all(start < slot <= start + 3 * DAY for slot in whole)
    edges = sorted({0, 3 * DAY, *cuts})
    parts = [slots_between(spec, start + low, start + high) for low, high in pairwise(edges)]
    assert [slot for part in parts for slot in part] == whole[: sum(map(len, parts))]
    assert len(whole) == min(10_000, sum(map(len, parts)))


@examples(30)
@given(schedules())
def test_a_slot_falls_due_before_the_next_one(made: tuple[Schedule, int]) -> None:
    spec, start = made
    found = []
    for tick in iterate_due_slots(spec, start):
        if tick.slot > start + DAY or len(found) > 200:
            break
        found.append(tick)
    assert all(one.slot <= one.due <= one.slot + spec.jitter_seconds * 1000 for one in found)
    assert all(one.due < later.slot for one, later in pairwise(found))


#: how much later something happens, what, and whether a run is going then
STEPS = st.lists(
    st.tuples(
        st.one_of(st.integers(0, HOUR), st.integers(0, 2 * DAY)),
        st.sampled_from(["look", "look", "lost", "pause", "resume", "off", "on"]),
        st.booleans(),
    ),
    max_size=12,
)


@examples(60)
@given(schedules(), STEPS)
def test_every_slot_is_decided_once_however_often_the_host_dies(
    made: tuple[Schedule, int], steps: list[tuple[int, str, bool]]
) -> None:
    spec, now = made
    ledger, records, start = new_ledger(spec, now), list[tuple[int, bool, Fire]](), now
    for later, what, busy in steps:
        now += later
        for _ in range(60):
            seen = ScheduleFacts(now=now, going=("run_1",) if busy else ())
            found = decide_fires(spec, ledger, seen)
            assert found == decide_fires(spec, stored(ledger), seen)
            if what == "lost":
                break
            assert found.ledger.decided >= ledger.decided
            ledger = found.ledger
            paused = any(bar.holds(now) for bar in ledger.bars)
            records += [(now, spec.enabled and not paused, fire) for fire in found.fires]
            if not found.more:
                break
        if what != "lost":
            spec, ledger = changed(spec, ledger, now, what)
    check(spec, start, ledger, records)


def stored(ledger: SlotLedger) -> SlotLedger:
    return msgspec.json.decode(msgspec.json.encode(ledger), type=SlotLedger)


def changed(spec: Schedule, ledger: SlotLedger, now: int, what: str) -> tuple[Schedule, SlotLedger]:
    if what == "pause":
        return spec, block_starts(ledger, now, "paused")
    if what == "resume":
        return spec, unblock_starts(ledger, now, "paused")
    if what in ("off", "on"):
        change = block_starts if what == "off" else unblock_starts
        edited = edit_schedule(spec, {"enabled": what == "on"}, now)
        return edited, change(ledger, now, "disabled")
    return spec, ledger


def check(
    spec: Schedule, start: int, ledger: SlotLedger, records: list[tuple[int, bool, Fire]]
) -> None:
    waiting: set[int] = {one.slot for one in ledger.buffered}
    final, starts = 0, set()
    for when, may, fire in records:
        assert fire.due <= when
        if fire.act == "start":
            assert may
            assert fire.slot not in starts
            starts.add(fire.slot)
        final += 0 if fire.act == "buffer" else fire.count
    assert not starts & waiting
    decided = 0
    for tick in iterate_due_slots(spec, start):
        if tick.slot > ledger.decided:
            break
        decided += 1
    assert decided == final + len(waiting)


@examples(150)
@given(st.one_of(st.text(max_size=40), CRONS), st.sampled_from(["cronExpr", "words", "at"]))
def test_any_text_is_read_or_refused(text: str, name: str) -> None:
    kind = {"cronExpr": "cron", "words": "words", "at": "once"}[name]
    try:
        spec = parse_schedule({"workflowId": "w", "kind": kind, name: text}, "sch_1", 0)
    except (ScheduleRefused, ScheduleHorizonExceeded) as refused:
        assert refused.details["field"] in (name, "timezone")
    else:
        next(iterate_due_slots(spec, 0))


TOKENS = st.sampled_from([
    "every", "monday", "weekdays", "first", "last", "of", "month", "9:00", "25:61", "15", "15th",
    "minutes", "at", "and", "Europe/Berlin", "utc", "mon-fri", "noon", "hourly", "daily", "/",
    "second", "day", "weekend", "*", "L", "#", "1#2", "5L", "LW", "*/2", "1-5", "SUN", "@daily",
])  # fmt: skip


@examples(150)
@given(st.lists(TOKENS, max_size=6).map(" ".join), st.sampled_from(["cronExpr", "words"]))
def test_any_order_of_its_words_is_read_or_refused(text: str, name: str) -> None:
    kind = "cron" if name == "cronExpr" else "words"
    try:
        spec = parse_schedule({"workflowId": "w", "kind": kind, name: text}, "sch_1", 0)
    except BadRequest as refused:
        assert refused.message.endswith((".", "?"))
    else:
        next(iterate_due_slots(spec, 0))


@examples(60)
@given(
    st.dictionaries(
        st.sampled_from(["workflowId", "kind", "cronExpr", "at", "words", "timezone", "overlap",
                         "horizon", "inputs", "condition", "enabled", "intervalSeconds", "x"]),
        st.recursive(
            st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=9),
                      st.sampled_from(["cron", "once", "words", "@daily", "skip", "UTC", "P1D"])),
            lambda inner: st.dictionaries(st.text(max_size=5), inner, max_size=2), max_leaves=3),
        max_size=8,
    )
)  # fmt: skip
def test_any_body_is_read_or_refused(body: dict[str, Any]) -> None:
    try:
        parse_schedule(body, "sch_1", 0)
    except BadRequest as refused:
        assert refused.message
