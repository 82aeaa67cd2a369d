"""Agents as the protocol's packs have them: a manifest becomes one of ours."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from moot.agents.definitions.manifest import (
    LONGEST_PROMPT,
    MANIFEST_ID,
    NAME,
    Agent,
    ModelClass,
    from_json,
)
from moot.core.errors import BadRequest, NotProvided

Text = Annotated[str, Meta(min_length=1)]
Label = Annotated[str, Meta(min_length=1, max_length=100)]
#: scopes of tools this host knows
SCOPE = "openwop:"


class Shape(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    scratchpad: bool = False
    conversation: bool = False
    long_term: bool = False


class Confidence(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    default_threshold: Annotated[float, Meta(ge=0, le=1)] = 0.7


class Manifest(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What of a manifest can be kept here: what it refers to would be in its pack."""

    agent_id: Annotated[str, Meta(pattern=MANIFEST_ID, min_length=3, max_length=256)]
    persona: Annotated[str, Meta(min_length=1, max_length=200)]
    model_class: ModelClass
    system_prompt: Annotated[str, Meta(min_length=1, max_length=LONGEST_PROMPT)] | None = None
    tool_allowlist: list[Text] = []
    memory_shape: Shape = Shape()
    confidence: Confidence = Confidence()
    label: Label | None = None
    description: Annotated[str, Meta(max_length=500)] = ""


#: fields of a manifest that only a pack can fill
PACKED = (
    "systemPromptRef", "evalSuiteRef", "handoff", "promptLibraryRef", "promptOverrides",
    "requiresCapabilities",
)  # fmt: skip


def from_manifest(body: dict[str, Any]) -> Agent:
    """Raises BadRequest naming the field, NotProvided for what needs a pack."""
    for name in PACKED:
        if name in body:
            raise NotProvided(f"'{name}' needs a pack, and this host installs none.", field=name)
    try:
        found = msgspec.convert(body, Manifest)
    except msgspec.ValidationError as error:
        raise BadRequest(f"The manifest does not fit: {error}", field="agentId") from None
    if found.system_prompt is None:
        raise BadRequest("The manifest has no systemPrompt.", field="systemPrompt")
    name = found.agent_id.rpartition(".")[2].lower()
    if not NAME.fullmatch(name):
        raise BadRequest(f"'{name}' cannot be the name of an agent here.", field="agentId")
    memory: Literal["long-term", "none"] = "long-term" if found.memory_shape.long_term else "none"
    return from_json({
        "name": name,
        "persona": found.persona,
        "description": found.description,
        "modelClass": found.model_class,
        "prompt": found.system_prompt,
        "tools": [tool.removeprefix(SCOPE) for tool in found.tool_allowlist],
        "confidence": found.confidence.default_threshold,
        "memory": memory,
        "manifest": found.agent_id,
    })  # fmt: skip
