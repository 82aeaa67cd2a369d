"""@node: a function of the user's becomes a node type. Nothing is registered on import."""

import inspect
import re
import typing
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec

from moot.blocking import in_thread
from moot.core.workflows.definition import TYPE_ID
from moot.core.workflows.node_types import (
    Call,
    Completed,
    Failed,
    Kind,
    NodeType,
    Outcome,
    copied,
    recordable,
)
from moot.engine.nodes.context import NodeContext
from moot.engine.nodes.inputs import refused

Function = TypeVar("Function", bound=Callable[..., Any])

#: the first word of type ids that only the host defines
RESERVED = ("core", "openwop", "moot")
CONTEXT = "ctx"


def node(
    type_id: str,
    *,
    retries: int | None = None,
    timeout: float | None = None,
    requires: tuple[str, ...] = (),
    pure: bool = False,
) -> Callable[[Function], Function]:
    """Makes a function a node type: parameters are filled from the inputs, then the config.

    A dict it returns is the outputs; any other JSON value is the output ``output``. ``timeout``
    is in seconds. A ``pure`` function must give the same answer for the same arguments, at once.
    """
    check_type_id(type_id)

    def decorate(function: Function) -> Function:
        signature = _Signature(type_id, function, pure)
        found = NodeType(
            type_id=type_id,
            kind=Kind.INSTANT if pure else Kind.ACTIVITY,
            instant=_instant(function, signature) if pure else None,
            activity=None if pure else _activity(function, signature),
            requires=tuple(requires),
            retries=retries,
            timeout_ms=0 if timeout is None else max(1, int(timeout * 1000)),
        )
        function.node_type = found  # type: ignore[attr-defined]
        return function

    return decorate


def check_type_id(type_id: str) -> None:
    """Raises ValueError when a user may not define this type id."""
    if not re.fullmatch(TYPE_ID.strip("^$"), type_id):
        raise ValueError(f"'{type_id}' is not a node type id; write it like 'acme.shout'.")
    if type_id.split(".", 1)[0] in RESERVED:
        raise ValueError(
            f"'{type_id}' cannot be defined here: ids that begin with"
            f" {', '.join(word + '.' for word in RESERVED)} belong to the host."
            " Use your own first word, like 'acme.'."
        )


class _Signature:
    """What a function wants to be called with."""

    def __init__(self, type_id: str, function: Callable[..., Any], pure: bool) -> None:
        self.parameters = dict(inspect.signature(function).parameters)
        self.hints = _hints(function)
        self.rest = next((p.name for p in self.parameters.values() if p.kind is p.VAR_KEYWORD), "")
        self.parameters.pop(self.rest, None)
        self.wants_context = self.parameters.pop(CONTEXT, None) is not None
        for parameter in self.parameters.values():
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
                raise ValueError(
                    f"Node '{type_id}': parameter '{parameter.name}' has no name to fill it by."
                )
        if pure and (self.wants_context or inspect.iscoroutinefunction(function)):
            raise ValueError(f"Node '{type_id}' is pure: it can be neither async nor use 'ctx'.")

    def arguments(self, inputs: dict[str, Any], config: dict[str, Any]) -> dict[str, Any] | Failed:
        given = {**config, **inputs}
        found: dict[str, Any] = {}
        for name, parameter in self.parameters.items():
            if name in given:
                try:
                    found[name] = self._converted(name, given[name])
                except msgspec.ValidationError as error:
                    return refused("validation_error", f"Input '{name}': {error}.", input=name)
            elif parameter.default is parameter.empty:
                return refused("input_unresolved", f"Input '{name}' is missing.", input=name)
        if self.rest:
            known = {*self.parameters, CONTEXT}
            found.update({name: value for name, value in given.items() if name not in known})
        return found

    def _converted(self, name: str, value: Any) -> Any:
        return msgspec.convert(value, self.hints[name]) if name in self.hints else value


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """The annotations values can be checked against; the others are left alone."""
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except NameError:  # an annotation that exists only for type checkers
        return {}
    return {name: hint for name, hint in hints.items() if _checkable(hint)}


def _checkable(hint: Any) -> bool:
    try:
        return not isinstance(msgspec.inspect.type_info(hint), msgspec.inspect.CustomType)
    except TypeError:
        return False


def _instant(function: Callable[..., Any], signature: _Signature) -> Callable[[Call], Outcome]:
    def instant(call: Call) -> Outcome:
        arguments = signature.arguments(copied(call.inputs), copied(call.config))
        if isinstance(arguments, Failed):
            return arguments
        return recordable(outcome_of(function(**arguments)))

    return instant


def _activity(
    function: Callable[..., Any], signature: _Signature
) -> Callable[[NodeContext], Awaitable[Outcome]]:
    async def activity(ctx: NodeContext) -> Outcome:
        arguments = signature.arguments(ctx.inputs, ctx.config)
        if isinstance(arguments, Failed):
            return arguments
        if signature.wants_context:
            arguments[CONTEXT] = ctx
        return outcome_of(await _called(function, arguments))

    return activity


async def _called(function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    if inspect.iscoroutinefunction(function):
        return await function(**arguments)
    return await in_thread(function, arguments)


def outcome_of(value: Any) -> Outcome:
    """What a function's return value means."""
    if isinstance(value, (Completed, Failed)):
        return value
    if value is None:
        return Completed()
    try:
        plain = msgspec.to_builtins(value, str_keys=True)
    except (TypeError, ValueError, RecursionError) as error:
        return refused("output_not_json", f"The node returned what JSON cannot say: {error}")
    return Completed(plain if isinstance(plain, dict) else {"output": plain})
