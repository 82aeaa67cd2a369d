"""Read a recorded turn, whichever event holds it."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from moot.core.payloads.base import OpaquePayload, Payload
from moot.core.payloads.conversations import (
    ConversationEnded,
    ConversationExchanged,
    ConversationOpened,
    Turn,
)


class RecordedTurn(Struct, frozen=True, kw_only=True):
    """A turn as readers see it. An imported log may hold odd values; they become text or None."""

    speaker: str
    role: str
    content: Any
    index: int | None = None
    to: str | None = None
    #: ``task`` or ``result`` for a turn that is more than words
    kind: str | None = None
    via: str | None = None
    #: the caller that used the name of an agent of this host
    spoken_by: str | None = None
    edited_by: str | None = None
    #: the model of an agent's turn, as its author and as its metadata have it
    model: str | None = None
    meta: Mapping[str, Any] = {}

    @property
    def tags(self) -> list[Any]:
        tags = self.meta.get("tags")
        return tags if isinstance(tags, list) else []


def spoken_turn(payload: Payload | OpaquePayload) -> RecordedTurn | None:
    """Return the turn that opens, continues or closes a conversation, or None."""
    match payload:
        case ConversationOpened(initial_turn=turn) | ConversationExchanged(turn=turn):
            return read_turn(turn)
        case ConversationEnded(final_turn=turn):
            return read_turn(turn)
        case _:
            return None


def read_turn(turn: Turn) -> RecordedTurn:
    meta = _object(turn.meta)
    kind, model = meta.get("kind"), _object(_object(turn.agent).get("model"))
    return RecordedTurn(
        speaker=turn.speaker_id or turn.from_,
        role=turn.role or "",
        content=turn.body,
        index=turn.turn_index,
        to=turn.to,
        kind=kind if kind in ("task", "result") else None,
        via=turn.via,
        spoken_by=turn.spoken_by,
        edited_by=turn.edited_by,
        model=None if model.get("model") is None else str(model["model"]),
        meta=meta,
    )


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
