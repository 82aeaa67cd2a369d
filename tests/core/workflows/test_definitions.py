"""What a definition may say: every mistake is named, nothing bad is compiled."""

import itertools
from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given

from moot.core.errors import BadRequest, CapabilityRequired, CycleDetected, UnsupportedNodeType
from moot.core.workflows.definition import SUPERVISOR, is_of_type, parse_definition
from tests.support.core.random_flows import bodies, examples
from tests.support.core.simulator import TYPES, chain, compiled, definition, edge, node


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (definition([node("a")], id="Upper"), "id 'Upper'"),
        (definition([node("a")], id="x" * 129), "128"),
        (definition([node("a")], name=""), "name"),
        (definition([node("a")], version=""), "version"),
        (definition([]), "at least one node"),
        (definition([node("a"), node("a")]), "used twice"),
        (definition([node("")]), "node id"),
        (definition([node("a", "Bad Type")]), "typeId"),
        (definition([node("a")], [edge("a", "b")]), "there is no node 'b'"),
        (definition([node("first")], [edge("first", "frist")]), "did you mean 'first'"),
        (definition([node("a"), node("b")], [edge("a", "b"), edge("a", "b")]), "used twice"),
        (definition([node("a", inputs={"p": {
            "type": "connection", "nodeId": "z", "outputKey": "o"}})]), "there is no node 'z'"),
        (definition([node("a"), node("b")], [edge("a", "b", condition={
            "type": "equals"})]), "left"),
        (definition([node("a"), node("b")], [edge("a", "b", condition={
            "type": "regex", "left": "x", "right": 1})]), "pattern"),
        (definition([node("a"), node("b")], [edge("a", "b", condition={})]), "no expression"),
        (definition([node("a")], variables=[{"name": "v", "type": "number",
                                             "defaultValue": "x"}]), "not a number"),
        (definition([node("a")], variables=[{"name": "v", "type": "number"}] * 2), "twice"),
        (definition([node("a")], variables=[{"name": "v", "type": "array"}],
                    channels={"v": {"reducer": "append"}}), "as a channel"),
        (definition([node("a")], channels={"c": {"reducer": "sum"}}), "not a reducer"),
        (definition([node("a")], channels={"c": {"reducer": "append", "maxSize": 0}}), "maxSize"),
        (definition([node("a")], channels={"c": {"reducer": "merge", "ttlMs": 5}}), "ttlMs"),
        (definition([node("a")], metadata={"tags": [""]}), "tags"),
        (definition([node("a")], settings={"timeout": -1}), "negative"),
        (definition([node("a")], unknown=1), "unknown"),
    ],
)  # fmt: skip
def test_a_mistake_is_named(body: dict[str, Any], word: str) -> None:
    with pytest.raises(BadRequest) as refusal:
        parse_definition(body)
    assert word in refusal.value.message + str(refusal.value.details)


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (definition([node("a", settings={"maxRetries": -1})]), "maxRetries"),
        (definition([node("a", settings={"timeoutMs": "1"})]), "timeoutMs"),
        (definition([node("a", settings={"retryDelayMs": True})]), "retryDelayMs"),
        (definition([node("a", "core.delay", config={"ms": -1})]), "config.ms"),
        (definition([node("a", inputs={"p": {"type": "expression", "expression": "1 +"}})]),
         "cannot be read"),
        (definition([node("a")], metadata={"complianceConfig": {"maskingMode": "hide"}}), "hide"),
        (definition([node("a")], channels={"c": {"reducer": "append", "schema": {"type": 3}}}),
         "schema"),
    ],
)  # fmt: skip
def test_a_mistake_only_the_host_can_see_is_named_too(body: dict[str, Any], word: str) -> None:
    with pytest.raises(BadRequest) as refusal:
        compiled(body)
    assert word in refusal.value.message


def test_an_unknown_type_is_refused_with_the_nearest_word() -> None:
    with pytest.raises(UnsupportedNodeType) as refusal:
        compiled(definition([node("a", "core.nop")]))
    assert "core.noop" in refusal.value.message
    assert refusal.value.details == {"offendingTypeId": "core.nop", "nodeId": "a"}


def test_a_gated_type_names_the_capability_it_needs() -> None:
    types = {key: each for key, each in TYPES.items() if key != "core.dispatch"}
    with pytest.raises(CapabilityRequired) as refusal:
        compiled(definition([node("a", "core.dispatch"), node("b", SUPERVISOR)]), types)
    assert refusal.value.details == {
        "requiredCapability": "dispatch.supported", "offendingTypeId": "core.dispatch",
        "nodeId": "a",
    }  # fmt: skip


@examples(60)
@given(st.permutations(list("abcdef")), st.integers(1, 6))
def test_a_circle_is_found_and_walked_wherever_it_is(order: list[str], length: int) -> None:
    ring = order[:length]
    edges = [edge(a, b) for a, b in zip(ring, [*ring[1:], ring[0]], strict=True)]
    edges += [edge(order[0], name) for name in order[length:]]
    with pytest.raises(CycleDetected) as refusal:
        parse_definition(definition([node(name) for name in order], edges))
    circle = refusal.value.details["nodeIds"]
    pairs = {(each["sourceNodeId"], each["targetNodeId"]) for each in edges}
    assert circle[0] == circle[-1] and set(circle) == set(ring)
    assert all(pair in pairs for pair in itertools.pairwise(circle))


def test_a_very_long_chain_is_no_trouble() -> None:
    flow = compiled(chain(*(node(f"n{number}") for number in range(3000))))
    assert flow.nodes["n2999"].index == 2999
    assert flow.sources == ("n0",) and flow.ends == {"n2999"}


@examples(60)
@given(bodies())
def test_every_edge_leads_from_a_shallower_to_a_deeper_node(body: dict[str, Any]) -> None:
    flow = compiled(body)
    for each in flow.definition.edges:
        before, after = flow.nodes[each.source_node_id], flow.nodes[each.target_node_id]
        assert before.index < after.index
        assert after.id in before.targets and each in after.incoming


@examples(60)
@given(bodies())
def test_a_definition_reads_the_same_from_bytes_and_from_objects(body: dict[str, Any]) -> None:
    assert parse_definition(msgspec.json.encode(body)) == parse_definition(body)


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'"x"', b"null", b"\xff", b'{"id": 1}'])
def test_what_is_no_definition_at_all_is_refused(body: bytes) -> None:
    with pytest.raises(BadRequest):
        parse_definition(body)


@pytest.mark.parametrize(
    ("type_", "value", "fit"),
    [("string", "x", True), ("string", 1, False), ("number", 1, True), ("number", 1.5, True),
     ("number", True, False), ("boolean", False, True), ("boolean", 0, False),
     ("array", [], True), ("array", {}, False), ("object", {}, True), ("object", 3, True)],
)  # fmt: skip
def test_a_value_fits_its_declared_type(type_: str, value: Any, fit: bool) -> None:
    assert is_of_type(type_, value) is fit
