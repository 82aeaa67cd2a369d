"""Answers about standing agents."""

from typing import Any

from moot.wire.json import WireStruct


class RosterEntry(WireStruct, frozen=True):
    """A standing agent in the form of the protocol."""

    roster_id: str
    persona: str
    agent_ref: dict[str, Any]
    owner: dict[str, Any] = {}
    workflows: list[str] = []
    enabled: bool = True
    label: str | None = None
    description: str | None = None


class RosterEntryList(WireStruct, frozen=True):
    """All standing agents in the form of the protocol."""

    roster: list[RosterEntry]
    total: int


class MemberView(RosterEntry, frozen=True):
    """A standing agent with the fields of this host."""

    #: on-duty, paused or disabled
    status: str = ""
    hired_at: str = ""
    #: the time of the last status change
    since: str = ""
    paused: dict[str, Any] | None = None
    #: each limit with its amount and its use
    budget: list[dict[str, Any]] = []
    #: changes, the newest first
    history: list[dict[str, Any]] = []
    #: after a pause: the runs that continue, and those that were cancelled
    running: list[str] = []
    stopped: list[str] = []
    #: after hiring: paused triggers of the previous agent with this name
    left: list[dict[str, Any]] = []
    #: of a pause with an end: the number of slots it skips, and the first of them
    costs: dict[str, Any] | None = None
    #: after a change: each field before (``from``) and after (``to``)
    changes: list[dict[str, Any]] = []
    #: in a list: the model of the agent
    model: str | None = None
    #: after a pause: the number of inactive triggers
    inert: int = 0


class MemberHistory(WireStruct, frozen=True):
    """The changes of a standing agent."""

    roster_id: str
    #: changes, the newest first
    history: list[dict[str, Any]] = []
    #: after a dismissal: triggers that stay paused until another agent takes them over
    left: list[dict[str, Any]] = []


class MemberWorkflow(WireStruct, frozen=True):
    """One workflow of a standing agent: its triggers and recent runs."""

    workflow_id: str
    #: each has ``source`` and ``state``, and may have ``nextFireAt`` or ``inert``
    triggers: list[dict[str, Any]] = []
    #: the newest run: ``runId``, ``status``, ``startedAt`` and ``endedAt``
    last: dict[str, Any] | None = None
    #: runs started on each of the last fourteen days (UTC), the oldest first
    days: list[int] = []
    runs: int = 0
    failed: int = 0


class MemberWork(RosterEntry, frozen=True):
    """A standing agent with its workflows, triggers and open questions."""

    #: on-duty, paused, disabled or dismissed
    status: str = ""
    hired_at: str = ""
    since: str = ""
    hired_by: str | None = None
    paused: dict[str, Any] | None = None
    dismissed: dict[str, Any] | None = None
    #: the id of the key that made the request
    you: str = ""
    model: str | None = None
    portfolio: list[MemberWorkflow] = []
    #: the total number of triggers, including those not listed
    triggers: int = 0
    #: open questions of its runs, each with its number in the inbox
    waiting: list[dict[str, Any]] = []


class MemberList(WireStruct, frozen=True):
    """All standing agents."""

    roster: list[MemberView]
    total: int


class MemberRun(WireStruct, frozen=True):
    """A run that was started for a standing agent, or the result of a dry run."""

    run_id: str | None = None
    roster_id: str | None = None
    #: of a dry run: the run that would start, and its standing agent
    dry_run: bool = False
    would: dict[str, Any] = {}
    budget: list[dict[str, Any]] = []
