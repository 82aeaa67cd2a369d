"""Turn operations into methods of resources and handles.

``cancel = client_method(runs.cancel_run)`` is a method with the operation's parameters and answer.
``cancel = handle_method(runs.cancel_run)`` is the same on a handle, whose id is the first
parameter. With a blocking sender they return the answer, with one for asyncio a coroutine.
"""

import functools
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, overload

from moot.client.http.operation import Operation, PreparedCall

if TYPE_CHECKING:
    from moot.client.http.async_sender import AsyncSender
    from moot.client.http.sender import Sender

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S", bound="Sender | AsyncSender")


class HasSender(Protocol):
    """An object with a blocking sender."""

    @property
    def sender(self) -> "Sender": ...


class HasAsyncSender(Protocol):
    """An object with a sender for asyncio."""

    @property
    def sender(self) -> "AsyncSender": ...


class Handle(HasSender, Protocol):
    """An object that represents one run or thread."""

    @property
    def id(self) -> str: ...


class AsyncHandle(HasAsyncSender, Protocol):
    """An object that represents one run or thread, for asyncio."""

    @property
    def id(self) -> str: ...


class client_method(Generic[P, T]):
    """A method of a resource."""

    def __init__(self, operation: Operation[P, T]) -> None:
        self._operation, self.__doc__ = operation, operation.__doc__

    @overload
    def __get__(self, resource: HasSender, owner: Any = None) -> Callable[P, T]: ...

    @overload
    def __get__(
        self, resource: HasAsyncSender, owner: Any = None
    ) -> Callable[P, Coroutine[Any, Any, T]]: ...

    def __get__(self, resource: HasSender | HasAsyncSender, owner: Any = None) -> Any:
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
    def __get__(self, handle: Handle, owner: Any = None) -> Callable[P, T]: ...

    @overload
    def __get__(
        self, handle: AsyncHandle, owner: Any = None
    ) -> Callable[P, Coroutine[Any, Any, T]]: ...

    def __get__(self, handle: Handle | AsyncHandle, owner: Any = None) -> Any:
        operation = self._operation

        @functools.wraps(operation)
        def call(*args: P.args, **kwargs: P.kwargs) -> Any:
            return handle.sender.send(operation(handle.id, *args, **kwargs))

        return call


class Resource(Generic[S]):
    """A group of operations, such as all those on runs."""

    def __init__(self, sender: S) -> None:
        self.sender = sender
