"""The end of a side thread is told where it was begun, also when the host was away meanwhile."""

from moot.core.errors import StorageFailed
from moot.core.events import micros
from moot.core.runs.answers import GateAnswer
from moot.core.speaker import Speaker
from moot.core.state.conversation import THREAD
from moot.core.threads.decide import Control
from moot.core.verify.walk import verify
from moot.engine.host import Host
from moot.engine.rebuild import rebuild_rows
from moot.engine.workflows.built_in import TALK
from moot.store.protocol import Batch
from tests.support.engine.hosts import TENANT, Place, another, log, until
from tests.support.event_payloads import payload_json

USER = Speaker("key", ("user",))


async def begun(host: Host, title: str) -> str:
    flow = await host.flows.newest(TENANT, THREAD)
    return await another(host, flow, inputs={"title": title})


async def linked(host: Host) -> tuple[str, str]:
    main, side = await begun(host, "Main"), await begun(host, "Side")
    await steer(host, main, {"link": {"thread": side, "title": "Side"}})
    return main, side


async def steer(host: Host, run_id: str, content: object) -> None:
    at = host.clock.millis()
    await host.handle(TENANT, run_id, Control(node_id=TALK, content=content, who=USER, at=at))


async def close(host: Host, run_id: str, decision: str) -> None:
    value = {"operation": "close", "decision": decision}
    answer = GateAnswer(node_id=TALK, value=value, who=USER, at=host.clock.millis())
    await host.handle(TENANT, run_id, answer)


async def told(host: Host, main: str) -> list[str]:
    await until(host, main, lambda run: not any(
        link.open for link in run.conversations[TALK].links.values()
    ))  # fmt: skip
    turns = [e for e in await log(host, main) if e.type == "conversation.exchanged"]
    return [payload_json(event)["turn"]["content"] for event in turns]


async def test_a_side_thread_that_ends_is_summed_up_once(place: Place) -> None:
    host = place.host()
    main, side = await linked(host)
    await close(host, side, "So it is.")
    assert await told(host, main) == [f"The side thread “Side” ({side}) is closed: So it is."]
    other = await begun(host, "Late")
    await close(host, other, "Before.")
    await steer(host, main, {"link": {"thread": other, "title": "Late"}})
    assert (await told(host, main))[1:] == [f"The side thread “Late” ({other}) is closed: Before."]


async def test_what_ended_while_nobody_was_there_is_told_at_the_next_start(place: Place) -> None:
    host = place.host()
    main, side = await linked(host)
    host.sides.waiting.clear()  # it forgets who waits, as a host that dies does
    await close(host, side, "Meanwhile.")
    assert not [e for e in await log(host, main) if e.type == "conversation.exchanged"]
    fresh = await place.restart(host)
    assert (await told(fresh, main))[0].endswith("is closed: Meanwhile.")
    again = await place.restart(fresh)
    assert len(await told(again, main)) == 1


async def test_a_thread_that_is_linked_is_told_by_which_once(place: Place) -> None:
    host = place.host()
    main, side = await linked(host)
    for _ in range(2):
        found = await until(host, side, lambda run: main in run.conversations[TALK].links)
        assert found.conversations[TALK].links[main].back
        turns = [e for e in await log(host, side) if e.type == "conversation.exchanged"]
        [said] = [payload_json(event)["turn"] for event in turns]
        assert said["content"] == f"This thread is linked from “Main” ({main})."
        assert said["role"] == "system" and said["meta"]["thread"] == main
        flow = await host.flows.newest(TENANT, THREAD)
        assert verify(flow, TENANT, side, await log(host, side)) is None
        host = await place.restart(host)
    await close(host, side, "Done.")
    assert len(await told(host, main)) == 1, "and the other one does not wait for its end"


async def test_what_the_disk_refuses_is_told_later(memory: Place) -> None:
    refusals = 1

    class Refusing:
        def __init__(self, store: object) -> None:
            self.inner = store

        def __getattr__(self, name: str) -> object:
            return getattr(self.inner, name)

        async def commit(self, batch: Batch) -> None:
            nonlocal refusals
            if refusals and any(b"is closed" in e for a in batch.appends for e in a.events):
                refusals -= 1
                raise StorageFailed("The disk refused.")
            await self.inner.commit(batch)  # type: ignore[attr-defined]

    host = memory.host(Refusing)
    main, side = await linked(host)
    await close(host, side, "In the end.")
    assert (await told(host, main))[0].endswith("In the end.") and not refusals


# -- what lists show -----------------------------------------------------------------------------


async def test_the_name_and_the_turns_of_a_thread_follow_from_its_log(place: Place) -> None:
    host = place.host()
    thread = await begun(host, "Before")
    await steer(host, thread, {"rename": "After"})
    answer = GateAnswer(node_id=TALK, value={"content": "hello"}, who=USER, at=host.clock.millis())
    await host.handle(TENANT, thread, answer)
    kept = await place.store.find_run(TENANT, thread)
    assert (kept.title, kept.turns) == ("After", 1)
    await rebuild_rows(place.store, host.flows)
    assert await place.store.find_run(TENANT, thread) == kept


# -- times ---------------------------------------------------------------------------------------


async def test_events_have_room_for_times_of_their_own_though_the_clock_stands(
    place: Place,
) -> None:
    """A clock that is set back, and a host that starts again, repeat no time."""
    host = place.host()
    thread = await begun(host, "Still")
    place.clock._last += 3_600_000_000  # the machine is an hour behind what was written last
    for number in range(5):
        await steer(host, thread, {"pause": number % 2 == 0, "invite": f"a{number}"})
    host = await place.restart(host)
    await steer(host, thread, {"pause": False})
    found = await log(host, thread)
    times: list[int] = []
    for event in found:
        moment = micros(event.timestamp)
        if times and event.timestamp == found[len(times) - 1].timestamp:
            times.append(times[-1] + 1)
        else:
            assert not times or moment > times[-1], "a decision leaves room for its events"
            times.append(moment)
    assert times == sorted(set(times)) and len(times) == len(found)
