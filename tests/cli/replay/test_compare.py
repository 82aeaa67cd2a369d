"""What counts as a difference between two events, and how two texts are shown as one."""

import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.cli.replay.compare import (
    MAX_WORDS,
    describe_changes,
    differing_paths,
    event_text,
    is_same,
    word_diff,
)
from moot.cli.shared.events import read_event
from moot.core.events import Event
from moot.core.replay.compare import is_same_event as as_the_host_has_it

RUN, OTHER = "run_" + "a" * 20, "run_" + "b" * 20
words = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=30).map(" ".join)
TIME = "2026-01-01T00:00:00.000000Z"
keys = st.sampled_from(["durationMs", "ts", "turn", "key", "runId", "outputs", "via", "mergeOrder"])
values = st.recursive(
    st.sampled_from([None, True, 1, 1.5, "x", RUN, OTHER, f"{RUN}:gate:1", TIME]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(keys, inner, max_size=2),
    max_leaves=5,
)
payloads = st.dictionaries(keys, values, max_size=3)


def event(type_: str = "node.completed", node: str = "n", /, **payload: Any) -> Event:
    return read_event(
        {"eventId": "", "runId": "", "sequence": 0, "type": type_, "timestamp": "",
         "payload": payload, "nodeId": node}
    )  # fmt: skip


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ({"durationMs": 4}, {"durationMs": 5}),
        ({"childRunId": RUN}, {"childRunId": OTHER}),
        ({"key": f"{RUN}:gate:1"}, {"key": f"{OTHER}:gate:1"}),
        ({"dueAt": "2026-01-01T00:00:00.5Z"}, {"dueAt": "2027-01-01T00:00:00Z"}),
        ({"turn": {"ts": 1, "content": "hi"}}, {"turn": {"ts": 2, "content": "hi"}}),
    ],
)
def test_numbers_clocks_and_made_up_ids_are_no_difference(a: Any, b: Any) -> None:
    assert is_same(event(**a), event(**b))


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        ({"outputs": {"x": 1}}, {"outputs": {"x": 2}}, "outputs.x 1 → 2"),
        ({"outputs": {"x": [1, 2]}}, {"outputs": {"x": [1]}}, "outputs.x[1] 2 → nothing"),
        ({"x": {}}, {"x": {"y": None}}, "x {} → nothing; x.y nothing → null"),
        ({"x": 1}, {"x": True}, "x 1 → true"),
        ({"by": "key_" + "a" * 20}, {"by": "bo"}, f'by "key_{"a" * 20}" → "bo"'),
    ],
)  # fmt: skip
def test_what_was_said_is_compared_place_by_place(a: Any, b: Any, said: str) -> None:
    assert describe_changes(event(**a), event(**b)) == said


def test_where_a_fork_comes_from_is_no_difference() -> None:
    began = event("run.started", inputs={}, forkedFrom={"mode": "branch"})
    assert is_same(began, event("run.started", inputs={}))


@pytest.mark.parametrize("key", ["durationMs", "ts", "via", "limits", "scopeId", "editedBy"])
def test_what_only_looks_like_the_hosts_own_is_compared(key: str) -> None:
    """In what people and nodes say there are no clocks of the host, however it is called."""
    assert differing_paths(event(outputs={key: 1}), event(outputs={key: 2})) == [f"outputs.{key}"]
    assert not is_same(event(outputs={"x": {key: 1}}), event(outputs={"x": {key: 2}}))


def test_times_that_nodes_tell_are_compared() -> None:
    a, b = ({"outputs": {"at": f"202{year}-01-01T00:00:00Z"}} for year in (6, 7))
    assert differing_paths(event(**a), event(**b)) == ["outputs.at"]


@given(payloads, payloads)
def test_the_terminal_agrees_with_the_host(a: dict[str, Any], b: dict[str, Any]) -> None:
    """As ``:diff`` does, for whatever is said."""
    events = [
        Event(
            event_id=f"{run}.1", run_id=run, sequence=1, type="node.completed", timestamp=TIME,
            payload=told, node_id="n",
        )
        for run, told in ((RUN, a), (OTHER, b))
    ]  # fmt: skip
    shown = [read_event(msgspec.to_builtins(each)) for each in events]
    assert is_same(*shown) == as_the_host_has_it(*events)


def test_another_node_or_type_differs_in_all() -> None:
    assert differing_paths(event(x=1), event("node.completed", "m", x=1)) == ["type"]
    assert not is_same(event(x=1), event("node.failed", x=1))


def test_the_words_of_an_event_are_a_turn_a_chunk_or_a_message() -> None:
    assert event_text(event(turn={"content": "hi"})) == "hi"
    assert event_text(event(initialTurn={"content": "hi"})) == "hi"
    assert event_text(event(chunk="hi")) == event_text(event(message="hi")) == "hi"
    assert event_text(event(turn={"content": {"a": 1}})) is None
    assert event_text(event(outputs={})) is None


def test_two_texts_become_one() -> None:
    assert word_diff("Two of three sources", "Two of four sources") == (
        "Two of [-three-] {+four+} sources"
    )
    assert word_diff("a b", "a b c") == "a b {+c+}"
    assert word_diff("", "x") == "{+x+}"


@given(words, words)
def test_each_text_can_be_read_out_of_the_two_where_nothing_is_left_out(a: str, b: str) -> None:
    """Seen without the marks of the other side, what is left is the text, but for omissions."""
    shown = word_diff(a, b)
    for text, gone, kept in ((a, r"\{\+.*?\+\}", r"\[-|-\]"), (b, r"\[-.*?-\]", r"\{\+|\+\}")):
        left = re.sub(kept, "", re.sub(gone, "", shown)).split()
        pieces = " ".join(left).split("…")
        assert re.fullmatch(".*".join(re.escape(piece) for piece in pieces), " ".join(text.split()))


def test_a_text_too_long_to_compare_is_compared_from_its_first_difference() -> None:
    long = ["w"] * (MAX_WORDS * 3)
    shown = word_diff(" ".join([*long, "x"]), " ".join([*long, "y"]))
    assert shown.endswith("[-x-] {+y+}")
    assert len(shown) < 100
