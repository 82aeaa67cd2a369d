"""Load the official SDKs late, hold one client, and translate their errors."""

import asyncio
import importlib
import json
import os
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal, Protocol

import msgspec
from msgspec import Struct

from moot.agents.models.protocol import ModelMessage, ModelRequest, Piece
from moot.agents.models.redact import SecretKeys
from moot.agents.models.validation import validate_pieces
from moot.clock import Clock
from moot.config.extras import install_hint
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
#: the longest silence within an answer; RetryingModel sets the limits of a call
SILENCE_S = 600.0
LONGEST_WAIT_S = 3600.0
LONGEST_COMPLAINT = 500
#: the part of a provider error that is read
LONGEST_ERROR = 1_000_000
#: the most bytes of one answer on the wire, and of one line of it
MOST_BYTES = 64 * 1024 * 1024
LONGEST_LINE = 8 * 1024 * 1024

#: providers answer 429 for these, but waiting does not help
OUT_OF_MONEY = ("insufficient_quota", "billing_error", "billing_hard_limit_reached")

JSON_ONLY = (
    "Answer with one JSON value and nothing else: no Markdown, no explanation."
    " It must fit this JSON Schema:\n"
)


class ProviderEndpoint(Struct, frozen=True, kw_only=True):
    """The address and options of a provider. Its repr never includes the key."""

    name: str
    url: str
    key: str | None = None
    key_env: str | None = None
    #: whether the provider enforces a schema, or the prompt asks for it
    json: Literal["native", "prompt"] = "native"
    #: whether the speaker goes into its own field or into an envelope around the text
    names: Literal["field", "envelope"] = "envelope"

    def __repr__(self) -> str:
        return f"Endpoint({self.name!r}, {self.url!r})"


class SdkConnection:
    """One SDK, loaded at the first call, and its one client."""

    def __init__(self, package: str, client: str, endpoint: ProviderEndpoint, clock: Clock) -> None:
        self.endpoint = endpoint
        self._package, self._class, self._clock = package, client, clock
        self._keys = SecretKeys([endpoint.key])
        self._client: Any = None

    async def client(self) -> Any:
        """Return the client. Importing the SDK takes seconds and happens in a thread."""
        sdk = await asyncio.to_thread(load_sdk, self._package)
        if self._client is None:
            http = importlib.import_module("httpx2")
            self._client = getattr(sdk, self._class)(
                api_key=self.endpoint.key or "none",
                base_url=self.endpoint.url,
                max_retries=0,  # RetryingModel reports and counts retries
                http_client=http.AsyncClient(
                    timeout=http.Timeout(SILENCE_S, connect=CONNECT_S),
                    follow_redirects=False,  # the key is only for this address
                    event_hooks={"response": [_limit_responses(http)]},
                ),
            )
        return self._client

    async def aclose(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def guarded(self, pieces: AsyncGenerator[Piece, None]) -> AsyncGenerator[Piece, None]:
        """Yield valid pieces. Raise every error of the SDK or of HTTP as a ModelError."""
        started = False
        async with aclosing(validate_pieces(pieces, self._keys)) as valid:
            try:
                async for piece in valid:
                    started = True
                    yield piece
            except ModelError:
                raise
            except Exception as error:
                raise self._translate_error(error, started) from error

    def _translate_error(self, error: Exception, started: bool) -> ModelError:
        sdk, http = load_sdk(self._package), importlib.import_module("httpx2")
        endpoint = self.endpoint
        message = self._clean_message(error)
        if isinstance(error, sdk.APITimeoutError | http.TimeoutException):
            return ModelTimeout(f"{endpoint.name}: {endpoint.url} did not answer in time.")
        if isinstance(error, sdk.APIConnectionError | http.TransportError):
            if started:
                return ModelDisconnected(f"{endpoint.name}: the answer broke off in the middle.")
            cause = _cause(error)
            problem = f"{endpoint.url} cannot be reached: {cause}"
            question = "Is it running, and is the address right?"
            return ModelUnavailable(f"{endpoint.name}: {problem}. {question}", url=endpoint.url)
        if isinstance(error, sdk.APIStatusError) and error.status_code >= 300:
            return self._error_from_status(error, message)
        if isinstance(error, sdk.APIError):
            return _error_from_event(endpoint.name, error, message)
        parse_errors = (
            ValueError, AttributeError, LookupError, RecursionError,
            *([TypeError] if started else []),
        )  # fmt: skip
        if isinstance(error, parse_errors):
            return ModelAnswerInvalid(f"{endpoint.name}: what came is not an answer: {message}")
        return ModelError(f"{endpoint.name}: {type(error).__name__}: {message}")

    def _error_from_status(self, error: Any, message: str) -> ModelError:
        endpoint, status = self.endpoint, error.status_code
        code = str(getattr(error, "code", None) or getattr(error, "type", None) or "")
        details = {"providerStatus": status, "providerSays": message}
        wait_s = self._retry_after(error.response.headers)
        if status in (401, 403) or code in OUT_OF_MONEY:
            key_name = endpoint.key_env
            source = f"the key in {key_name}" if key_name else "a call without a key"
            return ModelAuth(f"{endpoint.name} does not accept {source}: {message}", **details)
        if status == 429:
            text = f"{endpoint.name} asks to be left alone for a while."
            return ModelRateLimited(text, wait_s, **details)
        if status in (408, 504):
            return ModelTimeout(f"{endpoint.name} did not answer in time.", wait_s, **details)
        if status >= 500:
            text = f"{endpoint.name} failed ({status}): {message}"
            return ModelUnavailable(text, wait_s, **details)
        if status == 404:
            text = f"{endpoint.name} has no such model, or {endpoint.url} is not its address"
            return ModelBadRequest(f"{text}: {message}", **details)
        text = f"{endpoint.name} does not take this ({status}): {message}"
        return ModelBadRequest(text, **details)

    def _retry_after(self, headers: Any) -> float | None:
        try:
            if "retry-after-ms" in headers:
                wait = float(headers["retry-after-ms"]) / 1000
            else:
                wait = self._seconds(headers["retry-after"])
        except (KeyError, ValueError, TypeError):
            return None
        return min(wait, LONGEST_WAIT_S) if wait >= 0 else None

    def _seconds(self, value: str) -> float:
        """Parse a number of seconds or a date."""
        try:
            return float(value)
        except ValueError:
            then = parsedate_to_datetime(value)
            now = datetime.fromtimestamp(self._clock.millis() / 1000, UTC)
            return max(0.0, (then - now).total_seconds())

    def _clean_message(self, error: Exception) -> str:
        """Return the message of the provider, shortened and without the key."""
        body = getattr(error, "body", None)
        inner = body.get("error", body) if isinstance(body, dict) else None
        message = inner.get("message") if isinstance(inner, dict) else inner
        text = str(message or error)[:LONGEST_ERROR]
        if self.endpoint.key:
            text = text.replace(self.endpoint.key, MASK)
        return " ".join(self._keys.redact(text).split())[:LONGEST_COMPLAINT]


class PartReader(Protocol):
    """Turns the parts of one stream of an SDK into pieces."""

    def take(self, part: Any) -> list[Piece]: ...

    def end(self) -> list[Piece]:
        """Return the last pieces. Raise ModelDisconnected when the last part is missing."""


class SdkModel(ABC):
    """A model behind an SDK. A server without schemas gets the schema in the prompt."""

    provider: str
    #: words in the error of a server without schemas
    schema_words: tuple[str, ...]
    reader: type[PartReader]

    def __init__(self, connection: SdkConnection) -> None:
        self.connection = connection
        #: becomes "prompt" when the server rejects a schema
        self.json = connection.endpoint.json

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        if self.json == "native" and request.response_format is not None:
            try:
                async with aclosing(self._guarded(request)) as pieces:
                    async for piece in pieces:
                        yield piece
                return
            except ModelBadRequest as refusal:
                message = str(refusal.details.get("providerSays", "")).lower()
                if not any(word in message for word in self.schema_words):
                    raise
                self.json = "prompt"
                name = self.connection.endpoint.name
                raise ModelWithoutSchemas(
                    f"{name} does not know schemas; from now on it is asked in words."
                ) from None  # the next call is reported and counted like any other
        async with aclosing(self._guarded(with_schema_in_prompt(request))) as pieces:
            async for piece in pieces:
                yield piece

    async def aclose(self) -> None:
        await self.connection.aclose()

    def _guarded(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        return self.connection.guarded(self._pieces(request))

    async def _pieces(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        """Read the stream of the SDK. Any error of the SDK may be raised."""
        reader = self.reader()
        async with await self.open(await self.connection.client(), request) as parts:
            async for part in parts:
                for piece in read_part(reader.take, part):
                    yield piece
        for piece in read_part(reader.end):
            yield piece

    @abstractmethod
    def open(self, client: Any, request: ModelRequest) -> Awaitable[Any]:
        """Start the call and return its stream."""


def _limit_responses(http: Any) -> Any:
    """Return a hook that ends a too large response with an error."""

    class LimitedStream(http.AsyncByteStream):  # type: ignore[misc]
        def __init__(self, stream: Any) -> None:
            self._stream = stream

        async def __aiter__(self) -> AsyncGenerator[bytes, None]:
            total = line = 0
            async for chunk in self._stream:
                total += len(chunk)
                line = line + len(chunk) if b"\n" not in chunk else len(chunk)
                if total > MOST_BYTES or line > LONGEST_LINE:
                    limits = f"{MOST_BYTES} bytes, or a line of it than {LONGEST_LINE}"
                    raise ModelAnswerInvalid(
                        f"The answer is larger than {limits}.", limit=MOST_BYTES
                    )
                yield chunk

        async def aclose(self) -> None:
            await self._stream.aclose()

    async def bound(response: Any) -> None:
        response.stream = LimitedStream(response.stream)

    return bound


def read_part(take: Callable[..., list[Piece]], *part: Any) -> list[Piece]:
    """Read a part of the stream. Raise ModelAnswerInvalid when it is malformed."""
    try:
        return take(*part)
    except (TypeError, ValueError, AttributeError, LookupError) as error:
        raise ModelAnswerInvalid(f"What came is not an answer: {error}") from None


def _error_from_event(name: str, error: Any, message: str) -> ModelError:
    body = error.body if isinstance(error.body, dict) else {}
    inner = body.get("error", body)
    kind = str(inner.get("type", "")) if isinstance(inner, dict) else ""
    if kind == "rate_limit_error":
        return ModelRateLimited(f"{name} asks to be left alone for a while.", providerSays=message)
    if kind == "invalid_request_error":
        return ModelBadRequest(f"{name} does not take this: {message}", providerSays=message)
    text = f"{name} failed in the middle of its answer: {message}"
    return ModelUnavailable(text, providerSays=message)


def _cause(error: BaseException) -> str:
    """Return the innermost error, in the words of the operating system if possible."""
    current: BaseException | None = error
    message = str(error)
    for _ in range(8):
        if current is None:
            break
        number = getattr(current, "errno", None)
        message = os.strerror(number) if isinstance(number, int) else str(current) or message
        current = current.__cause__ or current.__context__
    return message.rstrip(".")


def load_sdk(package: str) -> Any:
    """Import the SDK. Raise ModelNotConfigured with the install command."""
    try:
        return importlib.import_module(package)
    except ImportError:
        hint = f"install it with: {install_hint(package)}"
        message = f"The package '{package}' is not installed; {hint}"
        raise ModelNotConfigured(message, package=package) from None


def with_schema_in_prompt(request: ModelRequest) -> ModelRequest:
    """Return the request with the schema in the prompt, for a server without schemas."""
    if request.response_format is None:
        return request
    schema = json.dumps(request.response_format.schema, ensure_ascii=False)
    instruction = ModelMessage(role="system", content=JSON_ONLY + schema)
    messages = (instruction, *request.messages)
    return msgspec.structs.replace(request, messages=messages, response_format=None)


def wrap_with_speaker(message: ModelMessage) -> str:
    """Return the text as JSON with its speaker outside of it."""
    return json.dumps({"speaker": message.name, "text": message.content}, ensure_ascii=False)
