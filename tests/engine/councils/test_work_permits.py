"""The places of members at work: waiting for one is no silence, nor is another host's past."""

import asyncio

from moot.core.state.conversation import Conversation
from moot.core.state.floor import Floor, Invitation
from moot.core.state.participants import ConversationParticipant
from moot.core.state.run import Run
from moot.engine.councils.speakers import WorkPermit, WorkPermits
from moot.testing.clock import VirtualClock

MINUTE = 60_000


def led(*wakes: Invitation) -> Run:
    floor = Floor()
    floor.wakes = {f"1.{number}": wake for number, wake in enumerate(wakes)}
    talk = Conversation("run:talk:1", "talk", 0, 0, 0)
    talk.floor = floor
    talk.participants = {wake.agent: ConversationParticipant(led=True) for wake in wakes}
    return Run("run", conversations={"talk": talk})


def woken(agent: str, at: int) -> Invitation:
    return Invitation(agent=agent, task="speak", turn=0, seq=1, since=at, due=at + MINUTE)


async def test_waiting_for_a_place_is_no_silence_and_a_sign_of_life_ends_one() -> None:
    clock = VirtualClock()
    slots = WorkPermits(1, clock)
    at = clock.millis()
    run = led(woken("host:ada", at), woken("host:bo", at))
    places: list[WorkPermit] = []

    async def work(wake_id: str) -> None:
        async with slots.slot("run", wake_id) as place:
            places.append(place)
            await asyncio.Event().wait()

    tasks = [asyncio.ensure_future(work(name)) for name in ("1.0", "1.1")]
    await asyncio.sleep(0)
    clock.forward(300)
    heard = slots.heard(run, clock.millis())
    assert heard["1.0"] >= 300_000 and heard["1.1"] == 0
    places[0].stir()
    assert slots.heard(run, clock.millis())["1.0"] < 1000
    tasks[0].cancel()
    await asyncio.sleep(0.01)
    clock.forward(10)
    assert 10_000 <= slots.heard(run, clock.millis())["1.1"] < 11_000, "it has its place now"
    tasks[1].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert slots.heard(run, clock.millis()) == {}


async def test_whom_a_host_before_this_one_has_woken_gets_its_time_anew_once() -> None:
    clock = VirtualClock()
    wake = woken("host:ada", clock.millis())
    clock.forward(7200)
    slots = WorkPermits(1, clock)
    run, at = led(wake), clock.millis()
    assert slots.heard(run, at) == {"1.0": 0}
    talk = run.conversations["talk"]
    assert talk.floor is not None
    wake.due = at + talk.floor.policy.limits.silence * 1000
    assert slots.heard(run, wake.due) == {}
