"""The tools of one agent. Each call is recorded before its result is used."""

import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any

import msgspec
from msgspec import Struct

from moot.agents.definitions.manifest import Agent
from moot.agents.invocation.context import AgentContext
from moot.agents.models.protocol import ModelMessage, ModelTool, ModelToolCall
from moot.agents.tools.errors import ToolError
from moot.core.errors import Conflict, MootError, Unavailable
from moot.core.json import schema
from moot.core.text.fencing import fence_content
from moot.core.trace import Trace
from moot.core.workflows.node_types import copy_json

#: the most bytes of a recorded result; a model reads as much of it as of a turn
LARGEST = 262_144
#: the most tool calls of one piece of work
MOST_USES = 60
#: the longest tool name that every provider accepts
LONGEST_NAME = 64


class ToolInvocation(Struct, frozen=True):
    """One call of a tool: its unique name, and its trace context."""

    name: str
    trace: Trace


class UsableTool(Struct, frozen=True, kw_only=True):
    """A tool that can be called. ``call`` gets the arguments and the invocation."""

    name: str
    call: Callable[[dict[str, Any], ToolInvocation], Awaitable[Any]]
    description: str = ""
    parameters: dict[str, Any] = msgspec.field(default_factory=lambda: {"type": "object"})
    #: a person must allow each call
    dangerous: bool = False
    #: may be called again when a crash left the outcome unknown
    idempotent: bool = False
    #: native, http or mcp
    transport: str = "native"


#: the name that a model uses -> an allowed tool that cannot be listed now
FindUnlisted = Callable[[str], UsableTool | None]


def model_tool_name(name: str) -> str:
    """Return the name for models: ``mcp:files/read`` becomes ``mcp_files_read``."""
    word = re.sub(r"[^A-Za-z0-9_-]", "_", name)
    return word if len(word) <= LONGEST_NAME else f"{word[:55]}_{_short_hash(name)}"


def _short_hash(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:8]


class Toolbox:
    """The tools of one agent for one piece of work. They come from its definition, never from a
    request."""

    def __init__(
        self, tools: Mapping[str, UsableTool], find_unlisted: FindUnlisted = lambda _: None
    ) -> None:
        self._find_unlisted = find_unlisted
        self._usable: dict[str, UsableTool] = {}
        self._uses = 0
        for tool in tools.values():
            model_name = model_tool_name(tool.name)
            self._usable[
                f"{model_name[:55]}_{_short_hash(tool.name)}"
                if model_name in self._usable
                else model_name
            ] = tool
        self.tools = tuple(
            ModelTool(
                name=model_name, description=tool.description or None, parameters=tool.parameters
            )
            for model_name, tool in self._usable.items()
        )

    def only(self, names: list[str] | None) -> "Toolbox":
        """Return a toolbox with only these tools."""
        if names is None:
            return self
        allowed = {
            tool.name: tool for tool in self._usable.values() if is_tool_allowed(names, tool.name)
        }

        def find_unlisted(name: str) -> UsableTool | None:
            tool = self._find_unlisted(name)
            return tool if tool is not None and is_tool_allowed(names, tool.name) else None

        return Toolbox(allowed, find_unlisted)

    async def use(
        self, call: ModelToolCall, agent: Agent, context: AgentContext, names: tuple[str, ...] = ()
    ) -> ModelMessage:
        """Call a tool and return its result as a message. No call fails the turn.

        ``names`` are the speakers that a result could imitate."""
        tool = self._usable.get(call.name) or self._find_unlisted(call.name)
        arguments, problem = _parse_arguments(call, tool)
        self._uses += 1
        if self._uses > MOST_USES:
            error = {"code": "rate_limited", "message": f"No more than {MOST_USES} calls a turn."}
            return _message(call, {"error": error}, names)[0]
        if tool is not None and problem is None and tool.dangerous:
            problem = await _ask_permission(tool, arguments, agent, context)
        if tool is None or problem is not None:
            return await _record_refused_call(call, tool, arguments, problem, context)
        open_call = await context.tool_called(tool.name, arguments, tool.transport)
        outcome = await _recorded_outcome(f"tool:{call.name}", tool, arguments, context)
        duration_ms = outcome.pop("durationMs", None)
        message, flags = _message(call, outcome, names)
        if "error" in outcome:
            await open_call.failed(
                **_failure_details(outcome["error"]), duration_ms=duration_ms, flags=flags
            )
        else:
            await open_call.returned(outcome["result"], duration_ms, flags)
        return message


class NoTools:
    """A tool source for a host without tools."""

    async def for_agent(self, agent: Agent) -> Toolbox:
        return Toolbox({})


def is_tool_allowed(references: list[str], name: str) -> bool:
    """Return whether one of the references covers the tool."""
    return any(
        reference == name or (reference.startswith("mcp:") and fnmatchcase(name, reference))
        for reference in references
    )


def _parse_arguments(
    call: ModelToolCall, tool: UsableTool | None
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Parse the arguments of a call, and return the error for the model when they do not fit."""
    try:
        arguments = msgspec.json.decode(call.arguments or "{}")
    except (msgspec.DecodeError, RecursionError) as error:
        return {}, _invalid(f"The arguments are not JSON: {error}")
    if not isinstance(arguments, dict):
        return {}, _invalid("The arguments must be an object.")
    if tool is None:
        return arguments, None
    problems = schema.schema_problems(tool.parameters, arguments)
    return arguments, _invalid(problems[0]) if problems else None


def _invalid(message: str) -> dict[str, Any]:
    return {"code": "validation_error", "message": message}


async def _ask_permission(
    tool: UsableTool, arguments: dict[str, Any], agent: Agent, context: AgentContext
) -> dict[str, Any] | None:
    """Return the error for the model when a person refuses the call."""
    if await context.ask_permission(agent.agent_id, tool.name, arguments):
        return None
    return {"code": "forbidden", "message": "A person was asked, and said no."}


async def _record_refused_call(
    call: ModelToolCall,
    tool: UsableTool | None,
    arguments: dict[str, Any],
    problem: dict[str, Any] | None,
    context: AgentContext,
) -> ModelMessage:
    """Record a call that was not made."""
    name = tool.name if tool is not None else call.name[:200] or "?"
    if tool is None:
        problem = {"code": "forbidden", "message": f"You may not use a tool '{name[:100]}'."}
    assert problem is not None
    open_call = await context.tool_called(name, arguments, tool.transport if tool else "native")
    await open_call.failed(**_failure_details(problem))
    return _message(call, {"error": problem})[0]


async def _recorded_outcome(
    key: str, tool: UsableTool, arguments: dict[str, Any], context: AgentContext
) -> dict[str, Any]:
    """Return the recorded outcome, or call the tool and record it."""
    try:
        outcome: dict[str, Any] = await context.effect(
            key, lambda name: _call_tool(tool, arguments, name, context), idempotent=tool.idempotent
        )
    except (Conflict, Unavailable):
        raise  # the run has ended or the store has failed
    except MootError as error:
        message = error.message
        if error.code == "effect_outcome_unknown":
            message = (
                "The host stopped while it was called, and whether it happened is not known. It is"
                " not called again; a person can look there."
            )
        return {"error": {"code": error.code, "message": message}}
    return dict(outcome)


async def _call_tool(
    tool: UsableTool, arguments: dict[str, Any], name: str, context: AgentContext
) -> dict[str, Any]:
    """Call the tool, and return its result or its failure to record."""
    began = context.now()
    try:
        value = copy_json(await tool.call(arguments, ToolInvocation(name, context.trace(name))))
        size = len(msgspec.json.encode(value))
        if size > LARGEST:
            message = f"It gave {size} bytes; a tool may give {LARGEST}."
            raise ToolError("tool_result_too_large", message)
        outcome: dict[str, Any] = {"result": value}
    except ToolError as error:
        outcome = {"error": error.as_payload()}
    except (Exception, SystemExit) as error:
        message = f"{type(error).__name__}: {error}".encode(errors="backslashreplace").decode()
        outcome = {"error": ToolError("tool_failed", message).as_payload()}
    return {**outcome, "durationMs": max(0, context.now() - began)}


def _failure_details(error: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a failure for the log."""
    details = error.get("details")
    extra = details if isinstance(details, dict) else {}
    extra = {key: value for key, value in extra.items() if key not in ("duration_ms", "flags")}
    return {**extra, "code": str(error["code"]), "message": str(error["message"])}


def _message(
    call: ModelToolCall, outcome: Any, names: tuple[str, ...] = ()
) -> tuple[ModelMessage, list[str]]:
    """Return the result as a message, fenced like a turn, and the flags found in it."""
    text, flags = fence_content(outcome, names)
    return ModelMessage(role="tool", content=text, tool_call_id=call.id, name=call.name), flags
