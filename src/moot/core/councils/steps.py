"""The next step of a council: invitations, skipped members, or a stop."""

from typing import Literal

from msgspec import Struct

from moot.core.payloads.councils import InvitationTask


class PlannedInvitation(Struct, frozen=True, omit_defaults=True):
    """An invitation to one member that the log does not hold yet."""

    agent: str
    task: InvitationTask
    why: str
    blind: int | None = None
    #: first and last turn to sum up
    of: tuple[int, int] | None = None
    #: sequence of the turn to answer, and whether that turn is a task
    reply: int | None = None
    result: bool = False


class CouncilStep(Struct, frozen=True, kw_only=True):
    """The invitations to send next, or the reason to stop or close."""

    wakes: tuple[PlannedInvitation, ...] = ()
    #: skipped member -> reason
    skipped: dict[str, str] = {}
    #: called member outside the host -> reason
    called: dict[str, str] = {}
    #: a word after an @ -> the members it could mean; empty when it means all members
    unclear: dict[str, list[str]] = {}
    round: int = 1
    phase: Literal["talk", "synthesis", "vote", "over"] = "talk"
    stop: str | None = None
    limit: float | None = None
    observed: float | None = None
    close: bool = False
