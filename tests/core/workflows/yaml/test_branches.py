"""Branches of the friendly form, played: which nodes run, and which do not after a failure."""

import pytest

from moot.core.state.status import NodeStatus, Status
from tests.support.core.flow_player import did, flow, played

WHEN = """
  - id: size
    when: variables.n > 10
    then: [{id: big, node: acme.work}, {id: bigger, node: acme.work}]
    else: [{id: small, node: acme.work}]
  - {id: after, node: acme.work}
"""
N = "inputs: {n: int}"


def test_when_takes_one_branch_and_goes_on() -> None:
    assert did(played(flow(WHEN, N), n=11)) == ["size", "big", "bigger", "after", "end"]
    assert did(played(flow(WHEN, N), n=10)) == ["size", "small", "after", "end"]


def test_a_failure_in_the_branch_ends_the_run() -> None:
    for failing in ("big", "bigger"):
        run = played(flow(WHEN, N), (failing,), n=11)
        assert run.status is Status.FAILED
        assert run.nodes["after"].status is NodeStatus.SKIPPED


def test_a_failure_before_a_when_skips_everything_after_it() -> None:
    run = played(flow("  - {id: first, node: acme.work}\n" + WHEN, N), ("first",), n=11)
    assert did(run) == []
    assert run.status is Status.FAILED


@pytest.mark.parametrize("then", ["[{id: big, node: acme.work}]", "[]"])
def test_a_when_without_else_leads_on(then: str) -> None:
    steps = f"  - {{when: variables.n > 10, then: {then}}}\n  - {{id: after, node: acme.work}}\n"
    for n in (1, 11):
        run = played(flow(steps, N), n=n)
        assert "after" in did(run)
        assert ("big" in did(run)) is (n == 11 and then != "[]")


NESTED = """
  - when: variables.n > 10
    then:
      - when: variables.n > 100
        then: [{id: huge, node: acme.work}]
      - {id: inner, node: acme.work}
  - {id: after, node: acme.work}
"""


@pytest.mark.parametrize(
    ("n", "done"), [(1, ["after"]), (11, ["inner", "after"]), (101, ["huge", "inner", "after"])]
)
def test_what_follows_a_when_inside_a_branch_not_taken_does_not_run(
    n: int, done: list[str]
) -> None:
    run = played(flow(NESTED, N), n=n)
    assert [node for node in did(run) if not node.startswith(("when", "end"))] == done


PARALLEL = """
  - id: both
    parallel:
      left: [{id: l1, node: acme.work}, {id: l2, node: acme.work}]
      right:
        - when: variables.n > 10
          then: [{id: r1, node: acme.work}]
  - {id: after, node: acme.work}
"""


def test_after_parallel_every_branch_is_done() -> None:
    for n in (1, 11):
        run = played(flow(PARALLEL, N), n=n)
        assert did(run)[-2:] == ["after", "end"]
        assert {"l1", "l2"} < set(did(run))
        assert ("r1" in did(run)) is (n == 11)


@pytest.mark.parametrize("failing", ["l1", "l2", "r1"])
def test_a_branch_that_breaks_anywhere_stops_what_comes_after(failing: str) -> None:
    run = played(flow(PARALLEL, N), (failing,), n=11)
    assert run.status is Status.FAILED
    assert run.error is not None
    assert run.error.message == f"{failing} broke"
    assert "after" not in did(run)


def test_parallel_takes_a_list_of_lists_and_branches_inside_branches() -> None:
    steps = """
  - parallel:
      - - parallel:
            - [{id: a, node: acme.work}]
            - [{id: b, node: acme.work}, {id: c, node: acme.work}]
      - [{id: d, node: acme.work}]
      - []
  - {id: after, node: acme.work}
"""
    assert {"a", "b", "c", "d", "after"} < set(did(played(flow(steps))))
    assert "after" not in did(played(flow(steps), ("b",)))


HANDLED = """
  - id: risky
    node: acme.work
    on_error:
      - {id: sorry, node: acme.work}
  - {id: after, node: acme.work}
"""


def test_on_error_is_left_out_when_all_is_well() -> None:
    assert did(played(flow(HANDLED))) == ["risky", "after", "end"]


def test_on_error_takes_over_and_leads_on() -> None:
    run = played(flow(HANDLED), ("risky",))
    assert did(run) == ["sorry", "after", "end"]
    assert run.status is Status.COMPLETED


def test_an_error_in_on_error_ends_the_run() -> None:
    run = played(flow(HANDLED), ("risky", "sorry"))
    assert run.status is Status.FAILED
    assert "after" not in did(run)


@pytest.mark.parametrize("failing", ["l1", "l2", "r1"])
def test_on_error_of_a_parallel_step_sees_every_node_inside(failing: str) -> None:
    steps = PARALLEL.replace(
        "  - {id: after", "    on_error: [{id: sorry, node: acme.work}]\n  - {id: after"
    )
    run = played(flow(steps, N), (failing,), n=11)
    assert run.status is Status.COMPLETED
    assert {"sorry", "after"} < set(did(run))
    assert "sorry" not in did(played(flow(steps, N), n=11))


def test_a_handled_error_inside_a_branch_does_not_stop_the_join() -> None:
    steps = """
  - parallel:
      left:
        - {id: risky, node: acme.work, on_error: [{id: sorry, node: acme.work}]}
      right: [{id: other, node: acme.work}]
    on_error: [{id: outer, node: acme.work}]
  - {id: after, node: acme.work}
"""
    run = played(flow(steps), ("risky",))
    assert {"sorry", "other", "after"} < set(did(run))
    assert "outer" not in did(run)
