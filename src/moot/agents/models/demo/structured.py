"""A JSON value for a schema: words where words are wanted, choices where there is a choice."""

from typing import Any

from moot.agents.models.demo import closing
from moot.agents.models.demo.scene import Scene
from moot.agents.models.demo.turn import turn
from moot.core.errors.models import ModelBadRequest

DEEPEST = 12
#: deeper than this only what is required is given
USUAL_DEPTH = 4
MOST_ITEMS = 2
#: a schema can ask for more than anybody wants to read
MOST_VALUES = 2000
LONGEST = 10_000

REASONS = ("reason", "rationale", "why", "explanation", "comment", "justification")
WORDS = ("text", "content", "answer", "message", "statement", "turn", "say", "prompt", "question")
#: of several kinds of a decision the demo model takes these, in its first turn and later
FIRST_CHOICES = ("next-worker", "speak", "yes", "approve", "accept")
LATER_CHOICES = ("terminate", "yes", "approve", "accept")


def shaped(schema: dict[str, Any], scene: Scene) -> Any:
    """A value that most likely fits; who asks checks it like any other model's answer.

    Raises ModelBadRequest for a schema that is none, or asks for too much.
    """
    try:
        return _Shaping(schema, scene).value(schema, "", 0)
    except (TypeError, ValueError, LookupError, AttributeError) as error:
        raise ModelBadRequest(f"demo does not understand this schema: {error}") from None


class _Shaping:
    def __init__(self, root: dict[str, Any], scene: Scene) -> None:
        self._root, self._scene = root, scene
        self._left = MOST_VALUES
        self._speakers = _speakers(root)

    def value(self, schema: Any, name: str, depth: int) -> Any:
        schema = self._resolved(schema, depth)
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
            return self._yes(name)
        if kind in ("integer", "number"):
            return self._number(schema, name, kind)
        return None if kind == "null" else self._text(schema, name)

    def _resolved(self, schema: Any, depth: int) -> dict[str, Any]:
        """References followed, and of several ways the first one taken."""
        self._left -= 1
        if self._left < 0:
            raise ModelBadRequest(f"demo makes no value with more than {MOST_VALUES} parts.")
        if depth > DEEPEST:
            return {}
        for _ in range(DEEPEST):
            if not isinstance(schema, dict):
                return {}
            if isinstance(ref := schema.get("$ref"), str):
                schema = self._at(ref)
            elif ways := schema.get("oneOf") or schema.get("anyOf"):
                rest = {k: v for k, v in schema.items() if k not in ("oneOf", "anyOf")}
                schema = {**rest, **self._way(ways, depth)}
            elif parts := schema.get("allOf"):
                whole = {k: v for k, v in schema.items() if k != "allOf"}
                for part in parts:
                    whole = _joined(whole, self._resolved(part, depth + 1))
                schema = whole
            else:
                return schema
        return {}

    def _way(self, ways: list[Any], depth: int) -> dict[str, Any]:
        """The way whose ``kind`` is preferred, else the first."""
        found = [self._resolved(way, depth + 1) for way in ways]
        for word in self._preferred():
            for way in found:
                constants = [
                    part.get("const")
                    for part in way.get("properties", {}).values()
                    if isinstance(part, dict)
                ]
                if word in constants:
                    return way
        return next((way for way in found if way.get("type") != "null"), {})

    def _at(self, ref: str) -> Any:
        found: Any = self._root
        for part in ref.removeprefix("#").strip("/").split("/"):
            if part and isinstance(found, dict):
                found = found.get(part.replace("~1", "/").replace("~0", "~"), {})
        return found

    def _object(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        required = schema.get("required", ())
        found = {
            name: self.value(part, name, depth + 1)
            for name, part in schema.get("properties", {}).items()
            if depth < USUAL_DEPTH or name in required
        }
        for name in required:
            found.setdefault(name, self._text({}, name))
        return found

    def _array(self, schema: dict[str, Any], name: str, depth: int) -> list[Any]:
        items = self._resolved(schema.get("items", {}), depth)
        least = min(MOST_VALUES, schema.get("minItems", 0))
        most = schema.get("maxItems", max(least, MOST_ITEMS))
        found = closing.wishes(self._scene.heard, self._scene.me)
        if "disagree" in name.lower() or "dissent" in name.lower():
            if {*items.get("properties", ())} == {"by", "text"}:
                return closing.differences(found)[: max(least, min(most, 8))]
            rows: list[Any] = closing.disagreements(found)
        elif "agree" in name.lower():
            rows = closing.agreements(found)
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
            return closing.least_heard(self._scene, self._speakers)
        voted, _ = closing.vote(self._scene)
        if voted in choices and ({"yes", "no"} <= set(map(str, choices)) or name == "vote"):
            return voted
        preferred = [choice for choice in self._preferred() if choice in choices]
        return preferred[0] if preferred else self._scene.draw.pick(choices)

    def _yes(self, name: str) -> bool:
        """A hand is raised two times out of three; other questions get a vote. Nobody ends a
        conversation before everybody was heard."""
        if name == "stop" and closing.unheard(self._scene, self._speakers):
            return False
        if any(word in name.lower() for word in ("raise", "wants", "speak", "hand")):
            return not self._scene.draw.chance(3)
        return closing.vote(self._scene)[0] == "yes"

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
            text = closing.vote(scene)[0]
        elif word in REASONS:
            text = closing.vote(scene)[1]
        elif "decision" in word or "proposal" in word:
            text = closing.decision(scene)
        elif "summar" in word or "synthesis" in word or "minutes" in word:
            text = closing.synthesis(scene)
        elif word in WORDS or not word:
            text = turn(scene)
        elif word in ("name", "speaker", "agent"):
            text = scene.me
        else:
            text = scene.topic.thing
        text = text[: schema.get("maxLength", len(text))]
        return text.ljust(min(LONGEST, schema.get("minLength", 0)), ".")


def _speakers(schema: dict[str, Any]) -> list[str]:
    """Of whom one is chosen to speak next, where that is what is asked."""
    parts = schema.get("properties")
    if not isinstance(parts, dict) or not {"next", "stop"} <= {*parts}:
        return []
    choices = parts["next"].get("enum") if isinstance(parts["next"], dict) else None
    return [name for name in choices or () if isinstance(name, str)]


def _joined(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Two schemas that both hold, as far as their properties go."""
    properties = {**one.get("properties", {}), **other.get("properties", {})}
    required = [*one.get("required", []), *other.get("required", [])]
    joined = {**one, **other}
    if properties:
        joined["properties"] = properties
    if required:
        joined["required"] = list(dict.fromkeys(required))
    return joined
