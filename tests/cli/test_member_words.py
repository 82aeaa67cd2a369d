"""What people are told of standing agents: whose a run is, what was changed, who is meant."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from cli_helpers import Cli

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
