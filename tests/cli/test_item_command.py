"""moot queue and moot item: put in, taken, looked at, given up, dropped."""

import json

from cli_helpers import Cli


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
    assert again.out.split()[0] == item_id
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


def test_what_is_not_there_is_said(moot: Cli) -> None:
    missing = moot("item", "show", "nothing")
    assert missing.code == 5 and "no item is called 'nothing'" in missing.err
    assert moot("queue", "bind", "cli-x", "--flow", "no-such-flow").code == 5
    assert moot("item", "push", "cli-x").code == 2
