"""Hosts with agents: what their models say is told beforehand, and every call is counted."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any

from moot.agents.definitions.manifest import Agent
from moot.agents.definitions.registry import AgentRegistry, DeploymentService
from moot.agents.invocation.invoke import Invoker
from moot.agents.models.demo import DemoModel
from moot.agents.models.protocol import ModelRequest, Piece, ReasoningPiece
from moot.agents.models.registry import ModelRegistry, ModelSettings
from moot.agents.tools.toolbox import Toolbox, UsableTool
from moot.config.models import ModelEntry, ScriptLine
from moot.conformance.nodes.registry import conformance_types
from moot.core.workflows.node_types import NodeType
from moot.engine.host import Host
from moot.engine.nodes.registry import built_in_types
from moot.engine.workflows.registry import WorkflowRegistry
from tests.support.engine.hosts import TENANT, Place, chain, log, node
from tests.support.event_payloads import payload_json

MODEL = "scripted"


class Counted:
    """The demo model with a script: the line follows from what it has said before. After the last
    one it says that again. Every request is kept."""

    provider = "demo"

    def __init__(self, *script: str | ScriptLine, thoughts: str = "") -> None:
        self.script, self.thoughts = list(script), thoughts
        self.asked: list[ModelRequest] = []
        self.gate = asyncio.Event()
        self.gate.set()
        #: stop in the middle of these words
        self.halfway = False

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        self.asked.append(request)
        own = sum(message.role == "assistant" for message in request.messages)
        lines = self.script[own : own + 1] or self.script[-1:]
        model = DemoModel(script=[*[""] * own, *lines])
        for word in self.thoughts.split():
            yield ReasoningPiece(f"{word} ")
        count = 0
        async for piece in model.stream(request):
            if self.halfway and count > 1:
                await self.gate.wait()
            count += 1
            yield piece
        await self.gate.wait()

    async def aclose(self) -> None: ...


class Tools:
    def __init__(self, *tools: UsableTool) -> None:
        self._tools = {tool.name: tool for tool in tools}

    async def for_agent(self, agent: Agent) -> Toolbox:
        return Toolbox({name: self._tools[name] for name in agent.tools if name in self._tools})


class Staff:
    """The agents of a place, whatever host is up there."""

    def __init__(self, place: Place, *tools: UsableTool, **models: Counted) -> None:
        self.place, self.models = place, models
        self.agents = AgentRegistry(place.store, place.clock)
        self.deployments = DeploymentService(place.store, place.clock, self.agents)
        entries = {name: ModelEntry(provider="demo", attempts=1) for name in models}
        self.book = ModelRegistry(
            entries, lambda name: None, place.clock, ModelSettings(demo_wps=0)
        )
        self.book._open.update(models)
        self.invoker = Invoker(self.book, self.deployments.resolve, Tools(*tools))

    async def hires(self, name: str, **given: Any) -> Agent:
        model = name if name in self.models else "demo"
        agent = Agent(name=name, **{"model": model, **given})
        await self.agents.put(TENANT, agent, "test")
        return agent

    def types(self, conformance: bool = False) -> dict[str, NodeType]:
        extra = conformance_types(invoke=self.invoker) if conformance else ()
        return {**self.place.types, **built_in_types(self.invoker, extra)}

    def host(self, wrapper: Callable[[Any], Any] | None = None) -> Host:
        place = self.place
        store = wrapper(place.store) if wrapper else place.store
        flows = WorkflowRegistry(store, self.types(), place.clock, agents=self.agents.worker)
        host = Host(store, flows, place.clock, speaks=self.invoker)
        place.hosts.append(host)
        return host

    async def again(self, host: Host) -> Host:
        """The host is gone in this moment, and another one takes up its work."""
        await self.place.crash(host)
        await host.speakers.aclose()
        fresh = self.host()
        await fresh.recover()
        return fresh


def asks(agent: str = "ada", prompt: str = "Say something.", **config: Any) -> dict[str, Any]:
    more = {name: config.pop(name) for name in ("inputs", "agent", "settings") if name in config}
    return chain(
        node("a", "moot.agent", config={"agent": agent, "prompt": prompt, **config}, **more)
    )


async def told(host: Host, run_id: str, *prefixes: str) -> list[str]:
    """The types of events that are about agents, in order."""
    wanted = prefixes or ("agent.",)
    return [event.type for event in await log(host, run_id) if event.type.startswith(wanted)]


async def payloads(host: Host, run_id: str, type_: str) -> list[dict[str, Any]]:
    return [payload_json(event) for event in await log(host, run_id) if event.type == type_]
