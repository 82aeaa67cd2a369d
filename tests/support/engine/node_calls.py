"""A call as a node sees it, and a context that writes down what a node does with it."""

from collections.abc import Awaitable, Callable
from typing import Any

from moot.conformance.nodes.registry import conformance_types
from moot.core.workflows.node_types import ChildSpec, Completed, Failed, NodeCall, NodeType, Outcome
from moot.engine.nodes.registry import built_in_types

TYPES = built_in_types(extra=conformance_types())


def call(config: dict[str, Any] | None = None, **given: Any) -> NodeCall:
    fields: dict[str, Any] = {
        "run_id": "run-1",
        "tenant": "acme",
        "node_id": "here",
        "type_id": "core.noop",
        "attempt": 1,
        "config": config or {},
        "inputs": {},
        "variables": {},
        "upstream": {},
        "run_inputs": {},
        "configurable": {},
        "at": 1_700_000_000_000,
    }
    return NodeCall(**{**fields, **given})


def outcome(type_id: str, config: dict[str, Any] | None = None, **given: Any) -> Outcome:
    """What an instant node of this type answers."""
    instant = TYPES[type_id].instant
    assert instant is not None
    return instant(call(config, **given))


def completed(type_id: str, config: dict[str, Any] | None = None, **given: Any) -> Completed:
    found = outcome(type_id, config, **given)
    assert isinstance(found, Completed), found
    return found


def failed(type_id: str, config: dict[str, Any] | None = None, **given: Any) -> Failed:
    found = outcome(type_id, config, **given)
    assert isinstance(found, Failed), found
    return found


def problem(type_id: str, config: dict[str, Any]) -> str | None:
    """What registration says about the config."""
    check = TYPES[type_id].check
    return check(config) if check else None


def child(type_id: str, number: int, config: dict[str, Any], **given: Any) -> ChildSpec | None:
    found = TYPES[type_id].child
    assert found is not None
    return found(call(config, **given), number)


class Recorded:
    """A NodeContext: remembers chunks, logs, writes and variables, performs effects once."""

    def __init__(self, config: dict[str, Any] | None = None, **given: Any) -> None:
        self.run_id, self.tenant, self.node_id, self.attempt = "run-1", "acme", "here", 1
        self.config: dict[str, Any] = config or {}
        self.inputs: dict[str, Any] = given.get("inputs", {})
        self.variables: dict[str, Any] = given.get("variables", {})
        self.configurable: dict[str, Any] = given.get("configurable", {})
        self.chunks: list[tuple[str, bool, dict[str, Any]]] = []
        self.logged: list[tuple[str, str]] = []
        self.written: list[tuple[str, Any]] = []
        self.effects: dict[str, Any] = {}
        self.performed = 0

    def now(self) -> int:
        return 1_700_000_000_000

    def read(self, channel: str) -> Any:
        return None

    async def effect(self, provider_key: str, call: Callable[[str], Awaitable[Any]]) -> Any:
        if provider_key not in self.effects:
            self.performed += 1
            self.effects[provider_key] = await call(f"invocation-{self.performed}")
        return self.effects[provider_key]

    async def emit_chunk(
        self, chunk: str, is_last: bool = False, meta: dict[str, Any] | None = None
    ) -> None:
        self.chunks.append((chunk, is_last, meta or {}))

    async def log(self, level: str, message: str, **fields: Any) -> None:
        self.logged.append((level, message))

    async def write(self, channel: str, value: Any, reducer: str | None = None) -> None:
        self.written.append((channel, value))

    async def set_variable(self, name: str, value: Any) -> None:
        self.variables[name] = value


async def performed(type_: NodeType, ctx: Recorded) -> Outcome:
    """What a node that touches the world answers."""
    assert type_.activity is not None
    found: Outcome = await type_.activity(ctx)
    return found
