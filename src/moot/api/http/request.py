"""Requests and replies, as thin as they can be, and the table row that describes a route."""

import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qsl

import msgspec
from msgspec import Struct

from moot.api.http.body_errors import worded
from moot.core.errors import BadRequest, BodyTooLarge
from moot.core.json.nesting import DEEPEST, too_deep
from moot.store.protocol import Key, Receipt

if TYPE_CHECKING:
    from moot.api.services import Services
    from moot.core.state.run import Run
    from moot.engine.streams.hub import Published
    from moot.engine.transaction import ReceiptFor

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Body = TypeVar("Body")

encode = msgspec.json.Encoder().encode

SSE = "text/event-stream"

JSON = (b"content-type", b"application/json")

#: statuses whose answers have neither a body nor a word about one
BODILESS = (204, 304)


class Reply:
    """A whole answer."""

    __slots__ = ("body", "headers", "remembered", "sized", "status")

    def __init__(
        self, body: Any = None, status: int = 200, headers: dict[str, str] | None = None
    ) -> None:
        #: what an Idempotency-Key may bring back, where that is less than was sent
        self.remembered: bytes | None = None
        #: whether its length is told: that of a stream is not known
        self.sized = True
        self.status = status
        self.headers = headers or {}
        self.body = b"" if body is None else body if isinstance(body, bytes) else encode(body)

    async def send(self, send: Send, head_only: bool = False) -> None:
        headers = [(n.lower().encode(), v.encode("latin-1")) for n, v in self.headers.items()]
        if self.status in BODILESS:
            headers = [pair for pair in headers if not pair[0].startswith(b"content-")]
        else:
            headers += [(b"content-length", b"%d" % len(self.body))] if self.sized else []
            if "Content-Type" not in self.headers:
                headers.append(JSON)
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if head_only else self.body})


class Stream:
    """An answer that goes on: ``write`` sends it piece by piece. ``headers`` are those of one that
    comes to its end; without, it is of events, for as long as somebody listens."""

    def __init__(
        self,
        write: Callable[[Receive, Send], Awaitable[None]],
        headers: dict[str, str] | None = None,
    ) -> None:
        self.write, self.headers = write, headers

    def head(self, usual: dict[str, str]) -> Reply:
        """For who asks for nothing else. A length would be wrong: nobody knows it."""
        reply = Reply(b"", 200, self.headers or usual)
        reply.sized = False
        return reply


class Request:
    """One call. The body is read and parsed only when a handler asks for it."""

    __slots__ = ("_body", "_headers", "_query", "_receive", "caller", "largest", "made", "method",
                 "params", "path", "receipts", "scope", "services")  # fmt: skip

    def __init__(self, scope: Scope, receive: Receive, services: "Services") -> None:
        self.scope, self._receive, self.services = scope, receive, services
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.params: dict[str, str] = {}
        self.caller: Key = NOBODY
        self.largest: int | None = None
        self.receipts: Callable[[Reply], Receipt] | None = None
        #: the answer, made from the state the command led to, not from what came after
        self.made: Reply
        self._body: bytes | None = None
        self._query: dict[str, str] | None = None
        self._headers: dict[bytes, bytes] = dict(scope["headers"])

    def header(self, name: str) -> str | None:
        value = self._headers.get(name.encode())
        return None if value is None else value.decode("latin-1")

    @property
    def query(self) -> dict[str, str]:
        if self._query is None:
            raw = self.scope.get("query_string", b"").decode("latin-1")
            self._query = dict(parse_qsl(raw, keep_blank_values=True)) if raw else {}
        return self._query

    async def body(self) -> bytes:
        if self._body is None:
            self._body = await self._read()
        return self._body

    async def _read(self) -> bytes:
        limit = self.largest or self.services.settings.max_body_bytes
        declared = self.header("content-length")
        if declared is not None and declared.isdigit() and int(declared) > limit:
            raise _too_large(limit)
        pieces: list[bytes] = []
        size = 0
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise BadRequest("The request ended before its body did.")
            piece = message.get("body", b"")
            size += len(piece)
            if size > limit:
                raise _too_large(limit)
            pieces.append(piece)
            if not message.get("more_body", False):
                return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def read(self, type_: type[Body]) -> Body:
        """The body as a closed type; no body at all counts as ``{}``."""
        return parse_body(await self.body() or b"{}", type_)

    def integer(self, name: str, default: int, low: int, high: int) -> int:
        """A whole number of the query, within bounds."""
        text = self.query.get(name)
        if text is None:
            return default
        if not re.fullmatch(r"-?[0-9]{1,18}", text) or not low <= int(text) <= high:
            raise BadRequest(
                f"{name} must be a whole number from {low} to {high}.", field=name, value=text[:64]
            )
        return int(text)

    def recording(self, answer: Callable[["Run"], Reply]) -> "ReceiptFor":
        """For the host: make the answer when the command is decided, and keep it in the same
        commit if the caller sent a key. It is then in ``made``."""

        def note(run: "Run", events: "list[Published]") -> Receipt | None:
            self.made = answer(run)
            return self.receipts(self.made) if self.receipts is not None else None

        return note


def parse_body(body: bytes, type_: type[Body]) -> Body:
    refuse_deep(body)
    try:
        return msgspec.json.decode(body, type=type_)
    except msgspec.ValidationError as error:
        said = worded(str(error), type_)
        raise BadRequest(f"The body does not fit: {said}", fields=[str(error)]) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(f"The body is not JSON: {error}") from None


def refuse_deep(body: bytes) -> None:
    if too_deep(body):
        raise BadRequest(f"The body is nested deeper than {DEEPEST} levels.")


def _too_large(limit: int) -> BodyTooLarge:
    return BodyTooLarge(f"The body is larger than {limit} bytes.", maxRequestBodyBytes=limit)


NOBODY = Key(id="", hash="", tenant="", name="", scopes=[], speaks_as=[], created_at=0, admin=False)

Handler = Callable[[Request], Awaitable[Reply | Stream]]


class Endpoint(Struct, frozen=True, kw_only=True):
    """One route. The router, the OpenAPI document, the idempotency records and the tests that
    walk every route all read this row."""

    method: str
    path: str
    call: Handler
    summary: str
    scope: str | None = None
    #: a second scope: what is arranged here starts runs later
    beside: str | None = None
    public: bool = False
    body: Any = None
    #: query parameter -> (JSON schema, what it means)
    query: dict[str, tuple[dict[str, Any], str]] = {}
    status: int = 200
    #: the published schema of the answer, where there is one
    answer: str | None = None
    #: other statuses this route gives on purpose
    errors: tuple[int, ...] = ()
    media: str = "application/json"
    #: bytes a body may have, where that is not what the settings say
    largest: int | None = None
    #: open to the key of somebody who was asked to join a thread
    joined: bool = False
    #: the same request of somebody else is another one
    personal: bool = False
    #: open to programs on this machine without a key, where the host trusts them
    local: bool = False
    #: it knows again what it has seen by what was signed; a header is no proof of anything
    knows_again: bool = False
    hidden: bool = False

    @property
    def operation(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def mutating(self) -> bool:
        return self.method in ("POST", "PUT", "PATCH", "DELETE")

    @property
    def keyed(self) -> bool:
        """Whether an Idempotency-Key counts."""
        return self.mutating and not self.knows_again


def pattern_of(path: str) -> re.Pattern[str]:
    """``/v1/runs/{run_id}:pause`` as a pattern; a parameter stops at a slash."""
    parts = re.split(r"\{(\w+)\}", path)
    pattern = "".join(
        re.escape(part) if index % 2 == 0 else f"(?P<{part}>[^/]+)"
        for index, part in enumerate(parts)
    )
    return re.compile(pattern)
