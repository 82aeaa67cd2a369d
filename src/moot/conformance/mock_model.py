"""What the mock model says, as a test has told it: by tenant and node, one answer a call."""

from collections import OrderedDict
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

#: nodes that are told what to say; the one told first makes room
MOST_PROGRAMS = 1000
MOST_ANSWERS = 100
MOST_ITEMS = 16

Text = Annotated[str, Meta(max_length=100_000)]


class MockAnswer(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    content: Text
    stop_reason: Annotated[str, Meta(min_length=1, max_length=64)] = "end_turn"
    refusal_text: Text | None = None

    def as_said(self) -> dict[str, Any]:
        said: dict[str, Any] = {"content": self.content, "stopReason": self.stop_reason}
        return said if self.refusal_text is None else {**said, "refusalText": self.refusal_text}


class Programs:
    """The programs of one server. They live as long as it does."""

    def __init__(self) -> None:
        self._answers: OrderedDict[tuple[str, str], list[MockAnswer]] = OrderedDict()
        #: how many of them have been given
        self._given: dict[tuple[str, str], int] = {}

    def tell(self, tenant: str, node_id: str, answers: list[MockAnswer]) -> None:
        """From now on the node's calls are answered with these, one after another."""
        key = (tenant, node_id)
        self._answers[key], self._given[key] = answers, 0
        self._answers.move_to_end(key)
        if len(self._answers) > MOST_PROGRAMS:
            oldest, _ = self._answers.popitem(last=False)
            del self._given[oldest]

    def next(self, tenant: str, node_id: str) -> dict[str, Any] | None:
        """The next answer that has not been given; None when there is none."""
        key = (tenant, node_id)
        answers, number = self._answers.get(key, []), self._given.get(key, 0)
        if number >= len(answers):
            return None
        self._given[key] = number + 1
        return answers[number].as_said()

    def answer(self, tenant: str, node_id: str, schema: dict[str, Any]) -> dict[str, Any]:
        """What the model says to a call: the next answer, then the last one again and again.
        One that was told nothing says something of the right shape."""
        found = self.next(tenant, node_id)
        if found is not None:
            return found
        told = self._answers.get((tenant, node_id))
        return told[-1].as_said() if told else _unprompted(schema)

    def clear(self) -> None:
        self._answers.clear()
        self._given.clear()


def _unprompted(schema: dict[str, Any]) -> dict[str, Any]:
    content = msgspec.json.encode(sample(schema)).decode()
    return {"content": content, "stopReason": "end_turn"}


def sample(schema: Any) -> Any:
    """A small value of the shape, as far as the plain words of a schema tell it."""
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
            return {name: sample(shapes.get(name, {})) for name in schema.get("required", [])}
        case "array":
            return [sample(schema.get("items", {}))] * min(schema.get("minItems", 0), MOST_ITEMS)
        case kind:
            plain = {"string": "mock", "boolean": True, "integer": 0, "number": 0}
            return plain.get(kind) if isinstance(kind, str) else None
