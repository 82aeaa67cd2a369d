"""Small node types: start, end, noop, parallel, merge, identity, fail."""

from typing import Any

from moot.core.events import iso
from moot.core.workflows.node_types import (
    ChannelWrite,
    Completed,
    Failed,
    NodeCall,
    NodeError,
    NodeKind,
    NodeType,
)
from moot.engine.nodes.inputs import first_problem, merge_upstream


def _start(call: NodeCall) -> Completed:
    """Pass the run's inputs into the graph."""
    return Completed(dict(call.run_inputs))


def _end(call: NodeCall) -> Completed:
    """Pass the inputs out as the run's outputs."""
    return Completed(call.inputs)


START_AND_END_NODES = (
    NodeType(type_id="core.start", kind=NodeKind.INSTANT, instant=_start),
    NodeType(type_id="core.end", kind=NodeKind.INSTANT, instant=_end),
)


def _noop(call: NodeCall) -> Completed:
    return Completed()


NOOP_NODE = NodeType(type_id="core.noop", kind=NodeKind.INSTANT, instant=_noop)


def _parallel(call: NodeCall) -> Completed:
    """Mark where parallel paths begin; the edges do the fan-out."""
    return Completed(call.inputs)


PARALLEL_NODE = NodeType(type_id="core.parallel", kind=NodeKind.INSTANT, instant=_parallel)


MERGE_MODES = ("object", "list", "first")


def _merge(call: NodeCall) -> Completed:
    """Return the outputs of the incoming paths, by source and as one value."""
    return Completed({"results": dict(call.upstream), "merged": _merged(call)})


def _merged(call: NodeCall) -> Any:
    match call.config.get("mode", "object"):
        case "list":
            return list(call.upstream.values())
        case "first":
            return next(iter(call.upstream.values()), {})
        case _:
            return merge_upstream(call)


def _check_merge(config: dict[str, Any]) -> str | None:
    if config.get("mode", "object") in MERGE_MODES:
        return None
    return f"config.mode must be one of {', '.join(MERGE_MODES)}"


MERGE_NODE = NodeType(
    type_id="core.merge", kind=NodeKind.INSTANT, instant=_merge, check=_check_merge
)


def _identity(call: NodeCall) -> Completed:
    """Return every input under its own name."""
    if call.config.get("emitDuplicateMessageId") is not True:
        return Completed(call.inputs)
    return Completed(
        call.inputs, writes=(_duplicate_message(call, "first"), _duplicate_message(call, "second"))
    )


def _duplicate_message(call: NodeCall, content: str) -> ChannelWrite:
    """Return a write with the id of the node, so that a message channel keeps only the first."""
    entry = {
        "messageId": f"{call.run_id}:{call.node_id}",
        "role": "assistant",
        "content": content,
        "timestamp": iso(call.at * 1000),
    }
    return ChannelWrite(channel="messages", value=entry, reducer="message")


def _check_identity(config: dict[str, Any]) -> str | None:
    if "memoryAction" in config:
        return "config.memoryAction is for hosts under trial; a @node function has ctx.memory"
    return None


IDENTITY_NODE = NodeType(
    type_id="core.identity", kind=NodeKind.INSTANT, instant=_identity, check=_check_identity
)


FAIL_DEFAULTS = {"code": "conformance_test_failure", "message": "Intentional conformance failure"}


def _fail(call: NodeCall) -> Failed:
    """Fail on purpose. Inputs override the config, so that a message can name the cause."""
    values = {**FAIL_DEFAULTS, **call.config, **call.inputs}
    code, message = str(values["code"]), str(values["message"])
    return Failed(
        NodeError(code=code, message=message, retryable=call.config.get("retryable") is True)
    )


def _check_fail(config: dict[str, Any]) -> str | None:
    return first_problem(
        *(
            f"config.{key} must be a text"
            for key in FAIL_DEFAULTS
            if key in config and not (isinstance(config[key], str) and config[key])
        )
    )


FAIL_NODE = NodeType(type_id="core.fail", kind=NodeKind.INSTANT, instant=_fail, check=_check_fail)
