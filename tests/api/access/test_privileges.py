"""Keys of agents, of guests and of few rights: none of them becomes a person or the host."""

import json
import time
from typing import Any

import pytest

from tests.support.api.caller import Api, definition
from tests.support.api.councils import (
    ADA,
    BO,
    THREADS,
    close,
    convened,
    joined,
    key_as,
    person,
    read,
    run_of,
    steer,
    tell,
)  # fmt: skip
from tests.support.api.questions import answered, asked, refused, resolve, talk, unchanged
from tests.support.api.threads import post

KEYS, AGENTS = "/v1/host/moot/keys", "/v1/host/moot/agents"
MANY = ["keys:manage", "approvals:respond", "runs:create", "runs:read", "manifest:write"]
LED = {"mode": "addressed"}


@pytest.fixture(scope="module", autouse=True)
def spoken_for(api: Api) -> None:
    """Somebody speaks for those whom these tests seat."""
    key_as(api, ADA, BO)


def edited(api: Api, run_id: str, from_seq: int, **edit: Any) -> Any:
    return api.post(f"/v1/host/moot/runs/{run_id}:fork", {"fromSeq": from_seq, "edit": edit})


def hired(api: Api, **body: Any) -> dict[str, Any]:
    made = api.post(AGENTS, {"name": f"hand-{time.monotonic_ns()}", **body})
    assert made.status_code == 201, made.text
    return dict(made.json())


# -- what only the host begins -------------------------------------------------------------------


def deployed(api: Api) -> str:
    agent = hired(api)
    change = {"version": agent["version"], "transition": "promote"}
    made = api.post(f"/v1/agents/{agent['agentId']}/deployments", change)
    assert made.status_code == 200, made.text
    return str(made.headers["location"].rpartition("/")[2])


@pytest.mark.parametrize("first", ["never begun", "begun before"])
def test_what_only_the_host_begins_is_begun_by_nobody_else(api: Api, first: str) -> None:
    if first == "begun before":
        api.until(deployed(api), "completed")
    told = [["moot.effect.finished", {"invocationId": "x"}]]
    body = {"workflowId": "moot.deployment", "inputs": {"told": told}}
    refused(api.post("/v1/runs", body), 404, "workflow_not_found")
    sub = {"id": "sub", "typeId": "core.subWorkflow", "config": {"workflowId": "moot.deployment"}}
    name = api.register(definition(f"borrows-{first[:5]}", [sub]))
    refused(api.post("/v1/runs", {"workflowId": name}), 422, "unknown_child_workflow")


def test_a_deployment_is_told_once_and_led_nowhere_else(api: Api) -> None:
    run_id = deployed(api)
    api.until(run_id, "completed")
    told = {"told": [["agent.decided", {"agentId": ADA, "decision": "x"}]]}
    refused(edited(api, run_id, 1, inputs=told), 422, "validation_error")
    branch = {"mode": "branch", "fromSeq": 1}
    refused(api.post(f"/v1/runs/{run_id}:fork", branch), 422, "validation_error")
    assert api.post(f"/v1/runs/{run_id}:fork", {"mode": "replay"}).status_code == 201


# -- keys ----------------------------------------------------------------------------------------


def test_a_bound_key_gives_only_keys_that_are_bound_to_its_names(api: Api) -> None:
    for name in (ADA, "user:eve"):
        bound = key_as(api, name, scopes=MANY)
        few = {"name": "made", "scopes": ["approvals:respond"]}
        refused(bound.post(KEYS, few), 403, "forbidden")
        refused(bound.post(KEYS, {**few, "as": ["user:zed"]}), 403, "forbidden")
        refused(bound.post(KEYS, {**few, "as": [name], "scopes": ["audit:read"]}), 403, "forbidden")
        assert bound.post(KEYS, {**few, "as": [name]}).status_code == 201


def test_a_key_does_not_outlive_the_key_that_made_it(api: Api) -> None:
    given = {"name": "short", "as": [ADA], "scopes": MANY, "expires_in_s": 60}
    short = api.post(KEYS, given).json()
    for more in ({}, {"expires_in_s": 10_000}):
        asked_for = {"name": "m", "scopes": ["runs:read"], "as": [ADA], **more}
        made = api.with_key(short["key"]).post(KEYS, asked_for).json()
        assert made["expiresAt"] == short["expiresAt"]


def test_an_agents_key_takes_nobody_elses_away(api: Api) -> None:
    bot = key_as(api, ADA, scopes=MANY)
    other = api.post(KEYS, {"name": "eve", "as": ["user:eve"]}).json()
    refused(bot.delete(f"{KEYS}/{other['id']}"), 403, "forbidden")
    own = bot.post(KEYS, {"name": "m", "scopes": ["runs:read"], "as": [ADA]}).json()
    assert bot.delete(f"{KEYS}/{own['id']}").status_code == 204


def test_an_agents_key_does_not_change_agents(api: Api) -> None:
    agent = hired(api)
    plain = api.post(KEYS, {"name": "plain", "as": [agent["agentId"]]}).json()
    assert "manifest:write" not in plain["scopes"]
    assert "manifest:write" in api.post(KEYS, {"name": "p", "as": ["user:eve"]}).json()["scopes"]
    bot = key_as(
        api, agent["agentId"], scopes=["manifest:read", "manifest:write", "deploy:promote"]
    )
    for name in (agent["name"], "newcomer"):
        refused(bot.post(AGENTS, {"name": name, "prompt": "do as I say"}), 403, "forbidden")
    refused(bot.delete(f"{AGENTS}/{agent['name']}"), 403, "forbidden")
    change = {"version": agent["version"], "transition": "promote"}
    refused(bot.post(f"/v1/agents/{agent['agentId']}/deployments", change), 403, "forbidden")
    other = api.with_key(api.new_key("other", scopes=["manifest:write"]))
    refused(other.delete(f"{AGENTS}/{agent['name']}"), 403, "forbidden")


def test_the_id_of_a_manifest_is_one_agents(api: Api) -> None:
    agent = hired(api)
    copy = {"name": "copy", "manifest": f"local.agents.{agent['name']}", "prompt": "EVIL"}
    refused(api.post(AGENTS, copy), 409, "conflict")


# -- other people's words ------------------------------------------------------------------------


def test_an_agents_key_edits_its_own_words_only(api: Api) -> None:
    thread = convened(api)
    run_id = run_of(thread)
    answered(person(api, thread, "Never do X"))
    answered(tell(api, thread, BO, "Fine"))
    said = [e["sequence"] for e in api.events(run_id) if e["type"] == "conversation.exchanged"]
    bo, ada = key_as(api, BO), key_as(api, ADA)
    for key, place in ((bo, said[0]), (ada, said[0]), (ada, said[1])):
        refused(edited(key, run_id, place, turn={"content": "Do X now"}), 403, "forbidden")
    assert edited(bo, run_id, said[1], turn={"content": "Well"}).status_code == 201
    eve = key_as(api, "user:eve")
    assert edited(eve, run_id, said[0], turn={"content": "Do X"}).status_code == 201


def test_an_agents_key_does_not_change_what_binds_it(api: Api) -> None:
    run_id = run_of(convened(api, policy=LED))
    bo = key_as(api, BO)
    limits = {"participation": {"mode": "addressed", "limits": {"consecutive": 30}}}
    refused(edited(bo, run_id, 1, inputs=limits), 403, "forbidden")
    refused(edited(bo, run_id, 1, variables={"x": 1}), 403, "forbidden")
    overlay = {"configurable": {"escalationThreshold": 0.0}}
    branch = {"mode": "branch", "fromSeq": 1, "runOptionsOverlay": overlay}
    refused(bo.post(f"/v1/runs/{run_id}:fork", branch), 403, "forbidden")
    assert edited(api, run_id, 1, inputs=limits).status_code == 201


def test_a_model_that_is_not_here_is_no_model_of_a_fork_or_a_run(api: Api) -> None:
    run_id = run_of(convened(api, policy=LED))
    for wrong in ("nosuch", "../../x"):
        refused(edited(api, run_id, 1, models={ADA: wrong}), 400, "validation_error")
    assert edited(api, run_id, 1, models={ADA: "demo"}).status_code == 201
    agent = hired(api)
    body = {"agentId": agent["agentId"], "inputs": {"prompt": "?"}}
    for models in ({"x": 5}, {"x": "nosuch"}):
        answer = api.post("/v1/runs", {**body, "configurable": {"models": models}})
        refused(answer, 400, "validation_error")


def test_nobody_writes_into_a_turn_what_the_host_writes(api: Api) -> None:
    thread = convened(api)
    with unchanged(api, run_of(thread)):
        for extra in ({"agent": {"agentId": BO}}, {"meta": {"summary": {"of": [1, 60]}}},
                      {"agent": {"agentId": "host:not-here"}}):  # fmt: skip
            refused(person(api, thread, "x", **extra), 400, "validation_error")
            refused(tell(api, thread, ADA, "x", **extra), 400, "validation_error")


def test_an_agent_that_is_not_sure_is_not_asked_by_itself(api: Api) -> None:
    run_id = api.create("conformance-agent-low-confidence")
    api.until(run_id, "waiting-approval", "waiting-input")
    [waits] = api.get(f"/v1/host/moot/runs/{run_id}/interrupts").json()["open"]
    yes = {"action": "accept"}
    with unchanged(api, run_id):
        refused(resolve(key_as(api, ADA), run_id, yes, waits["nodeId"]), 403, "forbidden")
    answered(resolve(key_as(api, "user:eve"), run_id, yes, waits["nodeId"]))


def test_only_who_says_go_on_lets_a_council_go_on(api: Api) -> None:
    thread = convened(api, policy=LED)
    with unchanged(api, run_of(thread)):
        for wrong in (False, "x", 0, None, []):
            refused(steer(api, thread, {"continue": wrong}), 400, "validation_error")
    answered(steer(api, thread, {"continue": True}))


# -- the end -------------------------------------------------------------------------------------

VOTE = {"vote": {"decision": "mine", "close": True}}
DOORS = [
    lambda api, thread: close(api, thread, decision="mine"),
    lambda api, thread: resolve(
        api, run_of(thread), {"operation": "close", "decision": "mine"}, "talk"
    ),
    lambda api, thread: resolve(
        api,
        run_of(thread),
        {"operation": "close", "turn": {"role": "agent", "speakerId": ADA, "content": "over"}},
        "talk",
    ),
    lambda api, thread: api.post(
        f"/v1/runs/{run_of(thread)}:resolveInterrupt",
        {"nodeId": "talk", "resumeValue": {"operation": "close"}},
    ),
    lambda api, thread: steer(api, thread, VOTE),
]
BRIDGE = [
    lambda api, thread: post(api, thread, VOTE, type="control"),
    lambda api, thread: post(api, thread, json.dumps(VOTE), type="control"),
]  # fmt: skip


def test_whoever_joined_does_not_close_by_any_door(api: Api) -> None:
    for policy in ({}, {"policy": LED}):
        thread = convened(api, **policy)
        for guest in (joined(api, thread, ADA), joined(api, thread, "user:eve")):
            with unchanged(api, run_of(thread)):
                for door in (*DOORS, *BRIDGE):
                    assert door(guest, thread).status_code == 403
            assert read(guest, thread)["open"]


def test_a_member_does_not_close_a_persons_council_by_any_door(api: Api) -> None:
    thread = convened(api, policy={**LED, "close": "person"})
    ada = key_as(api, ADA)
    with unchanged(api, run_of(thread)):
        for door in DOORS:
            refused(door(ada, thread), 403, "forbidden")
    for door in BRIDGE:
        assert "is for people." in door(ada, thread).json()["warning"]
    assert read(api, thread)["open"] and read(api, thread)["floor"]["phase"] == "talk"
    answered(close(key_as(api, "user:eve"), thread, decision="ours"))


def test_a_moderator_closes_where_it_is_the_moderators(api: Api) -> None:
    led = {"mode": "round-robin", "close": "moderator", "moderator": ADA}
    ada, bo = key_as(api, ADA), key_as(api, BO)
    for _ in range(20):  # until one is closed by the key before the council is over by itself
        thread = convened(api, policy=led)
        theirs, hers = close(bo, thread), close(ada, thread)
        if hers.status_code == 200:
            break
        refused(hers, 409, "conversation_closed")
    answered(hers)
    refused(theirs, 403, "forbidden")
    assert api.get(f"{THREADS}/{thread}").json()["open"] is False


def test_a_join_gives_no_more_than_its_maker_has(api: Api) -> None:
    run_id = asked(api, talk())
    half = key_as(api, ADA, scopes=["approvals:respond"])
    thread = f"{run_id}~convo~1"
    made = half.post(f"{THREADS}/{thread}/join", {"as": ADA})
    assert made.status_code == 201, made.text
    guest = api.with_key(made.json()["token"])
    refused(guest.get(f"{THREADS}/{thread}"), 403, "forbidden")
