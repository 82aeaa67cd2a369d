"""A request, described once: method, path, what is sent, what the answer is read as.

Who sends it, waiting or not, knows nothing about routes.
"""

import enum
import functools
import re
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar
from urllib.parse import quote

import msgspec

from moot.client.errors import BadAnswer

T = TypeVar("T")
P = ParamSpec("P")

#: bytes of an answer that are read into memory
LARGEST_ANSWER = 64 * 1024 * 1024
#: a whole conversation in one file
LARGEST_BUNDLE = 256 * 1024 * 1024


class Again(enum.Enum):
    """When a call may be sent a second time without doing it twice."""

    FREELY = "it only reads"
    KEYED = "under an Idempotency-Key, which every attempt repeats"
    ONCE = "only while it is certain that nobody has got it"


class Sent:
    """What one call adds to its route: words of the path, query, body. None is left out."""

    def __init__(
        self,
        *words: str,
        query: dict[str, Any] | None = None,
        body: Any = None,
        accept: str = "application/json",
        headers: dict[str, str] | None = None,
        seconds: float = 0.0,
    ) -> None:
        self.words, self.accept, self.headers = words, accept, headers or {}
        self.query = {name: _text(value) for name, value in given(**(query or {})).items()}
        self.body = body if isinstance(body, bytes | None) else msgspec.json.encode(body)
        #: how much longer than usual the answer may take
        self.seconds = seconds


class Call(Generic[T]):
    """One request, ready to be sent."""

    def __init__(self, operation: "Operation[Any, T]", sent: Sent) -> None:
        self.operation, self.sent = operation, sent
        self.method = operation.method
        self.path = operation.filled(sent.words)

    def read(self, body: bytes) -> T:
        """The answer as what it was promised to be. Raises BadAnswer."""
        return self.operation.read(body)


class Operation(Generic[P, T]):
    """One route of the API as a function that makes the call."""

    def __init__(self, make: Callable[P, Sent], route: str, answer: Any, again: Again) -> None:
        functools.update_wrapper(self, make)
        self.method, _, self.path = route.partition(" ")
        self.again = again
        #: there may be nothing to answer with
        self.sometimes = False
        self._make, self._answer = make, answer
        self.largest = LARGEST_BUNDLE if answer is bytes else LARGEST_ANSWER
        self._parts = re.split(r"\{\w+\}", self.path)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Call[T]:
        return Call(self, self._make(*args, **kwargs))

    @property
    def route(self) -> str:
        return f"{self.method} {self.path}"

    def filled(self, words: tuple[str, ...]) -> str:
        """The path with its words, each safe whatever is in it."""
        places = [_word(word) for word in words]
        return "".join(
            part + (places[number] if number < len(places) else "")
            for number, part in enumerate(self._parts)
        )

    def read(self, body: bytes) -> T:
        answer: Any
        if self._answer is None or (self.sometimes and not body):
            answer = None
        elif self._answer is bytes:
            answer = body
        elif self._answer is str:
            answer = body.decode("utf-8", "replace")
        else:
            answer = self._decoded(body)
        found: T = answer
        return found

    def _decoded(self, body: bytes) -> Any:
        try:
            return msgspec.json.decode(body, type=self._answer)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise BadAnswer(f"{self.route}: the answer was not understood: {error}") from None


def operation(
    route: str, answer: type[T], again: Again | None = None
) -> Callable[[Callable[P, Sent]], Operation[P, T]]:
    """``@operation("GET /v1/runs/{run_id}", Snapshot)``; all of them are in ``OPERATIONS``."""
    usual = Again.FREELY if route.startswith("GET ") else Again.KEYED

    def made(make: Callable[P, Sent]) -> Operation[P, T]:
        found: Operation[P, T] = Operation(make, route, answer, again or usual)
        OPERATIONS.append(found)
        return found

    return made


def silent(
    route: str, again: Again = Again.KEYED
) -> Callable[[Callable[P, Sent]], Operation[P, None]]:
    """For routes that answer with nothing."""

    def made(make: Callable[P, Sent]) -> Operation[P, None]:
        found: Operation[P, None] = Operation(make, route, None, again)
        OPERATIONS.append(found)
        return found

    return made


def sometimes(route: str, answer: type[T]) -> Callable[[Callable[P, Sent]], Operation[P, T | None]]:
    """For routes that answer, or have nothing to say."""

    def made(make: Callable[P, Sent]) -> Operation[P, T | None]:
        found: Operation[P, T | None] = Operation(make, route, answer, Again.FREELY)
        found.sometimes = True
        OPERATIONS.append(found)
        return found

    return made


#: every route the client knows
OPERATIONS: list[Operation[..., Any]] = []


def given(**values: Any) -> dict[str, Any]:
    """What was given; None is nothing."""
    return {name: value for name, value in values.items() if value is not None}


def _word(word: str) -> str:
    if not word or word in (".", ".."):
        raise ValueError(f"{word!r} is no name of anything.")
    return quote(word, safe=":~")


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
