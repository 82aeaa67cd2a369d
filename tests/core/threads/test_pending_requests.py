"""What is owed to whom, for any order of questions and answers."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from moot.core.events import Event
from moot.core.state.agent_chain import AgentChain
from moot.core.state.conversation import Conversation
from moot.core.threads.pending_requests import MOST_PASSED, PendingRequests, RequestReader
from tests.support.event_payloads import event_with

REX = "host:rex"
TALK = "run_1:talk:1"


#: fields that these events need besides
FIELDS = {"turnIndex": 0, "phase": "talk", "round": 1, "wakes": [], "capabilities": []}


def event(sequence: int, type_: str, **payload: Any) -> Event:
    return event_with(
        event_id=f"run_1.{sequence}", run_id="run_1", sequence=sequence, type=type_,
        timestamp="2030-01-01T00:00:00.000000Z",
        payload={"conversationId": TALK, **FIELDS, **payload},
        causation_id=f"run_1.{max(0, sequence - 1)}",
    )  # fmt: skip


def listener(name: str = REX) -> RequestReader:
    talk = Conversation(conversation_id=TALK, node_id="talk", opened_at=0, opened_seq=0, last_seq=0)
    return RequestReader(talk, name)


def turn(sequence: int, **said: Any) -> Event:
    return event(sequence, "conversation.exchanged", turn=said)


def called(sequence: int, reason: str) -> Event:
    row = {"agentId": REX, "reason": reason}
    return event(sequence, "moot.participation.decided", called=[row])


def test_a_call_is_about_the_turn_that_named_somebody_whatever_was_said_since() -> None:
    heard = listener()
    ask = {"role": "user", "from": "user", "meta": {"kind": "task"}}
    heard.asked(turn(4, **ask, to="rex", content="Count."))
    heard.asked(turn(5, role="user", **{"from": "user:ann"}, content="for all"))
    heard.asked(turn(6, role="agent", speakerId="host:ada", content="No."))
    due = heard.asked(called(9, "addressed by user"))
    assert due is not None and (due.seq, due.turn, due.task) == (9, 4, True)
    due = heard.asked(called(10, "a person spoke to all"))
    assert due is not None and (due.turn, due.task) == (5, False)
    due = heard.asked(called(12, "prodded"))
    assert due is not None and due.turn == 11, "what caused it"


@given(st.recursive(st.none() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(
    st.sampled_from(["turn", "called", "wakes", "agentId", "from", "to", "meta", "content"]), x)),
    st.sampled_from(["conversation.exchanged", "moot.participation.decided", "x.y"]))  # fmt: skip
def test_whatever_a_log_holds_it_is_read(payload: Any, type_: str) -> None:
    said = payload if isinstance(payload, dict) else {"turn": payload, "called": payload}
    owed = PendingRequests(listener())
    owed.hear(event(3, type_, **said))
    assert len(owed.due) <= 1


@given(st.lists(st.tuples(st.sampled_from(["ask", "answer", "say"]), st.integers(0, 9))))
def test_what_is_owed_is_what_was_asked_and_is_in_no_answer(story: list[tuple[str, int]]) -> None:
    owed = PendingRequests(listener())
    model: list[int] = []
    for sequence, (what, which) in enumerate(story):
        if what == "ask":
            owed.hear(turn(sequence, role="user", **{"from": "user"}, to="rex", content="?"))
            model.append(sequence)
        elif what == "answer" and model:
            place = model[which % len(model)]
            meta = {"replyTo": place}
            owed.hear(turn(sequence, role="agent", speakerId=REX, content="!", meta=meta))
            model.remove(place)
        else:
            owed.hear(turn(sequence, role="agent", speakerId=REX, content="!"))
            model = []
    assert [due.turn for due in owed.due] == model


def test_a_word_to_somebody_else_answers_nothing_that_is_open() -> None:
    owed = PendingRequests(listener())
    own = {"role": "agent", "speakerId": REX}
    owed.hear(turn(1, role="user", **{"from": "user:ann"}, to="rex", content="Are you there?"))
    owed.hear(turn(2, role="agent", speakerId="host:ada", to="rex", content="And mine?"))
    owed.hear(turn(3, **own, to="bo", content="Do you know?"))
    assert [due.turn for due in owed.due] == [1, 2]
    owed.hear(turn(4, **own, to="host:ada", content="Yours: yes."))
    assert [due.turn for due in owed.due] == [1]
    owed.hear(turn(5, **own, to="user", content="I am, whoever of you asked."))
    assert owed.due == []


def test_whoever_asks_for_a_person_asks_each_of_them() -> None:
    question = turn(1, role="agent", speakerId=REX, to="user", content="May I?")
    for name, asked in (("user", True), ("user:eve", True), ("host:ada", False), (REX, False)):
        assert (listener(name).asked(question) is not None) is asked


def test_what_any_person_may_answer_is_open_until_one_does() -> None:
    owed = PendingRequests(listener("user:eve"))
    question = {"role": "agent", "speakerId": REX, "content": "?"}
    owed.hear(turn(1, **question, to="user"))
    owed.hear(turn(2, **question, to="user:eve"))
    owed.hear(turn(3, role="user", **{"from": "user:ann"}, to="host:bo", content="Bo, you?"))
    assert [due.turn for due in owed.due] == [1, 2]
    owed.hear(turn(4, role="user", **{"from": "user:ann"}, content="Yes."))
    assert [due.turn for due in owed.due] == [2], "that one is for eve alone"
    owed.hear(turn(5, role="user", **{"from": "user:ann"}, to="user:eve", content="Eve?"))
    assert [due.turn for due in owed.due] == [2, 5]


def test_who_passes_on_what_was_asked_is_not_asked_for_ever() -> None:
    owed, to_bo = (
        PendingRequests(listener()),
        {"role": "agent", "speakerId": REX, "to": "bo", "content": "Bo?"},
    )
    owed.hear(turn(1, role="user", **{"from": "user:ann"}, to="rex", content="A person asks."))
    owed.hear(turn(2, role="agent", speakerId="host:ada", to="rex", content="Pass it on."))
    task = {"role": "user", "from": "user", "meta": {"kind": "task"}}
    owed.hear(turn(3, **task, to="rex", content="Count."))
    for sequence in range(4, 8):
        owed.hear(turn(sequence, **to_bo, meta={"replyTo": 99}))  # that answers something else
    for sequence in range(8, 8 + MOST_PASSED):
        assert [due.turn for due in owed.due] == [1, 2, 3]
        owed.hear(turn(sequence, **to_bo))
    assert [due.turn for due in owed.due] == [3], "a task has a result"


def test_while_agents_are_stopped_nothing_is_owed_to_them() -> None:
    talk = Conversation(conversation_id=TALK, node_id="talk", opened_at=0, opened_seq=0, last_seq=0)
    talk.chain = AgentChain(over="pair", since=9)
    owed = PendingRequests(RequestReader(talk, REX))
    owed.hear(turn(1, role="agent", speakerId="host:ada", to="rex", content="And you?"))
    assert owed.due and owed.first_open() is None
    owed.hear(turn(2, role="user", **{"from": "user"}, to="rex", content="I ask."))
    offered = owed.first_open()
    assert offered is not None and offered.turn == 2
