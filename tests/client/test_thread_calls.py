"""Threads from Python: begun, linked, taken up again; and the thread API by short handles."""

import pytest

from moot import AsyncClient, Client
from moot.client import ConversationClosed


def test_a_thread_from_its_beginning_to_its_second_life(client: Client) -> None:
    thread = client.threads.begin("Prices", ["codex"], opening="Do we?")
    assert thread.open and thread.view.title == "Prices"
    assert client.threads.list(prefix=thread.id).threads[0].title == "Prices"
    thread.rename("Prices in Q1")
    side = thread.side("Details")
    other = client.threads.get(side.thread_id)
    thread.link(client.threads.begin("Elsewhere").id)
    other.close("Eight percent.")
    thread.archive()
    assert client.threads.list(prefix=thread.id, archived=True).threads[0].archived
    thread.unarchive()
    thread.mute("codex", seconds=60)
    told = thread.events().events
    assert "muted codex until" in (told[-1].says or "") and told[-1].undo == {"unmute": ["codex"]}
    thread.close("No.")
    again = client.threads.reopen(thread.id, note="after all")
    assert again.open and again.id != thread.id and again.view.title == "Prices in Q1"


def test_the_thread_api_by_short_handles(client: Client) -> None:
    made = client.bridge.create("Ours")
    assert client.bridge.ping().status == "ok"
    assert made.id in [each.id for each in client.bridge.threads().threads]
    client.bridge.post(made.id, {"invite": "codex"}, kind="control")
    sent = client.bridge.post(made.id, "Four percent.", sender="codex", meta={"tags": ["x"]})
    assert sent.event is not None and sent.event.sender == "codex"
    assert client.bridge.events(made.id, after=sent.event.seq - 1).events[0] == sent.event
    assert client.bridge.post(made.id, {"fly": 1}, kind="control").warning is not None
    client.bridge.sign(made.id, "typing", sender="codex", details={"model": "m"})
    here = client.bridge.presence(made.id).presence["codex"]
    assert (here.state, here.stale, here.details) == ("typing", False, {"model": "m"})
    assert client.bridge.state(made.id).state.paused is False
    client.threads.get(made.id).close()
    with pytest.raises(ConversationClosed) as late:
        client.bridge.post(made.id, "Too late.")
    assert late.value.details["thread"] == made.id


async def test_the_same_for_asyncio(async_client: AsyncClient) -> None:
    thread = await async_client.threads.begin("Async")
    await thread.rename("Asynchronous")
    sent = await async_client.bridge.post(thread.id, "hello")
    assert sent.event is not None and sent.event.content == "hello"
    found = await async_client.bridge.events(thread.id, since=sent.event.ts)
    assert found.events == []
    await thread.close()
    again = await async_client.threads.reopen(thread.id)
    assert again.view.title == "Asynchronous"
