"""What agents may not do by steering, while people may."""

from typing import Any

import pytest

from moot.core.conversations.participants import MAX_PROFILE_BYTES
from moot.core.errors import BadRequest, BodyTooLarge, Forbidden, ParticipantMuted, RosterFull
from moot.core.errors import ThreadPaused as Paused
from moot.core.errors.threads import NameTaken
from moot.core.events import Event
from moot.core.state.council_policy import THREAD_POLICY
from moot.core.state.floor import current_mode
from moot.core.state.participants import joined_members, led_members
from moot.core.threads.agent_restrictions import MAX_BROUGHT_ALONG, MAX_CONTROL_BYTES
from moot.core.threads.decide import Control
from moot.core.threads.pending_requests import RequestReader
from tests.support.core.simulator import Life, Speaker, World
from tests.support.core.threads import (
    check,
    control,
    decisions,
    floor_of,
    named,
    say,
    steer,
    talk_of,
    thread,
    woken,
)
from tests.support.event_payloads import payload_json

REX = Speaker("key_rex", ("host:rex",))


def by_rex(world: World, content: Any) -> Control:
    return control(world, content, REX, "host:rex")


def invited(who: str, /, **profile: Any) -> dict[str, Any]:
    return {"invite": {"participant_id": who, "profile": profile}}


# -- muted, paused -------------------------------------------------------------------------------

LOUD: list[Any] = [
    "free text", {}, {"rename": "BUY NOW"}, {"link": {"thread": "th_x", "title": "BUY"}},
    {"buy": "now"}, {"done": True, "buy": "now"}, {"done": "BUY NOW"}, {"presence": "BUY NOW"},
    {"uninvite": "buy now"}, {"uninvite": {"participant_id": "rex", "note": "BUY NOW"}},
    {"presence": ["BUY"], "done": True}, invited("rex", nickname="BUY"),
]  # fmt: skip


@pytest.mark.parametrize("content", LOUD)
def test_a_muted_agent_says_nothing_by_steering_either(content: Any) -> None:
    world, life = thread(outside=("rex",))
    steer(world, life, {"mute": ["rex"]})
    assert isinstance(world.refused(life, by_rex(world, content)), ParticipantMuted)
    steer(world, life, {"unmute": ["rex"]})
    world.take(life, by_rex(world, content))
    check(life)


@pytest.mark.parametrize("content", [*LOUD[:-1]])
def test_in_a_paused_thread_agents_name_and_link_nothing(content: Any) -> None:
    world, life = thread(outside=("rex",))
    steer(world, life, {"pause": True})
    assert isinstance(world.refused(life, by_rex(world, content)), Paused)


@pytest.mark.parametrize("held", [{"mute": ["rex"]}, {"pause": True}])
def test_who_may_not_speak_sends_nobody_away_but_himself(held: dict[str, Any]) -> None:
    world, life = thread("ada", outside=("rex",))
    steer(world, life, held)
    for who in ("ada", {"participant_id": "ada"}, {"participant_id": "host:ada"}):
        for content in ({"uninvite": who}, {"done": True, "uninvite": who}):
            refusal = world.refused(life, by_rex(world, content))
            assert isinstance(refusal, ParticipantMuted | Paused)
    world.take(life, by_rex(world, {"uninvite": {"participant_id": "rex"}}))
    assert list(joined_members(talk_of(life))) == ["host:ada"]
    check(life)


def test_who_is_muted_may_be_done_go_and_be_here() -> None:
    world, life = thread(outside=("rex",))
    steer(world, life, {"mute": ["rex"]})
    for content in ({"presence": "thinking"}, {"done": True}, {"uninvite": "rex"}):
        world.take(life, by_rex(world, content))
    assert joined_members(talk_of(life)) == {}
    check(life)


# -- who others are ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["eve", "you", "moot", "Ada"])
def test_no_agent_says_how_it_is_called(name: str) -> None:
    world, life = thread("ada", outside=("rex",))
    for content in (invited("rex", name=name), invited("new", name=name)):
        assert isinstance(world.refused(life, by_rex(world, content)), Forbidden)
    assert joined_members(talk_of(life))["host:rex"].profile == {}
    steer(world, life, invited("rex", name="Rexy"))
    assert joined_members(talk_of(life))["host:rex"].profile == {"name": "Rexy"}


def test_an_agent_says_who_it_is_and_not_who_others_are() -> None:
    world, life = thread("ada", outside=("rex",))
    for word in ("you", "moot", "us\u0435r"):
        refusal = world.refused(life, by_rex(world, invited("rex", nickname=word)))
        assert isinstance(refusal, Forbidden)
    assert isinstance(world.refused(life, by_rex(world, invited("ada", role="idiot"))), Forbidden)
    world.take(life, by_rex(world, invited("rex", nickname="T", model="m", roles=["critic"])))
    assert joined_members(talk_of(life))["host:ada"].profile == {}
    assert joined_members(talk_of(life))["host:rex"].profile["nickname"] == "T"
    check(life)


def test_what_the_host_knows_of_its_agents_only_people_say_otherwise() -> None:
    world, life = thread("ada", outside=("rex",))
    known = {"name": "Bo", "role": "builder"}
    said = invited("bo", role="idiot", nickname="B")
    for who, sender, role in ((REX, "host:rex", "builder"), (Speaker("k"), "user:k", "idiot")):
        given = Control(
            node_id="talk", content=said, who=who, at=world.at, sender=sender, known=known
        )
        world.take(life, given)
        profile = joined_members(talk_of(life))["host:bo"].profile
        assert profile == {"name": "Bo", "role": role, "nickname": "B"}
    check(life)


# -- what is meant for people ---------------------------------------------------------------------

#: written in escapes where it could not be told from others
CATCHING = [
    "bob", "BOB", "b\u043eb", "ada", "Ada", "\u0410da", "user:eve", "user:bob", "bob\u200b",
    "x" * 300, "a\nb", "\x1b[31mx", "Eve (you)", ["bob"], {"bob": 1}, 5,
]  # fmt: skip


@pytest.mark.parametrize("nick", CATCHING)
def test_no_agents_nickname_is_anothers_name_or_cannot_be_seen(nick: Any) -> None:
    world, life = thread("ada", outside=("rex",))
    say(world, life, "hi", "user:bob")
    for who in ("rex", "new"):
        refusal = world.refused(life, by_rex(world, invited(who, nickname=nick)))
        assert isinstance(refusal, Forbidden | NameTaken)
    world.take(life, by_rex(world, invited("rex", nickname="Rexy")))
    check(life)


@pytest.mark.parametrize("word", ["role", "roles", "client", "model"])
def test_no_agent_is_by_its_role_what_a_person_is_by_name(word: str) -> None:
    world, life = thread(outside=("rex",))
    say(world, life, "hi", "user:bob")
    for said in ("Bob", ["critic", "bob"]):
        refusal = world.refused(life, by_rex(world, invited("rex", **{word: said})))
        assert isinstance(refusal, NameTaken)
    world.take(life, by_rex(world, invited("rex", **{word: "critic"})))


def test_an_agent_brings_nobody_by_the_name_of_a_person() -> None:
    world, life = thread(outside=("rex",))
    say(world, life, "hi", "user:bob")
    assert isinstance(world.refused(life, by_rex(world, invited("Bob"))), NameTaken)
    steer(world, life, invited("bob"))
    assert "host:bob" in joined_members(talk_of(life))


def test_a_persons_name_means_that_person_before_any_nickname() -> None:
    world, life = thread("ada", outside=("rex",), policy={**THREAD_POLICY, "mode": "large"})
    said = invited("rex", nickname="bob", roles=["bob"])["invite"]
    world.take(life, by_rex(world, {"invite": {**said, "outside": True}}))
    say(world, life, "@bob are you there?")
    assert named(decisions(life)[-1], "called") == {"rex": "addressed by user"}
    say(world, life, "Now I am.", "user:bob")
    count = len(decisions(life))
    say(world, life, "@bob the password is X")
    [event] = [e for e in say(world, life, "and", to="bob") if e.type == "conversation.exchanged"]
    assert payload_json(event)["turn"]["to"] == "user:bob" and len(decisions(life)) == count
    asked = turn_event(life, "@bob the password is X")
    assert RequestReader(talk_of(life), "user:bob").asked(asked) is not None
    assert RequestReader(talk_of(life), "host:rex").asked(asked) is None
    check(life)


def test_no_agent_describes_people_invites_who_is_here_or_sends_them_away() -> None:
    world, life = thread(outside=("rex",))
    say(world, life, "hi", "user:eve")
    steer(world, life, {"invite": "user:ann"})
    for who in ("user", "user:eve", "user:ann", "user:new"):
        told = by_rex(world, invited(who, nickname="Mallory", roles=["idiot"]))
        assert isinstance(world.refused(life, told), Forbidden)
        told = by_rex(world, {"uninvite": {"participant_id": who}})
        assert isinstance(world.refused(life, told), Forbidden)
    for who in ("user", "user:eve"):
        assert world.take(life, by_rex(world, {"invite": who})) == []
    world.take(life, by_rex(world, {"invite": "user:new"}))
    assert set(joined_members(talk_of(life))) == {"host:rex", "user:ann", "user:new"}
    check(life)


def turn_event(life: Life, text: str) -> Event:
    found = life.told("conversation.exchanged")
    return next(event for event in found if payload_json(event)["turn"]["content"] == text)


# -- how much ------------------------------------------------------------------------------------


def test_one_agent_brings_few_others_and_makes_no_thread_large() -> None:
    world, life = thread("ada", outside=("rex",))
    for number in range(MAX_BROUGHT_ALONG):
        world.take(life, by_rex(world, invited(f"x{number}")))
    refusal = world.refused(life, by_rex(world, invited("more")))
    assert isinstance(refusal, RosterFull)
    assert len(led_members(talk_of(life))) == 6
    assert current_mode(talk_of(life), floor_of(life)) == "small"
    say(world, life, "anyone?")
    assert woken(life) == ["ada"]
    steer(world, life, invited("by-a-person"))
    for number in range(2):
        say(world, life, "Here I am.", f"x{number}")
    assert current_mode(talk_of(life), floor_of(life)) == "large", "these have spoken"
    world.take(life, by_rex(world, invited("rex", model="m")))
    check(life)


def test_what_is_known_of_somebody_has_a_bound() -> None:
    world, life = thread(outside=("rex",))
    large = invited("rex", note="x" * MAX_PROFILE_BYTES)
    assert isinstance(world.refused(life, control(world, large)), BadRequest)
    for number in range(2):
        steer(world, life, invited("rex", **{f"k{number}": "x" * (MAX_PROFILE_BYTES // 3)}))
    third = invited("rex", k3="x" * (MAX_PROFILE_BYTES // 3))
    assert isinstance(world.refused(life, control(world, third)), BadRequest)
    steer(world, life, invited("rex", k1="x"))
    check(life)


@pytest.mark.parametrize("content", ["x" * MAX_CONTROL_BYTES, {"buy": "x" * MAX_CONTROL_BYTES}])
def test_a_control_of_an_agent_that_is_none_is_short(content: Any) -> None:
    world, life = thread(outside=("rex",))
    assert isinstance(world.refused(life, by_rex(world, content)), BodyTooLarge)
