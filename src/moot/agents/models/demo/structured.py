"""Make a JSON value for a schema, with text and choices that fit."""

from collections.abc import Mapping

import msgspec
from msgspec import UNSET, Struct

from moot.agents.models.demo import turn
from moot.agents.models.demo.scene import Scene
from moot.core.errors.models import ModelBadRequest

DEEPEST = 12
#: optional properties are left out below this depth
USUAL_DEPTH = 4
MOST_ITEMS = 2
#: the most values of one answer
MOST_VALUES = 2000
LONGEST = 10_000

REASONS = ("reason", "rationale", "why", "explanation", "comment", "justification")
WORDS = ("text", "content", "answer", "message", "statement", "turn", "say", "prompt", "question")
#: the preferred choices of the first turn, and of later ones
FIRST_CHOICES = ("next-worker", "speak", "yes", "approve", "accept")
LATER_CHOICES = ("terminate", "yes", "approve", "accept")


class SchemaKeywords(Struct, frozen=True, rename="camel"):
    """The keywords of a schema that decide the value."""

    const: object = UNSET
    default: object = UNSET
    enum: list[object] = []
    type: str | list[str] | None = None
    properties: dict[str, object] | None = None
    required: list[str] = []
    items: object = {}
    min_items: int = 0
    max_items: int | None = None
    minimum: int | float | None = None
    maximum: int | float | None = None
    exclusive_minimum: int | float = -1
    min_length: int = 0
    max_length: int | None = None

    @property
    def kind(self) -> str:
        if isinstance(self.type, list):
            return next((one for one in self.type if one != "null"), "null")
        return self.type or ("string" if self.properties is None else "object")


def value_for_schema(schema: Mapping[str, object], scene: Scene) -> object:
    """Return a value that most likely fits; the caller checks it.

    Raise ModelBadRequest for an invalid schema, or for one that asks for too much."""
    try:
        return _SchemaFiller(schema, scene).value(schema, "", 0)
    except (msgspec.ValidationError, TypeError, ValueError, LookupError, AttributeError) as error:
        raise ModelBadRequest(f"demo does not understand this schema: {error}") from None


class _SchemaFiller:
    """Builds one value, with a limit on its size."""

    def __init__(self, root: Mapping[str, object], scene: Scene) -> None:
        self._root, self._scene = root, scene
        self._left = MOST_VALUES
        self._speakers = _speakers(root)

    def value(self, schema: object, name: str, depth: int) -> object:
        part = self._read(schema, depth)
        if depth > DEEPEST:
            return None
        if part.const is not UNSET:
            return part.const
        if part.default is not UNSET:
            return part.default
        if part.enum:
            return self._choice(part.enum, name)
        match part.kind:
            case "object":
                return self._object(part, depth)
            case "array":
                return self._array(part, name, depth)
            case "boolean":
                return self._boolean(name)
            case "integer" | "number":
                return self._number(part, name)
            case "null":
                return None
            case _:
                return self._text(part, name)

    def _read(self, schema: object, depth: int) -> SchemaKeywords:
        return msgspec.convert(self._resolve(schema, depth), SchemaKeywords)

    def _resolve(self, schema: object, depth: int) -> dict[str, object]:
        """Follow references, choose one of several options, and merge ``allOf``."""
        self._left -= 1
        if self._left < 0:
            raise ModelBadRequest(f"demo makes no value with more than {MOST_VALUES} parts.")
        if depth > DEEPEST:
            return {}
        for _ in range(DEEPEST):
            if not isinstance(schema, dict):
                return {}
            if isinstance(ref := schema.get("$ref"), str):
                schema = self._follow_reference(ref)
            elif options := schema.get("oneOf") or schema.get("anyOf"):
                rest = {k: v for k, v in schema.items() if k not in ("oneOf", "anyOf")}
                schema = {**rest, **self._choose_option(options, depth)}
            elif parts := schema.get("allOf"):
                whole = {k: v for k, v in schema.items() if k != "allOf"}
                for part in parts:
                    whole = _merge_schemas(whole, self._resolve(part, depth + 1))
                schema = whole
            else:
                return schema
        return {}

    def _choose_option(self, options: list[object], depth: int) -> dict[str, object]:
        """Return the option with the preferred ``kind``, else the first."""
        resolved = [self._resolve(option, depth + 1) for option in options]
        for word in self._preferred():
            for option in resolved:
                if word in _constants(option):
                    return option
        return next((option for option in resolved if option.get("type") != "null"), {})

    def _follow_reference(self, ref: str) -> object:
        node: object = self._root
        for part in ref.removeprefix("#").strip("/").split("/"):
            if part and isinstance(node, dict):
                node = node.get(part.replace("~1", "/").replace("~0", "~"), {})
        return node

    def _object(self, schema: SchemaKeywords, depth: int) -> dict[str, object]:
        parts = (schema.properties or {}).items()
        wanted = [row for row in parts if depth < USUAL_DEPTH or row[0] in schema.required]
        value = {name: self.value(part, name, depth + 1) for name, part in wanted}
        for name in schema.required:
            value.setdefault(name, self._text(SchemaKeywords(), name))
        return value

    def _array(self, schema: SchemaKeywords, name: str, depth: int) -> list[object]:
        items = self._read(schema.items, depth)
        least = min(MOST_VALUES, schema.min_items)
        most = max(least, MOST_ITEMS) if schema.max_items is None else schema.max_items
        wishes = turn.find_wishes(self._scene.heard, self._scene.me)
        rows: list[object]
        if "disagree" in name.lower() or "dissent" in name.lower():
            if {*(items.properties or ())} == {"by", "text"}:
                return [*turn.differences_by_agent(wishes)[: max(least, min(most, 8))]]
            rows = [*turn.list_disagreements(wishes)]
        elif "agree" in name.lower():
            rows = [*turn.list_agreements(wishes)]
        elif items.enum:
            rows = items.enum[: max(least, MOST_ITEMS)]
        else:
            return [self.value(schema.items, name, depth + 1) for _ in range(max(1, least))][:most]
        if items.type not in ("string", None):
            rows = []
        while len(rows) < least:
            rows.append(self.value(schema.items, name, depth + 1))
        return rows[: max(least, min(most, 8))]

    def _preferred(self) -> tuple[str, ...]:
        return FIRST_CHOICES if self._scene.round == 0 else LATER_CHOICES

    def _choice(self, choices: list[object], name: str) -> object:
        if name == "next" and self._speakers:
            return turn.least_heard_agent(self._scene, self._speakers)
        vote, _ = turn.choose_vote(self._scene)
        if vote in choices and ({"yes", "no"} <= set(map(str, choices)) or name == "vote"):
            return vote
        preferred = [choice for choice in self._preferred() if choice in choices]
        return preferred[0] if preferred else self._scene.draw.pick(choices)

    def _boolean(self, name: str) -> bool:
        """Raise a hand two times out of three; answer other questions by the vote. Do not stop
        before every agent has spoken."""
        if name == "stop" and turn.silent_agents(self._scene, self._speakers):
            return False
        if any(word in name.lower() for word in ("raise", "wants", "speak", "hand")):
            return not self._scene.draw.chance(3)
        return turn.choose_vote(self._scene)[0] == "yes"

    def _number(self, schema: SchemaKeywords, name: str) -> int | float:
        least, most = schema.minimum, schema.maximum
        share = (least in (0, None) and most == 1) or any(
            word in name.lower() for word in ("confidence", "probability", "score")
        )
        if share and schema.kind == "number":
            return round(0.7 + self._scene.draw.number(26) / 100, 2)
        low = int(least if least is not None else schema.exclusive_minimum + 1)
        high = int(most if most is not None else low + 10)
        return low + self._scene.draw.number(max(1, high - low + 1))

    def _text(self, schema: SchemaKeywords, name: str) -> str:
        scene, word = self._scene, name.lower()
        if word == "vote":
            text = turn.choose_vote(scene)[0]
        elif word in REASONS:
            text = turn.choose_vote(scene)[1]
        elif "decision" in word or "proposal" in word:
            text = turn.propose_decision(scene)
        elif "summar" in word or "synthesis" in word or "minutes" in word:
            text = turn.write_synthesis(scene)
        elif word in WORDS or not word:
            text = turn.write_turn(scene)
        elif word in ("name", "speaker", "agent"):
            text = scene.me
        else:
            text = scene.topic.thing
        return text[: schema.max_length].ljust(min(LONGEST, schema.min_length), ".")


def _constants(option: Mapping[str, object]) -> list[object]:
    """Return the constants among the properties of a schema."""
    parts = option.get("properties")
    values = parts.values() if isinstance(parts, dict) else ()
    return [part.get("const") for part in values if isinstance(part, dict)]


def _speakers(schema: Mapping[str, object]) -> list[str]:
    """Return the candidates of a schema that asks for the next speaker."""
    parts = schema.get("properties")
    if not isinstance(parts, dict) or not {"next", "stop"} <= {*parts}:
        return []
    choices = parts["next"].get("enum") if isinstance(parts["next"], dict) else None
    return [name for name in choices or () if isinstance(name, str)]


def _merge_schemas(one: Mapping[str, object], other: Mapping[str, object]) -> dict[str, object]:
    """Merge two schemas that both apply, with their properties."""
    parts = [msgspec.convert(schema, SchemaKeywords) for schema in (one, other)]
    properties = {name: value for part in parts for name, value in (part.properties or {}).items()}
    required = dict.fromkeys(name for part in parts for name in part.required)
    joined = {**one, **other}
    if properties:
        joined["properties"] = properties
    if required:
        joined["required"] = [*required]
    return joined
