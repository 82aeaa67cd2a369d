"""Requests, replies, and the table row that describes a route."""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Required, TypedDict, TypeVar
from urllib.parse import parse_qsl

import msgspec
from msgspec import Struct

from moot.core.errors import BadRequest, BodyTooLarge
from moot.core.json.nesting import MAX_DEPTH, is_too_deep
from moot.core.text.nearest import nearest_word
from moot.store.protocol import Key, Receipt

if TYPE_CHECKING:
    from moot.api.services import Services
    from moot.core.commands import Command
    from moot.core.state.run import Run
    from moot.engine.host import Host
    from moot.engine.streams.hub import Published
    from moot.engine.transaction import ReceiptFor
    from moot.store.protocol import Store
    from moot.triggers.service import Triggers


class HttpScope(TypedDict, total=False):
    """The head of a request, as ASGI describes it."""

    type: Required[str]
    asgi: Mapping[str, str]
    http_version: str
    method: Required[str]
    path: Required[str]
    query_string: bytes
    headers: Required[list[tuple[bytes, bytes]]]
    client: tuple[str, int] | None


class ReceivedMessage(TypedDict, total=False):
    """A piece of a request's body, or the end of its connection."""

    type: Required[str]
    body: bytes
    more_body: bool


Receive = Callable[[], Awaitable[ReceivedMessage]]
Send = Callable[[dict[str, object]], Awaitable[None]]
Body = TypeVar("Body")

encode = msgspec.json.Encoder().encode

SSE = "text/event-stream"

JSON_HEADER = (b"content-type", b"application/json")

#: Statuses whose answers have no body and no headers about one.
BODILESS = (204, 304)

_UNKNOWN = re.compile(r"Object contains unknown field `([^`]*)`")
_LENGTH = re.compile(r"Expected `(str|array)` of length (>=|<=) (\d+) - at `\$\.([^`]+)`")


class Reply:
    """A complete answer."""

    __slots__ = ("body", "headers", "remembered", "sized", "status")

    def __init__(
        self, body: Any = None, status: int = 200, headers: dict[str, str] | None = None
    ) -> None:
        #: The body that a repeated request gets, when it must be less than the first answer.
        self.remembered: bytes | None = None
        #: Whether to send a Content-Length.
        self.sized = True
        self.status = status
        self.headers = headers or {}
        self.body = b"" if body is None else body if isinstance(body, bytes) else encode(body)

    async def send(self, send: Send, head_only: bool = False) -> None:
        headers = [(n.lower().encode(), v.encode("latin-1")) for n, v in self.headers.items()]
        if self.status in BODILESS:
            headers = [pair for pair in headers if not pair[0].startswith(b"content-")]
        else:
            if self.sized:
                headers.append((b"content-length", b"%d" % len(self.body)))
            if "Content-Type" not in self.headers:
                headers.append(JSON_HEADER)
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if head_only else self.body})


class Stream:
    """An answer in pieces that ``write`` sends.

    ``headers`` belong to an answer with an end. Without them it is an endless stream of events.
    """

    def __init__(
        self,
        write: Callable[[Receive, Send], Awaitable[None]],
        headers: dict[str, str] | None = None,
    ) -> None:
        self.write, self.headers = write, headers

    def head(self, usual: dict[str, str]) -> Reply:
        """Return the answer to a HEAD request. Its length is unknown."""
        reply = Reply(b"", 200, self.headers or usual)
        reply.sized = False
        return reply


class Request:
    """One HTTP request. Its body is read and parsed only when a handler asks for it."""

    __slots__ = (
        "_body", "_headers", "_query", "_receive", "caller", "largest", "method", "params", "path",
        "receipts", "reply", "scope", "services",
    )  # fmt: skip

    def __init__(self, scope: HttpScope, receive: Receive, services: "Services") -> None:
        self.scope, self._receive, self.services = scope, receive, services
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.params: dict[str, str] = {}
        self.caller: Key = NO_CALLER
        self.largest: int | None = None
        self.receipts: Callable[[Reply], Receipt] | None = None
        #: The answer, from the state right after the command.
        self.reply: Reply
        self._body: bytes | None = None
        self._query: dict[str, str] | None = None
        self._headers: dict[bytes, bytes] = dict(scope["headers"])

    @property
    def tenant(self) -> str:
        return self.caller.tenant

    @property
    def host(self) -> "Host":
        return self.services.host

    @property
    def store(self) -> "Store":
        return self.services.store

    @property
    def triggers(self) -> "Triggers":
        return self.services.triggers

    def now(self) -> int:
        """Return the time in ms."""
        return self.services.clock.millis()

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
        """Return the body as this type. An empty body counts as ``{}``."""
        return parse_body(await self.body() or b"{}", type_)

    def integer(self, name: str, default: int, low: int, high: int) -> int:
        """Return a whole number of the query. Raise BadRequest when it is out of bounds."""
        text = self.query.get(name)
        if text is None:
            return default
        if not re.fullmatch(r"-?[0-9]{1,18}", text) or not low <= int(text) <= high:
            raise BadRequest(
                f"{name} must be a whole number from {low} to {high}.", field=name, value=text[:64]
            )
        return int(text)

    async def handle(
        self, run_id: str, command: "Command", answer: Callable[["Run"], Reply]
    ) -> Reply:
        """Send a command to a run. The reply shows the state right after it."""
        await self.host.handle(self.tenant, run_id, command, self.record_reply(answer))
        return self.reply

    def record_reply(self, answer: Callable[["Run"], Reply]) -> "ReceiptFor":
        """Return a callback for the host that makes the reply when the command is decided.

        The callback stores the reply in ``reply``. When the caller sent an Idempotency-Key, the
        receipt goes into the same commit.
        """

        def make_receipt(run: "Run", events: "list[Published]") -> Receipt | None:
            self.reply = answer(run)
            return self.receipts(self.reply) if self.receipts is not None else None

        return make_receipt


def parse_body(body: bytes, type_: type[Body]) -> Body:
    check_depth(body)
    try:
        return msgspec.json.decode(body, type=type_)
    except msgspec.ValidationError as error:
        explanation = explain_body_error(str(error), type_)
        raise BadRequest(f"The body does not fit: {explanation}", fields=[str(error)]) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(f"The body is not JSON: {error}") from None


def check_depth(body: bytes) -> None:
    if is_too_deep(body):
        raise BadRequest(f"The body is nested deeper than {MAX_DEPTH} levels.")


def _too_large(limit: int) -> BodyTooLarge:
    return BodyTooLarge(f"The body is larger than {limit} bytes.", maxRequestBodyBytes=limit)


NO_CALLER = Key(
    id="", hash="", tenant="", name="", scopes=[], speaks_as=[], created_at=0, admin=False
)

Handler = Callable[[Request], Awaitable[Reply | Stream]]


#: The JSON schema of a query parameter.
QuerySchema = Mapping[str, object]
TEXT: QuerySchema = {"type": "string"}
FLAG: QuerySchema = {"type": "boolean"}


def whole_number(least: int, most: int | None = None) -> QuerySchema:
    schema = {"type": "integer", "minimum": least}
    return schema if most is None else {**schema, "maximum": most}


#: The usual parameters of a list.
PAGE_QUERY: Mapping[str, QuerySchema] = {"limit": whole_number(1, 200), "cursor": TEXT}


class Endpoint(Struct, frozen=True):
    """One route.

    The router, the OpenAPI document, the idempotency records and the tests of all routes read it.
    Its texts for the reference are in ``api/host/assets/reference.json``.
    """

    method: str
    path: str
    call: Handler
    scope: str | None = None
    #: A second scope, for a route that arranges later runs.
    beside: str | None = None
    public: bool = False
    body: Any = None
    #: The route refuses an empty body, though each field of it has a default.
    needs_body: bool = False
    #: Query parameter -> JSON schema.
    query: Mapping[str, QuerySchema] = {}
    status: int = 200
    #: The type of a JSON answer, or a tuple of types.
    answer: Any = None
    media: str = "application/json"
    #: Largest body in bytes, when it differs from the settings.
    largest: int | None = None
    #: Open to keys for one thread.
    joined: bool = False
    #: The same request of another caller is another request.
    personal: bool = False
    #: Open to trusted local programs without a key.
    local: bool = False
    #: The route finds repeats by their signed content and ignores an Idempotency-Key.
    knows_again: bool = False

    @property
    def operation(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def mutating(self) -> bool:
        return self.method in ("POST", "PUT", "PATCH", "DELETE")

    @property
    def keyed(self) -> bool:
        """Return whether the route heeds an Idempotency-Key."""
        return self.mutating and not self.knows_again


def path_pattern(path: str) -> re.Pattern[str]:
    """Return ``/v1/runs/{run_id}:pause`` as a pattern. A parameter stops at a slash."""
    parts = re.split(r"\{(\w+)\}", path)
    pattern = "".join(
        re.escape(part) if index % 2 == 0 else f"(?P<{part}>[^/]+)"
        for index, part in enumerate(parts)
    )
    return re.compile(pattern)


def explain_body_error(problem: str, type_: Any) -> str:
    """Return msgspec's message in plain words, with a suggestion for an unknown field."""
    if match := _UNKNOWN.fullmatch(problem):
        return _unknown_field(match[1], type_)
    if match := _LENGTH.fullmatch(problem):
        kind, bound, number, field = match.groups()
        things = "characters" if kind == "str" else "items"
        if bound == ">=" and number == "1":
            return f"{field} must not be empty."
        return f"{field} has at {'most' if bound == '<=' else 'least'} {number} {things}."
    return problem


def _unknown_field(name: str, type_: Any) -> str:
    if not (isinstance(type_, type) and issubclass(type_, msgspec.Struct)):
        return f"there is no field `{name}`."
    names = [field.encode_name for field in msgspec.structs.fields(type_)]
    suggestion = nearest_word(name, names)
    hint = f" Did you mean `{suggestion}`?" if suggestion else f" There are {', '.join(names)}."
    return f"there is no field `{name}`.{hint}"
