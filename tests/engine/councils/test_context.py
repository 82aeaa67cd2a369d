"""What a member hears is the same, whether it was followed as it was said or is read anew."""

import random
from typing import Any

import pytest

from moot.core.events import Event, encode
from moot.core.state.conversation import Conversation
from moot.core.state.floor import Invitation
from moot.core.state.run import Run, apply
from moot.engine.councils.context import SPARE_TURNS, TurnCache
from moot.engine.head import Head
from moot.engine.host import Host
from moot.engine.streams.hub import Published
from tests.support.engine.council_members import Council, at_rest, convened
from tests.support.engine.hosts import TENANT, Place, log
from tests.support.engine.replays import answer


class Life:
    """A log that is lived again, decision by decision."""

    def __init__(self, head: Head, events: list[Event], luck: random.Random) -> None:
        self.head = Head(Run(head.run.run_id, tenant=TENANT), head.flow)
        self._events, self._luck = events, luck

    def goes_on(self) -> list[Published]:
        """What comes to disk next; it is there already."""
        count = self._luck.choice([1, 2, 5, 12, 12, 12, 200])
        some, self._events = self._events[:count], self._events[count:]
        for event in some:
            apply(self.head.run, event)
        self.head.durable = self.head.run.next_sequence
        return [Published(event.sequence, event.type, encode(event)) for event in some]

    def wakes(self) -> list[tuple[Conversation, Invitation]]:
        talks = self.head.run.conversations.values()
        return [(talk, wake) for talk in talks if talk.floor for wake in talk.floor.wakes.values()]


async def says(host: Host, run_id: str, content: str, to: str | None = None) -> None:
    turn = {"role": "user", "content": content, **({} if to is None else {"to": to})}
    await answer(host, run_id, "convo", {"turn": turn})


async def addressed(council: Council, host: Host) -> str:
    """Much is said while one member makes up its mind: more than is kept for those who listen."""
    run_id = await convened(host, {"mode": "addressed", "window": 2})
    for number in range(4):
        await says(host, run_id, f"First {number}.")
    council.gate.clear()
    await says(host, run_id, "And you?", "host:ada")
    for number in range(2 * SPARE_TURNS):
        await says(host, run_id, f"Then {number}.")
    council.gate.set()
    await at_rest(host, run_id)
    await says(host, run_id, "And you?", "host:bo")
    return run_id


async def in_turn(council: Council, host: Host) -> str:
    """Most of what was said is not told, and some of it summed up."""
    council.gate.clear()
    policy = {"mode": "round-robin", "rounds": 14, "window": 2, "summarise": "host:mo"}
    run_id = await convened(host, policy)
    for number in range(2 * SPARE_TURNS):
        await says(host, run_id, f"And {number}?")
    council.gate.set()
    return run_id


@pytest.mark.parametrize("held", [addressed, in_turn])
async def test_what_is_followed_is_what_the_log_says(memory: Place, held: Any) -> None:
    council = Council(memory)
    host = council.host(memory)
    run_id = await held(council, host)
    await at_rest(host, run_id)
    events, lived = await log(host, run_id), await host.view(TENANT, run_id)
    heard = 0
    for seed in range(40):
        luck = random.Random(seed)
        life, followed = Life(lived, events, luck), TurnCache(memory.store)
        while said := life.goes_on():
            if luck.random() < 0.9:  # else somebody else has written to the log
                followed.follow(life.head.run, said)
            for talk, wake in life.wakes():
                anew = await TurnCache(memory.store).context(life.head, talk, wake)
                assert await followed.context(life.head, talk, wake) == anew, seed
                heard += 1
    assert heard > 100
