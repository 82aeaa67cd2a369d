"""moot queue and moot item: put in, taken, looked at, given up, dropped."""

import json

from tests.support.cli.commands import Cli


def test_items_of_a_queue_become_runs_and_are_shown_with_them(moot: Cli) -> None:
    waiting = moot("item", "push", "cli-leads", "--subject", "ACME", "--key", "mail-1")
    assert waiting.code == 0, waiting.err
    item_id, status = waiting.out.split()
    assert status == "waiting" and item_id.startswith("wi_")
    bound = moot("queue", "bind", "cli-leads", "--flow", "hello")
    assert bound.out == "cli-leads: hello takes from it\n", bound.err
    pushed = json.loads(
        moot("item", "push", "cli-leads", "--body", "Hi", "-i", "n=1", "--json").out
    )
    assert pushed["status"] == "accepted"
    again = moot("item", "push", "cli-leads", "--subject", "ACME", "--key", "mail-1")
    assert again.out.split()[0] == item_id and "already" not in waiting.err
    assert (
        f"It was there already under this key; nothing was added. See: moot item show {item_id}"
        in (again.err)
    )
    shown = moot("item", "show", pushed["itemId"][:9])
    assert f"{pushed['itemId']} delivered in cli-leads" in shown.out
    assert f"run       {pushed['runId']} hello" in shown.out
    newest = moot("item", "push", "cli-leads", "--subject", "Last").out.split()[0]
    assert moot("item", "show", "@last").out.startswith(f"{newest} ")
    assert moot("item", "drop", "@last").code == 1, "it was delivered"
    [row] = [line for line in moot("queue", "list").lines() if line.startswith("cli-leads\t")]
    assert row.split("\t")[1:3] == ["active", "hello"]
    listed = json.loads(moot("item", "list", "cli-leads", "--json").out)
    assert {each["itemId"] for each in listed} == {item_id, pushed["itemId"], newest}


def test_an_item_waits_while_its_queue_is_paused_and_can_be_dropped(moot: Cli) -> None:
    moot("queue", "bind", "cli-slow", "--flow", "hello", "--tries", "1")
    assert moot("queue", "pause", "cli-slow").out == "cli-slow is paused\n"
    item_id = moot("item", "push", "cli-slow", "--body", "x").out.split()[0]
    assert moot("item", "redeliver", item_id).code == 1
    assert moot("item", "drop", item_id).out == f"{item_id} dropped\n"
    assert moot("queue", "resume", "cli-slow").out == "cli-slow is active\n"
    assert moot("item", "list", "cli-slow", "--state", "waiting").out == ""
    assert moot("queue", "unbind", "cli-slow").code == 0


def test_an_item_that_cannot_be_says_why_and_what_to_do(moot: Cli) -> None:
    moot("queue", "bind", "cli-notes", "--flow", "remembers")
    pushed = moot("item", "push", "cli-notes", "--body", "Hi", "-i", "text=5")
    item_id, status = pushed.out.split()
    assert (pushed.code, status) == (1, "dead")
    assert "'text' must be a string" in pushed.err and f"item redeliver {item_id}" in pushed.err
    [queue] = [line for line in moot("queue", "list").lines() if line.startswith("cli-notes\t")]
    assert queue.split("\t")[1] == "active"
    shown = moot("item", "show", item_id).out
    assert "text:     5" in shown and "body:     Hi" in shown
    [row] = moot("item", "list", "cli-notes", "--state", "dead").lines()
    assert row.split("\t")[6] == "-" and "'text' must be" in row.split("\t")[7]
    [notice] = [line for line in moot("inbox").lines() if item_id in line]
    assert f"moot item redeliver {item_id} / drop {item_id}" in notice
    again = moot("item", "redeliver", item_id)
    assert "dead: validation_error" in again.out
    moot("item", "drop", item_id)
    assert "text:" not in moot("item", "show", item_id).out
    assert item_id not in moot("inbox").out


def test_an_item_that_waits_says_for_what(moot: Cli) -> None:
    waits = moot("item", "push", "cli-idle", "--body", "x")
    assert waits.code == 0 and "queue bind cli-idle --flow FLOW" in waits.err
    moot("queue", "bind", "cli-idle", "--flow", "hello")
    moot("queue", "pause", "cli-idle", "--reason", "quarter close")
    assert "paused: quarter close" in moot("queue", "list").out
    waits = moot("item", "push", "cli-idle", "--body", "x")
    assert "The queue cli-idle is paused (quarter close)" in waits.err
    assert "queue resume cli-idle" in waits.err
    refused = moot("item", "redeliver", waits.out.split()[0])
    assert refused.code == 1 and "queue resume cli-idle" in refused.err
    told = moot("queue", "pause", "cli-idle", "--reason", "quarter close", "--until", "2h").out
    assert told.startswith("cli-idle is paused until ")
    end = told.removeprefix("cli-idle is ").rstrip()
    assert f"{end}: quarter close" in moot("queue", "list").out
    moot("queue", "resume", "cli-idle")
    assert "quarter close" not in moot("queue", "list").out
    assert moot("queue", "pause", "cli-idle", "--until", "someday").code == 2
    done = moot("item", "push", "cli-idle", "--body", "x").out.split()
    refused = moot("item", "redeliver", done[0])
    assert refused.code == 1 and f"run-now MEMBER FLOW --item {done[0]}" in refused.err


def test_what_is_not_there_is_said(moot: Cli) -> None:
    missing = moot("item", "show", "nothing")
    assert missing.code == 5 and "no item is called 'nothing'" in missing.err
    assert moot("queue", "bind", "cli-x", "--flow", "no-such-flow").code == 5
    assert moot("item", "push", "cli-x").code == 2
