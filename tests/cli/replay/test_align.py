"""Two logs side by side: whole, in order, by cause."""

from itertools import combinations
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from moot.cli.replay.align import Pair, align, event_identity
from moot.cli.replay.diff_lines import ForkEditLine, fork_edits
from moot.cli.shared.events import read_event
from moot.core.events import payload_fields

TYPES = ("node.started", "node.completed", "variable.changed", "conversation.exchanged")


def event(run: str, number: int, kind: str, node: str, cause: int | None, **said: Any) -> Any:
    fields = {
        "eventId": f"{run}.{number}", "runId": run, "sequence": number, "type": kind,
        "timestamp": "", "payload": said, "nodeId": node,
    }  # fmt: skip
    return read_event(fields if cause is None else {**fields, "causationId": f"{run}.{cause}"})


@st.composite
def logs(draw: st.DrawFn, run: str) -> list[Any]:
    """Any log: each cause is an event before, of another run, or missing."""
    length = draw(st.integers(0, 12))
    found = []
    for number in range(length):
        cause = draw(st.none() | st.integers(0, number - 1)) if number else None
        kind, node = draw(st.sampled_from(TYPES)), draw(st.sampled_from("ab"))
        found.append(event(run, number, kind, node, cause, attempt=draw(st.integers(1, 2))))
    return found


def moved(log: list[Any], run: str) -> list[Any]:
    """The same log as another run's."""
    return [
        event(run, one.sequence, one.type, one.node_id,
              int(one.causation_id.split(".")[1]) if one.causation_id else None,
              **payload_fields(one))
        for one in log
    ]  # fmt: skip


def sequences(lines: list[Pair], side: str) -> list[int]:
    return [getattr(line, side).sequence for line in lines if getattr(line, side) is not None]


@given(logs("a"), logs("b"))
def test_every_event_is_on_exactly_one_line_in_the_order_of_its_log(a: Any, b: Any) -> None:
    lines = align(a, b)
    assert sequences(lines, "a") == list(range(len(a)))
    assert sequences(lines, "b") == list(range(len(b)))
    assert Pair(None, None) not in lines


@given(logs("a"), logs("b"))
def test_pairs_never_cross_and_are_of_one_kind(a: Any, b: Any) -> None:
    pairs = [line for line in align(a, b) if None not in line]
    for above, below in combinations(pairs, 2):
        assert above.a.sequence < below.a.sequence
        assert above.b.sequence < below.b.sequence
    for pair in pairs:
        assert event_identity(pair.a) == event_identity(pair.b)


@given(logs("a"))
def test_a_log_and_its_copy_align_wholly(a: Any) -> None:
    lines = align(a, moved(a, "b"))
    assert [(line.a.sequence, line.b.sequence) for line in lines] == [
        (number, number) for number in range(len(a))
    ]


@given(logs("a"), logs("a"), logs("a"))
def test_a_common_beginning_is_found_whatever_follows(head: Any, one: Any, other: Any) -> None:
    def after(rest: list[Any], run: str) -> list[Any]:
        shifted = [
            event(run, len(head) + number, tail.type, tail.node_id, None, **payload_fields(tail))
            for number, tail in enumerate(rest)
        ]
        return moved(head, run) + shifted

    lines = align(after(one, "a"), after(other, "b"))
    assert [(line.a.sequence, line.b.sequence) for line in lines[: len(head)]] == [
        (number, number) for number in range(len(head))
    ]


@given(logs("a"), logs("b"))
def test_turned_around_as_much_is_matched(a: Any, b: Any) -> None:
    here = sum(None not in line for line in align(a, b))
    there = sum(None not in line for line in align(b, a))
    assert (here == 0) == (there == 0)


def test_an_event_more_on_one_side_shifts_the_numbers_and_nothing_else() -> None:
    a = [event("a", 0, "run.started", "", None), event("a", 1, "node.started", "x", 0),
         event("a", 2, "node.completed", "x", 1)]  # fmt: skip
    b = [event("b", 0, "run.started", "", None), event("b", 1, "log.appended", "", 0),
         event("b", 2, "node.started", "x", 0),
         event("b", 3, "node.completed", "x", 2)]  # fmt: skip
    lines = align(a, b)
    assert [(x and x.sequence, y and y.sequence) for x, y in lines] == [
        (0, 0), (None, 1), (1, 2), (2, 3)
    ]  # fmt: skip


def test_two_workers_are_told_apart_by_what_caused_them() -> None:
    """The second worker answers first on the right: its steps stay together."""
    a = [event("a", 0, "run.started", "", None)]
    b = [event("b", 0, "run.started", "", None)]
    for run, log, order in (("a", a, "pq"), ("b", b, "qp")):
        log.extend(event(run, 1 + place, "step", "d", 0, phase="began", workerId=name)
                   for place, name in enumerate("pq"))  # fmt: skip
        log.extend(
            event(run, 3 + place, "step", "d", 1 + "pq".index(name), phase="done", workerId=name)
            for place, name in enumerate(order)
        )
    pairs = [line for line in align(a, b) if None not in line]
    assert len(pairs) == 4
    for pair in pairs:
        assert payload_fields(pair.a) == payload_fields(pair.b)


def test_after_another_cause_what_is_alike_still_stands_on_one_line() -> None:
    a = [event("a", 0, "asked", "g", None), event("a", 1, "accepted", "g", 0),
         event("a", 2, "node.started", "end", 1)]  # fmt: skip
    b = [event("b", 0, "asked", "g", None), event("b", 1, "rejected", "g", 0),
         event("b", 2, "node.started", "end", 1)]  # fmt: skip
    kinds = [(x and x.type, y and y.type) for x, y in align(a, b)]
    assert kinds == [("asked", "asked"), ("accepted", None), (None, "rejected"),
                     ("node.started", "node.started")]  # fmt: skip


def test_agents_who_are_asked_at_the_same_time_are_told_apart() -> None:
    def asked(run: str, *names: str) -> list[Any]:
        return [event(run, 0, "run.started", "", None)] + [
            event(run, n, "agent.decided", "talk", 0, agentId=name)
            for n, name in enumerate(names, 1)
        ]

    for line in align(asked("a", "host:bo", "host:cy"), asked("b", "host:cy", "host:bo")):
        if line.a is not None and line.b is not None:
            assert payload_fields(line.a) == payload_fields(line.b)


def test_a_change_of_model_says_by_which_one_the_agent_spoke_before() -> None:
    spoke = event("a", 1, "moot.participation.answered", "talk", 0, agentId="host:ada",
                  usage={"model": "work/gpt-x"})  # fmt: skip
    began = {"forkedFrom": {"sourceRunId": "a", "fromSeq": 2}}
    for name in ("ada", "host:ada"):
        source = [event("a", 0, "run.started", "", None), spoke]
        chosen = {"models": {name: "demo"}}
        fork = [event("b", 0, "run.started", "", None, configurable=chosen, **began), spoke]
        assert list(fork_edits(source, fork)) == [
            ForkEditLine(f"model.{name}", "work/gpt-x", "demo")
        ]
