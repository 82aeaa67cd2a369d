"""What an agent at work is given, and what comes back. The engine supplies the implementation."""

from collections.abc import Awaitable, Callable
from typing import Any, Literal, Protocol

from msgspec import Struct

from moot.core.events import NewEvent
from moot.core.participation import Task
from moot.core.policy import Policy


class Heard(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One turn of the transcript, as an agent is told it."""

    index: int
    speaker: str
    role: Literal["user", "agent", "system"]
    content: Any
    to: str | None = None
    #: the turns that this one sums up, from and to, and stands in the place of
    of: tuple[int, int] | None = None


class Assignment(Struct, frozen=True, kw_only=True):
    """One thing one agent is asked to do, with everything that may be relied on."""

    tenant: str
    run_id: str
    node_id: str
    agent: str
    #: which of the run's invocations this is
    invocation: str
    task: Task
    why: str = ""
    #: where it takes place, for what is said in the same place to be alike
    place: str = ""
    #: the number of the turn that is asked for
    turn: int = 0
    round: int = 1
    transcript: tuple[Heard, ...] = ()
    #: how many turns there are that are not shown
    hidden: int = 0
    #: member -> what is known of it, in the order they speak
    members: dict[str, dict[str, Any]] = {}
    policy: Policy | None = None
    #: what is put to the vote
    proposal: str | None = None
    #: model calls that are left before a limit is reached
    calls_left: int = 8
    #: tokens and money that are left; None where there is no bound
    tokens_left: int | None = None
    money_left: float | None = None
    #: run options that concern agents: other models, other thresholds
    configurable: dict[str, Any] = {}


class Usage(Struct, kw_only=True, omit_defaults=True, rename="camel"):
    """What an assignment has cost."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    #: the price it was reckoned with
    price: dict[str, Any] | None = None
    model: str = ""
    milliseconds: int = 0


class Done(Struct, frozen=True, kw_only=True):
    """What came of an assignment."""

    outcome: Literal["spoke", "answered", "passed", "failed", "refused"]
    content: Any = None
    to: str | None = None
    answer: dict[str, Any] | None = None
    usage: Usage | None = None
    error: dict[str, Any] | None = None
    meta: dict[str, Any] | None = None
    #: which model produced it, as the turn carries it
    agent: dict[str, Any] | None = None
    #: what is recorded with it
    facts: tuple[NewEvent, ...] = ()


class Desk(Protocol):
    """Where an agent works: everything awaited here is recorded before it is relied on."""

    def now(self) -> int:
        """Milliseconds since the epoch, by the host's clock."""

    async def effect(
        self, provider_key: str, call: Callable[[str], Awaitable[Any]], idempotent: bool = True
    ) -> Any:
        """The outcome of ``call``, recorded once and never made again."""

    async def report(self, *events: NewEvent) -> None:
        """Facts about the work, on disk no later than what comes of it."""

    async def recorded(self, *events: NewEvent) -> None:
        """Facts on disk now, and what was reported before with them."""

    def tell(self, fact: NewEvent) -> None:
        """A fact that people are to see at once, and on which nothing relies."""

    async def agreed(self, agent: str, tool: str, arguments: dict[str, Any]) -> bool:
        """Whether a person lets this agent use a dangerous tool so. Waits for the answer."""

    def say(self, delta: str) -> None:
        """Words as they come, for whoever listens now; they are not kept."""

    def take_back(self) -> None:
        """What was said so far is void: the call broke and is made again."""


#: None: no agent of this name is known here, somebody else will answer
Invoke = Callable[[Assignment, Desk], Awaitable[Done | None]]


async def nobody(assignment: Assignment, desk: Desk) -> Done | None:
    """A host without agents."""
    return None
