"""Programs outside that ask one another without end: stopped, visibly, until a person speaks."""

from typing import Any

import pytest

from moot.core.state.council_policy import THREAD_POLICY
from moot.core.threads.pending_requests import PendingRequests, RequestReader
from tests.support.core.simulator import Life, World
from tests.support.core.threads import (
    FLOW,
    check,
    floor_of,
    named,
    say,
    speak,
    steer,
    talk_of,
    thread,
    woken,
)
from tests.support.event_payloads import payload_json

TASK = {"kind": "task"}


def asked(life: Life, name: str) -> list[int]:
    """Where the log asks for a program, as it is told to it."""
    listener = RequestReader(talk_of(life), f"host:{name}")
    return [due.seq for event in life.log if (due := listener.asked(event)) is not None]


def ping_pong(world: World, life: Life, *names: str, most: int = 60, **turn: Any) -> int:
    """Each answers what it was asked, and asks the next; how often that went well."""
    heard = dict.fromkeys(names, 0)
    for count in range(most):
        name, other = names[count % len(names)], names[(count + 1) % len(names)]
        if len(asked(life, name)) <= heard[name]:
            return count
        heard[name] = len(asked(life, name))
        say(world, life, f"ping @{other}", name, to=f"host:{other}", **turn)
    return most


def reasons(life: Life) -> list[tuple[str, float, float]]:
    told = [payload_json(event) for event in life.told("moot.participation.stopped")]
    return [(said["reason"], said["limit"], said["observed"]) for said in told]


def last_words(life: Life) -> dict[str, Any]:
    return dict(payload_json(life.told("conversation.exchanged")[-1])["turn"])


def council(*names: str, roster: bool) -> tuple[World, Life]:
    """One that nobody leads."""
    members = [{"agentId": f"host:{name}"} for name in names]
    inputs = {"question": "Do we?", "participants" if roster else "invited": members}
    world = World()
    return world, world.start(FLOW, inputs=inputs)


# -- threads -------------------------------------------------------------------------------------


@pytest.mark.parametrize("meta", [{}, TASK])
@pytest.mark.parametrize("driven", [(), ("ada",)])
def test_two_programs_wake_one_another_a_few_times_and_no_more(
    meta: dict[str, Any], driven: tuple[str, ...]
) -> None:
    world, life = thread(*driven, outside=("pa", "pb"))
    say(world, life, "start", to="host:pa")
    assert ping_pong(world, life, "pa", "pb", **({"meta": meta} if meta else {})) == 4
    assert reasons(life) == [("pair", 3, 4)] and floor_of(life).stopped == "pair"
    told = last_words(life)
    assert told["role"] == "system"
    assert told["content"].startswith("Stopped: pa and pb have answered one another 3 times. ")
    say(world, life, "still there?", "pa", to="host:pb")
    assert len(asked(life, "pb")) == 2, "while it is stopped nobody is called by an agent"
    check(life)


def test_many_programs_in_a_ring_stop_at_the_limit_of_turns() -> None:
    names = ("pa", "pb", "pc", "pd", "pe")
    world, life = thread(outside=names)
    say(world, life, "start", to="host:pa")
    assert ping_pong(world, life, *names) == 12
    assert reasons(life) == [("consecutive", THREAD_POLICY["limits"]["consecutive"], 12)]
    check(life)


@pytest.mark.parametrize("word", ["say", "continue"])
def test_one_word_of_a_person_lets_them_go_on(word: str) -> None:
    world, life = thread(outside=("pa", "pb"))
    say(world, life, "start", to="host:pa")
    ping_pong(world, life, "pa", "pb")
    before = len(asked(life, "pa"))
    if word == "say":
        say(world, life, "on with it", to="host:pa")
    else:
        steer(world, life, {"continue": True})
    assert floor_of(life).stopped is None and len(asked(life, "pa")) == before + 1
    check(life)


def test_mentions_in_a_discussion_are_bounded_alike() -> None:
    world, life = thread(outside=("pa", "pb"))
    steer(world, life, {"discussion": True})
    say(world, life, "@pa start")
    for count in range(20):
        name, other = ("pa", "pb") if count % 2 == 0 else ("pb", "pa")
        say(world, life, f"@{other}!", name)
    assert len(asked(life, "pa")) + len(asked(life, "pb")) == 4
    assert [reason for reason, *_ in reasons(life)] == ["pair"]
    check(life)


def test_who_is_called_by_a_person_is_called_although_agents_have_gone_too_far() -> None:
    world, life = thread("ada", outside=("pa", "pb"))
    say(world, life, "@ada?")
    for _ in range(4):
        say(world, life, "you", "pa", to="host:pb")
        say(world, life, "no, you", "pb", to="host:pa")
    assert woken(life) == ["ada"] and reasons(life) == [], "somebody has the floor"
    assert len(asked(life, "pa")) + len(asked(life, "pb")) == 3
    speak(world, life)
    assert [reason for reason, *_ in reasons(life)] == ["pair"]
    say(world, life, "@pb, you?")
    last = payload_json(life.told("moot.participation.decided")[-1])
    assert named(last, "called") == {"pb": "addressed by user"}
    check(life)


# -- where nobody leads --------------------------------------------------------------------------


@pytest.mark.parametrize("roster", [True, False])
def test_a_council_that_nobody_leads_stops_two_who_ask_one_another(roster: bool) -> None:
    world, life = council("pa", "pb", roster=roster)
    say(world, life, "start", to="host:pa")
    assert ping_pong(world, life, "pa", "pb") == 4
    assert reasons(life) == [("pair", 3, 4)]
    told = last_words(life)
    assert told["role"] == "system" and "/continue" in told["content"]
    say(world, life, "still there?", "pa", to="host:pb")
    assert len(reasons(life)) == 1, "it is told once"
    check(life)
    owed = PendingRequests(RequestReader(talk_of(life), "host:pa"))
    for event in life.log:
        owed.hear(event)
    assert all(due.by == "user" for due in owed.due)
    steer(world, life, {"continue": True})
    assert asked(life, "pa")[-1] > asked(life, "pb")[0] and talk_of(life).chain is None
    check(life)


def test_a_ring_in_a_council_that_nobody_leads_stops_at_the_limit_of_turns() -> None:
    names = ("pa", "pb", "pc", "pd", "pe", "pf", "pg", "ph", "pi")
    world, life = council(*names, roster=True)
    say(world, life, "start", to="host:pa")
    assert ping_pong(world, life, *names) == 24
    assert reasons(life) == [("consecutive", 24, 24)]
    say(world, life, "start again", to="host:pa")
    assert ping_pong(world, life, *names) > 0
    check(life)


def test_turns_that_ask_nobody_are_no_chain() -> None:
    world, life = council("pa", "pb", roster=True)
    for _ in range(30):
        say(world, life, "a thought", "pa")
    assert reasons(life) == []
    check(life)
