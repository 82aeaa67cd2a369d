"""A secret input of a workflow stands nowhere in clear: by no other input, and in no schedule."""

import json
from typing import Any

import pytest

from tests.support.api.caller import Api, definition
from tests.support.api.questions import refused

QUEUES = "/v1/host/moot/queues"
SCHEDULES = "/v1/host/moot/schedules"
SUBSCRIPTIONS = "/v1/trigger-subscriptions"
CANARY = "canary-7d40-pin"
PIN = {"name": "pin", "type": "string", "sensitive": True, "required": True}
WHOLE = [{"name": name, "type": "object"} for name in ("item", "body", "trigger")]
KNOWN = {"type": "expression", "expression": f"variables.pin == '{CANARY}'"}
CHECK = {"id": "check", "typeId": "core.identity", "inputs": {"known": KNOWN}}


@pytest.fixture(scope="module")
def desk(api: Api) -> Api:
    found = api.with_key(api.new_key("owner", tenant="secret-inputs", admin=True))
    found.register({**definition("secretive", [CHECK]), "variables": [PIN, *WHOLE]})
    items = {"name": "items", "type": "array"}
    noop = {"id": "a", "typeId": "core.noop"}
    found.register({**definition("collects", [noop]),
                    "variables": [{**PIN, "required": False}, items]})  # fmt: skip
    return found


def began(desk: Api, run_id: str) -> dict[str, Any]:
    """What the run was given; neither its log nor its snapshot has the secret."""
    snapshot = desk.until(run_id)
    events = desk.events(run_id)
    assert CANARY not in json.dumps(events) and CANARY not in json.dumps(snapshot)
    given: dict[str, Any] = events[0]["payload"]["inputs"]
    return given


def pushed(desk: Api, queue: str, **item: Any) -> dict[str, Any]:
    answer = desk.post(f"{QUEUES}/{queue}/items", item)
    assert answer.status_code == 202, answer.text
    return dict(answer.json())


def knew_it(desk: Api, run_id: str) -> bool:
    done = [each for each in desk.events(run_id) if each["type"] == "node.completed"]
    return bool(done[0]["payload"]["outputs"]["known"])


def test_the_field_of_an_item_that_fills_a_secret_input_is_in_no_other_input(desk: Api) -> None:
    desk.call("PUT", f"{QUEUES}/named", json={"workflowId": "secretive"})
    run = pushed(desk, "named", pin=CANARY, note="plain")["runId"]
    given = began(desk, run)
    assert given["pin"] == "[REDACTED]" and given["item"] == {"note": "plain"}
    assert given["trigger"]["queue"] == {"note": "plain"}
    assert knew_it(desk, run)


@pytest.mark.parametrize(
    ("mapping", "left"),
    [
        ({"pin": "queue.card.number", "item": "queue"}, {"item": {"card": {"of": "ACME"}}}),
        ({"pin": "queue.card.number", "item": "queue.card"}, {"item": {"of": "ACME"}}),
        ({"pin": "queue.card.number", "body": "queue.card.number"}, {}),
        ({"pin": "queue.card.number", "trigger": "queue.list"}, {}),
    ],
)
def test_a_place_that_is_mapped_to_a_secret_input_is_in_no_other_input(
    desk: Api, mapping: dict[str, str], left: dict[str, Any]
) -> None:
    desk.call("PUT", f"{QUEUES}/mapped", json={"workflowId": "secretive", "inputMapping": mapping})
    item = pushed(desk, "mapped", card={"number": CANARY, "of": "ACME"})
    given = began(desk, item["runId"])
    assert {**given, "pin": "[REDACTED]"} == given == {"pin": "[REDACTED]", **left}


def test_the_field_of_a_body_that_fills_a_secret_input_is_in_no_other_input(desk: Api) -> None:
    wanted = {"source": "webhook", "workflowId": "secretive", "verification": {"mode": "none"}}
    made = desk.post(SUBSCRIPTIONS, wanted).json()
    path = made["binding"]["ingestUrl"].removeprefix(desk.url)
    answer = desk.with_key(None).post(path, {"pin": CANARY, "note": "plain"})
    given = began(desk, answer.json()["runId"])
    assert given["body"] == {"note": "plain"}
    assert given["trigger"]["webhook"]["body"] == {"note": "plain"}


def test_items_of_a_schedule_have_no_field_with_the_name_of_a_secret_input(desk: Api) -> None:
    item = pushed(desk, "kept", pin=CANARY, note="plain")["itemId"]
    wanted = {"workflowId": "collects", "kind": "interval", "intervalSeconds": 86_400,
              "condition": {"queue": "kept"}}  # fmt: skip
    made = desk.post(SCHEDULES, wanted).json()
    run = desk.post(f"{SCHEDULES}/{made['scheduleId']}/run", {}).json()["runId"]
    [given] = began(desk, run)["items"]
    assert (given["itemId"], given["item"]) == (item, {"note": "plain"})
    assert CANARY not in desk.get(f"{QUEUES}/kept/items/{item}").text


def test_a_subject_that_fills_a_secret_input_is_not_shown_with_its_item(desk: Api) -> None:
    wanted = {"workflowId": "secretive", "inputMapping": {"pin": "queue.subject"}}
    queue = desk.call("PUT", f"{QUEUES}/titled", json=wanted).json()
    item = pushed(desk, "titled", subject=CANARY)
    began(desk, item["runId"])
    desk.call("PATCH", f"{SUBSCRIPTIONS}/{queue['subscriptionId']}", json={"state": "paused"})
    assert pushed(desk, "titled", subject=CANARY)["status"] == "waiting"
    for path in ("", f"/{item['itemId']}"):
        assert CANARY not in desk.get(f"{QUEUES}/titled/items{path}").text


def test_a_secret_that_is_said_once_more_in_its_item_is_masked_there(desk: Api) -> None:
    desk.call("PUT", f"{QUEUES}/repeated", json={"workflowId": "secretive"})
    again = {"again": CANARY, "deep": [{"note": f"it is {CANARY}!", CANARY: 1}], "short": "cana"}
    item = pushed(desk, "repeated", pin=CANARY, subject=f"pin {CANARY}", body=again)
    given = began(desk, item["runId"])
    masked = {"again": "[REDACTED]", "short": "cana",
              "deep": [{"note": "it is [REDACTED]!", "[REDACTED]": 1}]}  # fmt: skip
    assert given["body"] == masked
    assert given["item"] == {"subject": "pin [REDACTED]", "body": masked}
    assert knew_it(desk, item["runId"]), "the run itself has the secret"
    shown = desk.get(f"{QUEUES}/repeated/items/{item['itemId']}")
    assert shown.json()["subject"] == "pin [REDACTED]" and CANARY not in shown.text


def test_a_secret_is_masked_in_the_subject_of_what_waits_and_of_what_a_schedule_takes(
    desk: Api,
) -> None:
    queue = desk.call("PUT", f"{QUEUES}/subjects", json={"workflowId": "secretive"}).json()
    desk.call("PATCH", f"{SUBSCRIPTIONS}/{queue['subscriptionId']}", json={"state": "paused"})
    assert pushed(desk, "subjects", pin=CANARY, subject=f"Re: {CANARY}")["status"] == "waiting"
    [waits] = desk.get(f"{QUEUES}/subjects/items").json()["items"]
    assert waits["subject"] == "Re: [REDACTED]"
    item = pushed(desk, "taken", pin=CANARY, subject=CANARY, note=f"<{CANARY}>")["itemId"]
    wanted = {"workflowId": "collects", "kind": "interval", "intervalSeconds": 86_400,
              "condition": {"queue": "taken"}}  # fmt: skip
    made = desk.post(SCHEDULES, wanted).json()
    run = desk.post(f"{SCHEDULES}/{made['scheduleId']}/run", {}).json()["runId"]
    [given] = began(desk, run)["items"]
    assert given["item"] == {"subject": "[REDACTED]", "note": "<[REDACTED]>"}
    assert CANARY not in desk.get(f"{QUEUES}/taken/items/{item}").text


def test_a_number_is_masked_as_text_too_and_what_is_too_short_is_not(desk: Api) -> None:
    pin = {"name": "pin", "type": "number", "sensitive": True}
    desk.register({**definition("numeric", [{"id": "a", "typeId": "core.noop"}]),
                   "variables": [pin, *WHOLE]})  # fmt: skip
    desk.call("PUT", f"{QUEUES}/numbers", json={"workflowId": "numeric"})
    for value, seen in ((73_041, ["[REDACTED]", "no [REDACTED]", 7]), (730, [730, "no 730", 7])):
        run = pushed(desk, "numbers", pin=value, list=[value, f"no {value}", 7])["runId"]
        desk.until(run)
        assert desk.events(run)[0]["payload"]["inputs"]["item"] == {"list": seen}


def test_a_schedule_shows_its_secret_inputs_to_nobody_and_gives_them_to_its_runs(
    desk: Api,
) -> None:
    wanted = {"workflowId": "secretive", "kind": "interval", "intervalSeconds": 86_400,
              "inputs": {"pin": CANARY, "item": {"a": 1}}}  # fmt: skip
    checked, answer = desk.post(f"{SCHEDULES}:check", wanted), desk.post(SCHEDULES, wanted)
    assert answer.json()["inputs"] == {"pin": "[REDACTED]", "item": {"a": 1}}
    path = f"{SCHEDULES}/{answer.json()['scheduleId']}"
    seen = [checked, answer, desk.get(SCHEDULES), desk.get(path), desk.get(f"{path}/history")]
    seen += [desk.call("PATCH", path, json={"overlap": "allow"}), desk.post(f"{path}/pause", {})]
    seen += [desk.post(f"{path}/resume", {})]
    assert [each.status_code for each in seen] == [200, 201, *[200] * 6]
    assert not any(CANARY in each.text for each in seen)
    back = {"inputs": answer.json()["inputs"]}
    refused(desk.call("PATCH", path, json=back), 400, "validation_error")
    run = desk.post(f"{path}/run", {}).json()["runId"]
    began(desk, run)
    assert knew_it(desk, run)
