"""The node type ``core.channelWrite``: one write to a channel."""

from typing import Any

from moot.core.runs.readiness import PortProblem
from moot.core.workflows.node_types import (
    ChannelWrite,
    Completed,
    NodeCall,
    NodeKind,
    NodeType,
    Outcome,
)
from moot.engine.nodes.inputs import is_whole, permanent_failure

REDUCERS = ("replace", "append", "merge", "counter", "votes", "feedback", "message")
LONGEST_TTL_MS = 31_536_000_000


def _write(call: NodeCall) -> Outcome:
    config = call.config
    if problem := _check(config):
        return permanent_failure("validation_error", f"Node '{call.node_id}': {problem}.")
    reducer = config["reducer"]
    if reducer not in REDUCERS:
        return permanent_failure(
            "unsupported_reducer",
            f"'{reducer}' is not a reducer of this host; use {', '.join(REDUCERS)}.",
            reducer=reducer,
        )
    write = ChannelWrite(
        channel=config["channelName"],
        value=_value(call),
        reducer=reducer,
        ttl_ms=config.get("ttlMs"),
        max_size=config.get("maxSize"),
    )
    return Completed({"channel": write.channel}, writes=(write,))


def _value(call: NodeCall) -> Any:
    if "value" in call.inputs:
        return call.inputs["value"]
    if "value" in call.config:
        return call.config["value"]
    raise PortProblem(f"There is no value to write to channel '{call.config['channelName']}'.")


def _check(config: dict[str, Any]) -> str | None:
    for key in ("channelName", "reducer"):
        if not isinstance(config.get(key), str) or not config[key]:
            return f"config.{key} must be given"
    ttl = config.get("ttlMs", 0)
    if not is_whole(ttl) or not 0 <= ttl <= LONGEST_TTL_MS:
        return f"config.ttlMs must be a whole number from 0 to {LONGEST_TTL_MS}"
    size = config.get("maxSize", 1)
    if not is_whole(size) or size < 1:
        return "config.maxSize must be a whole number from 1"
    return None


TYPE = NodeType(type_id="core.channelWrite", kind=NodeKind.INSTANT, instant=_write, check=_check)
