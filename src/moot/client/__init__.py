"""The client of Moot's API, for blocking programs and for asyncio.

``operations`` describes each route once. ``http.sender`` and ``http.async_sender`` send the calls,
and ``http.methods`` turns operations into methods. The client never imports the server.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moot.client.clients import AsyncClient, Client
    from moot.client.errors import (
        AlreadyAnswered,
        ApiError,
        BadAnswer,
        BadRequest,
        ClientError,
        Conflict,
        ConversationClosed,
        Forbidden,
        Gone,
        NotAParticipant,
        NotFound,
        NotProvided,
        ParticipantMuted,
        RateLimited,
        RunAlreadyActive,
        RunTerminal,
        ThreadPaused,
        TimedOut,
        TooLarge,
        Unauthenticated,
        Unavailable,
        Unprocessable,
        Unreachable,
    )
    from moot.client.http.frames import Event, Spoken
    from moot.client.operations.runs import Edit, Options
    from moot.client.runs import AsyncRun, Run
    from moot.client.threads import AsyncThread, Thread
    from moot.wire.interrupts import Question
    from moot.wire.minutes import Line
    from moot.wire.runs import RunRow, Snapshot

__all__ = [
    "AlreadyAnswered", "ApiError", "AsyncClient", "AsyncRun", "AsyncThread", "BadAnswer",
    "BadRequest", "Client", "ClientError", "Conflict", "ConversationClosed", "Edit", "Event",
    "Forbidden", "Gone", "Line", "NotAParticipant", "NotFound", "NotProvided", "Options",
    "ParticipantMuted", "Question", "RateLimited", "Run", "RunAlreadyActive", "RunRow",
    "RunTerminal", "Snapshot", "Spoken", "Thread", "ThreadPaused", "TimedOut", "TooLarge",
    "Unauthenticated", "Unavailable", "Unprocessable", "Unreachable",
]  # fmt: skip

#: names that are not classes of errors
_MODULES = {
    **dict.fromkeys(("AsyncClient", "Client"), "moot.client.clients"),
    **dict.fromkeys(("Event", "Spoken"), "moot.client.http.frames"),
    **dict.fromkeys(("Edit", "Options"), "moot.client.operations.runs"),
    **dict.fromkeys(("AsyncRun", "Run"), "moot.client.runs"),
    **dict.fromkeys(("AsyncThread", "Thread"), "moot.client.threads"),
    **dict.fromkeys(("RunRow", "Snapshot"), "moot.wire.runs"),
    "Question": "moot.wire.interrupts",
    "Line": "moot.wire.minutes",
}


def __getattr__(name: str) -> Any:
    """Import a name when it is used, because the command line uses only operations."""
    if name in __all__:
        return getattr(import_module(_MODULES.get(name, "moot.client.errors")), name)
    raise AttributeError(f"module 'moot.client' has no attribute '{name}'")
