"""Operations: each describes one route, its request and the type of its answer.

The senders know nothing about routes.
"""

import enum
import functools
import re
from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any, Generic, ParamSpec, TypeVar
from urllib.parse import quote

import msgspec

from moot.client.errors import BadAnswer

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
P = ParamSpec("P")

#: the most bytes of an answer that the client reads into memory
LARGEST_ANSWER = 64 * 1024 * 1024
#: the same for a conversation exported as one file
LARGEST_BUNDLE = 256 * 1024 * 1024


class Retry(enum.Enum):
    """The condition under which the client may repeat a call safely."""

    FREELY = "it only reads"
    KEYED = "under an Idempotency-Key, which every attempt repeats"
    ONCE = "only while no server can have received it"


class RequestParts:
    """The path segments, query, body and headers of one call. None values are left out."""

    def __init__(
        self,
        *segments: str,
        query: Mapping[str, object] | None = None,
        body: object = None,
        accept: str = "application/json",
        headers: Mapping[str, str | None] | None = None,
        seconds: float = 0.0,
    ) -> None:
        self.segments, self.accept = segments, accept
        self.headers = {name: text for name, text in (headers or {}).items() if text is not None}
        self.query = {
            name: str(value).lower() if isinstance(value, bool) else str(value)
            for name, value in (query or {}).items()
            if value is not None
        }
        self.body = body if isinstance(body, bytes | None) else msgspec.json.encode(body)
        #: seconds that the answer may take on top of the usual timeout
        self.seconds = seconds


class PreparedCall(Generic[T_co]):
    """One request, ready to send."""

    def __init__(self, operation: "Operation[Any, T_co]", sent: RequestParts) -> None:
        self.operation, self.sent = operation, sent
        self.method = operation.method
        self.path = operation.fill_path(sent.segments)

    def read(self, body: bytes) -> T_co:
        """Return the decoded answer. Raise BadAnswer when it has another form."""
        return self.operation.read(body)


class Operation(Generic[P, T]):
    """One route of the API, as a function that returns the call."""

    def __init__(
        self, make: Callable[P, RequestParts], route: str, answer: Any, retry: Retry
    ) -> None:
        functools.update_wrapper(self, make)
        self.method, _, self.path = route.partition(" ")
        self.retry = retry
        #: the answer may be empty
        self.is_optional = False
        self._make, self._answer = make, answer
        self.largest = LARGEST_BUNDLE if answer is bytes else LARGEST_ANSWER
        self._literals = re.split(r"\{\w+\}", self.path)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> PreparedCall[T]:
        return PreparedCall(self, self._make(*args, **kwargs))

    @property
    def route(self) -> str:
        return f"{self.method} {self.path}"

    def fill_path(self, segments: tuple[str, ...]) -> str:
        """Return the path with the escaped segments."""
        escaped = [_escape_segment(segment) for segment in segments]
        return "".join(
            literal + (escaped[number] if number < len(escaped) else "")
            for number, literal in enumerate(self._literals)
        )

    def read(self, body: bytes) -> T:
        answer: Any
        if self._answer is NoneType or (self.is_optional and not body):
            answer = None
        elif self._answer is bytes:
            answer = body
        elif self._answer is str:
            answer = body.decode("utf-8", "replace")
        else:
            answer = self._decode(body)
        typed: T = answer
        return typed

    def _decode(self, body: bytes) -> Any:
        try:
            return msgspec.json.decode(body, type=self._answer)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise BadAnswer(f"{self.route}: the answer was not understood: {error}") from None


def operation(
    route: str, answer: type[T], retry: Retry | None = None
) -> Callable[[Callable[P, RequestParts]], Operation[P, T]]:
    """Return a decorator for an operation: ``@operation("GET /v1/runs/{run_id}", Snapshot)``.

    The decorator adds the operation to ``OPERATIONS``. The type of an empty answer is ``NoneType``.
    """
    default = Retry.FREELY if route.startswith("GET ") else Retry.KEYED

    def decorate(make: Callable[P, RequestParts]) -> Operation[P, T]:
        registered: Operation[P, T] = Operation(make, route, answer, retry or default)
        OPERATIONS.append(registered)
        return registered

    return decorate


def operation_with_optional_answer(
    route: str, answer: type[T]
) -> Callable[[Callable[P, RequestParts]], Operation[P, T | None]]:
    """Return a decorator for a route whose answer may be empty."""

    def decorate(make: Callable[P, RequestParts]) -> Operation[P, T | None]:
        registered: Operation[P, T | None] = Operation(make, route, answer, Retry.FREELY)
        registered.is_optional = True
        OPERATIONS.append(registered)
        return registered

    return decorate


#: every route the client knows
OPERATIONS: list[Operation[..., Any]] = []


def without_none(**values: object) -> dict[str, object]:
    """Return the values that are not None."""
    return {name: value for name, value in values.items() if value is not None}


def _escape_segment(segment: str) -> str:
    if not segment or segment in (".", ".."):
        raise ValueError(f"{segment!r} is no name of anything.")
    return quote(segment, safe=":~")
