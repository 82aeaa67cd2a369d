"""Controls of a conversation: who may, what they do, what is kept and ignored (N.1, N.2)."""

from typing import Any

import pytest

from moot.core.conversations.participants import MOST_PARTICIPANTS
from moot.core.errors import (
    BadRequest,
    Forbidden,
    InterruptNotFound,
    NotYourName,
    ParticipantMuted,
    RosterClosed,
    RosterFull,
    ThreadPaused,
)
from moot.core.payloads.conversations import ThreadControlled
from moot.core.state.control_content import MOST_NAMES, MOST_TARGETS, parse_control
from moot.core.state.participants import joined_members
from moot.core.state.thread_controls import ThreadControls, apply_control
from moot.core.threads.control_checks import control_problems
from tests.support.core.gates import caused_by, council, said, say, short
from tests.support.core.simulator import ADA, BOT, CHAIR, Life
from tests.support.event_payloads import payload_json


def control(sender: str, content: Any) -> ThreadControlled:
    return ThreadControlled(conversation_id="c", from_=sender, content=content)


def thread(life: Life) -> ThreadControls:
    return life.run.conversations["convo"].state


def test_a_control_is_recorded_as_it_came_with_its_sender() -> None:
    world, life = council()
    found = world.control(life, {"pause": {"on": True}, "note": "kept"}, ADA)
    assert short(found) == ["moot.thread.control"]
    assert payload_json(found[0]) == {
        "conversationId": life.run.conversations["convo"].conversation_id, "from": "user:ada",
        "content": {"pause": {"on": True}, "note": "kept"}, "via": "key_ada",
    }  # fmt: skip
    assert caused_by(life, found[0]).type == "conversation.opened"
    assert thread(life).paused


# -- mute, pause, prod, done ---------------------------------------------------------------------


@pytest.mark.parametrize("spelling", [["host:cfo"], {"targets": ["host:cfo"], "mode": "hard"}])
def test_a_muted_member_is_refused_until_unmuted(spelling: Any) -> None:
    world, life = council()
    world.control(life, {"mute": spelling})
    refusal = world.refused(life, world.answering("convo", said("host:cfo")))
    assert isinstance(refusal, ParticipantMuted)
    assert refusal.details["participant"] == "host:cfo"
    say(world, life, "host:cto")
    world.control(life, {"unmute": spelling})
    say(world, life, "host:cfo")


def test_mutes_add_up_and_a_mute_may_end_by_itself() -> None:
    world, life = council()
    world.control(life, {"mute": ["host:cfo"]})
    world.control(life, {"mute": {"targets": ["host:cto"], "seconds": 2}})
    assert set(thread(life).muted) == {"host:cfo", "host:cto"}
    world.pass_time(2001)
    say(world, life, "host:cto")
    assert world.refused(life, world.answering("convo", said("host:cfo"))) is not None


def test_an_agent_with_a_short_name_is_steered_by_it_too() -> None:
    """A short name means an agent of this host, whoever spells it so."""
    world, life = council(roster=False)
    world.control(life, {"invite": "codex"})
    say(world, life, "codex")
    world.control(life, {"done": True}, CHAIR, "codex")
    assert thread(life).done == ["host:codex"]
    world.control(life, {"prod": ["codex"]})
    assert thread(life).done == [] and thread(life).prodded == ["host:codex"]
    say(world, life, "codex")
    assert thread(life).prodded == []
    world.control(life, {"mute": ["codex"]})
    refusal = world.refused(life, world.answering("convo", said("codex")))
    assert isinstance(refusal, ParticipantMuted)
    world.control(life, {"unmute": ["host:codex"]})
    say(world, life, "codex")


@pytest.mark.parametrize("on", [True, {"on": True}, {}])
@pytest.mark.parametrize("off", [False, {"on": False}])
def test_while_paused_only_people_speak(on: Any, off: Any) -> None:
    world, life = council()
    world.control(life, {"pause": on})
    refusal = world.refused(life, world.answering("convo", said("host:cfo")))
    assert isinstance(refusal, ThreadPaused)
    say(world, life, "user")
    world.control(life, {"pause": off})
    say(world, life, "host:cfo")


def test_a_prod_is_answered_by_speaking() -> None:
    world, life = council()
    world.control(life, {"prod": ["host:cfo", "host:cto"]})
    world.control(life, {"prod": ["host:cfo"]})
    assert thread(life).prodded == ["host:cfo", "host:cto"]
    say(world, life, "host:cfo")
    assert thread(life).prodded == ["host:cto"]


def test_who_is_done_is_not_when_prodded_or_speaking() -> None:
    world, life = council(roster=False)
    for _ in range(2):
        world.control(life, {"done": True}, BOT, "host:bot")
    assert thread(life).done == ["host:bot"]
    world.control(life, {"prod": ["host:bot"]})
    assert thread(life).done == []
    world.control(life, {"done": True}, BOT, "host:bot")
    say(world, life, "host:bot")
    assert thread(life).done == [] and thread(life).prodded == []


@pytest.mark.parametrize(
    ("value", "on", "mentions"),
    [
        (True, True, True), (False, False, False), ({"on": True}, True, True),
        ({"on": True, "allow_agent_mentions": False}, True, False),
        ({"on": False, "allow_agent_mentions": True}, False, True), ({}, True, True),
    ],
)  # fmt: skip
def test_a_missing_flag_of_a_discussion_is_as_the_discussion(
    value: Any, on: bool, mentions: bool
) -> None:
    world, life = council()
    world.control(life, {"discussion": value})
    assert (thread(life).discussion, thread(life).allow_agent_mentions) == (on, mentions)


def test_a_runway_counts_from_its_own_event() -> None:
    world, life = council()
    world.pass_time(500)
    world.control(life, {"ttl_seconds": 600, "invited_auto": {"on": True}})
    assert thread(life).ttl_until == world.at + 600_000
    assert thread(life).invited_auto


@pytest.mark.parametrize(
    "content",
    [
        {"mute": 5}, {"mute": ""}, {"mute": [""]}, {"mute": None}, {"mute": [1, None, {}]},
        {"unmute": {"targets": 1}}, {"mute": "host:cfo"}, {"mute": {"targets": "host:cfo"}},
        {"prod": "host:cfo"},
        {"prod": {"who": "x"}}, {"ttl_seconds": -1}, {"ttl_seconds": True}, {"ttl_seconds": "10"},
        {"ttl_seconds": 1e308}, {"ttl_seconds": 10**40}, {"ttl_seconds": 0}, {"pause": "yes"},
        {"pause": 1}, {"pause": None}, {"pause": {"on": "no"}}, {"pause": ["on"]},
        {"done": "true"}, {"done": False}, {"done": None}, {"done": 1}, {"discussion": "on"},
        {"discussion": {"on": 1}}, {"invited_auto": []}, {"invited_auto": None},
    ],
)  # fmt: skip
def test_what_a_control_says_wrongly_is_kept_and_ignored(content: Any) -> None:
    world, life = council()
    found = world.control(life, content)
    assert payload_json(found[0])["content"] == content
    assert thread(life) == ThreadControls()


@pytest.mark.parametrize(
    ("said", "seconds"),
    [("90s", 90), ("10m", 600), ("2h", 7200), ("1d", 86_400), ("10 m", 600), (600, 600)],
)
def test_a_mute_says_its_time_in_words_as_well(said: Any, seconds: int) -> None:
    for content in (
        {"mute": ["host:cfo"], "for": said},
        {"mute": {"targets": ["host:cfo"], "for": said}},
    ):
        world, life = council()
        world.control(life, content)
        assert thread(life).muted == {"host:cfo": world.at + seconds * 1000}


def test_a_mute_for_no_time_that_can_be_counted_is_none() -> None:
    world, life = council()
    for words in ("", "10", "ten minutes", "-5m", "10y", "1e3s", None, True, [], "9" * 12 + "s"):
        for content in (
            {"mute": ["host:cfo"], "for": words},
            {"mute": {"targets": ["host:cfo"], "for": words}},
        ):
            world.control(life, content)
            assert thread(life).muted == {}
    for seconds in (1e308, 10**40, -1, 0, "x", True, None):
        world.control(life, {"mute": ["host:cfo"], "seconds": seconds})
        world.control(life, {"mute": {"targets": ["host:cfo"], "seconds": seconds}})
        assert thread(life).muted == {}


def test_the_seconds_of_a_mute_may_stand_beside_it() -> None:
    world, life = council()
    content = {"mute": ["host:cfo"], "seconds": 600}
    assert control_problems(parse_control(content)) == {}
    world.control(life, content)
    assert thread(life).muted == {"host:cfo": world.at + 600_000}


def test_names_without_end_are_refused_and_a_state_holds_so_many() -> None:
    world, life = council()
    many = [f"host:a{number}" for number in range(MOST_TARGETS + 1)]
    assert isinstance(world.refused(life, world.controlling({"prod": many})), BadRequest)
    state = ThreadControls()
    long = ["x" * 257, "y" * 900_000]
    apply_control(state, control("user", {"prod": long, "mute": long}), 0)
    assert state == ThreadControls() and control_problems({"mute": long}), "nobody has such a name"
    for _ in range(10):
        apply_control(state, control("user", {"prod": many[1:], "mute": many[1:]}), 0)
    assert state.prodded and len(state.prodded) <= MOST_NAMES and len(state.muted) <= MOST_NAMES


@pytest.mark.parametrize(
    "content", ['{"pause": true}', '{"mute": ["host:cfo"], "ttl_seconds": 1e308}']
)
def test_a_control_that_came_as_text_is_read_as_json(content: str) -> None:
    state = ThreadControls()
    apply_control(state, control("user", content), 0)
    assert (state.paused or state.muted) and state.ttl_until is None


@pytest.mark.parametrize("content", ["", "{", "[1]", "null", "[" * 100_000, 5, None, [], True])
def test_what_is_no_control_at_all_changes_nothing(content: Any) -> None:
    state = ThreadControls()
    apply_control(state, control("user", content), 0)
    assert state == ThreadControls()


LAX = ["NaN", "Infinity", "-Infinity", "1e999", '"\\ud800"', "[" * 80 + "]" * 80]


@pytest.mark.parametrize("odd", ["1", *LAX])
def test_no_text_of_an_agent_does_what_is_for_people(odd: str) -> None:
    """Whatever a log from elsewhere, or of an older version, holds."""
    words = '"mute": ["user:eve"], "unmute": ["codex"], "pause": true, "prod": ["ada"]'
    more = '"ttl_seconds": 5, "discussion": true, "invited_auto": true'
    state = ThreadControls(muted={"host:codex": 0})
    text = "{" + f'{words}, {more}, "x": {odd}' + "}"
    for content in (text, parse_control(text)):
        apply_control(state, control("host:codex", content), 0)
    assert state == ThreadControls(muted={"host:codex": 0})


@pytest.mark.parametrize("odd", LAX)
def test_a_text_is_read_alike_by_who_checks_it_and_who_acts_on_it(odd: str) -> None:
    text, state = '{"pause": true, "x": ' + odd + "}", ThreadControls()
    apply_control(state, control("user", text), 0)
    assert state.paused is isinstance(parse_control(text), dict)
    assert isinstance(parse_control(text), str), "it is no JSON, or too deep"


def test_a_control_acts_on_what_comes_after_it_only() -> None:
    world, life = council()
    say(world, life, "host:cfo")
    before = world.folded(life, 0)
    world.control(life, {"mute": ["host:cfo"]})
    assert before.conversations["convo"].state == ThreadControls()
    assert len(life.told("conversation.exchanged")) == 1


# -- who may -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "word", ["mute", "unmute", "pause", "prod", "ttl_seconds", "discussion", "invited_auto"]
)
def test_only_a_person_steers(word: str) -> None:
    world, life = council()
    for who in (BOT, CHAIR):
        command = world.controlling({word: ["host:cfo"], "done": True}, who, "host:bot")
        assert isinstance(world.refused(life, command), Forbidden)
    world.control(life, {word: ["host:cfo"]}, ADA)


def test_nobody_steers_in_anothers_name() -> None:
    world, life = council()
    for who, sender in ((BOT, "host:cfo"), (ADA, "user:bob"), (ADA, "user"), (BOT, "user:ada")):
        refusal = world.refused(life, world.controlling({"done": True}, who, sender))
        assert isinstance(refusal, NotYourName)


@pytest.mark.parametrize("content", [{}, {"dance": True}, {"Mute": ["host:cfo"]}])
def test_what_names_no_control_is_refused(content: Any) -> None:
    world, life = council()
    assert isinstance(world.refused(life, world.controlling(content)), BadRequest)


def test_there_is_nothing_to_steer_where_no_conversation_is() -> None:
    world, life = council()
    command = world.controlling({"pause": True}, node_id="elsewhere")
    assert isinstance(world.refused(life, command), InterruptNotFound)


# -- joining and leaving -------------------------------------------------------------------------


def test_an_invitation_is_a_join_from_the_next_turn_on() -> None:
    world, life = council(roster=False)
    say(world, life, "user")
    profile = {"client": "cli", "model": "m", "nickname": "C"}
    invite = {"participant_id": "host:cfo", "profile": profile}
    found = world.control(life, {"invite": invite, "pause": True}, ADA)
    assert short(found) == ["moot.participant.joined", "moot.thread.control"]
    assert payload_json(found[0]) == {
        "conversationId": life.run.conversations["convo"].conversation_id, "by": "user:ada",
        "participantId": "host:cfo", "profile": profile, "fromTurn": 2,
    }  # fmt: skip
    assert payload_json(found[1])["content"] == {"pause": True}
    member = joined_members(life.run.conversations["convo"])["host:cfo"]
    assert (member.profile, member.invited_by, member.from_turn) == (profile, "user:ada", 2)


def test_inviting_again_updates_the_profile_and_keeps_the_beginning() -> None:
    world, life = council(roster=False)
    world.control(life, {"invite": {"participant_id": "host:cfo", "profile": {"a": 1, "b": 1}}})
    first = joined_members(life.run.conversations["convo"])["host:cfo"].invited_at
    world.pass_time(100)
    say(world, life, "user")
    world.control(life, {"invite": {"participant_id": "host:cfo", "profile": {"b": 2}}})
    member = joined_members(life.run.conversations["convo"])["host:cfo"]
    assert member.profile == {"a": 1, "b": 2}
    assert (member.invited_at, member.from_turn) == (first, 1)


def test_leaving_is_recorded_once() -> None:
    world, life = council(roster=False)
    world.control(life, {"invite": "host:cfo"})
    world.control(life, {"invite": "host:cto"})
    found = world.control(life, {"uninvite": {"participant_id": "host:cfo"}})
    assert short(found) == ["moot.participant.left"]
    assert payload_json(found[0])["afterTurn"] == 0
    assert world.control(life, {"uninvite": {"participant_id": "host:cfo"}}) == []
    assert list(joined_members(life.run.conversations["convo"])) == ["host:cto"]


def test_a_closed_roster_takes_its_members_and_people_only() -> None:
    world, life = council()
    refusal = world.refused(life, world.controlling({"invite": "host:new", "pause": True}))
    assert isinstance(refusal, RosterClosed)
    assert refusal.details["participant"] == "host:new"
    world.control(life, {"invite": "host:cfo"})
    world.control(life, {"invite": "user:ada"})
    world.control(life, {"uninvite": "host:cfo"})
    say(world, life, "host:cfo")  # the wire's roster is fixed


def test_a_full_roster_takes_nobody_else() -> None:
    world, life = council(roster=False)
    for number in range(MOST_PARTICIPANTS):
        world.control(life, {"invite": f"host:{number}"})
    refusal = world.refused(life, world.controlling({"invite": "host:more"}))
    assert isinstance(refusal, RosterFull)
    assert refusal.details["maxParticipants"] == MOST_PARTICIPANTS
    world.control(life, {"invite": {"participant_id": "host:0", "profile": {"a": 1}}})
    world.control(life, {"uninvite": "host:0"})
    world.control(life, {"invite": "host:more"})


@pytest.mark.parametrize("word", ["invite", "uninvite"])
@pytest.mark.parametrize(
    "value", [None, "", [], ["host:cfo"], {}, {"participant_id": ["host:cfo"]}, 1, "x" * 257]
)
def test_joining_and_leaving_need_a_name(word: str, value: Any) -> None:
    world, life = council(roster=False)
    assert isinstance(world.refused(life, world.controlling({word: value})), BadRequest)
