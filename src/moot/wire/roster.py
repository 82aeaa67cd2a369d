"""Standing agents: requests about them and answers."""

from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType, field

from moot.wire.json import JsonObject, WireStruct
from moot.wire.request import Note, RequestStruct
from moot.wire.schedules import Owner, PauseCost

#: the form of a member id; agents of this host have the same form
ROSTER_ID = r"^host:[a-z0-9][a-z0-9._-]*$(?!\n)"
MOST_WORKFLOWS = 200

Persona = Annotated[str, Meta(min_length=1, max_length=200)]
Label = Annotated[str, Meta(min_length=1, max_length=100)]
WorkflowId = Annotated[str, Meta(min_length=1, max_length=128)]
Workflows = Annotated[list[WorkflowId], Meta(max_length=MOST_WORKFLOWS)]


class MemberAgentRef(RequestStruct, frozen=True):
    """The agent of a member: a version, a channel, or the newest version."""

    agent_id: Annotated[str, Meta(min_length=3, max_length=256)]
    version: Annotated[str, Meta(min_length=1, max_length=64)] | None = None
    channel: Annotated[str, Meta(min_length=1, max_length=64)] | None = None


class MemberBudget(RequestStruct, frozen=True):
    """The limits on the runs of a member. Days and months are in UTC."""

    tokens_per_day: Annotated[int, Meta(ge=1, le=2**53)] | None = None
    tokens_per_month: Annotated[int, Meta(ge=1, le=2**53)] | None = None
    money_per_day: Annotated[float, Meta(gt=0, le=1e9)] | None = None
    money_per_month: Annotated[float, Meta(gt=0, le=1e9)] | None = None


class HireMember(RequestStruct, frozen=True):
    """A new standing agent. Its owner follows from the key, never from the body."""

    persona: Persona
    agent_ref: MemberAgentRef
    roster_id: Annotated[str, Meta(min_length=6, max_length=128, pattern=ROSTER_ID)] | None = None
    workflows: Workflows = []
    enabled: bool = True
    label: Label | None = None
    description: Note | None = None
    budget: MemberBudget | None = None


class ChangeMember(RequestStruct, frozen=True):
    """Changes to a standing agent. Fields that are left out stay."""

    persona: Persona | UnsetType = UNSET
    agent_ref: MemberAgentRef | UnsetType = UNSET
    workflows: Workflows | UnsetType = UNSET
    enabled: bool | UnsetType = UNSET
    label: Label | UnsetType | None = UNSET
    description: Note | UnsetType | None = UNSET
    budget: Annotated[
        MemberBudget | UnsetType | None,
        Meta(description="The new limits. Null removes all of them."),
    ] = UNSET


class PauseMember(RequestStruct, frozen=True):
    """The reason and the end of a pause."""

    reason: Note = ""
    until: Annotated[
        str | None,
        Meta(description="An ISO time. Without it the pause lasts until a person resumes."),
    ] = None
    stop: Annotated[bool, Meta(description="Also cancel the member's active runs.")] = False


class RunMemberWorkflow(RequestStruct, frozen=True):
    """The workflow that a standing agent starts now."""

    workflow_id: WorkflowId
    inputs: JsonObject = {}
    item: Annotated[
        Annotated[str, Meta(min_length=1, max_length=128)] | None,
        Meta(description="The id of an item for the run. The item stays in its queue."),
    ] = None
    dry_run: Annotated[bool, Meta(description="Only return what would start.")] = False


class AgentRef(WireStruct, frozen=True):
    """The agent of a member: a version, a channel, or the newest version."""

    agent_id: str
    version: str | None = None
    channel: str | None = None


class RosterEntry(WireStruct, frozen=True):
    """A standing agent in the form of the protocol."""

    roster_id: str
    persona: str
    agent_ref: AgentRef
    owner: Owner
    workflows: list[str] = []
    enabled: bool = True
    label: str | None = None
    description: str | None = None


class RosterEntryList(WireStruct, frozen=True):
    """All standing agents in the form of the protocol."""

    roster: list[RosterEntry]
    total: int


class MemberPause(WireStruct, frozen=True):
    """The pause of a standing agent."""

    since: str
    by: str
    reason: str | None = None
    until: str | None = None


class BudgetUse(WireStruct, frozen=True):
    """One limit of a budget, its amount and its use."""

    limit: str
    most: int | float
    used: int | float
    #: ok, nearly used up or used up
    state: str
    #: the model whose calls a limit on money cannot count, because it has no price
    unpriced: str | None = None


class MemberView(RosterEntry, frozen=True, kw_only=True):
    """A standing agent with the fields of this host."""

    #: on-duty, paused or disabled
    status: str
    hired_at: str
    #: the time of the last status change
    since: str
    paused: MemberPause | None = None
    #: each limit with its amount and its use
    budget: Sequence[BudgetUse] = ()
    #: in a list: the model of the agent
    model: str | None = None


class FieldChange(WireStruct, frozen=True):
    """A field before (``from``) and after (``to``) a change. Null means absent."""

    name: str = field(name="field")
    before: Any = field(name="from")
    after: Any = field(name="to")


class MemberChange(WireStruct, frozen=True):
    """One change of a standing agent."""

    at: str
    by: str
    did: str
    changes: Sequence[FieldChange] = ()
    #: of a pause
    reason: str | None = None
    until: str | None = None


class LeftTrigger(WireStruct, frozen=True):
    """A paused trigger of a former standing agent, which another one can take over."""

    source: str
    subscription_id: str
    state: str
    schedule_id: str | None = None
    queue: str | None = None
    workflow_id: str | None = None


class HiredMember(MemberView, frozen=True, kw_only=True):
    """A new standing agent, and the paused triggers of the previous agent with this id."""

    left: list[LeftTrigger]


class MemberDetail(MemberView, frozen=True, kw_only=True):
    """A standing agent with its changes, the newest first."""

    history: list[MemberChange]


class ChangedMember(MemberView, frozen=True, kw_only=True):
    """A standing agent after a change, with each field that has changed."""

    changes: list[FieldChange]


class PausedMember(MemberView, frozen=True, kw_only=True):
    """A standing agent after a pause."""

    #: the number of inactive triggers
    inert: int
    #: the runs that continue, or those that were cancelled
    running: Sequence[str] = ()
    stopped: Sequence[str] = ()
    #: of a pause with an end
    costs: PauseCost | None = None


class MemberList(WireStruct, frozen=True):
    """All standing agents."""

    roster: list[MemberView]
    total: int


class MemberHistory(WireStruct, frozen=True):
    """The changes of a standing agent."""

    roster_id: str
    #: changes, the newest first
    history: list[MemberChange]
    #: after a dismissal: triggers that stay paused until another agent takes them over
    left: Sequence[LeftTrigger] = ()


class MemberTrigger(WireStruct, frozen=True):
    """A trigger of a standing agent, with the times of a schedule."""

    source: str
    subscription_id: str
    state: str
    queue: str | None = None
    schedule_id: str | None = None
    kind: str | None = None
    words: str | None = None
    cron_expr: str | None = None
    interval_seconds: int | None = None
    at: str | None = None
    timezone: str | None = None
    next_fire_at: str | None = None
    problem: str | None = None
    #: why the state of the agent stops it
    inert: str | None = None


class RecentRun(WireStruct, frozen=True):
    """The newest run of a workflow."""

    run_id: str
    status: str
    started_at: str
    ended_at: str | None = None


class MemberWorkflow(WireStruct, frozen=True):
    """One workflow of a standing agent: its triggers and recent runs."""

    workflow_id: str
    triggers: list[MemberTrigger]
    #: runs started on each of the last fourteen days (UTC), the oldest first
    days: list[int]
    runs: int
    failed: int
    last: RecentRun | None = None


class MemberQuestion(WireStruct, frozen=True):
    """An open question of a standing agent's run, with its number in the inbox."""

    number: int
    id: str
    run_id: str
    kind: str
    question: str
    actions: list[str]
    asked_by: str


class MemberDismissal(WireStruct, frozen=True):
    """The dismissal of a standing agent: its time and its key."""

    by: str
    at: str


class MemberWork(RosterEntry, frozen=True, kw_only=True):
    """A standing agent with its workflows, triggers and open questions."""

    #: on-duty, paused, disabled or dismissed
    status: str
    hired_at: str
    since: str
    #: the id of the key that made the request
    you: str
    portfolio: list[MemberWorkflow]
    #: the total number of triggers, including those not listed
    triggers: int
    waiting: list[MemberQuestion]
    hired_by: str | None = None
    paused: MemberPause | None = None
    dismissed: MemberDismissal | None = None
    model: str | None = None


class MemberRun(WireStruct, frozen=True):
    """A run that was started for a standing agent, or the result of a dry run."""

    run_id: str | None = None
    roster_id: str | None = None
    #: of a dry run: the run that would start, and its standing agent
    dry_run: bool = False
    would: dict[str, str] | None = None
    budget: Sequence[BudgetUse] = ()
