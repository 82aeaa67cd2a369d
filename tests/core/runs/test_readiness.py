"""Trigger rules against the protocol's table (2.1), for every mix of up to three upstreams."""

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from moot.core.runs.readiness import Readiness, is_condition_met, node_readiness
from moot.core.state.node import NodeState
from moot.core.state.run import Run
from moot.core.state.status import NodeStatus
from moot.core.workflows.flow import Flow
from moot.core.workflows.schema import EdgeCondition
from tests.support.core.simulator import World, chain, compiled, definition, edge, node
from tests.support.event_payloads import payload_json

#: what an upstream is, seen through its edge
UPSTREAMS: dict[str, NodeState | None] = {
    "untouched": None,
    "running": NodeState(NodeStatus.RUNNING),
    "retrying": NodeState(NodeStatus.RETRYING),
    "interrupted": NodeState(NodeStatus.INTERRUPTED),
    "completed": NodeState(NodeStatus.COMPLETED, outputs={}),
    "failed": NodeState(NodeStatus.FAILED),
    "skipped": NodeState(NodeStatus.SKIPPED, reason="trigger-rule"),
    "disabled": NodeState(NodeStatus.SKIPPED, reason="disabled"),
    "false edge": NodeState(NodeStatus.COMPLETED, outputs={}),
}
TERMINAL = {"completed", "failed", "skipped", "disabled", "false edge"}

Sides = tuple[str, ...]


def ended(sides: Sides) -> bool:
    return set(sides) <= TERMINAL


def good(sides: Sides) -> bool:
    """A disabled node lets its successors through."""
    return "completed" in sides or "disabled" in sides


def unreached(sides: Sides) -> bool:
    """Every incoming edge was conditioned false: that is routing, not success."""
    return set(sides) == {"false edge"}


def failed(sides: Sides) -> bool:
    return "failed" in sides


#: rule -> (ready, skipped), each line as the protocol's table has it
TABLE: dict[str, tuple[Callable[[Sides], bool], Callable[[Sides], bool]]] = {
    "all_success": (
        lambda s: ended(s) and not failed(s) and good(s),
        lambda s: ended(s) and (failed(s) or not good(s)),
    ),
    "any_success": (good, lambda s: ended(s) and not good(s)),
    "all_complete": (lambda s: ended(s) and not unreached(s), unreached),
    "none_failed": (
        lambda s: ended(s) and not failed(s) and not unreached(s),
        lambda s: failed(s) or unreached(s),
    ),
    "any_failed": (failed, lambda s: ended(s) and not failed(s)),
}


def joined(rule: str, count: int) -> Flow:
    sources = [node(f"s{number}") for number in range(count)]
    never = {"type": "expression", "expression": "variables.taken"}
    edges = [
        edge(f"s{number}", "target", rule, condition=never | {"expression": f"variables.s{number}"})
        for number in range(count)
    ]
    return compiled(definition([*sources, node("target")], edges))


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("rule", TABLE)
def test_a_rule_is_what_the_table_says(rule: str, count: int) -> None:
    flow = joined(rule, count)
    ready, skipped = TABLE[rule]
    for sides in product(UPSTREAMS, repeat=count):
        known = {f"s{n}": UPSTREAMS[side] for n, side in enumerate(sides)}
        run = Run(
            "r",
            nodes={name: state for name, state in known.items() if state is not None},
            variables={f"s{n}": side != "false edge" for n, side in enumerate(sides)},
        )
        expected = (
            Readiness.RUN if ready(sides) else Readiness.SKIP if skipped(sides) else Readiness.WAIT
        )
        assert node_readiness(run, flow, flow.nodes["target"], {}) is expected, sides
        assert not (ready(sides) and skipped(sides))


@pytest.mark.parametrize("rule", TABLE)
def test_whatever_the_upstreams_end_with_the_target_is_decided_at_last(rule: str) -> None:
    for sides in product(TERMINAL, repeat=3):
        ready, skipped = TABLE[rule]
        assert ready(sides) or skipped(sides)


def test_a_node_without_incoming_edges_is_ready_at_once() -> None:
    flow = compiled(definition([node("alone")]))
    assert node_readiness(Run("r"), flow, flow.nodes["alone"], {}) is Readiness.RUN


def test_where_edges_disagree_the_first_by_id_decides() -> None:
    edges = [
        edge("a", "target", "any_failed", id="2"),
        edge("b", "target", "all_complete", id="1"),
    ]
    flow = compiled(definition([node("a"), node("b"), node("target")], edges))
    assert flow.nodes["target"].rule == "all_complete"


# -- through whole runs --------------------------------------------------------------------------


def outcome(*nodes: dict[str, Any], edges: list[dict[str, Any]]) -> dict[str, str]:
    world = World()
    life = world.start(compiled(definition(list(nodes), edges)))
    assert life.run.terminal
    return {name: state.status.value for name, state in life.run.nodes.items()} | {
        "run": life.run.status.value
    }


def test_an_error_branch_rescues_the_run() -> None:
    assert outcome(
        node("a", "core.fail"),
        node("next"),
        node("rescue"),
        edges=[edge("a", "next"), edge("a", "rescue", "any_failed")],
    ) == {"a": "failed", "next": "skipped", "rescue": "completed", "run": "completed"}


def test_without_an_error_branch_the_run_fails_with_the_first_failure() -> None:
    world = World()
    body = chain(node("a", "core.fail", config={"code": "first"}), node("b"), node("c"))
    life = world.start(compiled(body))
    assert life.run.status == "failed" and life.run.error is not None
    assert life.run.error.code == "first"
    assert payload_json(life.told("run.failed")[0])["failedNodeId"] == "a"
    assert life.order()[-3:] == ["node.skipped b", "node.skipped c", "run.failed"]


def test_a_skip_spreads_and_a_last_node_that_completed_is_enough() -> None:
    assert outcome(
        node("a", "core.fail"),
        node("b"),
        node("c"),
        node("other"),
        edges=[edge("a", "b"), edge("b", "c")],
    ) == {
        "a": "failed", "b": "skipped", "c": "skipped", "other": "completed", "run": "completed"
    }  # fmt: skip


def test_nothing_completed_is_a_failure() -> None:
    never = {"type": "expression", "expression": "false"}
    world = World()
    flow = compiled(definition([node("a"), node("b")], [edge("a", "b", condition=never)]))
    life = world.start(flow)
    assert life.run.status == "failed" and life.run.error is not None
    assert life.run.error.code == "nothing_completed"


def test_a_conditional_leads_only_along_the_port_it_filled() -> None:
    nodes = [
        node("if", "core.conditional", config={"expression": "1 == 1"}),
        node("yes"),
        node("no"),
        node("always"),
    ]
    edges = [
        edge("if", "yes", sourceOutput="true"),
        edge("if", "no", sourceOutput="false"),
        edge("if", "always"),
    ]
    found = outcome(*nodes, edges=edges)
    assert (found["yes"], found["no"], found["always"]) == ("completed", "skipped", "completed")


def test_a_disabled_node_is_skipped_and_lets_its_successors_through() -> None:
    found = outcome(node("a", disabled=True), node("b"), edges=[edge("a", "b")])
    assert found == {"a": "skipped", "b": "completed", "run": "completed"}


# -- conditions ----------------------------------------------------------------------------------

NAMES: dict[str, Any] = {
    "output": {"approved": True, "count": 1, "text": "hello world", "tags": ["a", 1, [True]]},
    "outputs": {"output": 0, "deep": [{"x": [10, 20]}]},
    "variables": {"v": None},
    "inputs": {},
    "channels": {},
}


def condition(type_: str, left: str, right: Any) -> bool:
    return is_condition_met(EdgeCondition(type=type_, left=left, right=right), NAMES)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("type_", "left", "right", "true"),
    [
        ("equals", "output.approved", True, True),
        ("equals", "output.approved", 1, False),  # JSON: true is not 1
        ("equals", "output.count", True, False),
        ("equals", "output.count", 1.0, True),
        ("equals", "output.tags", ["a", 1, [True]], True),
        ("equals", "output.tags", ["a", 1, [1]], False),
        ("equals", "output.tags", ["a", True, [True]], False),
        ("equals", "variables.v", None, True),
        ("equals", "variables.missing", None, False),  # absent is not null
        ("notEquals", "variables.missing", None, True),
        ("notEquals", "output.count", 1, False),
        ("contains", "output.text", "lo wo", True),
        ("contains", "output.text", "xyz", False),
        ("contains", "output.text", 1, False),
        ("contains", "output.tags", "a", True),
        ("contains", "output.tags", True, False),
        ("contains", "output.tags", [True], True),
        ("contains", "output.tags", [1], False),
        ("contains", "output", "approved", True),
        ("contains", "output", ["approved"], False),
        ("contains", "output.count", 1, False),
        ("contains", "output.missing", "a", False),
        ("regex", "output.text", "^hello", True),
        ("regex", "output.text", "world$", True),
        ("regex", "output.text", "^world", False),
        ("regex", "output.text", "(", False),
        ("regex", "output.count", "1", False),
        ("equals", "deep.0.x.1", 20, True),
        ("equals", "outputs.deep.0.x.2", 20, False),
        ("equals", "deep.-1.x", 20, False),
        ("equals", "deep.0.x.\N{SUPERSCRIPT TWO}", 20, False),  # isdigit(), but no int()
        ("equals", "deep." + "9" * 5000, 20, False),
        ("equals", "", 20, False),
    ],
)
def test_a_condition_is_plain_json_comparison(
    type_: str, left: str, right: Any, true: bool
) -> None:
    assert condition(type_, left, right) is true


def test_an_expression_that_has_no_value_or_is_not_true_is_false() -> None:
    for source in ("variables.nothing.more", "1", "'true'", "1/0", "variables.v"):
        assert not is_condition_met(EdgeCondition(type="expression", expression=source), NAMES)
    assert is_condition_met(EdgeCondition(type="expression", expression="output.count == 1"), NAMES)
