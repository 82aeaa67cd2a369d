"""What the server answers with, as far as it is promised. Unknown fields are passed over."""

from typing import Any

from msgspec import Struct, field

Data = dict[str, Any]


class Answer(Struct, frozen=True, kw_only=True, rename="camel"):
    """A part of the API's vocabulary, in Python's spelling."""


# -- runs ----------------------------------------------------------------------------------------


class Problem(Answer, frozen=True):
    """Why a run or a node failed."""

    code: str
    message: str = ""
    details: Data = {}


class NodeState(Answer, frozen=True):
    status: str
    attempt: int = 1
    started_at: str | None = None
    due_at: str | None = None
    outputs: Any = None
    error: Data | None = None
    reason: str | None = None
    child_run_id: str | None = None


class ChildRun(Answer, frozen=True):
    run_id: str
    status: str


class OpenQuestion(Answer, frozen=True):
    """The question a run is stopped at, with a link that answers it without a key."""

    node_id: str
    interrupt_id: str
    kind: str
    data: Data = {}
    requested_at: str = ""
    intent: str = "inspect"
    interrupt_token: str = ""
    callback_url: str = ""


class Metrics(Answer, frozen=True):
    event_count: int = 0
    node_executions: int = 0


class Snapshot(Answer, frozen=True):
    """A run as it is now."""

    run_id: str
    status: str
    workflow_id: str = ""
    inputs: Data = {}
    variables: Data = {}
    outputs: Any = None
    error: Problem | None = None
    node_states: dict[str, NodeState] = {}
    child_runs: list[ChildRun] = []
    interrupt: OpenQuestion | None = None
    channels: Data = {}
    tags: list[str] = []
    metadata: Data = {}
    configurable: Data = {}
    scope_id: str | None = None
    parent_run_id: str | None = None
    parent_node_id: str | None = None
    started_at: str = ""
    completed_at: str | None = None
    paused_at: str | None = None
    draining: bool = False
    definition_version: str | None = None
    metrics: Metrics = Metrics()

    @property
    def ended(self) -> bool:
        return self.status in ENDED

    @property
    def waiting(self) -> bool:
        """Only somebody outside can help it on."""
        return self.status.startswith("waiting-")


ENDED = ("completed", "failed", "cancelled")


class RunRow(Answer, frozen=True):
    """A run in a list."""

    run_id: str
    status: str
    workflow_id: str = ""
    started_at: str = ""
    updated_at: str = ""
    completed_at: str | None = None
    event_count: int = 0
    parent_run_id: str | None = None
    scope_id: str | None = None
    error_code: str | None = None
    forked_from: Data | None = None


class RunPage(Answer, frozen=True):
    runs: list[RunRow]
    next_cursor: str | None = None


class Cancelled(Answer, frozen=True):
    run_id: str
    status: str
    already_terminal: bool = False


class CancelledOne(Answer, frozen=True):
    run_id: str
    ok: bool
    status: str | None = None
    error: Problem | None = None


class BulkCancelled(Answer, frozen=True):
    results: list[CancelledOne]


class Paused(Answer, frozen=True):
    run_id: str
    status: str
    paused_at: str = ""
    draining: bool = False


class Resumed(Answer, frozen=True):
    run_id: str
    status: str
    resumed_at: str = ""


class Forked(Answer, frozen=True):
    run_id: str
    source_run_id: str
    from_seq: int
    mode: str
    status: str = "pending"
    note: str | None = None


class EventDiff(Answer, frozen=True):
    seq: int
    op: str
    a_event: Data | None = None
    b_event: Data | None = None


class Diff(Answer, frozen=True):
    """Where two runs part ways, by sequence."""

    a: str
    b: str
    diverged_at_seq: int | None = None
    event_diffs: list[EventDiff] = []
    state_diff: Any = None
    truncated: bool = False

    @property
    def same(self) -> bool:
        return self.diverged_at_seq is None


class Verified(Answer, frozen=True):
    """Whether the log is what the workflow and the facts in it lead to."""

    run_id: str
    events: int
    identical: bool
    model_calls: int = 0
    first: Data | None = None


class Page(Answer, frozen=True):
    """Events of a run, and how it stands."""

    run_id: str
    events: list[Data] = []
    last_event_seq: int = -1
    run_status: str = ""
    is_terminal: bool = False
    is_complete: bool = False


class Ancestry(Answer, frozen=True):
    run_id: str
    host_id: str
    parent: Data | None = None


# -- questions -----------------------------------------------------------------------------------


class Item(Answer, frozen=True):
    """Something that waits for a person."""

    id: str
    run_id: str
    node_id: str
    kind: str
    question: str
    actions: list[str] = []
    asked_by: str = ""
    since: str = ""
    deadline: str | None = None


class Inbox(Answer, frozen=True):
    items: list[Item]
    revision: int = 0


class Question(Answer, frozen=True):
    """An open question of a run."""

    run_id: str
    node_id: str
    interrupt_id: str
    kind: str
    key: str = ""
    question: str = ""
    actions: list[str] = []
    asked_by: str = ""
    data: Data = {}
    votes: Data = {}
    requested_at: str = ""
    deadline: str | None = None
    resume_schema: Data | None = None
    #: only of a question that is read by its link
    expires_at: str | None = None
    intent: str | None = None


class AnsweredQuestion(Answer, frozen=True):
    node_id: str
    by: str | None = None
    at: str = ""
    action: str | None = None


class Questions(Answer, frozen=True):
    run_id: str
    status: str
    open: list[Question] = []
    answered: list[AnsweredQuestion] = []


class Taken(Answer, frozen=True):
    """An answer, or a turn of a conversation, was taken."""

    run_id: str
    node_id: str
    status: str
    conversation: Data | None = None


# -- threads -------------------------------------------------------------------------------------


class Convened(Answer, frozen=True):
    run_id: str
    thread_id: str
    url: str = ""


class ThreadView(Answer, frozen=True):
    """A conversation as it stands. ``floor`` is there when the host leads it."""

    thread_id: str
    run_id: str
    node_id: str
    open: bool
    title: str | None = None
    turns: int = 0
    last_sequence: int = -1
    created_at: str = ""
    updated_at: str = ""
    participants: list[Data] = []
    state: Data = {}
    floor: Data | None = None

    @property
    def quiet(self) -> bool:
        """Nobody will say anything until a person does."""
        if not self.open or self.floor is None:
            return True
        over = self.floor.get("phase") == "over" or bool(self.floor.get("stopped"))
        return over and not self.floor.get("speaking")


class JoinToken(Answer, frozen=True):
    """A key for one participant in one thread."""

    key_id: str
    thread_id: str
    token: str
    speaks_as: str = field(name="as")
    expires_at: str = ""


class Begun(Answer, frozen=True):
    speech_id: str
    thread_id: str
    role: str = ""
    speaker: str | None = field(default=None, name="from")
    to: str | None = None


class Line(Answer, frozen=True):
    """A turn of a transcript, or with ``note`` what somebody did beside it."""

    at: str
    by: str
    index: int | None = None
    role: str | None = None
    to: str | None = None
    content: Any = None
    model: str | None = None
    via: str | None = None
    edited_by: str | None = None
    note: str | None = None


class Minutes(Answer, frozen=True):
    thread_id: str
    run_id: str
    title: str = ""
    question: Any = None
    opened_at: str = ""
    closed_at: str | None = None
    participants: list[Data] = []
    decision: Data | None = None
    outcome: Any = None
    transcript: list[Line] = []


class Imported(Answer, frozen=True):
    run_id: str
    thread_id: str
    status: str
    url: str = ""


# -- the host ------------------------------------------------------------------------------------


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
