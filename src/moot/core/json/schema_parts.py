"""Split a schema into the parts for this place and for the places below."""

from collections.abc import Container
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
    schema: dict[str, Any]


class SchemaPart(NamedTuple):
    """One schema's subschemas and the cost of its own keywords."""

    here: list[dict[str, Any]]
    below: list[SchemaEdge]
    #: those of `below` that apply once more when evaluation is tracked
    again: list[SchemaEdge]
    unevaluated: bool
    unique: bool
    branches: bool
    steps: int
    text: int
    patterns: int


def split_schema(schema: dict[str, Any], document: SchemaDocument) -> SchemaPart:
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
    schema: dict[str, Any], document: SchemaDocument
) -> tuple[list[dict[str, Any]], int]:
    for word in DYNAMIC:
        if word in schema:
            raise UnboundedSchema(f"{word} is not taken here; use $ref")
    ref = schema.get("$ref")
    if not isinstance(ref, str):
        return [], 0
    targets = document.targets(ref)
    return ([], META_STEPS) if targets is None else (list(targets), 0)


def _properties(schema: dict[str, Any]) -> list[SchemaEdge]:
    own = _mapping_at(schema, "properties")
    edges = [SchemaEdge("property", name, (), inner) for name, inner in own.items()]
    edges += [
        SchemaEdge("property", None, (), x)
        for x in _mapping_at(schema, "patternProperties").values()
    ]
    edges.append(SchemaEdge("property", None, own.keys(), schema.get("additionalProperties", True)))
    edges.append(SchemaEdge("name", None, (), schema.get("propertyNames", True)))
    return [edge for edge in edges if isinstance(edge.schema, dict)]


def _items(schema: dict[str, Any]) -> list[SchemaEdge]:
    """A list of `items` is the older form of `prefixItems`."""
    items = schema.get("items", True)
    edges: list[SchemaEdge] = []
    first = 0
    for word in ("prefixItems", "items"):
        listed = _list_at(schema, word)
        edges += [SchemaEdge("item", number, (), inner) for number, inner in enumerate(listed)]
        first = max(first, len(listed))
    edges.append(SchemaEdge("item", None, range(len(_list_at(schema, "prefixItems"))), items))
    edges.append(SchemaEdge("item", None, range(first), schema.get("additionalItems", True)))
    return [edge for edge in edges if isinstance(edge.schema, dict)]


def _unevaluated_edges(schema: dict[str, Any]) -> list[SchemaEdge]:
    own = _mapping_at(schema, "properties").keys()
    edges = [
        SchemaEdge("property", None, own, schema.get("unevaluatedProperties", True)),
        SchemaEdge("item", None, (), schema.get("unevaluatedItems", True)),
        SchemaEdge("item", None, (), schema.get("contains", True)),
    ]
    return [edge for edge in edges if isinstance(edge.schema, dict)]


def _own_steps(schema: dict[str, Any]) -> int:
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


def _mapping_at(schema: dict[str, Any], word: str) -> dict[str, Any]:
    value = schema.get(word)
    return value if isinstance(value, dict) else {}


def _list_at(schema: dict[str, Any], word: str) -> list[Any]:
    value = schema.get(word)
    return value if isinstance(value, list) else []
