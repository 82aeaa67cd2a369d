"""Answers about agents, their deployments and tools."""

from moot.wire.json import JsonObject, WireStruct


class AgentView(WireStruct, frozen=True):
    """An agent in a list."""

    name: str
    agent_id: str
    persona: str
    role: str
    description: str
    model: str
    tools: list[str]
    version: str


class AgentVersion(WireStruct, frozen=True):
    """One version in the history of an agent."""

    version: str
    at: str
    by: str
    removed: bool = False


class AgentDetails(AgentView, frozen=True, kw_only=True):
    """An agent with its prompt and its history."""

    prompt: str
    #: the complete definition, in the form that the API accepts
    definition: JsonObject
    history: list[AgentVersion]


class AgentList(WireStruct, frozen=True):
    """All agents."""

    agents: list[AgentView]


class AgentMemoryShape(WireStruct, frozen=True):
    """The kinds of memory that an agent has."""

    long_term: bool
    scratchpad: bool


class StandingInstance(WireStruct, frozen=True):
    """A standing agent that is an instance of an agent."""

    roster_id: str
    persona: str
    workflows: list[str]


class AgentInventoryEntry(WireStruct, frozen=True):
    """An agent in the form of the protocol."""

    agent_id: str
    persona: str
    label: str
    model_class: str
    pack_name: str
    pack_version: str
    tool_allowlist: list[str]
    has_handoff_schemas: bool
    confidence_threshold: float | None
    description: str | None = None
    memory_shape: AgentMemoryShape | None = None
    #: its standing instances, on a host with a roster
    roster: list[StandingInstance] | None = None


class AgentInventory(WireStruct, frozen=True):
    """All agents in the form of the protocol."""

    agents: list[AgentInventoryEntry]
    total: int


class DeploymentView(WireStruct, frozen=True):
    """One version of an agent and the channels it serves."""

    agent_id: str
    version: str
    state: str
    channels: list[str] = []
    canary_percent: int | None = None
    rollback_pointer: str | None = None
    eval_run_id: str | None = None


class DeploymentList(WireStruct, frozen=True):
    """The promoted versions of an agent."""

    deployments: list[DeploymentView]


class ToolView(WireStruct, frozen=True):
    """A tool and the agents that may use it."""

    name: str
    source: str
    description: str
    dangerous: bool
    idempotent: bool
    #: the agents that may use the tool
    agents: list[str]
    parameters: JsonObject | None = None
    problem: str | None = None


class ToolList(WireStruct, frozen=True):
    """All tools."""

    tools: list[ToolView]
