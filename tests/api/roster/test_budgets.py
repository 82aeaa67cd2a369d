"""Who does the work pays for it: at a node that names it, in a council, in whoever's run."""

from typing import Any

import pytest

from tests.api.roster.test_handles import change, flow, verified
from tests.api.roster.test_roster import hired
from tests.api.roster.test_work import budget_of
from tests.support.api.caller import Api
from tests.support.api.questions import of

pytestmark = pytest.mark.usefixtures("within_a_day")

ONE = {"tokensPerDay": 1}
PLENTY = {"tokensPerDay": 1_000_000}


def work(node_id: str, member: dict[str, Any]) -> dict[str, Any]:
    config = {"agent": member["rosterId"], "prompt": "Say it."}
    return {"id": node_id, "typeId": "moot.agent", "config": config}


def held(api: Api, council: dict[str, Any]) -> str:
    """The run of a council in which everybody has had a say."""
    run_id = str(api.post("/v1/host/moot/councils", council).json()["runId"])
    after = -1
    while "moot.participation.stopped" not in api.types(run_id):
        after = max([e["sequence"] for e in api.poll(run_id, after, 5)["events"]], default=after)
    return run_id


def test_of_two_at_work_each_pays_its_own_and_who_has_nothing_left_stops_it(api: Api) -> None:
    sally, tom = hired(api, budget=PLENTY), hired(api, budget=PLENTY)
    both = flow(api, work("a", sally), work("b", tom))
    run_id = api.run(both)["runId"]
    used = [budget_of(api, member)["used"] for member in (sally, tom)]
    assert all(used)
    said = of(api, run_id, "moot.effect.finished")
    assert {each["chargedTo"] for each in said} == {sally["rosterId"], tom["rosterId"]}
    verified(api, run_id)
    change(api, sally, budget=ONE)
    stopped = api.run(both)
    assert stopped["status"] == "failed"
    assert stopped["error"]["code"] == "member_budget_used_up"
    assert budget_of(api, sally)["used"] == used[0], "nothing was called"
    begun = of(api, stopped["runId"], "moot.effect.finished")
    assert stopped["metrics"]["modelCalls"] == len([each for each in begun if "error" not in each])
    said = of(api, stopped["runId"], "moot.effect.finished")
    assert all("error" in each for each in said if each["chargedTo"] == sally["rosterId"])
    verified(api, stopped["runId"])


def test_a_members_words_in_a_council_are_paid_by_it_and_end_with_its_budget(api: Api) -> None:
    sally = hired(api, budget=PLENTY)
    other = sally["agentRef"]["agentId"]
    body = {"question": "Tea or coffee?", "participants": [sally["rosterId"], other],
            "policy": {"mode": "round-robin", "rounds": 1}}  # fmt: skip
    first = held(api, body)
    used = budget_of(api, sally)["used"]
    assert used > 0
    payers = [each.get("chargedTo") for each in of(api, first, "moot.effect.finished")]
    assert payers.count(sally["rosterId"]) == 1 and None in payers
    verified(api, first)
    change(api, sally, budget=ONE)
    second = held(api, body)
    answers = {each["agentId"]: each for each in of(api, second, "moot.participation.answered")}
    assert answers[sally["rosterId"]]["outcome"] == "failed"
    assert answers[other]["outcome"] == "spoke"
    assert budget_of(api, sally)["used"] == used
