"""Split a schema into the parts for this place and for the places below."""

from collections.abc import Container, Mapping
from typing import Any, NamedTuple

import msgspec

from moot.core.json.schema_patterns import pattern_cost
from moot.core.json.schema_refs import META_STEPS, SchemaDocument, UnboundedSchema, list_patterns

#: keywords that hold schemas for the same place
LISTS = ("allOf", "anyOf", "oneOf")
SINGLE = ("not", "if", "then", "else")
BY_NAME = ("dependentSchemas", "dependencies")
DYNAMIC = ("$dynamicRef", "$recursiveRef")

#: comparing a value with an object or a list costs more than with a word
COMPARED = 32
UNIQUE_STEPS = 8


class SchemaEdge(NamedTuple):
    """A schema for places below: for one key, or for all keys except ``but``."""

    kind: str
    key: str | int | None
    but: Container[Any]
    schema: Mapping[str, object]


class SchemaPart(NamedTuple):
    """One schema's subschemas and the cost of its own keywords."""

    here: list[Mapping[str, object]]
    below: list[SchemaEdge]
    #: those of `below` that apply once more when evaluation is tracked
    again: list[SchemaEdge]
    unevaluated: bool
    unique: bool
    branches: bool
    steps: int
    text: int
    patterns: int


def split_schema(schema: Mapping[str, object], document: SchemaDocument) -> SchemaPart:
    """Raise UnboundedSchema. Keywords of every draft count, whichever the schema declares."""
    here, steps = _ref_targets(schema, document)
    inner_schemas = [schema.get(word) for word in SINGLE]
    for word in LISTS:
        inner_schemas += _list_at(schema, word)
    for word in BY_NAME:
        inner_schemas += _mapping_at(schema, word).values()
    here += [inner for inner in inner_schemas if isinstance(inner, dict)]
    again, patterns = _unevaluated_edges(schema), list_patterns(schema)
    return SchemaPart(
        here=here,
        below=[*_properties(schema), *_items(schema), *again],
        again=again,
        unevaluated="unevaluatedProperties" in schema or "unevaluatedItems" in schema,
        unique=bool(schema.get("uniqueItems")),
        branches="anyOf" in schema or "oneOf" in schema,
        steps=1 + steps + _own_steps(schema),
        text=sum(map(pattern_cost, patterns)) + ("format" in schema),
        patterns=len(patterns),
    )


def _ref_targets(
    schema: Mapping[str, object], document: SchemaDocument
) -> tuple[list[Mapping[str, object]], int]:
    for word in DYNAMIC:
        if word in schema:
            raise UnboundedSchema(f"{word} is not taken here; use $ref")
    ref = schema.get("$ref")
    if not isinstance(ref, str):
        return [], 0
    targets = document.targets(ref)
    return ([], META_STEPS) if targets is None else (list(targets), 0)


def _properties(schema: Mapping[str, object]) -> list[SchemaEdge]:
    own, matched = _mapping_at(schema, "properties"), _mapping_at(schema, "patternProperties")
    return _edges(
        *(("property", name, (), inner) for name, inner in own.items()),
        *(("property", None, (), inner) for inner in matched.values()),
        ("property", None, own.keys(), schema.get("additionalProperties")),
        ("name", None, (), schema.get("propertyNames")),
    )


def _edges(*candidates: tuple[str, str | int | None, Container[Any], object]) -> list[SchemaEdge]:
    """Return the edges to schemas; the values true and false and a missing one cost nothing."""
    return [
        SchemaEdge(kind, key, but, schema)
        for kind, key, but, schema in candidates
        if isinstance(schema, dict)
    ]


def _items(schema: Mapping[str, object]) -> list[SchemaEdge]:
    """A list of `items` is the older form of `prefixItems`."""
    lists = [_list_at(schema, word) for word in ("prefixItems", "items")]
    numbered = [pair for listed in lists for pair in enumerate(listed)]
    return _edges(
        *(("item", number, (), inner) for number, inner in numbered),
        ("item", None, range(len(lists[0])), schema.get("items")),
        ("item", None, range(max(map(len, lists))), schema.get("additionalItems")),
    )


def _unevaluated_edges(schema: Mapping[str, object]) -> list[SchemaEdge]:
    own = _mapping_at(schema, "properties").keys()
    return _edges(
        ("property", None, own, schema.get("unevaluatedProperties")),
        ("item", None, (), schema.get("unevaluatedItems")),
        ("item", None, (), schema.get("contains")),
    )


def _own_steps(schema: Mapping[str, object]) -> int:
    needed = [schema.get("required"), *_mapping_at(schema, "dependentRequired").values()]
    needed += _mapping_at(schema, "dependencies").values()
    steps = sum(len(names) for names in needed if isinstance(names, list))
    steps += sum(_comparison_cost(option) for option in _list_at(schema, "enum"))
    if "const" in schema:
        steps += _comparison_cost(schema["const"])
    if "multipleOf" in schema:
        steps += COMPARED
    return steps + UNIQUE_STEPS * bool(schema.get("uniqueItems"))


def _comparison_cost(option: Any) -> int:
    if not isinstance(option, dict | list):
        return 1
    return COMPARED * count_places(msgspec.json.encode(option))


def count_places(body: bytes) -> int:
    """Return an upper bound of the number of values and names in a JSON text."""
    return 1 + body.count(b",") + body.count(b"[") + body.count(b"{") + body.count(b":")


def _mapping_at(schema: Mapping[str, object], word: str) -> dict[str, object]:
    value = schema.get(word)
    return value if isinstance(value, dict) else {}


def _list_at(schema: Mapping[str, object], word: str) -> list[Any]:
    value = schema.get(word)
    return value if isinstance(value, list) else []
