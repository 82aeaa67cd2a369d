"""Make a JSON value for a schema, with text and choices that fit."""

from typing import Any

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


def value_for_schema(schema: dict[str, Any], scene: Scene) -> Any:
    """Return a value that most likely fits; the caller checks it.

    Raise ModelBadRequest for an invalid schema, or for one that asks for too much."""
    try:
        return _SchemaFiller(schema, scene).value(schema, "", 0)
    except (TypeError, ValueError, LookupError, AttributeError) as error:
        raise ModelBadRequest(f"demo does not understand this schema: {error}") from None


class _SchemaFiller:
    """Builds one value, with a limit on its size."""

    def __init__(self, root: dict[str, Any], scene: Scene) -> None:
        self._root, self._scene = root, scene
        self._left = MOST_VALUES
        self._speakers = _speakers(root)

    def value(self, schema: Any, name: str, depth: int) -> Any:
        schema = self._resolve(schema, depth)
        if depth > DEEPEST:
            return None
        for word in ("const", "default"):
            if word in schema:
                return schema[word]
        if schema.get("enum"):
            return self._choice(schema["enum"], name)
        kind = schema.get("type", "object" if "properties" in schema else "string")
        if isinstance(kind, list):
            kind = next((one for one in kind if one != "null"), "null")
        if kind == "object":
            return self._object(schema, depth)
        if kind == "array":
            return self._array(schema, name, depth)
        return self._scalar(schema, name, kind)

    def _scalar(self, schema: dict[str, Any], name: str, kind: str) -> Any:
        if kind == "boolean":
            return self._boolean(name)
        if kind in ("integer", "number"):
            return self._number(schema, name, kind)
        return None if kind == "null" else self._text(schema, name)

    def _resolve(self, schema: Any, depth: int) -> dict[str, Any]:
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

    def _choose_option(self, options: list[Any], depth: int) -> dict[str, Any]:
        """Return the option with the preferred ``kind``, else the first."""
        resolved = [self._resolve(option, depth + 1) for option in options]
        for word in self._preferred():
            for option in resolved:
                constants = [
                    part.get("const")
                    for part in option.get("properties", {}).values()
                    if isinstance(part, dict)
                ]
                if word in constants:
                    return option
        return next((option for option in resolved if option.get("type") != "null"), {})

    def _follow_reference(self, ref: str) -> Any:
        node: Any = self._root
        for part in ref.removeprefix("#").strip("/").split("/"):
            if part and isinstance(node, dict):
                node = node.get(part.replace("~1", "/").replace("~0", "~"), {})
        return node

    def _object(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        required = schema.get("required", ())
        value = {
            name: self.value(part, name, depth + 1)
            for name, part in schema.get("properties", {}).items()
            if depth < USUAL_DEPTH or name in required
        }
        for name in required:
            value.setdefault(name, self._text({}, name))
        return value

    def _array(self, schema: dict[str, Any], name: str, depth: int) -> list[Any]:
        items = self._resolve(schema.get("items", {}), depth)
        least = min(MOST_VALUES, schema.get("minItems", 0))
        most = schema.get("maxItems", max(least, MOST_ITEMS))
        wishes = turn.find_wishes(self._scene.heard, self._scene.me)
        if "disagree" in name.lower() or "dissent" in name.lower():
            if {*items.get("properties", ())} == {"by", "text"}:
                return turn.differences_by_agent(wishes)[: max(least, min(most, 8))]
            rows: list[Any] = turn.list_disagreements(wishes)
        elif "agree" in name.lower():
            rows = turn.list_agreements(wishes)
        elif items.get("enum"):
            rows = list(items["enum"])[: max(least, MOST_ITEMS)]
        else:
            return [self.value(items, name, depth + 1) for _ in range(max(1, least))][:most]
        if items.get("type", "string") != "string":
            rows = []
        while len(rows) < least:
            rows.append(self.value(items, name, depth + 1))
        return rows[: max(least, min(most, 8))]

    def _preferred(self) -> tuple[str, ...]:
        return FIRST_CHOICES if self._scene.round == 0 else LATER_CHOICES

    def _choice(self, choices: list[Any], name: str) -> Any:
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

    def _number(self, schema: dict[str, Any], name: str, kind: str) -> int | float:
        least, most = schema.get("minimum"), schema.get("maximum")
        share = (least in (0, None) and most == 1) or any(
            word in name.lower() for word in ("confidence", "probability", "score")
        )
        if share and kind == "number":
            return round(0.7 + self._scene.draw.number(26) / 100, 2)
        low = int(least if least is not None else schema.get("exclusiveMinimum", -1) + 1)
        high = int(most if most is not None else low + 10)
        return low + self._scene.draw.number(max(1, high - low + 1))

    def _text(self, schema: dict[str, Any], name: str) -> str:
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
        text = text[: schema.get("maxLength", len(text))]
        return text.ljust(min(LONGEST, schema.get("minLength", 0)), ".")


def _speakers(schema: dict[str, Any]) -> list[str]:
    """Return the candidates of a schema that asks for the next speaker."""
    parts = schema.get("properties")
    if not isinstance(parts, dict) or not {"next", "stop"} <= {*parts}:
        return []
    choices = parts["next"].get("enum") if isinstance(parts["next"], dict) else None
    return [name for name in choices or () if isinstance(name, str)]


def _merge_schemas(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Merge two schemas that both apply, with their properties."""
    properties = {**one.get("properties", {}), **other.get("properties", {})}
    required = [*one.get("required", []), *other.get("required", [])]
    joined = {**one, **other}
    if properties:
        joined["properties"] = properties
    if required:
        joined["required"] = list(dict.fromkeys(required))
    return joined
