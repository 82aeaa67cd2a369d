"""moot hook: webhooks that come in, from the address to the last dead letter."""

import base64
import hashlib
import hmac
import http.client
import json
import time
from urllib.parse import urlsplit

from tests.support.cli.commands import Cli


def sent(url: str, secret: str, body: bytes, name: str) -> int:
    """What somebody does who was told the address and the secret."""
    seconds, key = str(int(time.time())), base64.b64decode(secret.removeprefix("whsec_"))
    digest = hmac.new(key, f"{name}.{seconds}.".encode() + body, hashlib.sha256).digest()
    headers = {
        "webhook-id": name, "webhook-timestamp": seconds,
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
    }  # fmt: skip
    found = urlsplit(url)
    connection = http.client.HTTPConnection(str(found.hostname), found.port or 80, timeout=30)
    connection.request("POST", found.path, body, headers)
    status = connection.getresponse().status
    connection.close()
    return status


def test_a_webhook_is_added_used_put_right_and_removed(moot: Cli) -> None:
    made = moot("hook", "add", "remembers")
    url, secret = made.lines()
    hook = url.rpartition("/")[2]
    assert secret.startswith("whsec_") and f"{hook} starts remembers" in made.err
    assert f"{hook}\tactive\tremembers" in moot("hook", "list").out
    assert sent(url, secret, b'{"title": "Tea", "text": 5}', "msg_0123456789abcdef") == 202
    shown = moot("hook", "show", hook[:12]).out
    assert f"address  {url}" in shown and "came in  1 dead" in shown
    [letter] = [line.split("\t")[0] for line in shown.splitlines() if line.startswith("dlv_")]
    [notice] = [line for line in moot("inbox").lines() if letter in line]
    assert f"item redeliver {letter} / drop {letter}" in notice
    assert moot("hook", "map", hook, "text=webhook.body.title").out == f"{hook} is mapped\n"
    assert "text is webhook.body.title" in moot("hook", "show", hook).out
    assert f"{letter} delivered run_" in moot("item", "redeliver", letter[:12]).out
    assert f"by webhook {hook}" in moot("item", "show", letter).out
    assert moot("hook", "pause", hook).out == f"{hook} is paused\n"
    assert sent(url, secret, b"{}", "msg_while_it_is_paused") == 409
    assert moot("hook", "resume", hook).code == 0
    fresh = moot("hook", "rotate", hook).lines()[1]
    assert fresh != secret
    assert sent(url, fresh, b'{"title": "x"}', "msg_with_the_new_one") == 202
    assert moot("hook", "remove", hook).out == f"{hook} starts nothing more\n"
    missing = moot("hook", "show", hook)
    assert missing.code == 5 and "See: moot hook list" in missing.err


def test_a_webhook_that_cannot_be_is_refused(moot: Cli) -> None:
    assert moot("hook", "add", "no-such-flow").code == 5
    wrong = moot("hook", "add", "hello", "--map", "name")
    assert wrong.code == 2 and "write INPUT=PATH" in wrong.err
    assert moot("hook", "add", "hello", "--member", "nobody-of-this-name").code == 5


# -- webhooks --------------------------------------------------------------------------------------


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
