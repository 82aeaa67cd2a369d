"""What a member hears is the same, whether it was followed as it was said or is read anew."""

import random

from councillors import Council, at_rest, convened
from hosting import TENANT, Place, log
from msgspec.structs import replace
from said_again import answer

from moot.core.events import Event, decode, encode
from moot.core.participation import Wake
from moot.core.run import Run, apply
from moot.core.waiting import Conversation
from moot.engine.head import Head
from moot.engine.hearing import SPARE, Hearing
from moot.engine.hub import Published

#: so that most of what was said is not told, and some of it summed up
NARROW = {"mode": "round-robin", "rounds": 14, "window": 2, "summarise": "host:mo"}


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
        self.head.kept = self.head.run.next_sequence
        return [Published(event.sequence, event.type, encode(event)) for event in some]

    def wakes(self) -> list[tuple[Conversation, Wake]]:
        talks = self.head.run.conversations.values()
        return [(talk, wake) for talk in talks if talk.floor for wake in talk.floor.wakes.values()]


async def test_what_is_followed_is_what_the_log_says(memory: Place) -> None:
    council = Council(memory)
    host = council.host(memory)
    council.gate.clear()
    run_id = await convened(host, NARROW)
    for number in range(2 * SPARE):  # more is said than anybody keeps who has yet to listen
        turn = {"role": "user", "content": f"And {number}?"}
        await answer(host, run_id, "convo", {"turn": turn})
    council.gate.set()
    await at_rest(host, run_id)
    events, lived = await log(host, run_id), await host.view(TENANT, run_id)
    assert lived.run.conversations["convo"].turns > 6 + SPARE
    heard = 0
    for seed in range(40):
        life, followed = Life(lived, events, random.Random(seed)), Hearing(memory.store)
        while said := life.goes_on():
            followed.follow(life.head.run, said)
            for talk, wake in life.wakes():
                anew = await Hearing(memory.store).context(life.head, talk, wake)
                assert await followed.context(life.head, talk, wake) == anew, seed
                heard += 1
    assert heard > 100


async def test_what_was_followed_and_lost_is_heard_by_nobody(memory: Place) -> None:
    council = Council(memory)
    host = council.host(memory)
    run_id = await convened(host, NARROW)
    await at_rest(host, run_id)
    events, lived = await log(host, run_id), await host.view(TENANT, run_id)
    for seed in range(10):
        life, followed = Life(lived, events, random.Random(seed)), Hearing(memory.store)
        while said := life.goes_on():
            lost = [Published(each.sequence, each.type, lie(each.body)) for each in said]
            followed.follow(life.head.run, lost)
            followed.follow(life.head.run, said)
            for talk, wake in life.wakes():
                context = await followed.context(life.head, talk, wake)
                assert not any(turn.content == LIE for turn in context.turns)


LIE = "I never said so."


def lie(body: bytes) -> bytes:
    event = decode(body)
    turn = event.payload.get("turn", {})
    payload = {**event.payload, "turn": {**turn, "content": LIE}}
    return encode(replace(event, payload=payload))
