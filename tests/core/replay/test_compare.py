"""When two events say the same: clocks and made-up names do not count, everything else does."""

from typing import Any

import hypothesis.strategies as st
from hypothesis import given
from msgspec import UNSET

from moot.core.events import Event
from moot.core.replay.compare import diff_states, is_same_event
from moot.core.replay.lineage import child_forked_event, living_children
from moot.core.runs.start import RunLimits
from moot.core.state.run import NodeState, Run, apply
from moot.core.state.status import NodeStatus, Status
from tests.core.replay.test_properties import lived
from tests.support.core.random_flows import Move, bodies, examples, limits, moves
from tests.support.event_payloads import event_with, payload_json

FIRST, SECOND = "run_aaaaaaaaaaaaaaaaaaaa", "run_bbbbbbbbbbbbbbbbbbbb"
NAME = "int_cccccccccccccccccccc"

json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)


def event(payload: dict[str, Any], run_id: str = FIRST, **given: Any) -> Event:
    fields = {"type": "node.completed", "timestamp": "2026-01-01T00:00:00.000000Z", **given}
    return event_with(event_id=f"{run_id}.1", run_id=run_id, sequence=1, payload=payload, **fields)


@given(json, json)
@examples(200)
def test_what_nodes_gave_is_compared_as_json(one: Any, other: Any) -> None:
    a, b = ({"outputs": each, "durationMs": n} for n, each in enumerate((one, other)))
    assert is_same_event(event(a), event(a, SECOND))
    strictly = repr(one) == repr(other) or (one == other and not _mixed(one, other))
    assert is_same_event(event(a), event(b)) == strictly


def _mixed(one: Any, other: Any) -> bool:
    """Python takes true for 1; JSON does not."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is not other
    if isinstance(one, list):
        return any(map(_mixed, one, other))
    return isinstance(one, dict) and any(_mixed(one[key], other[key]) for key in one)


def _took(said: Any, milliseconds: int) -> Any:
    if not isinstance(said, dict):
        return said
    found = {name: _took(item, milliseconds) for name, item in said.items()}
    return {**found, "milliseconds": milliseconds} if "inputTokens" in said else found


def test_clocks_and_names_of_the_hosts_own_do_not_count() -> None:
    ours = {"interruptId": NAME, "key": f"{FIRST}:n:1", "resolvedAt": "a", "dueAt": "b"}
    theirs = {"interruptId": NAME[:-1] + "d", "key": f"{SECOND}:n:1", "resolvedAt": "c"}
    assert is_same_event(event(ours), event(theirs, SECOND))
    turn = {"from": "user", "content": "x", "ts": 1}
    assert is_same_event(event({"turn": turn}), event({"turn": {**turn, "ts": 2}}))
    used = {"calls": 1, "inputTokens": 9, "model": "demo"}
    for said in ({"usage": used}, {"outputs": {"usage": used}}, {"turn": {**turn, "meta": used}}):
        one, other = (_took(said, n) for n in (3, 4))
        assert is_same_event(event(one), event(other)) and not is_same_event(
            event(one), event({"usage": {}})
        )
    fork = {"workflowId": "w", "forkedFrom": {"sourceRunId": FIRST}}
    assert is_same_event(
        event({"workflowId": "w"}, type="run.started"), event(fork, type="run.started")
    )


def test_names_that_somebody_chose_and_clocks_that_somebody_kept_do() -> None:
    assert not is_same_event(event({"messageId": "mine"}), event({"messageId": "yours"}))
    assert not is_same_event(event({"outputs": {"ts": 1}}), event({"outputs": {"ts": 2}}))
    assert not is_same_event(event({"outputs": {"dueAt": 1}}), event({"outputs": {"dueAt": 2}}))
    assert not is_same_event(event({"a": 1}), event({"a": True}))
    assert not is_same_event(event({}), event({}, type="node.failed"))
    assert not is_same_event(event({}, node_id="a"), event({}, node_id="b"))


@given(bodies(), st.lists(moves, max_size=8), limits)
@examples(40)
def test_every_log_is_the_same_as_itself(
    body: dict[str, Any], happened: list[Move], ceilings: RunLimits
) -> None:
    for life in lived(body, happened, ceilings).lives.values():
        assert all(is_same_event(each, each) for each in life.log)
        assert diff_states(life.run, life.run) == {}


def test_states_differ_where_they_differ() -> None:
    a = Run("a", status=Status.RUNNING, variables={"x": 1, "y": 2}, channels={"c": [1]})
    b = Run("b", status=Status.FAILED, variables={"x": 1, "z": 3}, channels={"c": [2]})
    assert diff_states(a, b) == {
        "status": {"a": "running", "b": "failed"},
        "variables": {"y": {"a": 2}, "z": {"b": 3}},
        "channels": {"c": {"a": [1], "b": [2]}},
    }


@given(st.lists(st.text("abc", min_size=1), unique=True, min_size=1), st.data())
@examples(50)
def test_a_forked_child_takes_the_place_of_the_one_it_was(
    names: list[str], data: st.DataObject
) -> None:
    old = data.draw(st.sampled_from(names))
    state = NodeState(status=NodeStatus.RUNNING, living={name: n for n, name in enumerate(names)})
    run = Run("a", status=Status.RUNNING, nodes={"n": state}, active={"n": None})
    run.children = dict.fromkeys(names)
    new = child_forked_event("n", old, "fork", {old: 1})
    apply(run, event(payload_json(new), type=new.type, node_id=new.node_id or UNSET))
    expected = ["fork" if name == old else name for name in names]
    assert list(run.children) == [child for _, child in living_children(run)] == expected
    assert list(run.nodes["n"].living.values()) == list(range(len(names)))
