"""The tools of one agent. Each call is recorded before its result is used."""

import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import replace

from moot.agents.definitions.manifest import Agent
from moot.agents.invocation.context import AgentContext, OpenToolCall
from moot.agents.models.protocol import ModelMessage, ModelTool, ModelToolCall
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


class ToolFailure(Struct, frozen=True, omit_defaults=True):
    """The reason why a call has no result, as the model reads it."""

    code: str
    message: str
    details: dict[str, object] = {}


class ToolOutcome(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A recorded outcome: a result or a failure."""

    result: object = UNSET
    error: ToolFailure | None = None
    duration_ms: int | None = None


class ToolError(Exception):
    """A failed tool call. It becomes the result that the model reads; the turn continues."""

    def __init__(self, code: str, message: str, **details: Any) -> None:
        super().__init__(message)
        self.code, self.message, self.details = code, message, details

    def as_failure(self) -> ToolFailure:
        return ToolFailure(self.code, self.message[:2000], self.details)


class UsableTool(Struct, frozen=True, kw_only=True):
    """A tool that can be called. ``call`` gets the arguments and the invocation."""

    name: str
    call: Callable[[dict[str, object], ToolInvocation], Awaitable[Any]]
    description: str = ""
    parameters: dict[str, object] = msgspec.field(default_factory=lambda: {"type": "object"})
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
    """The tools of one agent for one piece of work, from its definition, not from a request."""

    def __init__(
        self, tools: Mapping[str, UsableTool], find_unlisted: FindUnlisted = lambda _: None
    ) -> None:
        self._find_unlisted = find_unlisted
        self._usable: dict[str, UsableTool] = {}
        self._uses = 0
        for tool in tools.values():
            model_name = model_tool_name(tool.name)
            if model_name in self._usable:
                model_name = f"{model_name[:55]}_{_short_hash(tool.name)}"
            self._usable[model_name] = tool
        self.tools = tuple(
            ModelTool(
                name=model_name, description=tool.description or None, parameters=tool.parameters
            )
            for model_name, tool in self._usable.items()
        )

    def only(self, names: list[str] | None) -> "Toolbox":
        if names is None:
            return self
        usable = self._usable.values()
        allowed = {tool.name: tool for tool in usable if is_tool_allowed(names, tool.name)}

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
            failure = ToolFailure("rate_limited", f"No more than {MOST_USES} calls a turn.")
            return _message(call, ToolOutcome(error=failure), names)[0]
        needs_consent = tool is not None and tool.dangerous and problem is None
        name = call.name if tool is None else tool.name
        if needs_consent and not await context.ask_permission(agent.agent_id, name, arguments):
            problem = ToolFailure("forbidden", "A person was asked, and said no.")
        if tool is None or problem is not None:
            return await _record_refused_call(call, tool, arguments, problem, context)
        open_call = await context.tool_called(tool.name, arguments, tool.transport)
        outcome = await _recorded_outcome(f"tool:{call.name}", tool, arguments, context)
        message, flags = _message(call, outcome, names)
        if outcome.error is not None:
            await _record_failure(open_call, outcome.error, outcome.duration_ms, flags)
        else:
            await open_call.returned(outcome.result, outcome.duration_ms, flags)
        return message


def is_tool_allowed(references: list[str], name: str) -> bool:
    """Return whether one of the references covers the tool."""
    return any(
        reference == name or (reference.startswith("mcp:") and fnmatchcase(name, reference))
        for reference in references
    )


def _parse_arguments(
    call: ModelToolCall, tool: UsableTool | None
) -> tuple[dict[str, object], ToolFailure | None]:
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


def _invalid(message: str) -> ToolFailure:
    return ToolFailure("validation_error", message)


async def _record_refused_call(
    call: ModelToolCall,
    tool: UsableTool | None,
    arguments: Mapping[str, object],
    problem: ToolFailure | None,
    context: AgentContext,
) -> ModelMessage:
    name = tool.name if tool is not None else call.name[:200] or "?"
    if tool is None or problem is None:
        problem = ToolFailure("forbidden", f"You may not use a tool '{name[:100]}'.")
    open_call = await context.tool_called(name, arguments, tool.transport if tool else "native")
    await _record_failure(open_call, problem)
    return _message(call, ToolOutcome(error=problem))[0]


async def _recorded_outcome(
    key: str, tool: UsableTool, arguments: dict[str, object], context: AgentContext
) -> ToolOutcome:
    """Return the recorded outcome, or call the tool and record it."""
    try:
        recorded = await context.effect(
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
        return ToolOutcome(error=ToolFailure(error.code, message))
    return msgspec.convert(recorded, ToolOutcome)


async def _call_tool(
    tool: UsableTool, arguments: dict[str, object], name: str, context: AgentContext
) -> dict[str, object]:
    """Call the tool, and return its result or its failure to record."""
    began = context.now()
    try:
        value = copy_json(await tool.call(arguments, ToolInvocation(name, context.trace(name))))
        size = len(msgspec.json.encode(value))
        if size > LARGEST:
            message = f"It gave {size} bytes; a tool may give {LARGEST}."
            raise ToolError("tool_result_too_large", message)
        outcome = ToolOutcome(value)
    except ToolError as error:
        outcome = ToolOutcome(error=error.as_failure())
    except (Exception, SystemExit) as error:
        message = f"{type(error).__name__}: {error}".encode(errors="backslashreplace").decode()
        outcome = ToolOutcome(error=ToolError("tool_failed", message).as_failure())
    recorded: dict[str, object] = msgspec.to_builtins(outcome)
    return {**recorded, "durationMs": max(0, context.now() - began)}


async def _record_failure(
    open_call: OpenToolCall,
    failure: ToolFailure,
    duration_ms: int | None = None,
    flags: Sequence[str] = (),
) -> None:
    own = ("code", "message", "duration_ms", "flags")
    details = {key: value for key, value in failure.details.items() if key not in own}
    await open_call.failed(failure.code, failure.message, duration_ms, flags, **details)


def _message(
    call: ModelToolCall, outcome: ToolOutcome, names: tuple[str, ...] = ()
) -> tuple[ModelMessage, list[str]]:
    """Return the result as a message, fenced like a turn, and the flags found in it."""
    content = msgspec.to_builtins(replace(outcome, duration_ms=None))
    text, flags = fence_content(content, names)
    return ModelMessage(role="tool", content=text, tool_call_id=call.id, name=call.name), flags
