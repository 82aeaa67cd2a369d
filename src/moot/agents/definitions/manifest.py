"""An agent as people write it: front matter, and the prompt as the body."""

import hashlib
import re
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from moot.core.errors import BadRequest
from moot.core.text.nearest import nearest

NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
LONGEST_PROMPT = 100_000
#: the end of a text: ``$`` alone would let one more line through
END = r"$(?!\n)"
MANIFEST_ID = (
    r"^(core|vendor|community|private|local)\.[a-z][a-z0-9_-]*(\.[a-z][a-zA-Z0-9_-]*)+" + END
)
#: characters that show nothing, end lines or turn the reading order around
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
#: field -> what must not be in it
_FORBIDDEN = {
    "persona": _UNSEEN, "role": _UNSEEN, "label": _UNSEEN, "model": _UNSEEN,
    "description": _CONTROLS, "prompt": _CONTROLS,
}  # fmt: skip

#: field -> how what has a pattern is written, for people
_WRITTEN = {
    "name": "small letters and digits, with '.', '-' and '_' between them, 64 at most",
    "memory": "none, run, long-term or shared:GROUP",
    "manifest": "a kind, a dot and words between dots, such as local.agents.ada",
}

ModelClass = Literal["reasoning", "writing", "coding", "research", "classification", "general"]
Text = Annotated[str, Meta(min_length=1, max_length=200)]


class Agent(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Who speaks: how it is called, what it is for, which model it uses, what it may do."""

    #: its handle: ``ada`` speaks as ``host:ada``
    name: Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}" + END)]
    #: how people call it; the handle with a capital letter when left out
    persona: Text | None = None
    role: Annotated[str, Meta(max_length=200)] = ""
    description: Annotated[str, Meta(max_length=500)] = ""
    #: NAME or NAME/MODEL of the models there are
    model: Annotated[str, Meta(min_length=1, max_length=256)] = "demo"
    model_class: ModelClass = "general"
    prompt: Annotated[str, Meta(max_length=LONGEST_PROMPT)] = ""
    #: the tools it may use, by name; nobody else's rights ever come with a request
    tools: Annotated[list[Text], Meta(max_length=64)] = []
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    max_output_tokens: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    #: rounds of tools within one turn
    tool_rounds: Annotated[int, Meta(ge=0, le=32)] = 8
    #: decisions less sure than this wait for a person
    confidence: Annotated[float, Meta(ge=0, le=1)] = 0.7
    #: what it is reminded of when it works: nothing, the run's, a group's, or its own for good
    memory: Annotated[
        str, Meta(pattern=r"^(none|run|long-term|shared:[A-Za-z0-9][A-Za-z0-9._-]{0,63})" + END)
    ] = "none"
    #: the id of the manifest it comes from, where it comes from one
    manifest: Annotated[str, Meta(pattern=MANIFEST_ID, max_length=256)] | None = None

    @property
    def called(self) -> str:
        return self.persona or self.name[:1].upper() + self.name[1:]

    @property
    def agent_id(self) -> str:
        return f"host:{self.name}"

    @property
    def manifest_id(self) -> str:
        """Its class, as the protocol names one."""
        if self.manifest is not None:
            return self.manifest
        word = re.sub(r"[^a-zA-Z0-9_-]", "-", self.name)
        return f"local.agents.{word if word[:1].isalpha() else 'a' + word}"

    def encoded(self) -> bytes:
        return msgspec.json.encode(self, order="sorted")

    @property
    def version(self) -> str:
        """The same words are the same version."""
        return hashlib.sha256(self.encoded()).hexdigest()[:12]


class ManifestProblem(ValueError):
    """A mistake in an agent's file, with the line it is in."""

    def __init__(self, message: str, line: int = 1) -> None:
        super().__init__(message)
        self.message, self.line = message, line


def from_json(body: Any) -> Agent:
    """Raises BadRequest naming the field."""
    try:
        found = msgspec.convert(body, Agent)
    except msgspec.ValidationError as error:
        raise BadRequest(f"The agent does not fit: {_worded(error)}", field="agent") from None
    refuse_unseen(found)
    return found


def refuse_unseen(agent: Struct) -> None:
    if field := unseen_in(agent):
        raise BadRequest(
            f"'{field}' has a character that does not show, or turns the text around; leave it"
            " out.",
            field=field,
        )


def unseen_in(agent: Struct) -> str | None:
    """The first field of an agent or a member in which something stands that no reader would
    see."""
    for field, forbidden in _FORBIDDEN.items():
        text = getattr(agent, field, None)
        if isinstance(text, str) and forbidden.search(text):
            return field
    return None


def from_markdown(text: str, name: str) -> Agent:
    """``---``, YAML, ``---``, then the prompt. ``name`` is the file's, for when none is given."""
    import yaml

    head, line, prompt = _split(text)
    try:
        said = yaml.safe_load(head) or {}
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = line + (mark.line if mark is not None else 0)
        raise ManifestProblem(
            f"this is no YAML: {getattr(error, 'problem', error)}", place
        ) from None
    if not isinstance(said, dict):
        raise ManifestProblem("the front matter must be 'key: value' lines", line)
    fields = {field.encode_name: field.name for field in msgspec.structs.fields(Agent)}
    known = {**fields, **{field: field for field in fields.values()}}
    for key in said:
        if str(key) not in known:
            meant = nearest(str(key), list(fields))
            hint = f"; did you mean '{meant}'?" if meant else ""
            raise ManifestProblem(
                f"'{key}' is not known here{hint}", line + _line_of(head, str(key))
            )
    body = {**_camel(said, fields), "name": str(said.get("name", name)), "prompt": prompt.strip()}
    if said.get("prompt"):
        raise ManifestProblem("the prompt is the text below the front matter", line)
    try:
        agent = msgspec.convert(body, Agent)
        if field := unseen_in(agent):
            said = f"a character that does not show, or turns the text around - at `$.{field}`"
            raise msgspec.ValidationError(said)
        return agent
    except msgspec.ValidationError as error:
        found = re.search(r"\$\.(\w+)", str(error))
        place = _line_of(head, found.group(1)) if found else 0
        raise ManifestProblem(_worded(error).replace("`$.", "`"), line + place) from None


def _worded(error: msgspec.ValidationError) -> str:
    """A pattern is no help to who has missed it."""
    found = re.search(r"matching regex .* - at `\$\.(\w+)`$", str(error), re.S)
    if found is None or found[1] not in _WRITTEN:
        return str(error)
    return f"`{found[1]}` is written so: {_WRITTEN[found[1]]}"


def _camel(said: dict[str, Any], fields: dict[str, str]) -> dict[str, Any]:
    names = {name: wire for wire, name in fields.items()}
    return {names.get(str(key), str(key)): value for key, value in said.items()}


def _split(text: str) -> tuple[str, int, str]:
    """The front matter, the line it begins in, and the rest."""
    text = text.removeprefix("\ufeff")
    lines = text.splitlines(keepends=True)
    if not lines or lines[0].strip() != "---":
        return "", 1, text
    for number, line in enumerate(lines[1:], start=1):
        if line.strip() == "---":
            return "".join(lines[1:number]), 2, "".join(lines[number + 1 :])
    raise ManifestProblem("the front matter has no end; write '---' below it", 1)


def _line_of(head: str, key: str) -> int:
    for number, line in enumerate(head.splitlines()):
        if (
            line.split(":", 1)[0].strip().replace("_", "").casefold()
            == key.replace("_", "").casefold()
        ):
            return number
    return 0


def line_of_field(text: str, field: str) -> int:
    """The line of an agent's file in which a field is set; the first where it is not."""
    head, first, _ = _split(text)
    return first + _line_of(head, field)


def line_of_tool(text: str, reference: str) -> int:
    """The line of an agent's file in which a tool is named."""
    head, first, _ = _split(text)
    start = _line_of(head, "tools")
    word = re.compile(rf"(?<![\w:/*-]){re.escape(reference)}(?![\w:/*-])")
    for number, line in enumerate(head.splitlines()[start:], start=start):
        if word.search(line):
            return first + number
    return first + start
