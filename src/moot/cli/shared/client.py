"""Calls to the server over plain HTTP.

The standard library's client: importing it costs a quarter of what a richer one does, and a
stream of events needs no more than reading lines.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from urllib.parse import quote, urlencode, urlsplit

from moot.cli.shared.command_hint import program
from moot.cli.shared.errors import Exit, Trouble
from moot.cli.shared.options import Options, place
from moot.config.place import Place

if TYPE_CHECKING:
    from http.client import HTTPConnection, HTTPResponse

#: longer than the server waits before it sends a comment on a quiet stream
SECONDS = 60


class Unreachable(Trouble):
    def __init__(self, where: Place, why: object) -> None:
        if where.alone:
            said = f"no server runs on {where.database}"
        else:
            said = f"no server answers at {where.url} ({why})"
        file = f" {where.database}" if where.chosen else ""
        super().__init__(f"{said}. Start one with: {program()} serve{file}", Exit.UNREACHABLE)


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    def data(self) -> Any:
        try:
            return json.loads(self.body) if self.body else None
        except ValueError:
            raise Trouble("the server did not answer with JSON; is it Moot?") from None


class Door(Protocol):
    """Something that answers requests: a server, or a file read in its place."""

    place: Place
    #: nothing will happen any more: a file is read
    offline: bool

    def call(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] = ...
    ) -> Answer: ...


class Client:
    """One server and one key; a connection per call."""

    offline = False

    def __init__(self, where: Place) -> None:
        self.place = where
        parts = urlsplit(where.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise Trouble(f"'{where.url}' is not an http address.", Exit.USAGE)
        self._parts = parts

    def call(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: dict[str, str] = {},  # noqa: B006 - only read
    ) -> Answer:
        with self.opened(method, path, body, headers) as answer:
            return Answer(answer.status, dict(answer.headers), answer.read())

    @contextmanager
    def opened(
        self,
        method: str,
        path: str,
        body: bytes | None,
        headers: dict[str, str],
        seconds: float = SECONDS,
    ) -> "Iterator[HTTPResponse]":
        """The answer while it still arrives; silence for so many seconds ends it."""
        from http.client import HTTPException

        if self.place.alone:
            raise Unreachable(self.place, "it has left no address")
        connection, answered = self._connection(seconds), False
        try:
            connection.request(
                method, self._parts.path.rstrip("/") + path, body, self._headers(body, headers)
            )
            answer = connection.getresponse()
            answered = True
            yield answer
        except (OSError, HTTPException) as error:
            if answered and isinstance(error, BrokenPipeError):
                raise  # reading breaks no pipe: it is stdout whose reader has gone
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise Unreachable(self.place, str(why).lower()) from error
        finally:
            connection.close()

    def _connection(self, seconds: float) -> "HTTPConnection":
        from http.client import HTTPConnection, HTTPSConnection

        host, port = str(self._parts.hostname), self._parts.port
        if self._parts.scheme == "https":
            return HTTPSConnection(host, port, timeout=seconds)
        return HTTPConnection(host, port, timeout=seconds)

    def _headers(self, body: bytes | None, headers: dict[str, str]) -> dict[str, str]:
        usual = {"Accept": "application/json"}
        if self.place.key is not None:
            usual["Authorization"] = f"Bearer {self.place.key}"
        if body is not None:
            usual["Content-Type"] = "application/json"
        return {**usual, **headers}


class Api:
    """Answers as data. A refusal is Trouble with the server's own sentence."""

    def __init__(self, door: Door) -> None:
        self.door = door

    @property
    def offline(self) -> bool:
        return self.door.offline

    def get(self, path: str, **query: Any) -> Any:
        given = {name: value for name, value in query.items() if value is not None}
        return self.ask("GET", f"{path}?{urlencode(given)}" if given else path)

    def post(self, path: str, body: Any = None) -> Any:
        return self.ask("POST", path, json.dumps({} if body is None else body).encode())

    def delete(self, path: str) -> Any:
        return self.ask("DELETE", path)

    def ask(self, method: str, path: str, body: bytes | None = None) -> Any:
        answer = self.door.call(method, path, body)
        if answer.status >= 400:
            raise refusal(answer, self.door.place)
        return answer.data()


def refusal(answer: Answer, where: Place) -> Trouble:
    """Why the server refused, as it said it, and how to get further."""
    details, code = {}, ""
    try:
        body = json.loads(answer.body)
        told = body["error"] if isinstance(body.get("error"), dict) else body  # as /threads has it
        said, details = str(told["message"]), dict(body.get("details") or {})
        code = str(told.get("code") or told.get("error") or "")
    except (ValueError, KeyError, TypeError, AttributeError):
        said = f"the server answered with status {answer.status}."
    if answer.status == 401:
        said += (
            f" The key comes from --token, MOOT_KEY or {where.database}.key;"
            f" the server is {where.url}."
        )
    trouble = Trouble(said, Exit.NOT_FOUND if answer.status == 404 else Exit.FAILED)
    trouble.status, trouble.code, trouble.details = answer.status, code, details
    return trouble


def to_write(options: Options) -> Api:
    """The server itself: nobody else may change anything."""
    return Api(Client(place(options)))


def to_read(options: Options) -> Api:
    """The server, or its file while no server runs."""
    from moot.cli.shared.offline import ServerOrFile

    return Api(ServerOrFile(place(options)))


def path_of(*words: str) -> str:
    """A path of these words, each safe whatever is in it."""
    return "/" + "/".join(quote(word, safe=":") for word in words)
