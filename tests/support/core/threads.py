"""Threads in the pure core: the host's own workflow, with members inside and outside."""

import json
from typing import Any

from msgspec import to_builtins

from moot.core.councils.invitations import InvitationEnded
from moot.core.events import Event
from moot.core.speaker import Speaker
from moot.core.state.conversation import THREAD, Conversation, first_title, thread_id
from moot.core.state.council_policy import THREAD_POLICY
from moot.core.state.floor import Floor
from moot.core.threads.agent_bridge import BridgeRenderer
from moot.core.threads.decide import Control
from moot.core.verify.walk import verify
from moot.engine.workflows.built_in import BUILT_IN, TALK
from tests.support.core.simulator import CHAIR, TENANT, Life, World, compiled
from tests.support.event_payloads import payload_json

FLOW = compiled(json.loads(BUILT_IN[THREAD]))
USER = Speaker("key_user", ("user",))


def thread(
    *members: str,
    outside: tuple[str, ...] = (),
    opening: str | None = None,
    policy: dict[str, Any] | None = None,
    profiles: dict[str, dict[str, str]] | None = None,
) -> tuple[World, Life]:
    """Led as threads are, unless told otherwise."""
    names = [f"host:{name}" for name in (*members, *outside)]
    inputs: dict[str, Any] = {
        "title": "Ours",
        "invited": [{"agentId": name} for name in names],
        "participation": policy or THREAD_POLICY,
        "outside": [f"host:{name}" for name in outside],
        "profiles": {f"host:{name}": said for name, said in (profiles or {}).items()},
    }
    if opening is not None:
        inputs["question"] = opening
    world = World()
    return world, world.start(FLOW, inputs=inputs)


def talk_of(life: Life) -> Conversation:
    return life.run.conversations[TALK]


def floor_of(life: Life) -> Floor:
    floor = talk_of(life).floor
    assert floor is not None
    return floor


def say(world: World, life: Life, content: Any, who: str = "user", **turn: Any) -> list[Event]:
    """A turn of a person, or of an agent."""
    name = who if who.startswith("user") else f"host:{who}"
    said: dict[str, Any] = {"role": "user", "from": name, "content": content, **turn}
    if not who.startswith("user"):
        said = {"role": "agent", "speakerId": name, "content": content, **turn}
    return world.answer(life, TALK, said, CHAIR)


def steer(
    world: World, life: Life, content: Any, who: Speaker = USER, sender: str = "user"
) -> list[Event]:
    return world.take(life, control(world, content, who, sender))


def control(
    world: World, content: Any, who: Speaker = USER, sender: str = "user", lenient: bool = True
) -> Control:
    return Control(
        node_id=TALK, content=content, who=who, at=world.at, sender=sender, lenient=lenient
    )


def woken(life: Life) -> list[str]:
    return [wake.agent.removeprefix("host:") for wake in floor_of(life).wakes.values()]


def speak(world: World, life: Life, content: Any = "Well.", outcome: str = "spoke") -> list[Event]:
    """Whoever has the floor for the host says something."""
    wake_id = next(iter(floor_of(life).wakes))
    return world.take(
        life,
        InvitationEnded(
            node_id=TALK, wake_id=wake_id, at=world.at, outcome=outcome, content=content
        ),
    )


def speak_all(world: World, life: Life, content: Any = "Well.", most: int = 100) -> list[str]:
    """Until nobody has the floor; who it was."""
    found = []
    while floor_of(life).wakes and len(found) < most:
        found += woken(life)
        speak(world, life, content)
    return found


def decisions(life: Life) -> list[dict[str, Any]]:
    return [payload_json(event) for event in life.told("moot.participation.decided")]


def named(payload: dict[str, Any], word: str) -> dict[str, str]:
    """Member -> reason."""
    return {one["agentId"].removeprefix("host:"): one["reason"] for one in payload.get(word, [])}


def told(life: Life) -> list[dict[str, Any]]:
    """The whole thread as Agent Bridge tells it."""
    talk = talk_of(life)
    teller = BridgeRenderer(
        talk, thread_id(life.run, talk), first_title(life.run, talk), life.run.person
    )
    return [to_builtins(each) for event in life.log for each in teller.tell(event)]


def check(life: Life) -> None:
    """The log is what the commands in it lead to."""
    assert verify(life.flow, TENANT, life.run.run_id, life.log) is None, life.order()
