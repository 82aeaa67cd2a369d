"""@tool: a function of the user's becomes a tool. Nothing is registered on import."""

import asyncio
import inspect
import re
import typing
from collections.abc import Callable, Iterable
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, overload

import msgspec

from moot.agents.tools.errors import ToolError
from moot.agents.tools.toolbox import Errand, Usable
from moot.blocking import in_thread
from moot.config import user_files
from moot.core.json.schema import SchemaError, check

Function = TypeVar("Function", bound=Callable[..., Any])

GROUP = "moot.tools"
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
    """Makes a function a tool: its parameters are the tool's, its first paragraph describes it.

    ``dangerous``: a person agrees to each call first. ``idempotent``: it may be called again when
    a crash left it unknown whether it was. ``timeout`` is in seconds. Raises ValueError naming the
    parameter that no model could fill in.
    """

    def decorate(found: Function) -> Function:
        called = name or found.__name__
        if not NAME.fullmatch(called):
            raise ValueError(f"'{called}' is no name of a tool: use letters, digits, _ and -.")
        if timeout is not None and not timeout > 0:
            raise ValueError(f"Tool '{called}': timeout must be more than 0 seconds.")
        hints = _hints(called, found)
        found.moot_tool = Usable(  # type: ignore[attr-defined]
            name=called,
            call=_caller(found, hints, timeout or TIMEOUT_S),
            description=first_paragraph(found),
            parameters=_schema(called, found, hints),
            dangerous=dangerous,
            idempotent=idempotent,
        )
        return found

    return decorate if function is None else decorate(function)


def first_paragraph(function: Callable[..., Any]) -> str:
    text = inspect.getdoc(function) or ""
    return " ".join(text.split("\n\n", 1)[0].split())[:LONGEST_DESCRIPTION]


def _hints(name: str, function: Callable[..., Any]) -> dict[str, Any]:
    """Parameter -> its type. Raises ValueError naming the first that has none."""
    try:
        found = typing.get_type_hints(function, include_extras=True)
    except NameError as error:
        raise ValueError(f"Tool '{name}': a type is not known: {error}.") from None
    hints = {}
    for parameter in inspect.signature(function).parameters.values():
        where = f"Tool '{name}': parameter '{parameter.name}'"
        if parameter.kind in (
            parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD,
        ):  # fmt: skip
            raise ValueError(f"{where} has no name to fill it by; write it as an ordinary one.")
        if parameter.name not in found:
            raise ValueError(f"{where} has no type; write '{parameter.name}: str' or another.")
        hints[parameter.name] = found[parameter.name]
        _check_hint(where, hints[parameter.name])
        if parameter.default is not parameter.empty:
            _check_default(where, parameter.default, hints[parameter.name])
    return hints


def _check_hint(where: str, hint: Any) -> None:
    try:
        msgspec.json.schema(hint)
    except (TypeError, ValueError, NameError) as error:
        said = str(error).splitlines()[0]
        raise ValueError(f"{where}: JSON cannot say {_shown(hint)}: {said}") from None


def _check_default(where: str, default: Any, hint: Any) -> None:
    try:
        msgspec.convert(msgspec.to_builtins(default), hint)
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        hope = f"; write '{_shown(hint)} | None'" if default is None else ""
        raise ValueError(f"{where}: its default {default!r} does not fit: {error}{hope}") from None


def _shown(hint: Any) -> str:
    return getattr(hint, "__name__", str(hint))


def _schema(name: str, function: Callable[..., Any], hints: dict[str, Any]) -> dict[str, Any]:
    found, parts = msgspec.json.schema_components(
        list(hints.values()), ref_template="#/$defs/{name}"
    )
    schema: dict[str, Any] = {"type": "object", "properties": dict(zip(hints, found, strict=True))}
    required = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.default is parameter.empty:
            required.append(parameter.name)
        else:
            default = msgspec.to_builtins(parameter.default)
            schema["properties"][parameter.name] |= {"default": default}
    schema |= {"required": required, "additionalProperties": False}
    if parts:
        schema["$defs"] = parts
    try:
        check(schema)
    except SchemaError as error:
        raise ValueError(f"Tool '{name}': its parameters cannot be checked: {error}") from None
    return schema


def _caller(function: Callable[..., Any], hints: dict[str, Any], seconds: float) -> Any:
    async def call(arguments: dict[str, Any], _: Errand) -> Any:
        try:
            given = {key: msgspec.convert(arguments[key], hints[key]) for key in arguments}
        except msgspec.ValidationError as error:
            raise ToolError("validation_error", f"The arguments do not fit: {error}") from None
        try:
            async with asyncio.timeout(seconds) as limit:
                if inspect.iscoroutinefunction(function):
                    value = await function(**given)
                else:
                    value = await in_thread(function, given)
        except TimeoutError:
            if not limit.expired():
                raise  # the function's own
            said = f"It took longer than {seconds:g} seconds; it may have happened all the same."
            raise ToolError("tool_timeout", said) from None
        try:
            return msgspec.to_builtins(value, str_keys=True)
        except (TypeError, ValueError, RecursionError) as error:
            raise ToolError("tool_result_not_json", f"JSON cannot say it: {error}") from None

    return call


def from_entry_points() -> dict[str, tuple[Usable, str]]:
    """Tools of installed packages, each with where it is from. Raises ValueError."""
    found: dict[str, tuple[Usable, str]] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        source = f"entry point '{entry.name}' ({entry.value})"
        try:
            tools = _tools_in(entry.load())
        except (Exception, SystemExit) as error:
            said = f"{type(error).__name__}: {error}"
            raise ValueError(f"The tools of {source} cannot be loaded: {said}") from error
        add(found, tools, source)
    return found


def from_path(path: Path) -> dict[str, tuple[Usable, str]]:
    """Tools of a Python file, or of all in a folder. Raises ValueError naming the file."""
    if path.is_dir():
        files = sorted(file for file in path.glob("*.py") if not file.name.startswith("_"))
    else:
        files = [path]
    found: dict[str, tuple[Usable, str]] = {}
    for file in files:
        add(found, _tools_in(user_files.module(file)), str(file))
    return found


def add(
    found: dict[str, tuple[Usable, str]], tools: Iterable[Usable], source: str
) -> dict[str, tuple[Usable, str]]:
    for each in tools:
        known = found.get(each.name)
        if known is not None and known[0] is not each:
            raise ValueError(f"{source}: tool '{each.name}' is defined in {known[1]}, too.")
        found.setdefault(each.name, (each, source))
    return found


def _tools_in(found: Any) -> list[Usable]:
    if isinstance(found, Usable):
        return [found]
    if isinstance(found, ModuleType):
        marks = (getattr(value, "moot_tool", None) for value in user_files.own(found))
        return list({id(mark): mark for mark in marks if isinstance(mark, Usable)}.values())
    if isinstance(found, (list, tuple)):
        return [each for one in found for each in _tools_in(one)]
    if isinstance(marked := getattr(found, "moot_tool", None), Usable):
        return [marked]
    raise TypeError(f"{found!r} is no tool, no list of them and no module")
