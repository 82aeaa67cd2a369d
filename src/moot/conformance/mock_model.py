"""Answers of the mock model, programmed by a test for each node."""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

#: Programmed nodes. The oldest program makes room.
MOST_PROGRAMS = 1000
MOST_ANSWERS = 100
MOST_ITEMS = 16

Text = Annotated[str, Meta(max_length=100_000)]


class MockAnswer(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """One programmed answer of the mock model."""

    content: Text
    stop_reason: Annotated[str, Meta(min_length=1, max_length=64)] = "end_turn"
    refusal_text: Text | None = None

    def as_answer(self) -> dict[str, object]:
        answer: dict[str, object] = {"content": self.content, "stopReason": self.stop_reason}
        return answer if self.refusal_text is None else {**answer, "refusalText": self.refusal_text}


class MockPrograms:
    """The programs of one server. They live as long as it does."""

    def __init__(self) -> None:
        self._answers: OrderedDict[tuple[str, str], list[MockAnswer]] = OrderedDict()
        #: Number of used answers.
        self._given: dict[tuple[str, str], int] = {}

    def tell(self, tenant: str, node_id: str, answers: list[MockAnswer]) -> None:
        """Answer the node's next calls with these, one after another."""
        key = (tenant, node_id)
        self._answers[key], self._given[key] = answers, 0
        self._answers.move_to_end(key)
        if len(self._answers) > MOST_PROGRAMS:
            oldest, _ = self._answers.popitem(last=False)
            del self._given[oldest]

    def next(self, tenant: str, node_id: str) -> dict[str, object] | None:
        """Return the next unused answer, or None."""
        key = (tenant, node_id)
        answers, number = self._answers.get(key, []), self._given.get(key, 0)
        if number >= len(answers):
            return None
        self._given[key] = number + 1
        return answers[number].as_answer()

    def answer(self, tenant: str, node_id: str, schema: Mapping[str, object]) -> dict[str, object]:
        """Return the next answer, then the last one again and again.

        An unprogrammed node gets a sample of the schema.
        """
        answer = self.next(tenant, node_id)
        if answer is not None:
            return answer
        answers = self._answers.get((tenant, node_id))
        return answers[-1].as_answer() if answers else _default_answer(schema)

    def clear(self) -> None:
        self._answers.clear()
        self._given.clear()


def _default_answer(schema: Mapping[str, object]) -> dict[str, object]:
    content = msgspec.json.encode(sample_value(schema)).decode()
    return {"content": content, "stopReason": "end_turn"}


def sample_value(schema: Any) -> Any:
    """Return a small value that fits the simple keywords of a schema."""
    if not isinstance(schema, dict):
        return None
    for word in ("const", "default"):
        if word in schema:
            return schema[word]
    if schema.get("enum"):
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            shapes = schema.get("properties", {})
            return {name: sample_value(shapes.get(name, {})) for name in schema.get("required", [])}
        case "array":
            return [sample_value(schema.get("items", {}))] * min(
                schema.get("minItems", 0), MOST_ITEMS
            )
        case kind:
            plain = {"string": "mock", "boolean": True, "integer": 0, "number": 0}
            return plain.get(kind) if isinstance(kind, str) else None
