"""A person puts a decision to the vote, and somebody joins or leaves while others talk."""

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from moot.core.errors import BadRequest, Forbidden, ThreadPaused
from moot.core.state.participants import led_members
from moot.core.threads.decide import Control
from moot.core.verify.walk import verify
from tests.core.councils.test_next_speaker import council, end, floor_of, speakers, talk_on, woken
from tests.support.core.replays import check_same, retold
from tests.support.core.simulator import ADA, TENANT, Life, World, compiled, definition, node
from tests.support.event_payloads import payload_json

VOTERS = ["host:ada", "host:bo", "host:cy"]


def steer(world: World, life: Life, **content: Any) -> None:
    world.take(life, Control(node_id="convo", content=content, who=ADA, at=world.at))


def test_everybody_votes_on_what_a_person_proposes_and_it_is_closed_in_his_name() -> None:
    world, life = council({"rounds": 2}, members=3)
    end(world, life)
    steer(world, life, vote={"decision": "Pilot first.", "close": True})
    assert woken(life) == [("host:bo", "speak")]  # who speaks may finish
    end(world, life)
    assert woken(life) == [(name, "vote") for name in VOTERS]
    end(world, life, "answered", answer={"vote": "yes"})
    end(world, life, "answered", answer={"vote": "no", "reason": "Too early."})
    end(world, life, "failed")
    closed = payload_json(life.told("conversation.closed")[0])
    assert closed["outcome"] == {
        "text": "Pilot first.",
        "votes": [
            {"by": "host:ada", "vote": "yes"},
            {"by": "host:bo", "vote": "no", "reason": "Too early."},
            {"by": "host:cy", "vote": "abstain"},
        ],
        "dissent": [{"by": "host:bo", "text": "Too early."}],
    }
    assert closed["finalTurn"]["content"] == "user:ada closed the conversation."


def test_a_moderator_that_is_outvoted_says_so_and_a_person_decides_all_the_same() -> None:
    for closer, text in (("moderator", "Not adopted: We ship."), ("person", "We ship.")):
        policy = {"rounds": 1, "moderator": "host:mo", "vote": True, "close": closer}
        world, life = council(policy)
        while woken(life)[0][1] != "vote":
            end(world, life, answer={"decision": "We ship."})
        if closer == "person":
            steer(world, life, vote={"close": True})
        for vote in ("no", "yes", "no"):
            end(world, life, "answered", answer={"vote": vote})
        closed = payload_json(life.told("conversation.closed")[0])
        assert closed["outcome"]["text"] == text
        assert len(closed["outcome"]["dissent"]) == 2


@pytest.mark.parametrize(
    ("votes", "text"),
    [
        (["abstain", "abstain", "abstain"], "Not adopted: We ship."),
        (["yes", "no", "abstain"], "Not adopted: We ship."),
        (["yes", "abstain", "abstain"], "We ship."),
    ],
)
def test_a_vote_needs_more_ayes_than_noes(votes: list[str], text: str) -> None:
    policy = {"rounds": 1, "moderator": "host:mo", "vote": True, "close": "moderator"}
    world, life = council(policy)
    while woken(life)[0][1] != "vote":
        end(world, life, answer={"decision": "We ship."})
    for vote in votes:
        end(world, life, "answered", answer={"vote": vote})
    closed = payload_json(life.told("conversation.closed")[0])
    assert closed["outcome"]["text"] == text
    assert closed["outcome"].get("adopted", True) is (text == "We ship.")
    assert closed["finalTurn"]["content"] == (f"Decided: {text}" if text == "We ship." else text)


def test_a_muted_member_does_not_vote() -> None:
    world, life = council({"rounds": 1}, members=3)
    steer(world, life, mute=["host:bo"])
    steer(world, life, vote={"decision": "Pilot first.", "close": True})
    talk_on(world, life)
    outcome = payload_json(life.told("conversation.closed")[0])["outcome"]
    assert [vote["by"] for vote in outcome["votes"]] == ["host:ada", "host:cy"]


def test_a_vote_that_is_not_to_close_leaves_that_to_a_person() -> None:
    world, life = council({"rounds": 1}, members=3)
    steer(world, life, vote={"decision": "Pilot first."})
    talk_on(world, life)
    floor = floor_of(life)
    assert (floor.phase, floor.proposal, set(floor.votes)) == ("over", "Pilot first.", set(VOTERS))
    assert life.run.conversations["convo"].open
    assert woken(life) == []


def test_a_vote_under_way_counts_for_the_newest_proposal_only() -> None:
    world, life = council({"rounds": 1, "vote": True, "moderator": "host:mo"})
    while woken(life)[0][1] != "vote":
        end(world, life, answer={"decision": "We ship."} if woken(life)[0][1] != "speak" else None)
    end(world, life, "answered", answer={"vote": "no"})
    steer(world, life, vote={"decision": "We wait.", "close": True})
    assert woken(life) == [(name, "vote") for name in VOTERS]
    assert floor_of(life).votes == {}
    talk_on(world, life)
    outcome = payload_json(life.told("conversation.closed")[0])["outcome"]
    assert [outcome["text"], *(vote["vote"] for vote in outcome["votes"])] == ["We wait."] + [
        "yes"
    ] * 3
    assert "citedTurns" not in outcome


def test_without_a_text_the_moderators_proposal_is_put_to_the_vote_and_cited() -> None:
    world, life = council({"rounds": 1, "moderator": "host:mo"})
    talk_on(world, life)
    assert floor_of(life).phase == "over"
    steer(world, life, vote={"close": True})
    talk_on(world, life)
    outcome = payload_json(life.told("conversation.closed")[0])["outcome"]
    assert outcome["text"] == "We ship."
    assert outcome["citedTurns"] == [4]


def test_a_vote_is_a_persons_word_to_go_on_past_a_limit() -> None:
    world, life = council({"rounds": 9, "limits": {"consecutive": 2}}, members=3)
    talk_on(world, life)
    assert floor_of(life).stopped == "consecutive"
    steer(world, life, vote={"decision": "Enough.", "close": True})
    talk_on(world, life)
    assert len(payload_json(life.told("conversation.closed")[0])["outcome"]["votes"]) == 3


def test_what_cannot_be_put_to_the_vote_is_refused_and_changes_nothing() -> None:
    world, life = council({"rounds": 1}, members=2)
    for said in ({}, {"decision": ""}, {"decision": 3}, {"decision": "x" * 20_001}):
        with pytest.raises(BadRequest):
            steer(world, life, vote=said)
    steer(world, life, pause=True)
    with pytest.raises(ThreadPaused):
        steer(world, life, vote={"decision": "Yes."})
    assert floor_of(life).phase == "talk"
    agent = Control(node_id="convo", content={"vote": {"decision": "Me."}}, who=ADA, at=world.at,
                    sender="host:bo")  # fmt: skip
    with pytest.raises(Forbidden):
        world.take(life, agent)


def test_who_is_invited_later_is_given_the_floor_and_who_leaves_is_not() -> None:
    gate = node("convo", "core.conversationGate", config={"prompt": "Ship?"})
    inputs = {"invited": [{"agentId": "host:ada"}], "participation": {"rounds": 2}}
    world = World()
    life = world.start(compiled(definition([gate])), inputs=inputs)
    steer(world, life, invite={"participant_id": "dee", "profile": {"role": "legal"}})
    assert led_members(life.run.conversations["convo"])["host:dee"].profile == {"role": "legal"}
    end(world, life)
    assert woken(life) == [("host:dee", "speak")]
    steer(world, life, uninvite="dee")
    assert woken(life) == [("host:ada", "speak")]
    talk_on(world, life)
    assert speakers(life) == ["ada", "ada"]
    assert verify(life.flow, TENANT, life.run.run_id, life.log) is None


def test_a_person_who_is_invited_is_not_waited_for() -> None:
    world, life = council({"rounds": 1}, members=2)
    steer(world, life, invite="user:eve")
    talk_on(world, life)
    assert speakers(life) == ["ada", "bo"]


@settings(deadline=None)
@given(st.lists(st.sampled_from(["end", "vote", "close", "continue", "say", "pause"]), max_size=25))
def test_however_often_a_vote_is_called_it_comes_to_rest_or_closes_once(moves: list[str]) -> None:
    world, life = council({"rounds": 2, "moderator": "host:mo", "vote": True})
    for move in moves:
        talk = life.run.conversations["convo"]
        if not talk.open:
            break
        match move:
            case "end" if floor_of(life).wakes:
                spoken = woken(life)[0][1] in ("speak", "synthesise")
                said = {"decision": "We ship.", "vote": "yes"}
                end(world, life, "spoke" if spoken else "answered", answer=said)
            case "vote" | "close" if not talk.state.paused:
                steer(world, life, vote={"decision": move, "close": move == "close"})
            case "continue":
                steer(world, life, **{"continue": True})
            case "say":
                world.answer(life, "convo", {"content": "@bo, and?"}, ADA)
            case "pause":
                steer(world, life, pause={"on": not talk.state.paused})
    if life.run.conversations["convo"].open:
        steer(world, life, pause=False)
        talk_on(world, life)
    assert len(life.told("conversation.closed")) <= 1
    floor = floor_of(life)
    assert not floor.wakes
    assert verify(life.flow, TENANT, life.run.run_id, life.log) is None
    check_same(life, retold(life))
    if not life.run.conversations["convo"].open:
        assert (
            payload_json(life.told("conversation.closed")[0])["outcome"]["text"] == floor.proposal
        )
