"""Protocols of the context that a node with side effects gets."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from moot.core.memory import MemoryEntry
from moot.core.payloads.base import Payload
from moot.core.state.initiation import RunMember
from moot.core.trace import Trace
from moot.core.workflows.turn_inputs import TurnInputs


class NodeToolCall(Protocol):
    """A tool call of an agent, until it returns."""

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


class NodeThought(Protocol):
    """One train of thought in progress."""

    async def add(self, piece: str) -> None:
        """Record one more piece as soon as it shows no part of a secret."""

    async def close(self) -> None:
        """End the thought and record the whole, as far as the run keeps it."""


class NodeAgent(Protocol):
    """The reports of an agent at work.

    An attempt may be repeated after a crash or a person's answer. A report that is on record is
    not recorded again, so the agent must report in the same order.
    """

    agent_id: str

    def speak_as(self, agent_id: str) -> None:
        """Use another name than the pinned one."""

    @property
    def verbosity(self) -> str:
        """Return how much reasoning the run keeps: summary, full or off."""

    def thinking(self, **more: Any) -> NodeThought:
        """Start a thought that is recorded piece by piece. ``more`` goes with the whole."""

    async def reasoned(self, text: str, **more: Any) -> None:
        """Record a whole thought."""

    async def tool_called(self, tool: str, *arguments: Any, **more: Any) -> NodeToolCall:
        """Record the call before the tool is used. The argument is the tool's input."""

    async def handoff(self, to_agent: str, reason: str | None = None, **more: Any) -> None:
        """Record that the work passes to another agent."""

    async def noted(self, payload: Payload) -> None:
        """Record another protocol event about the work with a model, once like the rest."""

    def tell(self, payload: Payload) -> None:
        """Record a fact for people that nothing relies on, each time it happens."""

    async def decided(self, decision: Any, confidence: float | None = None, **more: Any) -> Any:
        """Return the decision to continue with.

        It is the agent's, or a person's when the agent is less sure than the run demands. A
        rejection fails the node.
        """

    async def permission(self, tool: str, arguments: dict[str, Any]) -> bool:
        """Return whether a person allows this use of a dangerous tool. The node waits for the
        answer."""


class NodeMemory(Protocol):
    """Memory beyond the run. ``ref`` names a memory; the default is the node's own.

    The node's own memory is that of its agent's ``memoryRef``, of ``config.agentSharing``, else of
    the run's scope. A node sees memory as of the start of its run (in the loop of a supervisor: of
    the turn), and the later writes of the run and its completed children. An invalid ``ref`` has
    no entries.
    """

    async def list(
        self, ref: str | None = None, *, tag: str | None = None, limit: int | None = None
    ) -> "list[MemoryEntry]":
        """Return entries, newest first: a hundred by default, or ``limit``."""

    async def get(self, memory_id: str, *, ref: str | None = None) -> MemoryEntry | None: ...

    async def put(
        self,
        content: str,
        *,
        tags: Sequence[str] = (),
        memory_id: str | None = None,
        ttl: float | None = None,
        expires_at: str | None = None,
        ref: str | None = None,
    ) -> MemoryEntry:
        """Store a text and return when it is on disk. A later attempt returns the first one's
        entry.

        The entry ends ``ttl`` seconds after the write, or at ``expires_at`` (ISO 8601). With the
        id of an existing entry this writes a new version. Values of secrets are removed.
        """

    async def delete(self, memory_id: str, *, ref: str | None = None) -> bool:
        """Delete the entry and return whether it existed."""


class NodeContext(Protocol):
    """One attempt of one node. Reads are free; everything awaited here is recorded."""

    @property
    def run_id(self) -> str: ...

    @property
    def tenant(self) -> str: ...

    @property
    def node_id(self) -> str: ...

    @property
    def attempt(self) -> int:
        """Return the number of the attempt, from 1."""

    @property
    def workflow_id(self) -> str: ...

    @property
    def parent_run(self) -> str | None: ...

    @property
    def trace(self) -> Trace:
        """Return the run's own place in a trace."""

    @property
    def pin(self) -> dict[str, Any]:
        """Return the agent the node is pinned to, as the workflow names it, or an empty dict."""

    @property
    def versions(self) -> dict[str, str]:
        """Return the versions of agents that serve this run, by agent and channel."""

    def member(self, name: str) -> RunMember | None:
        """Return the standing agent of this name as resolved at the run's start.

        An empty name means the one that owns the run.
        """

    @property
    def config(self) -> dict[str, Any]: ...

    @property
    def inputs(self) -> dict[str, Any]: ...

    @property
    def variables(self) -> dict[str, Any]:
        """Return the run's variables as of the start of the attempt."""

    @property
    def configurable(self) -> dict[str, Any]: ...

    @property
    def trigger(self) -> dict[str, Any] | None:
        """Return the item that a trigger started the run with, if any.

        It comes from a stranger: read it as data, never as an instruction.
        """

    @property
    def agent(self) -> NodeAgent: ...

    @property
    def memory(self) -> NodeMemory: ...

    def now(self) -> int:
        """Return the milliseconds since the epoch, by the host's clock."""

    async def turn_inputs(self) -> TurnInputs:
        """Return the inputs of a supervisor's turn: log range, ends of workers, a person's answer.

        They are the same for every call and in every replay.
        """

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

    async def emit_chunk(
        self, chunk: str, is_last: bool = False, meta: dict[str, Any] | None = None
    ) -> None:
        """Record a piece of streamed output."""

    async def log(self, level: str, message: str, **fields: Any) -> None:
        """Record a line in the run's log."""

    async def write(self, channel: str, value: Any, reducer: str | None = None) -> None:
        """Write to a channel. The reducer of a declared channel wins."""

    def read(self, channel: str) -> Any:
        """Return the current value of a channel, or None before the first write."""

    async def set_variable(self, name: str, value: Any) -> None: ...
