"""Operations as methods: of a part of the API, or of one thing in it. One word decides who waits.

``cancel = waits(calls.cancel)`` is a method with the operation's own parameters and answer;
``cancel = its(calls.cancel)`` is the same on a handle, whose id is the first parameter.
"""

import functools
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar

from moot.client.http.operation import Call, Operation
from moot.client.http.senders import AsyncSender, Sender

P = ParamSpec("P")
T = TypeVar("T")


class Part(Protocol):
    """Whatever has a client that waits."""

    @property
    def sender(self) -> Sender: ...


class AsyncPart(Protocol):
    @property
    def sender(self) -> AsyncSender: ...


class Thing(Part, Protocol):
    """A handle: something with an id."""

    @property
    def id(self) -> str: ...


class AsyncThing(AsyncPart, Protocol):
    @property
    def id(self) -> str: ...


class waits(Generic[P, T]):
    def __init__(self, operation: Operation[P, T]) -> None:
        self._operation, self.__doc__ = operation, operation.__doc__

    def __get__(self, part: Part, owner: Any = None) -> Callable[P, T]:
        operation = self._operation

        @functools.wraps(operation)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            return part.sender.send(operation(*args, **kwargs))

        return call


class awaits(Generic[P, T]):
    def __init__(self, operation: Operation[P, T]) -> None:
        self._operation, self.__doc__ = operation, operation.__doc__

    def __get__(self, part: AsyncPart, owner: Any = None) -> Callable[P, Coroutine[Any, Any, T]]:
        operation = self._operation

        @functools.wraps(operation)
        async def call(*args: P.args, **kwargs: P.kwargs) -> T:
            return await part.sender.send(operation(*args, **kwargs))

        return call


class its(Generic[P, T]):
    def __init__(self, operation: Callable[Concatenate[str, P], Call[T]]) -> None:
        self._operation, self.__doc__ = operation, operation.__doc__

    def __get__(self, thing: Thing, owner: Any = None) -> Callable[P, T]:
        operation = self._operation

        @functools.wraps(operation)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            return thing.sender.send(operation(thing.id, *args, **kwargs))

        return call


class async_its(Generic[P, T]):
    def __init__(self, operation: Callable[Concatenate[str, P], Call[T]]) -> None:
        self._operation, self.__doc__ = operation, operation.__doc__

    def __get__(self, thing: AsyncThing, owner: Any = None) -> Callable[P, Coroutine[Any, Any, T]]:
        operation = self._operation

        @functools.wraps(operation)
        async def call(*args: P.args, **kwargs: P.kwargs) -> T:
            return await thing.sender.send(operation(thing.id, *args, **kwargs))

        return call


class Of:
    """A part of a client that waits."""

    def __init__(self, sender: Sender) -> None:
        self.sender = sender


class AsyncOf:
    """A part of a client for asyncio."""

    def __init__(self, sender: AsyncSender) -> None:
        self.sender = sender
