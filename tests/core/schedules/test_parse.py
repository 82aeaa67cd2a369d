"""What a schedule may say, and how one that cannot be meant is answered."""

from typing import Any

import msgspec
import pytest

from moot.core.errors import BadRequest, MootError
from moot.core.errors.schedules import ScheduleHorizonExceeded, ScheduleRefused
from moot.core.events import millis
from moot.core.schedules.model import Condition, Schedule
from moot.core.schedules.parse import edit_schedule, has_new_times, parse_schedule
from moot.core.schedules.slots import next_slots, slots_between, timing_from_spec
from tests.support.core.schedules import DAY, HOUR, MONDAY, at, schedule

DAILY = {"workflowId": "w", "kind": "cron", "cronExpr": "@daily"}

#: what is said, which field is refused, what is offered instead
REFUSED: list[tuple[dict[str, Any], str, str | None]] = [
    ({}, "kind", None),
    ({"workflowId": "w", "cronExpr": "@daily"}, "kind", "cron"),
    ({**DAILY, "kind": "crn"}, "kind", "cron"),
    ({**DAILY, "kind": 7}, "kind", None),
    ({"kind": "cron", "cronExpr": "@daily"}, "workflowId", None),
    ({**DAILY, "workflowId": ""}, "workflowId", None),
    ({**DAILY, "cron": "@daily"}, "cron", "cronExpr"),
    ({**DAILY, "scheduleId": "sch_9"}, "scheduleId", None),
    ({**DAILY, "catchup": "one"}, "catchup", "catchUp"),
    ({**DAILY, "kind": "interval"}, "cronExpr", None),
    ({"workflowId": "w", "kind": "interval"}, "intervalSeconds", None),
    ({**DAILY, "words": "daily"}, "words", None),
    ({**DAILY, "cronExpr": "0 25 * * *"}, "cronExpr", None),
    ({**DAILY, "cronExpr": "0 8 * * MON-FRI/0"}, "cronExpr", None),
    ({**DAILY, "cronExpr": "0 0 31 2 *"}, "cronExpr", None),
    ({**DAILY, "cronExpr": "daily"}, "cronExpr", None),
    ({**DAILY, "cronExpr": "0 0 8 * * 1-5"}, "cronExpr", "0 8 * * 1-5"),
    ({**DAILY, "cronExpr": "@dayly"}, "cronExpr", "@daily"),
    ({**DAILY, "cronExpr": "x" * 300}, "cronExpr", None),
    ({**DAILY, "timezone": "Berlin"}, "timezone", "Europe/Berlin"),
    ({**DAILY, "timezone": "europe/berlin"}, "timezone", "Europe/Berlin"),
    ({**DAILY, "timezone": "America/New York"}, "timezone", "America/New_York"),
    ({**DAILY, "timezone": "Elsewhere"}, "timezone", None),
    ({**DAILY, "timezone": "../../etc/passwd"}, "timezone", None),
    ({**DAILY, "timezone": "right/Europe/Berlin"}, "timezone", "Europe/Berlin"),
    ({**DAILY, "overlap": "buffer-al"}, "overlap", "buffer-all"),
    ({**DAILY, "catchUp": "all"}, "catchUp", None),
    ({**DAILY, "catchUpWindowSeconds": -1}, "catchUpWindowSeconds", None),
    ({**DAILY, "jitterSeconds": 1.5}, "jitterSeconds", None),
    ({**DAILY, "enabled": "yes"}, "enabled", None),
    ({**DAILY, "inputs": []}, "inputs", None),
    ({**DAILY, "condition": {}}, "condition", None),
    ({**DAILY, "condition": {"queue": "a", "expression": "true"}}, "condition", None),
    ({**DAILY, "condition": {"que": "a"}}, "condition", None),
    ({**DAILY, "horizon": "P1Y"}, "horizon", None),
    ({**DAILY, "horizon": "P"}, "horizon", None),
    ({**DAILY, "horizon": "P1DT"}, "horizon", None),
    ({"workflowId": "w", "kind": "interval", "intervalSeconds": 0}, "intervalSeconds", None),
    ({"workflowId": "w", "kind": "interval", "intervalSeconds": "5"}, "intervalSeconds", None),
    ({"workflowId": "w", "kind": "once", "at": "tomorrow"}, "at", None),
    ({"workflowId": "w", "kind": "once", "at": "2026-02-01"}, "at", None),
    ({"workflowId": "w", "kind": "once", "at": "2026-02-30T08:00"}, "at", None),
    ({"workflowId": "w", "kind": "once", "at": "2026-01-05T00:00Z"}, "at", None),
    ({"workflowId": "w", "kind": "once", "at": "9999-12-31T23:59"}, "at", None),
    ({"workflowId": "w", "kind": "words", "words": "weekdy 8:30"}, "words", "weekday 8:30"),
]


@pytest.mark.parametrize(("said", "field", "suggestion"), REFUSED)
def test_a_refusal_names_the_field_and_what_was_meant(
    said: dict[str, Any], field: str, suggestion: str | None
) -> None:
    with pytest.raises(ScheduleRefused) as refused:
        parse_schedule(said, "sch_1", MONDAY)
    error = refused.value
    assert (error.code, error.details["field"]) == ("validation_error", field)
    assert error.details.get("suggestion") == suggestion
    assert suggestion is None or suggestion in error.message


def test_what_is_not_an_object_is_refused() -> None:
    for body in (b"[]", b"{", b"\xff", b'"daily"'):
        with pytest.raises(BadRequest):
            parse_schedule(body, "sch_1", MONDAY)


def test_a_schedule_says_the_same_on_the_wire_as_in_the_store() -> None:
    said = {**DAILY, "inputs": {"a": 1}, "condition": {"queue": "leads"}, "overlap": "buffer-one"}
    spec = parse_schedule(msgspec.json.encode(said), "sch_1", MONDAY)
    written = msgspec.json.encode(spec)
    assert msgspec.json.decode(written, type=Schedule) == spec
    assert msgspec.json.decode(written).items() > said.items()
    assert spec.condition == Condition(queue="leads")
    assert millis(spec.created_at) == MONDAY
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"x": 1, ' + written[1:], type=Schedule)


def test_what_is_not_said_has_careful_defaults() -> None:
    spec = parse_schedule(DAILY, "sch_1", MONDAY)
    assert (spec.overlap, spec.catch_up, spec.timezone) == ("skip", "one", "UTC")
    assert (spec.catch_up_window_seconds, spec.jitter_seconds) == (86_400, 0)
    assert (spec.enabled, spec.horizon) == (True, "P400D")


def test_a_single_time_beyond_the_horizon_is_refused() -> None:
    day_400 = "2027-02-09T00:00:00Z"
    assert timing_from_spec(schedule(at=day_400)).at == MONDAY + 400 * DAY
    with pytest.raises(ScheduleHorizonExceeded) as refused:
        schedule(at="2027-02-09T00:00:01Z")
    assert refused.value.code == "schedule_horizon_exceeded"
    assert refused.value.details == {"field": "at", "maxFutureHorizon": "P400D"}


@pytest.mark.parametrize("zone", ["Europe", "localtime", "posixrules", "Factory", "/etc/localtime"])
def test_what_lies_beside_the_zones_is_none(zone: str) -> None:
    with pytest.raises(ScheduleRefused):
        schedule(timezone=zone)


def test_the_shorter_of_two_horizons_holds() -> None:
    week = {"workflowId": "w", "kind": "once", "at": "2026-01-12T12:00Z"}
    parse_schedule({**week, "horizon": "P8D"}, "sch_1", MONDAY)
    for own in ("P7D", "PT168H", "P1W"):
        with pytest.raises(ScheduleHorizonExceeded, match="at"):
            parse_schedule({**week, "horizon": own}, "sch_1", MONDAY)
    with pytest.raises(ScheduleHorizonExceeded, match="horizon"):
        parse_schedule({**DAILY, "horizon": "P401D"}, "sch_1", MONDAY)


def test_the_same_hours_mean_the_same_however_they_are_spelled() -> None:
    crons = ["*/30 */12 * * *", "0,30 0,12 * * *", "0-59/30 0-23/12 * * *", "30,0 12,0 * * 0-7"]
    after = at("2026-10-24T00:00")
    found = [
        next_slots(schedule(cronExpr=cron, timezone="Europe/Berlin"), after, 12) for cron in crons
    ]
    assert found[1:] == found[:-1]


@pytest.mark.parametrize(
    ("alias", "cron"),
    [("@hourly", "0 * * * *"), ("@daily", "0 0 * * *"), ("@weekly", "0 0 * * 0"),
     ("@monthly", "0 0 1 * *"), ("@yearly", "0 0 1 1 *"), ("@Midnight", "0 0 * * *")],
)  # fmt: skip
def test_short_names_stand_for_expressions(alias: str, cron: str) -> None:
    short, long = schedule(cronExpr=alias), schedule(cronExpr=cron)
    assert next_slots(short, MONDAY, 3) == next_slots(long, MONDAY, 3)


def test_answers_about_slots_are_bounded() -> None:
    spec = schedule(intervalSeconds=1)
    assert len(slots_between(spec, MONDAY, MONDAY + DAY)) == 10_000
    assert len(next_slots(spec, MONDAY, 1_000_000)) == 10_000
    assert slots_between(spec, MONDAY, MONDAY + DAY, most=3) == [
        MONDAY + n * 1000 for n in (1, 2, 3)
    ]
    assert next_slots(schedule(), 10**15, 3) == []
    assert next_slots(schedule(), -(10**15), 1) == [HOUR]


def test_a_change_keeps_what_it_does_not_name() -> None:
    spec = schedule(words="weekday 08:30 Europe/Berlin", overlap="allow", jitterSeconds=60)
    later = edit_schedule(spec, {"jitterSeconds": 5}, MONDAY + DAY)
    assert later == msgspec.structs.replace(spec, jitter_seconds=5)
    assert not has_new_times(spec, later)


def test_null_takes_a_field_back_to_its_default() -> None:
    spec = schedule(overlap="allow", inputs={"a": 1})
    later = edit_schedule(spec, b'{"overlap": null, "inputs": null}', MONDAY)
    assert (later.overlap, later.inputs) == ("skip", None)
    with pytest.raises(ScheduleRefused):
        edit_schedule(spec, {"workflowId": None}, MONDAY)


def test_other_times_replace_those_it_had() -> None:
    spec = schedule(words="weekday 08:30")
    later = edit_schedule(spec, {"cronExpr": "0 9 * * *"}, MONDAY)
    assert (later.kind, later.cron_expr, later.words) == ("cron", "0 9 * * *", None)
    assert has_new_times(spec, later)
    same = edit_schedule(spec, {"kind": "cron", "cronExpr": "30 8 * * 1-5"}, MONDAY)
    assert not has_new_times(spec, same)
    assert edit_schedule(spec, {"kind": "words", "enabled": False}, MONDAY).words == spec.words
    for mixed in ({"kind": "cron"}, {"kind": "cron", "words": "daily"}, {"kind": None}):
        with pytest.raises(ScheduleRefused):
            edit_schedule(spec, mixed, MONDAY)


def test_a_single_time_that_has_passed_may_still_be_switched_off() -> None:
    spec = schedule(at="2026-01-06T08:00Z")
    assert edit_schedule(spec, {"enabled": False}, MONDAY + 30 * DAY).enabled is False
    with pytest.raises(ScheduleRefused, match="has passed"):
        edit_schedule(spec, {"at": "2026-01-07T08:00Z"}, MONDAY + 30 * DAY)
    with pytest.raises(MootError, match="not a field"):
        edit_schedule(spec, {"createdAt": "2026-01-07T08:00Z"}, MONDAY)
