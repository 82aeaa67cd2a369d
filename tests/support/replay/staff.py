"""Scenes of the host's own agents: at a node, at a supervisor's turn, and on channels."""

import msgspec

from moot.agents.definitions.deployments import DeploymentService
from moot.agents.definitions.manifest import Agent
from moot.agents.definitions.registry import AgentRegistry
from moot.agents.invocation.invoke import Invoker
from moot.agents.models.registry import ModelRegistry, ModelSettings
from moot.agents.tools.toolbox import NoTools
from moot.conformance.nodes.registry import conformance_types
from moot.core.agents.deployments import (
    AgentDeployment,
    DeploymentChange,
    change_deployment,
)
from moot.engine.nodes.registry import built_in_types
from moot.engine.workflows.built_in import DEPLOYMENT
from tests.support.replay.story import TENANT, Story, node


async def staff(story: Story) -> None:
    """An agent leads another one, then a third sums up."""
    agents = AgentRegistry(story.store, story.clock)
    book = ModelRegistry({}, lambda name: None, story.clock, ModelSettings(demo_wps=0))
    resolve = DeploymentService(story.store, story.clock, agents).resolve
    invoke = Invoker(book, resolve, NoTools())
    story.host.flows.types = built_in_types(invoke, conformance_types(story.programs, invoke))
    story.host.flows._agents = agents.worker
    for name in ("mo", "finder", "ada"):
        await agents.put(TENANT, Agent(name=name, memory="run"), "story")
    nodes = [
        node("boss", "core.orchestrator.supervisor", config={"agent": "mo", "workers": ["finder"]}),
        node("hands", "core.dispatch", config={"outputMapping": {"found": "text"}}),
        node("sum", "moot.agent", config={"prompt": "Sum up."}, agent={"agentId": "host:ada"}),
    ]
    ways = [("boss", "hands"), ("hands", "boss"), ("hands", "sum")]
    edges = [
        {"id": f"{a}>{b}", "sourceNodeId": a, "targetNodeId": b, "triggerRule": "all_success"}
        for a, b in ways
    ]
    body = {
        "id": "staff", "name": "staff", "version": "1.0", "nodes": nodes, "edges": edges,
        "triggers": [], "variables": [], "metadata": {}, "settings": {},
    }  # fmt: skip
    await story.wait(await story.begin(body))


async def deployed(story: Story) -> None:
    """Two versions: one serves, a share of the runs gets the other, and it is taken back."""
    found, told = AgentDeployment(agent_id="local.agents.ada"), []
    steps = [*[("1", "promote")] * 3, *[("2", "promote")] * 3, ("2", "adjust-canary"),
             ("2", "rollback"), ("1", "pause")]  # fmt: skip
    for version, transition in steps:
        percent = 30 if transition == "adjust-canary" else None
        asked = DeploymentChange(version=version, transition=transition, canary_percent=percent)
        found, said = change_deployment(found, asked)
        told.append([said.event_type, msgspec.to_builtins(said)])
    flow = await story.host.flows.own(TENANT, DEPLOYMENT)
    await story.wait(await story.started(flow, inputs={"told": told}))
