"""What the tests of tools share: tools that remember their calls, councils that use them."""

import asyncio
from typing import Any

from moot.agents.tools.toolbox import ToolInvocation, UsableTool
from moot.core.events import Event
from moot.core.interrupts.inbox import InboxEntry, inbox_items
from moot.core.speaker import Speaker
from moot.core.threads.decide import Control
from moot.engine.host import Host
from tests.support.engine.hosts import TENANT, chain, log, node
from tests.support.event_payloads import payload_json

PERSON = Speaker("key_ada", ("user:ada",))
CALLED, RETURNED = "agent.toolCalled", "agent.toolReturned"


class Fire:
    """A tool that remembers how often it was used, and waits when it is told to."""

    def __init__(self, name: str = "fire", **given: Any) -> None:
        self.made: list[tuple[dict[str, Any], str]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.answer: Any = "it burns"
        self.usable = UsableTool(name=name, call=self.call, **given)

    async def call(self, arguments: dict[str, Any], errand: ToolInvocation) -> Any:
        self.made.append((arguments, errand.name))
        await self.gate.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def council(*names: str, **policy: Any) -> dict[str, Any]:
    """A workflow that is one led conversation."""
    participants = [{"agentId": f"host:{name}", "name": name.title()} for name in names]
    config = {
        "prompt": "Shall we?",
        "participants": participants,
        "participation": {"mode": "round-robin", "rounds": 1, **policy},
    }
    return chain(node("talk", "core.conversationGate", config=config))


async def tool_events(host: Host, run_id: str) -> list[Event]:
    return [event for event in await log(host, run_id) if event.type in (CALLED, RETURNED)]


async def paired(host: Host, run_id: str) -> list[tuple[Event, Event]]:
    """Every call with what came of it; each is caused by the other."""
    events = await tool_events(host, run_id)
    calls = {payload_json(event)["callId"]: event for event in events if event.type == CALLED}
    backs = [event for event in events if event.type == RETURNED]
    assert len(calls) == len(backs) == len(events) / 2, [event.type for event in events]
    for back in backs:
        assert back.causation_id == calls[payload_json(back)["callId"]].event_id
    return [(calls[payload_json(back)["callId"]], back) for back in backs]


async def waiting(host: Host, run_id: str) -> list[InboxEntry]:
    return inbox_items((await host.view(TENANT, run_id)).run)


async def steer(host: Host, run_id: str, who: Speaker = PERSON, **content: Any) -> None:
    given = Control(node_id="talk", content=content, who=who, at=host.clock.millis())
    await host.handle(TENANT, run_id, given)
