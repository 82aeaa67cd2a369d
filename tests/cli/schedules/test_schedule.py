"""moot schedule: made in words, shown with what is to come and what was missed."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from moot.testing import Bench
from tests.support.cli.commands import Cli


def test_a_schedule_is_made_in_words_and_shown(moot: Cli) -> None:
    done = moot("schedule", "add", "hello", "weekday", "08:30", "Europe/Berlin")
    assert done.code == 0, done.err
    name, rest = done.out.split(" ", 1)
    assert rest.startswith("hello · next: ") and rest.count("T") >= 5
    [row] = [line.split("\t") for line in moot("schedule", "list").lines() if line.startswith(name)]
    assert row[1:4] == ["hello", "weekday 08:30 Europe/Berlin", "active"]
    shown = json.loads(moot("schedule", "show", name[:12], "--json").out)
    assert json.loads(moot("schedule", "show", "@last", "--json").out) == shown
    assert shown["comesTo"] == "30 8 * * 1-5" and shown["lastFires"] == []
    assert len(moot("schedule", "next", name).lines()) == 5
    skipped = moot("schedule", "skip", name).out
    assert skipped == f"{shown['nextFires'][0]} is left out\n"
    [left_out] = [line for line in moot("schedule", "show", name).lines() if "left out" in line]
    assert left_out.startswith(f"left out: {shown['nextFires'][0]} · ")
    assert left_out.endswith(f"schedule skip {name} --undo")
    undone = moot("schedule", "skip", name, "--undo").out
    assert undone == f"{shown['nextFires'][0]} is taken in again\n"
    assert "No time of this schedule is left out" in moot("schedule", "skip", name, "--undo").err
    assert moot("schedule", "remove", name).out == f"{name} starts nothing more\n"
    assert moot("schedule", "show", name).code == 5


def test_it_is_paused_resumed_and_run_by_hand(moot: Cli) -> None:
    name = moot("schedule", "add", "list", "--cron", "0 8 1 1 *").out.split()[0]
    why = ("--reason", "quarter close", "--until", "2999-01-01T08:00")
    paused = moot("schedule", "pause", "list", *why)
    assert paused.out.startswith(f"{name} is paused until 2999-01-01T08:00:00.000000Z. It costs ")
    assert " fires: list 20" in paused.out and paused.out.endswith(" more.\n")
    assert "quarter close" in moot("schedule", "show", name).out
    assert moot("schedule", "resume", name).out.startswith(f"{name} goes on · next: ")
    assert moot("schedule", "run", name, "--dry-run").out == "A run would be started\n"
    began = moot("schedule", "run", name).out
    assert began.startswith("run_") and began.endswith(" is started\n")
    dry = moot("schedule", "backfill", name, "2020-01-01T00:00", "2021-06-01T00:00", "--dry-run")
    assert dry.lines() == [
        "A run would be started for 2020-01-01T08:00:00.000000Z",
        "2021-01-01T08:00:00.000000Z would wait for the run before it",
    ]
    moot("schedule", "remove", name)


def test_times_are_typed_alike_everywhere_and_count_in_the_zone_of_the_schedule(
    moot: Cli,
) -> None:
    name = moot("schedule", "add", "hello", "daily", "08:30", "Asia/Tokyo").out.split()[0]
    for typed in ("2h", "monday", "friday 17:00", "17:00", "2999-11-20"):
        assert moot("schedule", "pause", name, "--until", typed).code == 0, typed
    paused = json.loads(moot("schedule", "pause", name, "--until", "17:00", "--json").out)
    assert paused["pause"]["until"].endswith("T08:00:00.000000Z")
    assert "write monday" in moot("schedule", "pause", name, "--until", "soon").err
    moot("schedule", "resume", name)
    dry = moot("schedule", "backfill", name, "2020-02-03", "2020-02-04", "--dry-run").out
    assert [word[:16] for word in dry.split() if word.startswith("2020")] == [
        "2020-02-02T23:30", "2020-02-03T23:30",
    ]  # fmt: skip
    assert moot("schedule", "backfill", name, "2d", "yesterday", "--dry-run").code == 0
    once = moot("schedule", "add", "hello", "--at", "17:00", "--zone", "Asia/Tokyo", "--dry-run")
    assert "T08:00:00" in once.out
    moot("schedule", "remove", name)


def test_mistakes_say_what_to_write_instead(moot: Cli) -> None:
    wrong = moot("schedule", "add", "hello", "wekday", "08:30")
    assert wrong.code != 0 and "weekday 08:30" in wrong.err
    assert "say when" in moot("schedule", "add", "hello").err
    assert "no schedule is called 'nowhere'" in moot("schedule", "show", "nowhere").err
    dry = moot("schedule", "add", "hello", "--every", "15m", "--dry-run")
    assert dry.out.startswith("next: ")


def test_what_was_missed_is_said_also_while_no_server_runs(tmp_path: Path) -> None:
    with Bench(database=tmp_path / "moot.db").flow("workflow: brief\nsteps: [{set: {a: 1}}]") as b:
        daily = {"workflowId": "brief", "kind": "words", "words": "daily 08:30", "catchUp": "none"}
        name = b.client.schedules.make(daily).schedule_id
        b.restart()
        b.clock.forward(20 * 3600)
        b.advance(seconds=1)
        assert len(b.client.inbox.list().notices) == 1
    alone = Cli(tmp_path)
    ways = f"moot schedule run {name} --missed / skip {name} --missed"
    said = f"1 missed fire at 2030-01-01T08:30:00.000000Z · {ways}"
    assert said in alone("schedule", "show", name).lines()
    assert alone("inbox").lines() == [f"brief: {said}"]


def test_the_command_that_a_notice_of_a_run_that_could_not_begin_names_finds_it(
    moot: Cli,
) -> None:
    def registered(inputs: str) -> None:
        text = f"workflow: brittle\n{inputs}steps: [{{set: {{a: 1}}}}]\n"
        (moot.folder / "brittle.yaml").write_text(text)
        assert moot("flow", "add", "brittle.yaml").code == 0

    for seconds in (2, 10, 30):  # more, where both commands were not done in time
        registered("")
        soon = datetime.now(UTC) + timedelta(seconds=seconds)
        told = moot("schedule", "add", "brittle", "--at", soon.isoformat()).out.split()
        registered("inputs: {topic: str}\n")
        if told and datetime.now(UTC) < soon:
            break
    name = told[0]
    while not (said := [line for line in moot("inbox").lines() if name in line]):
        pass
    [line] = said
    ways = f" · moot schedule run {name} --missed / skip {name} --missed"
    assert "could not begin" in line and line.endswith(ways)
    [shown] = [line for line in moot("schedule", "show", name).lines() if line.endswith(ways)]
    assert shown.startswith("The run for ")
    failed = moot("schedule", "run", name, "--missed").out
    assert failed.endswith(f"could not begin; see: moot schedule show {name}\n")
    registered("")
    assert " is started for " in moot("schedule", "run", name, "--missed").out
    assert moot("schedule", "skip", name, "--missed").code == 5
    assert name not in moot("inbox").out
    moot("schedule", "remove", name)
