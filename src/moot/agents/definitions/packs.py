"""Convert a manifest of a protocol pack into an agent."""

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from moot.agents.definitions.manifest import (
    LONGEST_PROMPT,
    MANIFEST_ID,
    NAME,
    Agent,
    ModelClass,
    agent_from_json,
)
from moot.core.errors import BadRequest, NotProvided

PackText = Annotated[str, Meta(min_length=1)]
Label = Annotated[str, Meta(min_length=1, max_length=100)]
#: the prefix of tool scopes that this host accepts
SCOPE = "openwop:"


class MemoryShape(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The kinds of memory that a manifest asks for."""

    scratchpad: bool = False
    conversation: bool = False
    long_term: bool = False


class ManifestConfidence(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The confidence settings of a manifest."""

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
