"""What a node that touches the world is given. The engine supplies the implementation."""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from moot.core.turn_inputs import TurnInputs


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
    def config(self) -> dict[str, Any]: ...

    @property
    def inputs(self) -> dict[str, Any]: ...

    @property
    def variables(self) -> dict[str, Any]:
        """The run's variables as they were when the attempt began."""

    @property
    def configurable(self) -> dict[str, Any]: ...

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
    ) -> Any:
        """The outcome of ``call``, which is recorded before it is used and never made again.

        ``call`` gets the logical invocation id, to hand on as an idempotency key. A crash in the
        middle of a call leaves its outcome unknown: an ``idempotent`` one is made again, another
        fails the node. A call that failed is tried again only by a later attempt of the node.
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
