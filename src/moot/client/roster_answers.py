"""What is answered about standing agents."""

from typing import Any

from moot.client.answers import Answer


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


class LetGo(Answer, frozen=True):
    roster_id: str
    persona: str
    #: what woke it, and rests until somebody takes it over
    left: list[dict[str, Any]] = []


class MemberHistory(Answer, frozen=True):
    roster_id: str
    #: who did what with it, the newest first
    history: list[dict[str, Any]] = []


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
