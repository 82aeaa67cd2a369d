"""A thread and its conversation are one log: both views tell the same, and times differ."""

import json
import os
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import Phase, given, settings
from msgspec import to_builtins

from moot.core.commands import TimePassed
from moot.core.errors import MootError
from moot.core.events import Event, decode, encode, event_id, iso
from moot.core.sentences.table import text_of
from moot.core.state.conversation import Conversation
from moot.core.state.participants import joined_members
from moot.core.state.run import Run, apply, fold
from moot.core.state.thread_controls import ThreadControls
from moot.core.text.names import handle_from_name
from moot.core.threads import agent_bridge
from moot.core.threads.rendered_event import RenderedEvent
from moot.core.threads.side_threads import SideThreadEnded, ThreadLinkedFrom
from moot.core.threads.undo import undo_control
from moot.core.verify.walk import verify
from moot.engine.workflows.built_in import TALK
from tests.support.core.replays import FORK, OPERATORS, order, retold
from tests.support.core.simulator import CHAIR, TENANT, Life, Speaker, World, state, state_back
from tests.support.core.threads import (
    check,
    control,
    floor_of,
    say,
    speak,
    steer,
    talk_of,
    thread,
    told,
)  # fmt: skip
from tests.support.event_payloads import event_with, payload_json

LONG = os.environ.get("MOOT_LONG") == "1"

TURNS = {"conversation.opened": "initialTurn", "conversation.exchanged": "turn",
         "conversation.closed": "finalTurn"}  # fmt: skip
CONTENTS: tuple[Any, ...] = (
    {"mute": ["ada"]}, {"mute": {"targets": ["host:bo"], "seconds": 5, "mode": "hard"}},
    {"unmute": {"targets": ["ada", "bo"]}}, {"pause": {"on": True}}, {"pause": {"on": False}},
    {"pause": {}}, {"prod": ["bo"]}, {"done": True}, {"ttl_seconds": 5}, {"ttl_seconds": None},
    {"discussion": {"on": True, "allow_agent_mentions": False}}, {"discussion": True},
    {"invited_auto": {"on": True}}, {"invite": {"participant_id": "rex", "profile": {"role": "r"}}},
    {"uninvite": {"participant_id": "rex"}}, {"rename": "Other"}, {"presence": "thinking"},
    {"link": {"thread": "th_side", "title": "Side"}}, {"continue": True},
    {"mute": 5}, {"pause": "x"}, {"fly": 1}, {}, "text", '{"pause": true}', None, [1], 7,
    {"invite": ""}, {"mute": ["ada"], "pause": 5, "nonsense": {}}, {"rename": 5, "prod": ["ada"]},
    {"continue": "x"}, {"participation": 5}, {"participation": {"mode": "small"}},
)  # fmt: skip

OTHERS: tuple[Any, ...] = (
    {"done": True}, {"mute": ["bo"]}, {"done": True, "pause": True}, {"uninvite": "rex"},
    {"presence": "typing"}, {"vote": {"decision": "x"}},
)  # fmt: skip

moves = st.one_of(
    st.tuples(st.just("steer"), st.sampled_from(CONTENTS)),
    st.tuples(st.just("say"), st.sampled_from(["hm", "@bo?", "@ada @bo", "@all", "@x"])),
    st.tuples(st.just("rex"), st.sampled_from(["hm", "@ada!", "@rex"])),
    st.tuples(st.just("task"), st.sampled_from(["ada", "bo"])),
    st.tuples(st.just("speak"), st.sampled_from(["Well.", "@bo no", "@ada yes"])),
    st.tuples(st.just("side"), st.just("Done.")),
    st.tuples(st.just("linked"), st.sampled_from(["th_side", "th_main"])),
    st.tuples(st.just("agent"), st.tuples(st.sampled_from(["ada", "bo"]), st.sampled_from(OTHERS))),
    st.tuples(st.just("wait"), st.sampled_from([1, 4000, 70_000])),
)
REX = Speaker("local", ("host:rex",), joins="outside")


def move(world: World, life: Life, what: str, with_: Any) -> None:
    """One thing that happens in a thread; what is refused has not."""
    try:
        if what == "steer":
            steer(world, life, with_)
        elif what == "say":
            say(world, life, with_)
        elif what == "rex":
            turn = {"role": "agent", "speakerId": "host:rex", "content": with_}
            world.answer(life, TALK, turn, REX)
        elif what == "task":
            say(world, life, "Do it.", to=with_, meta={"kind": "task"})
        elif what == "speak" and floor_of(life).wakes:
            speak(world, life, with_)
        elif what == "side":
            ended = SideThreadEnded(node_id=TALK, thread="th_side", summary=with_, at=world.at)
            world.take(life, ended)
        elif what == "linked":
            back = ThreadLinkedFrom(node_id=TALK, thread=with_, title="Main", at=world.at)
            world.take(life, back)
        elif what == "agent":
            name = f"host:{with_[0]}"
            steer(world, life, with_[1], Speaker(f"key_{with_[0]}", (name,)), name)
        elif what == "wait":
            world.pass_time(with_)
            world.take(life, TimePassed(world.at))
    except MootError:
        pass


@settings(max_examples=200 if LONG else 25, deadline=None)
@given(st.lists(moves, max_size=40), st.sampled_from([None, "Do we?"]))
def test_both_views_agree_whatever_happens(story: list[Any], opening: str | None) -> None:
    world, life = thread("ada", "bo", opening=opening)
    for what, with_ in story:
        move(world, life, what, with_)
    found = told(life)
    turns = [
        (event, payload_json(event)[TURNS[event.type]]) for event in life.log if event.type in TURNS
    ]
    if opening is None:
        turns = turns[1:]
    said = [each for each in found if each["type"] in ("message", "task", "result")]
    assert [each["id"] for each in said] == [event.event_id for event, _ in turns]
    for each, (_, turn) in zip(said, turns, strict=True):
        assert each["content"] == turn["content"]
        assert each["from"] == handle_from_name(turn.get("speakerId") or turn["from"])
        assert each["to"] == handle_from_name(turn.get("to", "all"))
    times = [each["ts"] for each in found]
    assert times == sorted(set(times)), "every event has a time of its own"
    assert len({each["id"] for each in found}) == len(found)
    places = {event.event_id: event.sequence for event in life.log}
    assert all(places[each["id"].removesuffix(".0")] == each["seq"] or each["id"].endswith(".0")
               for each in found)  # fmt: skip
    check(life)


@settings(max_examples=200 if LONG else 20, deadline=None)
@given(st.lists(moves, max_size=40), st.integers(0, 40))
def test_a_thread_is_said_again_as_it_was(story: list[Any], place: int) -> None:
    """Nobody is woken anew, nothing is decided otherwise, and each event has its own time."""
    world, life = thread("ada", "bo", outside=("cy",))
    for what, with_ in story:
        move(world, life, what, with_)
    again = retold(life, min(place, len(life.log)))
    assert again.told("replay.diverged") == []
    assert again.order() == [each for each in order(life.log) if each[0] not in OPERATORS]
    assert verify(life.flow, TENANT, FORK, again.log) is None
    times = [each["ts"] for each in told_of(again.run, again.log)]
    assert times == sorted(set(times))


@settings(max_examples=100 if LONG else 15, deadline=None)
@given(st.lists(moves, min_size=5, max_size=30), st.data())
def test_a_control_acts_on_what_comes_after_it_only(story: list[Any], data: Any) -> None:
    """Whatever follows, what was told before it stays as it was told."""
    world, life = thread("ada", "bo")
    for what, with_ in story:
        move(world, life, what, with_)
    whole = told_of(life.run, life.log)
    cut = data.draw(st.integers(5, len(life.log)))
    then = fold(life.run.run_id, life.log[:cut])
    before = told_of(then, life.log[:cut])
    assert whole[: len(before)] == before
    assert all(each["seq"] >= cut for each in whole[len(before) :])
    for event in life.log[cut:]:
        apply(then, event)
    assert state(then) == state(life.run)


# -- any events, in any order --------------------------------------------------------------------

values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 900) | st.sampled_from(["", "ada", "host:bo", "x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["targets", "on", "participant_id", "seconds", "profile", "agentId"]),
        inner, max_size=3,
    ),
    max_leaves=5,
)  # fmt: skip
TYPES = (
    "moot.thread.control", "moot.participant.joined", "moot.participant.left",
    "moot.thread.renamed", "moot.thread.linked", "moot.presence.changed",
    "conversation.exchanged", "moot.participation.decided", "moot.participation.answered",
    "moot.participation.stopped", "moot.participation.continued", "moot.participation.set",
    "moot.turn.held", "moot.turn.dropped", "moot.something.new",
)  # fmt: skip
KEYS = ("participantId", "profile", "by", "from", "title", "threadId", "state", "wakes", "skipped",
        "called", "policy", "members", "reason", "wakeId", "outcome", "held", "closed")  # fmt: skip


@st.composite
def payloads(draw: Any) -> dict[str, Any]:
    said = draw(st.dictionaries(st.sampled_from(KEYS), values, max_size=4))
    if draw(st.booleans()):
        said["content"] = draw(st.sampled_from(CONTENTS))
    if draw(st.booleans()):
        meta = draw(st.sampled_from([{}, {"kind": "task"}, {"kind": "result", "replyTo": 9}, 5]))
        said["turn"] = {
            "from": draw(st.sampled_from(["user", "host:ada", "codex"])), "turnIndex": 1,
            "role": draw(st.sampled_from(["user", "agent", "system"])), "content": "@ada @all",
            "to": draw(st.sampled_from(["host:bo", "all", "user"])), "meta": meta,
        }  # fmt: skip
    return said


@settings(max_examples=100 if LONG else 12, deadline=None, phases=[Phase.generate])
@given(st.lists(payloads(), min_size=1, max_size=30), st.randoms(use_true_random=False))
def test_the_fold_equals_its_rebuild_for_any_thousand_events(found: list[Any], chance: Any) -> None:
    """In whatever order they come: no fold raises, and one that is cut anywhere is as good."""
    _, life = thread("ada", "bo")
    log = list(life.log)
    for _ in range(1000):
        type_, payload = chance.choice(TYPES), chance.choice(found)
        log.append(_event(life.run.run_id, log, type_, payload))
    kept, rebuilt = fold(life.run.run_id, log), Run(life.run.run_id)
    for place, event in enumerate(log):
        if place % 250 == 0:
            rebuilt = state_back(state(rebuilt))
        apply(rebuilt, decode(encode(event)))
    assert state(rebuilt) == state(kept)
    talk = kept.conversations[TALK]
    assert isinstance(talk, Conversation) and isinstance(talk.state, ThreadControls)
    assert "" not in {text_of(event.payload) for event in log}
    for each in rendered(kept, log):
        assert undo_control(each, talk, 0) != {}


def _event(run_id: str, log: list[Event], type_: str, payload: dict[str, Any]) -> Event:
    sequence = len(log)
    conversation = payload_json(log[4])["conversationId"]
    return event_with(
        event_id=event_id(run_id, sequence), run_id=run_id, sequence=sequence, type=type_,
        timestamp=iso(1_700_000_100_000_000 + sequence * 1000), node_id=TALK,
        payload=json.loads(json.dumps({"conversationId": conversation, **payload})),
    )  # fmt: skip


def rendered(run: Run, log: list[Event]) -> list[RenderedEvent]:
    talk = run.conversations[TALK]
    teller = agent_bridge.BridgeRenderer(talk, run.run_id, "Ours", "user")
    return [each for event in log for each in teller.tell(event)]


def told_of(run: Run, log: list[Event]) -> list[dict[str, Any]]:
    return [to_builtins(each) for each in rendered(run, log)]


# -- the envelope --------------------------------------------------------------------------------


def test_the_host_speaks_under_its_own_name() -> None:
    world, life = thread("ada")
    say(world, life, "Ideas?")
    decided = told(life)[-1]
    assert (decided["type"], decided["from"], decided["meta"]["tags"]) == (
        "control", "moot", ["coordinator"],
    )  # fmt: skip
    assert decided["content"] == {
        "wakes": [{"participant_id": "ada", "reason": "a person spoke to all"}]
    }
    speak(world, life, outcome="failed")
    excuse = told(life)[-1]
    assert excuse["from"] == "moot" and excuse["meta"]["tags"] == ["coordinator", "error"]
    assert excuse["type"] == "message" and "could not answer" in excuse["content"]
    say(world, life, "And now?")
    speak(world, life, "Well.")
    answer = told(life)[-1]
    assert (answer["from"], answer["meta"]["via"]) == ("ada", "moot")
    say(world, life, "Mine.", meta={"via": "moot"})
    assert "via" not in told(life)[-2]["meta"]
    for at, event in enumerate(life.log):  # whoever begins to read in between is told the same
        if at and event.timestamp != life.log[at - 1].timestamp:
            seen = [each for each in told(life) if each["seq"] >= event.sequence]
            assert told_of(life.run, life.log[at:]) == seen


def test_a_member_that_was_silent_is_told_of_as_a_failure() -> None:
    world, life = thread("ada")
    say(world, life, "Ideas?")
    world.pass_time(floor_of(life).policy.limits.silence * 1000 + 1)
    world.take(life, TimePassed(world.at))
    silent = next(each for each in told(life) if "was silent" in str(each["content"]))
    assert silent["meta"]["tags"] == ["coordinator", "error"]


def test_who_comes_in_by_speaking_is_invited_by_himself() -> None:
    world, life = thread("ada")
    turn = {"role": "agent", "speakerId": "host:rex", "content": "Here I am."}
    world.answer(life, TALK, turn, REX)
    invite, message = told(life)[-2:]
    assert invite["content"]["invite"]["participant_id"] == invite["from"] == "rex"
    assert (message["from"], message["content"]) == ("rex", "Here I am.")
    assert joined_members(talk_of(life))["host:rex"].outside
    assert world.refused(life, world.answering(TALK, turn, Speaker("k", ("host:rex",)))) is None
    stranger = {**turn, "speakerId": "host:new"}
    refusal = world.refused(life, world.answering(TALK, stranger, CHAIR))
    assert refusal is not None and refusal.code == "participant_not_invited"
    check(life)


def test_who_steers_without_a_seat_is_given_one_where_that_is_trusted() -> None:
    world, life = thread("ada")
    world.take(life, control(world, {"done": True}, REX, "host:rex"))
    assert talk_of(life).state.done == ["host:rex"] and "host:rex" in joined_members(talk_of(life))
    bob = Speaker("local", ("host:bob",), joins="outside")
    world.take(life, control(world, {"invite": "cy"}, bob, "host:bob"))
    assert set(joined_members(talk_of(life))) == {"host:ada", "host:rex", "host:cy"}
    refusal = world.refused(
        life, control(world, {"done": True}, Speaker("k", ("host:z",)), "host:z")
    )
    assert refusal is not None and refusal.code == "participant_not_invited"
    check(life)


def test_times_are_read_as_people_write_them() -> None:
    moment = agent_bridge.micros_from_time("2030-01-31T12:00:00.000001Z")
    for text in ("2030-01-31T12:00:00.000001+00:00", "2030-01-31T13:00:00.000001+01:00",
                 "2030-01-31T12:00:00.000001"):  # fmt: skip
        assert agent_bridge.micros_from_time(text) == moment
    assert agent_bridge.micros_from_time("2030-01-31") < moment


@pytest.mark.parametrize("who", ["user", "rex"])
def test_nobody_marks_a_turn_as_the_host_does(who: str) -> None:
    world, life = thread(outside=("rex",))
    tags = ["coordinator", "error", "closed", "left", "mine"]
    for via in ("moot", "user", "ada"):
        say(world, life, "x", who, meta={"tags": tags, "via": via, "note": 1})
    turns = [event["meta"] for event in told(life) if event["type"] == "message"]
    assert turns == [{"note": 1, "tags": ["left", "mine"]}] * 3
    check(life)
