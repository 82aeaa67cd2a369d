"""Calls to the server over plain HTTP.

The standard library's client costs a quarter of the import time of a richer one, and a stream of
events needs no more than reading lines.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from urllib.parse import quote, urlencode, urlsplit

from moot.cli.shared.command_hint import program_name
from moot.cli.shared.errors import CommandError, ExitCode
from moot.cli.shared.options import CommandOptions, resolve_place
from moot.config.server_location import ServerLocation

if TYPE_CHECKING:
    from http.client import HTTPConnection, HTTPResponse

#: longer than the server waits before it sends a comment on a quiet stream
TIMEOUT_SECONDS = 60


class ServerUnreachable(CommandError):
    """No server answers at the address, or none runs on the file."""

    def __init__(self, place: ServerLocation, why: object) -> None:
        if place.alone:
            problem = f"no server runs on {place.database}"
        else:
            problem = f"no server answers at {place.url} ({why})"
        file = f" {place.database}" if place.chosen else ""
        super().__init__(
            f"{problem}. Start one with: {program_name()} serve{file}", ExitCode.UNREACHABLE
        )


class HttpAnswer(NamedTuple):
    """A whole HTTP answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    def data(self) -> Any:
        try:
            return json.loads(self.body) if self.body else None
        except ValueError:
            raise CommandError("the server did not answer with JSON; is it Moot?") from None


class Backend(Protocol):
    """Answers requests: a server, or a database file that is read in its place."""

    place: ServerLocation
    #: a file is read, so nothing in it changes any more
    offline: bool

    def call(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] = ...
    ) -> HttpAnswer: ...


class HttpClient:
    """One server and one key, with a connection per call."""

    offline = False

    def __init__(self, place: ServerLocation) -> None:
        self.place = place
        parts = urlsplit(place.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise CommandError(f"'{place.url}' is not an http address.", ExitCode.USAGE)
        self._parts = parts

    def call(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: dict[str, str] = {},  # noqa: B006 - only read
    ) -> HttpAnswer:
        with self.open_response(method, path, body, headers) as answer:
            return HttpAnswer(answer.status, dict(answer.headers), answer.read())

    @contextmanager
    def open_response(
        self,
        method: str,
        path: str,
        body: bytes | None,
        headers: dict[str, str],
        seconds: float = TIMEOUT_SECONDS,
    ) -> "Iterator[HTTPResponse]":
        """Yield the answer while it still arrives.

        Raise ServerUnreachable after a silence of ``seconds``.
        """
        from http.client import HTTPException

        if self.place.alone:
            raise ServerUnreachable(self.place, "it has left no address")
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
                raise  # reading breaks no pipe: the reader of our stdout has closed it
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise ServerUnreachable(self.place, str(why).lower()) from error
        finally:
            connection.close()

    def _connection(self, seconds: float) -> "HTTPConnection":
        from http.client import HTTPConnection, HTTPSConnection

        host, port = str(self._parts.hostname), self._parts.port
        if self._parts.scheme == "https":
            return HTTPSConnection(host, port, timeout=seconds)
        return HTTPConnection(host, port, timeout=seconds)

    def _headers(self, body: bytes | None, headers: dict[str, str]) -> dict[str, str]:
        defaults = {"Accept": "application/json"}
        if self.place.key is not None:
            defaults["Authorization"] = f"Bearer {self.place.key}"
        if body is not None:
            defaults["Content-Type"] = "application/json"
        return {**defaults, **headers}


class Api:
    """Calls that return data. A refusal becomes a CommandError with the server's sentence."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend

    @property
    def offline(self) -> bool:
        return self.backend.offline

    def get(self, path: str, **query: Any) -> Any:
        parameters = {name: value for name, value in query.items() if value is not None}
        return self.ask("GET", f"{path}?{urlencode(parameters)}" if parameters else path)

    def post(self, path: str, body: Any = None) -> Any:
        return self.ask("POST", path, json.dumps({} if body is None else body).encode())

    def delete(self, path: str) -> Any:
        return self.ask("DELETE", path)

    def ask(self, method: str, path: str, body: bytes | None = None) -> Any:
        answer = self.backend.call(method, path, body)
        if answer.status >= 400:
            raise error_from_answer(answer, self.backend.place)
        return answer.data()


def error_from_answer(answer: HttpAnswer, place: ServerLocation) -> CommandError:
    """Return the server's refusal in its own words, with a hint where one helps."""
    details, code = {}, ""
    try:
        body = json.loads(answer.body)
        fields = (
            body["error"] if isinstance(body.get("error"), dict) else body
        )  # nested in answers of /threads
        message, details = str(fields["message"]), dict(body.get("details") or {})
        code = str(fields.get("code") or fields.get("error") or "")
    except (ValueError, KeyError, TypeError, AttributeError):
        message = f"the server answered with status {answer.status}."
    if answer.status == 401:
        message += (
            f" The key comes from --token, MOOT_KEY or {place.database}.key;"
            f" the server is {place.url}."
        )
    error = CommandError(message, ExitCode.NOT_FOUND if answer.status == 404 else ExitCode.FAILED)
    error.status, error.code, error.details = answer.status, code, details
    return error


def api_for_writing(options: CommandOptions) -> Api:
    """Return an API on the server itself, because only a server may change anything."""
    return Api(HttpClient(resolve_place(options)))


def api_for_reading(options: CommandOptions) -> Api:
    """Return an API on the server, or on its file while no server runs."""
    from moot.cli.shared.offline import ServerOrFile

    return Api(ServerOrFile(resolve_place(options)))


def api_path(*words: str) -> str:
    """Return the path of these words, each quoted."""
    return "/" + "/".join(quote(word, safe=":") for word in words)


def thread_path(thread_id: str, *more: str) -> str:
    return api_path("v1", "host", "moot", "threads", thread_id, *more)
