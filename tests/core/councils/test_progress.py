"""Led conversations get on or rest: nothing is decided that changes nothing, whoever comes."""

from itertools import pairwise
from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given

from moot.agents.models.retry import RetryLimits
from moot.core.commands import TimePassed
from moot.core.councils.decide import InvitationReport
from moot.core.councils.limits import remaining_budget
from moot.core.events import new_event
from moot.core.state.conversation import Conversation
from moot.core.state.council_policy import Bounds, describe_unused_settings
from moot.core.state.participants import led_members
from moot.core.state.run import Run, apply
from tests.core.councils.test_next_speaker import (
    MEMBERS,
    MODES,
    answers,
    call_models,
    council,
    effect,
    end,
    floor_of,
    policies,
    speakers,
    talk_on,
    woken,
)
from tests.support.core.council_story import meaningful
from tests.support.core.random_flows import examples
from tests.support.core.simulator import ADA, Life, World, compiled, definition, node
from tests.support.event_payloads import payload_json


def gathering(policy: dict[str, Any], members: int) -> tuple[World, Life]:
    """A conversation into which anybody may be invited, and sent away again."""
    config = {"prompt": "Ship?", "participation": policy}
    world = World()
    flow = compiled(definition([node("convo", "core.conversationGate", config=config)]))
    invited = [{"agentId": name} for name in MEMBERS[:members]]
    return world, world.start(flow, inputs={"invited": invited})


def _stand(talk: Conversation) -> bytes:
    return msgspec.json.encode((talk.floor, talk.state))


def check_progress(life: Life) -> None:
    """Read again from the log: after each decision something is other than before it."""
    run = Run(life.run.run_id, tenant=life.run.tenant)
    for event in life.log:
        talk = run.conversations.get("convo")
        before = _stand(talk) if talk is not None else b""
        apply(run, event)
        if event.type == "moot.participation.decided":
            assert _stand(run.conversations["convo"]) != before, payload_json(event)


happenings = st.lists(
    st.one_of(
        st.tuples(st.just("end"), st.sampled_from(["spoke", "answered", "failed"]), answers),
        st.tuples(st.just("invite"), st.sampled_from([*MEMBERS, "user:sam"]), st.none()),
        st.tuples(st.just("uninvite"), st.sampled_from(MEMBERS), st.none()),
        st.tuples(st.just("mute"), st.just([MEMBERS[1]]), st.none()),
        st.tuples(st.just("prod"), st.sampled_from([["host:bo"], ["host:nobody"]]), st.none()),
        st.tuples(st.just("say"), st.sampled_from(["hm", "@ada?"]), st.none()),
        st.tuples(st.just("continue"), st.just(True), st.none()),
        st.tuples(
            st.just("participation"), st.fixed_dictionaries({"mode": st.sampled_from(MODES)}),
            st.none(),
        ),
    ),
    max_size=25,
)  # fmt: skip


@examples(150)
@given(policies, st.integers(0, 4), happenings)
def test_every_decision_makes_progress_whoever_joins_and_leaves(
    policy: dict[str, Any], members: int, story: list[Any]
) -> None:
    world, life = gathering(policy, members)
    for kind, what, answer in story:
        if not life.run.going:
            break
        before = len(life.log)
        if kind == "end":
            if floor_of(life).wakes:
                end(world, life, what, answer=answer)
        elif kind == "say":
            world.answer(life, "convo", {"content": what}, ADA)
        else:
            world.refused(life, world.controlling({kind: what}))
        assert len(life.log) - before < 100
        members = led_members(life.run.conversations["convo"])
        assert not any(name.startswith("user") for name in members)
        assert all(wake.agent in members for wake in floor_of(life).wakes.values())
    check_progress(life)


@pytest.mark.parametrize("mode", MODES)
def test_a_conversation_of_nobody_rests_and_goes_on_with_the_first_who_comes(mode: str) -> None:
    world, life = gathering(meaningful({"mode": mode, "rounds": 1}), members=0)
    assert len(life.log) < 20 and woken(life) == []
    world.control(life, {"invite": "host:ada"})
    if mode not in ("addressed", "large", "small", "auto"):  # there he must be meant
        assert [agent for agent, _ in woken(life)] == ["host:ada"]
    world.control(life, {"uninvite": "host:ada"})
    assert woken(life) == [] and len(life.log) < 20


def test_a_call_counts_when_it_begins_though_its_member_is_passed_over() -> None:
    world, life = council({"limits": {"calls": 1, "silence": 10}}, members=3)
    call_models(world, life)
    assert floor_of(life).spent.calls == 1
    world.pass_time(10_000)
    world.take(life, TimePassed(world.at))
    assert payload_json(life.told("moot.participation.stopped")[-1])["reason"] == "calls"
    assert woken(life) == []


def test_a_call_that_is_told_of_twice_counts_once() -> None:
    world, life = council({}, members=2)
    wake_id = next(iter(floor_of(life).wakes))
    result = {"usage": {"inputTokens": 10, "outputTokens": 5}, "cost": 0.5}
    told = (effect(life, wake_id), effect(life, wake_id, "finished", result=result))
    world.take(life, InvitationReport("convo", wake_id, told, world.at))
    usage = {"calls": 2, "inputTokens": 12, "outputTokens": 5, "cost": 0.75}
    end(world, life, usage=usage)
    spent = floor_of(life).spent
    assert (spent.calls, spent.tokens, spent.money) == (2, 17, 0.75)


def test_what_a_broken_off_call_has_used_up_is_counted_once_it_is_told() -> None:
    world, life = council({"limits": {"silence": 10}}, members=2)
    wake_id = next(iter(floor_of(life).wakes))
    call_models(world, life)
    world.pass_time(10_000)
    world.take(life, TimePassed(world.at))
    known = {"usage": {"inputTokens": 40, "outputTokens": 2}}
    told = InvitationReport(
        "convo", wake_id, (effect(life, wake_id, "abandoned", result=known),), world.at
    )
    world.take(life, told)
    assert floor_of(life).spent.tokens == 42
    assert world.take(life, told) == [], "nobody pays twice"


def test_those_who_have_the_floor_at_once_share_calls_tokens_and_money() -> None:
    limits = {"calls": 40, "tokens": 40_000, "money": 4.0, "agentCalls": 1000}
    world, life = council({"blind": True, "limits": limits}, members=4)
    assert woken(life) == [("host:ada", "speak")], "what a call costs is not known yet"
    end(world, life, usage={"calls": 1, "inputTokens": 100, "cost": 0.1})
    assert len(woken(life)) == 3
    may = remaining_budget(floor_of(life), "host:bo")
    assert (may.calls, may.tokens) == (13, 13_300) and may.money == pytest.approx(1.3)


def test_fewer_are_woken_at_once_where_not_all_could_make_a_call() -> None:
    world, life = council({"blind": True, "limits": {"tokens": 2500}}, members=4)
    assert len(woken(life)) == 2
    for _ in range(2):
        end(world, life, usage={"calls": 1, "inputTokens": 100})
    assert len(woken(life)) == 2 and len(speakers(life)) == 2


def test_a_limit_that_is_reached_is_told_though_nobody_answered() -> None:
    world, life = council({"blind": True, "limits": {"tokens": 150}}, members=2)
    for _ in range(2):
        end(world, life, "failed", usage={"calls": 1, "inputTokens": 100})
    assert payload_json(life.told("moot.participation.stopped")[-1])["reason"] == "tokens"
    world.control(life, {"continue": True})
    assert woken(life) == [("host:ada", "speak")], "who could not answer is asked again"


def test_a_member_that_was_heard_meanwhile_is_not_passed_over_and_one_that_fell_silent_is() -> None:
    world, life = council({"blind": True, "limits": {"silence": 30}}, members=2)
    ada, bo = floor_of(life).wakes
    world.pass_time(30_000)
    world.take(life, TimePassed(world.at, heard={ada: 4_000, bo: 30_000}))
    [heard] = life.told("moot.participation.heard")
    assert payload_json(heard)["agentId"] == "host:ada"
    assert woken(life) == [("host:ada", "speak")]
    assert floor_of(life).wakes[ada].due == world.at + 26_000
    world.pass_time(26_000)
    world.take(life, TimePassed(world.at, heard={ada: 30_000}))
    assert (
        "Ada was silent" in payload_json(life.told("conversation.exchanged")[-2])["turn"]["content"]
    )


def test_a_call_and_another_attempt_are_signs_of_life() -> None:
    world, life = council({"limits": {"silence": 30}}, members=2)
    wake_id = next(iter(floor_of(life).wakes))
    told = {"invocationId": f"run0:convo:{wake_id}", "agentId": "host:ada", "attempt": 1}
    for event in (effect(life, wake_id), new_event("moot.model.retried", told, "convo")):
        world.pass_time(20_000)
        world.take(life, InvitationReport("convo", wake_id, (event,), world.at))
        world.take(life, TimePassed(world.at))
    assert woken(life) == [("host:ada", "speak")]
    assert floor_of(life).spent.calls == 2


def test_by_default_nobody_is_silent_before_a_model_has_used_up_its_time() -> None:
    assert Bounds().silence > RetryLimits().total_s


@pytest.mark.parametrize("mode", ["round-robin", "raise-hand", "moderated"])
@pytest.mark.parametrize("outcome", ["failed", "refused", "silent"])
def test_when_nobody_could_answer_there_is_no_consensus_and_nothing_to_sum_up(
    mode: str, outcome: str
) -> None:
    policy = {"mode": mode, "moderator": "host:cy", "rounds": 1, "limits": {"silence": 10}}
    world, life = council(policy, members=3)
    for _ in range(20):
        if not floor_of(life).wakes:
            break
        if outcome == "silent":
            world.pass_time(10_000)
            world.take(life, TimePassed(world.at))
        else:
            end(world, life, outcome)
    stopped = [payload_json(event)["reason"] for event in life.told("moot.participation.stopped")]
    assert stopped == ["nobody-answered"] and floor_of(life).phase == "talk"
    assert "/continue" in payload_json(life.told("conversation.exchanged")[-1])["turn"]["content"]
    world.control(life, {"continue": True})
    assert woken(life), "who could not answer is asked again"
    talk_on(world, life)
    assert floor_of(life).proposal == "We ship."


def test_those_who_pass_agree_whatever_became_of_the_others() -> None:
    world, life = council({"rounds": 3}, members=2)
    end(world, life, "passed")
    end(world, life, "failed")
    assert payload_json(life.told("moot.participation.stopped")[-1])["reason"] == "consensus"


def test_a_synthesis_that_failed_is_tried_again_by_whoever_lets_it_go_on() -> None:
    world, life = council({"rounds": 1, "moderator": "host:cy", "close": "moderator"}, members=3)
    for _ in range(2):
        end(world, life)
    end(world, life, "failed", error={"code": "model_unavailable", "message": "nobody is there"})
    assert payload_json(life.told("moot.participation.stopped")[-1])["reason"] == "synthesis"
    assert woken(life) == [] and life.run.going
    world.control(life, {"continue": True})
    assert woken(life) == [("host:cy", "synthesise")]
    end(world, life, answer={"decision": "We ship."})
    assert life.run.status == "completed"


def test_a_limit_before_the_synthesis_adds_no_round_when_it_goes_on() -> None:
    policy = {"rounds": 1, "moderator": "host:cy", "limits": {"consecutive": 2}}
    world, life = council(policy, members=3)
    for _ in range(2):
        end(world, life)
    assert floor_of(life).stopped == "consecutive"
    world.control(life, {"continue": True})
    assert woken(life) == [("host:cy", "synthesise")]


def test_another_policy_settles_what_the_one_before_had_come_to() -> None:
    policy = {"rounds": 1, "moderator": "host:cy", "limits": {"consecutive": 2}}
    world, life = council(policy, members=3)
    for _ in range(2):
        end(world, life)
    world.control(life, {"participation": {"mode": "round-robin"}})
    world.answer(life, "convo", {"content": "And now?"}, ADA)
    assert life.run.going and floor_of(life).phase == "over"
    world.control(life, {"participation": {"mode": "declared"}})
    assert woken(life) == []
    world.answer(life, "convo", {"content": "All of you?"}, ADA)
    talk_on(world, life)
    assert speakers(life)[-4:] == ["user:ada", "ada", "bo", "cy"]


def test_choices_that_are_none_follow_the_declared_order_round_after_round() -> None:
    policy = {"mode": "moderated", "moderator": "host:mo", "rounds": 3}
    world, life = council(policy)
    for _ in range(18):
        choice = {"next": "host:nobody"} if woken(life)[0][1] == "choose" else None
        end(world, life, "answered" if choice else "spoke", answer=choice)
    assert speakers(life) == ["ada", "bo", "cy"] * 3


def test_people_are_no_members_whoever_begins_to_lead() -> None:
    world, life = gathering({"mode": "large"}, members=2)
    world.control(life, {"invite": "user:sam"})
    world.control(life, {"participation": {"mode": "round-robin"}})
    assert list(led_members(life.run.conversations["convo"])) == ["host:ada", "host:bo"]
    talk_on(world, life)
    assert not any(name.startswith("user") for name in speakers(life))


@examples(60)
@given(st.integers(2, 5), st.integers(1, 40), st.integers(0, 3))
def test_what_is_summed_up_follows_on_and_is_never_more_than_one_can_be_told(
    window: int, late: int, failing: int
) -> None:
    """Also where the summary is asked for late, when much more has been said."""
    policy = {"mode": "declared", "window": window, "limits": {"consecutive": 900}}
    world, life = council(policy, members=2)
    talk_on(world, life)
    for _ in range(late):
        world.answer(life, "convo", {"content": "More.", "meta": {"note": True}}, ADA)
    world.control(life, {"participation": {**policy, "summarise": "host:bo"}})
    for _ in range(8):
        world.answer(life, "convo", {"content": "And?"}, ADA)
        while floor_of(life).wakes:
            end(world, life, "failed" if failing and woken(life)[0][1] == "summarise" else "spoke")
    wakes = [w for e in life.told("moot.participation.decided") for w in payload_json(e)["wakes"]]
    spans = [wake["of"] for wake in wakes if "of" in wake]
    assert spans and spans[0][0] == 1
    for (_, until), (first, _) in pairwise(spans):
        assert first == until + 1
    assert all(0 <= until - first < 200 for first, until in spans)


@pytest.mark.parametrize("mode", ["declared", "addressed", "small", "large"])
def test_what_a_mode_has_no_use_for_is_refused_with_the_way_out(mode: str) -> None:
    for asked in ({"rounds": 2}, {"moderator": "host:ada"}, {"vote": True}, {"blind": True}):
        assert "round-robin" in str(describe_unused_settings({"mode": mode, **asked}))
    assert (
        describe_unused_settings({"mode": mode, "vote": False, "close": "person", "window": 9})
        is None
    )
    assert describe_unused_settings({"mode": "moderated", "rounds": 2, "vote": True}) is None


def test_a_paused_conversation_wakes_nobody_and_a_prod_wakes_once() -> None:
    world, life = council({"mode": "large"})
    world.control(life, {"pause": True})
    world.control(life, {"prod": ["host:bo"]})
    assert woken(life) == []
    world.control(life, {"pause": False})
    assert woken(life) == [("host:bo", "speak")]
    end(world, life, "failed")
    assert woken(life) == []


def test_a_note_wakes_nobody() -> None:
    world, life = council({"mode": "declared"}, members=2)
    talk_on(world, life)
    world.answer(life, "convo", {"content": "@ada for the record", "meta": {"note": True}}, ADA)
    assert woken(life) == []


def test_of_a_member_that_is_given_the_floor_nothing_is_said_that_it_has_not_said() -> None:
    _, life = council({"mode": "large"}, agentId="host:ada")
    opening = payload_json(life.told("conversation.opened")[0])["initialTurn"]
    assert opening["role"] != "agent" and opening["from"] != "host:ada"
