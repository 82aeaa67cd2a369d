"""Conversations: order and causes, turns, speakers, rosters, closing (protocol I and J)."""

from itertools import pairwise
from typing import Any

import pytest

from moot.core.commands import CancelRun, PauseRun, TimePassed
from moot.core.conversations.participants import MOST_PARTICIPANTS
from moot.core.errors import (
    BadRequest,
    Conflict,
    InterruptAlreadyResolved,
    InterruptCancelled,
    NotYourName,
    ParticipantMuted,
    ParticipantNotInvited,
    SpeakerMissing,
    SpeakerNotParticipant,
    ThreadPaused,
)
from moot.core.speaker import Speaker
from moot.core.state.status import Status
from tests.support.core.gates import (
    MEMBERS,
    ROSTER,
    asking,
    beside_work,
    caused_by,
    council,
    said,
    say,
    short,
)
from tests.support.core.simulator import ADA, BOT, CHAIR, Life, World, chain, compiled, node
from tests.support.event_payloads import payload_json

CFO = Speaker("key_cfo", ("host:cfo",))


def turn(life: Life, number: int = -1) -> dict[str, Any]:
    return dict(payload_json(life.told("conversation.exchanged")[number])["turn"])


# -- opening -------------------------------------------------------------------------------------


def test_opening_is_caused_by_the_suspension_and_has_index_0() -> None:
    _, life = council()
    assert life.types[2:] == ["interrupt.requested", "node.suspended", "conversation.opened"]
    opened = life.log[-1]
    assert caused_by(life, opened).type == "node.suspended"
    assert payload_json(life.log[-2])["reason"] == "conversation-input"
    name = f"{life.run.run_id}:convo:1"
    assert payload_json(opened) == {
        "conversationId": name, "participants": ROSTER, "capabilities": ["multi-turn"],
        "initialTurn": {
            "messageId": f"{name}:0:user", "from": "user", "role": "user", "content": "Ship?",
            "turnIndex": 0, "ts": payload_json(opened)["initialTurn"]["ts"],
        },
    }  # fmt: skip
    assert life.run.status is Status.WAITING_APPROVAL


def test_an_owner_opens_in_its_own_name() -> None:
    _, life = council(agentId="host:chair")
    first = payload_json(life.log[-1])["initialTurn"]
    assert (first["role"], first["from"], first["speakerId"]) == ("agent", *["host:chair"] * 2)
    assert payload_json(life.log[-1])["agentId"] == "host:chair"


def test_an_owner_who_is_not_on_the_roster_does_not_speak() -> None:
    """J.1: every agent's turn is by a member, the opening one too."""
    _, life = council(agentId="host:outsider")
    assert life.log[-1].type == "conversation.opened"
    first = payload_json(life.log[-1])["initialTurn"]
    assert first["role"] != "agent" and "speakerId" not in first


@pytest.mark.parametrize(
    "participants",
    [
        [], [{"agentId": "host:a"}], [{"agentId": "host:a"}] * 2, [{}, {"agentId": "host:a"}],
        [{"agentId": ""}, {"agentId": "host:a"}], [{"agentId": 1}, {"agentId": "host:a"}],
        [{"agentId": f"host:{n}"} for n in range(MOST_PARTICIPANTS + 1)],
    ],
)  # fmt: skip
def test_what_is_no_roster_opens_nothing(participants: list[Any]) -> None:
    _, life = asking(node("convo", "core.conversationGate", config={"participants": participants}))
    assert "conversation.opened" not in life.types
    assert life.run.status is Status.FAILED


# -- turns ---------------------------------------------------------------------------------------


def test_the_host_fills_in_what_a_turn_leaves_out() -> None:
    world, life = council()
    found = world.answer(life, "convo", said("host:cfo", "June"), CFO)
    assert short(found) == ["conversation.exchanged"]
    talk = life.run.conversations["convo"].conversation_id
    assert payload_json(found[0]) == {
        "conversationId": talk, "turnIndex": 1,
        "turn": {
            "messageId": f"{talk}:1:agent", "from": "host:cfo", "speakerId": "host:cfo",
            "role": "agent", "content": "June", "turnIndex": 1, "ts": world.at, "via": "key_cfo",
        },
    }  # fmt: skip


def test_a_turn_does_not_resume_the_node() -> None:
    world, life = council()
    for number in range(1, 4):
        say(world, life, "host:cto")
        assert life.run.status is Status.WAITING_APPROVAL and life.run.going
        assert life.run.conversations["convo"].turns == number
    assert [payload_json(event)["turnIndex"] for event in life.told("conversation.exchanged")] == [
        1, 2, 3
    ]  # fmt: skip


def test_each_turn_is_caused_by_the_one_before_whatever_was_steered_between() -> None:
    world, life = council()
    say(world, life, "host:cto")
    world.control(life, {"prod": ["host:cfo"]})
    say(world, life, "host:cfo")
    world.control(life, {"invite": {"participant_id": "user:ada"}})
    world.answer(life, "convo", {"operation": "close"})
    first, second = life.told("conversation.exchanged")
    assert caused_by(life, first).type == "conversation.opened"
    assert caused_by(life, second) == first
    assert caused_by(life, life.told("conversation.closed")[0]) == second


@pytest.mark.parametrize("key", ["turn", None])
def test_a_turn_may_be_bare_or_wrapped(key: str | None) -> None:
    world, life = council()
    bare = said("host:cfo", {"any": ["json", None]})
    world.answer(life, "convo", {"operation": "exchange", key: bare} if key else bare)
    assert turn(life)["content"] == {"any": ["json", None]}


@pytest.mark.parametrize("content", [None, False, 0, "", [], {}])
def test_any_json_is_content(content: Any) -> None:
    world, life = council()
    say(world, life, "host:cfo", content)
    assert turn(life)["content"] == content


def test_what_a_turn_says_about_itself_is_kept() -> None:
    world, life = council()
    more = {
        "messageId": "m-1", "ts": 5, "to": "host:cto", "groupId": "g", "turnIndex": 1,
        "agent": {"model": {"provider": "p", "model": "m"}}, "meta": {"replyTo": "x"},
    }  # fmt: skip
    say(world, life, "host:cfo", **more)
    kept = turn(life)
    assert {key: kept[key] for key in more} == more


@pytest.mark.parametrize(
    "wrong",
    [
        {"turnIndex": 2}, {"turnIndex": 0}, {"turnIndex": True}, {"turnIndex": "1"},
        {"turnIndex": None}, {"messageId": ""}, {"messageId": "x" * 257}, {"messageId": 1},
        {"ts": -1}, {"ts": "now"}, {"ts": True}, {"ts": 10**18}, {"ts": 1.5}, {"to": ""},
        {"to": ["host:cto"]}, {"groupId": "x" * 257}, {"role": "robot"}, {"role": "system"},
        {"role": None}, {"from": "host:cto"},
    ],
)  # fmt: skip
def test_a_turn_that_is_none_is_refused(wrong: dict[str, Any]) -> None:
    world, life = council(channel=True)
    value = {**said("host:cfo"), **wrong}
    assert isinstance(world.refused(life, world.answering("convo", value)), BadRequest)


@pytest.mark.parametrize(
    "value",
    [
        None, [], "hello", 1, {}, {"role": "user"}, {"operation": "exchange"},
        {"operation": "start", "turn": {"content": 1}}, {"operation": ["close"]},
        {"turn": "hello"}, {"turn": None}, {"operation": "close", "turn": "bye"},
    ],
)  # fmt: skip
def test_what_is_neither_turn_nor_close_is_refused(value: Any) -> None:
    world, life = council()
    assert isinstance(world.refused(life, world.answering("convo", value)), BadRequest)


def test_ids_the_host_makes_cannot_be_taken_in_advance_or_again() -> None:
    world, life = council()
    talk = life.run.conversations["convo"].conversation_id
    say(world, life, "host:cfo", messageId=f"{talk}:1:agent")
    for taken in (f"{talk}:1:agent", f"{talk}:3:agent", f"{talk}:2:user", f"{talk}:0:user"):
        value = said("host:cto", messageId=taken)
        assert isinstance(world.refused(life, world.answering("convo", value)), BadRequest)
    say(world, life, "host:cto", messageId=f"{talk}:2:agent")


def test_the_schema_judges_the_content_of_each_turn() -> None:
    world, life = council(schema={"type": "object", "required": ["vote"]})
    for content in ("yes", {}, None):
        value = said("host:cfo", content)
        assert isinstance(world.refused(life, world.answering("convo", value)), BadRequest)
    say(world, life, "host:cfo", {"vote": "yes"})
    closing = {"operation": "close", "turn": said("host:cfo", "bye")}
    assert isinstance(world.refused(life, world.answering("convo", closing)), BadRequest)
    assert len(life.told("conversation.exchanged")) == 1


def test_turns_are_written_to_the_messages_channel_at_the_servers_time() -> None:
    world, life = council(channel=True)
    found = say(world, life, "host:cfo", "June", ts=5)
    assert short(found) == ["conversation.exchanged", "channel.written"]
    written = payload_json(found[1])
    assert written["value"] == {
        "messageId": "convo:1:agent", "role": "assistant", "content": "June", "timestamp": 5,
        "agentId": "host:cfo",
    }  # fmt: skip
    assert written["writtenAt"][:19] == found[1].timestamp[:19]
    assert life.run.messages == {"conversation": 2}
    opening = payload_json(life.told("channel.written")[0])["value"]
    assert opening["messageId"].startswith("convo:0:")


def test_the_group_of_the_conversation_is_that_of_its_turns() -> None:
    world, life = council(groupId="council-7")
    say(world, life, "host:cfo")
    say(world, life, "host:cfo", groupId="other")
    assert [turn(life, 0)["groupId"], turn(life, 1)["groupId"]] == ["council-7", "other"]


# -- who may speak -------------------------------------------------------------------------------


def test_an_agents_turn_names_its_speaker() -> None:
    world, life = council()
    value = {"role": "agent", "content": "x"}
    assert isinstance(world.refused(life, world.answering("convo", value)), SpeakerMissing)


def test_an_intruder_is_refused_and_then_a_member_is_heard() -> None:
    world, life = council()
    refusal = world.refused(life, world.answering("convo", said("host:intruder")))
    assert isinstance(refusal, SpeakerNotParticipant)
    assert refusal.status == 422 and refusal.details["speakerId"] == "host:intruder"
    assert life.run.status is Status.WAITING_APPROVAL
    for name in MEMBERS:
        say(world, life, name)
    turns = [payload_json(event)["turn"] for event in life.told("conversation.exchanged")]
    assert [turn["speakerId"] for turn in turns] == list(MEMBERS)


def test_a_group_gives_no_right_to_speak() -> None:
    world, life = council(groupId="g")
    value = said("host:intruder", groupId="g")
    assert isinstance(world.refused(life, world.answering("convo", value)), SpeakerNotParticipant)


@pytest.mark.parametrize("speaker", ["host:cto", "user:bob", "user"])
@pytest.mark.parametrize("who", [BOT, ADA, CFO])
def test_a_key_speaks_only_as_its_own_names(speaker: str, who: Speaker) -> None:
    world, life = council()
    refusal = world.refused(life, world.answering("convo", said(speaker), who))
    assert isinstance(refusal, NotYourName)
    assert refusal.details["maySpeakAs"] == list(who.names)


def test_a_person_speaks_as_the_name_of_the_key() -> None:
    world, life = council()
    world.answer(life, "convo", {"content": "hello"}, ADA)
    world.answer(life, "convo", {"content": "hello"}, Speaker("key_eve"))
    world.answer(life, "convo", {"content": "hello"}, CHAIR)
    assert [turn(life, n)["from"] for n in range(3)] == ["user:ada", "user:key_eve", "user"]
    assert all("speakerId" not in turn(life, n) for n in range(3))


def test_an_agent_is_no_person_and_a_person_no_agent() -> None:
    world, life = council(roster=False)
    as_agent = {"role": "agent", "speakerId": "user:ada", "content": "x"}
    as_person = {"role": "user", "from": "host:cfo", "content": "x"}
    for value in (as_agent, as_person):
        assert isinstance(world.refused(life, world.answering("convo", value)), BadRequest)


def test_without_a_roster_any_agent_speaks_until_somebody_is_invited() -> None:
    world, life = council(roster=False)
    say(world, life, "host:anyone")
    world.control(life, {"invite": {"participant_id": "host:cfo"}})
    refusal = world.refused(life, world.answering("convo", said("host:anyone")))
    assert isinstance(refusal, ParticipantNotInvited)
    assert refusal.details["speakerId"] == "host:anyone"
    say(world, life, "host:cfo")
    say(world, life, "user")


def test_who_has_been_sent_away_may_not_speak_even_as_the_last_one() -> None:
    world, life = council(roster=False)
    world.control(life, {"invite": "host:cfo"})
    world.control(life, {"uninvite": "host:cfo"})
    refusal = world.refused(life, world.answering("convo", said("host:cfo")))
    assert isinstance(refusal, ParticipantNotInvited)


def test_the_checks_go_in_the_protocols_order() -> None:
    """Shape, name, speaker, roster, mute, pause, content: the first that fails answers."""
    world, life = council(schema={"type": "string"})
    world.control(life, {"mute": ["host:cfo", "host:intruder"], "pause": True})

    def refusal(value: Any, who: Speaker = CHAIR) -> Any:
        return type(world.refused(life, world.answering("convo", value, who)))

    assert refusal({"role": "agent", "speakerId": "host:intruder"}) is BadRequest
    assert refusal(said("host:intruder", 1), ADA) is NotYourName
    assert refusal(said("host:intruder", 1)) is SpeakerNotParticipant
    assert refusal(said("host:cfo", 1)) is ParticipantMuted
    assert refusal(said("host:cto", 1)) is ThreadPaused
    assert refusal(said("user", 1)) is BadRequest
    say(world, life, "user", "people may speak")


# -- closing -------------------------------------------------------------------------------------


def test_a_close_ends_the_wait_with_its_outcome() -> None:
    world, life = council()
    say(world, life, "host:cfo")
    final = said("host:chair", "We ship in June.")
    found = world.answer(
        life, "convo", {"operation": "close", "turn": final, "outcome": {"decision": "June"}}
    )
    assert short(found) == [
        "conversation.closed", "interrupt.resolved", "node.resumed", "node.completed",
        "run.completed",
    ]  # fmt: skip
    closed, resolved, resumed = found[:3]
    assert payload_json(closed)["turnIndex"] == payload_json(closed)["finalTurn"]["turnIndex"] == 2
    assert payload_json(closed)["finalTurn"]["speakerId"] == "host:chair"
    assert caused_by(life, resolved).type == "interrupt.requested"
    for event in (resolved, resumed):
        assert (
            payload_json(event)["resumeValue"]
            == payload_json(closed)["outcome"]
            == {"decision": "June"}
        )
    assert life.run.outputs == {
        "outcome": {"decision": "June"}, "turnCount": 2,
        "conversationId": life.run.conversations["convo"].conversation_id,
    }  # fmt: skip


def test_a_close_without_a_turn_is_the_hosts_with_the_closers_name() -> None:
    world, life = council()
    world.answer(life, "convo", {"operation": "close"}, ADA)
    final = payload_json(life.told("conversation.closed")[0])["finalTurn"]
    assert (final["role"], final["from"], final["via"]) == ("system", "system", "key_ada")


def test_the_final_turn_is_judged_like_any_other() -> None:
    world, life = council()
    for turn_ in (said("host:intruder"), {"role": "agent", "content": 1}, {"role": "user"}):
        value = {"operation": "close", "turn": turn_}
        assert world.refused(life, world.answering("convo", value)) is not None
    assert life.run.conversations["convo"].open


def test_nothing_is_said_after_the_close() -> None:
    world, life = council()
    world.answer(life, "convo", {"operation": "close"})
    for value in (said("host:cfo"), {"operation": "close"}):
        refusal = world.refused(life, world.answering("convo", value))
        assert isinstance(refusal, InterruptAlreadyResolved)
    steered = world.refused(life, world.controlling({"pause": True}))
    assert isinstance(steered, InterruptAlreadyResolved)


def test_a_gate_with_a_lifecycle_closes_by_itself_after_its_turns() -> None:
    world, life = council(lifecycle="open-exchange-close", turnCount=2, channel=True)
    say(world, life, "host:cfo", "one")
    found = say(world, life, "host:cto", "two")
    assert short(found) == [
        "conversation.exchanged", "channel.written", "conversation.closed", "channel.written",
        "interrupt.resolved", "node.resumed", "node.completed", "run.completed",
    ]  # fmt: skip
    closed = found[2]
    assert payload_json(closed)["outcome"] == "two" and payload_json(closed)["turnIndex"] == 3
    assert payload_json(closed)["finalTurn"]["role"] == "system"
    assert caused_by(life, closed) == found[0]


def test_a_conversation_that_runs_out_of_time_closes_with_nothing_and_fails() -> None:
    world, life = council(timeoutMs=1000)
    world.pass_time(600)
    say(world, life, "host:cfo")
    world.pass_time(400)
    found = world.take(life, TimePassed(world.at))
    assert short(found) == [
        "conversation.closed", "interrupt.resolved", "node.failed", "run.failed"
    ]  # fmt: skip
    closed = payload_json(found[0])
    assert closed["outcome"] is None and closed["turnIndex"] == 2
    assert closed["finalTurn"]["role"] == closed["finalTurn"]["from"] == "system"
    late = world.refused(life, world.answering("convo", said("host:cfo")))
    assert isinstance(late, InterruptAlreadyResolved)


def test_after_a_cancel_a_turn_is_refused_as_cancelled() -> None:
    world, life = council()
    world.take(life, CancelRun(world.at))
    refusal = world.refused(life, world.answering("convo", said("host:cfo")))
    assert isinstance(refusal, InterruptCancelled)
    assert not life.run.conversations["convo"].open


def test_a_paused_run_takes_neither_turns_nor_controls() -> None:
    world, life = beside_work(node("convo", "core.conversationGate"))
    world.take(life, PauseRun(world.at, "immediate"))
    for command in (
        world.answering("convo", {"content": "x"}), world.controlling({"pause": True})
    ):  # fmt: skip
        refusal = world.refused(life, command)
        assert isinstance(refusal, Conflict) and refusal.details["runStatus"] == "paused"


def test_a_host_under_trial_talks_to_itself_and_says_the_same_in_every_run() -> None:
    config = {"mockAutoResume": True, "turnCount": 2, "lifecycle": "open-exchange-close"}
    body = chain(
        node("convo", "core.conversationGate", config={"participants": ROSTER, **config}),
        channels={"conversation": {"reducer": "message"}},
    )
    world = World()
    first, second = world.start(compiled(body)), world.start(compiled(body))
    assert first.types[3:5] == ["node.suspended", "conversation.opened"]
    assert first.types[-6:] == [
        "conversation.closed", "channel.written", "interrupt.resolved", "node.resumed",
        "node.completed", "run.completed",
    ]  # fmt: skip
    messages = [[payload_json(e)["value"] for e in life.told("channel.written")]
                for life in (first, second)]  # fmt: skip
    assert messages[0] == messages[1] and len(messages[0]) == 6
    turns = [*first.told("conversation.opened"), *first.told("conversation.exchanged"),
             *first.told("conversation.closed")]  # fmt: skip
    assert [payload_json(e).get("turnIndex", 0) for e in turns] == [0, 1, 2, 3, 4, 5]
    for before, after in pairwise(turns):
        assert caused_by(first, after) == before
    resolved = first.told("interrupt.resolved")[0]
    assert caused_by(first, resolved).type == "interrupt.requested"


def test_an_agent_that_may_not_speak_may_not_close() -> None:
    world, life = council()
    close = {"operation": "close"}
    stranger = Speaker("key_x", ("host:stranger",))
    refusal = world.refused(life, world.answering("convo", close, stranger))
    assert isinstance(refusal, SpeakerNotParticipant)
    world.answer(life, "convo", close, Speaker("key_y", ("host:cfo",)))
    assert life.run.status is Status.COMPLETED
