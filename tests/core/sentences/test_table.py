"""One table turns events into sentences; every type has a row or is silent on purpose."""

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from moot.core.catalogue import CATALOGUE, PAYLOADS
from moot.core.sentences.controls import control_sentences
from moot.core.sentences.table import SENTENCES, SILENT, sentence_of, text_of
from moot.core.sentences.turns import spoken_turn
from tests.support.event_payloads import example_event, example_fields

#: rows that have nothing to say about an event with nothing but its required fields
QUIET = {"moot.participation.set", "moot.participation.decided", "moot.participation.answered"}


def test_every_type_of_the_catalogue_has_a_row_or_is_silent() -> None:
    rows = {row.payload for row in CATALOGUE}
    assert rows == SENTENCES.keys() | SILENT
    assert not SENTENCES.keys() & SILENT


@pytest.mark.parametrize("type_", sorted(PAYLOADS))
def test_every_event_is_one_line_of_plain_text(type_: str) -> None:
    sentence = sentence_of(example_event(type_).payload, lambda name: f"<{name}>")
    assert (sentence is None) == (PAYLOADS[type_] in SILENT or type_ in QUIET)
    if sentence is not None:
        assert sentence.whole and "\n" not in sentence.whole and "UNSET" not in sentence.whole


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 99) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)
WORDS = st.sampled_from(["mute", "pause", "prod", "ttl_seconds", "discussion", "wakes", "fly"])


@settings(deadline=None)
@given(st.sampled_from(sorted(PAYLOADS)), st.data())
def test_no_payload_stops_the_telling(type_: str, data: st.DataObject) -> None:
    """Also one that does not fit its type: then its bytes are named."""
    names = sorted(example_fields(type_)) or ["x"]
    fields = data.draw(st.dictionaries(st.sampled_from(names), VALUES, max_size=3))
    text = text_of(example_event(type_, **fields).payload)
    assert text is None or text


@settings(deadline=None)
@given(st.dictionaries(WORDS, VALUES, max_size=3), st.sampled_from(["user", "host:ada", "system"]))
def test_each_word_of_a_control_has_a_sentence(content: dict[str, Any], sender: str) -> None:
    payload = example_event("moot.thread.control", content=content, **{"from": sender}).payload
    assert len(control_sentences(payload, str)) == max(1, len(content))


@pytest.mark.parametrize(
    ("sender", "content", "sentences"),
    [
        ("user", {"mute": {"targets": ["bo"], "seconds": 600}},
         ["user muted host:bo for 10 minutes"]),
        ("user", {"pause": {}, "prod": ["bo"]},
         ["user paused the agents", "user asked host:bo to speak once"]),
        ("user", {"uninvite": "rex"}, ["user set uninvite to rex, which changed nothing"]),
        ("host:ada", {"mute": ["bo"]}, ["host:ada set mute to bo, which changed nothing"]),
        ("host:ada", {"done": True}, ["host:ada had nothing more to say"]),
        ("system", {"unmute": ["bo"]}, ["system unmuted host:bo"]),
        ("user", {}, ["user said nothing"]),
        ("user", 5, ["user sent what is no control, which changed nothing"]),
    ],
)  # fmt: skip
def test_a_control_says_what_it_changed(sender: str, content: Any, sentences: list[str]) -> None:
    payload = example_event("moot.thread.control", content=content, **{"from": sender}).payload
    assert control_sentences(payload, str) == sentences


ERROR = {"code": "busy", "message": "later"}


@pytest.mark.parametrize(
    ("type_", "fields", "text"),
    [
        ("agent.toolReturned", {"toolName": "count", "status": "ok", "outcome": 0}, "count gave 0"),
        ("agent.toolReturned", {"toolName": "count", "status": "ok"}, "count gave null"),
        ("moot.participant.joined", {"participantId": "host:bo", "by": "host:bo"},
         "host:bo joined"),
        ("moot.participant.left", {"participantId": "host:bo", "by": "user"},
         "user sent host:bo away"),
        ("node.retried", {"attempt": 2, "delayMs": 1500, "lastError": ERROR},
         "failed: busy: later; again in 1.5 s (attempt 2)"),
        ("variable.changed", {"name": "x"}, "x = (sealed)"),
        ("moot.participation.stopped", {"reason": "pair"},
         "the council stops: two agents have answered one another often enough"),
        ("interrupt.requested", {"kind": "approval", "data": {"title": "Ship it?"}},
         "asks (approval): Ship it?"),
    ],
)  # fmt: skip
def test_the_words_of_an_event(type_: str, fields: dict[str, Any], text: str) -> None:
    assert text_of(example_event(type_, **fields).payload) == text


def test_a_turn_is_read_from_whichever_event_holds_it() -> None:
    turn = {"from": "user", "speakerId": "host:ada", "content": "Hm.", "turnIndex": 4,
            "meta": {"kind": "task", "tags": ["left"]}}  # fmt: skip
    for type_, key in (
        ("conversation.opened", "initialTurn"),
        ("conversation.exchanged", "turn"),
        ("conversation.closed", "finalTurn"),
    ):
        read = spoken_turn(example_event(type_, **{key: turn}).payload)
        assert read is not None
        assert (read.speaker, read.index, read.kind, read.tags) == ("host:ada", 4, "task", ["left"])
    assert spoken_turn(example_event("run.completed").payload) is None
