"""What a council decided: every spelling, every refusal, kept as it was sent."""

from typing import Any

import pytest

from moot.core.conversations.closing_decision import (
    LONGEST_TEXT,
    MOST_ENTRIES,
    Action,
    CouncilDecision,
    Dissent,
    Vote,
    read_decision,
)
from moot.core.errors import BadRequest
from moot.core.state.status import Status
from tests.support.core.gates import council, say
from tests.support.event_payloads import payload_json

FULL = CouncilDecision(
    text="We ship in June.",
    votes=[Vote("host:cfo", "yes", "cash"), Vote("user:ada", "no")],
    dissent=[Dissent("host:cto", "May is possible")],
    cited_turns=[0, 1],
    action_items=[Action("tell the press", "user:ada", "2026-06-01"), Action("rest")],
)

SENT: dict[str, Any] = {
    "votes": [
        {"by": "host:cfo", "vote": "yes", "reason": "cash"}, {"by": "user:ada", "vote": "no"}
    ],
    "dissent": [{"by": "host:cto", "text": "May is possible"}],
    "citedTurns": [0, 1],
    "actionItems": [
        {"text": "tell the press", "owner": "user:ada", "due": "2026-06-01"}, "rest"
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    "outcome",
    [
        {"decision": FULL.text, **SENT},
        {"text": FULL.text, **SENT},
        {"decision": {"text": FULL.text, **SENT}},
        {"text": FULL.text, **SENT, "dissent": [{"by": "host:cto", "reason": "May is possible"}]},
        {"decision": FULL.text, **SENT, "dissent": {"host:cto": "May is possible"}},
        {"text": FULL.text, **{("cites" if k == "citedTurns" else k): SENT[k] for k in SENT}},
    ],
)  # fmt: skip
def test_each_spelling_is_read_as_the_same_decision(outcome: Any) -> None:
    assert read_decision(outcome) == FULL


def test_votes_may_be_an_object_by_name() -> None:
    found = read_decision({"decision": "x", "votes": {"host:cfo": "yes", "host:cto": "no"}})
    assert found is not None
    assert found.votes == [Vote("host:cfo", "yes"), Vote("host:cto", "no")]


@pytest.mark.parametrize("outcome", [None, "June", 1, [], {}, {"winner": "June"}, {"text": 1}])
def test_any_other_outcome_is_no_decision_and_as_good(outcome: Any) -> None:
    assert read_decision(outcome) is None
    world, life = council()
    world.answer(life, "convo", {"operation": "close", "outcome": outcome})
    assert payload_json(life.told("conversation.closed")[0])["outcome"] == outcome


@pytest.mark.parametrize(
    "decision",
    [
        1, [], True, {}, "", "  ", "x" * (LONGEST_TEXT + 1), {"text": ""}, {"text": None},
        {"votes": []}, {"text": "x", "votes": "yes"}, {"text": "x", "votes": [1]},
        {"text": "x", "votes": [{"by": "host:cfo"}]}, {"text": "x", "votes": [{"vote": "yes"}]},
        {"text": "x", "votes": [{"by": "", "vote": "yes"}]}, {"text": "x", "votes": {"a": 1}},
        {"text": "x", "votes": [{"by": "host:cfo", "vote": "yes", "reason": 1}]},
        {"text": "x", "dissent": [{"by": "host:cfo"}]}, {"text": "x", "dissent": ["no"]},
        {"text": "x", "citedTurns": 1}, {"text": "x", "citedTurns": [True]},
        {"text": "x", "citedTurns": ["0"]}, {"text": "x", "citedTurns": [2]},
        {"text": "x", "citedTurns": [-1]}, {"text": "x", "actionItems": [""]},
        {"text": "x", "actionItems": [{}]}, {"text": "x", "actionItems": {"text": "y"}},
        {"text": "x", "actionItems": [{"text": "y", "owner": 1}]},
        {"text": "x", "actionItems": ["y"] * (MOST_ENTRIES + 1)},
        {"text": "x", "votes": [{"by": "host:stranger", "vote": "yes"}]},
        {"text": "x", "dissent": {"host:stranger": "no"}},
    ],
)  # fmt: skip
def test_a_decision_with_something_wrong_is_refused_and_the_council_goes_on(decision: Any) -> None:
    world, life = council()
    say(world, life, "host:cfo")
    closing = {"operation": "close", "decision": decision}
    assert isinstance(world.refused(life, world.answering("convo", closing)), BadRequest)
    if isinstance(decision, (str, dict)):  # anything else is an outcome like any other
        spelt = {"operation": "close", "outcome": {"decision": decision}}
        assert isinstance(world.refused(life, world.answering("convo", spelt)), BadRequest)
    assert life.run.status is Status.WAITING_APPROVAL


def test_a_decision_is_kept_as_it_was_sent() -> None:
    world, life = council()
    say(world, life, "host:cfo")
    sent = {"text": FULL.text, **SENT, "mood": "good"}
    world.answer(life, "convo", {"operation": "close", "decision": sent})
    assert payload_json(life.told("conversation.closed")[0])["outcome"] == sent
    assert read_decision(sent) == FULL


def test_a_bare_text_is_a_decision() -> None:
    world, life = council()
    world.answer(life, "convo", {"operation": "close", "decision": "June"})
    outcome = payload_json(life.told("conversation.closed")[0])["outcome"]
    assert outcome == {"text": "June"} and read_decision(outcome) == CouncilDecision(text="June")


def test_people_need_not_be_on_the_roster_to_vote() -> None:
    world, life = council()
    decision = {"text": "June", "votes": {"user:ada": "yes", "user": "no"}}
    world.answer(life, "convo", {"operation": "close", "decision": decision})
    assert life.run.status is Status.COMPLETED


def test_without_a_roster_anybody_may_have_voted() -> None:
    world, life = council(roster=False)
    decision = {"text": "June", "votes": {"host:anyone": "yes"}}
    world.answer(life, "convo", {"operation": "close", "decision": decision})
    assert life.run.status is Status.COMPLETED


def test_a_decision_in_an_exchange_is_only_text() -> None:
    world, life = council()
    value = {"operation": "exchange", "turn": {"content": "x"}, "decision": 1}
    world.answer(life, "convo", value)
    assert life.run.conversations["convo"].open
