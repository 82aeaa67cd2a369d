"""Answers about workflows, agents, memory, keys and the host."""

from msgspec import field

from moot.wire.runs import JsonObject, WireStruct


class WorkflowSummary(WireStruct, frozen=True):
    """A workflow in a list."""

    workflow_id: str
    version: str = ""
    name: str = ""
    description: str = ""
    nodes: int = 0
    digest: str = ""
    source: str = ""
    registered_at: str = ""


class WorkflowList(WireStruct, frozen=True):
    """All registered workflows."""

    workflows: list[WorkflowSummary]


class WorkflowRegistration(WireStruct, frozen=True):
    """The answer to a registration."""

    workflow_id: str
    version: str = ""
    digest: str = ""
    warnings: list[str] = []


class WorkflowCheck(WireStruct, frozen=True):
    """The result of a check."""

    workflow_id: str
    ok: bool
    nodes: int = 0
    warnings: list[str] = []


class AgentView(WireStruct, frozen=True):
    """An agent. Prompt and history are present only if one agent was requested."""

    name: str
    agent_id: str = ""
    persona: str = ""
    role: str = ""
    description: str = ""
    model: str = ""
    tools: list[str] = []
    version: str = ""
    prompt: str | None = None
    #: the complete definition, in the form that the API accepts
    definition: JsonObject | None = None
    history: list[JsonObject] = []


class AgentList(WireStruct, frozen=True):
    """All agents."""

    agents: list[AgentView]


class AgentInventoryEntry(WireStruct, frozen=True):
    """An agent in the form of the protocol."""

    agent_id: str
    persona: str = ""
    label: str = ""
    description: str = ""
    model_class: str = ""
    pack_name: str = ""
    pack_version: str = ""
    tool_allowlist: list[str] = []
    has_handoff_schemas: bool = False
    confidence_threshold: float | None = None


class AgentInventory(WireStruct, frozen=True):
    """All agents in the form of the protocol."""

    agents: list[AgentInventoryEntry]
    total: int = 0


class DeploymentView(WireStruct, frozen=True):
    """One version of an agent and the channels it serves."""

    agent_id: str
    version: str
    state: str
    channels: list[str] = []
    canary_percent: int | None = None
    rollback_pointer: str | None = None


class DeploymentList(WireStruct, frozen=True):
    """The promoted versions of an agent."""

    deployments: list[DeploymentView]


class ToolView(WireStruct, frozen=True):
    """A tool and the agents that may use it."""

    name: str
    source: str = ""
    description: str = ""
    dangerous: bool = False
    idempotent: bool = False
    parameters: JsonObject | None = None
    problem: str | None = None
    #: the agents that may use the tool
    agents: list[str] = []


class ToolList(WireStruct, frozen=True):
    """All tools."""

    tools: list[ToolView]


class MemorySummary(WireStruct, frozen=True):
    """A memory and the number of its entries."""

    ref: str
    entries: int


class MemoryList(WireStruct, frozen=True):
    """All memories."""

    memories: list[MemorySummary]


class MemoryEntryList(WireStruct, frozen=True):
    """The entries of one memory."""

    ref: str
    entries: list[JsonObject]


class MemoryErasure(WireStruct, frozen=True):
    """The number of erased entries."""

    ref: str
    forgotten: int


class KeyView(WireStruct, frozen=True):
    """An API key without its secret."""

    id: str
    name: str
    tenant: str
    scopes: list[str] = []
    speaks_as: list[str] = field(default_factory=list, name="as")
    admin: bool = False
    test: bool = False
    created_at: str = ""
    revoked_at: str | None = None
    expires_at: str | None = None
    thread: str | None = None


class NewKey(KeyView, frozen=True, kw_only=True):
    """A new key, the only answer that contains the secret."""

    key: str


class KeyList(WireStruct, frozen=True):
    """All API keys."""

    keys: list[KeyView]


class Health(WireStruct, frozen=True):
    """The state of the server."""

    status: str
    version: str | None = None


class HostIndex(WireStruct, frozen=True):
    """The links to the parts of the API."""

    name: str
    version: str
    links: dict[str, str] = {}
