"""What can go wrong with a call: a refusal of the server, no answer, or one nobody can read.

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
├── Unreachable         nobody answered, also after trying again
├── TimedOut            what was waited for did not come in time
└── BadAnswer           the answer is too large, or is none of this server's
"""

from collections.abc import Iterator
from typing import Any, ClassVar

import msgspec


class ClientError(Exception):
    """Every error of the client is one of these."""


class ApiError(ClientError):
    """The server refused, and nothing was changed. ``code`` is in the table of docs/errors.md."""

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
    """Somebody else was first; the details say who."""

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
    """Nobody answered. A call that changes something was sent again only where that is safe."""


class TimedOut(ClientError, TimeoutError):
    """What was waited for has not happened yet; it may still."""


class BadAnswer(ClientError):
    """Something answered, and it was not understood."""


class Said(msgspec.Struct):
    """The body of every refusal."""

    error: str
    message: str
    details: dict[str, Any] = {}


def refusal(status: int, body: bytes) -> ApiError:
    """The refusal as an error, of the narrowest class that fits."""
    try:
        said = msgspec.json.decode(body, type=Said)
    except (msgspec.DecodeError, UnicodeDecodeError):
        said = _nested(body) or Said("unknown", f"The server answered with status {status}.")
    # councils say the finer code in the details unless the server is set up otherwise
    codes = (said.error, said.details.get("code"))
    family = [kind for kind in _family(ApiError) if kind.of_code in codes and kind.of_code]
    family += [kind for kind in _family(ApiError) if kind.of_status == status and not kind.of_code]
    kind = family[0] if family else ApiError
    return kind(said.error, status, said.message, said.details)


def _nested(body: bytes) -> "Said | None":
    """A conflict as the thread API tells it."""
    try:
        about = msgspec.json.decode(body, type=dict[str, dict[str, str | None]])["error"]
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError):
        return None
    code, message = about.pop("code", None), about.pop("message", None)
    return Said(code or "unknown", message or "", dict(about))


def _family(kind: type[ApiError]) -> Iterator[type[ApiError]]:
    for child in kind.__subclasses__():
        if "of_status" in vars(child) or "of_code" in vars(child):
            yield child
        yield from _family(child)
