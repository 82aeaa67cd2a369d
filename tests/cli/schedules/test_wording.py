"""Schedules on the screen of somebody who stands elsewhere."""

from typing import Any

import pytest
from msgspec import convert
from msgspec.structs import replace

from moot.cli.schedules.wording import (
    describe_next,
    describe_pause_cost,
    describe_state,
    describe_times,
    fire_action_lines,
    fire_rows,
    schedule_row,
)
from moot.cli.shared import output
from moot.wire.schedules import FireResultList, FireView, Owner, PauseCost, ScheduleView

BERLIN = ScheduleView(
    schedule_id="sch_1", workflow_id="brief", kind="words", words="weekday 08:30",
    timezone="Europe/Berlin", state="active", going=[], waiting=0, overlap="skip", catch_up="one",
    catch_up_window_seconds=0, jitter_seconds=0, enabled=True, horizon="", subscription_id="sub_1",
    owner=Owner(tenant_id="t"), created_at="", updated_at="",
)  # fmt: skip
AT = "2999-01-07T07:30:00.000000Z"


@pytest.fixture(autouse=True)
def screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "on_terminal", lambda: True)


def test_times_name_the_zone_whose_wall_they_are_on() -> None:
    assert describe_times(BERLIN) == "weekday 08:30 Europe/Berlin"
    assert describe_times(replace(BERLIN, timezone="UTC")) == "weekday 08:30 UTC"
    assert (
        describe_next(replace(BERLIN, next_fires=[AT]))
        == "next: Mon 7 Jan 2999 08:30 Europe/Berlin"
    )
    once = replace(BERLIN, kind="once", words=None, timezone="UTC")
    assert describe_times(replace(once, at="2030-01-01T08:30")) == "2030-01-01T08:30 UTC"
    assert describe_times(replace(once, at="2030-01-01T08:30+02:00")) == "2030-01-01T08:30+02:00"


def test_a_list_says_whose_it_is_and_what_was_missed() -> None:
    row = schedule_row(replace(BERLIN, missed=2, roster_id="host:sally"))
    assert row[3] == "active · 2 missed" and "host:sally" in row
    assert describe_state("active", "Sally is paused") == "inert: Sally is paused"


@pytest.mark.parametrize(
    ("costs", "said"),
    [
        (None, ""),
        ({"count": 0, "fires": []}, " It costs no fire."),
        (
            {"count": 3, "fires": [{"at": AT, "workflowId": "brief", "timezone": "Asia/Tokyo"}]},
            " It costs 3 fires: brief Mon 7 Jan 2999 16:30 Asia/Tokyo and 2 more.",
        ),
    ],
)
def test_a_pause_names_what_it_costs(costs: dict[str, Any] | None, said: str) -> None:
    found = None if costs is None else convert(costs, PauseCost)
    assert describe_pause_cost(found) == said


def told(dry: bool, fires: list[dict[str, str]]) -> list[str]:
    done = {"scheduleId": "sch_1", "dryRun": dry, "fires": fires}
    return list(fire_action_lines(BERLIN.timezone, convert(done, FireResultList)))


def test_what_is_done_by_hand_is_told_in_the_order_of_its_times() -> None:
    fires = [
        {"act": "buffer", "slot": "2020-01-03T08:00:00Z", "cause": "backfill"},
        {"act": "start", "slot": "2020-01-02T08:00:00Z", "cause": "backfill", "runId": "run_1"},
    ]
    first, second = told(False, fires)
    assert first == "run_1 is started for Thu 2 Jan 2020 09:00"
    assert second == "Fri 3 Jan 2020 09:00 waits for the run before it"
    now = {"act": "start", "slot": "2020-01-02T08:00:00Z", "cause": "manual"}
    assert told(True, [now]) == ["A run would be started"]


def test_a_time_that_was_missed_and_then_run_is_told_once() -> None:
    slot = {"slot": "2020-01-02T08:00:00Z", "count": 1, "fireId": "", "dueAt": "", "decidedAt": ""}
    fires = [
        {**slot, "state": "delivered", "cause": "backfill", "runId": "run_1"},
        {**slot, "state": "skipped", "cause": "slot", "reason": "missed"},
    ]
    [row] = fire_rows(BERLIN.timezone, [convert(fire, FireView) for fire in fires])
    assert row[1:3] == ["delivered", "by hand"]
