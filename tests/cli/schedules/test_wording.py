"""Schedules on the screen of somebody who stands elsewhere."""

from typing import Any

import pytest

from moot.cli.schedules.wording import (
    describe_next,
    describe_pause_cost,
    describe_state,
    describe_times,
    fire_action_lines,
    fire_rows,
    schedule_rows,
)
from moot.cli.shared import output

BERLIN = {
    "scheduleId": "sch_1", "workflowId": "brief", "kind": "words", "words": "weekday 08:30",
    "timezone": "Europe/Berlin", "state": "active", "nextFires": [], "going": [], "waiting": 0,
}  # fmt: skip
AT = "2999-01-07T07:30:00.000000Z"


@pytest.fixture(autouse=True)
def screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "on_terminal", lambda: True)


def test_times_name_the_zone_whose_wall_they_are_on() -> None:
    assert describe_times(BERLIN) == "weekday 08:30 Europe/Berlin"
    assert describe_times({**BERLIN, "timezone": "UTC"}) == "weekday 08:30 UTC"
    assert (
        describe_next({**BERLIN, "nextFires": [AT]}) == "next: Mon 7 Jan 2999 08:30 Europe/Berlin"
    )
    once = {**BERLIN, "kind": "once", "words": None, "timezone": "UTC"}
    assert describe_times({**once, "at": "2030-01-01T08:30"}) == "2030-01-01T08:30 UTC"
    assert describe_times({**once, "at": "2030-01-01T08:30+02:00"}) == "2030-01-01T08:30+02:00"


def test_a_list_says_whose_it_is_and_what_was_missed() -> None:
    [row] = schedule_rows([{**BERLIN, "missed": 2, "rosterId": "host:sally"}])
    assert row[3] == "active · 2 missed" and "host:sally" in row
    assert describe_state({**BERLIN, "inert": "Sally is paused"}) == "inert: Sally is paused"


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
    assert describe_pause_cost(costs) == said


def test_what_is_done_by_hand_is_told_in_the_order_of_its_times() -> None:
    fires = [
        {"act": "buffer", "slot": "2020-01-03T08:00:00Z", "cause": "backfill"},
        {"act": "start", "slot": "2020-01-02T08:00:00Z", "cause": "backfill", "runId": "run_1"},
    ]
    first, second = fire_action_lines(BERLIN, {"dryRun": False, "fires": fires})
    assert first == "run_1 is started for Thu 2 Jan 2020 09:00"
    assert second == "Fri 3 Jan 2020 09:00 waits for the run before it"
    now = {"act": "start", "slot": "2020-01-02T08:00:00Z", "cause": "manual"}
    assert list(fire_action_lines(BERLIN, {"dryRun": True, "fires": [now]})) == [
        "A run would be started"
    ]


def test_a_time_that_was_missed_and_then_run_is_told_once() -> None:
    slot = {"slot": "2020-01-02T08:00:00Z", "count": 1}
    fires = [
        {**slot, "state": "delivered", "cause": "backfill", "runId": "run_1"},
        {**slot, "state": "skipped", "cause": "slot", "reason": "missed"},
    ]
    [row] = fire_rows(BERLIN, fires)
    assert row[1:3] == ["delivered", "by hand"]
