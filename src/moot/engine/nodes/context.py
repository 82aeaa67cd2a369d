"""The context that a node with side effects gets."""

from collections.abc import Mapping
from typing import Any, Protocol

from msgspec import Struct

from moot.agents.invocation.context import EffectContext
from moot.core.state.initiation import RunMember
from moot.core.trace import Trace
from moot.core.workflows.turn_inputs import TurnInputs
from moot.engine.agents.voice import AgentVoice
from moot.engine.memory import NodeMemory


class AgentPin(Struct, frozen=True, rename="camel"):
    """An agent, with the version or the channel that a workflow asks for."""

    #: empty when there is no agent
    agent_id: str = ""
    version: str | None = None
    channel: str | None = None


class NodeContext(EffectContext, Protocol):
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
    def pin(self) -> AgentPin:
        """Return the agent that the workflow pins the node to."""

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
    def agent(self) -> AgentVoice: ...

    @property
    def memory(self) -> NodeMemory: ...

    async def turn_inputs(self) -> TurnInputs:
        """Return the inputs of a supervisor's turn: log range, ends of workers, a person's answer.

        They are the same for every call and in every replay.
        """

    async def emit_chunk(
        self, chunk: str, is_last: bool = False, meta: Mapping[str, object] | None = None
    ) -> None:
        """Record a piece of streamed output."""

    async def log(self, level: str, message: str, **fields: Any) -> None:
        """Record a line in the run's log."""

    async def write(self, channel: str, value: Any, reducer: str | None = None) -> None:
        """Write to a channel. The reducer of a declared channel wins."""

    def read(self, channel: str) -> Any:
        """Return the current value of a channel, or None before the first write."""

    async def set_variable(self, name: str, value: Any) -> None: ...
