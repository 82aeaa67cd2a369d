"""Members of councils that the host speaks for tell of their work once, crash or not."""

from typing import Any

from moot.agents.tools.toolbox import UsableTool
from moot.config.models import ScriptLine
from moot.core.events import event_id
from moot.core.payloads.agents import (
    AgentDecided,
    AgentReasoned,
    InvocationCompleted,
    InvocationStarted,
    PromptResolved,
)
from moot.engine.host import Host
from tests.support.engine.agents import Counted, Staff
from tests.support.engine.hosts import Place, begun, chain, log, node, soon, sound, until
from tests.support.event_payloads import payload_json

TURN = [
    InvocationStarted.event_type,
    PromptResolved.event_type,
    AgentReasoned.event_type,
    AgentDecided.event_type,
    InvocationCompleted.event_type,
]
USED = [
    InvocationStarted.event_type,
    PromptResolved.event_type,
    AgentReasoned.event_type,
    "agent.toolCalled",
    "agent.toolReturned",
    AgentDecided.event_type,
    InvocationCompleted.event_type,
]


def council(*names: str) -> dict[str, Any]:
    config = {
        "prompt": "Shall we?",
        "participants": [{"agentId": f"host:{name}"} for name in names],
        "participation": {"mode": "round-robin", "rounds": 1},
    }
    return chain(node("talk", "core.conversationGate", config=config))


async def told_by(host: Host, run_id: str, name: str) -> list[str]:
    return [
        event.type
        for event in await log(host, run_id)
        if event.type.startswith("agent.") and payload_json(event).get("agentId") == f"host:{name}"
    ]


async def over(host: Host, run_id: str) -> None:
    def stopped(run: Any) -> bool:
        floor = run.conversations["talk"].floor
        return floor is not None and floor.phase == "over"

    await until(host, run_id, stopped)


async def test_a_crash_while_a_member_speaks_leaves_one_turn_and_one_bracket(place: Place) -> None:
    ada, bo = Counted("Yes, but when?", thoughts="hm"), Counted("Now.")
    ada.gate.clear()
    staff = Staff(place, ada=ada, bo=bo)
    for name in ("ada", "bo"):
        await staff.hires(name)
    host = staff.host()
    run_id = await begun(host, council("ada", "bo"))
    await soon(lambda: ada.asked)
    host = await staff.again(host)
    await soon(lambda: len(ada.asked) == 2)
    ada.gate.set()
    await over(host, run_id)
    assert await told_by(host, run_id, "ada") == TURN
    assert await told_by(host, run_id, "bo") == TURN
    [began] = [
        payload_json(e) for e in await log(host, run_id) if e.type == InvocationStarted.event_type
    ][:1]
    assert began["source"] == "chat-mention" and began["memoryBound"] is False
    await sound(host)


async def test_what_a_tool_gives_is_caused_by_its_call(place: Place) -> None:
    async def look(arguments: dict[str, Any], name: str) -> str:
        return "seen"

    staff = Staff(
        place, UsableTool(name="look", call=look), ada=Counted(ScriptLine(tool="look"), "I saw.")
    )
    await staff.hires("ada", tools=["look"])
    await staff.hires("bo")
    host = staff.host()
    run_id = await begun(host, council("ada", "bo"))
    await over(host, run_id)
    assert await told_by(host, run_id, "ada") == USED
    events = {event.type: event for event in await log(host, run_id)}
    called, back = events["agent.toolCalled"], events["agent.toolReturned"]
    assert back.causation_id == event_id(run_id, called.sequence)
    await sound(host)
