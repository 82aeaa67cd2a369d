"""Agents at work on a real host: what they say survives crashes and questions, and is said once."""

import asyncio
from pathlib import Path
from typing import Any

from moot import NodeContext
from moot import node as node_function
from moot.core.events import encode
from moot.core.payloads.agents import ReasoningDelta
from moot.core.runs.answers import GateAnswer
from moot.core.speaker import Speaker
from moot.core.state.status import Status
from moot.engine.host import Host
from moot.engine.nodes.registry import types_from_file
from moot.engine.replay.replay import replay_run
from tests.support.engine.hosts import (
    TENANT,
    Place,
    begun,
    chain,
    ended,
    log,
    node,
    sound,
    until,
    variable,
)  # fmt: skip
from tests.support.event_payloads import payload_json
from tests.support.servers import ROOT

AGENT = {"agentId": "host:thinker", "modelClass": "reasoning"}
PERSON = Speaker("key_ada", ("user:ada",))
calls: list[str] = []


@node_function("acme.thinker", retries=0)
async def thinker(ctx: NodeContext, sure: list[float], secret: str = "") -> dict[str, Any]:
    """Thinks, uses a tool, decides as often as it is told to."""

    async def use(key: str) -> int:
        calls.append(key)
        return len(calls)

    thought = ctx.agent.thinking()
    for piece in ("I ", "think ", secret[:3], secret[3:], " I am"):
        await thought.add(piece)
    await thought.close()
    call = await ctx.agent.tool_called("acme:use", {"secret": secret})
    await call.returned(await ctx.effect("acme:use", use), duration_ms=3)
    found = [await ctx.agent.decided({"n": n}, each) for n, each in enumerate(sure)]
    return {"found": found}


def body(sure: list[float], **given: Any) -> dict[str, Any]:
    return chain(node("a", "acme.thinker", config={"sure": sure}, agent=AGENT, **given))


async def waits(host: Host, run_id: str) -> None:
    await until(host, run_id, lambda run: run.status is Status.WAITING_APPROVAL)


async def answer(host: Host, run_id: str, value: Any) -> None:
    given = GateAnswer(node_id="a", value=value, who=PERSON, at=host.clock.millis())
    await host.handle(TENANT, run_id, given)


async def types(host: Host, run_id: str) -> list[str]:
    return [event.type for event in await log(host, run_id) if event.type.startswith("agent.")]


async def test_every_unsure_decision_of_an_attempt_is_asked_about_once(place: Place) -> None:
    place.knows(thinker)
    calls.clear()
    host = place.host()
    run_id = await begun(host, body([0.5, 0.9, 0.1]))
    await waits(host, run_id)
    assert (await types(host, run_id))[-1] == "agent.decided"
    host = await place.restart(host)
    await answer(host, run_id, {"action": "accept"})
    await waits(host, run_id)
    await answer(host, run_id, {"action": "edit-accept", "editedArtifactData": "mine"})
    run = await ended(host, run_id)
    assert run.status is Status.COMPLETED
    assert run.outputs == {"found": [{"n": 0}, {"n": 1}, "mine"]}
    assert (await types(host, run_id)).count("agent.decided") == 3
    assert (await types(host, run_id)).count("agent.reasoned") == 1
    assert len(calls) == 1, "the tool was used again"
    keys = [
        payload_json(e)["key"] for e in await log(host, run_id) if e.type == "interrupt.requested"
    ]
    assert keys == [f"{run_id}:a:1", f"{run_id}:a:1:2"]
    await sound(host)


async def test_a_rejected_decision_fails_its_node_for_good(place: Place) -> None:
    place.knows(thinker)
    host = place.host()
    run_id = await begun(host, body([0.5], settings={"maxRetries": 3}))
    await waits(host, run_id)
    await answer(host, run_id, {"action": "reject"})
    run = await ended(host, run_id)
    assert run.status is Status.FAILED and run.error is not None
    assert run.error.code == "decision_rejected"
    assert run.nodes["a"].attempt == 1


async def test_the_time_a_person_takes_is_not_the_nodes(memory: Place) -> None:
    memory.knows(thinker)
    host = memory.host()
    run_id = await begun(host, body([0.5], settings={"timeoutMs": 50_000}))
    await waits(host, run_id)
    memory.clock.ahead_ms += 60_000
    await answer(host, run_id, {"action": "accept"})
    assert (await ended(host, run_id)).status is Status.COMPLETED


async def test_what_an_agent_has_said_before_a_crash_it_does_not_say_again(place: Place) -> None:
    lives: list[int] = []

    @node_function("acme.stopping")
    async def stopping(ctx: NodeContext) -> None:
        lives.append(1)
        thought = ctx.agent.thinking()
        for number, piece in enumerate("abc"):
            await thought.add(piece)
            if number == len(lives) - 1:
                await asyncio.Event().wait()
        await thought.close()
        await ctx.agent.tool_called("acme:x")

    place.knows(stopping)
    host = place.host()
    run_id = await begun(host, chain(node("a", "acme.stopping")))
    for told in (1, 2, 3):
        await until(
            host,
            run_id,
            lambda run, n=told: run.nodes["a"].said.get(ReasoningDelta.event_type) == n,
        )
        await place.crash(host)
        host = place.host()
        await host.recover()
    run = await ended(host, run_id)
    assert run.status is Status.COMPLETED and len(lives) == 4
    said = [payload_json(event) for event in await log(host, run_id)]
    assert [each["delta"] for each in said if "delta" in each] == ["a", "b", "c"]
    assert [each["sequence"] for each in said if "delta" in each] == [0, 1, 2]
    assert [each["reasoning"] for each in said if "reasoning" in each] == ["abc"]


async def test_no_thought_shows_a_secret_not_even_in_pieces(place: Place) -> None:
    place.knows(thinker)
    host = place.host()
    variables = [{"name": "s", "type": "string", "sensitive": True, "defaultValue": "hunter2!"}]
    nodes = body([0.9], inputs={"secret": variable("s")})
    run_id = await begun(host, {**nodes, "variables": variables})
    assert (await ended(host, run_id)).status is Status.COMPLETED
    events = await log(host, run_id)
    assert not [event for event in events if b"hunter2!" in encode(event)]
    deltas = [payload_json(event)["delta"] for event in events if "delta" in payload_json(event)]
    [whole] = [payload_json(e)["reasoning"] for e in events if e.type == "agent.reasoned"]
    assert "".join(deltas) == whole == "I think [REDACTED] I am"
    [call] = [event for event in events if event.type == "agent.toolCalled"]
    assert payload_json(call)["inputs"] == {"secret": "[REDACTED]"}
    [back] = [event for event in events if event.type == "agent.toolReturned"]
    assert back.causation_id == call.event_id
    assert payload_json(back)["callId"] == payload_json(call)["callId"]


async def test_a_decision_that_holds_a_secret_comes_back_whole(memory: Place) -> None:
    @node_function("acme.knows")
    async def knows(ctx: NodeContext, secret: str) -> dict[str, Any]:
        found = await ctx.agent.decided({"use": secret}, 0.1)
        return {"whole": found == {"use": secret}}

    memory.knows(knows)
    host = memory.host()
    variables = [{"name": "s", "type": "string", "sensitive": True, "defaultValue": "hunter2!"}]
    nodes = chain(node("a", "acme.knows", inputs={"secret": variable("s")}))
    run_id = await begun(host, {**nodes, "variables": variables})
    await waits(host, run_id)
    await answer(host, run_id, {"action": "accept"})
    assert (await ended(host, run_id)).outputs == {"whole": True}
    assert not [event for event in await log(host, run_id) if b"hunter2!" in encode(event)]


async def test_a_replay_says_what_an_agent_said_word_for_word(memory: Place) -> None:
    memory.knows(thinker)
    host = memory.host()
    run_id = await begun(host, body([0.5]))
    await waits(host, run_id)
    await answer(host, run_id, {"action": "accept"})
    await ended(host, run_id)
    calls.clear()
    copy = await replay_run(host, TENANT, run_id, 0)
    assert copy.status is Status.COMPLETED and not calls
    then, now = await log(host, run_id), await log(host, copy.run_id)
    assert [event.type for event in now] == [event.type for event in then]
    assert [payload_json(e) for e in now[1:-1]] == [payload_json(e) for e in then[1:-1]]


async def test_the_agent_of_the_page_really_works(memory: Place, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "agents.md").read_text()
    (tmp_path / "page.py").write_text(page.partition("```python\n")[2].partition("```")[0])
    memory.types = {**memory.types, **types_from_file(tmp_path / "page.py")}
    host = memory.host()
    light = await begun(host, chain(node("a", "acme.weigh", config={"text": "short"})))
    assert (await ended(host, light)).outputs == {"kind": "light"}
    unsure = await begun(host, chain(node("a", "acme.weigh", config={"text": "x" * 20})))
    await waits(host, unsure)
    await answer(host, unsure, {"action": "edit-accept", "editedArtifactData": "heavy"})
    assert (await ended(host, unsure)).outputs == {"kind": "heavy"}
    assert (await types(host, unsure)).count("agent.toolCalled") == 1
