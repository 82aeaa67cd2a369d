"""Of generated schemas and values: what a validator does stays below what was weighed, and what it
says is what a validator without any bound says."""

from typing import Any

import jsonschema_rs
import msgspec
from hypothesis import assume, example, given
from hypothesis import strategies as st

from moot.core.json.schema import (
    LONGEST_TEXT,
    MOST_PROBLEMS,
    TOO_LARGE,
    SchemaError,
    check_schema,
    schema_problems,
)
from moot.core.json.schema_cost import MOST_APPLIED, measure_cost
from moot.core.json.schema_parts import count_places
from moot.core.json.schema_refs import UnboundedSchema

NAMES = ("a", "b", "ab")
DEFS = ("x", "y", "z")

values = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["", "a", "ab", "zz"]),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)
    ),
    max_leaves=12,
)

leaves = st.sampled_from(
    [
        {},
        {"type": "string"},
        {"type": ["object", "array"]},
        {"type": "integer", "maximum": 2},
        {"enum": ["a", 1, [1], {"a": 1}]},
        {"const": {"a": 1}},
        {"pattern": "^a"},
        {"pattern": "a(?!b)"},
        {"required": ["a", "b"]},
        {"uniqueItems": True},
        {"minItems": 1, "minProperties": 1, "minLength": 1},
        *({"$ref": f"#/$defs/{name}"} for name in DEFS),
        {"$ref": "#"},
    ]
)


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=1, max_size=3)
    named = st.dictionaries(st.sampled_from(NAMES), inner, min_size=1, max_size=3)
    any_of_them = {
        "allOf": several,
        "anyOf": several,
        "oneOf": several,
        "prefixItems": several,
        "properties": named,
        "patternProperties": named,
        "dependentSchemas": named,
        **dict.fromkeys(
            ("not", "if", "then", "else", "items", "contains", "propertyNames",
             "additionalProperties", "unevaluatedProperties", "unevaluatedItems"), inner
        ),
    }  # fmt: skip
    return st.lists(
        st.sampled_from(sorted(any_of_them)), min_size=1, max_size=4, unique=True
    ).flatmap(lambda words: st.fixed_dictionaries({word: any_of_them[word] for word in words}))


parts = st.recursive(leaves, containers, max_leaves=8)
whole = st.builds(
    lambda root, defs: {**root, "$defs": defs},
    parts,
    st.fixed_dictionaries(dict.fromkeys(DEFS, parts)),
)


@given(whole, values)
def test_the_answer_is_that_of_the_plain_validator(schema: dict[str, Any], value: Any) -> None:
    try:
        check_schema(schema)
    except SchemaError:
        assume(False)
    plain = jsonschema_rs.validator_for(schema, offline=True)
    found = schema_problems(schema, value)
    assume(found != [TOO_LARGE])
    assert (found == []) is plain.is_valid(value)
    assert all(len(text) <= LONGEST_TEXT for text in found)
    assert len(found) <= MOST_PROBLEMS


class Counting:
    """A keyword that is in every subschema and counts how often it is asked."""

    asked = 0

    def __init__(self, parent: Any, value: Any, path: Any) -> None:
        pass

    def validate(self, instance: Any) -> None:
        Counting.asked += 1


def counted(schema: Any) -> Any:
    """The schema with the keyword in every place that is a schema."""
    if isinstance(schema, list):
        return [counted(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    inner: dict[str, Any] = {"countingKeyword": True}
    for word, value in schema.items():
        if word in ("enum", "const", "required", "type"):
            inner[word] = value
        elif word in ("properties", "patternProperties", "dependentSchemas", "$defs"):
            inner[word] = {name: counted(item) for name, item in value.items()}
        else:
            inner[word] = counted(value)
    return inner


@example({"propertyNames": {}, "additionalProperties": {}}, {"a": None})
@given(whole, values)
def test_no_more_is_done_than_was_weighed(schema: dict[str, Any], value: Any) -> None:
    try:
        weight = measure_cost(schema)
    except UnboundedSchema:
        assume(False)
    assert weight.applied <= MOST_APPLIED
    validator = jsonschema_rs.validator_for(
        counted(schema), offline=True, keywords={"countingKeyword": Counting}
    )
    Counting.asked = 0
    validator.is_valid(value)
    assert Counting.asked <= weight.applied * count_places(msgspec.json.encode(value))


@given(st.binary(max_size=200) | st.text(max_size=200), whole)
def test_weighing_never_ends_in_another_way(text: Any, schema: dict[str, Any]) -> None:
    """Whatever stands where a schema or a keyword's value should be."""
    for word in list(schema):
        broken = {**schema, word: str(text)}
        try:
            check_schema(broken)
        except SchemaError as refusal:
            assert len(str(refusal)) <= LONGEST_TEXT


@given(values)
def test_no_value_has_more_places_than_are_counted(value: Any) -> None:
    def count(found: Any) -> int:
        inner = found.values() if isinstance(found, dict) else found
        names = len(found) if isinstance(found, dict) else 0
        return 1 + names + sum(map(count, inner)) if isinstance(found, dict | list) else 1

    assert count(value) <= count_places(msgspec.json.encode(value))
