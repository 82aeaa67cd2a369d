"""The minutes of a thread as data."""

from typing import Any

from moot.wire.councils import CouncilDecisionView
from moot.wire.json import JsonObject, WireStruct


class Line(WireStruct, frozen=True):
    """A turn of a transcript, or with ``note`` an action between turns."""

    at: str
    by: str
    index: int | None = None
    role: str | None = None
    to: str | None = None
    content: Any = None
    model: str | None = None
    #: ``task`` or ``result``, if it is one.
    kind: str | None = None
    #: The key's holder, if that differs from the name.
    via: str | None = None
    #: The caller that used the name of an agent of this host.
    spoken_by: str | None = None
    #: The person who edited the turn.
    edited_by: str | None = None
    #: The sentence, if the line is not a turn.
    note: str | None = None


class MinutesView(WireStruct, frozen=True):
    """The minutes of a conversation as data."""

    thread_id: str
    run_id: str
    title: str = ""
    question: Any = None
    opened_at: str = ""
    closed_at: str | None = None
    participants: list[JsonObject] = []
    decision: CouncilDecisionView | None = None
    #: An outcome that is not a decision.
    outcome: Any = None
    transcript: list[Line] = []
