"""Whatever is said, steered, answered, paused, cancelled: a council's log keeps its promises."""

from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from moot.core.events import Event, decode, encode
from moot.core.state.run import apply, fold
from moot.core.state.status import Status
from tests.support.core import naive_fold
from tests.support.core.council_story import KEYS, Council, Move, councils, stories
from tests.support.core.invariants import check_log, inbox_of
from tests.support.core.random_flows import examples
from tests.support.core.simulator import Life, state, state_back
from tests.support.event_payloads import payload_json


def lived(body: dict[str, Any], story: list[Move]) -> Life:
    council = Council(body)
    for move in story:
        council.happen(move)
    return council.life


def check(life: Life) -> None:
    """What is so after every command."""
    run, log = life.run, life.log
    assert run.status is naive_fold.status(log)
    assert inbox_of(run) == naive_fold.inbox(log)
    talk = run.conversations.get("convo")
    if talk is not None:
        shown = naive_fold.thread_shown(talk)
        assert shown == naive_fold.thread(log)
        assert talk.open == (not run.terminal and "conversation.closed" not in life.types)


@examples(100)
@given(councils(), stories)
def test_status_inbox_and_thread_are_what_the_log_says_at_every_step(
    body: dict[str, Any], story: list[Move]
) -> None:
    council = Council(body)
    for move in story:
        council.happen(move)
        check(council.life)
    check_log(council.world, council.life)


@examples(60)
@given(councils(), stories)
def test_turns_are_numbered_without_gaps_and_each_is_caused_by_the_one_before(
    body: dict[str, Any], story: list[Move]
) -> None:
    life = lived(body, story)
    found = naive_fold.turns(life.log)
    assert [turn["turnIndex"] for turn in found] == list(range(len(found)))
    events = [event for event in life.log if event.type.startswith("conversation.")]
    for before, event in pairwise(events):
        assert event.causation_id == before.event_id
        turn = naive_fold.turn_of(event)
        assert turn is not None and payload_json(event)["turnIndex"] == turn["turnIndex"]
    host_made = [t["messageId"] for t in found if t["messageId"].startswith("run0:")]
    assert len(set(host_made)) == len(host_made), "two turns have one id of the host"


@examples(60)
@given(councils(), stories)
def test_every_agents_turn_was_its_keys_and_the_rosters_to_take(
    body: dict[str, Any], story: list[Move]
) -> None:
    life = lived(body, story)
    for number, event in enumerate(life.log):
        turn = naive_fold.turn_of(event)
        if turn is None:
            continue
        before = naive_fold.thread(life.log[:number])
        if turn["role"] == "agent":
            assert turn["speakerId"] == turn["from"]
            assert naive_fold.may_speak(life.log[:number], event, turn["speakerId"])
            assert not before.paused
        if "via" in turn and turn["role"] != "system":
            check_key(turn)
            assert not naive_fold.muted(before, turn["from"], event)


def check_key(turn: dict[str, Any]) -> None:
    who = KEYS[turn["via"]]
    own = {*who.names, who.person}
    assert who.admin or turn["from"] in own
    assert naive_fold.is_person(turn["from"]) == (turn["role"] == "user")


@examples(60)
@given(councils(), stories)
def test_nothing_carries_the_conversation_after_its_close(
    body: dict[str, Any], story: list[Move]
) -> None:
    life = lived(body, story)
    closes = life.told("conversation.closed")
    assert len(closes) <= 1
    for event in life.log[closes[0].sequence + 1 :] if closes else []:
        assert "conversationId" not in payload_json(event)
        assert event.type not in ("moot.thread.control", "moot.participant.joined")


@examples(60)
@given(councils(), stories, st.data())
def test_the_fold_of_what_was_written_is_the_state_wherever_it_is_cut(
    body: dict[str, Any], story: list[Move], data: st.DataObject
) -> None:
    life = lived(body, story)
    written = [decode(encode(event)) for event in life.log]
    assert fold(life.run.run_id, written).conversations == life.run.conversations
    cut = data.draw(st.integers(1, len(written)))
    run = state_back(state(fold(life.run.run_id, written[:cut])))
    for event in written[cut:]:
        apply(run, event)
    assert state(run) == state(life.run)


@examples(60)
@given(councils(), stories)
def test_only_running_counts_as_active_time(body: dict[str, Any], story: list[Move]) -> None:
    life = lived(body, story)
    spent = naive_fold.active_ms(life.log)
    if life.run.status is not Status.RUNNING and not life.run.terminal:
        assert life.run.active_ms == spent
    assert life.run.active_ms <= spent + len(life.log)


def vote_events(life: Life) -> list[Event]:
    return [*life.told("moot.approval.granted"), *life.told("moot.approval.rejected")]


@examples(60)
@given(councils(), stories)
def test_a_quorum_needs_as_many_keys_as_it_says(body: dict[str, Any], story: list[Move]) -> None:
    life = lived(body, story)
    for event in life.told("approval.received"):
        said = payload_json(event)
        if event.node_id == "ok" and said["action"] in ("accept", "edit-accept"):
            votes = naive_fold.votes(life.log, "ok")
            assert sum(action == "accept" for action in votes.values()) == 2
    assert all(payload_json(event)["gateId"] == "ok" for event in vote_events(life))
