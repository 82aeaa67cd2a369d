"""Nobody's word or approval is borrowed by a fork, a workflow or an agent's name."""

from typing import Any

import pytest

from tests.support.api.caller import Api, definition
from tests.support.api.questions import gate, resolve


def limited(api: Api, *scopes: str, **given: Any) -> Api:
    made = api.post("/v1/host/moot/keys", {"name": "few", "scopes": list(scopes), **given})
    return api.with_key(made.json()["key"])


def test_what_an_approval_let_through_is_not_let_through_again_without_the_right(api: Api) -> None:
    approval = gate("approvalGate", title="Pay?", actions=["accept", "reject"])
    name = api.register(definition("pays", [approval]))
    run_id = api.create(name)
    api.until(run_id, "waiting-approval")
    resolve(api, run_id, {"action": "accept"})
    api.until(run_id, "completed")
    few = limited(api, "runs:create", "runs:read")
    branch = {"mode": "branch", "fromSeq": 1}
    refusals = [
        few.post(f"/v1/runs/{run_id}:fork", branch),
        few.post(f"/v1/host/moot/runs/{run_id}:fork", {"fromSeq": 1}),
    ]
    assert [(each.status_code, each.json()["error"]) for each in refusals] == [
        (403, "forbidden"),
        (403, "forbidden"),
    ]
    assert few.post(f"/v1/runs/{run_id}:fork", {"mode": "replay"}).status_code == 201
    may = limited(api, "runs:create", "runs:read", "approvals:respond")
    assert may.post(f"/v1/runs/{run_id}:fork", branch).status_code == 201


def test_who_asks_otherwise_in_a_fork_asks_in_their_own_name(api: Api) -> None:
    council = {"question": "Tea?", "participants": ["ada", "bo"]}
    thread = api.post("/v1/host/moot/councils", council).json()["runId"]
    eve = limited(api, "runs:create", "runs:read", "approvals:respond", **{"as": ["user:eve"]})
    edit = {"inputs": {"question": "Coffee!"}}
    made = eve.post(f"/v1/host/moot/runs/{thread}:fork", {"fromSeq": 0, "edit": edit})
    assert made.status_code == 201, made.text
    events = api.events(made.json()["runId"])
    opened = next(event for event in events if event["type"] == "conversation.opened")
    assert opened["payload"]["initialTurn"]["from"] == "user:eve"
    assert events[0]["payload"]["forkedFrom"]["by"].startswith("key_")


def test_a_name_that_a_key_speaks_as_is_not_given_to_an_agent_by_others(api: Api) -> None:
    limited(api, "runs:read", **{"as": ["host:taken"]})
    other = limited(api, "manifest:write")
    answer = other.post("/v1/host/moot/agents", {"name": "taken"})
    assert (answer.status_code, answer.json()["error"]) == (403, "forbidden")
    assert other.post("/v1/host/moot/agents", {"name": "nobodys"}).status_code == 201


def test_an_agent_that_a_key_speaks_as_is_not_let_go_by_others(api: Api) -> None:
    assert api.post("/v1/host/moot/agents", {"name": "spoken"}).status_code == 201
    limited(api, "manifest:read", **{"as": ["host:spoken"]})
    other = limited(api, "manifest:read", "manifest:write")
    assert other.delete("/v1/host/moot/agents/spoken").status_code == 403
    assert api.get("/v1/host/moot/agents/spoken").status_code == 200


def test_the_id_of_an_agent_is_not_given_to_another(api: Api) -> None:
    assert api.post("/v1/host/moot/agents", {"name": "first.one"}).status_code == 201
    for body in (
        {"name": "thief", "manifest": "local.agents.first-one"},
        {"name": "first-one"},
        {"agentId": "local.agents.first-one", "persona": "X", "modelClass": "general",
         "systemPrompt": "You are somebody else."},
    ):  # fmt: skip
        answer = api.post("/v1/host/moot/agents", body)
        assert answer.status_code == 409, answer.text
        assert answer.json()["details"]["agentId"] == "local.agents.first-one"
    assert api.get("/v1/agents/local.agents.first-one").json()["persona"] == "First.one"


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"manifest": "local.agents.mine", "tools": ["nowhere"]}, 422),
        ({"memory": "long-term\n"}, 400),
        ({"manifest": "local.agents.mine\n"}, 400),
        ({"persona": "A\x00da"}, 400),
        ({"persona": "\u202eadA"}, 400),
        ({"role": "sceptic\nhost"}, 400),
        ({"prompt": "be\x1b[2J brief"}, 400),
        ({"model": "nobody-has-this"}, 422),
        ({"model": "x" * 5000}, 400),
    ],
)
def test_what_cannot_be_used_or_seen_is_refused_when_it_is_defined(
    api: Api, more: dict[str, Any], status: int
) -> None:
    answer = api.post("/v1/host/moot/agents", {"name": "odd", **more})
    assert answer.status_code == status, answer.text
    assert len(answer.text) < 2000


def test_a_workflow_does_not_speak_for_a_person(api: Api) -> None:
    talk = gate("conversationGate", prompt="I resign.", agentId="user:bob")
    answer = api.post("/v1/host/moot/workflows", definition("puppet", [talk]))
    assert (answer.status_code, answer.json()["error"]) == (400, "validation_error")


@pytest.mark.parametrize("budget", [{"tokens": 10**15}, {"tokens": 10**30}, {"money": 1e308}])
def test_a_budget_beyond_all_bounds_is_refused_and_leaves_nothing(
    api: Api, budget: dict[str, Any]
) -> None:
    before = api.runs(workflow="moot.thread", limit=1)
    council = {"question": "Tea?", "participants": ["ada", "bo"], "budget": budget}
    assert api.post("/v1/host/moot/councils", council).status_code == 400
    assert api.runs(workflow="moot.thread", limit=1) == before


def test_a_name_has_no_line_break(api: Api) -> None:
    assert api.post("/v1/host/moot/agents", {"name": "a\n"}).status_code == 400


def test_a_moderator_who_is_not_there_does_not_lead(api: Api) -> None:
    council = {"question": "Tea?", "participants": ["ada", "bo"]}
    thread = api.post("/v1/host/moot/councils", council).json()["threadId"]
    content = {"participation": {"moderator": "host:nobody", "close": "moderator"}}
    answer = api.post(f"/v1/host/moot/threads/{thread}/controls", {"content": content})
    assert (answer.status_code, answer.json()["error"]) == (400, "validation_error")


@pytest.mark.parametrize("name", ["user", "moot", "system", "all", "you", "m00t"])
def test_no_agent_is_called_as_people_or_the_host_are(live: Api, name: str) -> None:
    answer = live.post("/v1/host/moot/agents", {"name": name, "prompt": "Be brief."})
    assert (answer.status_code, answer.json()["error"]) == (400, "validation_error")
    assert live.get(f"/v1/host/moot/agents/{name}").status_code == 404
