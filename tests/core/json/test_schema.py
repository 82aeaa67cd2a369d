"""JSON Schema: what cannot be checked in bounded work is refused, before anything is checked."""

import random
import time
from typing import Any

import jsonschema_rs
import msgspec
import pytest

from moot.core.errors import BadRequest
from moot.core.json.schema import (
    LONGEST_TEXT,
    MOST_PROBLEMS,
    SOMEWHERE,
    TOO_LARGE,
    SchemaError,
    check_schema,
    schema_problems,
)
from moot.core.json.schema_cost import MOST_SCHEMAS, measure_cost
from moot.core.json.schema_patterns import PLACE, pattern_cost, pattern_size
from moot.core.workflows.definition import parse_definition
from moot.core.workflows.flow import compile_flow
from moot.engine.nodes import registry
from moot.engine.nodes.gates import check_approval, check_clarification, check_conversation

Schema = dict[str, Any]


def branching_bomb(levels: int, word: str = "anyOf") -> Schema:
    """Each level asks for the next one three times."""
    defs: Schema = {f"d{i}": {word: [{"$ref": f"#/$defs/d{i + 1}"}] * 3} for i in range(levels)}
    return {"$defs": {**defs, f"d{levels}": {"type": "null"}}, "$ref": "#/$defs/d0"}


def nested_unevaluated(levels: int) -> Schema:
    schema: Schema = {"type": "object"}
    for _ in range(levels):
        schema = {"allOf": [schema], "properties": {"a": {}}, "unevaluatedProperties": False}
    return schema


def chain(levels: int) -> Schema:
    defs = {f"d{i}": {"properties": {"a": {"$ref": f"#/$defs/d{i + 1}"}}} for i in range(levels)}
    return {"$defs": {**defs, f"d{levels}": {}}, "$ref": "#/$defs/d0"}


SELF = {"$ref": "#"}

BOMBS: dict[str, Schema] = {
    "14 levels of three branches": branching_bomb(14),
    "24 levels of three branches": branching_bomb(24),
    "24 levels of allOf": branching_bomb(24, "allOf"),
    "300 levels of three branches": branching_bomb(300),
    "a $ref to itself": SELF,
    "a $ref to itself by allOf": {"allOf": [SELF]},
    "a $ref to itself by if": {"if": {"not": SELF}},
    "a $ref to itself when a property is there": {"dependentSchemas": {"a": SELF}},
    "a ring of references": {
        "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
        "$ref": "#/$defs/a",
    },
    "two branches that recurse": {"anyOf": [{"items": SELF}, {"items": SELF}]},
    "items and contains that recurse": {"items": SELF, "contains": SELF},
    "one branch that recurses twice": {"oneOf": [{"items": {"allOf": [SELF, SELF]}}]},
    "patterns that recurse": {"patternProperties": {"a": SELF, "b": SELF}},
    "if and then that recurse": {"if": {"items": SELF}, "then": {"items": SELF}},
    "growth from level to level": {
        "$defs": {"all": {"items": {"$ref": "#/$defs/all"}}},
        "allOf": [{"items": SELF}, {"items": {"$ref": "#/$defs/all"}}],
    },
    "unevaluatedProperties within itself": nested_unevaluated(20),
    "a long chain": chain(MOST_SCHEMAS + 1),
    "patterns of patterns": {
        "properties": {f"p{i}": {"pattern": "((a{0,100}){0,100})b"} for i in range(100)}
    },
    "long numbers that must differ": {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "enum": [10**30 + i for i in range(5000)],
    },
}

ORDINARY: dict[str, Schema] = {
    "nothing": {},
    "a tree": {"properties": {"left": SELF, "right": SELF}, "additionalProperties": False},
    "a list of itself": {"type": "array", "items": SELF},
    "a comment with answers": {
        "$defs": {
            "comment": {
                "properties": {
                    "text": {"type": "string"},
                    "answers": {"type": "array", "items": {"$ref": "#/$defs/comment"}},
                },
                "required": ["text"],
                "unevaluatedProperties": False,
            }
        },
        "$ref": "#/$defs/comment",
    },
    "any JSON": {
        "anyOf": [
            {"type": "array", "items": SELF},
            {"type": "object", "additionalProperties": SELF},
            {"type": ["string", "number", "boolean", "null"]},
        ]
    },
    "conditions": {
        "oneOf": [
            {"required": ["and"], "properties": {"and": {"items": SELF}}},
            {"required": ["or"], "properties": {"or": {"items": SELF}}},
            {"required": ["not"], "properties": {"not": SELF}},
        ]
    },
    "named and other properties": {"properties": {"a": SELF}, "additionalProperties": SELF},
    "first and other items": {"prefixItems": [SELF, True], "items": SELF},
    "an anchor": {
        "$defs": {"a": {"$anchor": "word", "type": "string"}},
        "items": {"$ref": "#word"},
    },
    "its own address": {
        "$id": "https://acme.example/s.json",
        "$defs": {"a/b": {"type": "string"}},
        "items": {"$ref": "https://acme.example/s.json#/$defs/a~1b"},
    },
    "a schema of schemas": {"$ref": "https://json-schema.org/draft/2020-12/schema"},
    "a large enum": {"enum": [f"word {i}" for i in range(10_000)]},
    "a pattern that looks ahead": {"pattern": r"^(?=.*\d)(?=.*[a-z]).{8,}$"},
    "a draft that is old": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "definitions": {"n": {"type": "integer"}},
        "items": [{"$ref": "#/definitions/n"}],
        "additionalItems": {"$ref": "#"},
    },
}


@pytest.mark.parametrize("schema", BOMBS.values(), ids=BOMBS)
def test_a_schema_without_a_bound_is_refused_and_nothing_fits_it(schema: Schema) -> None:
    with pytest.raises(SchemaError) as refusal:
        check_schema(schema)
    assert 0 < len(str(refusal.value)) <= LONGEST_TEXT
    assert schema_problems(schema, [[[1]]]) == [f"the schema cannot be used: {refusal.value}"]


@pytest.mark.parametrize("schema", ORDINARY.values(), ids=ORDINARY)
def test_an_ordinary_schema_is_taken(schema: Schema) -> None:
    check_schema(schema)


@pytest.mark.parametrize("schema", BOMBS.values(), ids=BOMBS)
def test_a_bomb_is_refused_wherever_a_workflow_may_have_a_schema(schema: Schema) -> None:
    assert check_approval({"resumeSchema": schema})
    assert check_conversation({"schema": schema})
    assert check_conversation({"outcomeSchema": schema})
    question = {"id": "q", "question": "?", "schema": schema}
    assert check_clarification({"questions": [question]})
    for place in (
        {"channels": {"c": {"reducer": "replace", "schema": schema}}},
        {"configurableSchema": schema},
    ):
        with pytest.raises(BadRequest, match="cannot be used"):
            compile_flow(parse_definition(flow_with(place)), registry.built_in_types(), "x")


def flow_with(extra: Schema) -> bytes:
    node = {"id": "n", "typeId": "core.noop", "name": "n", "position": {"x": 0, "y": 0},
            "config": {}, "inputs": {}}  # fmt: skip
    body = {"id": "f", "name": "F", "version": "1", "nodes": [node], "edges": [], "triggers": [],
            "variables": [], "metadata": {}, "settings": {}}  # fmt: skip
    return msgspec.json.encode({**body, **extra})


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"$ref": "https://acme.example/s.json"}, "within the schema"),
        ({"$ref": "file:///etc/passwd"}, "within the schema"),
        ({"$ref": "#/$defs/none"}, "leads nowhere"),
        ({"$ref": "#none"}, "leads nowhere"),
        ({"$ref": "#/title", "title": "t"}, "does not lead to a schema"),
        ({"$dynamicRef": "#a", "$dynamicAnchor": "a"}, "use \\$ref"),
        ({"items": {"$id": "x", "items": {"$ref": "#"}}}, "\\$id at its top"),
        (
            {
                "$dynamicAnchor": "meta",
                "allOf": [{"$ref": "https://json-schema.org/draft/2020-12/schema"}] * 2,
            },
            "within the schema",
        ),
        ({"type": "nothing"}, "nothing"),
        ({"pattern": "("}, "regex"),
    ],
)
def test_a_reference_whose_target_is_in_doubt_is_refused(schema: Schema, words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        check_schema(schema)


def test_of_millions_of_errors_only_one_is_made() -> None:
    schema = {"properties": {"l": {"items": {"allOf": [{"type": "string"}] * 50}}}}
    assert schema_problems(schema, {"l": [1] * 100_000}) == ['l/0: 1 is not of type "string"']


def test_of_many_problems_the_first_few_are_told() -> None:
    found = schema_problems({"items": {"type": "string"}}, list(range(100)))
    assert found[1] == '1: 1 is not of type "string"'
    assert len(found) == MOST_PROBLEMS


@pytest.mark.parametrize("schema", [{"type": "integer"}, {"anyOf": [{"type": "integer"}]}])
def test_a_problem_does_not_repeat_the_whole_value(schema: Schema) -> None:
    (problem,) = schema_problems(schema, "x" * 900_000)
    assert len(problem) <= LONGEST_TEXT


def test_a_long_key_does_not_make_a_long_problem() -> None:
    (problem,) = schema_problems({"additionalProperties": False}, {"k" * 100_000: 1})
    assert len(problem) <= LONGEST_TEXT


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"items": {"allOf": [{"type": "integer"}] * 1000}}, [1] * 100_000),
        ({"items": {"enum": [[0] * 50 + [i] for i in range(1000)]}}, [[0] * 50 + [999]] * 1000),
        ({"uniqueItems": True}, [10**30 + i for i in range(5000)]),
        ({"pattern": "(?=(a+)+b)a"}, "a" * 100_000),
        ({"pattern": "(a|b)*a(a|b){500}c"}, "ab" * 100_000),
        ({"pattern": "(a|b)*a(a|b){50}c"}, "ab" * 150_000),
        ({"pattern": "a[ab]{50}c"}, "ab" * 150_000),
    ],
)
def test_a_value_that_is_too_much_work_is_refused(schema: Schema, value: Any) -> None:
    check_schema(schema)
    assert schema_problems(schema, value) == [TOO_LARGE]


@pytest.mark.parametrize(
    "pattern",
    ["(a|b)*a(a|b){50}c", "a[ab]{50}c", "a[ab]{14}c", "^.*a.{20}c$", "^[ab]{1,30}a[ab]{1,30}c"],
)
def test_a_repetition_that_may_begin_everywhere_is_weighed_by_all_its_places(pattern: str) -> None:
    assert pattern_cost(pattern) >= PLACE * pattern_size(pattern)


@pytest.mark.parametrize(
    "pattern", ["^[a-z ]{1,60}$", "^[0-9a-f]{8}-[0-9a-f]{4}$", "^a+b{9}$", "x"]
)
def test_a_pattern_that_knows_its_place_is_cheap(pattern: str) -> None:
    assert pattern_cost(pattern) <= 1 + pattern_size(pattern)


def test_a_counted_repetition_takes_no_longer_than_it_weighs() -> None:
    text = "".join(random.Random(7).choices("ab", k=40_000))
    pattern = "(a|b)*a(a|b){50}c"
    validator = jsonschema_rs.validator_for(
        {"pattern": pattern}, pattern_options=jsonschema_rs.RegexOptions()
    )
    started = time.process_time()
    assert not validator.is_valid(text)
    steps = pattern_cost(pattern) * len(text) / 8
    assert time.process_time() - started <= 4 * steps * 10e-9  # four times, for a slow machine


def test_a_large_value_that_fits_no_branch_is_refused_without_copies_of_it() -> None:
    schema = {"anyOf": [{"type": "string"}] * 1000}
    assert schema_problems(schema, [1] * 9000) == [SOMEWHERE]


def test_large_ordinary_values_are_checked() -> None:
    rows = [{"id": i, "name": "a name", "tags": ["a", "b"]} for i in range(10_000)]
    row = {
        "type": "object",
        "required": ["id", "name"],
        "properties": {
            "id": {"type": "integer"},
            "name": {"type": "string", "pattern": "^[a-z ]{1,60}$"},
            "tags": {"type": "array", "items": {"enum": ["a", "b", "c"]}, "uniqueItems": True},
        },
        "additionalProperties": False,
    }
    schema = {"type": "array", "items": row}
    assert schema_problems(schema, rows) == []
    assert schema_problems(schema, [*rows, {"id": "x", "name": "y"}]) == [
        '10000/id: "x" is not of type "integer"'
    ]


@pytest.mark.parametrize(
    ("schema", "applied"),
    [
        ({}, 1),
        ({"allOf": [{}, {"anyOf": [{}, {}]}]}, 5),
        ({"properties": {"a": {"allOf": [{}] * 3}, "b": {"allOf": [{}] * 4}}}, 5),
        ({"properties": {"a": {}}, "additionalProperties": {"allOf": [{}]}}, 2),
        ({"properties": {"a": {}}, "patternProperties": {"a": {}, "b": {}}}, 3),
        ({"items": {}, "contains": {}}, 2),
        ({"properties": {"left": SELF, "right": SELF}}, 2),
    ],
)
def test_what_is_applied_to_one_place_is_counted(schema: Schema, applied: int) -> None:
    assert measure_cost(schema).applied == applied


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [("abc", 3), ("a{3}", 3), ("[a-z]{2,5}x", 6), ("(ab{2}){10}", 30), (r"\d+\.(\w|-)*", 4),
     ("((a{10}){10}){10}", 1000), ("a{2,}", 2), (")(", 1)],
)  # fmt: skip
def test_what_a_pattern_repeats_is_written_out(pattern: str, expected: int) -> None:
    assert pattern_size(pattern) == expected
