"""Notices: what no run waits for is beside the inbox, and who watches it is told at once."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.api.roster.test_handles import asked, change
from tests.api.roster.test_roster import ROSTER, hired
from tests.support.api.caller import Api, definition

pytestmark = pytest.mark.usefixtures("within_a_day")

INBOX = "/v1/host/moot/inbox"
QUEUES = "/v1/host/moot/queues"
LIMIT = "tokensPerDay"


@pytest.fixture
def desk(api: Api, request: pytest.FixtureRequest) -> Api:
    """The administrator of a tenant of its own."""
    name = f"notices-{request.node.name[-60:]}"
    return api.with_key(api.new_key("owner", tenant=name, admin=True))


def notices(desk: Api) -> tuple[list[dict[str, Any]], int]:
    page = desk.get(INBOX).json()
    return page.get("notices", []), page["revision"]


def question(desk: Api, member: dict[str, Any], expected: str) -> None:
    run_id = asked(desk, agentId=member["rosterId"], inputs={"prompt": "Ready?"})
    assert desk.until(run_id)["status"] == expected


def test_a_limit_that_is_nearly_and_then_wholly_used_up_is_a_notice_once(desk: Api) -> None:
    sally = hired(desk)
    question(desk, sally, "completed")
    change(desk, sally, budget={LIMIT: 1_000_000})
    used = desk.get(f"{ROSTER}/{sally['rosterId']}").json()["budget"][0]["used"]
    change(desk, sally, budget={LIMIT: round(used * 1.15)})
    found, before = notices(desk)
    assert found == []
    with ThreadPoolExecutor(1) as others:
        watching = others.submit(desk.get, f"{INBOX}?revision={before}&wait=30")
        question(desk, sally, "completed")
        [warned] = watching.result().json()["notices"]
    assert (warned["kind"], warned["limit"]) == ("budget-warning", LIMIT)
    assert warned["rosterId"] == sally["rosterId"] and LIMIT in warned["text"]
    for _ in range(2):
        question(desk, sally, "failed")
    [stopped], revision = notices(desk)
    assert stopped["kind"] == "budget-stop" and "used up" in stopped["text"]
    question(desk, sally, "failed")
    assert notices(desk) == ([stopped], revision), "it is said once"
    change(desk, sally, budget={LIMIT: 1_000_000})
    found, later = notices(desk)
    assert found == [] and later > revision


def test_who_has_used_nearly_all_is_told_of_before_the_next_call(desk: Api) -> None:
    sally = hired(desk, budget={LIMIT: 1_000_000})
    question(desk, sally, "completed")
    for _ in range(2):  # a limit that was raised has a warning of its own
        used = desk.get(f"{ROSTER}/{sally['rosterId']}").json()["budget"][0]["used"]
        change(desk, sally, budget={LIMIT: round(used / 0.75)})
        assert notices(desk)[0] == [], "three quarters are no cause"
        question(desk, sally, "completed")
        [warned] = notices(desk)[0]
        assert (warned["kind"], warned["rosterId"]) == ("budget-warning", sally["rosterId"])


def test_a_dead_letter_moves_the_inbox_when_it_comes_and_when_it_goes(desk: Api) -> None:
    picky = definition("picky", [{"id": "a", "typeId": "core.noop"}])
    variables = [{"name": "amount", "type": "number", "required": True}]
    desk.post("/v1/host/moot/workflows", {**picky, "variables": variables})
    once = {"workflowId": "picky", "retryPolicy": {"maxAttempts": 1, "backoff": "none"}}
    for way in ("drop", "redeliver"):
        desk.call("PUT", f"{QUEUES}/quotes", json=once)
        _, before = notices(desk)
        item = desk.post(f"{QUEUES}/quotes/items", {"body": "x"}).json()["itemId"]
        [letter], revision = notices(desk)
        assert revision > before and letter["id"] == item
        assert letter["actions"] == ["redeliver", "drop"] and letter["queue"] == "quotes"
        if way == "redeliver":
            desk.post("/v1/host/moot/workflows", picky)
            desk.call("PUT", f"{QUEUES}/quotes", json=once)
        assert desk.post(f"{QUEUES}/quotes/items/{item}:{way}").status_code in (200, 202)
        found, later = notices(desk)
        assert found == [] and later > revision
