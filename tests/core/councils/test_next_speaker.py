"""Led conversations: any policy, any members, any moves; and the rules one by one."""

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from moot.core.commands import TimePassed
from moot.core.councils.decide import InvitationReport
from moot.core.councils.invitations import InvitationEnded
from moot.core.councils.next_speaker import next_step
from moot.core.errors import MootError
from moot.core.events import NewEvent, new_event
from moot.core.ids import logical_invocation_id
from moot.core.state.council_policy import Bounds
from moot.core.state.floor import Floor
from tests.support.core.council_story import meaningful
from tests.support.core.simulator import ADA, CHAIR, TENANT, Life, World, compiled, definition, node
from tests.support.event_payloads import payload_json

MEMBERS = ("host:ada", "host:bo", "host:cy", "host:mo")
MODES = (
    "declared", "round-robin", "addressed", "raise-hand", "moderated", "small", "large", "auto"
)  # fmt: skip


def council(policy: dict[str, Any], members: int = 4, **config: Any) -> tuple[World, Life]:
    participants = [{"agentId": name, "name": name[5:].title()} for name in MEMBERS[:members]]
    gate = node(
        "convo", "core.conversationGate",
        config={"prompt": "Ship?", "participants": participants, "participation": policy, **config},
    )  # fmt: skip
    world = World()
    return world, world.start(compiled(definition([gate])))


def floor_of(life: Life) -> Floor:
    floor = life.run.conversations["convo"].floor
    assert floor is not None
    return floor


def woken(life: Life) -> list[tuple[str, str]]:
    return [(wake.agent, wake.task) for wake in floor_of(life).wakes.values()]


def call_models(world: World, life: Life) -> None:
    """Everybody who has the floor and has not asked its model yet does so."""
    for wake_id, wake in list(floor_of(life).wakes.items()):
        if not wake.spent.calls:
            world.take(life, InvitationReport("convo", wake_id, (effect(life, wake_id),), world.at))


def effect(life: Life, wake_id: str, type_: str = "started", **more: Any) -> NewEvent:
    """A call of the member's model, or the end of it."""
    place, _, index = wake_id.partition(".")
    ordinal, key = int(place) * 10_000 + int(index) * 100 + 1, "model:it"
    name = logical_invocation_id(TENANT, life.run.run_id, "convo", ordinal, key)
    said = {"invocationId": name, "ordinal": ordinal, "providerKey": key, "nodeId": "convo"}
    return new_event(f"moot.effect.{type_}", {**said, "attempt": 1, **more}, "convo")


def end(world: World, life: Life, outcome: str = "spoke", which: int = 0, **said: Any) -> None:
    """The member that has had the floor longest, or the nth of them, is done with it."""
    wake_id = list(floor_of(life).wakes)[which]
    usage = {"calls": 1, "inputTokens": 10, "outputTokens": 5}
    world.take(
        life,
        InvitationEnded(
            node_id="convo", wake_id=wake_id, at=world.at, outcome=outcome,
            **{"content": "I see.", "usage": usage, **said},
        ),
    )  # fmt: skip


def talk_on(world: World, life: Life, most: int = 500) -> int:
    """Everybody says something whenever asked, until nobody is."""
    for count in range(most):
        if not life.run.going or not floor_of(life).wakes:
            return count
        task = next(iter(floor_of(life).wakes.values())).task
        answers: dict[str, dict[str, Any]] = {
            "hand": {"raised": True, "urgency": 1},
            "choose": {"next": "host:bo"},
            "synthesise": {"decision": "We ship."},
            "vote": {"vote": "yes"},
        }
        spoken = task in ("speak", "synthesise", "summarise")
        end(world, life, "spoke" if spoken else "answered", answer=answers.get(task))
    raise AssertionError("it never comes to rest")


def speakers(life: Life) -> list[str]:
    return [
        payload_json(event)["turn"]["from"].removeprefix("host:")
        for event in life.told("conversation.exchanged")
    ]


def test_round_robin_gives_the_floor_in_the_declared_order_for_all_rounds() -> None:
    world, life = council({"mode": "round-robin", "rounds": 2}, members=3)
    talk_on(world, life)
    assert speakers(life) == ["ada", "bo", "cy", "ada", "bo", "cy"]
    assert payload_json(life.told("moot.participation.stopped")[-1])["reason"] == "rounds"


def test_who_is_next_is_recorded_before_anybody_speaks() -> None:
    _, life = council({"mode": "round-robin"})
    assert woken(life) == [("host:ada", "speak")]
    decided = life.told("moot.participation.decided")[0]
    assert payload_json(decided)["wakes"][0]["reason"] == "round 1"


def test_declared_order_answers_each_thing_a_person_says_to_all_once() -> None:
    world, life = council({"mode": "declared"}, members=2)
    talk_on(world, life)
    assert speakers(life) == ["ada", "bo"]
    world.answer(life, "convo", {"content": "And now?"}, ADA)
    talk_on(world, life)
    assert speakers(life) == ["ada", "bo", "user:ada", "ada", "bo"]


def test_only_who_is_addressed_speaks() -> None:
    world, life = council({"mode": "addressed"})
    assert woken(life) == []
    world.answer(life, "convo", {"content": "What does @Cy think?"}, ADA)
    assert woken(life) == [("host:cy", "speak")]
    end(world, life, content="@bo knows better.")
    assert woken(life) == [("host:bo", "speak")]


def test_hands_are_raised_and_the_most_urgent_speaks_first() -> None:
    world, life = council({"mode": "raise-hand", "rounds": 1}, members=3)
    assert [task for _, task in woken(life)] == ["hand"] * 3
    end(world, life, "answered", answer={"raised": True, "urgency": 1})
    end(world, life, "answered", answer={"raised": False})
    end(world, life, "answered", answer={"raised": True, "urgency": 5})
    talk_on(world, life)
    assert speakers(life) == ["cy", "ada"]


def test_nobody_raising_a_hand_is_a_consensus() -> None:
    world, life = council({"mode": "raise-hand", "rounds": 3}, members=2)
    end(world, life, "answered", answer={"raised": False})
    end(world, life, "answered", answer={"raised": False})
    assert payload_json(life.told("moot.participation.stopped")[-1])["reason"] == "consensus"


def test_the_moderator_chooses_and_a_choice_that_is_none_falls_back_to_the_order() -> None:
    world, life = council({"mode": "moderated", "moderator": "host:mo", "rounds": 1})
    assert woken(life) == [("host:mo", "choose")]
    end(world, life, "answered", answer={"next": "host:cy"})
    assert woken(life) == [("host:cy", "speak")]
    end(world, life)
    end(world, life, "answered", answer={"next": "host:nobody"})
    assert woken(life) == [("host:ada", "speak")]
    end(world, life)
    end(world, life, "answered", answer={"stop": True})
    assert woken(life) == [("host:mo", "synthesise")]


def test_in_a_blind_first_round_all_have_the_floor_at_once() -> None:
    world, life = council({"mode": "round-robin", "blind": True, "rounds": 2}, members=3)
    assert len(woken(life)) == 3
    assert {wake.blind for wake in floor_of(life).wakes.values()} == {0}
    for _ in range(3):
        end(world, life, which=0)
    assert len(woken(life)) == 1
    assert next(iter(floor_of(life).wakes.values())).blind is None


def test_a_council_ends_with_a_proposal_votes_and_dissent_by_name() -> None:
    policy = {"rounds": 1, "moderator": "host:mo", "vote": True, "close": "moderator"}
    world, life = council(policy)
    for _ in range(3):
        end(world, life)
    end(world, life, answer={"decision": "We ship in June."})
    assert [task for _, task in woken(life)] == ["vote"] * 3
    end(world, life, "answered", answer={"vote": "yes"})
    end(world, life, "answered", answer={"vote": "no", "reason": "Too early."})
    end(world, life, "answered", answer={"vote": "yes"})
    closed = payload_json(life.told("conversation.closed")[-1])
    assert closed["finalTurn"]["speakerId"] == "host:mo"
    outcome = closed["outcome"]
    assert outcome["text"] == "We ship in June."
    assert outcome["dissent"] == [{"by": "host:bo", "text": "Too early."}]
    assert outcome["citedTurns"] == [4]
    assert life.run.status == "completed"


def test_a_moderator_who_may_not_speak_closes_nothing_and_a_person_can() -> None:
    policy = {"rounds": 1, "moderator": "host:mo", "close": "moderator"}
    world, life = council(policy)
    world.control(life, {"mute": ["host:mo"]})
    for _ in range(3):
        end(world, life)
    end(world, life, answer={"decision": "We ship."})
    held = life.told("moot.turn.held")[-1]
    stopped = payload_json(life.told("moot.participation.stopped")[-1])
    assert (stopped["reason"], stopped["error"]["code"]) == ("close", "participant_muted")
    assert "/continue" in payload_json(life.told("conversation.exchanged")[-1])["turn"]["content"]
    assert payload_json(held)["held"] == str(held.sequence)
    world.answer(life, "convo", {"operation": "close", "decision": "Enough."}, ADA)
    assert life.run.status == "completed"


def test_a_member_that_stays_silent_is_passed_over_visibly() -> None:
    world, life = council({"limits": {"silence": 30}}, members=2)
    world.pass_time(30_000)
    world.take(life, TimePassed(world.at))
    assert (
        "Ada was silent" in payload_json(life.told("conversation.exchanged")[-1])["turn"]["content"]
    )
    assert woken(life) == [("host:bo", "speak")]


def test_a_member_that_fails_is_a_system_turn_and_the_talk_goes_on() -> None:
    world, life = council({}, members=2)
    end(world, life, "failed", error={"code": "model_unavailable", "message": "nobody is there"})
    said = payload_json(life.told("conversation.exchanged")[-1])["turn"]
    assert (said["role"], said["content"]) == (
        "system", "Ada could not answer: nobody is there",
    )  # fmt: skip
    assert woken(life) == [("host:bo", "speak")]


def test_two_agents_that_always_answer_each_other_stop_at_the_pair_limit() -> None:
    world, life = council({"mode": "addressed", "limits": {"pair": 3}}, members=2)
    world.answer(life, "convo", {"content": "@ada go"}, ADA)
    for _ in range(50):
        if not floor_of(life).wakes:
            break
        agent = woken(life)[0][0]
        end(world, life, content="@bo so?" if agent == "host:ada" else "@ada no")
    stopped = payload_json(life.told("moot.participation.stopped")[-1])
    assert (stopped["reason"], stopped["limit"]) == ("pair", 3)
    assert len([name for name in speakers(life) if name in ("ada", "bo")]) <= 4
    assert "/continue" in payload_json(life.told("conversation.exchanged")[-1])["turn"]["content"]
    world.answer(life, "convo", {"content": "@bo once more"}, ADA)
    assert woken(life) == [("host:bo", "speak")]


@pytest.mark.parametrize("name", ["consecutive", "calls", "tokens", "minutes"])
def test_a_limit_stops_it_before_the_next_call_and_a_person_lets_it_go_on(name: str) -> None:
    limits = {"consecutive": 2, "calls": 2, "tokens": 30, "minutes": 1}
    world, life = council({"rounds": 9, "limits": {name: limits[name]}}, members=3)
    end(world, life)
    if name == "minutes":
        world.pass_time(61_000)
    end(world, life)
    assert woken(life) == []
    assert payload_json(life.told("moot.participation.stopped")[-1])["reason"] == name
    world.control(life, {"continue": True})
    assert woken(life) == [("host:cy", "speak")]


def test_muting_and_pausing_hold_back_a_turn_that_is_already_under_way() -> None:
    world, life = council({}, members=2)
    world.control(life, {"mute": ["host:ada"]})
    end(world, life, content="Too late?")
    held = life.told("moot.turn.held")[-1]
    assert payload_json(held)["turn"]["content"] == "Too late?"
    world.control(life, {"unmute": ["host:ada"], "admit": str(held.sequence)})
    said = [payload_json(event)["turn"] for event in life.told("conversation.exchanged")]
    assert ("host:ada", "Too late?") in [(turn["from"], turn["content"]) for turn in said]
    with pytest.raises(MootError):
        world.control(life, {"drop": str(held.sequence)})


def test_a_person_who_interrupts_takes_the_floor_and_the_member_has_it_again() -> None:
    world, life = council({"interject": "interrupt"}, members=2)
    before = list(floor_of(life).wakes)
    world.answer(life, "convo", {"content": "Wait."}, ADA)
    ended = payload_json(life.told("moot.participation.answered")[-1])
    assert (ended["outcome"], ended["wakeId"]) == ("superseded", before[0])
    assert woken(life) == [("host:ada", "speak")] and list(floor_of(life).wakes) != before


def test_an_outside_member_answers_its_wake_by_speaking() -> None:
    world, life = council({}, members=2)
    turn = {"role": "agent", "speakerId": "host:ada", "content": "Here."}
    world.answer(life, "convo", turn, CHAIR)
    assert woken(life) == [("host:bo", "speak")]
    assert payload_json(life.told("moot.participation.answered")[-1])["outcome"] == "spoke"


def test_an_answer_to_a_wake_that_is_over_causes_nothing() -> None:
    world, life = council({}, members=2)
    wake_id = next(iter(floor_of(life).wakes))
    late = InvitationEnded(
        node_id="convo", wake_id=wake_id, at=world.at, outcome="spoke", content="x"
    )
    world.take(life, late)
    assert world.take(life, late) == []


policies = st.fixed_dictionaries(
    {},
    optional={
        "mode": st.sampled_from(MODES),
        "rounds": st.integers(1, 4),
        "moderator": st.sampled_from([*MEMBERS, "host:nobody"]),
        "blind": st.booleans(),
        "interject": st.sampled_from(["queue", "interrupt", "note"]),
        "vote": st.booleans(),
        "close": st.sampled_from(["person", "moderator"]),
        "window": st.integers(2, 4),
        "summarise": st.sampled_from([*MEMBERS, "host:nobody"]),
        "limits": st.fixed_dictionaries(
            {},
            optional={
                "consecutive": st.integers(1, 12),
                "pair": st.integers(1, 4),
                "calls": st.integers(1, 30),
                "tokens": st.integers(1, 400),
                "silence": st.integers(1, 60),
            },
        ),
    },
).map(meaningful)
TEXTS = ("hm", "@bo?", "@ada @cy both", "@mo", "@everyone", "@nobody", "")
answers = st.sampled_from(
    [None, {}, {"raised": True, "urgency": 2}, {"raised": True, "urgency": "x"}, {"next": 5},
     {"next": "host:bo"}, {"stop": True}, {"decision": "Ship."}, {"vote": "no", "reason": "no"}]
)  # fmt: skip
moves = st.lists(
    st.one_of(
        st.tuples(
            st.just("end"),
            st.sampled_from(["spoke", "spoke", "answered", "passed", "failed", "refused"]),
            st.sampled_from(TEXTS), answers,
        ),
        st.tuples(st.just("say"), st.sampled_from(TEXTS), st.none(), st.none()),
        st.tuples(
            st.just("control"),
            st.sampled_from(
                [{"mute": ["host:bo"]}, {"unmute": ["host:bo"]}, {"pause": True}, {"pause": False},
                 {"prod": ["host:cy"]}, {"continue": True}, {"continue": {"rounds": 2}},
                 {"discussion": True}, {"participation": {"mode": "small"}},
                 {"ttl_seconds": 5}, {"ttl_seconds": None}, {"invited_auto": True}]
            ),
            st.none(), st.none(),
        ),
        st.tuples(st.just("wait"), st.integers(1, 100), st.none(), st.none()),
    ),
    max_size=60,
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(policies, st.integers(2, 4), moves)
def test_whatever_happens_bounds_hold_and_every_wake_ends_once(
    policy: dict[str, Any], members: int, story: list[Any]
) -> None:
    world, life = council(policy, members)
    for kind, first, text, answer in story:
        if not life.run.going:
            break
        call_models(world, life)
        talk = life.run.conversations["convo"]
        if kind == "end" and floor_of(life).wakes:
            end(world, life, first, content=text, answer=answer)
        elif kind == "say":
            world.answer(life, "convo", {"content": first}, ADA)
        elif kind == "control":
            world.refused(life, world.controlling(first))
        elif kind == "wait":
            world.pass_time(first * 1000)
            world.take(life, TimePassed(world.at))
        now, later = next_step(talk, world.at), next_step(talk, world.at + 10**9)
        assert (now is None) == (later is None), "whether there is a step does not hang on time"
    bounds_hold(life)


def bounds_hold(life: Life) -> None:
    """Read from the log alone, by somebody who knows nothing of the fold."""
    limits = Bounds()
    open_wakes: set[str] = set()
    calls = streak = 0
    for event in life.log:
        said = payload_json(event)
        if event.type == "moot.participation.set":
            given_ = said["policy"].get("limits", {})
            limits = Bounds(**given_)
        elif event.type == "moot.participation.decided":
            for wake in said["wakes"]:
                assert wake["wakeId"] not in open_wakes
                open_wakes.add(wake["wakeId"])
            assert calls + len(said["wakes"]) <= limits.calls or not said["wakes"]
            assert streak <= limits.consecutive
        elif event.type == "moot.participation.answered":
            open_wakes.remove(said["wakeId"])
        elif event.type == "moot.effect.started":
            calls += 1
            assert calls <= limits.calls, "a call that was made, whatever became of it"
        elif event.type == "moot.participation.continued":
            calls = streak = 0
        elif event.type == "conversation.exchanged":
            role, meta = said["turn"]["role"], said["turn"].get("meta", {})
            counts = role == "agent" and "summary" not in meta
            streak = 0 if role == "user" else streak + counts


@settings(max_examples=60, deadline=None)
@given(policies, st.integers(2, 4))
def test_members_who_always_speak_come_to_rest(policy: dict[str, Any], members: int) -> None:
    world, life = council(policy, members)
    talk_on(world, life)
