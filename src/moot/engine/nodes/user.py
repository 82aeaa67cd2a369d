"""The decorator ``@node``, which makes a user's function a node type.

Nothing is registered on import.
"""

import inspect
import re
import typing
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import msgspec

from moot.blocking import run_in_thread
from moot.core.workflows.node_types import (
    Completed,
    Failed,
    NodeCall,
    NodeKind,
    NodeType,
    Outcome,
    copy_json,
    recordable_outcome,
)
from moot.core.workflows.schema import TYPE_ID
from moot.engine.nodes.context import NodeContext
from moot.engine.nodes.inputs import permanent_failure

Function = TypeVar("Function", bound=Callable[..., Any])

#: first words of type ids that only the host may define
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
    """Make a function a node type. Its parameters are filled from the inputs, then the config.

    A returned dict is the outputs; any other JSON value is the output ``output``. ``timeout`` is
    in seconds. A ``pure`` function must return the same answer for the same arguments, at once.
    """
    check_type_id(type_id)

    def decorate(function: Function) -> Function:
        signature = _Signature(type_id, function, pure)
        node_type = NodeType(
            type_id=type_id,
            kind=NodeKind.INSTANT if pure else NodeKind.ACTIVITY,
            instant=_instant(function, signature) if pure else None,
            activity=None if pure else _activity(function, signature),
            requires=tuple(requires),
            retries=retries,
            timeout_ms=0 if timeout is None else max(1, int(timeout * 1000)),
        )
        function.node_type = node_type  # type: ignore[attr-defined]
        return function

    return decorate


def check_type_id(type_id: str) -> None:
    """Raise ValueError when a user may not define this type id."""
    if not re.fullmatch(TYPE_ID.strip("^$"), type_id):
        raise ValueError(f"'{type_id}' is not a node type id; write it like 'acme.shout'.")
    if type_id.split(".", 1)[0] in RESERVED:
        raise ValueError(
            f"'{type_id}' cannot be defined here: ids that begin with"
            f" {', '.join(word + '.' for word in RESERVED)} belong to the host."
            " Use your own first word, like 'acme.'."
        )


class _Signature:
    def __init__(self, type_id: str, function: Callable[..., Any], pure: bool) -> None:
        self.parameters = dict(inspect.signature(function).parameters)
        self.hints = _hints(function)
        self.rest = next((p.name for p in self.parameters.values() if p.kind is p.VAR_KEYWORD), "")
        self.parameters.pop(self.rest, None)
        self.wants_context = self.parameters.pop(CONTEXT, None) is not None
        for parameter in self.parameters.values():
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
                problem = f"parameter '{parameter.name}' has no name to fill it by"
                raise ValueError(f"Node '{type_id}': {problem}.")
        if pure and (self.wants_context or inspect.iscoroutinefunction(function)):
            raise ValueError(f"Node '{type_id}' is pure: it can be neither async nor use 'ctx'.")

    def arguments(
        self, inputs: Mapping[str, object], config: Mapping[str, object]
    ) -> dict[str, object] | Failed:
        values = {**config, **inputs}
        arguments: dict[str, object] = {}
        for name, parameter in self.parameters.items():
            if name in values:
                try:
                    arguments[name] = self._converted(name, values[name])
                except msgspec.ValidationError as error:
                    message = f"Input '{name}': {error}."
                    return permanent_failure("validation_error", message, input=name)
            elif parameter.default is parameter.empty:
                message = f"Input '{name}' is missing."
                return permanent_failure("input_unresolved", message, input=name)
        if self.rest:
            rest = [name for name in values if name not in (*self.parameters, CONTEXT)]
            arguments.update({name: values[name] for name in rest})
        return arguments

    def _converted(self, name: str, value: Any) -> Any:
        return msgspec.convert(value, self.hints[name]) if name in self.hints else value


def _hints(function: Callable[..., Any]) -> dict[str, object]:
    """Return the annotations that values can be checked against."""
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except NameError:  # an annotation for type checkers only
        return {}
    return {name: hint for name, hint in hints.items() if _is_checkable(hint)}


def _is_checkable(hint: Any) -> bool:
    try:
        return not isinstance(msgspec.inspect.type_info(hint), msgspec.inspect.CustomType)
    except TypeError:
        return False


def _instant(function: Callable[..., Any], signature: _Signature) -> Callable[[NodeCall], Outcome]:
    def instant(call: NodeCall) -> Outcome:
        arguments = signature.arguments(copy_json(call.inputs), copy_json(call.config))
        if isinstance(arguments, Failed):
            return arguments
        return recordable_outcome(outcome_from_value(function(**arguments)))

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
        return outcome_from_value(await _call_function(function, arguments))

    return activity


async def _call_function(function: Callable[..., Any], arguments: dict[str, object]) -> Any:
    if inspect.iscoroutinefunction(function):
        return await function(**arguments)
    return await run_in_thread(function, arguments)


def outcome_from_value(value: Any) -> Outcome:
    if isinstance(value, (Completed, Failed)):
        return value
    if value is None:
        return Completed()
    try:
        plain = msgspec.to_builtins(value, str_keys=True)
    except (TypeError, ValueError, RecursionError) as error:
        message = f"The node returned what JSON cannot say: {error}"
        return permanent_failure("output_not_json", message)
    return Completed(plain if isinstance(plain, dict) else {"output": plain})
