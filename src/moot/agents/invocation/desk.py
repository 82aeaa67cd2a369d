"""What an agent at work is given, and what comes back. The engine supplies the implementation."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal, Protocol

from msgspec import Struct

from moot.core.state.council_policy import Policy
from moot.core.state.floor import Task
from moot.core.state.initiation import Member
from moot.core.trace import Trace
from moot.core.workflows.turn_inputs import TurnInputs

#: in a conversation a member's task; ``work`` is a piece of work, ``decide`` a supervisor's turn
Wanted = Task | Literal["work", "decide"]
Source = Literal["workflow-node", "run-api", "chat-mention"]


class Heard(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One turn of the transcript, as an agent is told it."""

    index: int
    speaker: str
    role: Literal["user", "agent", "system"]
    content: Any
    to: str | None = None
    #: who has put other words in the place of the speaker's
    edited_by: str | None = None
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
    task: Wanted
    source: Source = "chat-mention"
    #: the version that is asked for, the channel that chooses one, and those chosen before
    version: str | None = None
    channel: str | None = None
    versions: dict[str, str] = {}
    #: the standing agent that ``agent`` means, as the run's start has found it
    member: Member | None = None
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
    #: of a piece of work: what to do, what others have to say to it, the form of the answer
    prompt: str = ""
    data: dict[str, Any] = {}
    output: dict[str, Any] | None = None
    #: fewer tools than the agent has
    tools: list[str] | None = None
    #: of a supervisor's turn: what it is decided from, and whom work can be handed to
    turn_inputs: TurnInputs | None = None
    workers: list[str] = []


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
    #: some of the tokens were reckoned from the length of the texts: the provider did not count
    estimated: bool = False


class Done(Struct, frozen=True, kw_only=True):
    """What came of an assignment."""

    outcome: Literal["spoke", "answered", "passed", "failed", "refused"]
    content: Any = None
    to: str | None = None
    #: the form that was asked for, filled in
    answer: Any = None
    usage: Usage | None = None
    error: dict[str, Any] | None = None
    meta: dict[str, Any] | None = None
    #: which model produced it, as the turn carries it
    agent: dict[str, Any] | None = None
    #: how sure the agent says it is, and how sure it wants to be
    confidence: float | None = None
    threshold: float | None = None


class ToolCall(Protocol):
    """A tool an agent has called, until it has come back."""

    async def returned(
        self, result: Any, duration_ms: int | None = None, flags: Sequence[str] = ()
    ) -> None: ...

    async def failed(
        self,
        code: str,
        message: str,
        duration_ms: int | None = None,
        flags: Sequence[str] = (),
        **details: Any,
    ) -> None: ...


class Thought(Protocol):
    """One train of thought while it lasts."""

    async def add(self, piece: str) -> None: ...

    async def close(self) -> None: ...


class Desk(Protocol):
    """Where an agent works: everything awaited here is recorded before it is relied on.

    Work that a crash cut short is done again from the beginning: what has been said is not said
    twice, so it is said in the same order.
    """

    def now(self) -> int:
        """Milliseconds since the epoch, by the host's clock."""

    async def effect(
        self,
        provider_key: str,
        call: Callable[[str], Awaitable[Any]],
        idempotent: bool = True,
        key: str | None = None,
    ) -> Any:
        """The outcome of ``call``, recorded once and never made again. ``key`` is recorded beside
        it. A failure that was recorded is raised as what it was: a ModelError keeps its code."""

    def trace(self, name: str) -> Trace:
        """Where the call of this name stands in the trace of the run."""

    async def noted(self, type_: str, payload: dict[str, Any]) -> None:
        """That the work begins, which prompt there is, that the work is done."""

    def tell(self, type_: str, payload: dict[str, Any]) -> None:
        """A fact that people are to see at once, and on which nothing relies."""

    def thinking(self) -> Thought: ...

    async def tool_called(self, tool: str, arguments: Any, transport: str) -> ToolCall: ...

    async def decided(self, decision: Any, confidence: float | None, threshold: float) -> Any:
        """The decision to go on with: it may be a person's."""

    async def agreed(self, agent: str, tool: str, arguments: dict[str, Any]) -> bool:
        """Whether a person lets this agent use a dangerous tool so. Waits for the answer."""

    def stir(self) -> None:
        """Something was heard: a word, a thought, part of a form."""

    def given_up(self, known: dict[str, Any]) -> None:
        """The call under way is broken off from outside; ``known`` is what it has used up."""

    async def say(self, delta: str) -> None:
        """Words as they come."""

    def take_back(self) -> None:
        """What was said so far is void: the call broke and is made again, or a tool comes first."""

    async def said(self, finish: str, model: str) -> None:
        """No more words come."""

    async def recalled(self, memory: str, agent: str) -> list[str]:
        """What is remembered there, the newest first."""

    async def remember(self, memory: str, agent: str, text: str) -> None: ...


#: None: no agent of this name is known here, somebody else will answer
Invoke = Callable[[Assignment, Desk], Awaitable[Done | None]]


async def nobody(assignment: Assignment, desk: Desk) -> Done | None:
    """A host without agents."""
    return None
