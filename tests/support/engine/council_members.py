"""What the tests of led councils share: members that a demo model speaks for, and are counted."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from moot.agents.definitions.manifest import Agent
from moot.agents.invocation.context import Assignment, ResolvedAgent
from moot.agents.invocation.invoke import Invoker
from moot.agents.models.protocol import AnswerStop, ModelRequest, ModelToolCall, Piece
from moot.agents.models.registry import ChosenModel, ModelRegistry, ModelSettings
from moot.agents.tools.toolbox import Toolbox, ToolInvocation, UsableTool
from moot.config.models import ModelEntry
from moot.core.pending import pending
from moot.core.state.floor import Floor
from moot.engine.host import Host
from tests.support.engine.hosts import TENANT, Place, begun, chain, node

MEMBERS = ("ada", "bo", "mo")

#: three who speak once, a proposal, a vote, and the moderator ends it
TO_THE_END = {"rounds": 1, "moderator": "host:mo", "vote": True, "close": "moderator"}


class Counted:
    """A model, and every call of it. Where there are tools it digs before it speaks."""

    def __init__(self, chosen: ChosenModel, council: "Council") -> None:
        self._chosen, self._council = chosen, council
        self.reference, self.provider, self.cost, self.completed = (
            chosen.reference, chosen.provider, chosen.cost, chosen.completed,
        )  # fmt: skip

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        assert request.context is not None
        self._council.calls.append((request.context.agent, self.reference.name))
        await self._council.gate.wait()
        if request.tools and not any(each.role == "tool" for each in request.messages):
            yield ModelToolCall(id="call", name="dig", arguments='{"deep": true}')
            yield AnswerStop("tool_calls")
            return
        async for piece in self._chosen.stream(request):
            yield piece


class Council(ModelRegistry):
    """Models by name; whoever knows none of the members is not asked."""

    def __init__(self, place: Place, digs: bool = False) -> None:
        entries = {"other": ModelEntry(provider="demo", model="other")}
        super().__init__(entries, lambda _: None, place.clock, ModelSettings(demo_wps=0))
        #: (agent, model) of every call of a model, and how often the tool was used
        self.calls: list[tuple[str, str]] = []
        self.digs, self.dug = digs, 0
        #: models answer while this is set
        self.gate = asyncio.Event()
        self.gate.set()

    def choose(self, *given: Any, **more: Any) -> Any:
        return Counted(super().choose(*given, **more), self)

    async def find(self, asked: Assignment) -> ResolvedAgent | None:
        name = asked.agent.removeprefix("host:")
        agent = Agent(name=name, tools=["dig"])
        return ResolvedAgent(agent=agent, version=agent.version) if name in MEMBERS else None

    async def for_agent(self, agent: Agent) -> Toolbox:
        dig = UsableTool(name="dig", call=self._dig, dangerous=True)
        return Toolbox({"dig": dig} if self.digs else {})

    async def _dig(self, arguments: dict[str, Any], errand: ToolInvocation) -> dict[str, int]:
        self.dug += 1
        return {"found": self.dug}

    def host(self, place: Place) -> Host:
        return place.host(speaks=Invoker(self, self.find, self))


async def convened(host: Host, policy: dict[str, Any], **config: Any) -> str:
    participants = [{"agentId": f"host:{name}", "name": name.title()} for name in MEMBERS]
    config = {"prompt": "Ship?", "participants": participants, "participation": policy, **config}
    return await begun(host, chain(node("convo", "core.conversationGate", config=config)))


async def floor(host: Host, run_id: str) -> Floor:
    found = (await host.view(TENANT, run_id)).run.conversations["convo"].floor
    assert found is not None
    return found


async def at_rest(host: Host, run_id: str) -> None:
    """Until nobody has the floor, nor is to be given it."""
    async with asyncio.timeout(60):
        while True:
            head = await host.view(TENANT, run_id)
            owed = pending(head.run, head.flow)
            if not owed.talks and not owed.speakers:
                return
            await asyncio.sleep(0.002)
