"""What is owed to whom, for any order of questions and answers."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from moot.core.addressed import Listener, Owed
from moot.core.events import Event
from moot.core.waiting import Conversation

REX = "host:rex"
TALK = "run_1:talk:1"


def event(sequence: int, type_: str, **payload: Any) -> Event:
    return Event(
        event_id=f"run_1.{sequence}", run_id="run_1", sequence=sequence, type=type_,
        timestamp="2030-01-01T00:00:00.000000Z", payload={"conversationId": TALK, **payload},
        causation_id=f"run_1.{max(0, sequence - 1)}",
    )  # fmt: skip


def listener() -> Listener:
    talk = Conversation(conversation_id=TALK, node_id="talk", opened_at=0, opened_seq=0, last_seq=0)
    return Listener(talk, REX)


def turn(sequence: int, **said: Any) -> Event:
    return event(sequence, "conversation.exchanged", turn=said)


def test_an_old_log_that_does_not_say_for_which_turn_means_the_one_before() -> None:
    row = {"agentId": REX, "reason": "prodded"}
    due = listener().asked(event(9, "moot.participation.decided", called=[row]))
    assert due is not None and (due.seq, due.turn, due.task) == (9, 8, False)
    row |= {"replyTo": 5, "result": True}
    due = listener().asked(event(9, "moot.participation.decided", called=[row]))
    assert due is not None and (due.turn, due.task) == (5, True)


@given(st.recursive(st.none() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(
    st.sampled_from(["turn", "called", "wakes", "agentId", "from", "to", "meta", "content"]), x)),
    st.sampled_from(["conversation.exchanged", "moot.participation.decided", "x.y"]))  # fmt: skip
def test_whatever_a_log_holds_it_is_read(payload: Any, type_: str) -> None:
    said = payload if isinstance(payload, dict) else {"turn": payload, "called": payload}
    owed = Owed(listener())
    owed.hear(event(3, type_, **said))
    assert len(owed.due) <= 1


@given(st.lists(st.tuples(st.sampled_from(["ask", "answer", "say"]), st.integers(0, 9))))
def test_what_is_owed_is_what_was_asked_and_is_in_no_answer(story: list[tuple[str, int]]) -> None:
    owed = Owed(listener())
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
