"""What a JSON Schema refers to. Only references whose target is beyond doubt are taken: a validator
must never arrive somewhere else than who weighed its work."""

import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote

from moot.core.json.schema_patterns import size

MOST_OBJECTS = 20_000
#: the sum of the sizes of all patterns
MOST_PATTERN = 100_000

#: the schemas of schemas, which every validator brings along
META_SCHEMA = re.compile(r"https?://json-schema\.org/(draft-0[467]|draft/(2019-09|2020-12))/schema")
META_STEPS = 200


class Unbounded(Exception):
    """Nobody can say how much work the schema would be, or it is too much."""


class Document:
    """A whole schema, and what can be found in it by reference."""

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._anchors: dict[str, list[dict[str, Any]]] = {}
        self._inner_id = self._old_id = self._old = self._dynamic = False
        self.objects = patterns = 0
        for found in _objects(root):
            self.objects += 1
            if self.objects > MOST_OBJECTS:
                raise Unbounded("it is too large")
            patterns += sum(size(pattern) for pattern in patterns_of(found))
            self._note(found)
        if patterns > MOST_PATTERN:
            raise Unbounded("its patterns are too large")
        own = root.get("$id", root.get("id") if self._old else None)
        self._id = own.removesuffix("#") if isinstance(own, str) else ""

    def _note(self, found: dict[str, Any]) -> None:
        for word in ("$anchor", "$dynamicAnchor"):
            if isinstance(found.get(word), str):
                self._anchors.setdefault(found[word], []).append(found)
        if found is not self._root:
            self._inner_id |= isinstance(found.get("$id"), str)
            self._old_id |= isinstance(found.get("id"), str)
        self._old |= "draft-04" in str(found.get("$schema"))
        self._dynamic |= "$dynamicAnchor" in found or "$recursiveAnchor" in found

    def targets(self, ref: str) -> list[dict[str, Any]] | None:
        """The schemas it may mean; None for a schema of schemas. Raises Unbounded."""
        base, _, fragment = ref.partition("#")
        if self._inner_id or (self._old and self._old_id):
            raise Unbounded("a schema that uses $ref may have an $id at its top only")
        if META_SCHEMA.fullmatch(self._id):
            raise Unbounded("its $id is that of another schema")
        if META_SCHEMA.fullmatch(base) and not fragment and not self._dynamic:
            return None
        if base not in ("", self._id):
            raise Unbounded(f"a $ref can only lead to a place within the schema, not to '{ref}'")
        if not fragment or fragment.startswith("/"):
            found = self._at(fragment)
            return [found] if isinstance(found, dict) else []
        if fragment not in self._anchors:
            raise Unbounded(f"the $ref '{ref}' leads nowhere")
        return self._anchors[fragment]

    def _at(self, pointer: str) -> dict[str, Any] | bool:
        found: Any = self._root
        for word in unquote(pointer).split("/")[1:]:
            key = word.replace("~1", "/").replace("~0", "~")
            if isinstance(found, dict) and key in found:
                found = found[key]
            elif isinstance(found, list) and key in map(str, range(len(found))):
                found = found[int(key)]
            else:
                raise Unbounded(f"the $ref '#{pointer}' leads nowhere")
        if not isinstance(found, dict | bool):
            raise Unbounded(f"the $ref '#{pointer}' does not lead to a schema")
        return found


def _objects(root: Any) -> Iterable[dict[str, Any]]:
    waiting = [root]
    while waiting:
        found = waiting.pop()
        if isinstance(found, dict):
            yield found
            waiting += found.values()
        elif isinstance(found, list):
            waiting += found


def patterns_of(found: dict[str, Any]) -> list[str]:
    named = found.get("patternProperties")
    single = found.get("pattern")
    return [*(named if isinstance(named, dict) else ()), *([single] * isinstance(single, str))]
