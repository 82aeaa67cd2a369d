"""The assignment, context and result of an invocation. The engine implements it."""

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal, Protocol

from msgspec import Struct

from moot.core.payloads.base import Payload
from moot.core.payloads.councils import InvitationTask
from moot.core.state.council_policy import Policy
from moot.core.state.initiation import RunMember
from moot.core.trace import Trace
from moot.core.workflows.turn_inputs import TurnInputs

#: a task in a conversation, a piece of work, or the turn of a supervisor
AgentTask = InvitationTask | Literal["work", "decide"]
InvocationSource = Literal["workflow-node", "run-api", "chat-mention"]


class TranscriptTurn(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One turn of the transcript, as the agent reads it."""

    index: int
    speaker: str
    role: str
    content: Any
    to: str | None = None
    #: the person who has edited the words of the speaker
    edited_by: str | None = None
    #: the first and last turn that this summary replaces
    of: tuple[int, int] | None = None


class Assignment(Struct, frozen=True, kw_only=True):
    """One task of one agent, with everything it may rely on."""

    tenant: str
    run_id: str
    node_id: str
    agent: str
    #: the id of the invocation
    invocation: str
    task: AgentTask
    source: InvocationSource = "chat-mention"
    #: the requested version, the channel that chooses one, and those chosen before
    version: str | None = None
    channel: str | None = None
    versions: dict[str, str] = {}
    #: the standing agent that ``agent`` means, as found at the start of the run
    member: RunMember | None = None
    why: str = ""
    #: the conversation, which seeds the demo model
    place: str = ""
    #: the number of the turn to produce
    turn: int = 0
    round: int = 1
    transcript: tuple[TranscriptTurn, ...] = ()
    #: the number of earlier turns left out
    hidden: int = 0
    #: member -> its profile, in speaking order
    members: dict[str, dict[str, Any]] = {}
    policy: Policy | None = None
    #: the proposal to vote on
    proposal: str | None = None
    #: model calls left in the budget
    calls_left: int = 8
    #: tokens and money left; None means no limit
    tokens_left: int | None = None
    money_left: float | None = None
    #: run options for agents, such as other models or thresholds
    configurable: dict[str, Any] = {}
    #: for a piece of work: the task, its data, and the schema of the answer
    prompt: str = ""
    data: dict[str, Any] = {}
    output: dict[str, Any] | None = None
    #: limits the tools of the agent
    tools: list[str] | None = None
    #: for the turn of a supervisor: its inputs and the possible workers
    turn_inputs: TurnInputs | None = None
    workers: list[str] = []


class InvocationUsage(Struct, kw_only=True, omit_defaults=True, rename="camel"):
    """The cost of an assignment."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    #: the price used
    price: dict[str, Any] | None = None
    model: str = ""
    milliseconds: int = 0
    #: some tokens are estimates, because the provider did not count them
    estimated: bool = False


class InvocationResult(Struct, frozen=True, kw_only=True):
    """The result of an assignment."""

    outcome: Literal["spoke", "answered", "passed", "failed", "refused"]
    content: Any = None
    to: str | None = None
    #: the structured answer, if a schema was set
    answer: Any = None
    usage: InvocationUsage | None = None
    error: dict[str, Any] | None = None
    meta: dict[str, Any] | None = None
    #: the agent and model, as stored in the turn
    agent: dict[str, Any] | None = None
    #: the confidence of the agent, and its threshold
    confidence: float | None = None
    threshold: float | None = None


class OpenToolCall(Protocol):
    """A tool call that has not returned yet."""

    @property
    def call_id(self) -> str: ...

    async def returned(
        self, result: Any, duration_ms: int | None = None, flags: Sequence[str] = ()
    ) -> None:
        """Record the result. ``flags`` name the parts that were made harmless for the model."""

    async def failed(
        self,
        code: str,
        message: str,
        duration_ms: int | None = None,
        flags: Sequence[str] = (),
        **details: Any,
    ) -> None: ...


class ReasoningStream(Protocol):
    """One train of thought in progress."""

    async def add(self, piece: str) -> None:
        """Add one more piece. No record of it shows a part of a secret."""

    async def close(self) -> None:
        """End the thought and record the whole, as far as the run keeps it."""


class EffectContext(Protocol):
    """A context that makes effects and knows the time."""

    def now(self) -> int:
        """Return the milliseconds since the epoch, by the host's clock."""

    async def effect(
        self,
        provider_key: str,
        call: Callable[[str], Awaitable[Any]],
        idempotent: bool = True,
        key: str | None = None,
    ) -> Any:
        """Return the outcome of ``call``, which is recorded before it is used and never made
        again.

        ``call`` gets the logical invocation id, to pass on as an idempotency key. A crash in the
        middle of a call leaves its outcome unknown: an ``idempotent`` one is made again, another
        fails the node. Only a later attempt of the node tries a failed call again. ``key`` is
        recorded with the effect: the cache key of a model's request.
        """


class AgentContext(EffectContext):
    """The surroundings of an agent at work. Everything awaited here is recorded before it is used.

    After a crash the work starts again from the beginning. Recorded steps are not repeated, so the
    order of steps must stay the same. A recorded failure of an effect is raised again; a ModelError
    keeps its code. Methods with a body are for contexts that have no use for them."""

    @abstractmethod
    def trace(self, name: str) -> Trace:
        """Return the trace context for the call of this name."""

    @abstractmethod
    async def noted(self, payload: Payload) -> None:
        """Record an event of the invocation."""

    @abstractmethod
    def tell(self, payload: Payload) -> None:
        """Publish an event at once that nothing relies on."""

    @abstractmethod
    def thinking(self) -> ReasoningStream: ...

    @abstractmethod
    async def tool_called(self, tool: str, arguments: Any, transport: str) -> OpenToolCall: ...

    @abstractmethod
    async def decided(self, decision: Any, confidence: float | None, threshold: float) -> Any:
        """Record a decision, and return the one to use, which may be that of a person."""

    @abstractmethod
    async def ask_permission(self, agent: str, tool: str, arguments: dict[str, Any]) -> bool:
        """Ask a person whether the agent may use a dangerous tool, and wait for the answer."""

    @abstractmethod
    async def say(self, delta: str) -> None:
        """Publish words as they come."""

    @abstractmethod
    def take_back(self) -> None:
        """Discard the words so far, because the call is repeated or a tool comes first."""

    async def said(self, finish: str, model: str) -> None:
        """Mark the end of the words."""

    def stir(self) -> None:
        """Note that the model has sent something."""

    def given_up(self, known: dict[str, Any]) -> None:
        """Record that the current call was cancelled; ``known`` is its usage."""

    async def recalled(self, memory: str, agent: str) -> list[str]:
        """Return the entries of the memory, newest first."""
        return []

    async def remember(self, memory: str, agent: str, text: str) -> None:
        """Store the text in the memory."""


#: returns None when this host has no agent of this name
Invoke = Callable[[Assignment, AgentContext], Awaitable[InvocationResult | None]]


async def no_agents(assignment: Assignment, context: AgentContext) -> InvocationResult | None:
    """Answer for a host without agents."""
    return None
