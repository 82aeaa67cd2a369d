"""What the server answers with, as far as it is promised. Unknown fields are passed over."""

from typing import Any

from msgspec import Struct

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
    #: attempts after which it was given up
    dead_lettered_after: int | None = None
    forked_from: Data | None = None
    #: the standing agent whose work it is
    roster_id: str | None = None
    #: if asked for: what began it, and the name of its standing agent then
    begun: Data | None = None


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
    #: of a conversation: how it is called, and the turn that asks
    title: str | None = None
    turn_index: int | None = None
    #: the standing agent whose run asks: ``rosterId``, ``persona``
    member: Data | None = None


class Notice(Answer, frozen=True):
    """Something that no run waits for: times that were missed, a run that could not begin, a limit
    of a standing agent that is reached or nearly so."""

    id: str
    kind: str
    text: str
    actions: list[str] = []
    since: str = ""
    schedule_id: str | None = None
    workflow_id: str | None = None
    roster_id: str | None = None
    at: str | None = None
    count: int = 1
    #: of what could not be delivered: by which way it came, and why
    source: str | None = None
    subscription_id: str | None = None
    queue: str | None = None
    reason: str | None = None
    #: of a standing agent: tokensPerDay and the like
    limit: str | None = None


class Inbox(Answer, frozen=True):
    items: list[Item]
    revision: int = 0
    #: what nobody is asked about but somebody should see, such as dead letters
    notices: list[Notice] = []


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
