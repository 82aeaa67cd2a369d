"""Send calls for a command, with refusals in the words of a command's errors."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from moot.cli.shared.command_hint import program_name
from moot.cli.shared.errors import CommandError, ExitCode
from moot.cli.shared.options import CommandOptions, resolve_place
from moot.client.errors import ApiError, BadAnswer, Unreachable
from moot.client.http.attempts import CallSettings, HttpRequest, ServerAccess
from moot.client.http.operation import PreparedCall
from moot.client.http.sender import Sender, Transport, WholeAnswer
from moot.client.http.stdlib_transport import StdlibTransport
from moot.config.server_location import ServerLocation

#: longer than the server waits before it sends a comment on a quiet stream
TIMEOUT_SECONDS = 60.0
#: a person repeats a command
SETTINGS = CallSettings(timeout=TIMEOUT_SECONDS, connect=TIMEOUT_SECONDS, retries=0)

T = TypeVar("T")


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


class CommandTransport(Transport, Protocol):
    """Carries requests to a server, or to a database file that is read in its place."""

    @property
    def offline(self) -> bool:
        """True if a file is read, so nothing in it changes any more."""


class ServerTransport(StdlibTransport):
    """Carries requests to the server itself."""

    offline = False


class Api:
    """Sends calls. A refusal becomes a CommandError with the server's sentence."""

    def __init__(self, place: ServerLocation, transport: CommandTransport | None = None) -> None:
        self.place = place
        self._transport = transport or ServerTransport(place)
        try:
            self._server = ServerAccess(place, SETTINGS)
        except ValueError:
            message = f"'{place.url}' is not an http address."
            raise CommandError(message, ExitCode.USAGE) from None
        self._sender = Sender(self._server, self._transport)

    @property
    def offline(self) -> bool:
        return self._transport.offline

    def send(self, call: PreparedCall[T]) -> T:
        body = self.exchange(call).body
        try:
            return call.read(body)
        except BadAnswer as error:
            raise CommandError(_answer_problem(body, error)) from error

    def find(self, call: PreparedCall[T]) -> T | None:
        """Return None where the server has no such thing."""
        try:
            return self.send(call)
        except CommandError as error:
            if error.exit_code is ExitCode.NOT_FOUND:
                return None
            raise

    def exchange(self, call: PreparedCall[Any]) -> WholeAnswer:
        """Return the answer with its headers."""
        with _command_errors(self.place):
            return self._sender.exchange(call)

    @contextmanager
    def open_stream(
        self, call: PreparedCall[Any], after: int, seconds: float = TIMEOUT_SECONDS
    ) -> Iterator[Iterator[bytes]]:
        """Yield the pieces of one connection of a stream."""
        with _command_errors(self.place), self._sender.open_stream(call, after, seconds) as pieces:
            yield pieces


def raw_request(
    place: ServerLocation, method: str, path: str, body: bytes | None, headers: dict[str, str]
) -> HttpRequest:
    """Return a request of any route."""
    defaults = {"Accept": "application/json"}
    if place.key is not None:
        defaults["Authorization"] = f"Bearer {place.key}"
    if body is not None:
        defaults["Content-Type"] = "application/json"
    return HttpRequest(
        method=method,
        target=path,
        headers={**defaults, **headers},
        body=body,
        seconds=TIMEOUT_SECONDS,
        connect_seconds=TIMEOUT_SECONDS,
    )


@contextmanager
def _command_errors(place: ServerLocation) -> Iterator[None]:
    try:
        yield
    except ApiError as error:
        raise command_error(error, place) from error
    except Unreachable as error:
        raise ServerUnreachable(place, str(error.__cause__).lower()) from error
    except BadAnswer as error:
        raise CommandError(str(error)) from error


def _answer_problem(body: bytes, error: BadAnswer) -> str:
    try:
        json.loads(body)
    except ValueError:
        return "the server did not answer with JSON; is it Moot?"
    return str(error)


def command_error(refusal: ApiError, place: ServerLocation) -> CommandError:
    """Return the server's refusal in its own words, with a hint where one helps."""
    message, code = refusal.message, refusal.code
    if code == "unknown":
        message, code = f"the server answered with status {refusal.status}.", ""
    if refusal.status == 401:
        message += (
            f" The key comes from --token, MOOT_KEY or {place.database}.key;"
            f" the server is {place.url}."
        )
    error = CommandError(message, ExitCode.NOT_FOUND if refusal.status == 404 else ExitCode.FAILED)
    error.status, error.code, error.details = refusal.status, code, refusal.details
    return error


def api_for_writing(options: CommandOptions) -> Api:
    """Return an API on the server itself, because only a server may change anything."""
    return Api(resolve_place(options))


def api_for_reading(options: CommandOptions) -> Api:
    """Return an API on the server, or on its file while no server runs."""
    from moot.cli.shared.file import ServerOrFile

    place = resolve_place(options)
    return Api(place, ServerOrFile(place))
