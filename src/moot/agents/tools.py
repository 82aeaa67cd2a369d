"""Tools in an agent's hands: only those it was given, each call recorded before it is used."""

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from moot.agents.desk import Desk
from moot.agents.fencing import fenced
from moot.agents.manifest import Agent
from moot.agents.models.protocol import Message, Tool, ToolCall
from moot.core import schemas
from moot.core.canonical import canonical
from moot.core.events import NewEvent
from moot.core.outcomes import copied, raised

MOST_RESULT = 16_000


class Usable(Struct, frozen=True, kw_only=True):
    """A tool that can be used here. ``call`` gets the arguments and the name of this very call."""

    name: str
    call: Callable[[dict[str, Any], str], Awaitable[Any]]
    description: str = ""
    parameters: dict[str, Any] = msgspec.field(default_factory=lambda: {"type": "object"})
    #: a person must agree to each call
    dangerous: bool = False
    #: may be made again when a crash left it unknown whether it was
    idempotent: bool = False
    #: native, http or mcp
    transport: str = "native"


class Toolbox:
    """What one agent may use. Rights come from the agent's own definition, never with a request."""

    def __init__(self, tools: Mapping[str, Usable]) -> None:
        self._usable = dict(tools)
        self.tools = tuple(
            Tool(name=tool.name, description=tool.description or None, parameters=tool.parameters)
            for tool in self._usable.values()
        )

    async def use(self, call: ToolCall, agent: Agent, desk: Desk) -> Message:
        """The result as the model reads it. Nothing a model asks for makes the turn fail."""
        tool = self._usable.get(call.name)
        if tool is None:
            return await self._forbidden(call, agent, desk)
        arguments, problem = _arguments(call, tool)
        if problem is not None:
            return _message(call, {"error": {"code": "validation_error", "message": problem}})
        if tool.dangerous and not await desk.agreed(agent.agent_id, tool.name, arguments):
            error = {"code": "not_approved", "message": "A person said no."}
            return _message(call, {"error": error})
        try:
            outcome = await desk.effect(
                f"tool:{tool.name}",
                lambda name: _made(tool, arguments, name, call, agent, desk),
                idempotent=tool.idempotent,
            )
        except Exception as error:
            outcome = {"error": raised(error).as_payload()}
        return _message(call, outcome)

    async def _forbidden(self, call: ToolCall, agent: Agent, desk: Desk) -> Message:
        error = {"code": "forbidden", "message": f"You may not use a tool '{call.name[:100]}'."}
        called = _called(call, agent, {})
        returned = {**_names(call, agent), "status": "forbidden", "error": error}
        await desk.report(called, NewEvent("agent.toolReturned", returned))
        return _message(call, {"error": error})


class NoTools:
    """A host that has none."""

    def for_agent(self, agent: Agent) -> Toolbox:
        return Toolbox({})


def _arguments(call: ToolCall, tool: Usable) -> tuple[dict[str, Any], str | None]:
    try:
        found = msgspec.json.decode(call.arguments or "{}")
    except (msgspec.DecodeError, RecursionError) as error:
        return {}, f"The arguments are not JSON: {error}"
    if not isinstance(found, dict):
        return {}, "The arguments must be an object."
    problems = schemas.problems(tool.parameters, found)
    return found, problems[0] if problems else None


async def _made(
    tool: Usable, arguments: dict[str, Any], name: str, call: ToolCall, agent: Agent, desk: Desk
) -> Any:
    """Made once: the call is recorded, then it happens, then its result is recorded."""
    began = desk.now()
    await desk.recorded(_called(call, agent, arguments, tool.transport))
    said: dict[str, Any] = {**_names(call, agent)}
    try:
        result = copied(await tool.call(arguments, name))
    except Exception as error:
        failure = raised(error).as_payload()
        said |= {"status": "error", "error": failure}
        outcome: dict[str, Any] = {"error": failure}
    else:
        said |= {"status": "ok", "outcome": result}
        outcome = {"result": result}
    said["durationMs"] = max(0, desk.now() - began)
    await desk.report(NewEvent("agent.toolReturned", said))
    return outcome


def _names(call: ToolCall, agent: Agent) -> dict[str, Any]:
    return {
        "agentId": agent.agent_id,
        "toolName": call.name,
        "toolId": call.name,
        "callId": call.id,
    }


def _called(
    call: ToolCall, agent: Agent, arguments: dict[str, Any], transport: str = "native"
) -> NewEvent:
    payload = {
        **_names(call, agent),
        "inputs": arguments,
        "argsHash": hashlib.sha256(canonical(arguments)).hexdigest(),
        "transport": transport,
    }
    return NewEvent("agent.toolCalled", payload)


def _message(call: ToolCall, outcome: Any) -> Message:
    """What a tool gave back is data of others, like a turn."""
    text, _ = fenced(outcome)
    return Message(role="tool", content=text[:MOST_RESULT], tool_call_id=call.id, name=call.name)
