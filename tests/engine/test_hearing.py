"""What a member hears is the same, whether it was followed as it was said or is read anew."""

import random

from councillors import Council, at_rest, convened
from hosting import TENANT, Place, log

from moot.core.events import Event, encode
from moot.core.run import Run, apply
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


async def test_what_is_followed_is_what_the_log_says(memory: Place) -> None:
    council = Council(memory)
    host = council.host(memory)
    run_id = await convened(host, NARROW)
    await at_rest(host, run_id)
    events, lived = await log(host, run_id), await host.view(TENANT, run_id)
    assert lived.run.conversations["convo"].turns > 6 + SPARE
    heard = 0
    for seed in range(40):
        life, followed = Life(lived, events, random.Random(seed)), Hearing(memory.store)
        while said := life.goes_on():
            followed.follow(life.head.run, said)
            for talk in life.head.run.conversations.values():
                for wake in list(talk.floor.wakes.values()) if talk.floor is not None else []:
                    anew = await Hearing(memory.store).context(life.head, talk, wake)
                    assert await followed.context(life.head, talk, wake) == anew, seed
                    heard += 1
    assert heard > 100


async def test_what_was_followed_and_lost_is_forgotten(memory: Place) -> None:
    council = Council(memory)
    council.gate.clear()
    host = council.host(memory)
    run_id = await convened(host, NARROW)
    head = await host.runs.head(TENANT, run_id)
    talk = head.run.conversations["convo"]
    assert talk.floor is not None
    [wake] = talk.floor.wakes.values()
    hearing = Hearing(memory.store)
    before = await hearing.context(head, talk, wake)
    turn = {"turnIndex": 0, "from": "host:bo", "role": "agent", "content": "I never said so."}
    lost = Event(
        event_id="x", run_id=run_id, sequence=head.run.next_sequence, timestamp="",
        type="conversation.exchanged", node_id="convo", payload={"turn": turn},
    )  # fmt: skip
    hearing.follow(head.run, [Published(lost.sequence, lost.type, encode(lost))])
    hearing.forget(head.run)
    assert await hearing.context(head, talk, wake) == before
