"""Runs that wait: the beginnings the tests of gates and conversations share."""

from typing import Any

from moot.core.events import Event
from moot.core.speaker import Speaker
from tests.support.core.simulator import CHAIR, Life, World, chain, compiled, definition, node

MEMBERS = ("host:cfo", "host:cto", "host:chair")
ROSTER = [{"agentId": name} for name in MEMBERS]


def asking(body: dict[str, Any], world: World | None = None, **given: Any) -> tuple[World, Life]:
    """A run whose one node has just asked."""
    world = world or World()
    return world, world.start(compiled(definition([body])), **given)


def approval(**config: Any) -> tuple[World, Life]:
    return asking(node("ok", "core.approvalGate", config=config))


def clarification(*questions: dict[str, Any], **config: Any) -> tuple[World, Life]:
    asked = list(questions) or [{"id": "q1", "question": "Which colour?"}]
    return asking(node("ask", "core.clarificationGate", config={"questions": asked, **config}))


def external(correlation: dict[str, Any], **config: Any) -> tuple[World, Life]:
    data = {"eventType": "payment.received", "correlation": correlation}
    config = {"kind": "external-event", "data": data, **config}
    return asking(node("event", "core.interrupt", config=config))


def council(
    roster: bool = True, channel: bool = False, inputs: dict[str, Any] | None = None, **config: Any
) -> tuple[World, Life]:
    """A conversation; with a closed roster unless told otherwise."""
    members = {"participants": ROSTER} if roster else {}
    body = chain(
        node("convo", "core.conversationGate", config={"prompt": "Ship?", **members, **config}),
        channels={"conversation": {"reducer": "message"}} if channel else {},
    )
    world = World()
    return world, world.start(compiled(body), inputs=inputs or {})


def beside_work(*gates: dict[str, Any]) -> tuple[World, Life]:
    """Gates, and a node at work beside them."""
    world = World()
    return world, world.start(compiled(definition([*gates, node("work", "acme.work")])))


def said(speaker: str, content: Any = "…", **more: Any) -> dict[str, Any]:
    """A turn of an agent, or of a person."""
    if speaker.startswith("user"):
        return {"role": "user", "from": speaker, "content": content, **more}
    return {"role": "agent", "speakerId": speaker, "content": content, **more}


def say(
    world: World, life: Life, speaker: str, content: Any = "…", who: Speaker = CHAIR, **more: Any
) -> list[Event]:
    return world.answer(life, "convo", said(speaker, content, **more), who)


def causes(life: Life) -> dict[str, str]:
    """Event id -> the type of the event that caused it."""
    types = {event.event_id: event.type for event in life.log}
    return {e.event_id: types.get(str(e.causation_id), "") for e in life.log}


def caused_by(life: Life, event: Event) -> Event:
    """The event that caused this one."""
    return next(each for each in life.log if each.event_id == event.causation_id)


def short(events: list[Event]) -> list[str]:
    return [event.type for event in events]
