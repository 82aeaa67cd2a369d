"""Turn operations into methods of resources and handles.

``cancel = client_method(runs.cancel_run)`` is a method with the operation's parameters and answer.
``cancel = handle_method(runs.cancel_run)`` is the same on a handle, whose id is the first
parameter. The ``async_`` versions return coroutines.
"""

import functools
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar

from moot.client.http.operation import Operation, PreparedCall
from moot.client.http.senders import AsyncSender, Sender

P = ParamSpec("P")
T = TypeVar("T")


class HasSender(Protocol):
    """An object with a blocking sender."""

    @property
    def sender(self) -> Sender: ...


class HasAsyncSender(Protocol):
    """An object with a sender for asyncio."""

    @property
    def sender(self) -> AsyncSender: ...


class Handle(HasSender, Protocol):
    """An object that represents one run or thread."""

    @property
    def id(self) -> str: ...


class AsyncHandle(HasAsyncSender, Protocol):
    """An object that represents one run or thread, for asyncio."""

    @property
    def id(self) -> str: ...


class client_method(Generic[P, T]):
    """A blocking method of a resource."""

    def __init__(self, operation: Operation[P, T]) -> None:
        self._operation, self.__doc__ = operation, operation.__doc__

    def __get__(self, resource: HasSender, owner: Any = None) -> Callable[P, T]:
        operation = self._operation

        @functools.wraps(operation)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            return resource.sender.send(operation(*args, **kwargs))

        return call


class async_client_method(Generic[P, T]):
    """A coroutine method of a resource."""

    def __init__(self, operation: Operation[P, T]) -> None:
        self._operation, self.__doc__ = operation, operation.__doc__

    def __get__(
        self, resource: HasAsyncSender, owner: Any = None
    ) -> Callable[P, Coroutine[Any, Any, T]]:
        operation = self._operation

        @functools.wraps(operation)
        async def call(*args: P.args, **kwargs: P.kwargs) -> T:
            return await resource.sender.send(operation(*args, **kwargs))

        return call


class handle_method(Generic[P, T]):
    """A blocking method of a handle."""

    def __init__(self, operation: Callable[Concatenate[str, P], PreparedCall[T]]) -> None:
        self._operation, self.__doc__ = operation, operation.__doc__

    def __get__(self, handle: Handle, owner: Any = None) -> Callable[P, T]:
        operation = self._operation

        @functools.wraps(operation)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            return handle.sender.send(operation(handle.id, *args, **kwargs))

        return call


class async_handle_method(Generic[P, T]):
    """A coroutine method of a handle."""

    def __init__(self, operation: Callable[Concatenate[str, P], PreparedCall[T]]) -> None:
        self._operation, self.__doc__ = operation, operation.__doc__

    def __get__(
        self, handle: AsyncHandle, owner: Any = None
    ) -> Callable[P, Coroutine[Any, Any, T]]:
        operation = self._operation

        @functools.wraps(operation)
        async def call(*args: P.args, **kwargs: P.kwargs) -> T:
            return await handle.sender.send(operation(handle.id, *args, **kwargs))

        return call


class Resource:
    """A group of blocking operations, such as all those on runs."""

    def __init__(self, sender: Sender) -> None:
        self.sender = sender


class AsyncResource:
    """A group of operations for asyncio."""

    def __init__(self, sender: AsyncSender) -> None:
        self.sender = sender
