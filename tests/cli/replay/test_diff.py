"""moot diff: what two runs have in common, and what became of the rest."""

import json
import re

from tests.support.cli.commands import Cli
from tests.support.cli.runs import answered, events, finished, replayed, talked

COLOURS = re.compile("\x1b\\[[0-9;]*m")


def test_a_replay_differs_in_nothing(moot: Cli) -> None:
    source = answered(moot, "accept")
    copy = replayed(moot, source)
    count = len(events(moot, source))
    done = moot("diff", source, copy, "--exit-code")
    assert done.code == 0
    lines = done.lines()
    assert lines[0] == f" common   #0\u2013#{count - 1}  ({count} events)"
    assert lines[1] == " same     nothing differs"
    assert lines[2] == " outcome  completed → completed"
    assert re.fullmatch(rf" {{10}}events {count} → {count} {{4}}time .* → .*", lines[3])
    found = json.loads(moot("diff", source, copy, "--json").out)
    assert (found["identical"], found["common"], found["changes"]) == (True, count, [])
    assert {line["op"] for line in found["lines"]} == {"same"}


def test_two_answers_lead_two_ways(moot: Cli) -> None:
    yes, no = answered(moot, "accept"), answered(moot, "reject", comment="too dear")
    done = moot("diff", yes, no)
    assert done.code == 0
    lines = done.lines()
    assert lines[0] == " common   #0\u2013#4  (5 events)"
    assert any(line.startswith(" - #5   gate  answered by") for line in lines)
    assert " + #8   gate  ✗ failed: approval_rejected: too dear" in lines
    assert " - #11  run completed" in lines
    assert " outcome  completed → failed (approval_rejected)" in lines
    assert moot("diff", yes, no, "--exit-code").code == 1
    assert moot("diff", yes, yes, "--exit-code").code == 0


def test_what_was_said_otherwise_is_shown_word_by_word(moot: Cli) -> None:
    one = talked(moot, "Two of three sources confirm it", "Good.")
    other = talked(moot, "Two of four sources confirm it", "Good.")
    [line] = [line for line in moot("diff", one, other).lines() if line.startswith(" ~")]
    assert line.endswith("Two of [-three-] {+four+} sources confirm it")


def test_json_has_every_event_on_exactly_one_line(moot: Cli) -> None:
    yes, no = answered(moot, "accept"), answered(moot, "reject")
    found = json.loads(moot("diff", yes, no, "--json").out)
    for side, run_id in (("a", yes), ("b", no)):
        numbers = [line[side] for line in found["lines"] if side in line]
        assert numbers == [event["sequence"] for event in events(moot, run_id)]
        assert found[side]["runId"] == run_id
        assert found[side]["events"] == len(numbers)
    assert found["complete"] is True
    changed = next(line for line in found["lines"] if line["op"] == "changed")
    assert changed["paths"] == ["resumeValue.action"]
    assert changed["aEvent"]["payload"]["resumeValue"] == {"action": "accept"}


def test_a_terminal_gets_lines_that_fit_and_colours(moot: Cli) -> None:
    one, other = (finished(moot, "hello", name=f"{'x ' * 60}{n}") for n in "ab")
    screen = moot.on_terminal("diff", one, other, columns=80).out
    assert "\x1b[31m - #0" in screen and "\x1b[32m + #0" in screen
    assert all(len(line) <= 80 for line in COLOURS.sub("", screen).splitlines())


def test_a_run_that_is_not_there_cannot_be_compared(moot: Cli) -> None:
    run_id = finished(moot, "hello")
    assert moot("diff", run_id, "zz9").code == 5
    assert moot("diff", run_id).code == 2
