"""Turn operations into methods of resources and handles.

``cancel = client_method(runs.cancel_run)`` is a method with the operation's parameters and answer.
``cancel = handle_method(runs.cancel_run)`` is the same on a handle, whose id is the first
parameter. With a blocking sender they return the answer, with one for asyncio a coroutine.
"""

import functools
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from moot.client.http.operation import Operation, PreparedCall

if TYPE_CHECKING:
    from moot.client.http.async_sender import AsyncSender
    from moot.client.http.sender import Sender

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S", bound="Sender | AsyncSender")


class Resource(Generic[S]):
    """A group of operations, such as all those on runs."""

    def __init__(self, sender: S) -> None:
        self.sender = sender


class Handle(Resource[S]):
    """An object that represents one run or thread."""

    @property
    def id(self) -> str:
        raise NotImplementedError


class client_method(Generic[P, T]):
    """A method of a resource."""

    def __init__(self, operation: Operation[P, T]) -> None:
        self._operation, self.__doc__ = operation, operation.__doc__

    @overload
    def __get__(self, resource: "Resource[Sender]", owner: Any = None) -> Callable[P, T]: ...

    @overload
    def __get__(
        self, resource: "Resource[AsyncSender]", owner: Any = None
    ) -> Callable[P, Coroutine[Any, Any, T]]: ...

    def __get__(self, resource: Resource[Any], owner: Any = None) -> Any:
        operation = self._operation

        @functools.wraps(operation)
        def call(*args: P.args, **kwargs: P.kwargs) -> Any:
            return resource.sender.send(operation(*args, **kwargs))

        return call


class handle_method(Generic[P, T]):
    """A method of a handle."""

    def __init__(self, operation: Callable[Concatenate[str, P], PreparedCall[T]]) -> None:
        self._operation, self.__doc__ = operation, operation.__doc__

    @overload
    def __get__(self, handle: "Handle[Sender]", owner: Any = None) -> Callable[P, T]: ...

    @overload
    def __get__(
        self, handle: "Handle[AsyncSender]", owner: Any = None
    ) -> Callable[P, Coroutine[Any, Any, T]]: ...

    def __get__(self, handle: Handle[Any], owner: Any = None) -> Any:
        operation = self._operation

        @functools.wraps(operation)
        def call(*args: P.args, **kwargs: P.kwargs) -> Any:
            return handle.sender.send(operation(handle.id, *args, **kwargs))

        return call
