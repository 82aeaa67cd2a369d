"""What is answered about standing agents."""

from typing import Any

from moot.wire.runs import Answer


class RosterEntry(Answer, frozen=True):
    """A standing agent as the protocol shows it."""

    roster_id: str
    persona: str
    agent_ref: dict[str, Any]
    owner: dict[str, Any] = {}
    workflows: list[str] = []
    enabled: bool = True
    label: str | None = None
    description: str | None = None


class RosterEntries(Answer, frozen=True):
    roster: list[RosterEntry]
    total: int


class Member(RosterEntry, frozen=True):
    """The same, with what is only ours."""

    #: on-duty, paused or disabled
    status: str = ""
    hired_at: str = ""
    #: from when on it has been so
    since: str = ""
    paused: dict[str, Any] | None = None
    #: each limit: how much there is and how much is used up
    budget: list[dict[str, Any]] = []
    #: who did what with it, the newest first
    history: list[dict[str, Any]] = []
    #: of a pause: runs that go on, or that were cancelled
    running: list[str] = []
    stopped: list[str] = []
    #: of somebody hired: what woke whoever had the name before, and rests
    left: list[dict[str, Any]] = []
    #: of a pause with an end: how many times of its schedules it costs, and the first of them
    costs: dict[str, Any] | None = None
    #: of a change: each field as it was (``from``) and as it is (``to``)
    changes: list[dict[str, Any]] = []
    #: in a list: what it speaks through
    model: str | None = None
    #: of a pause: how many triggers wake nobody now
    inert: int = 0


class MemberHistory(Answer, frozen=True):
    roster_id: str
    #: who did what with it, the newest first
    history: list[dict[str, Any]] = []
    #: of somebody let go: what woke it, and rests until somebody takes it over
    left: list[dict[str, Any]] = []


class Portfolio(Answer, frozen=True):
    """One of its workflows."""

    workflow_id: str
    #: each with its ``source`` and ``state``, and ``nextFireAt`` or ``inert`` where there is one
    triggers: list[dict[str, Any]] = []
    #: the newest run: ``runId``, ``status``, ``startedAt`` and ``endedAt``
    last: dict[str, Any] | None = None
    #: runs begun on each of the last fourteen days (UTC), the oldest first
    days: list[int] = []
    runs: int = 0
    failed: int = 0


class MemberWork(RosterEntry, frozen=True):
    #: on-duty, paused, disabled or dismissed
    status: str = ""
    hired_at: str = ""
    since: str = ""
    hired_by: str | None = None
    paused: dict[str, Any] | None = None
    dismissed: dict[str, Any] | None = None
    #: the id of the key that asks
    you: str = ""
    model: str | None = None
    portfolio: list[Portfolio] = []
    #: how many there are, also those beyond the ones that are shown
    triggers: int = 0
    #: what its runs ask people, each with its number in the inbox
    waiting: list[dict[str, Any]] = []


class Members(Answer, frozen=True):
    roster: list[Member]
    total: int


class MemberRun(Answer, frozen=True):
    run_id: str | None = None
    roster_id: str | None = None
    #: of a dry run: what would be started, by whom
    dry_run: bool = False
    would: dict[str, Any] = {}
    budget: list[dict[str, Any]] = []
