"""Parse an agent from JSON, a pack's manifest, or Markdown with front matter."""

import hashlib
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from moot.core.errors import BadRequest, NotProvided
from moot.core.text.nearest import nearest_word

NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
LONGEST_PROMPT = 100_000
#: the end of a text; ``$`` alone would accept a trailing newline
END = r"$(?!\n)"
MANIFEST_ID = (
    r"^(core|vendor|community|private|local)\.[a-z][a-z0-9_-]*(\.[a-z][a-zA-Z0-9_-]*)+" + END
)
#: characters that are invisible, end lines or change the reading order
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
#: field -> characters that it must not contain
_FORBIDDEN = {
    "persona": _UNSEEN, "role": _UNSEEN, "label": _UNSEEN, "model": _UNSEEN,
    "description": _CONTROLS, "prompt": _CONTROLS,
}  # fmt: skip

#: field with a pattern -> its form in words
_WRITTEN = {
    "name": "small letters and digits, with '.', '-' and '_' between them, 64 at most",
    "memory": "none, run, long-term or shared:GROUP",
    "manifest": "a kind, a dot and words between dots, such as local.agents.ada",
}

ModelClass = Literal["reasoning", "writing", "coding", "research", "classification", "general"]
ShortText = Annotated[str, Meta(min_length=1, max_length=200)]


class Agent(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """An agent: its names, purpose, model, prompt and tools."""

    #: the handle: ``ada`` speaks as ``host:ada``
    name: Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}" + END)]
    #: the display name; by default the handle with a capital letter
    persona: ShortText | None = None
    role: Annotated[str, Meta(max_length=200)] = ""
    description: Annotated[str, Meta(max_length=500)] = ""
    #: NAME or NAME/MODEL of a configured model
    model: Annotated[str, Meta(min_length=1, max_length=256)] = "demo"
    model_class: ModelClass = "general"
    prompt: Annotated[str, Meta(max_length=LONGEST_PROMPT)] = ""
    #: the tools it may use, by name; a request never adds any
    tools: Annotated[list[ShortText], Meta(max_length=64)] = []
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    max_output_tokens: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    #: rounds of tools within one turn
    tool_rounds: Annotated[int, Meta(ge=0, le=32)] = 8
    #: decisions below this confidence wait for a person
    confidence: Annotated[float, Meta(ge=0, le=1)] = 0.7
    #: the memory it gets when it works: none, of the run, of a group, or its own
    memory: Annotated[
        str, Meta(pattern=r"^(none|run|long-term|shared:[A-Za-z0-9][A-Za-z0-9._-]{0,63})" + END)
    ] = "none"
    #: the id of its manifest, if it has one
    manifest: Annotated[str, Meta(pattern=MANIFEST_ID, max_length=256)] | None = None

    @property
    def called(self) -> str:
        return self.persona or self.name[:1].upper() + self.name[1:]

    @property
    def agent_id(self) -> str:
        return f"host:{self.name}"

    @property
    def manifest_id(self) -> str:
        """Return the id of its class in the protocol."""
        if self.manifest is not None:
            return self.manifest
        word = re.sub(r"[^a-zA-Z0-9_-]", "-", self.name)
        return f"local.agents.{word if word[:1].isalpha() else 'a' + word}"

    def encoded(self) -> bytes:
        return msgspec.json.encode(self, order="sorted")

    @property
    def version(self) -> str:
        """Return a hash of its content."""
        return hashlib.sha256(self.encoded()).hexdigest()[:12]


class ManifestProblem(ValueError):
    """A mistake in the file of an agent, with its line."""

    def __init__(self, message: str, line: int = 1) -> None:
        super().__init__(message)
        self.message, self.line = message, line


def agent_from_json(body: Any) -> Agent:
    """Raise BadRequest naming the field."""
    try:
        agent = msgspec.convert(body, Agent)
    except msgspec.ValidationError as error:
        problem = f"The agent does not fit: {_describe_error(error)}"
        raise BadRequest(problem, field="agent") from None
    refuse_invisible_characters(agent)
    return agent


def refuse_invisible_characters(agent: Struct) -> None:
    if field := find_invisible_character(agent):
        raise BadRequest(
            f"'{field}' has a character that does not show, or turns the text around; leave it"
            " out.",
            field=field,
        )


def find_invisible_character(agent: Struct) -> str | None:
    """Return the first field of an agent or a member with an invisible character."""
    for field, forbidden in _FORBIDDEN.items():
        text = getattr(agent, field, None)
        if isinstance(text, str) and forbidden.search(text):
            return field
    return None


def agent_from_markdown(text: str, name: str) -> Agent:
    """Parse ``---``, YAML, ``---`` and the prompt. ``name`` is the default name."""
    import yaml

    head, line, prompt = _split(text)
    try:
        values = yaml.safe_load(head) or {}
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        error_line = line + (mark.line if mark is not None else 0)
        problem = f"this is no YAML: {getattr(error, 'problem', error)}"
        raise ManifestProblem(problem, error_line) from None
    if not isinstance(values, dict):
        raise ManifestProblem("the front matter must be 'key: value' lines", line)
    fields = {field.encode_name: field.name for field in msgspec.structs.fields(Agent)}
    field_names = {**fields, **{field: field for field in fields.values()}}
    for key in map(str, values):
        if key not in field_names:
            suggestion = nearest_word(key, list(fields))
            hint = f"; did you mean '{suggestion}'?" if suggestion else ""
            raise ManifestProblem(f"'{key}' is not known here{hint}", line + _key_line(head, key))
    own_name = str(values.get("name", name))
    body = {**_camel(values, fields), "name": own_name, "prompt": prompt.strip()}
    if values.get("prompt"):
        raise ManifestProblem("the prompt is the text below the front matter", line)
    try:
        agent = msgspec.convert(body, Agent)
        if field := find_invisible_character(agent):
            problem = f"a character that does not show, or turns the text around - at `$.{field}`"
            raise msgspec.ValidationError(problem)
        return agent
    except msgspec.ValidationError as error:
        field_match = re.search(r"\$\.(\w+)", str(error))
        error_line = _key_line(head, field_match.group(1)) if field_match else 0
        problem = _describe_error(error).replace("`$.", "`")
        raise ManifestProblem(problem, line + error_line) from None


def _describe_error(error: msgspec.ValidationError) -> str:
    """Describe an error; replace a pattern by its form in words."""
    match = re.search(r"matching regex .* - at `\$\.(\w+)`$", str(error), re.S)
    if match is None or match[1] not in _WRITTEN:
        return str(error)
    return f"`{match[1]}` is written so: {_WRITTEN[match[1]]}"


def _camel(values: Mapping[str, object], fields: dict[str, str]) -> dict[str, object]:
    names = {name: wire for wire, name in fields.items()}
    return {names.get(str(key), str(key)): value for key, value in values.items()}


def _split(text: str) -> tuple[str, int, str]:
    """Return the front matter, its first line number, and the rest."""
    text = text.removeprefix("\ufeff")
    lines = text.splitlines(keepends=True)
    if not lines or lines[0].strip() != "---":
        return "", 1, text
    for number, line in enumerate(lines[1:], start=1):
        if line.strip() == "---":
            return "".join(lines[1:number]), 2, "".join(lines[number + 1 :])
    raise ManifestProblem("the front matter has no end; write '---' below it", 1)


def _key_line(head: str, key: str) -> int:
    for number, line in enumerate(head.splitlines()):
        name = line.split(":", 1)[0].strip()
        if name.replace("_", "").casefold() == key.replace("_", "").casefold():
            return number
    return 0


def find_field_line(text: str, field: str) -> int:
    """Return the line that sets a field, or the first line."""
    head, first, _ = _split(text)
    return first + _key_line(head, field)


def find_tool_line(text: str, reference: str) -> int:
    head, first, _ = _split(text)
    start = _key_line(head, "tools")
    pattern = re.compile(rf"(?<![\w:/*-]){re.escape(reference)}(?![\w:/*-])")
    for number, line in enumerate(head.splitlines()[start:], start=start):
        if pattern.search(line):
            return first + number
    return first + start


PackText = Annotated[str, Meta(min_length=1)]
Label = Annotated[str, Meta(min_length=1, max_length=100)]
#: the prefix of tool scopes that this host accepts
SCOPE = "openwop:"


class MemoryShape(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    scratchpad: bool = False
    conversation: bool = False
    long_term: bool = False


class ManifestConfidence(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    default_threshold: Annotated[float, Meta(ge=0, le=1)] = 0.7


class Manifest(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The fields of a manifest that this host supports. References into its pack are not."""

    agent_id: Annotated[str, Meta(pattern=MANIFEST_ID, min_length=3, max_length=256)]
    persona: Annotated[str, Meta(min_length=1, max_length=200)]
    model_class: ModelClass
    system_prompt: Annotated[str, Meta(min_length=1, max_length=LONGEST_PROMPT)] | None = None
    tool_allowlist: list[PackText] = []
    memory_shape: MemoryShape = MemoryShape()
    confidence: ManifestConfidence = ManifestConfidence()
    label: Label | None = None
    description: Annotated[str, Meta(max_length=500)] = ""


#: fields of a manifest that need a pack
PACK_FIELDS = (
    "systemPromptRef", "evalSuiteRef", "handoff", "promptLibraryRef", "promptOverrides",
    "requiresCapabilities",
)  # fmt: skip


def agent_from_manifest(body: Mapping[str, object]) -> Agent:
    """Raise BadRequest naming the field, and NotProvided for a field that needs a pack."""
    for name in PACK_FIELDS:
        if name in body:
            raise NotProvided(f"'{name}' needs a pack, and this host installs none.", field=name)
    try:
        manifest = msgspec.convert(body, Manifest)
    except msgspec.ValidationError as error:
        raise BadRequest(f"The manifest does not fit: {error}", field="agentId") from None
    if manifest.system_prompt is None:
        raise BadRequest("The manifest has no systemPrompt.", field="systemPrompt")
    name = manifest.agent_id.rpartition(".")[2].lower()
    if not NAME.fullmatch(name):
        raise BadRequest(f"'{name}' cannot be the name of an agent here.", field="agentId")
    memory: Literal["long-term", "none"] = (
        "long-term" if manifest.memory_shape.long_term else "none"
    )
    return agent_from_json({
        "name": name,
        "persona": manifest.persona,
        "description": manifest.description,
        "modelClass": manifest.model_class,
        "prompt": manifest.system_prompt,
        "tools": [tool.removeprefix(SCOPE) for tool in manifest.tool_allowlist],
        "confidence": manifest.confidence.default_threshold,
        "memory": memory,
        "manifest": manifest.agent_id,
    })  # fmt: skip
