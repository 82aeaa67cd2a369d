"""moot agent hire, pause, run-now …: a standing agent from the first day to the last."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli.commands import Cli

pytestmark = pytest.mark.usefixtures("within_a_day")

AGENT = "---\nrole: sales ops\n---\nYou keep the pipeline tidy.\n"


@pytest.fixture
def sally(moot: Cli, tmp_path: Path) -> str:
    file = tmp_path / "sales.md"
    file.write_text(AGENT)
    name = f"sally-{tmp_path.name.replace('_', '-')}"[:60]
    done = moot("agent", "hire", name, "--persona", "Sally", "--role", "sales ops",
                "--from", str(file), "--portfolio", "hello")  # fmt: skip
    assert f"Sally (host:{name}) is on staff" in done.out
    return name


def data(moot: Cli, *words: str) -> Any:
    return json.loads(moot(*words, "--json").out)


def test_a_member_is_hired_shown_paused_resumed_and_let_go(moot: Cli, sally: str) -> None:
    assert (
        f"host:{sally}\tSally\tsales ops\tdemo\ton duty\t-\t-\t1 workflow"
        in moot("agent", "list").lines()
    )
    first, *_, row = moot("agent", "show", sally).lines()
    assert re.fullmatch(
        r"Sally · sales ops · ● on duty \(since \d+ (second|minute)s?\) +owner you +model demo",
        first,
    )
    assert row.split("\t") == ["hello", "-", "-", "never", "0 runs"]
    done = moot("agent", "pause", sally, "--reason", "quarter close", "--until", "monday")
    assert re.fullmatch(r"Sally is paused until Mon.* 08:00 \S+\. It has no triggers\.\n", done.out)
    shown = moot("agent", "show", sally).lines()[0]
    assert "⏸ paused by you, quarter close, until Mon" in shown
    refused = moot("agent", "run-now", sally, "hello")
    assert refused.code == 1 and "is paused" in refused.err
    assert "Sally is on duty" in moot("agent", "resume", sally).out
    item = moot("item", "push", f"{sally[:50]}-on-hold", "--subject", "A quote").out.split()[0]
    given = moot("agent", "run-now", sally, "hello", "--item", "@last").out.strip()
    began = json.loads(moot("run", "tail", given, "--json").out.splitlines()[0])
    assert began["payload"]["trigger"]["deliveryId"] == item
    assert "would be started by Sally" in moot("agent", "run-now", sally, "hello", "--dry-run").out
    [run_id] = moot("agent", "run-now", sally, "hello").lines()
    assert run_id in moot("agent", "runs", sally).out
    assert "is let go" in moot("agent", "dismiss", sally).out
    assert run_id in moot("agent", "runs", sally).out
    assert moot("agent", "pause", sally).code != 0
    first, *_, row = moot("agent", "show", sally).lines()
    assert "○ dismissed by you (" in first
    assert re.fullmatch(r"hello\t-\t-\t✓ [\d.]+ (ms|s)\t▁{12,13}▃▁?", row)
    assert data(moot, "agent", "show", sally)["status"] == "dismissed"
    assert moot("agent", "show", "nobody-of-that-name").code == 5


def test_its_page_says_what_wakes_it_when_and_what_it_asks(moot: Cli, sally: str) -> None:
    name = f"{sally[:50]}-page"
    woken = ("--every", "weekday 08:30 Europe/Berlin", "--on", f"queue:{name}")
    who = ("--persona", "Ann", "--agent", "sales", "--portfolio", "hello,asks")
    assert not moot("agent", "hire", name, *who, *woken).err
    run_id = moot("item", "push", name, "--subject", "A quote").out.split()[2]
    while not (found := data(moot, "agent", "show", name))["waiting"]:
        assert found["portfolio"][1]["last"]["runId"] == run_id
    [asked] = found["waiting"]
    screen = moot.on_terminal("agent", "show", name, columns=200).out
    for word in (
        "PORTFOLIO", "TRIGGER", "NEXT", "LAST", "14 D", "weekday 08:30 Europe/Berlin",
        f"queue:{name}", "on arrival", "⏸ waiting", "▁" * 12, "never", "0 runs",
        f'WAITING ON YOU  {run_id[:12]} asks/gate "Ship it?"  moot approve {asked["number"]}',
        "● on duty (since",
    ):  # fmt: skip
        assert word in screen, (word, screen)
    due = found["portfolio"][0]["triggers"][0]["nextFireAt"]
    assert f"hello\tweekday 08:30 Europe/Berlin\t{due}\t" in moot("agent", "show", name).out
    done = moot("agent", "pause", name)
    assert done.out == (
        f"Ann is paused. 2 triggers are inert. Running: {run_id} continues"
        " (use --stop to cancel it).\n"
    )
    assert "\tinert\t" in moot("agent", "show", name).out
    assert "inert: Ann is paused" in moot("schedule", "list", "--member", name).out
    assert f"{name}\tinert: Ann is paused" in moot("queue", "list").out
    done = moot("agent", "pause", name, "--stop")
    assert done.out == f"Ann is paused. 2 triggers are inert. Cancelled: {run_id}.\n"
    assert data(moot, "agent", "show", name)["waiting"] == []


def test_a_member_is_changed(moot: Cli, sally: str) -> None:
    moot("agent", "set", sally, "persona=Sal", "tokens-per-day=20k", "money-per-month=2.50")
    found = data(moot, "agent", "show", sally)
    assert found["persona"] == "Sal"
    assert {each["limit"]: each["most"] for each in found["budget"]} == {
        "tokensPerDay": 20_000, "moneyPerMonth": 2.5,
    }  # fmt: skip
    assert "tokensPerDay: 0 of 20000" in moot("agent", "show", sally).out
    moot("agent", "set", sally, "tokens-per-day=", "money-per-month=", "portfolio=")
    found = data(moot, "agent", "show", sally)
    assert "budget" not in found and not found.get("workflows")
    for wrong, word in (("personna=x", "did you mean 'persona'"), ("x", "KEY=VALUE"),
                        ("tokens-per-day=many", "a number")):  # fmt: skip
        done = moot("agent", "set", sally, wrong)
        assert done.code == 2 and word in done.err


def test_whose_instance_it_is_must_be_said_once(moot: Cli, sally: str) -> None:
    assert moot("agent", "hire", "mo").code == 2
    assert "--from FILE or --agent NAME" in moot("agent", "hire", "mo").err
    done = moot("agent", "hire", "mo", "--agent", "sales", "--portfolio", "helo")
    assert done.code == 1 and "'hello'" in done.err
    assert moot("agent", "hire", "mo", "--agent", "sales", "--every", "monday").code == 2
    assert moot("agent", "hire", "mo", "--agent", "sales", "--channel", "x").code == 1


@pytest.mark.parametrize("wrong", [
    ("--every", "weekday 25:99 Nowhere"), ("--on", "webhook:x"), ("--on", "queue:UPPER"),
    ("--on", "queue:fine", "--every", "weekdy 08:30"),
], ids=str)  # fmt: skip
def test_nobody_is_hired_who_could_not_be_woken_as_was_said(
    moot: Cli, sally: str, wrong: tuple[str, ...]
) -> None:
    name = f"{sally[:50]}-not"
    done = moot("agent", "hire", name, "--agent", "sales", "--portfolio", "hello", *wrong)
    assert done.code in (1, 2) and done.err.startswith("error: ") and not done.out
    assert moot("agent", "show", name).code == 5
    assert "fine" not in moot("queue", "list").out


def test_a_queue_of_somebody_is_taken_over_only_when_that_is_said(moot: Cli, sally: str) -> None:
    first, second = f"{sally[:40]}-first", f"{sally[:40]}-second"
    hire = ("--agent", "sales", "--portfolio", "hello", "--on", f"queue:{first}")
    assert moot("agent", "hire", first, *hire).code == 0
    refused = moot("agent", "hire", second, *hire)
    assert refused.code == 1 and f"{first} is host:{first}'s; --take-over" in refused.err
    assert moot("agent", "show", second).code == 5
    refused = moot("queue", "bind", first, "--flow", "hello")
    assert refused.code == 1 and f"host:{first}" in refused.err
    assert moot("agent", "hire", second, *hire, "--take-over").code == 0
    assert f"host:{second}" in moot("queue", "list").out


def test_who_is_hired_can_be_woken_by_a_webhook(moot: Cli, sally: str) -> None:
    name = f"{sally[:50]}-called"
    done = moot("agent", "hire", name, "--agent", "sales", "--portfolio", "hello",
                "--on", "webhook")  # fmt: skip
    told, secret = done.lines()
    assert "listens at http" in told and secret.startswith("whsec_")
    [row] = [line for line in moot("hook", "list").lines() if f"host:{name}" in line]
    assert row.split("\t")[1:3] == ["active", "hello"]


def test_work_that_came_in_is_given_again_by_a_beginning_of_its_id(moot: Cli, sally: str) -> None:
    pushed = data(moot, "item", "push", f"{sally[:40]}-q", "-i", "name=Ada")
    done = moot("agent", "run-now", sally, "hello", "--item", pushed["itemId"][:10])
    assert done.code == 0, done.err
    assert data(moot, "run", "show", done.out.strip())["variables"]["name"] == "Ada"
    missing = moot("agent", "run-now", sally, "hello", "--item", "wi_nothing")
    assert missing.code == 5 and "no item is called" in missing.err


def test_who_is_hired_can_be_woken_by_times_and_by_a_queue(moot: Cli, sally: str) -> None:
    name = f"{sally[:50]}-woken"
    done = moot("agent", "hire", name, "--agent", "sales", "--portfolio", "hello",
                "--every", "weekday 08:30 Europe/Berlin", "--on", f"queue:{name}")  # fmt: skip
    assert "next: hello" in done.out and f"listens to queue:{name}" in done.out and not done.err
    pushed = moot("item", "push", name, "--subject", "A quote").out.split()
    assert pushed[1] == "accepted" and pushed[3] == f"host:{name}"
    assert pushed[2] in moot("agent", "runs", name).out


def test_an_item_that_waits_for_its_member_says_what_brings_it_back(moot: Cli, sally: str) -> None:
    queue = f"{sally[:50]}-mail"
    assert moot("queue", "bind", queue, "--flow", "hello", "--member", sally).code == 0
    moot("agent", "set", sally, "enabled=no")
    assert f"agent set {sally} enabled=yes" in moot("item", "push", queue, "--body", "x").err
    resumed = moot("agent", "resume", sally)
    assert resumed.out == "Sally is disabled.\n" and f"{sally} enabled=yes" in resumed.err
    moot("agent", "set", sally, "enabled=yes")
    moot("agent", "pause", sally)
    assert f"agent resume {sally}" in moot("item", "push", queue, "--body", "x").err
    moot("agent", "resume", sally)
    moot("agent", "set", sally, "portfolio=")
    assert f"agent set {sally} portfolio=hello" in moot("item", "push", queue, "--body", "x").err
    moot("agent", "dismiss", sally)
    assert f"queue bind {queue} --flow hello" in moot("item", "push", queue, "--body", "x").err


# -- dismissals ------------------------------------------------------------------------------------


def test_what_is_left_behind_is_told_and_taken_over(moot: Cli, tmp_path: Path) -> None:
    file = tmp_path / "clerk.md"
    file.write_text("---\nrole: clerk\n---\nBe brief.\n")
    hire = ["agent", "hire", "lea", "--from", str(file), "--portfolio", "hello",
            "--every", "weekday 08:30", "--on", "queue:lea-mail"]  # fmt: skip
    assert moot(*hire).code == 0
    [schedule] = [line.split("\t") for line in moot("schedule", "list", "--member", "lea").lines()]
    first, *left = moot("agent", "dismiss", "lea").lines()
    assert "host:lea is let go" in first
    assert [line.partition(" · ")[0] for line in left] == [
        "Paused: hello by schedule", "Paused: queue:lea-mail → hello",
    ]  # fmt: skip
    assert f"schedule resume {schedule[0]} --member NAME" in left[0]
    assert "queue bind lea-mail --flow hello --member NAME" in left[1]
    pushed = moot("item", "push", "lea-mail", "--subject", "quote")
    assert pushed.code == 0 and pushed.err.startswith("It waits: The queue lea-mail is paused")
    assert "queue bind lea-mail --flow hello --member NAME" in pushed.err
    refused = moot("schedule", "resume", schedule[0])
    assert refused.code == 1 and "no member host:lea" in refused.err
    again = moot(*hire[:7]).lines()
    assert f"schedule resume {schedule[0]}" in again[1] and "queue resume lea-mail" in again[2]
    assert moot("schedule", "resume", schedule[0], "--member", "lea").code == 0
    assert moot("queue", "resume", "lea-mail").code == 0
