"""A scene of a thread: members inside and outside, names, links, tasks, and what is no control."""

import asyncio
from typing import Any

from moot.core.speaker import Speaker
from moot.core.state.council_policy import THREAD_POLICY
from moot.core.threads.decide import Control
from moot.core.threads.seats import LeaveSeat, TakeSeat
from moot.core.threads.side_threads import SideThreadEnded
from tests.support.replay.councils import Members, floor_of, rest
from tests.support.replay.story import ADA, TENANT, Story, chain, node

REX = Speaker("local", ("host:rex",), joins="outside")


async def threaded(story: Story) -> None:
    """People speak to all, to one, and to nobody in particular; what is asked for is done."""
    story.speaks = Members()
    gate = node("convo", "core.conversationGate", config={"participation": THREAD_POLICY})
    invited = [{"agentId": "host:ada", "name": "Sam"}, {"agentId": "host:bo", "name": "Sam"}]
    inputs = {"title": "Ours", "invited": [*invited, {"agentId": "host:cy"}],
              "outside": ["host:cy"]}  # fmt: skip
    run_id = await story.begin(chain("thread", gate), inputs=inputs)
    await _say(story, run_id, "Ideas?")
    await _say(story, run_id, "@sam, and @all of you?")
    await _say(story, run_id, "Here I am.", who=REX, role="agent", speakerId="host:rex")
    for content in ({"rename": "Theirs"}, {"link": {"thread": "th_side", "title": "Side"}},
                    {"presence": "thinking"}, {"fly": True}, "no control", {"mute": 5},
                    {"mute": {"targets": ["bo"], "seconds": 60}}, {"ttl_seconds": 30},
                    {"uninvite": "host:nobody"}):  # fmt: skip
        await _steer(story, run_id, content)
    await _say(story, run_id, "Do it.", to="host:ada", meta={"kind": "task"})
    place = (await story.host.view(TENANT, run_id)).run.conversations["convo"].turn_seq
    await _say(story, run_id, "You, too.", to="host:cy", meta={"kind": "task"})
    story.clock.pass_time(31_000)
    await _say(story, run_id, "Anybody?")
    await _steer(story, run_id, {"ttl_seconds": None, "unmute": ["bo"], "discussion": True})
    await _say(story, run_id, "@bo?", meta={"replyTo": place})
    ended = SideThreadEnded(node_id="convo", thread="th_side", summary="Done.", at=story.now())
    await story.host.handle(TENANT, run_id, ended)
    await story.answer(run_id, "convo", {"operation": "close", "decision": "Enough."}, ADA)


async def seated(story: Story) -> None:
    """A program takes a name, another its place; who lost it has nothing to leave."""
    gate = node("convo", "core.conversationGate")
    run_id = await story.begin(chain("seated", gate))
    for seat, seen in (("seat_one", None), ("seat_two", "seat_one")):
        taken = TakeSeat(
            node_id="convo", name="host:rex", seat=seat, seen=seen, at=story.now(), via="key_story"
        )
        await story.host.handle(TENANT, run_id, taken)
    for seat in ("seat_one", "seat_two"):
        gone = LeaveSeat(node_id="convo", name="host:rex", seat=seat)
        await story.host.handle(TENANT, run_id, gone)
    await story.answer(run_id, "convo", {"operation": "close", "outcome": None})
    await story.wait(run_id)


async def _say(story: Story, run_id: str, content: str, who: Speaker = ADA, **turn: Any) -> None:
    await story.answer(run_id, "convo", {"content": content, **turn}, who)
    await asyncio.sleep(0)
    await rest(story, run_id)
    assert not (await floor_of(story, run_id)).wakes


async def _steer(story: Story, run_id: str, content: Any) -> None:
    given = Control(
        node_id="convo", content=content, who=ADA, at=story.now(), sender="user:ada", lenient=True
    )
    await story.host.handle(TENANT, run_id, given)
