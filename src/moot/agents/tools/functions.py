"""Turn Python functions into tools with @tool. An import registers nothing."""

import asyncio
import inspect
import re
import typing
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar, overload

import msgspec

from moot.agents.tools.toolbox import ToolError, ToolInvocation, UsableTool
from moot.blocking import run_in_thread
from moot.config import user_files
from moot.core.json.schema import SchemaError, check_schema

Function = TypeVar("Function", bound=Callable[..., Any])

GROUP = "moot.tools"
#: the mark of a user's function, and the word for it
NAMES = ("moot_tool", "tool")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
TIMEOUT_S = 60.0
LONGEST_DESCRIPTION = 1000


@overload
def tool(function: Function, /) -> Function: ...


@overload
def tool(
    *,
    name: str | None = None,
    dangerous: bool = False,
    idempotent: bool = False,
    timeout: float | None = None,
) -> Callable[[Function], Function]: ...


def tool(
    function: Any = None,
    /,
    *,
    name: str | None = None,
    dangerous: bool = False,
    idempotent: bool = False,
    timeout: float | None = None,
) -> Any:
    """Make a function a tool, with its parameters and its first paragraph as description.

    ``dangerous``: a person must allow each call. ``idempotent``: the host may call it again when a
    crash left the outcome unknown. ``timeout`` is in seconds. Raise ValueError naming a parameter
    that JSON cannot express."""

    def decorate(decorated: Function) -> Function:
        tool_name = name or decorated.__name__
        if not NAME.fullmatch(tool_name):
            raise ValueError(f"'{tool_name}' is no name of a tool: use letters, digits, _ and -.")
        if timeout is not None and not timeout > 0:
            raise ValueError(f"Tool '{tool_name}': timeout must be more than 0 seconds.")
        hints = _hints(tool_name, decorated)
        decorated.moot_tool = UsableTool(  # type: ignore[attr-defined]
            name=tool_name,
            call=_caller(decorated, hints, timeout or TIMEOUT_S),
            description=first_paragraph(decorated),
            parameters=_parameters_schema(tool_name, decorated, hints),
            dangerous=dangerous,
            idempotent=idempotent,
        )
        return decorated

    return decorate if function is None else decorate(function)


def first_paragraph(function: Callable[..., Any]) -> str:
    text = inspect.getdoc(function) or ""
    return " ".join(text.split("\n\n", 1)[0].split())[:LONGEST_DESCRIPTION]


def _hints(name: str, function: Callable[..., Any]) -> dict[str, object]:
    """Return the type of each parameter. Raise ValueError naming the first without one."""
    try:
        annotations = typing.get_type_hints(function, include_extras=True)
    except NameError as error:
        raise ValueError(f"Tool '{name}': a type is not known: {error}.") from None
    hints = {}
    for parameter in inspect.signature(function).parameters.values():
        where = f"Tool '{name}': parameter '{parameter.name}'"
        if parameter.kind in (
            parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD,
        ):  # fmt: skip
            raise ValueError(f"{where} has no name to fill it by; write it as an ordinary one.")
        if parameter.name not in annotations:
            raise ValueError(f"{where} has no type; write '{parameter.name}: str' or another.")
        hints[parameter.name] = annotations[parameter.name]
        _check_hint(where, hints[parameter.name])
        if parameter.default is not parameter.empty:
            _check_default(where, parameter.default, hints[parameter.name])
    return hints


def _check_hint(where: str, hint: Any) -> None:
    try:
        msgspec.json.schema(hint)
    except (TypeError, ValueError, NameError) as error:
        problem = str(error).splitlines()[0]
        raise ValueError(f"{where}: JSON cannot say {_type_name(hint)}: {problem}") from None


def _check_default(where: str, default: Any, hint: Any) -> None:
    try:
        msgspec.convert(msgspec.to_builtins(default), hint)
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        hint_text = f"; write '{_type_name(hint)} | None'" if default is None else ""
        problem = f"its default {default!r} does not fit: {error}{hint_text}"
        raise ValueError(f"{where}: {problem}") from None


def _type_name(hint: Any) -> str:
    return getattr(hint, "__name__", str(hint))


def _parameters_schema(
    name: str, function: Callable[..., Any], hints: Mapping[str, object]
) -> dict[str, object]:
    types, place = list(hints.values()), "#/$defs/{name}"
    schemas, definitions = msgspec.json.schema_components(types, ref_template=place)
    properties = dict(zip(hints, schemas, strict=True))
    required = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.default is parameter.empty:
            required.append(parameter.name)
        else:
            default = msgspec.to_builtins(parameter.default)
            properties[parameter.name] |= {"default": default}
    schema: dict[str, object] = {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }
    if definitions:
        schema["$defs"] = definitions
    try:
        check_schema(schema)
    except SchemaError as error:
        raise ValueError(f"Tool '{name}': its parameters cannot be checked: {error}") from None
    return schema


def _caller(function: Callable[..., Any], hints: Mapping[str, object], seconds: float) -> Any:
    async def call(arguments: Mapping[str, object], _: ToolInvocation) -> Any:
        try:
            converted = {key: msgspec.convert(arguments[key], hints[key]) for key in arguments}
        except msgspec.ValidationError as error:
            raise ToolError("validation_error", f"The arguments do not fit: {error}") from None
        try:
            async with asyncio.timeout(seconds) as limit:
                if inspect.iscoroutinefunction(function):
                    value = await function(**converted)
                else:
                    value = await run_in_thread(function, converted)
        except TimeoutError:
            if not limit.expired():
                raise  # raised by the function itself
            message = f"It took longer than {seconds:g} seconds; it may have happened all the same."
            raise ToolError("tool_timeout", message) from None
        try:
            return msgspec.to_builtins(value, str_keys=True)
        except (TypeError, ValueError, RecursionError) as error:
            raise ToolError("tool_result_not_json", f"JSON cannot say it: {error}") from None

    return call


def tools_from_entry_points() -> dict[str, tuple[UsableTool, str]]:
    """Return the tools of installed packages with their sources. Raise ValueError."""
    tools_by_name: dict[str, tuple[UsableTool, str]] = {}
    for tools, source in user_files.read_entry_points(GROUP, UsableTool, *NAMES):
        add_tools(tools_by_name, tools, source)
    return tools_by_name


def tools_from_path(path: Path) -> dict[str, tuple[UsableTool, str]]:
    """Return the tools of a file, or of all in a folder. Raise ValueError naming the file."""
    if path.is_dir():
        files = sorted(file for file in path.glob("*.py") if not file.name.startswith("_"))
    else:
        files = [path]
    tools_by_name: dict[str, tuple[UsableTool, str]] = {}
    for file in files:
        module = user_files.load_user_module(file)
        add_tools(tools_by_name, user_files.find_definitions(module, UsableTool, *NAMES), str(file))
    return tools_by_name


def add_tools(
    tools_by_name: dict[str, tuple[UsableTool, str]], tools: Iterable[UsableTool], source: str
) -> dict[str, tuple[UsableTool, str]]:
    for tool in tools:
        existing = tools_by_name.get(tool.name)
        if existing is not None and existing[0] is not tool:
            raise ValueError(f"{source}: tool '{tool.name}' is defined in {existing[1]}, too.")
        tools_by_name.setdefault(tool.name, (tool, source))
    return tools_by_name
