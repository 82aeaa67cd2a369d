"""What both official SDKs have in common: loading them late, one client, their errors as ours."""

import asyncio
import importlib
import json
import os
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal

import msgspec
from msgspec import Struct

from moot.agents.models.protocol import Message, ModelRequest, Piece
from moot.agents.models.redact import Keys
from moot.agents.models.validation import believed
from moot.clock import Clock
from moot.config.extras import install
from moot.core.errors.models import (
    ModelAnswerInvalid,
    ModelAuth,
    ModelBadRequest,
    ModelDisconnected,
    ModelError,
    ModelNotConfigured,
    ModelRateLimited,
    ModelTimeout,
    ModelUnavailable,
    ModelWithoutSchemas,
)
from moot.core.secrets import MASK

CONNECT_S = 10.0
#: the longest silence within an answer; the limits of a call are kept by ``Retrying``
SILENCE_S = 600.0
LONGEST_WAIT_S = 3600.0
LONGEST_COMPLAINT = 500
#: of an error of a provider, what is looked at
LONGEST_ERROR = 1_000_000
#: bytes of one answer as they come over the wire, and of one line of it
MOST_BYTES = 64 * 1024 * 1024
LONGEST_LINE = 8 * 1024 * 1024

#: providers that are out of money answer 429, which no waiting cures
OUT_OF_MONEY = ("insufficient_quota", "billing_error", "billing_hard_limit_reached")

JSON_ONLY = (
    "Answer with one JSON value and nothing else: no Markdown, no explanation."
    " It must fit this JSON Schema:\n"
)


class Endpoint(Struct, frozen=True, kw_only=True):
    """Where a provider is and how it is spoken to. The key is never shown."""

    name: str
    url: str
    key: str | None = None
    key_env: str | None = None
    #: whether the provider is trusted to keep to a schema, or the prompt asks for it
    json: Literal["native", "prompt"] = "native"
    #: whether speakers go in the field made for it, or in an envelope around their words
    names: Literal["field", "envelope"] = "envelope"

    def __repr__(self) -> str:
        return f"Endpoint({self.name!r}, {self.url!r})"


class Connection:
    """One SDK, loaded when the first call is made, and its one client."""

    def __init__(self, package: str, client: str, endpoint: Endpoint, clock: Clock) -> None:
        self.endpoint = endpoint
        self._package, self._class, self._clock = package, client, clock
        self._keys = Keys([endpoint.key])
        self._client: Any = None

    async def client(self) -> Any:
        """Made at the first call, beside the loop: importing an SDK takes seconds."""
        sdk = await asyncio.to_thread(load, self._package)
        if self._client is None:
            http = importlib.import_module("httpx2")
            self._client = getattr(sdk, self._class)(
                api_key=self.endpoint.key or "none",
                base_url=self.endpoint.url,
                max_retries=0,  # ours are seen and counted
                http_client=http.AsyncClient(
                    timeout=http.Timeout(SILENCE_S, connect=CONNECT_S),
                    follow_redirects=False,  # the key is for this address and no other
                    event_hooks={"response": [_bounded(http)]},
                ),
            )
        return self._client

    async def aclose(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def guarded(self, pieces: AsyncGenerator[Piece, None]) -> AsyncGenerator[Piece, None]:
        """The pieces; whatever the SDK or its HTTP client raises comes out as a ModelError."""
        begun = False
        async with aclosing(believed(pieces, self._keys)) as found:
            try:
                async for piece in found:
                    begun = True
                    yield piece
            except ModelError:
                raise
            except Exception as error:
                raise self._problem(error, begun) from error

    def _problem(self, error: Exception, begun: bool) -> ModelError:
        sdk, http = load(self._package), importlib.import_module("httpx2")
        where = self.endpoint
        said = self._scrubbed(error)
        if isinstance(error, sdk.APITimeoutError | http.TimeoutException):
            return ModelTimeout(f"{where.name}: {where.url} did not answer in time.")
        if isinstance(error, sdk.APIConnectionError | http.TransportError):
            if begun:
                return ModelDisconnected(f"{where.name}: the answer broke off in the middle.")
            cause = _cause(error)
            return ModelUnavailable(
                f"{where.name}: {where.url} cannot be reached: {cause}. Is it running, and is the"
                " address right?",
                url=where.url,
            )
        if isinstance(error, sdk.APIStatusError) and error.status_code >= 300:
            return self._by_status(error, said)
        if isinstance(error, sdk.APIError):
            return _in_the_middle(where.name, error, said)
        unread = (
            ValueError, AttributeError, LookupError, RecursionError,
            *([TypeError] if begun else []),
        )  # fmt: skip
        if isinstance(error, unread):
            return ModelAnswerInvalid(f"{where.name}: what came is not an answer: {said}")
        return ModelError(f"{where.name}: {type(error).__name__}: {said}")

    def _by_status(self, error: Any, said: str) -> ModelError:
        where, status = self.endpoint, error.status_code
        named = str(getattr(error, "code", None) or getattr(error, "type", None) or "")
        details = {"providerStatus": status, "providerSays": said}
        wait_s = self._asked_to_wait(error.response.headers)
        if status in (401, 403) or named in OUT_OF_MONEY:
            source = f"the key in {where.key_env}" if where.key_env else "a call without a key"
            return ModelAuth(f"{where.name} does not accept {source}: {said}", **details)
        if status == 429:
            return ModelRateLimited(
                f"{where.name} asks to be left alone for a while.", wait_s, **details
            )
        if status in (408, 504):
            return ModelTimeout(f"{where.name} did not answer in time.", wait_s, **details)
        if status >= 500:
            return ModelUnavailable(f"{where.name} failed ({status}): {said}", wait_s, **details)
        if status == 404:
            return ModelBadRequest(
                f"{where.name} has no such model, or {where.url} is not its address: {said}",
                **details,
            )
        return ModelBadRequest(f"{where.name} does not take this ({status}): {said}", **details)

    def _asked_to_wait(self, headers: Any) -> float | None:
        try:
            if "retry-after-ms" in headers:
                wait = float(headers["retry-after-ms"]) / 1000
            else:
                wait = self._seconds(headers["retry-after"])
        except (KeyError, ValueError, TypeError):
            return None
        return min(wait, LONGEST_WAIT_S) if wait >= 0 else None

    def _seconds(self, value: str) -> float:
        """A number of seconds, or a date."""
        try:
            return float(value)
        except ValueError:
            then = parsedate_to_datetime(value)
            now = datetime.fromtimestamp(self._clock.millis() / 1000, UTC)
            return max(0.0, (then - now).total_seconds())

    def _scrubbed(self, error: Exception) -> str:
        """What the provider says, short and without our key."""
        body = getattr(error, "body", None)
        inner = body.get("error", body) if isinstance(body, dict) else None
        said = inner.get("message") if isinstance(inner, dict) else inner
        text = str(said or error)[:LONGEST_ERROR]
        if self.endpoint.key:
            text = text.replace(self.endpoint.key, MASK)
        return " ".join(self._keys.struck(text).split())[:LONGEST_COMPLAINT]


class SdkModel(ABC):
    """A model spoken to through an SDK. One that does not know schemas is asked in words."""

    provider: str
    #: what a server calls the thing it does not know
    schema_words: tuple[str, ...]

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        #: becomes "prompt" when the server turns out not to know schemas
        self.json = connection.endpoint.json

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        if self.json == "native" and request.response_format is not None:
            try:
                async with aclosing(self._guarded(request)) as pieces:
                    async for piece in pieces:
                        yield piece
                return
            except ModelBadRequest as refusal:
                said = str(refusal.details.get("providerSays", "")).lower()
                if not any(word in said for word in self.schema_words):
                    raise
                self.json = "prompt"
                name = self.connection.endpoint.name
                raise ModelWithoutSchemas(
                    f"{name} does not know schemas; from now on it is asked in words."
                ) from None  # the next call is one of its own, seen and counted like any other
        async with aclosing(self._guarded(asked_in_words(request))) as pieces:
            async for piece in pieces:
                yield piece

    async def aclose(self) -> None:
        await self.connection.aclose()

    def _guarded(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        return self.connection.guarded(self.pieces(request))

    @abstractmethod
    def pieces(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        """The SDK's stream, read; it may raise whatever the SDK does."""


def _bounded(http: Any) -> Any:
    """Makes every answer end with an error before it fills the memory."""

    class Counting(http.AsyncByteStream):  # type: ignore[misc]
        def __init__(self, stream: Any) -> None:
            self._stream = stream

        async def __aiter__(self) -> AsyncGenerator[bytes, None]:
            total = line = 0
            async for chunk in self._stream:
                total += len(chunk)
                line = line + len(chunk) if b"\n" not in chunk else len(chunk)
                if total > MOST_BYTES or line > LONGEST_LINE:
                    raise ModelAnswerInvalid(
                        f"The answer is larger than {MOST_BYTES} bytes, or a line of it than"
                        f" {LONGEST_LINE}.",
                        limit=MOST_BYTES,
                    )
                yield chunk

        async def aclose(self) -> None:
            await self._stream.aclose()

    async def bound(answer: Any) -> None:
        answer.stream = Counting(answer.stream)

    return bound


def read(take: Callable[..., list[Piece]], *part: Any) -> list[Piece]:
    """What a part of the stream says. Raises ModelAnswerInvalid when it is not made like one."""
    try:
        return take(*part)
    except (TypeError, ValueError, AttributeError, LookupError) as error:
        raise ModelAnswerInvalid(f"What came is not an answer: {error}") from None


def _in_the_middle(name: str, error: Any, said: str) -> ModelError:
    """A provider that has begun to answer says by an event that it cannot go on."""
    body = error.body if isinstance(error.body, dict) else {}
    inner = body.get("error", body)
    kind = str(inner.get("type", "")) if isinstance(inner, dict) else ""
    if kind == "rate_limit_error":
        return ModelRateLimited(f"{name} asks to be left alone for a while.", providerSays=said)
    if kind == "invalid_request_error":
        return ModelBadRequest(f"{name} does not take this: {said}", providerSays=said)
    return ModelUnavailable(f"{name} failed in the middle of its answer: {said}", providerSays=said)


def _cause(error: BaseException) -> str:
    """What the operating system said, if it was asked."""
    found: BaseException | None = error
    said = str(error)
    for _ in range(8):
        if found is None:
            break
        number = getattr(found, "errno", None)
        said = os.strerror(number) if isinstance(number, int) else str(found) or said
        found = found.__cause__ or found.__context__
    return said.rstrip(".")


def load(package: str) -> Any:
    """The SDK. Raises ModelNotConfigured with how to install it."""
    try:
        return importlib.import_module(package)
    except ImportError:
        raise ModelNotConfigured(
            f"The package '{package}' is not installed; install it with: {install(package)}",
            package=package,
        ) from None


def asked_in_words(request: ModelRequest) -> ModelRequest:
    """The same request for a provider that does not know schemas: the prompt asks for JSON."""
    if request.response_format is None:
        return request
    schema = json.dumps(request.response_format.schema, ensure_ascii=False)
    wish = Message(role="system", content=JSON_ONLY + schema)
    return msgspec.structs.replace(
        request, messages=(wish, *request.messages), response_format=None
    )


def enveloped(message: Message) -> str:
    """Somebody's words as data: whatever they contain, who said them stands outside."""
    return json.dumps({"speaker": message.name, "text": message.content}, ensure_ascii=False)
