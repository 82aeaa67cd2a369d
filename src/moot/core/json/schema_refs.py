"""Resolve the references of a JSON Schema.

Ambiguous references are refused, so that the validator never follows another path than the one
whose cost was measured.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import unquote

from moot.core.json.schema_patterns import pattern_size

MOST_OBJECTS = 20_000
#: the sum of the sizes of all patterns
MOST_PATTERN = 100_000

#: the meta-schemas, which every validator includes
META_SCHEMA = re.compile(r"https?://json-schema\.org/(draft-0[467]|draft/(2019-09|2020-12))/schema")
META_STEPS = 200


class UnboundedSchema(Exception):
    """The work of the schema cannot be bounded, or is too much."""


class SchemaDocument:
    """A whole schema and the targets of its references."""

    def __init__(self, root: Mapping[str, object]) -> None:
        self._root = root
        self._anchors: dict[str, list[Mapping[str, object]]] = {}
        self._inner_id = self._old_id = self._old = self._dynamic = False
        self.objects = patterns = 0
        for schema in _objects(root):
            self.objects += 1
            if self.objects > MOST_OBJECTS:
                raise UnboundedSchema("it is too large")
            patterns += sum(pattern_size(pattern) for pattern in list_patterns(schema))
            self._note(schema)
        if patterns > MOST_PATTERN:
            raise UnboundedSchema("its patterns are too large")
        own = root.get("$id", root.get("id") if self._old else None)
        self._id = own.removesuffix("#") if isinstance(own, str) else ""

    def _note(self, schema: Mapping[str, object]) -> None:
        for word in ("$anchor", "$dynamicAnchor"):
            if isinstance(anchor := schema.get(word), str):
                self._anchors.setdefault(anchor, []).append(schema)
        if schema is not self._root:
            self._inner_id |= isinstance(schema.get("$id"), str)
            self._old_id |= isinstance(schema.get("id"), str)
        self._old |= "draft-04" in str(schema.get("$schema"))
        self._dynamic |= "$dynamicAnchor" in schema or "$recursiveAnchor" in schema

    def targets(self, ref: str) -> list[Mapping[str, object]] | None:
        """Return the possible targets; None for a meta-schema. Raise UnboundedSchema."""
        base, _, fragment = ref.partition("#")
        if self._inner_id or (self._old and self._old_id):
            raise UnboundedSchema("a schema that uses $ref may have an $id at its top only")
        if META_SCHEMA.fullmatch(self._id):
            raise UnboundedSchema("its $id is that of another schema")
        if META_SCHEMA.fullmatch(base) and not fragment and not self._dynamic:
            return None
        if base not in ("", self._id):
            raise UnboundedSchema(
                f"a $ref can only lead to a place within the schema, not to '{ref}'"
            )
        if not fragment or fragment.startswith("/"):
            target = self._at(fragment)
            return [target] if isinstance(target, dict) else []
        if fragment not in self._anchors:
            raise UnboundedSchema(f"the $ref '{ref}' leads nowhere")
        return self._anchors[fragment]

    def _at(self, pointer: str) -> Mapping[str, object] | bool:
        value: Any = self._root
        for word in unquote(pointer).split("/")[1:]:
            key = word.replace("~1", "/").replace("~0", "~")
            if isinstance(value, dict) and key in value:
                value = value[key]
            elif isinstance(value, list) and key in map(str, range(len(value))):
                value = value[int(key)]
            else:
                raise UnboundedSchema(f"the $ref '#{pointer}' leads nowhere")
        if not isinstance(value, dict | bool):
            raise UnboundedSchema(f"the $ref '#{pointer}' does not lead to a schema")
        return value


def _objects(root: Any) -> Iterable[Mapping[str, object]]:
    waiting = [root]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            yield value
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value


def list_patterns(schema: Mapping[str, object]) -> list[str]:
    named = schema.get("patternProperties")
    single = schema.get("pattern")
    return [*(named if isinstance(named, dict) else ()), *([single] * isinstance(single, str))]
