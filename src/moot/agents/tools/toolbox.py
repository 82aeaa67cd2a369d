"""Tools in an agent's hands: only those it was given, each call recorded before it is used."""

import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any

import msgspec
from msgspec import Struct

from moot.agents.definitions.manifest import Agent
from moot.agents.invocation.desk import Desk
from moot.agents.models.protocol import Message, Tool, ToolCall
from moot.agents.prompts.fencing import fenced
from moot.agents.tools.errors import ToolError
from moot.core.errors import Conflict, MootError, Unavailable
from moot.core.json import schema
from moot.core.trace import Trace
from moot.core.workflows.node_types import copied

#: bytes of a result that is kept; a model reads as much of it as of a turn
LARGEST = 262_144
#: of one piece of work: calls of tools that are made
MOST_USES = 60
#: what every provider takes as the name of a tool
LONGEST_NAME = 64


class Errand(Struct, frozen=True):
    """One call of a tool: its name among all calls there are, and where it stands in a trace."""

    name: str
    trace: Trace


class Usable(Struct, frozen=True, kw_only=True):
    """A tool that can be used here. ``call`` gets the arguments and which call this is."""

    name: str
    call: Callable[[dict[str, Any], Errand], Awaitable[Any]]
    description: str = ""
    parameters: dict[str, Any] = msgspec.field(default_factory=lambda: {"type": "object"})
    #: a person must agree to each call
    dangerous: bool = False
    #: may be made again when a crash left it unknown whether it was
    idempotent: bool = False
    #: native, http or mcp
    transport: str = "native"


#: a name that models call -> a tool that cannot be listed now, if it may be used
Later = Callable[[str], Usable | None]


def spoken(name: str) -> str:
    """The name as models say it: ``mcp:files/read`` is ``mcp_files_read`` to them."""
    word = re.sub(r"[^A-Za-z0-9_-]", "_", name)
    return word if len(word) <= LONGEST_NAME else f"{word[:55]}_{_mark(name)}"


def _mark(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:8]


class Toolbox:
    """What one agent may use. Rights come from the agent's own definition, never with a request.

    One piece of work has one toolbox.
    """

    def __init__(self, tools: Mapping[str, Usable], later: Later = lambda _: None) -> None:
        self._later = later
        self._usable: dict[str, Usable] = {}
        self._uses = 0
        for tool in tools.values():
            word = spoken(tool.name)
            self._usable[f"{word[:55]}_{_mark(tool.name)}" if word in self._usable else word] = tool
        self.tools = tuple(
            Tool(name=word, description=tool.description or None, parameters=tool.parameters)
            for word, tool in self._usable.items()
        )

    def only(self, names: list[str] | None) -> "Toolbox":
        """Fewer of them; what is not here cannot be asked for either."""
        if names is None:
            return self
        kept = {tool.name: tool for tool in self._usable.values() if allows(names, tool.name)}

        def later(word: str) -> Usable | None:
            found = self._later(word)
            return found if found is not None and allows(names, found.name) else None

        return Toolbox(kept, later)

    async def use(
        self, call: ToolCall, agent: Agent, desk: Desk, names: tuple[str, ...] = ()
    ) -> Message:
        """The result as the model reads it. Nothing a model asks for makes the turn fail.

        ``names``: who a result could pretend to be."""
        tool = self._usable.get(call.name) or self._later(call.name)
        arguments, problem = _arguments(call, tool)
        self._uses += 1
        if self._uses > MOST_USES:
            error = {"code": "rate_limited", "message": f"No more than {MOST_USES} calls a turn."}
            return _message(call, {"error": error}, names)[0]
        if tool is not None and problem is None and tool.dangerous:
            problem = await _permitted(tool, arguments, agent, desk)
        if tool is None or problem is not None:
            return await _not_made(call, tool, arguments, problem, desk)
        begun = await desk.tool_called(tool.name, arguments, tool.transport)
        outcome = await _outcome(f"tool:{call.name}", tool, arguments, desk)
        took = outcome.pop("durationMs", None)
        message, flags = _message(call, outcome, names)
        if "error" in outcome:
            await begun.failed(**_told(outcome["error"]), duration_ms=took, flags=flags)
        else:
            await begun.returned(outcome["result"], took, flags)
        return message


class NoTools:
    """A host that has none."""

    async def for_agent(self, agent: Agent) -> Toolbox:
        return Toolbox({})


def allows(references: list[str], name: str) -> bool:
    """Whether who has these references may use the tool of this name."""
    return any(
        reference == name or (reference.startswith("mcp:") and fnmatchcase(name, reference))
        for reference in references
    )


def _arguments(call: ToolCall, tool: Usable | None) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """What the model filled in, and the error it is told when that does not fit."""
    try:
        found = msgspec.json.decode(call.arguments or "{}")
    except (msgspec.DecodeError, RecursionError) as error:
        return {}, _invalid(f"The arguments are not JSON: {error}")
    if not isinstance(found, dict):
        return {}, _invalid("The arguments must be an object.")
    if tool is None:
        return found, None
    problems = schema.problems(tool.parameters, found)
    return found, _invalid(problems[0]) if problems else None


def _invalid(message: str) -> dict[str, Any]:
    return {"code": "validation_error", "message": message}


async def _permitted(
    tool: Usable, arguments: dict[str, Any], agent: Agent, desk: Desk
) -> dict[str, Any] | None:
    """The error a model is told when no person agrees."""
    if await desk.agreed(agent.agent_id, tool.name, arguments):
        return None
    return {"code": "forbidden", "message": "A person was asked, and said no."}


async def _not_made(
    call: ToolCall,
    tool: Usable | None,
    arguments: dict[str, Any],
    problem: dict[str, Any] | None,
    desk: Desk,
) -> Message:
    """A call that is on record, and was not made."""
    name = tool.name if tool is not None else call.name[:200] or "?"
    if tool is None:
        problem = {"code": "forbidden", "message": f"You may not use a tool '{name[:100]}'."}
    assert problem is not None
    begun = await desk.tool_called(name, arguments, tool.transport if tool else "native")
    await begun.failed(**_told(problem))
    return _message(call, {"error": problem})[0]


async def _outcome(key: str, tool: Usable, arguments: dict[str, Any], desk: Desk) -> dict[str, Any]:
    """From the record if it is there; else it is made, and recorded."""
    try:
        found: dict[str, Any] = await desk.effect(
            key, lambda name: _made(tool, arguments, name, desk), idempotent=tool.idempotent
        )
    except (Conflict, Unavailable):
        raise  # the work is over, or the disk is: neither is the tool's doing
    except MootError as error:
        said = error.message
        if error.code == "effect_outcome_unknown":
            said = (
                "The host stopped while it was called, and whether it happened is not known. It is"
                " not called again; a person can look there."
            )
        return {"error": {"code": error.code, "message": said}}
    return dict(found)


async def _made(tool: Usable, arguments: dict[str, Any], name: str, desk: Desk) -> dict[str, Any]:
    """What came of it, a failure included: that is what is recorded."""
    began = desk.now()
    try:
        value = copied(await tool.call(arguments, Errand(name, desk.trace(name))))
        size = len(msgspec.json.encode(value))
        if size > LARGEST:
            said = f"It gave {size} bytes; a tool may give {LARGEST}."
            raise ToolError("tool_result_too_large", said)
        outcome: dict[str, Any] = {"result": value}
    except ToolError as error:
        outcome = {"error": error.as_payload()}
    except (Exception, SystemExit) as error:
        said = f"{type(error).__name__}: {error}".encode(errors="backslashreplace").decode()
        outcome = {"error": ToolError("tool_failed", said).as_payload()}
    return {**outcome, "durationMs": max(0, desk.now() - began)}


def _told(error: dict[str, Any]) -> dict[str, Any]:
    """As the log says it."""
    details = error.get("details")
    more = details if isinstance(details, dict) else {}
    more = {key: value for key, value in more.items() if key not in ("duration_ms", "flags")}
    return {**more, "code": str(error["code"]), "message": str(error["message"])}


def _message(
    call: ToolCall, outcome: Any, names: tuple[str, ...] = ()
) -> tuple[Message, list[str]]:
    """What a tool gave back is data of others, like a turn; and what pretended in it."""
    text, flags = fenced(outcome, names)
    return Message(role="tool", content=text, tool_call_id=call.id, name=call.name), flags
