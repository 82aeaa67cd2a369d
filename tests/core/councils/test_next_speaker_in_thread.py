"""Who is woken in a thread, and who is not: the rules of participation one by one."""

from typing import Any

import pytest

from moot.core.state.council_policy import THREAD_POLICY
from moot.core.state.floor import current_mode
from tests.support.core.simulator import Speaker
from tests.support.core.threads import (
    check,
    decisions,
    floor_of,
    named,
    say,
    speak,
    speak_all,
    steer,
    talk_of,
    thread,
    woken,
)  # fmt: skip
from tests.support.event_payloads import payload_json

LARGE = {**THREAD_POLICY, "mode": "large"}
FIVE = ("ada", "bo", "cy", "dee", "ed")


def test_an_id_is_meant_as_it_is_written_and_else_somebody_is_asked() -> None:
    world, life = thread("codex", "Codex", "ada")
    say(world, life, "@Codex?")
    assert speak_all(world, life) == ["Codex"]
    say(world, life, "@codex?")
    assert speak_all(world, life) == ["codex"]
    say(world, life, "@ADA?")
    assert speak_all(world, life) == ["ada"]
    say(world, life, "@CODEX?")
    assert woken(life) == [] and decisions(life)[-1]["unclear"] == {
        "codex": ["host:codex", "host:Codex"]
    }
    check(life)


# -- small and large -----------------------------------------------------------------------------


def test_in_a_small_thread_everybody_answers_what_a_person_says_to_all_once() -> None:
    world, life = thread("ada", "bo")
    assert woken(life) == [], "nobody has said anything yet"
    say(world, life, "Ideas?")
    assert speak_all(world, life) == ["ada", "bo"]
    say(world, life, "More?")
    assert speak_all(world, life) == ["ada", "bo"]
    check(life)


@pytest.mark.parametrize("mode", ["small", "declared"])
def test_who_is_at_an_answer_when_a_person_speaks_to_all_answers_that_as_well(mode: str) -> None:
    world, life = thread("ada", "bo", policy={**THREAD_POLICY, "mode": mode})
    say(world, life, "Ideas?")
    assert woken(life) == ["ada"]
    later = say(world, life, "And why?")[0].sequence
    speak(world, life, "To the first.")
    assert woken(life) == ["ada"], "what it said was no answer to the second"
    assert {wake.reply for wake in floor_of(life).wakes.values()} <= {later, None}
    assert speak_all(world, life) == ["ada", "bo"]
    check(life)


def test_who_is_interrupted_answers_all_that_was_said_at_once() -> None:
    world, life = thread("ada", "bo", policy={**THREAD_POLICY, "interject": "interrupt"})
    say(world, life, "Ideas?")
    say(world, life, "And why?")
    assert speak_all(world, life) == ["ada", "bo"]
    check(life)


def test_who_has_nothing_to_add_passes() -> None:
    world, life = thread("ada", "bo")
    say(world, life, "Ideas?")
    speak(world, life, outcome="passed")
    assert woken(life) == ["bo"]


def test_the_opening_question_is_for_all() -> None:
    world, life = thread("ada", "bo", opening="Do we?")
    assert speak_all(world, life) == ["ada", "bo"]


def test_in_a_large_thread_somebody_must_be_meant() -> None:
    world, life = thread("ada", "bo", policy=LARGE)
    say(world, life, "Ideas?")
    assert woken(life) == []
    say(world, life, "@bo, ideas?")
    assert speak_all(world, life) == ["bo"]
    say(world, life, "And you?", to="ada")
    assert speak_all(world, life) == ["ada"]
    steer(world, life, {"prod": ["bo"]})
    assert speak_all(world, life) == ["bo"]
    check(life)


def test_all_who_are_invited_answer_when_that_is_switched_on() -> None:
    world, life = thread("ada", "bo", policy=LARGE)
    steer(world, life, {"invited_auto": {"on": True}})
    say(world, life, "Ideas?")
    assert speak_all(world, life) == ["ada", "bo"]
    say(world, life, "Only you, @bo?")
    assert speak_all(world, life) == ["bo"]
    steer(world, life, {"invited_auto": {"on": False}})
    say(world, life, "Ideas?")
    assert woken(life) == []


def test_a_thread_becomes_large_with_its_fifth_agent_and_small_again() -> None:
    world, life = thread(*FIVE[:4])
    assert current_mode(talk_of(life), floor_of(life)) == "small"
    steer(world, life, {"invite": "ed"})
    assert current_mode(talk_of(life), floor_of(life)) == "large"
    say(world, life, "Ideas?")
    assert woken(life) == []
    steer(world, life, {"uninvite": "ed"})
    say(world, life, "Ideas?")
    assert speak_all(world, life) == list(FIVE[:4])
    steer(world, life, {"participation": {**THREAD_POLICY, "mode": "large"}})
    assert current_mode(talk_of(life), floor_of(life)) == "large", (
        "unless a person has said how it is"
    )
    check(life)


@pytest.mark.parametrize("opening", [None, "Ideas?"])
def test_who_speaks_to_all_of_a_thread_that_has_grown_large_is_told_once(
    opening: str | None,
) -> None:
    world, life = thread(*FIVE, opening=opening)
    for _ in range(2):
        say(world, life, "Everybody?")
        assert woken(life) == []
    turns = [
        payload_json(each)["turn"] for each in life.log if each.type == "conversation.exchanged"
    ]
    [told] = [turn for turn in turns if turn["role"] == "system"]
    assert told.get("to", "user") == "user"
    assert "such as @ada" in told["content"] and "moot thread auto " in told["content"]
    steer(world, life, {"invited_auto": {"on": True}})
    say(world, life, "Everybody?")
    assert speak_all(world, life) == list(FIVE)
    check(life)


def test_who_comes_later_is_not_meant_by_what_was_said_before() -> None:
    world, life = thread("ada")
    say(world, life, "Ideas?")
    speak_all(world, life)
    steer(world, life, {"invite": "bo"})
    assert woken(life) == []
    say(world, life, "Bo, too?")
    assert speak_all(world, life) == ["ada", "bo"]


def test_what_is_said_to_a_person_wakes_nobody() -> None:
    world, life = thread("ada", "bo")
    say(world, life, "Just for you, @ada.", to="user:eve")
    assert woken(life) == []


# -- mentions ------------------------------------------------------------------------------------

PROFILES = {
    "ada": {"nickname": "Countess", "role": "planner", "client": "codex", "model": "gpt"},
    "bo": {"nickname": "Bobby", "role": "builder", "client": "claude", "model": "opus"},
    "cy": {"nickname": "Bobby", "role": "builder", "client": "claude", "model": "opus"},
}


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("@ada?", ["ada"]), ("@ADA!", ["ada"]), ("hm, @host:ada.", ["ada"]), ("(@cy)", ["cy"]),
        ("@countess: yes", ["ada"]), ("@builder", ["bo", "cy"]), ("@claude", ["bo", "cy"]),
        ("@opus @ada", ["bo", "cy", "ada"]), ("mail ada@ada.org", []), ("@nobody", []),
        ("@cy and @ada", ["cy", "ada"]), ("@ada @ada", ["ada"]),
        ("`@ada`", []), ("say `@ada` to @cy", ["cy"]), ("> @ada said so\nand @cy?", ["cy"]),
        ("```\n@ada\n```\n@cy", ["cy"]), ("~~~ sh\n@ada", []), ("\\@ada", []),
        ("a > b, @cy", ["cy"]),
    ],
)  # fmt: skip
def test_a_mention_is_an_id_then_a_nickname_then_a_role(text: str, meant: list[str]) -> None:
    world, life = thread("ada", "bo", "cy", policy=LARGE, profiles=PROFILES)
    say(world, life, text)
    assert speak_all(world, life) == meant


def test_a_nickname_of_two_is_asked_back_and_wakes_nobody() -> None:
    world, life = thread("ada", "bo", "cy", profiles=PROFILES)
    say(world, life, "What does @Bobby think?", "user:eve")
    assert woken(life) == []
    turn = payload_json(life.told("conversation.exchanged")[-1])["turn"]
    assert (turn["role"], turn["to"]) == ("system", "user:eve")
    assert turn["content"] == "Whom do you mean by @bobby: @bo or @cy?"
    assert "user:eve" in talk_of(life).asked, "it waits for the person"
    say(world, life, "@cy of course", "user:eve")
    assert speak_all(world, life) == ["cy"] and talk_of(life).asked == {}
    say(world, life, "@Bobby and @ada", "user:eve")
    assert speak_all(world, life) == ["ada"], "who is clear is woken all the same"
    check(life)


def test_an_opening_that_could_mean_two_is_asked_back_as_every_other_turn_is() -> None:
    profiles = {"ada": {"nickname": "Ace"}, "bo": {"nickname": "Ace"}}
    world, life = thread("ada", "bo", "cy", profiles=profiles, opening="@ace, do we?")
    assert woken(life) == []
    assert decisions(life)[-1]["unclear"] == {"ace": ["host:ada", "host:bo"]}
    say(world, life, "@ada then.")
    assert speak_all(world, life) == ["ada"]
    check(life)


@pytest.mark.parametrize("word", ["all", "everyone", "HERE"])
def test_everybody_is_nobody_in_particular(word: str) -> None:
    world, life = thread("ada", "bo")
    say(world, life, f"@{word} wake up!")
    assert woken(life) == []
    text = payload_json(life.told("conversation.exchanged")[-1])["turn"]["content"]
    assert text.startswith(f"I wake nobody for @{word.lower()}; please name")
    check(life)


# -- agents among themselves ---------------------------------------------------------------------


def test_agents_wake_agents_by_name_only_in_a_discussion() -> None:
    world, life = thread("ada", "bo")
    say(world, life, "@ada?")
    speak(world, life, "@bo knows.")
    assert woken(life) == []
    steer(world, life, {"discussion": {"on": True}})
    say(world, life, "@ada?")
    speak(world, life, "@bo knows.")
    assert speak_all(world, life) == ["bo"]
    steer(world, life, {"discussion": {"on": True, "allow_agent_mentions": False}})
    say(world, life, "@ada?")
    speak(world, life, "@bo knows.")
    assert woken(life) == []
    check(life)


def test_an_agent_may_always_turn_to_one_other() -> None:
    world, life = thread("ada", outside=("rex",), policy=LARGE)
    say(world, life, "Look at this.", "rex", to="host:ada")
    assert speak_all(world, life) == ["ada"]


def test_nobody_wakes_himself() -> None:
    world, life = thread("ada", policy=LARGE)
    steer(world, life, {"discussion": True})
    say(world, life, "@ada?")
    speak(world, life, "@ada that is me, @ADA!")
    assert woken(life) == []
    say(world, life, "To myself.", "ada", to="host:ada")
    assert woken(life) == []


def test_a_loop_of_agents_is_stopped_until_a_person_speaks() -> None:
    limits = {"consecutive": 5, "pair": 100}
    world, life = thread("ada", "bo", policy={**THREAD_POLICY, "limits": limits})
    steer(world, life, {"discussion": True})
    say(world, life, "@ada go")
    for _ in range(5):
        speak(world, life, "@bo no, @ada yes")
    assert woken(life) == []
    stopped = payload_json(life.told("moot.participation.stopped")[-1])
    assert (stopped["reason"], stopped["limit"]) == ("consecutive", 5)
    assert "Stopped" in payload_json(life.told("conversation.exchanged")[-1])["turn"]["content"]
    say(world, life, "@bo calm down")
    assert woken(life) == ["bo"]
    assert THREAD_POLICY["limits"]["consecutive"] == 12
    check(life)


def test_two_agents_do_not_bounce_for_ever() -> None:
    world, life = thread("ada", "bo")
    steer(world, life, {"discussion": True})
    say(world, life, "@ada go")
    for _ in range(12):
        if not woken(life):
            break
        speak(world, life, "@bo" if woken(life) == ["ada"] else "@ada")
    assert payload_json(life.told("moot.participation.stopped")[-1])["reason"] == "pair"
    check(life)


# -- steering ------------------------------------------------------------------------------------


def test_while_paused_nobody_is_woken_and_what_was_said_is_answered_later() -> None:
    world, life = thread("ada")
    steer(world, life, {"pause": True})
    say(world, life, "Ideas?")
    assert woken(life) == []
    steer(world, life, {"pause": False})
    assert woken(life) == ["ada"]


def test_who_is_muted_is_passed_by_visibly() -> None:
    world, life = thread("ada", "bo")
    steer(world, life, {"mute": {"targets": ["ada"], "seconds": 60}})
    say(world, life, "Ideas?")
    assert woken(life) == ["bo"] and named(decisions(life)[-1], "skipped") == {"ada": "muted"}
    speak_all(world, life)
    world.pass_time(60_001)
    say(world, life, "Ideas?")
    assert speak_all(world, life) == ["ada", "bo"]
    check(life)


def test_who_is_done_is_woken_again_when_meant() -> None:
    world, life = thread("ada", "bo")
    steer(world, life, {"done": True}, Speaker("key_ada", ("host:ada",)), "host:ada")
    say(world, life, "Ideas?")
    assert speak_all(world, life) == ["bo"]
    say(world, life, "@ada?")
    assert speak_all(world, life) == ["ada"]
    say(world, life, "Ideas?")
    assert speak_all(world, life) == ["ada", "bo"], "who has spoken is not done"


def test_after_the_time_given_only_who_is_meant_alone_answers() -> None:
    world, life = thread("ada", "bo")
    steer(world, life, {"ttl_seconds": 60})
    say(world, life, "Ideas?")
    assert speak_all(world, life) == ["ada", "bo"]
    world.pass_time(60_001)
    say(world, life, "Ideas, @bo?")
    assert woken(life) == [] and named(decisions(life)[-1], "skipped") == {"bo": "ttl"}
    say(world, life, "Ideas?")
    assert woken(life) == [] and set(named(decisions(life)[-1], "skipped")) == {"ada", "bo"}
    say(world, life, "You?", to="ada")
    assert speak_all(world, life) == ["ada"]
    steer(world, life, {"prod": ["bo"]})
    assert speak_all(world, life) == ["bo"]
    steer(world, life, {"ttl_seconds": None})
    say(world, life, "Ideas?")
    assert speak_all(world, life) == ["ada", "bo"]
    check(life)


def test_a_control_changes_nothing_before_it() -> None:
    world, life = thread("ada", "bo")
    say(world, life, "Ideas?")
    speak_all(world, life)
    spoken = list(life.log)
    steer(world, life, {"mute": ["ada"]})
    steer(world, life, {"pause": True})
    assert life.log[: len(spoken)] == spoken
    assert speak_all(world, life) == []


# -- programs outside ----------------------------------------------------------------------------


def test_a_program_outside_is_called_and_not_waited_for() -> None:
    world, life = thread("ada", outside=("rex", "codex"))
    say(world, life, "Ideas?")
    assert woken(life) == ["ada"]
    assert named(decisions(life)[-1], "called") == {
        "rex": "a person spoke to all", "codex": "a person spoke to all",
    }  # fmt: skip
    say(world, life, "Here.", "rex")
    speak_all(world, life)
    assert len(decisions(life)) == 1, "its answer wakes nobody"
    check(life)


def test_a_program_is_called_while_somebody_speaks() -> None:
    world, life = thread("ada", outside=("rex",))
    say(world, life, "@ada?")
    assert woken(life) == ["ada"]
    say(world, life, "And you?", to="rex")
    assert woken(life) == ["ada"] and named(decisions(life)[-1], "called") == {
        "rex": "addressed by user"
    }
    check(life)


def test_a_reply_says_what_it_replies_to() -> None:
    world, life = thread("ada")
    [asked] = [e for e in say(world, life, "@ada?") if e.type == "conversation.exchanged"]
    [reply] = [e for e in speak(world, life) if e.type == "conversation.exchanged"]
    assert payload_json(reply)["turn"]["meta"]["replyTo"] == asked.sequence


def test_limits_count_anew_with_every_turn_of_a_person() -> None:
    limits = {"minutes": 1}
    policy: dict[str, Any] = {**THREAD_POLICY, "limits": limits}
    world, life = thread("ada", policy=policy)
    for _ in range(3):
        world.pass_time(3_600_000)
        say(world, life, "Ideas?")
        assert speak_all(world, life) == ["ada"]
    check(life)


def test_a_vote_waits_for_nobody_who_cannot_cast_one() -> None:
    world, life = thread("ada", outside=("rex", "dee"))
    steer(world, life, {"vote": {"decision": "Pizza", "close": True}})
    assert woken(life) == ["ada"]
    assert named(decisions(life)[-1], "skipped") == {"rex": "outside", "dee": "outside"}
    speak(world, life, outcome="failed")
    outcome = payload_json(life.told("conversation.closed")[-1])["outcome"]
    assert outcome["votes"] == [{"by": "host:ada", "vote": "abstain"}]
    check(life)
    world, life = thread(outside=("rex",))
    steer(world, life, {"vote": {"decision": "Pizza", "close": True}})
    assert life.run.status == "completed"
