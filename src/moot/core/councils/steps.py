"""What comes next in a conversation that the host leads."""

from msgspec import Struct

from moot.core.state.floor import Task


class Give(Struct, frozen=True, omit_defaults=True):
    """Wake one member for a task."""

    agent: str
    task: Task
    why: str
    blind: int | None = None
    #: turns to sum up
    of: tuple[int, int] | None = None
    #: where the turn stands that is to be answered, and whether that is a task
    reply: int | None = None
    result: bool = False


class Step(Struct, frozen=True, kw_only=True):
    """What comes next: members are woken, some are passed by, or it stops."""

    wakes: tuple[Give, ...] = ()
    #: member -> why it is not given the floor
    skipped: dict[str, str] = {}
    #: member outside -> why it is called
    called: dict[str, str] = {}
    #: word of a person -> whom it could mean; nobody in particular where it means everybody
    unclear: dict[str, list[str]] = {}
    round: int = 1
    phase: str = "talk"
    stop: str | None = None
    limit: float | None = None
    observed: float | None = None
    close: bool = False
