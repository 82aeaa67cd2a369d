"""moot webhook: registered, paused, looked at, resumed, its dead letters acted on."""

import json

from tests.support.cli.commands import Cli


def test_a_webhook_is_paused_says_what_waits_and_is_resumed(moot: Cli) -> None:
    made = moot("webhook", "add", "https://receiver.invalid/", "--event", "run.completed")
    assert made.code == 0, made.err
    name = made.err.split()[0]
    assert moot("webhook", "pause", name).out.startswith(f"{name} is not called")
    assert moot("run", "hello").code == 0
    [row] = [line for line in moot("webhook", "list").lines() if line.startswith(name)]
    assert row.split("\t")[1:4] == ["paused", "1", "0"]
    assert "1 event waits for it" in moot("webhook", "show", name).out
    turned = json.loads(moot("webhook", "resume", name, "--json").out)
    assert turned["state"] == "active"
    again = moot("webhook", "redeliver", name, "--all")
    assert again.out == "0 dead letters are on the way again\n"
    assert moot("webhook", "drop", name, "--all").out == "0 dead letters are dropped\n"
    assert moot("webhook", "drop", name).code == 2
    assert moot("webhook", "redeliver", name, "out_nothing").code == 5
    assert moot("webhook", "remove", name).code == 0


def test_a_slip_in_a_type_of_events_is_pointed_out(moot: Cli) -> None:
    slip = moot("webhook", "add", "https://receiver.invalid/", "--event", "run.complete")
    assert slip.code != 0 and "did you mean 'run.completed'?" in slip.err
