"""Errors of a call: the server refused, did not answer, or answered unreadably.

ClientError
├── ApiError            the server refused: code, status, message, details
│   ├── BadRequest          400
│   ├── Unauthenticated     401
│   ├── Forbidden           403
│   ├── NotFound            404
│   ├── Conflict            409
│   │   ├── RunTerminal         run_terminal
│   │   ├── RunAlreadyActive    run_already_active
│   │   ├── AlreadyAnswered     interrupt_already_resolved
│   │   ├── ConversationClosed  conversation_closed
│   │   ├── ParticipantMuted    participant_muted
│   │   └── ThreadPaused        thread_paused
│   ├── Gone                410
│   ├── TooLarge            413
│   ├── Unprocessable       422
│   │   └── NotAParticipant     conversation_speaker_not_participant
│   ├── RateLimited         429
│   ├── NotProvided         501
│   └── Unavailable         503
├── Unreachable         no server answered, even after retries
├── TimedOut            the awaited state did not come in time
└── BadAnswer           the answer is too large or malformed
"""

from collections.abc import Iterator
from typing import Any, ClassVar

import msgspec

from moot.wire.errors import Error


class ClientError(Exception):
    """The base of every error of the client."""


class ApiError(ClientError):
    """The server refused and changed nothing. ``code`` is in the table of docs/errors.md."""

    of_status: ClassVar[int | None] = None
    of_code: ClassVar[str | None] = None

    def __init__(
        self, code: str, status: int, message: str, details: dict[str, Any] | None = None
    ) -> None:
        super().__init__(f"{message} ({code})")
        self.code, self.status, self.message = code, status, message
        self.details = details or {}


class BadRequest(ApiError):
    of_status = 400


class Unauthenticated(ApiError):
    of_status = 401


class Forbidden(ApiError):
    of_status = 403


class NotFound(ApiError):
    of_status = 404


class Conflict(ApiError):
    of_status = 409


class RunTerminal(Conflict):
    of_code = "run_terminal"


class RunAlreadyActive(Conflict):
    of_code = "run_already_active"


class AlreadyAnswered(Conflict):
    """The question already has an answer; the details name the person who gave it."""

    of_code = "interrupt_already_resolved"


class ConversationClosed(Conflict):
    of_code = "conversation_closed"


class ParticipantMuted(Conflict):
    of_code = "participant_muted"


class ThreadPaused(Conflict):
    of_code = "thread_paused"


class Gone(ApiError):
    of_status = 410


class TooLarge(ApiError):
    of_status = 413


class Unprocessable(ApiError):
    of_status = 422


class NotAParticipant(Unprocessable):
    of_code = "conversation_speaker_not_participant"


class RateLimited(ApiError):
    of_status = 429


class NotProvided(ApiError):
    of_status = 501


class Unavailable(ApiError):
    of_status = 503


class Unreachable(ClientError):
    """No server answered. The client repeats a call that changes data only if that is safe."""


class TimedOut(ClientError, TimeoutError):
    """The awaited state did not come in time; it may still come."""


class BadAnswer(ClientError):
    """The client cannot read the answer."""


def error_from_response(status: int, body: bytes) -> ApiError:
    """Return the error of the most specific class that fits the response."""
    try:
        error = msgspec.json.decode(body, type=Error)
    except (msgspec.DecodeError, UnicodeDecodeError):
        fallback = Error(error="unknown", message=f"The server answered with status {status}.")
        error = _bridge_error(body) or fallback
    # by default councils put the more specific code into the details
    codes = (error.error, error.details.get("code"))
    kinds = [kind for kind in _subclasses(ApiError) if kind.of_code in codes and kind.of_code]
    kinds += [
        kind for kind in _subclasses(ApiError) if kind.of_status == status and not kind.of_code
    ]
    kind = kinds[0] if kinds else ApiError
    return kind(error.error, status, error.message, error.details)


def _bridge_error(body: bytes) -> Error | None:
    """Return the error in the form of the Agent Bridge thread API, if the body has it."""
    try:
        details = msgspec.json.decode(body, type=dict[str, dict[str, str | None]])["error"]
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError):
        return None
    code, message = details.pop("code", None), details.pop("message", None)
    return Error(error=code or "unknown", message=message or "", details=dict(details))


def _subclasses(kind: type[ApiError]) -> Iterator[type[ApiError]]:
    for child in kind.__subclasses__():
        if "of_status" in vars(child) or "of_code" in vars(child):
            yield child
        yield from _subclasses(child)
