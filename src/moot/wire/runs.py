"""Answers about runs, events, interrupts and the inbox."""

from typing import Any

from msgspec import Struct

JsonObject = dict[str, Any]


class WireStruct(Struct, frozen=True, kw_only=True, rename="camel"):
    """The base of API answers. JSON names are camelCase, unknown fields are ignored."""


# -- runs ----------------------------------------------------------------------------------------


class RunFailure(WireStruct, frozen=True):
    """The error of a failed run or node."""

    code: str
    message: str = ""
    details: JsonObject = {}


class NodeView(WireStruct, frozen=True):
    """The state of one node."""

    status: str
    attempt: int = 1
    started_at: str | None = None
    due_at: str | None = None
    outputs: Any = None
    error: JsonObject | None = None
    reason: str | None = None
    child_run_id: str | None = None


class ChildRun(WireStruct, frozen=True):
    """A child run and its status."""

    run_id: str
    status: str


class OpenQuestion(WireStruct, frozen=True):
    """The question that a run waits for, with a link that answers it without a key."""

    node_id: str
    interrupt_id: str
    kind: str
    data: JsonObject = {}
    requested_at: str = ""
    intent: str = "inspect"
    interrupt_token: str = ""
    callback_url: str = ""


class RunMetrics(WireStruct, frozen=True):
    """Counts of a run."""

    event_count: int = 0
    node_executions: int = 0


class Snapshot(WireStruct, frozen=True):
    """A run as it is now."""

    run_id: str
    status: str
    workflow_id: str = ""
    inputs: JsonObject = {}
    variables: JsonObject = {}
    outputs: Any = None
    error: RunFailure | None = None
    node_states: dict[str, NodeView] = {}
    child_runs: list[ChildRun] = []
    interrupt: OpenQuestion | None = None
    channels: JsonObject = {}
    tags: list[str] = []
    metadata: JsonObject = {}
    configurable: JsonObject = {}
    scope_id: str | None = None
    parent_run_id: str | None = None
    parent_node_id: str | None = None
    started_at: str = ""
    completed_at: str | None = None
    paused_at: str | None = None
    draining: bool = False
    definition_version: str | None = None
    metrics: RunMetrics = RunMetrics()

    @property
    def ended(self) -> bool:
        return self.status in ENDED_STATUSES

    @property
    def waiting(self) -> bool:
        """True if the run waits for an answer from outside."""
        return self.status.startswith("waiting-")


ENDED_STATUSES = ("completed", "failed", "cancelled")


class RunRow(WireStruct, frozen=True):
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
    #: attempts after which the host gave the run up
    dead_lettered_after: int | None = None
    forked_from: JsonObject | None = None
    #: the standing agent that the run works for
    roster_id: str | None = None
    #: on request: the cause of the run, and the name of its standing agent at that time
    begun: JsonObject | None = None


class RunList(WireStruct, frozen=True):
    """One page of runs."""

    runs: list[RunRow]
    next_cursor: str | None = None


class CancelledRun(WireStruct, frozen=True):
    """The answer to a cancellation."""

    run_id: str
    status: str
    already_terminal: bool = False


class BulkCancelResult(WireStruct, frozen=True):
    """The result for one run of a bulk cancellation."""

    run_id: str
    ok: bool
    status: str | None = None
    error: RunFailure | None = None


class BulkCancelResults(WireStruct, frozen=True):
    """The results of a bulk cancellation."""

    results: list[BulkCancelResult]


class PausedRun(WireStruct, frozen=True):
    """The answer to a pause."""

    run_id: str
    status: str
    paused_at: str = ""
    draining: bool = False


class ResumedRun(WireStruct, frozen=True):
    """The answer to a resume."""

    run_id: str
    status: str
    resumed_at: str = ""


class ForkedRun(WireStruct, frozen=True):
    """A new run that continues or replays another one."""

    run_id: str
    source_run_id: str
    from_seq: int
    mode: str
    status: str = "pending"
    note: str | None = None


class EventDiff(WireStruct, frozen=True):
    """One difference between two logs."""

    seq: int
    op: str
    a_event: JsonObject | None = None
    b_event: JsonObject | None = None


class RunDiff(WireStruct, frozen=True):
    """The differences between two runs, by sequence."""

    a: str
    b: str
    diverged_at_seq: int | None = None
    event_diffs: list[EventDiff] = []
    state_diff: Any = None
    truncated: bool = False

    @property
    def same(self) -> bool:
        return self.diverged_at_seq is None


class RunVerification(WireStruct, frozen=True):
    """The result of verifying a log against its workflow."""

    run_id: str
    events: int
    identical: bool
    model_calls: int = 0
    first: JsonObject | None = None


class RunEventPage(WireStruct, frozen=True):
    """Events of a run, and the status of the run."""

    run_id: str
    events: list[JsonObject] = []
    last_event_seq: int = -1
    run_status: str = ""
    is_terminal: bool = False
    is_complete: bool = False


class RunAncestry(WireStruct, frozen=True):
    """The parent of a run."""

    run_id: str
    host_id: str
    parent: JsonObject | None = None


# -- questions -----------------------------------------------------------------------------------


class InboxItem(WireStruct, frozen=True):
    """An interrupt that waits for a person."""

    id: str
    run_id: str
    node_id: str
    kind: str
    question: str
    actions: list[str] = []
    asked_by: str = ""
    since: str = ""
    deadline: str | None = None
    #: of a conversation: its title, and the turn that asks
    title: str | None = None
    turn_index: int | None = None
    #: the standing agent of the run: ``rosterId``, ``persona``
    member: JsonObject | None = None


class InboxNotice(WireStruct, frozen=True):
    """A notice: missed slots, a run that could not begin, or a budget near its limit."""

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
    #: of a failed delivery: its source and the reason
    source: str | None = None
    subscription_id: str | None = None
    queue: str | None = None
    reason: str | None = None
    #: of a standing agent: the limit, such as tokensPerDay
    limit: str | None = None


class Inbox(WireStruct, frozen=True):
    """All items and notices for a person."""

    items: list[InboxItem]
    revision: int = 0
    #: lines without a question, such as dead letters
    notices: list[InboxNotice] = []


class Question(WireStruct, frozen=True):
    """An open question of a run."""

    run_id: str
    node_id: str
    interrupt_id: str
    kind: str
    key: str = ""
    question: str = ""
    actions: list[str] = []
    asked_by: str = ""
    data: JsonObject = {}
    votes: JsonObject = {}
    requested_at: str = ""
    deadline: str | None = None
    resume_schema: JsonObject | None = None
    #: only for a question requested by its link
    expires_at: str | None = None
    intent: str | None = None


class AnsweredQuestion(WireStruct, frozen=True):
    """An answered question of a run."""

    node_id: str
    by: str | None = None
    at: str = ""
    action: str | None = None


class QuestionList(WireStruct, frozen=True):
    """The open and answered questions of a run."""

    run_id: str
    status: str
    open: list[Question] = []
    answered: list[AnsweredQuestion] = []


class AnswerResult(WireStruct, frozen=True):
    """The result of an answer or of a turn."""

    run_id: str
    node_id: str
    status: str
    conversation: JsonObject | None = None
