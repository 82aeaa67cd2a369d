"""What people are told of standing agents: whose a run is, what was changed, who is meant."""

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.cli.commands import Cli

AGENT = "---\nrole: sales ops\n---\nYou keep the pipeline tidy.\n"


class Desk(NamedTuple):
    """A standing agent with a queue of its own name, and a persona that is nobody else's."""

    moot: Cli
    name: str
    persona: str

    def data(self, *words: str) -> Any:
        return json.loads(self.moot(*words, "--json").out)


@pytest.fixture
def desk(moot: Cli, tmp_path: Path) -> Desk:
    (tmp_path / "sales.md").write_text(AGENT)
    name = f"w{tmp_path.name.replace('_', '-')}"[-40:].lstrip("-")
    found = Desk(moot, name, f"P{name}")
    done = moot("agent", "hire", name, "--persona", found.persona, "--from", tmp_path / "sales.md",
                "--portfolio", "hello,asks", "--every", "weekday 08:30 Europe/Berlin",
                "--on", f"queue:{name}")  # fmt: skip
    assert done.code == 0, done.err
    return found


def test_whose_a_run_is_and_what_began_it_is_said_wherever_it_is_seen(desk: Desk) -> None:
    moot, name = desk.moot, desk.name
    item, _, run_id, _ = moot("item", "push", name, "--subject", "A quote").out.split()
    by_hand = moot("agent", "run-now", name, "hello").out.strip()
    [planned] = desk.data("schedule", "list", "--member", name)
    timed = moot("schedule", "run", planned["scheduleId"]).out.split()[0]
    began = {
        run_id: f"queue {name} · {item}", by_hand: "by hand",
        timed: "schedule weekday 08:30 Europe/Berlin",
    }  # fmt: skip
    for each, words in began.items():
        line = f"Started by {desk.persona} · {words}"
        assert line in moot("run", "show", each).lines()
    rows = [row.split("\t") for row in moot("agent", "runs", name).lines()]
    assert {row[0]: row[4] for row in rows} == began
    while not (asked := [row for row in moot("inbox").lines() if run_id in row]):
        pass
    assert f"\t{desk.persona} · asks/gate\t" in asked[0]
    row = next(row for row in moot("run", "list").lines() if row.startswith(run_id))
    assert name in row.split("\t")
    moot("run", "cancel", run_id)


def test_a_run_that_nobodys_agent_began_says_nothing_of_one(desk: Desk) -> None:
    run_id = desk.moot("run", "hello", "-d").lines()[0]
    assert "Started by" not in desk.moot("run", "show", run_id).out


def test_what_was_changed_is_said_as_it_was_and_as_it_is(desk: Desk) -> None:
    name, called = desk.name, f"{desk.persona} (host:{desk.name})"
    first = desk.moot("agent", "set", name, "tokens-per-day=20k", "role=ops")
    assert first.lines() == [
        f"{called} role: none → ops", f"{called} tokens-per-day: none → 20 000",
    ]  # fmt: skip
    again = desk.moot("agent", "set", name, "tokens-per-day=50k", "portfolio=hello")
    assert again.lines() == [
        f"{called} portfolio: hello, asks → hello", f"{called} tokens-per-day: 20 000 → 50 000",
    ]  # fmt: skip
    assert desk.moot("agent", "set", name, "role=ops").lines() == [f"{called} is as it was."]
    path = f"/v1/host/moot/roster/host:{name}/history"
    history = json.loads(desk.moot("api", "GET", path).out)["history"]
    assert [each["changes"] for each in history if each["did"] == "changed"][1:] == [
        [{"field": "workflows", "from": ["hello", "asks"], "to": ["hello"]},
         {"field": "tokensPerDay", "from": 20_000, "to": 50_000}],
        [{"field": "label", "from": None, "to": "ops"},
         {"field": "tokensPerDay", "from": None, "to": 20_000}],
    ]  # fmt: skip


def test_a_limit_of_money_that_nothing_counts_for_is_warned_of(desk: Desk) -> None:
    done = desk.moot("agent", "set", desk.name, "money-per-month=20")
    assert done.code == 0 and "demo has no price" in done.err and "tokens-per-month=N" in done.err
    assert "moneyPerMonth: 0 of 20 (demo has no price)" in desk.moot("agent", "show", desk.name).out
    assert not desk.moot("agent", "set", desk.name, "tokens-per-day=5", "money-per-month=").err


def test_who_is_meant_by_the_name_it_goes_by_is_found(desk: Desk) -> None:
    moot, called = desk.moot, desk.persona.upper()
    assert desk.data("agent", "show", called)["rosterId"] == f"host:{desk.name}"
    assert moot("agent", "set", called, "role=ops").code == 0
    assert moot("agent", "pause", called).out.startswith(f"{desk.persona} is paused")
    assert moot("agent", "resume", called).code == 0
    wrong = moot("agent", "run-now", called, "helo")
    assert wrong.code == 1 and "Did you mean 'hello'?" in wrong.err
    assert moot("agent", "run-now", called, "hello").out.startswith("run_")
    assert len(moot("agent", "runs", called).lines()) == 1
    other = f"{desk.name[:30]}-twin"
    moot("agent", "hire", other, "--agent", "sales", "--persona", desk.persona)
    twice = moot("agent", "pause", called)
    assert twice.code == 2 and f"host:{desk.name}" in twice.err and f"host:{other}" in twice.err
    assert moot("agent", "show", "nobody-at-all").code == 5


def test_the_list_says_who_speaks_through_what_when_next_and_what_waits(desk: Desk) -> None:
    moot, name = desk.moot, desk.name
    run_id = moot("item", "push", name, "--subject", "A quote").out.split()[2]
    [planned] = desk.data("schedule", "list", "--member", name)
    while run_id not in moot("inbox").out:
        pass
    [row] = [line for line in moot("agent", "list").lines() if line.startswith(f"host:{name}\t")]
    assert row.split("\t") == [
        f"host:{name}", desk.persona, "-", "demo", "on duty", f"hello {planned['nextFireAt']}",
        "1 for you", "2 workflows",
    ]  # fmt: skip
    moot("agent", "pause", name, "--until", "2999-01-01T08:00", "--stop")
    assert "\tpaused until Tue 1 Jan 2999 08:00 " in moot("agent", "list").out


def test_ids_are_short_on_a_terminal_and_times_are_for_people(desk: Desk) -> None:
    moot, name = desk.moot, desk.name
    item, _, run_id, _ = moot("item", "push", name, "--subject", "A quote").out.split()
    [planned] = desk.data("schedule", "list", "--member", name)
    items = moot.on_terminal("item", "list", name, columns=200).out
    assert item[:12] in items and item not in items and run_id not in items
    schedules = moot.on_terminal("schedule", "list", "--member", name, columns=200).out
    assert planned["scheduleId"][:12] in schedules and planned["scheduleId"] not in schedules
    shown = moot.on_terminal("item", "show", item[:12], columns=200).out
    assert re.match(r"\w+day \d\d:\d\d(:\d\d)? \S+ delivered", shown.splitlines()[-1])
    moot("run", "cancel", run_id)
