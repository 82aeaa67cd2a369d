"""A claim that a test has switched off: whatever rests on it is refused at registration."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.api.caller import Api, definition
from tests.support.api.questions import refused

TOGGLE = "/v1/host/sample/test/capability-toggle"
SUPERVISOR = {"nodeId": "s", "typeId": "core.orchestrator.supervisor", "config": {}}
MAPPING = "agents.dispatchMapping"


@pytest.fixture(autouse=True)
def _as_before(api: Api) -> Iterator[None]:
    yield
    api.post(TOGGLE, {"reset": True})


def dispatch(**config: Any) -> dict[str, Any]:
    return {"nodeId": "d", "typeId": "core.dispatch", "config": config}


def seamed(api: Api, *nodes: dict[str, Any]) -> Any:
    return api.post("/v1/host/sample/workflows", {"workflowId": "seamed-off", "nodes": [*nodes]})


def registered(api: Api, *nodes: dict[str, Any]) -> Any:
    """The same over the route for everybody."""
    plain = [
        {"id": node["nodeId"], "typeId": node["typeId"], "config": node["config"]} for node in nodes
    ]
    body = definition("plain-off", plain, [("s", "d"), ("d", "s")])
    return api.post("/v1/host/moot/workflows", body)


@pytest.mark.parametrize(
    ("claim", "config", "required"),
    [
        (MAPPING, {"inputMapping": {"a": "b"}}, MAPPING),
        (MAPPING, {"outputMapping": {"a": "b"}}, MAPPING),
        (MAPPING, {"perWorkerInputMappings": {"w": {"a": "b"}}}, MAPPING),
        (MAPPING, {"perWorkerOutputMappings": {"w": {"a": "b"}}}, MAPPING),
        ("dispatch.fanOutSupported", {"fanOutPolicy": "parallel"}, "dispatch.fanOut"),
        ("conversationPrimitive", {"askUserRouting": "conversation"}, "conversationPrimitive"),
    ],
)
def test_a_config_that_rests_on_it_is_refused(
    api: Api, claim: str, config: dict[str, Any], required: str
) -> None:
    api.post(TOGGLE, {"name": claim, "value": False})
    for register in (seamed, registered):
        details = refused(register(api, SUPERVISOR, dispatch(**config)), 400, "validation_error")
        assert (details["requiredCapability"], details["nodeId"]) == (required, "d")
        assert register(api, SUPERVISOR, dispatch(inputMapping={})).status_code == 201
    api.post(TOGGLE, {"name": claim, "value": None})
    for register in (seamed, registered):
        assert register(api, SUPERVISOR, dispatch(**config)).status_code == 201


def test_what_is_switched_off_is_said_before_anything_else_that_is_wrong(api: Api) -> None:
    api.post(TOGGLE, {"name": MAPPING, "value": False})
    alone = dispatch(nextWorkerIds=["child-a"], inputMapping={"childInput": "parentVar"})
    details = refused(seamed(api, alone), 400, "validation_error")
    assert details["requiredCapability"] == MAPPING


@pytest.mark.parametrize(
    ("claim", "node"), [("agents.orchestrator", SUPERVISOR), ("agents.dispatch", dispatch())]
)
def test_a_node_that_needs_it_is_refused(api: Api, claim: str, node: dict[str, Any]) -> None:
    api.post(TOGGLE, {"name": claim, "value": False})
    both = (SUPERVISOR, dispatch())
    for answer in (
        seamed(api, *both),
        registered(api, *both),
        api.post("/v1/runs", {"workflowId": "conformance-orchestrator-terminate"}),
    ):
        details = refused(answer, 400, "capability_required")
        assert details["requiredCapability"] == claim
        assert details["offendingTypeId"] == node["typeId"]
