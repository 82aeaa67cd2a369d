"""What is answered about workflows, agents, memory, keys and the host."""

from msgspec import field

from moot.wire.runs import Answer, Data


class WorkflowRow(Answer, frozen=True):
    workflow_id: str
    version: str = ""
    name: str = ""
    description: str = ""
    nodes: int = 0
    digest: str = ""
    source: str = ""
    registered_at: str = ""


class Workflows(Answer, frozen=True):
    workflows: list[WorkflowRow]


class Registered(Answer, frozen=True):
    workflow_id: str
    version: str = ""
    digest: str = ""
    warnings: list[str] = []


class Checked(Answer, frozen=True):
    workflow_id: str
    ok: bool
    nodes: int = 0
    warnings: list[str] = []


class AgentView(Answer, frozen=True):
    """An agent; the prompt and the history only where one agent was asked for."""

    name: str
    agent_id: str = ""
    persona: str = ""
    role: str = ""
    description: str = ""
    model: str = ""
    tools: list[str] = []
    version: str = ""
    prompt: str | None = None
    #: all that it is, as it can be sent back
    definition: Data | None = None
    history: list[Data] = []


class AgentList(Answer, frozen=True):
    agents: list[AgentView]


class InventoryEntry(Answer, frozen=True):
    """An agent as the protocol lists it."""

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


class Inventory(Answer, frozen=True):
    agents: list[InventoryEntry]
    total: int = 0


class Deployment(Answer, frozen=True):
    """One version of an agent, and whom it serves."""

    agent_id: str
    version: str
    state: str
    channels: list[str] = []
    canary_percent: int | None = None
    rollback_pointer: str | None = None


class Deployments(Answer, frozen=True):
    deployments: list[Deployment]


class Tool(Answer, frozen=True):
    name: str
    source: str = ""
    description: str = ""
    dangerous: bool = False
    idempotent: bool = False
    parameters: Data | None = None
    problem: str | None = None
    #: who may use it
    agents: list[str] = []


class Tools(Answer, frozen=True):
    tools: list[Tool]


class MemoryRef(Answer, frozen=True):
    ref: str
    entries: int


class MemoryRefs(Answer, frozen=True):
    memories: list[MemoryRef]


class MemoryEntries(Answer, frozen=True):
    ref: str
    entries: list[Data]


class Forgotten(Answer, frozen=True):
    ref: str
    forgotten: int


class KeyView(Answer, frozen=True):
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
    """The only answer that holds the secret."""

    key: str


class Keys(Answer, frozen=True):
    keys: list[KeyView]


class Health(Answer, frozen=True):
    status: str
    version: str | None = None


class Index(Answer, frozen=True):
    name: str
    version: str
    links: dict[str, str] = {}
