"""Which memory a run has and whose writes it knows of, given its log."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.core.events import Event
from moot.core.payloads.runs import InheritedWrites
from moot.core.state.memory import (
    RunMemory,
    can_see_write,
    family_root,
    memory_of_fork,
    memory_scope,
    memory_view,
)
from moot.core.state.run import Run, fold
from tests.support.event_payloads import event_with

#: fields that these events need besides
FIELDS = {"workflowId": "w", "definition": "d", "inputs": {}, "variables": {}, "typeId": "t"}


def event(type_: str, sequence: int = 0, **given: Any) -> Event:
    fields = {"event_id": "", "run_id": "r", "timestamp": "2026-01-01T00:00:00.000000Z"}
    payload = {**FIELDS, **given.pop("payload", {})}
    return event_with(type=type_, sequence=sequence, payload=payload, **{**fields, **given})


def started(memory: Any, **given: Any) -> Event:
    return event("run.started", payload={"workflowId": "w", "memory": memory, **given})


def test_a_run_of_an_older_log_sees_memory_as_it_is() -> None:
    run = fold("r", [event("run.started", payload={"workflowId": "w", "scopeId": "desk"})])
    assert run.memory is None
    assert (memory_scope(run), memory_view(run).revision) == ("desk", None)


def test_a_supervisors_turn_moves_the_view_and_knows_of_nothing_later() -> None:
    turn = event("node.started", 1, payload={"nodeId": "boss", "attempt": 1}, node_id="boss",
                 hints={"memoryRevision": 7})  # fmt: skip
    run = fold("r", [started({"scope": "desk", "revision": 3})])
    assert (memory_view(run).revision, memory_view(run).roots) == (3, ("r",))
    run = fold("r", [started({"scope": "desk", "revision": 3}), turn])
    assert (memory_view(run).revision, memory_view(run).roots) == (7, ())


@given(st.recursive(st.none() | st.integers() | st.text(), lambda inner: st.lists(inner)
                    | st.dictionaries(st.sampled_from(["scope", "revision", "ancestors",
                                                       "inherited", "run"]), inner)))  # fmt: skip
def test_the_fold_never_stumbles_over_what_a_log_says_of_memory(said: Any) -> None:
    run = fold("r", [started(said)])
    assert (run.workflow_id, run.next_sequence) == ("w", 1)


def family(**given: Any) -> Run:
    run = Run("parent", next_sequence=10, memory=RunMemory("desk", 5))
    run.children = {"done": "completed", "broken": "failed", "at-work": None}
    return run


@pytest.mark.parametrize(
    ("author", "sequence", "ancestors", "known"),
    [
        ("parent", 9, [], True),
        ("parent", 10, [], False),  # the run has not come so far
        ("done", 3, ["parent"], True),
        ("grandchild", 3, ["parent", "done"], True),
        ("broken", 3, ["parent"], False),
        ("at-work", 3, ["parent"], False),
        ("grandchild", 3, ["parent", "at-work"], False),
        ("stranger", 3, [], False),
        ("stranger", 3, ["elsewhere"], False),
    ],
)
def test_a_run_knows_of_its_own_writes_and_of_completed_children(
    author: str, sequence: int, ancestors: list[str], known: bool
) -> None:
    assert can_see_write(family(), author, sequence, ancestors) is known


def test_a_fork_knows_what_its_source_had_written_and_what_its_children_had() -> None:
    said = {"scope": "desk", "revision": 5, "ancestors": ["root"]}
    payload = memory_of_fork(started(said), 4)
    assert payload == {"memory": {
        "scope": "desk", "revision": 5, "inherited": [{"run": "r", "root": "root", "below": 4}],
    }}  # fmt: skip
    fork = fold("fork", [event("run.started", run_id="fork", payload=payload)])
    fork.children = {"child": "completed"}
    assert fork.memory is not None and fork.memory.inherited == [InheritedWrites("r", "root", 4)]
    assert (family_root(fork), memory_view(fork).roots) == ("fork", ("fork", "root"))
    assert can_see_write(fork, "r", 3, ["root"])
    assert not can_see_write(fork, "r", 4, ["root"])
    assert can_see_write(fork, "child", 9, ["root", "r"])
    assert not can_see_write(fork, "other", 1, ["root", "r"])
    assert not can_see_write(fork, "root", 1, [])


def test_a_fork_of_a_fork_inherits_from_both() -> None:
    once = memory_of_fork(started({"scope": "desk", "revision": 5}), 4)
    twice = memory_of_fork(event("run.started", run_id="second", payload=once), 2)
    assert twice["memory"]["inherited"] == [
        {"run": "r", "root": "r", "below": 2}, {"run": "second", "root": "second", "below": 2},
    ]  # fmt: skip
