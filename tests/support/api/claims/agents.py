"""What discovery claims of the host's own agents, each tried on the host."""

from typing import Any

from tests.api.agents import test_agents
from tests.support.api.caller import Api, definition
from tests.support.api.questions import answered, of, resolve

SURE = {
    "type": "object",
    "properties": {"confidence": {"type": "number", "minimum": 0, "maximum": 1}},
    "required": ["confidence"],
}


def manifest_runtime(api: Api, value: Any) -> None:
    """A manifest is taken in, found by its id, dispatched, and nobody else's."""
    assert value == {"supported": True, "installScope": "tenant"}
    test_agents.test_a_manifest_of_the_protocol_is_an_agent(api)


def sources(api: Api, value: Any) -> None:
    assert value == ["workflow-node", "run-api", "chat-mention"]
    test_agents.test_a_node_pinned_to_an_agent_is_its_work(api)
    test_agents.test_a_run_can_be_a_question_to_an_agent(api, "host")
    test_agents.test_members_of_a_council_tell_the_same_family(api)


def escalation(api: Api, value: Any) -> None:
    """What its manifest wants is what counts, unless the run says otherwise."""
    assert value is True
    agent = test_agents.hired(api, confidence=1)  # the demo model is never as sure as that
    body = test_agents.node({"agentId": agent["agentId"]}, prompt="How sure are you?", output=SURE)
    name = api.register(definition("unsure-work", [body]))
    run_id = api.create(name)
    api.until(run_id, "waiting-approval")
    [asked] = of(api, run_id, "interrupt.requested")
    assert asked["data"]["threshold"] == 1
    answered(resolve(api, run_id, {"action": "accept"}, "work"))
    assert api.until(run_id)["status"] == "completed"
    assert api.run(name, configurable={"escalationThreshold": 0})["status"] == "completed"


def deployment(api: Api, value: Any) -> None:
    assert value["supported"] is True and set(value["channels"]) == {"stable", "canary", "latest"}
    test_agents.test_a_channel_serves_what_was_promoted_and_a_run_keeps_its_version(api)
    test_agents.test_latest_needs_no_promotion_until_there_is_one(api)


def canary(api: Api, value: Any) -> None:
    assert value is True
    test_agents.test_a_canary_gets_its_share_and_a_run_draws_once(api)


def states(api: Api, value: Any) -> None:
    """Each is reached; those between have been passed on the way."""
    agent = test_agents.hired(api)
    agent_id, version = f"local.agents.{agent['name']}", agent["version"]
    seen = {"draft", "test", "staged", test_agents.promoted(api, agent_id, version)["state"]}
    seen.add(test_agents.deploy(api, agent_id, version, "pause").json()["state"])
    test_agents.deploy(api, agent_id, version)
    newer = test_agents.hired(api, agent["name"], prompt="You are newer.")
    test_agents.promoted(api, agent_id, newer["version"])
    seen.add(test_agents.deploy(api, agent_id, newer["version"], "rollback").json()["state"])
    seen.add(test_agents.deploy(api, agent_id, version, "deprecate").json()["state"])
    assert seen == set(value)
