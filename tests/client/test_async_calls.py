"""The client for asyncio, against a real server."""

import asyncio

import pytest

from moot import AsyncClient
from moot.client import Conflict, Edit, Event, NotFound, TimedOut


async def test_a_run_is_followed_answered_and_forked(async_client: AsyncClient) -> None:
    run = await (await async_client.runs.start("release", product="X")).wait()
    assert run.status == "waiting-input"
    [question] = await run.questions()
    await async_client.inbox.answer(question, answer="Ann")
    assert (await run.wait()).status == "waiting-approval"
    await run.approve()
    await run.wait(to_the_end=True)
    events = [event async for event in run.events()]
    assert [event.seq for event in events] == list(range(len(events)))
    at = next(e.seq for e in events if e.type == "interrupt.resolved" and e.node == "ok")
    other = await run.fork(at, Edit(answer={"action": "reject"}))
    assert (await other.wait()).outputs == {"result": "kept back"}
    again = await run.replay()
    assert (await run.diff((await again.wait()).id)).same
    assert (await run.verify()).identical
    rows = [row async for row in async_client.runs.list(fork_of=run.id)]
    assert {row.run_id for row in rows} == {other.id, again.id}
    assert await run.children() == []


async def test_many_calls_go_side_by_side(async_client: AsyncClient) -> None:
    runs = await asyncio.gather(*(async_client.runs.start("hello", name=str(n)) for n in range(20)))
    ended = await asyncio.gather(*(run.wait() for run in runs))
    assert {run.status for run in ended} == {"completed"}
    assert len({run.id for run in runs}) == 20


async def test_a_thread_is_heard_while_it_happens(async_client: AsyncClient) -> None:
    thread = await async_client.convene("Well?", "ada", "bo")

    async def listen() -> list[str]:
        return [one.type async for one in thread.stream(timeout=30) if isinstance(one, Event)]

    listening = asyncio.create_task(listen())
    await thread.say("Yes.", speaker="host:ada")
    await thread.close("Yes")
    heard = await listening
    assert heard.count("conversation.exchanged") == 1 and heard[-1] == "run.completed"
    assert [line.by for line in await thread.transcript()][:2] == ["user", "host:ada"]
    with pytest.raises(Conflict):
        await thread.close()


async def test_waiting_has_an_end_and_the_inbox_can_be_watched(async_client: AsyncClient) -> None:
    run = await (await async_client.runs.start("release")).wait()
    with pytest.raises(TimedOut):
        await run.wait(0.05, to_the_end=True)
    with pytest.raises(TimedOut):
        async for _ in run.events(timeout=0.2):
            pass
    async for inbox in async_client.inbox.watch(timeout=5):
        assert run.id in {item.run_id for item in inbox.items}
        break
    await run.cancel()


async def test_a_refusal_is_an_error_of_its_kind(async_client: AsyncClient) -> None:
    with pytest.raises(NotFound) as refused:
        await async_client.runs.get("run_none")
    assert refused.value.code == "run_not_found"
    assert refused.value.details == {"runId": "run_none"}
    assert (await async_client.health()).status == "ok"
