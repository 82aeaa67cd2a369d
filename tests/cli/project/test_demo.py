"""The demo: no key, no network, nothing to type; from the question to the minutes."""

import re

from tests.support.cli.commands import Cli
from tests.support.cli.terminal import MARK, Person


def test_the_demo_seats_a_council_and_ends_with_a_decision_and_minutes(alone: Cli) -> None:
    done = alone("demo", MOOT_DEMO_WPS="0")
    assert done.code == 0, done.err
    banner, seated, seats, *rest = done.lines()
    assert re.fullmatch(
        r"moot \S+ · http://127\.0\.0\.1:\d+ · data moot-demo\.db"
        r" · model: demo \(offline, no key\)",
        banner,
    )
    question = "Should a 4-person startup rewrite its billing service?"
    assert seated == f'Seated a council of 3 on "{question}"'
    assert seats == "  Ada (skeptic) · Bo (builder) · Cy (measurer)   moderator: Mo"
    assert any(line.startswith(" 1 Ada  ") for line in rest)
    assert any(line.startswith("Closed. Decision recorded") for line in rest)
    assert "Minutes written to moot-demo.md." in rest
    minutes = (alone.folder / "moot-demo.md").read_text()
    assert minutes.startswith(f"# {question}")
    assert "## Decision" in minutes
    assert alone("db", "verify", "moot-demo.db").code == 0
    again = re.search(r"watch (\S+) --from-start", done.out)
    assert again is not None
    shown = alone("thread", "export", again[1], "--database", "moot-demo.db")
    assert shown.out == minutes


def test_a_fresh_demo_leaves_nothing_and_prints_its_minutes(alone: Cli) -> None:
    done = alone("demo", "--fresh", MOOT_DEMO_WPS="0")
    assert done.code == 0, done.err
    assert "## Decision" in done.out
    assert list(alone.folder.iterdir()) == []


def test_a_demo_that_is_stopped_has_kept_its_turns_and_can_be_gone_on_with(alone: Cli) -> None:
    me = Person(alone.folder, "demo", MOOT_DEMO_WPS="20")
    try:
        me.until(r"^ 0 you  Should a 4-person", r"^ 2 Bo  ")
        me.type("\x03")
        assert me.end() == 130
        said = re.search(r"Stopping… (\d) turns saved\. Resume: moot serve (\S+)$",
                         me.glass.text, re.M)  # fmt: skip
        assert said is not None, me.glass.text
        assert int(said[1]) >= 2
    finally:
        me.leave()
    listed = alone("run", "list", "--database", said[2])
    assert "waiting-approval" in listed.out


def test_a_person_can_take_part_in_the_demo(alone: Cli) -> None:
    me = Person(alone.folder, "demo", MOOT_DEMO_WPS="30")
    try:
        me.until(f"^{MARK}")
        me.enter("@bo what would you build first?")
        me.until(r"you → Bo  what would you build first\?", "Minutes written to moot-demo.md")
        assert me.end() == 0
    finally:
        me.leave()
