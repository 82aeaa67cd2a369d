"""Scenes of councils that the host leads."""

import asyncio
from typing import Any

from moot.agents.invocation.context import (
    AgentContext,
    Assignment,
    InvocationResult,
    InvocationUsage,
)
from moot.core.payloads.agents import InvocationCompleted, InvocationStarted, ModelRetried
from moot.core.state.floor import Floor
from tests.support.replay.story import ADA, TENANT, Story, chain, node

MEMBERS = ("ada", "bo", "mo")


class Members:
    """Who speaks for the members: by a script, as slowly as they are told."""

    def __init__(self) -> None:
        #: agent -> when it may answer; the others do so at once
        self.slow: dict[str, asyncio.Event] = {}
        #: agent -> how it uses the floor
        self.ways: dict[str, str] = {}
        self.desks: dict[str, AgentContext] = {}

    async def __call__(self, assignment: Assignment, desk: AgentContext) -> InvocationResult:
        name, way = assignment.agent, self.ways.get(assignment.agent, "spoke")
        self.desks[name] = desk
        told = {"invocation_id": assignment.invocation, "agent_id": name}
        await desk.noted(InvocationStarted(**told, source=assignment.source, memory_bound=False))

        async def call(key: str) -> dict[str, str]:
            if name in self.slow:
                try:
                    await self.slow[name].wait()
                except asyncio.CancelledError:
                    desk.given_up({"usage": {"inputTokens": 12, "outputTokens": 3}})
                    raise
            return {"text": f"{name} has thought."}

        if way == "again":
            desk.tell(ModelRetried(**told, attempt=1, of=4))
        said = await desk.effect(f"model:{name}", call)
        dug = await desk.ask_permission(name, "dig", {"deep": True}) if way == "dig" else None
        usage = InvocationUsage(calls=1, input_tokens=12, output_tokens=7, model="script")
        outcome = "failed" if way == "failed" else "completed"
        await desk.noted(InvocationCompleted(**told, outcome=outcome))
        if way in ("failed", "refused", "passed"):
            error = {"code": "model_down", "message": "nobody is there"}
            return InvocationResult(outcome=way, usage=usage, error=error)  # type: ignore[arg-type]
        answers: dict[str, dict[str, Any]] = {
            "synthesise": {"decision": "We ship."},
            "vote": {"vote": "no" if name == "host:bo" else "yes", "reason": "It is early."},
        }
        spoken = assignment.task in ("speak", "synthesise", "summarise")
        return InvocationResult(
            outcome="spoke" if spoken else "answered",
            content=f"{said['text']} {'' if dug is None else dug}".strip() if spoken else None,
            answer=answers.get(assignment.task), usage=usage,
        )  # fmt: skip


async def _convened(story: Story, policy: dict[str, Any]) -> tuple[str, Members]:
    story.speaks = members = Members()
    participants = [{"agentId": f"host:{name}", "name": name.title()} for name in MEMBERS]
    config = {"prompt": "Ship?", "participants": participants, "participation": policy}
    gate = node("convo", "core.conversationGate", config=config)
    return await story.begin(chain("council", gate)), members


async def floor_of(story: Story, run_id: str) -> Floor:
    found = (await story.host.view(TENANT, run_id)).run.conversations["convo"].floor
    assert found is not None
    return found


async def led(story: Story) -> None:
    """All speak once, as well as they can; the moderator proposes, there is a vote, and it ends."""
    policy = {
        "rounds": 1, "moderator": "host:mo", "vote": True, "close": "moderator",
        "blind": True,
    }  # fmt: skip
    run_id, _ = await _convened(story, policy)
    await story.wait(run_id)


async def summed_up(story: Story) -> None:
    """More is said than anybody is told: the moderator sums it up. One model is asked again."""
    policy = {
        "rounds": 4, "moderator": "host:mo", "close": "moderator", "window": 2,
        "summarise": "host:mo",
    }  # fmt: skip
    run_id, members = await _convened(story, policy)
    members.ways["host:bo"] = "again"
    await story.wait(run_id)


async def interrupted(story: Story) -> None:
    """A limit stops it and a person lets it go on; turns are held, let in and dropped; tools are
    asked for, and one is allowed; who fails, refuses, passes or is silent is passed over."""
    limits = {"consecutive": 2, "silence": 60}
    run_id, members = await _convened(story, {"rounds": 9, "limits": limits})
    await rest(story, run_id)
    members.slow = {"host:mo": asyncio.Event(), "host:ada": asyncio.Event()}
    await story.steer(run_id, {"continue": {"rounds": 2}}, ADA)
    for word, muted in (("admit", "host:ada"), ("drop", "host:mo")):
        await _speaking(story, run_id, muted)
        await story.steer(run_id, {"mute": [muted]})
        members.slow.pop(muted).set()
        while not (held := (await floor_of(story, run_id)).held):
            await asyncio.sleep(0.001)
        await story.steer(run_id, {"unmute": [muted], word: next(iter(held))})
    members.ways = {"host:bo": "dig", "host:mo": "dig"}
    for word in ("allow", "deny"):
        while not (asks := (await floor_of(story, run_id)).asks):
            await _on(story, run_id)
        ask = next(iter(asks))
        if word == "deny":  # whoever has the floor next asks for nothing
            members.ways = {"host:ada": "failed", "host:bo": "refused", "host:mo": "passed"}
        await story.steer(run_id, {word: ask})
        while ask in (await floor_of(story, run_id)).asks:
            await asyncio.sleep(0.001)
    await rest(story, run_id)
    members.slow = {"host:bo": asyncio.Event()}
    await story.answer(run_id, "convo", {"content": "@bo once more"}, ADA)
    await _speaking(story, run_id, "host:bo")
    story.clock.pass_time(61_000)
    story.host.timers._fire()
    while any(wake.agent == "host:bo" for wake in (await floor_of(story, run_id)).wakes.values()):
        await asyncio.sleep(0.001)
    members.slow = {}
    await rest(story, run_id)
    await story.answer(run_id, "convo", {"operation": "close", "decision": "Enough."}, ADA)


async def unheard(story: Story) -> None:
    """One takes long, is heard meanwhile and gets more time; then it is silent in a call."""
    run_id, members = await _convened(story, {"rounds": 1, "limits": {"silence": 60}})
    members.slow = {"host:bo": asyncio.Event()}
    await _speaking(story, run_id, "host:bo")
    story.clock.pass_time(50_000)
    members.desks["host:bo"].stir()
    due = next(iter((await floor_of(story, run_id)).wakes.values())).due
    story.clock.pass_time(15_000)
    story.host.timers._fire()
    while next(iter((await floor_of(story, run_id)).wakes.values())).due == due:
        await asyncio.sleep(0.001)
    story.clock.pass_time(61_000)
    story.host.timers._fire()
    while (floor := await floor_of(story, run_id)).unpaid or "host:bo" not in floor.had:
        await asyncio.sleep(0.001)
    await rest(story, run_id)
    await story.answer(run_id, "convo", {"operation": "close", "decision": "Enough."}, ADA)


async def rest(story: Story, run_id: str) -> None:
    while (await floor_of(story, run_id)).wakes:
        await asyncio.sleep(0.001)


async def _on(story: Story, run_id: str) -> None:
    """Whatever stops it, it goes on."""
    if (await floor_of(story, run_id)).stopped:
        await story.steer(run_id, {"continue": True})
    await asyncio.sleep(0.001)


async def _speaking(story: Story, run_id: str, agent: str) -> None:
    """Until this member is at work on its turn."""
    while not any(
        wake.agent == agent and InvocationStarted.event_type in wake.said
        for wake in (await floor_of(story, run_id)).wakes.values()
    ):
        await _on(story, run_id)
