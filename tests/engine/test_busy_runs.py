"""Reading a run that never comes to rest."""

import asyncio
from typing import Any

from moot.core.runs.answers import GateAnswer
from moot.core.speaker import Speaker
from moot.engine.host import Host
from moot.store.protocol import Store
from tests.support.engine.hosts import TENANT, Place, Wrapped, begun, chain, log, node
from tests.support.event_payloads import payload_json

TURNS = 3000
TALKERS = 8


class Counted(Wrapped):
    """Counts the rows of the log that were read."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.rows = 0

    async def read(self, *given: Any) -> list[bytes]:
        found: list[bytes] = await self.inner.read(*given)
        self.rows += len(found)
        return found


async def said(host: Host, run_id: str, content: str) -> None:
    value = {"role": "user", "content": content}
    who = Speaker("key_1", (), True)
    given = GateAnswer(node_id="floor", value=value, who=who, at=host.clock.millis())
    await host.handle(TENANT, run_id, given)


async def test_the_messages_of_a_busy_run_are_read_once_and_not_again_and_again(
    sqlite: Place,
) -> None:
    """Each reader once read the whole log many times over, since the run moved on meanwhile."""
    stores: list[Counted] = []

    def counting(store: Store) -> Counted:
        stores.append(Counted(store))
        return stores[-1]

    host = sqlite.host(counting)
    talk = chain(node("floor", "core.conversationGate"),
                 channels={"conversation": {"reducer": "message"}})  # fmt: skip
    run_id = await begun(host, talk)
    for start in range(0, TURNS, 100):
        await asyncio.gather(*(said(host, run_id, f"t{start + n}") for n in range(100)))

    async def talking() -> None:
        while not stopping.is_set():
            await said(host, run_id, "more")

    stopping = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for _ in range(TALKERS):
            group.create_task(talking())
        await asyncio.sleep(0.05)
        found = []
        for _ in range(5):
            head = await host.whole(TENANT, run_id)
            held = [message["content"] for message in head.messages["conversation"]]
            found.append((held, head.run.next_sequence))
        stopping.set()
    whole = await log(host, run_id)
    for held, sequence in found:
        assert held == [payload_json(event)["value"]["content"] for event in whole[:sequence]
                        if event.type == "channel.written"]  # fmt: skip
    tails = 5 * 1000  # what a fold cached at most a thousand events ago has missed
    assert stores[0].rows < 2 * len(whole) + tails
