"""core.identity: every input comes out again under its own name."""

from typing import Any

from moot.core.events import iso
from moot.core.workflows.node_types import Call, ChannelWrite, Completed, Kind, NodeType


def _identity(call: Call) -> Completed:
    if call.config.get("emitDuplicateMessageId") is not True:
        return Completed(call.inputs)
    return Completed(call.inputs, writes=(_message(call, "first"), _message(call, "second")))


def _message(call: Call, content: str) -> ChannelWrite:
    """Both writes carry one id, so a message channel keeps only the first of them."""
    entry = {
        "messageId": f"{call.run_id}:{call.node_id}",
        "role": "assistant",
        "content": content,
        "timestamp": iso(call.at * 1000),
    }
    return ChannelWrite(channel="messages", value=entry, reducer="message")


def _check(config: dict[str, Any]) -> str | None:
    if "memoryAction" in config:
        return "config.memoryAction is for hosts under trial; a @node function has ctx.memory"
    return None


TYPE = NodeType(type_id="core.identity", kind=Kind.INSTANT, instant=_identity, check=_check)
