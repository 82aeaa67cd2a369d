"""One schema, taken apart: what it applies to the same place, what to the places below, and what
its own keywords cost."""

from collections.abc import Container
from typing import Any, NamedTuple

import msgspec

from moot.core.json.schema_patterns import effort
from moot.core.json.schema_refs import META_STEPS, Document, Unbounded, patterns_of

#: keywords that hold schemas for the same place
LISTS = ("allOf", "anyOf", "oneOf")
SINGLE = ("not", "if", "then", "else")
BY_NAME = ("dependentSchemas", "dependencies")
DYNAMIC = ("$dynamicRef", "$recursiveRef")

#: comparing a value with an object or a list costs more than with a word
COMPARED = 32
UNIQUE_STEPS = 8


class Edge(NamedTuple):
    """A schema for places below: for one key, or for all `but` some."""

    kind: str
    key: str | int | None
    but: Container[Any]
    schema: dict[str, Any]


class Part(NamedTuple):
    here: list[dict[str, Any]]
    below: list[Edge]
    #: those of `below` that are applied once more to learn what was evaluated
    again: list[Edge]
    unevaluated: bool
    unique: bool
    branches: bool
    steps: int
    text: int
    patterns: int


def parts_of(schema: dict[str, Any], document: Document) -> Part:
    """Raises Unbounded. Keywords of every draft count, whichever the schema says it is."""
    here, steps = _referred(schema, document)
    found = [schema.get(word) for word in SINGLE]
    for word in LISTS:
        found += _listed(schema, word)
    for word in BY_NAME:
        found += _named(schema, word).values()
    here += [inner for inner in found if isinstance(inner, dict)]
    again, patterns = _again(schema), patterns_of(schema)
    return Part(
        here=here,
        below=[*_properties(schema), *_items(schema), *again],
        again=again,
        unevaluated="unevaluatedProperties" in schema or "unevaluatedItems" in schema,
        unique=bool(schema.get("uniqueItems")),
        branches="anyOf" in schema or "oneOf" in schema,
        steps=1 + steps + _own_steps(schema),
        text=sum(map(effort, patterns)) + ("format" in schema),
        patterns=len(patterns),
    )


def _referred(schema: dict[str, Any], document: Document) -> tuple[list[dict[str, Any]], int]:
    for word in DYNAMIC:
        if word in schema:
            raise Unbounded(f"{word} is not taken here; use $ref")
    ref = schema.get("$ref")
    if not isinstance(ref, str):
        return [], 0
    found = document.targets(ref)
    return ([], META_STEPS) if found is None else (list(found), 0)


def _properties(schema: dict[str, Any]) -> list[Edge]:
    own = _named(schema, "properties")
    found = [Edge("property", name, (), inner) for name, inner in own.items()]
    found += [Edge("property", None, (), x) for x in _named(schema, "patternProperties").values()]
    found.append(Edge("property", None, own.keys(), schema.get("additionalProperties", True)))
    found.append(Edge("name", None, (), schema.get("propertyNames", True)))
    return [edge for edge in found if isinstance(edge.schema, dict)]


def _items(schema: dict[str, Any]) -> list[Edge]:
    """A list of `items` is what older drafts call `prefixItems`."""
    items = schema.get("items", True)
    found: list[Edge] = []
    first = 0
    for word in ("prefixItems", "items"):
        listed = _listed(schema, word)
        found += [Edge("item", number, (), inner) for number, inner in enumerate(listed)]
        first = max(first, len(listed))
    found.append(Edge("item", None, range(len(_listed(schema, "prefixItems"))), items))
    found.append(Edge("item", None, range(first), schema.get("additionalItems", True)))
    return [edge for edge in found if isinstance(edge.schema, dict)]


def _again(schema: dict[str, Any]) -> list[Edge]:
    own = _named(schema, "properties").keys()
    found = [
        Edge("property", None, own, schema.get("unevaluatedProperties", True)),
        Edge("item", None, (), schema.get("unevaluatedItems", True)),
        Edge("item", None, (), schema.get("contains", True)),
    ]
    return [edge for edge in found if isinstance(edge.schema, dict)]


def _own_steps(schema: dict[str, Any]) -> int:
    needed = [schema.get("required"), *_named(schema, "dependentRequired").values()]
    needed += _named(schema, "dependencies").values()
    steps = sum(len(names) for names in needed if isinstance(names, list))
    steps += sum(_compared(option) for option in _listed(schema, "enum"))
    if "const" in schema:
        steps += _compared(schema["const"])
    if "multipleOf" in schema:
        steps += COMPARED
    return steps + UNIQUE_STEPS * bool(schema.get("uniqueItems"))


def _compared(option: Any) -> int:
    if not isinstance(option, dict | list):
        return 1
    return COMPARED * places(msgspec.json.encode(option))


def places(body: bytes) -> int:
    """At least the number of values in a JSON text, and of names, which have schemas of their
    own."""
    return 1 + body.count(b",") + body.count(b"[") + body.count(b"{") + body.count(b":")


def _named(schema: dict[str, Any], word: str) -> dict[str, Any]:
    found = schema.get(word)
    return found if isinstance(found, dict) else {}


def _listed(schema: dict[str, Any], word: str) -> list[Any]:
    found = schema.get(word)
    return found if isinstance(found, list) else []
