"""What of an event is found by its words, whatever its payload says."""

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moot.core.events import Event, encode, iso
from moot.core.search.indexed_text import (
    KINDS,
    MAX_RUN_TEXT,
    TYPES_WITH_TEXT,
    indexed_texts,
    texts_from_bytes,
)
from moot.core.state.conversation import THREAD
from tests.support.event_payloads import event_with

WORDS = st.sampled_from(
    ["inputs", "outputs", "error", "turn", "initialTurn", "finalTurn", "outcome", "title", "tags"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(WORDS, inner, max_size=2),
    max_leaves=5,
)


def told(type_: str, **payload: Any) -> Event:
    return event_with(
        event_id="r.3", run_id="r", sequence=3, type=type_, timestamp=iso(1),
        payload=payload,
        node_id="talk",
    )  # fmt: skip


#: fields that these events need besides
FIELDS = {
    "conversationId": "c", "turnIndex": 0, "definition": "d", "variables": {}, "durationMs": 0,
    "capabilities": [],
}  # fmt: skip


def found(type_: str, **payload: Any) -> list[tuple[str, str]]:
    event = told(type_, **{**FIELDS, **payload})
    return [(each.kind, each.text) for each in indexed_texts(event)]


def test_a_run_has_its_workflow_its_tags_and_its_inputs() -> None:
    given = {"workflowId": "brief", "tags": ["urgent"], "inputs": {"a": [1, "two", True, None]}}
    assert found("run.started", **given) == [("run", "brief\nurgent\n1\ntwo")]


def test_a_thread_has_its_title_and_what_it_was_called_later() -> None:
    assert found("run.started", workflowId=THREAD, inputs={"title": "Q1"}) == [("thread", "Q1")]
    assert found("run.started", workflowId=THREAD, inputs={"question": "Q1?"}) == []
    assert found("moot.thread.renamed", title="Q2", by="user:eve") == [("thread", "Q2")]


def test_an_outcome_is_found_where_it_was_decided_only() -> None:
    outputs = {"talk": {"conversationId": "r:talk:1", "outcome": "June"}, "sum": "all told"}
    assert found("run.completed", outputs=outputs) == [("run", "all told")]
    system = {"from": "system", "role": "system", "content": "user closed the conversation."}
    closed = {"conversationId": "r:talk:1", "finalTurn": system}
    assert found("conversation.closed", **closed, outcome={"text": "June"}) == [
        ("decision", "June")
    ]
    assert found("conversation.closed", **closed, outcome="June") == []


def test_what_a_run_was_given_counts_as_far_as_it_is_looked_at() -> None:
    [(_, text)] = found(
        "run.started", workflowId="w", inputs={"a": "x" * 2 * MAX_RUN_TEXT, "b": "y"}
    )
    assert len(text) <= MAX_RUN_TEXT + 1 and "y" not in text


@given(st.sampled_from(sorted(TYPES_WITH_TEXT)), st.dictionaries(WORDS, JSON, max_size=3))
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_no_payload_is_too_odd(type_: str, payload: dict[str, Any]) -> None:
    event = told(type_, **payload)
    for each in indexed_texts(event):
        assert each.kind in KINDS and each.text.strip()
    assert texts_from_bytes(encode(event)) == indexed_texts(event)


def test_what_is_no_event_has_no_words() -> None:
    for body in (b"", b"{}", b"[]", b"\xff", b'{"type":"conversation.exchanged"}'):
        assert texts_from_bytes(body) == []
