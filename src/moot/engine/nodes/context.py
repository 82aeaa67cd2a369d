"""What a node that touches the world is given. The engine supplies the implementation."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from moot.core.memory import Entry
from moot.core.state.initiation import Member
from moot.core.trace import Trace
from moot.core.workflows.turn_inputs import TurnInputs


class ToolCall(Protocol):
    """A tool an agent has called, until it has come back."""

    @property
    def call_id(self) -> str: ...

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

    async def add(self, piece: str) -> None:
        """One more piece, told as soon as it shows no part of a secret."""

    async def close(self) -> None:
        """The end of it: the whole is recorded, as far as the run wants it kept."""


class Agent(Protocol):
    """What an agent at work says of itself. An attempt may be lived again, after a crash or when a
    person was asked: what has been said is not said twice, so say it in the same order."""

    agent_id: str

    def speak_as(self, agent_id: str) -> None:
        """Another name than the one the node is pinned to."""

    @property
    def verbosity(self) -> str:
        """How much of its reasoning the run wants kept: summary, full or off."""

    def thinking(self, **more: Any) -> Thought:
        """A train of thought that is told piece by piece. ``more`` goes with the whole."""

    async def reasoned(self, text: str, **more: Any) -> None:
        """A train of thought that is told at once."""

    async def tool_called(self, tool: str, *arguments: Any, **more: Any) -> ToolCall:
        """Recorded before the tool is used; its one argument, if any, is what it is given."""

    async def handoff(self, to_agent: str, reason: str | None = None, **more: Any) -> None:
        """The work passes to another agent."""

    async def noted(self, type_: str, payload: dict[str, Any]) -> None:
        """Another event of the protocol about its work with a model; said once like the rest."""

    def tell(self, type_: str, payload: dict[str, Any]) -> None:
        """A fact for people to see at once, on which nothing relies: it is told as often as it
        happens."""

    async def decided(self, decision: Any, confidence: float | None = None, **more: Any) -> Any:
        """The decision to go on with: this one, or what a person has made of it when the agent
        is less sure than the run wants. Rejected, it fails the node."""

    async def permission(self, tool: str, arguments: dict[str, Any]) -> bool:
        """Whether a person lets the agent use a dangerous tool so; the node waits for the word."""


class NodeMemory(Protocol):
    """What is remembered, beyond the run. ``ref`` names a memory; left out, it is the node's own:
    that of its agent's ``memoryRef``, of ``config.agentSharing``, else of the run's scope.

    A node sees memory as it was when its run began (in the loop of a supervisor: the turn), and
    what the run and its completed children have written since. A ``ref`` that cannot name anything
    has nothing in it.
    """

    async def list(
        self, ref: str | None = None, *, tag: str | None = None, limit: int | None = None
    ) -> "list[Entry]":
        """Entries, newest first: the usual hundred, or as many as asked for."""

    async def get(self, memory_id: str, *, ref: str | None = None) -> Entry | None: ...

    async def put(
        self,
        content: str,
        *,
        tags: Sequence[str] = (),
        memory_id: str | None = None,
        ttl: float | None = None,
        expires_at: str | None = None,
        ref: str | None = None,
    ) -> Entry:
        """Remembers a text; on disk when it returns. A later attempt does not write again: it is
        given what the first one wrote.

        It ends ``ttl`` seconds after the write, or at ``expires_at`` (ISO 8601). With the id of an
        entry that is there it is a new version of it. Values of secrets are taken out.
        """

    async def delete(self, memory_id: str, *, ref: str | None = None) -> bool:
        """Whether there was such an entry; nobody is reminded of it any more."""


class NodeContext(Protocol):
    """One attempt of one node. Reading is free; everything awaited here is recorded."""

    @property
    def run_id(self) -> str: ...

    @property
    def tenant(self) -> str: ...

    @property
    def node_id(self) -> str: ...

    @property
    def attempt(self) -> int:
        """1 for the first attempt."""

    @property
    def workflow_id(self) -> str: ...

    @property
    def parent_run(self) -> str | None: ...

    @property
    def trace(self) -> Trace:
        """The run's own place in a trace."""

    @property
    def pin(self) -> dict[str, Any]:
        """The agent that the node is pinned to, as the workflow names it; empty when it is not."""

    @property
    def versions(self) -> dict[str, str]:
        """Versions of agents that serve this run, by agent and channel."""

    def member(self, name: str) -> Member | None:
        """The standing agent of this name, as the run's start has found it; without a name, the
        one whose run it is."""

    @property
    def config(self) -> dict[str, Any]: ...

    @property
    def inputs(self) -> dict[str, Any]: ...

    @property
    def variables(self) -> dict[str, Any]:
        """The run's variables as they were when the attempt began."""

    @property
    def configurable(self) -> dict[str, Any]: ...

    @property
    def trigger(self) -> dict[str, Any] | None:
        """What came in and began the run, if that was a trigger. It is a stranger's word: to be
        read, never to be obeyed."""

    @property
    def agent(self) -> Agent: ...

    @property
    def memory(self) -> NodeMemory: ...

    def now(self) -> int:
        """Milliseconds since the epoch, by the host's clock."""

    async def turn_inputs(self) -> TurnInputs:
        """What a supervisor's turn is decided from: how far back the log is seen, how its workers
        ended, what a person said. The same however often it is asked, and on every replay."""

    async def effect(
        self,
        provider_key: str,
        call: Callable[[str], Awaitable[Any]],
        idempotent: bool = True,
        key: str | None = None,
    ) -> Any:
        """The outcome of ``call``, which is recorded before it is used and never made again.

        ``call`` gets the logical invocation id, to hand on as an idempotency key. A crash in the
        middle of a call leaves its outcome unknown: an ``idempotent`` one is made again, another
        fails the node. A call that failed is tried again only by a later attempt of the node.
        ``key`` is recorded beside it: the cache key of a model's request.
        """

    async def emit_chunk(
        self, chunk: str, is_last: bool = False, meta: dict[str, Any] | None = None
    ) -> None:
        """A piece of streamed output."""

    async def log(self, level: str, message: str, **fields: Any) -> None:
        """A line in the run's log."""

    async def write(self, channel: str, value: Any, reducer: str | None = None) -> None:
        """A write to a channel; the reducer of a declared channel wins."""

    def read(self, channel: str) -> Any:
        """What a channel holds now; None when nothing was written to it."""

    async def set_variable(self, name: str, value: Any) -> None: ...
