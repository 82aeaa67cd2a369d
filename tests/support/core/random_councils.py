"""Led councils in which anything happens: what the properties of them share."""

from typing import Any

import hypothesis.strategies as st

from moot.core.commands import TimePassed
from moot.core.councils.decide import InvitationReport
from moot.core.events import NewEvent, new_event
from tests.core.councils.test_next_speaker import (
    MEMBERS,
    council,
    effect,
    end,
    floor_of,
    moves,
    policies,
)
from tests.support.core.simulator import ADA, Life, World


def _timed(policy: dict[str, Any], minutes: int | None) -> dict[str, Any]:
    if minutes is None:
        return policy
    return {**policy, "limits": {**policy.get("limits", {}), "minutes": minutes}}


stories = st.tuples(
    st.builds(_timed, policies, st.none() | st.integers(1, 3)), st.integers(2, 4), moves
)

#: what a model says of its cost
PRICED = {"usage": {"inputTokens": 7, "outputTokens": 2}, "cost": 0.01}

#: what members and people do beside that
deeds = st.lists(
    st.sampled_from(
        [
            "invoke",
            "call",
            "retry",
            "effect",
            "ask",
            "heard",
            "allow",
            "deny",
            "admit",
            "drop",
            "mute",
            "speak",
        ]
    ),
    max_size=60,
)


def lived(story: tuple[dict[str, Any], int, list[Any]], more: list[str]) -> tuple[World, Life]:
    """A council in which all this happened; each decision has one time."""
    policy, members, happened = story
    world, life = council(policy, members)
    world.step_micros = 0
    beside = iter(more)
    for move in happened:
        if not life.run.going:
            break
        world.micros += 1_700
        _happen(world, life, move)
        world.micros += 1_700
        if life.run.going and (deed := next(beside, None)) is not None:
            _beside(world, life, deed)
    return world, life


def _happen(world: World, life: Life, move: tuple[Any, ...]) -> None:
    kind, first, text, answer = move
    if kind == "end" and floor_of(life).wakes:
        end(world, life, first, content=text, answer=answer)
    elif kind == "say":
        world.answer(life, "convo", {"content": first}, ADA)
    elif kind == "control":
        world.refused(life, world.controlling(first))
    elif kind == "wait":
        world.pass_time(first * 1000)
        world.take(life, TimePassed(world.at))


def _beside(world: World, life: Life, deed: str) -> None:
    floor = floor_of(life)
    controls: dict[str, Any] = {
        "allow": next((key for key, ask in floor.asks.items() if ask.allowed is None), None),
        "admit": next(iter(floor.held), None),
        "mute": {"targets": ["host:ada", "host:cy"], "seconds": 3},
    }
    controls |= {"deny": controls["allow"], "drop": controls["admit"]}
    if controls.get(deed) is not None:
        world.control(life, {deed: controls[deed], "discussion": True})
    elif deed == "speak":
        turn = {"role": "agent", "speakerId": MEMBERS[1], "content": "@mo from outside"}
        world.refused(life, world.answering("convo", turn))
    elif deed == "heard" and floor.wakes:
        world.pass_time(1_000_000)
        name = next(iter(floor.wakes))
        world.take(life, TimePassed(world.at, heard={name: 500}))
    elif deed in ("invoke", "call", "retry", "effect", "ask") and floor.wakes:
        name, wake = next(reversed(floor.wakes.items()))
        for event in _told(life, deed, name, wake.agent):
            world.take(life, InvitationReport("convo", name, (event,), world.at))


def _told(life: Life, deed: str, name: str, agent: str) -> list[NewEvent]:
    """As members that are at work tell of it."""
    if deed == "invoke":
        payload = {"invocationId": f"{life.run.run_id}:convo:{name}", "agentId": agent}
        return [new_event("agent.invocation.started", payload, "convo")]
    if deed == "call":
        return [effect(life, name), effect(life, name, "finished", result=PRICED)]
    if deed == "retry":
        told = {"invocationId": f"{life.run.run_id}:convo:{name}", "agentId": agent, "attempt": 1}
        return [effect(life, name), new_event("moot.model.retried", told, "convo")]
    if deed == "ask":
        asked = {"wakeId": name, "askId": f"{name}.1", "agentId": agent, "toolName": "dig"}
        return [new_event("moot.tool.asked", asked, "convo")]
    called = {"agentId": agent, "callId": "1", "toolName": "dig"}
    return [
        new_event("agent.toolCalled", called, "convo"),
        new_event("agent.toolReturned", {**called, "status": "ok", "outcome": 1}, "convo"),
    ]
