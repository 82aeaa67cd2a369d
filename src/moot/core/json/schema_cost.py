"""Measure the work of a JSON Schema before anything is validated.

The walk follows the schema as a validator would for the worst value. It counts the subschemas that
apply together to one place of a value and to the places below. The walk itself is bounded, too.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from moot.core.json.schema_parts import SchemaPart, count_places, split_schema
from moot.core.json.schema_refs import SchemaDocument, UnboundedSchema

#: subschemas that may be applied to one place of a value
MOST_APPLIED = 5000
#: subschemas that can be reached; a validator is compiled out of them
MOST_SCHEMAS = 3000
#: steps of the walk: some for every schema, and more for each object in it
STEPS = 2000
STEPS_EACH = 10
#: nesting of subschemas that apply to the same place
DEEPEST = 100

#: whole numbers that a float cannot tell apart: a validator compares each with each for uniqueItems
LONG_NUMBER = re.compile(rb"(?:^|[\[,:])-?\d{16,}(?=[,\]}]|$)")
COMPARISON = 160

APPLIED = "applied"
#: visited once more, to learn which parts were evaluated
MARKED = "marked"

#: (subschema, role) -> how often it is applied or marked
Reach = Counter[tuple[int, str]]
#: the subschemas that apply to one place, with their counts
Meeting = frozenset[tuple[int, int]]


class SchemaCost(msgspec.Struct, frozen=True):
    """The most work for one place of a value, in steps of about ten nanoseconds."""

    #: subschemas applied
    applied: int
    #: steps for each place
    steps: int
    #: eighths of a step for each byte of text, for patterns
    text: int
    patterns: int
    unique: bool
    #: whether one error can carry those of many branches
    branches: bool

    def for_value(self, body: bytes) -> int:
        """Return an upper bound of the steps that checking this JSON takes."""
        work = self.steps * count_places(body) + self.text * len(body) // 8
        return work + uniqueness_cost(body) if self.unique else work


def uniqueness_cost(body: bytes) -> int:
    """Return the most steps that finding equal values in this JSON can take."""
    return COMPARISON * count_places(body) * len(LONG_NUMBER.findall(body))


def measure_cost(schema: Mapping[str, object]) -> SchemaCost:
    """Raise UnboundedSchema when the work for one place is unbounded or too much."""
    return _Survey(schema).weight()


class _Survey:
    """A bounded walk over all subschemas that a value can meet."""

    def __init__(self, root: Mapping[str, object]) -> None:
        self._document = SchemaDocument(root)
        self._root = root
        self._parts: dict[int, SchemaPart] = {}
        self._reached: dict[int, tuple[Reach, Reach]] = {}
        #: subschemas that the walk is inside of
        self._open: set[int] = set()
        self._left = STEPS + STEPS_EACH * self._document.objects

    def weight(self) -> SchemaCost:
        """Follow the meetings downwards until all of them are visited."""
        waiting: list[Meeting] = [frozenset({(self._known(self._root), 1)})]
        visited = set(waiting)
        most = [0, 0, 0, 0]
        while waiting:
            reach = self._together(waiting.pop())
            most = list(map(max, most, self._load(reach)))
            fresh = [
                meeting for meeting in dict.fromkeys(self._below(reach)) if meeting not in visited
            ]
            visited.update(fresh)
            waiting += fresh
        parts = self._parts.values()
        applied, steps, text, patterns = most
        unique, branches = any(x.unique for x in parts), any(x.branches for x in parts)
        return SchemaCost(applied, steps, text, patterns, unique, branches)

    def _load(self, reach: Reach) -> tuple[int, int, int, int]:
        parts = [(self._parts[name], count) for (name, _), count in reach.items()]
        return (
            reach.total(),
            sum(part.steps * count for part, count in parts),
            sum(part.text * count for part, count in parts),
            sum(part.patterns * count for part, count in parts),
        )

    def _known(self, schema: Mapping[str, object]) -> int:
        name = id(schema)
        if name not in self._parts:
            if len(self._parts) >= MOST_SCHEMAS:
                raise UnboundedSchema(f"it has more than {MOST_SCHEMAS} subschemas")
            self._parts[name] = split_schema(schema, self._document)
        return name

    def _spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise UnboundedSchema("its subschemas refer to each other in too many ways")

    def _together(self, meeting: Meeting) -> Reach:
        reach: Reach = Counter()
        for name, count in meeting:
            applied, _ = self._reach(name)
            self._spend(len(applied))
            for place, times in applied.items():
                reach[place] += times * count
        if reach.total() > MOST_APPLIED:
            raise UnboundedSchema(
                "its subschemas are reached in more than one way and multiply: more than"
                f" {MOST_APPLIED} would be applied to one place of a value"
            )
        return reach

    def _reach(self, name: int) -> tuple[Reach, Reach]:
        """Return the subschemas applied at a place, and those applied when tracking evaluation.

        To track evaluation, a validator asks every branch whether it fits, and then what it
        evaluated.
        """
        if name in self._reached:
            return self._reached[name]
        if name in self._open:
            raise UnboundedSchema("a $ref leads back to itself without going into the value")
        if len(self._open) >= DEEPEST:
            problem = f"more than {DEEPEST} subschemas refer to each other at one place"
            raise UnboundedSchema(problem)
        self._open.add(name)
        part = self._parts[name]
        applied: Reach = Counter({(name, APPLIED): 1})
        marked: Reach = Counter({(name, MARKED): 1})
        for schema in part.here:
            both = self._reach(self._known(schema))
            self._spend(2 * len(both[0]) + len(both[1]))
            applied.update(both[0])
            marked.update(both[0])
            marked.update(both[1])
        if part.unevaluated:
            applied.update(marked)
        self._open.remove(name)
        if applied.total() > MOST_APPLIED:
            raise UnboundedSchema(
                f"more than {MOST_APPLIED} subschemas would be applied to one place of a value"
            )
        self._reached[name] = (applied, marked)
        return applied, marked

    def _below(self, reach: Reach) -> Iterable[Meeting]:
        """Return the meetings at the places below: one for every explicit key, and one for the
        others of each kind.
        """
        spelled: dict[tuple[str, str | int | None], Counter[int]] = {}
        wide: dict[str, list[tuple[int, Any, int]]] = {}
        for (name, role), count in reach.items():
            part = self._parts[name]
            edges = part.below if role is APPLIED else part.again
            self._spend(1 + len(edges))
            for edge in edges:
                target = self._known(edge.schema)
                if edge.key is None:
                    wide.setdefault(edge.kind, []).append((target, edge.but, count))
                else:
                    spelled.setdefault((edge.kind, edge.key), Counter())[target] += count
        for kind in wide:
            spelled.setdefault((kind, None), Counter())
        for (kind, key), targets in spelled.items():
            self._spend(1 + len(wide.get(kind, ())))
            for target, but, count in wide.get(kind, ()):
                if key is None or key not in but:
                    targets[target] += count
        return [frozenset(targets.items()) for targets in spelled.values()]
